//! The sync thread of a server: it makes the messages of all clients, so that no frame has to.
//!
//! The main world tells it what has changed and what became of edits; it tells the main world what clients wish, and asks for chunks. In
//! lockstep, it runs in the frame.

use super::port::{ClientPort, ForTransport};
use crate::block::BlockRegistry;
use crate::chunk_sync::{ChunkChange, FoundChunk, SyncArea, SyncLimits, SyncServer, SyncWish};
use crate::entity_sync::{EntityLimits, EntityServer, ForClient};
use crate::simulation::Steer;
use crate::space::{ChunkPos, ColumnPos, DimensionId};
use crate::view::frame_news::{ChangedChunk, EntityChange};
use bevy::utils::default;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// The number of chunks that are looked up for one client at a time.
const MAX_LOOKED_UP: usize = 256;
/// Clients that want at most so many chunks share questions, each of about so many chunks. The long questions of new clients hold up
/// nobody else.
const MAX_SHARED: usize = 64;
/// An answer that takes longer was dropped.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time from one pass to the next.
const PASS: Duration = Duration::from_millis(10);
/// The time from one sending of messages to the next, unless a tick of the entities comes before: more often would cost more packets.
const SEND: Duration = Duration::from_millis(25);
/// The time from one tick of entities to the next.
const ENTITY_TICK: Duration = Duration::from_millis(50);
/// How much later a tick comes if there is no news.
const WAIT_FOR_NEWS: Duration = Duration::from_millis(25);
/// What the main world has not taken in at which clients have to wait.
const MAX_TOLD: usize = 1 << 14;

/// The part of its dimension that a client may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// Nothing at present: its viewer is elsewhere.
    Nothing,
    /// The whole dimension.
    All,
    Area(SyncArea),
}

/// A client in a dimension, as it is told first.
pub(super) struct Greeting {
    pub port: ClientPort,
    pub dimension: DimensionId,
    pub name: String,
    pub chunk_heights: Range<i64>,
    pub limits: SyncLimits,
}

/// An order of the main world. Clients have the numbers of their ports.
pub(super) enum ToHub {
    /// Begins a client, or tells it other limits, or a dimension that was opened again.
    Greet(Box<Greeting>),
    /// What a client sees, the place around which it sees entities, and its own entity.
    See(u64, Sight, Option<ChunkPos>, Option<Uuid>),
    TakeActions(u64),
    Actor(u64, Vec<u8>),
    EditDecided(u64, u64, ChunkPos, bool),
    ActionDecided(u64, u64, Option<Vec<ChunkPos>>),
    Changed(Vec<ChangedChunk>),
    Columns(Vec<(DimensionId, ColumnPos)>),
    /// The answer to a question; `None` if the dimension is not open.
    Found(u64, Option<Vec<(ChunkPos, Result<Option<Arc<[u8]>>, ()>)>>),
    Entities(Vec<EntityChange>),
    Gone(u64),
}

/// An answer to the main world.
pub(super) enum FromHub {
    /// A wish of a client, and whether an edit was made on the newest state of its chunk.
    Wish(u64, SyncWish, bool),
    /// An action beyond what a client may do in a second.
    TooMany(u64, u64),
    /// Steps of a client's own body.
    Steps(u64, Vec<Steer>),
    /// A question about chunks.
    Ask(u64, DimensionId, Vec<ChunkPos>),
}

struct Peer {
    port: ClientPort,
    dimension: DimensionId,
    server: SyncServer,
    sight: Sight,
    /// The client's own entity.
    own: Option<Uuid>,
    /// The number of the open question, and its time.
    asked: Option<(u64, Instant)>,
}

struct Question {
    asked: Instant,
    /// The clients, with the chunks that they want.
    wanted: Vec<(u64, Vec<ChunkPos>)>,
}

/// All clients of a server.
pub(super) struct Hub {
    blocks: Arc<BlockRegistry>,
    /// The types of components that clients are told of.
    types: Vec<String>,
    peers: BTreeMap<u64, Peer>,
    dimensions: BTreeMap<DimensionId, EntityServer>,
    /// The dimensions of entities, and their clocks.
    entities: FxHashMap<Uuid, DimensionId>,
    clocks: FxHashMap<DimensionId, Duration>,
    /// Counted down from the largest number, since a game may number its own questions upwards.
    last_question: u64,
    questions: FxHashMap<u64, Question>,
    began: Instant,
    /// The last tick of the entities, how much of its time the next one may save, and whether there is news for it.
    ticked: Duration,
    saved: Duration,
    has_news: bool,
    /// When messages were sent last.
    last_send: Duration,
    orders: Receiver<ToHub>,
    told: Sender<FromHub>,
}

impl Hub {
    pub fn new(blocks: Arc<BlockRegistry>, types: Vec<String>, orders: Receiver<ToHub>, told: Sender<FromHub>) -> Self {
        Self {
            blocks,
            types,
            peers: BTreeMap::new(),
            dimensions: BTreeMap::new(),
            entities: FxHashMap::default(),
            clocks: FxHashMap::default(),
            last_question: 0,
            questions: FxHashMap::default(),
            began: Instant::now(),
            ticked: Duration::ZERO,
            saved: ENTITY_TICK,
            has_news: false,
            last_send: Duration::ZERO,
            orders,
            told,
        }
    }

    /// Runs until the app is gone.
    pub fn run(mut self) {
        let mut next = Instant::now();
        loop {
            match self.orders.recv_deadline(next) {
                Ok(order) => self.follow(order),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            // However many orders there are, clients do not wait for long.
            if Instant::now() < next {
                continue;
            }
            let now = self.began.elapsed();
            let is_tick = self.begins_tick(now);
            let sends = is_tick || now >= self.last_send + SEND;
            if sends {
                self.last_send = now;
            }
            self.pass(now, is_tick, sends);
            next = Instant::now() + PASS;
        }
    }

    /// Returns `true` if a tick of the entities begins now. It follows the news at once, so that clients do not wait for it; on average there
    /// is a tick in each [`ENTITY_TICK`] at most.
    fn begins_tick(&mut self, now: Duration) -> bool {
        let since = now.saturating_sub(self.ticked);
        let is_due = self.has_news && since + self.saved >= ENTITY_TICK || since >= ENTITY_TICK + WAIT_FOR_NEWS;
        if is_due {
            self.saved = (self.saved + since).saturating_sub(ENTITY_TICK).min(ENTITY_TICK);
            (self.ticked, self.has_news) = (now, false);
        }
        is_due
    }

    /// In lockstep: takes in what the main world has told. With `is_tick`, a tick of the entities follows.
    pub fn run_inline(&mut self, is_tick: bool) {
        while let Ok(order) = self.orders.try_recv() {
            self.follow(order);
        }
        self.pass(self.began.elapsed(), is_tick, true);
    }

    fn follow(&mut self, order: ToHub) {
        match order {
            ToHub::Greet(greeting) => self.greet(*greeting),
            ToHub::See(peer, sight, center, own) => {
                let Some(known) = self.peers.get_mut(&peer) else { return };
                (known.sight, known.own) = (sight, own);
                known.server.see(if let Sight::Area(area) = sight { Some(area) } else { None });
                let entities = self.dimensions.get_mut(&known.dimension);
                if let (Some(entities), Some(center)) = (entities, center) {
                    entities.look(peer, center, own);
                }
            }
            ToHub::TakeActions(peer) => self.with(peer, SyncServer::take_actions),
            ToHub::Actor(peer, bytes) => self.with(peer, |server| server.tell_of_actor(bytes)),
            ToHub::EditDecided(peer, id, chunk, is_accepted) => {
                self.with(peer, |server| server.edit_decided(id, chunk, is_accepted));
            }
            ToHub::ActionDecided(peer, id, chunks) => {
                self.with(peer, |server| server.action_decided(id, chunks.as_deref()));
            }
            ToHub::Changed(chunks) => self.change(&chunks),
            ToHub::Columns(columns) => {
                for (dimension, column) in columns {
                    let of_it = self.peers.values_mut().filter(|peer| peer.dimension == dimension);
                    of_it.for_each(|peer| peer.server.column_changed(column));
                }
            }
            ToHub::Found(question, found) => self.found(question, found),
            ToHub::Entities(changes) => {
                self.has_news = true;
                changes.into_iter().for_each(|change| self.change_entity(change));
            }
            ToHub::Gone(peer) => {
                if let Some(gone) = self.peers.remove(&peer)
                    && let Some(entities) = self.dimensions.get_mut(&gone.dimension)
                {
                    entities.disconnect(peer);
                }
            }
        }
    }

    fn with(&mut self, peer: u64, work: impl FnOnce(&mut SyncServer)) {
        if let Some(peer) = self.peers.get_mut(&peer) {
            work(&mut peer.server);
        }
    }

    fn greet(&mut self, Greeting { port, dimension, name, chunk_heights, limits }: Greeting) {
        let key = port.life();
        let records = || (self.blocks.block_records().collect(), self.blocks.component_records().cloned().collect());
        let entities = EntityLimits { radius: limits.entity_radius, bytes_per_second: limits.entity_bytes_per_second };
        self.dimensions
            .entry(dimension)
            .or_insert_with(|| EntityServer::new(self.types.clone()))
            .connect(key, entities);
        match self.peers.get_mut(&key) {
            Some(known) => known.server.greet(&name, chunk_heights, records(), limits),
            None => {
                let server = SyncServer::new(&name, chunk_heights, records(), limits);
                port.open();
                let peer = Peer { port, dimension, server, sight: Sight::Nothing, own: None, asked: None };
                self.peers.insert(key, peer);
            }
        }
    }

    fn change(&mut self, chunks: &[ChangedChunk]) {
        for (dimension, chunk, before, after) in chunks {
            let mut of_it = self.peers.values_mut().filter(|peer| peer.dimension == *dimension).peekable();
            if of_it.peek().is_none() {
                continue;
            }
            // Encoded once for all clients.
            match ChunkChange::between(*chunk, before, after, &self.blocks) {
                Some(change) => of_it.for_each(|peer| peer.server.take_change(&change)),
                None => of_it.for_each(|peer| peer.server.changed(*chunk)),
            }
        }
    }

    fn change_entity(&mut self, EntityChange { id, place, mut components }: EntityChange) {
        let before = self.entities.get(&id).copied();
        let after = place.as_ref().map(|(dimension, ..)| *dimension);
        if before != after
            && let Some(mut kept) =
                before.and_then(|before| self.dimensions.get_mut(&before)).and_then(|entities| entities.remove(id))
        {
            // It takes its components along into another dimension.
            for (number, value) in components.drain(..) {
                match value {
                    Some(value) => _ = kept.insert(number, value),
                    None => _ = kept.remove(&number),
                }
            }
            components = kept.into_iter().map(|(number, value)| (number, Some(value))).collect();
        }
        let Some((dimension, place, clock)) = place else {
            self.entities.remove(&id);
            return;
        };
        self.entities.insert(id, dimension);
        let newest = self.clocks.entry(dimension).or_default();
        *newest = clock.max(*newest);
        let types = &self.types;
        let entities = self.dimensions.entry(dimension).or_insert_with(|| EntityServer::new(types.clone()));
        entities.put(id, place, clock, components);
    }

    fn found(&mut self, question: u64, found: Option<Vec<(ChunkPos, Result<Option<Arc<[u8]>>, ()>)>>) {
        let Some(Question { wanted, .. }) = self.questions.remove(&question) else { return };
        let is_open = found.is_some();
        let state = |(chunk, state): (ChunkPos, Result<Option<Arc<[u8]>>, ()>)| {
            (chunk, state.map(|bytes| Some(FoundChunk::new(chunk, bytes?))))
        };
        let found: FxHashMap<ChunkPos, _> = found.into_iter().flatten().map(state).collect();
        for (peer, wanted) in wanted {
            // It may have stopped waiting.
            let Some(peer) = self.peers.get_mut(&peer) else { continue };
            if peer.asked.is_none_or(|(asked, _)| asked != question) {
                continue;
            }
            peer.asked = None;
            if !is_open {
                peer.server.lost();
                continue;
            }
            for chunk in wanted {
                if let Some(state) = found.get(&chunk) {
                    peer.server.found(chunk, state.clone());
                }
            }
        }
    }

    /// Takes in the messages of clients, makes theirs, and asks for the chunks that they want.
    fn pass(&mut self, now: Duration, is_tick: bool, sends: bool) {
        let mut of_entities = if is_tick { self.tick_entities(now) } else { default() };
        let mut shared: BTreeMap<DimensionId, (FxHashSet<ChunkPos>, Vec<(u64, Vec<ChunkPos>)>)> = BTreeMap::new();
        let mut asks = Vec::new();
        for (key, peer) in &mut self.peers {
            let is_late = self.told.len() >= MAX_TOLD;
            let (messages, steps) = if is_late { default() } else { peer.port.take_incoming() };
            messages.into_iter().for_each(|message| peer.server.take(message));
            for wish in peer.server.take_wishes() {
                let is_current = matches!(&wish, SyncWish::Edit(edit) if peer.server.is_current(edit));
                let _ = self.told.send(FromHub::Wish(*key, wish, is_current));
            }
            peer.server.take_excess().into_iter().for_each(|id| _ = self.told.send(FromHub::TooMany(*key, id)));
            if !steps.is_empty() {
                let _ = self.told.send(FromHub::Steps(*key, steps));
            }
            if peer.sight == Sight::Nothing {
                continue;
            }
            // All in one, so that it fits into few packets of the network.
            let ForTransport { mut messages, packets } = of_entities.remove(key).unwrap_or_default();
            if sends && peer.port.is_ready().0 {
                messages.extend(peer.server.messages(now));
            }
            peer.port.send(messages, packets);
            peer.port.set_progress(peer.server.waiting_actor_news(), peer.server.progress());
            match peer.asked {
                Some((_, asked)) if asked.elapsed() < PATIENCE => continue,
                Some(_) => peer.server.lost(),
                None => {}
            }
            peer.asked = None;
            let chunks = peer.server.wanted(MAX_LOOKED_UP);
            if chunks.len() > MAX_SHARED {
                asks.push((peer.dimension, vec![(*key, chunks)]));
            } else if !chunks.is_empty() {
                let (all, wanted) = shared.entry(peer.dimension).or_default();
                all.extend(&chunks);
                wanted.push((*key, chunks));
                if all.len() > MAX_SHARED
                    && let Some((_, wanted)) = shared.remove(&peer.dimension)
                {
                    asks.push((peer.dimension, wanted));
                }
            }
        }
        asks.extend(shared.into_iter().map(|(dimension, (_, wanted))| (dimension, wanted)));
        asks.into_iter().for_each(|(dimension, wanted)| self.ask(dimension, wanted));
        self.questions.retain(|_, question| question.asked.elapsed() < PATIENCE);
    }

    fn ask(&mut self, dimension: DimensionId, wanted: Vec<(u64, Vec<ChunkPos>)>) {
        self.last_question = self.last_question.wrapping_sub(1);
        let (question, asked) = (self.last_question, Instant::now());
        let mut chunks: Vec<ChunkPos> = wanted.iter().flat_map(|(_, chunks)| chunks).copied().collect();
        chunks.sort_unstable();
        chunks.dedup();
        for (peer, _) in &wanted {
            if let Some(peer) = self.peers.get_mut(peer) {
                peer.asked = Some((question, asked));
            }
        }
        self.questions.insert(question, Question { asked, wanted });
        let _ = self.told.send(FromHub::Ask(question, dimension, chunks));
    }

    /// Ends a tick of the entities. Returns the messages and packets about them, by client.
    fn tick_entities(&mut self, now: Duration) -> FxHashMap<u64, ForTransport> {
        let mut sent = FxHashMap::default();
        for (dimension, entities) in &mut self.dimensions {
            for (key, peer) in self.peers.iter().filter(|(_, peer)| peer.dimension == *dimension) {
                let is_seeing = peer.sight != Sight::Nothing;
                let (messages, packets) = peer.port.is_ready();
                entities.set_reading(*key, is_seeing && messages, is_seeing && packets);
                // A client that may look anywhere sees the entities where it looks.
                if let (Sight::All, Some(area)) = (peer.sight, peer.server.area()) {
                    entities.look(*key, area.center, peer.own);
                }
            }
            let clock = self.clocks.get(dimension).copied().unwrap_or_default();
            for ForClient { client, message, packets } in entities.tick(now, clock) {
                sent.insert(client, ForTransport { messages: message.into_iter().collect(), packets });
            }
        }
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossbeam_channel::unbounded;

    fn ticks(news_at: impl Fn(u64) -> bool) -> Vec<(u64, u64)> {
        let mut hub = Hub::new(Arc::default(), Vec::new(), unbounded().1, unbounded().0);
        let (mut all, mut told) = (Vec::new(), 0);
        for now in 0..10_000 {
            if news_at(now) {
                (hub.has_news, told) = (true, now);
            }
            if hub.begins_tick(Duration::from_millis(now)) {
                all.push((now, now - told));
            }
        }
        all
    }

    /// Promise, company: Places are sent as soon as regions have told of them, and on average twenty times a second.
    #[test]
    fn ticks_follow_the_news() {
        for phase in 0..50 {
            let one_region = ticks(|now| now % 50 == phase);
            assert!((199..=201).contains(&one_region.len()), "{phase}: {}", one_region.len());
            assert!(one_region.iter().skip(2).all(|(_, age)| *age == 0), "{phase}: {one_region:?}");
        }
        // However many regions there are, and without any news.
        let many_regions = ticks(|now| now % 25 == 0 || now % 30 == 0);
        assert!((195..=201).contains(&many_regions.len()), "{}", many_regions.len());
        assert!(ticks(|_| false).len() > 130);
    }
}
