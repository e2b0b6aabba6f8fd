//! The server's side: one component per client.

use super::actors::{ActorMessage, SentComponent};
use super::hub::{FromHub, Greeting, Hub, Sight, ToHub};
use super::packets::SentBody;
use super::port::ClientPort;
use crate::block::BlockId;
use crate::chunk::Chunk;
use crate::chunk_sync::{SyncArea, SyncEdit, SyncError, SyncLimits, SyncServerProgress};
use crate::coordinator::answers::ask_chunks;
use crate::coordinator::messages::{ActionId, AskChunks, AskError, ChunkState, ChunksAnswer};
use crate::coordinator::{MAX_WHOLE_HEIGHT, MainLink};
use crate::simulation::{BlockTypes, DecidedAction, Position, Refusal, Steer, Viewer};
use crate::space::{BlockPos, ChunkPos, ColumnPos, DimensionId, chunk_heights};
use crate::view::frame_news::{ChangedChunk, EntityChange, FrameNews, entity_change};
use crate::view::viewers::{Place, PlaceItem};
use crate::view::{
    ColumnChange, ColumnChanged, Components, Dimension, DimensionOpen, MainTicks, Mirror, PublishedColumns,
};
use bevy::ecs::query::QueryEntityError;
use bevy::platform::cell::SyncCell;
use bevy::prelude::*;
use crossbeam_channel::{Receiver, Sender, unbounded};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// The columns that a client keeps beyond its radius, so that a step back requests nothing again.
const MARGIN: u32 = 2;
/// The columns beyond its viewer's reach that a client may receive, since the two are not always in the same place.
const SLACK: u32 = 4;

/// A connected client of a server. It receives the chunks around it that it lacks, nearest first and limited in bytes per
/// second, and all later changes.
///
/// The component has no transport: the game passes it the client's messages ([`receive`](Self::receive)), and sends its
/// messages to the client ([`take_messages`](Self::take_messages)), reliably and in order. A transport that runs beside the frames uses
/// the component's [`port`](Self::port), which has packets too: without them, the client sees entities appear and change, but not move.
/// Despawn it when the client is gone.
///
/// It loads no columns; a [`Viewer`] at the player's place does. Generated columns that are not loaded are read from the store.
///
/// A client receives only what its viewer sees: columns within the viewer's generation radius, and four more. The viewer is
/// on the peer's own entity unless [`with_viewer`](Self::with_viewer) names another one; an [untied](Self::untied) peer has
/// none. Requests for columns further out are answered when the viewer comes near.
///
/// A client may edit blocks if [`SyncLimits::edits_per_second`] is not 0. Each edit is then a
/// [`ClientEdit`](super::ClientEdit), which observers of the game may refuse; with an [actor](Self::with_actor), and if the game has registered
/// the action `SetBlock`, it is an action of that entity instead.
///
/// A client that sends without end and never reads takes no more memory than [`SyncLimits::chunks`] allows and a few hundred
/// KiB: no more lookups are made for it, and no more messages.
///
/// ```
/// # use bevy_terrane::prelude::*;
/// # use bevy_terrane::view::ChunkSyncPeer;
/// # struct Connection;
/// # impl Connection { fn received(&mut self) -> Vec<Vec<u8>> { vec![] } fn send(&mut self, _message: Vec<u8>) {} }
/// # #[derive(Component)] struct Client(Connection);
/// fn serve(mut clients: Query<(&mut Client, &mut ChunkSyncPeer)>) {
///     for (mut client, mut peer) in &mut clients {
///         for message in client.0.received() {
///             if let Err(error) = peer.receive(&message) {
///                 warn!("a client sent an invalid message: {error}");
///             }
///         }
///         for message in peer.take_messages() {
///             client.0.send(message);
///         }
///     }
/// }
/// # bevy::ecs::system::assert_is_system(serve);
/// ```
#[derive(Component, Debug, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(from_reflect = false)]
#[reflect(Component)]
pub struct ChunkSyncPeer {
    #[reflect(ignore)]
    dimension: DimensionId,
    #[reflect(ignore)]
    limits: SyncLimits,
    #[reflect(ignore)]
    tie: Tie,
    #[reflect(ignore)]
    port: ClientPort,
    /// The way to the sync thread, once it knows the client.
    #[reflect(ignore)]
    hub: Option<Sender<ToHub>>,
    /// What the sync thread knows: the limits, and what the client sees.
    #[reflect(ignore)]
    known: Option<SyncLimits>,
    #[reflect(ignore)]
    seen: Option<(Sight, Option<ChunkPos>, Option<Uuid>)>,
    /// The client's edits on their way to regions, by the numbers of the main world.
    #[reflect(ignore)]
    edits: FxHashMap<u64, (u64, ChunkPos)>,
    /// The entity that acts for the client.
    #[reflect(ignore)]
    actor: Option<Uuid>,
    /// The session of the actor; `None` until it is in the world.
    #[reflect(ignore)]
    session: Option<u64>,
    /// What the client was told of its actor.
    #[reflect(ignore)]
    told: FxHashMap<&'static str, Vec<u8>>,
    #[reflect(ignore)]
    told_block: Option<BlockPos>,
    /// `true` if the actor has changed since.
    #[reflect(ignore)]
    owes_state: bool,
    /// The client's actions on their way to regions, by their numbers here.
    #[reflect(ignore)]
    actions: FxHashMap<u64, u64>,
    /// The client's actions that were done and are not durable, by their numbers here.
    #[reflect(ignore)]
    done: BTreeMap<u64, u64>,
    /// The last step of the client's body that was passed on.
    #[reflect(ignore)]
    last_step: u32,
}

/// The actions of a client that are not durable and are remembered, at most.
const MOST_DONE: usize = 4_096;
/// The news of its actor that wait for a client, at most, without those of its actions. The newest state comes once it reads again.
const MOST_NEWS: usize = 32;

/// Limits what a client may receive.
#[derive(Clone, Copy, Debug)]
enum Tie {
    Own,
    Viewer(Entity),
    Untied,
}

impl ChunkSyncPeer {
    /// A client of this dimension, around the [`Viewer`] of the peer's own entity.
    pub fn new(dimension: DimensionId) -> Self {
        Self {
            dimension,
            limits: default(),
            tie: Tie::Own,
            port: ClientPort::new(),
            hub: None,
            known: None,
            seen: None,
            edits: default(),
            actor: None,
            session: None,
            told: default(),
            told_block: None,
            owes_state: false,
            actions: default(),
            done: default(),
            last_step: 0,
        }
    }

    /// Lets the client act for the entity with this stable id, such as its player. The entity has an
    /// [`Actor`](crate::simulation::Actor). The client gets a mirror of it, with its replicated components, and its
    /// [`SetBlock`](crate::view::SetBlock)s are actions of the entity too if the game has registered that action.
    ///
    /// Who the client is must be known from the connection. The entity's region checks what it does.
    pub fn with_actor(mut self, actor: Uuid) -> Self {
        self.set_actor(Some(actor));
        self
    }

    /// Lets the client act for another entity, or for none.
    pub fn set_actor(&mut self, actor: Option<Uuid>) {
        self.tell_gone();
        self.actor = actor;
    }

    /// The stable id of the entity that acts for the client.
    pub fn actor(&self) -> Option<Uuid> {
        self.actor
    }

    /// Returns `true` if a session of the actor can begin: the client is there, and none has begun.
    pub(super) fn may_begin(&self) -> bool {
        self.session.is_none() && self.hub.is_some()
    }

    /// Returns `true` if the client is to be told the state of its actor: there is news, now or from before, and it has taken in what it was
    /// told last.
    pub(super) fn owes_state(&mut self, has_news: bool) -> bool {
        self.owes_state |= has_news;
        self.session.is_some() && self.port.waiting_news() < MOST_NEWS && mem::take(&mut self.owes_state)
    }

    fn tell_hub(&self, order: impl FnOnce(u64) -> ToHub) {
        if let Some(hub) = &self.hub {
            // The thread ends only with the app.
            let _ = hub.send(order(self.port.life()));
        }
    }

    fn tell(&self, message: &ActorMessage) {
        if self.hub.is_some() {
            self.port.add_waiting_news();
            self.tell_hub(|peer| ToHub::Actor(peer, message.encode()));
        }
    }

    /// Begins a session of the actor.
    pub(super) fn begin(&mut self, session: u64) {
        let Some(actor) = self.actor.filter(|_| self.hub.is_some()) else { return };
        self.session = Some(session);
        (self.told, self.told_block) = Default::default();
        self.owes_state = true;
        self.tell_hub(ToHub::TakeActions);
        self.tell(&ActorMessage::Begins { actor, session });
    }

    /// Tells the client the state of its actor, as far as it has changed.
    pub(super) fn tell_state(
        &mut self,
        (Position { block, offset, .. }, elapsed): (Position, Duration),
        components: Vec<(&'static str, Vec<u8>)>,
    ) {
        if self.session.is_none() {
            return;
        }
        let is_there = |path: &&str| components.iter().any(|(there, _)| there == path);
        let gone: Vec<_> = self.told.extract_if(|path, _| !is_there(path)).map(|(path, _)| (path, None)).collect();
        let news = components.into_iter().filter(|(path, bytes)| self.told.get(path) != Some(bytes));
        let news: Vec<_> = news.collect();
        self.told.extend(news.iter().cloned());
        let changed = news.into_iter().map(|(path, bytes)| (path, Some(bytes))).chain(gone);
        let components: Vec<SentComponent> = changed.map(|(path, bytes)| (path.to_owned(), bytes)).collect();
        if components.is_empty() && self.told_block.replace(block) == Some(block) {
            return;
        }
        self.told_block = Some(block);
        self.tell(&ActorMessage::State { block, offset, elapsed, components });
    }

    /// Tells the client where its body is, after the steps that it has sent.
    pub(super) fn tell_body(&self, body: &SentBody) {
        if self.session.is_some() {
            self.port.send_body(body);
        }
    }

    /// Returns the steps that are new, in their order.
    pub(super) fn new_steps(&mut self, mut steps: Vec<Steer>) -> Vec<Steer> {
        steps.sort_by_key(|step| step.number);
        steps.retain(|step| {
            let last = self.last_step;
            self.last_step = last.max(step.number);
            step.number == 0 || step.number > last
        });
        steps
    }

    /// Tells the client that its actor is gone.
    pub(super) fn tell_gone(&mut self) {
        if self.session.take().is_some() {
            self.tell(&ActorMessage::Gone);
        }
    }

    /// Tells the client that one of its actions is durable or lost.
    pub(super) fn tell_settled(&mut self, action: ActionId, is_durable: bool) {
        let Some(id) = self.done.remove(&action.0) else { return };
        self.tell(&if is_durable { ActorMessage::Durable(vec![id]) } else { ActorMessage::Lost(vec![id]) });
    }

    /// Notes that an action of the client is on its way to its region, as an order with this number, or why it is refused.
    pub(super) fn note_action(&mut self, id: u64, order: Result<u64, Refusal>) {
        match order {
            Ok(number) => _ = self.actions.insert(number, id),
            Err(refusal) => self.refuse_action(id, refusal),
        }
    }

    fn refuse_action(&mut self, id: u64, refusal: Refusal) {
        self.tell(&ActorMessage::Refused(id, refusal));
        self.tell_hub(|peer| ToHub::ActionDecided(peer, id, None));
    }

    /// Tells the client what has become of an action.
    fn tell_decided(&mut self, decided: &DecidedAction) {
        let Some(id) = self.actions.remove(&decided.id) else { return };
        match &decided.result {
            Ok((_, chunks)) => {
                if self.done.len() >= MOST_DONE {
                    self.done.pop_first();
                }
                self.done.insert(decided.id, id);
                self.tell_hub(|peer| ToHub::ActionDecided(peer, id, Some(chunks.clone())));
            }
            Err(refusal) => self.refuse_action(id, refusal.clone()),
        }
    }

    /// The session in which the client acts.
    pub(super) fn session(&self) -> Option<u64> {
        self.session
    }

    /// Sends the client what this entity of the main world sees. The entity has a [`Viewer`], or is the
    /// [`Mirror`](crate::view::Mirror) of an entity that has one in a region. Around a mirror the limits set the radius.
    pub fn with_viewer(mut self, viewer: Entity) -> Self {
        self.tie = Tie::Viewer(viewer);
        self
    }

    /// Sends the client generated columns wherever it looks, for games whose clients may see the whole world.
    pub fn untied(mut self) -> Self {
        self.tie = Tie::Untied;
        self
    }

    /// Sets the limits of the client's requests, and the bytes per second that it is sent.
    pub fn with_limits(mut self, limits: SyncLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The client's dimension.
    pub fn dimension(&self) -> DimensionId {
        self.dimension
    }

    /// Takes a message of the client.
    ///
    /// # Errors
    /// As for [`ClientPort::receive`].
    pub fn receive(&mut self, message: &[u8]) -> Result<(), SyncError> {
        self.port.receive(message)
    }

    /// The messages for the client, in order. While more than 32 of them or 16 KiB are not taken, no more are made, so a game leaves them
    /// here while its client does not read.
    pub fn take_messages(&mut self) -> Vec<Vec<u8>> {
        self.port.take_messages()
    }

    /// The messages and packets of the client, for a transport that runs beside the frames.
    pub fn port(&self) -> &ClientPort {
        &self.port
    }

    /// The entity that sees for the client; `None` if the client sees everything.
    pub(super) fn viewer(&self, own: Entity) -> Option<Entity> {
        match self.tie {
            Tie::Own => Some(own),
            Tie::Viewer(viewer) => Some(viewer),
            Tie::Untied => None,
        }
    }

    pub(super) fn edit_reach(&self) -> f32 {
        self.limits.edit_reach as f32
    }

    /// Notes the number under which an edit was sent to its region; `None` if it is refused.
    pub(super) fn note_edit(&mut self, edit: &SyncEdit, number: Option<u64>) {
        let chunk = edit.position.chunk();
        match number {
            Some(number) => _ = self.edits.insert(number, (edit.id, chunk)),
            None => self.tell_hub(|peer| ToHub::EditDecided(peer, edit.id, chunk, false)),
        }
    }

    /// Tells the sync thread what the client may see.
    fn look(&mut self, hub: &Sender<ToHub>, dimension: &Dimension, sight: Sight, center: Option<ChunkPos>) {
        let limits = match sight {
            Sight::Area(area) => within_sight(self.limits, area),
            _ => self.limits,
        };
        // The client gets another first message if the viewer's range changes.
        if sight != Sight::Nothing && self.known.replace(limits) != Some(limits) {
            let greeting = Greeting {
                port: self.port.clone(),
                dimension: self.dimension,
                name: dimension.name().to_owned(),
                chunk_heights: chunk_heights(&dimension.heights()),
                limits,
            };
            if hub.send(ToHub::Greet(Box::new(greeting))).is_err() {
                error_once!("the sync thread has ended, so clients are sent nothing");
            }
            (self.hub, self.seen) = (Some(hub.clone()), None);
        }
        let seen = (sight, center, self.actor);
        if self.hub.is_some() && self.seen.replace(seen) != Some(seen) {
            self.tell_hub(|peer| ToHub::See(peer, sight, center, seen.2));
        }
    }

    /// The work done for the client.
    pub fn progress(&self) -> SyncServerProgress {
        self.port.progress()
    }
}

/// The connection to the sync thread. It is there once there is a client.
#[derive(Resource)]
pub(in crate::view) struct SyncLink {
    hub: Sender<ToHub>,
    told: Receiver<FromHub>,
    /// The sync thread's work, in lockstep.
    inline: Option<SyncCell<Hub>>,
    /// The entities of clients by the numbers of their ports.
    peers: FxHashMap<u64, Entity>,
    /// What the sync thread has told and is yet to be done.
    wishes: Vec<FromHub>,
    questions: Vec<AskChunks>,
    /// What has changed and the sync thread is not told of yet: chunks before the first change and after the last one, and entities.
    chunks: BTreeMap<(DimensionId, ChunkPos), (Arc<Chunk>, Arc<Chunk>)>,
    entities: BTreeMap<Uuid, EntityChange>,
}

/// While the sync thread is so many orders behind, it is told of no more changes. Later ones replace earlier ones meanwhile.
const MOST_ORDERS: usize = 1 << 12;

impl SyncLink {
    fn tell_of_changes(&mut self, chunks: Vec<ChangedChunk>, entities: Vec<EntityChange>) {
        for (dimension, chunk, before, after) in chunks {
            let (_, newest) = self.chunks.entry((dimension, chunk)).or_insert_with(|| (before, Arc::default()));
            *newest = after;
        }
        for change in entities {
            match self.entities.get_mut(&change.id) {
                Some(known) => known.replace(change),
                None => _ = self.entities.insert(change.id, change),
            }
        }
        if self.hub.len() >= MOST_ORDERS {
            return;
        }
        if !self.chunks.is_empty() {
            let changed = mem::take(&mut self.chunks)
                .into_iter()
                .map(|((dimension, chunk), (before, after))| (dimension, chunk, before, after));
            let _ = self.hub.send(ToHub::Changed(changed.collect()));
        }
        if !self.entities.is_empty() {
            let _ = self.hub.send(ToHub::Entities(mem::take(&mut self.entities).into_values().collect()));
        }
    }

    fn run_inline(&mut self, is_tick: bool) {
        if let Some(hub) = &mut self.inline {
            hub.get().run_inline(is_tick);
        }
        for told in self.told.try_iter() {
            match told {
                FromHub::Ask(request, dimension, chunks) => {
                    self.questions.push(AskChunks { request, dimension, chunks });
                }
                wish => self.wishes.push(wish),
            }
        }
    }

    /// What clients wish, each with the client's entity.
    pub(super) fn take_wishes(&mut self) -> Vec<(Entity, FromHub)> {
        self.run_inline(false);
        let peers = &self.peers;
        let entity = |wish: FromHub| {
            let (FromHub::Wish(peer, ..)
            | FromHub::TooMany(peer, _)
            | FromHub::Steps(peer, _)
            | FromHub::Ask(peer, ..)) = &wish;
            Some((*peers.get(peer)?, wish))
        };
        mem::take(&mut self.wishes).into_iter().filter_map(entity).collect()
    }
}

/// Starts the sync thread with the first client.
pub(in crate::view) fn start_hub(world: &mut World, peers: &mut QueryState<(), With<ChunkSyncPeer>>) {
    if world.contains_resource::<SyncLink>() || peers.iter(world).next().is_none() {
        return;
    }
    let (Some(blocks), Some(components)) = (world.get_resource::<BlockTypes>(), world.get_resource::<Components>())
    else {
        return;
    };
    let (blocks, components) = (blocks.0.clone(), components.0.clone());
    let types = components.mirrored.types_for_all().map(str::to_owned).collect();
    let ((hub, orders), (to_main, told)) = (unbounded(), unbounded());
    let work = Hub::new(blocks, types, orders, to_main);
    let mut inline = None;
    if world.resource::<MainTicks>().is_lockstep {
        inline = Some(SyncCell::new(work));
    } else if let Err(error) = std::thread::Builder::new().name("terrane sync".into()).spawn(move || work.run()) {
        error_once!("clients are sent nothing: {error}");
    }
    // Those that are there already.
    let mut mirrors = world.query::<(EntityRef, &Mirror)>();
    let entities = mirrors.iter(world).filter_map(|(entity, mirror)| {
        let all = components.mirrored.copy(entity).into_iter().map(|(number, value)| (number, Some(value))).collect();
        entity_change(&components, entity, mirror.id, Some(mirror.current), components.mirrored.encode_for_all(&all))
    });
    let _ = hub.send(ToHub::Entities(entities.collect()));
    let (peers, wishes, questions, chunks, entities) = default();
    world.resource_mut::<FrameNews>().has_clients = true;
    world.insert_resource(SyncLink { hub, told, inline, peers, wishes, questions, chunks, entities });
}

/// Hands answers to the sync thread.
pub(in crate::view) fn apply_answers(link: Option<Res<SyncLink>>, mut answers: MessageReader<ChunksAnswer>) {
    let Some(link) = link else { return };
    for ChunksAnswer { request, chunks, .. } in answers.read() {
        // A closed dimension cannot answer.
        let is_open = !chunks.iter().any(|(_, state)| matches!(state, Err(AskError::NotOpen)));
        let found = |(chunk, state): &(ChunkPos, Result<Option<ChunkState>, AskError>)| {
            let state = state.as_ref().map_err(|error| warn_once!("a chunk cannot be announced to a client: {error}"));
            (*chunk, state.map(|state| state.as_ref().map(|state| state.bytes.clone())))
        };
        let found = is_open.then(|| chunks.iter().map(found).collect());
        let _ = link.hub.send(ToHub::Found(*request, found));
    }
}

/// Tells the sync thread what has changed, and what became of edits.
pub(in crate::view) fn apply_changes(
    mut peers: Query<&mut ChunkSyncPeer>,
    mut changed: MessageReader<ColumnChanged>,
    mut news: ResMut<FrameNews>,
    link: Option<ResMut<SyncLink>>,
) {
    let Some(mut link) = link else { return changed.clear() };
    let columns: FxHashSet<(DimensionId, ColumnPos)> = changed
        .read()
        // Changed chunks are among the news, and clients compute light themselves.
        .filter(|changed| !matches!(changed.change, ColumnChange::Chunk(_) | ColumnChange::Light(_)))
        .map(|ColumnChanged { dimension, column, .. }| (*dimension, *column))
        .collect();
    if !columns.is_empty() {
        let _ = link.hub.send(ToHub::Columns(columns.into_iter().collect()));
    }
    let FrameNews { edits, actions, chunks, entities, .. } = &mut *news;
    link.tell_of_changes(mem::take(chunks), mem::take(entities));
    if edits.is_empty() && actions.is_empty() {
        return;
    }
    for mut peer in &mut peers {
        let peer = peer.bypass_change_detection();
        // Most clients have none.
        let own = if peer.edits.is_empty() { &[][..] } else { &edits[..] };
        for edit in own {
            if let Some((id, chunk)) = peer.edits.remove(&edit.number) {
                peer.tell_hub(|peer| ToHub::EditDecided(peer, id, chunk, edit.is_accepted));
            }
        }
        if !peer.actions.is_empty() {
            actions.iter().for_each(|decided| peer.tell_decided(decided));
        }
    }
}

/// The area that the client of `peer` may receive around its viewer; `None` if the dimension has no such viewer.
fn sight(
    viewer: Result<(Option<&Viewer>, PlaceItem), QueryEntityError>,
    peer: &ChunkSyncPeer,
    dimension: &Dimension,
) -> Option<SyncArea> {
    let (viewer, place) = viewer.ok()?;
    let center = place.position_in(viewer, peer.dimension)?.block.chunk();
    let heights = dimension.heights();
    let is_sparse = heights.end.abs_diff(heights.start) > MAX_WHOLE_HEIGHT as u64;
    let (radius, vertical) = match viewer.map(Viewer::radii) {
        Some(radii) => (radii.generation, if is_sparse { radii.vertical } else { u32::MAX }),
        None => (peer.limits.radius, if is_sparse { peer.limits.vertical } else { u32::MAX }),
    };
    Some(SyncArea { center, radius, vertical }.grown(SLACK))
}

/// Limits the client's requests to what its viewer sees, so that all of them can be answered.
fn within_sight(limits: SyncLimits, SyncArea { radius, vertical, .. }: SyncArea) -> SyncLimits {
    let reach = |most: u32, seen: u32| most.min(seen - SLACK + MARGIN);
    SyncLimits { radius: reach(limits.radius, radius), vertical: reach(limits.vertical, vertical), ..limits }
}

/// Tells the sync thread what clients may see, and asks for the chunks that they want.
pub(in crate::view) fn send(
    mut peers: Query<(Entity, &mut ChunkSyncPeer)>,
    viewers: Query<(Option<&Viewer>, Place)>,
    dimensions: Query<(&Dimension, Ref<DimensionOpen>)>,
    link: Option<ResMut<SyncLink>>,
    mut asks: MessageWriter<AskChunks>,
) {
    let Some(mut link) = link else { return };
    let link = &mut *link;
    let mut gone = mem::take(&mut link.peers);
    for (entity, peer) in &mut peers {
        let peer = peer.into_inner();
        gone.remove(&peer.port.life());
        link.peers.insert(peer.port.life(), entity);
        let its = |(_, open): &(&Dimension, Ref<DimensionOpen>)| open.id == peer.dimension;
        let Some((dimension, open)) = dimensions.iter().find(its) else { continue };
        if open.is_added() {
            // Its heights may be others now.
            peer.known = None;
        }
        let (sight, center) = match peer.viewer(entity) {
            None => (Sight::All, None),
            Some(viewer) => match sight(viewers.get(viewer), peer, dimension) {
                Some(area) => (Sight::Area(area), Some(area.center)),
                None => {
                    warn_once!("the client of {entity} receives nothing: its viewer {viewer} is not in the dimension");
                    (Sight::Nothing, None)
                }
            },
        };
        peer.look(&link.hub, dimension, sight, center);
    }
    gone.into_keys().for_each(|life| _ = link.hub.send(ToHub::Gone(life)));
    link.run_inline(true);
    asks.write_batch(link.questions.drain(..));
}

/// Sends the questions together with the published chunks, since the store may not have those yet.
pub(in crate::view) fn ask(link: Res<MainLink>, mut asks: MessageReader<AskChunks>, published: Res<PublishedColumns>) {
    for ask in asks.read() {
        let newest = |chunk: &ChunkPos| {
            let column = published.confirmed(ask.dimension, chunk.column())?;
            let air = || Arc::new(Chunk::uniform(BlockId::AIR));
            column.is_loaded(chunk.y).then(|| column.chunk(chunk.y).cloned().unwrap_or_else(air))
        };
        let published: Vec<_> = ask.chunks.iter().map(newest).collect();
        link.request(ask_chunks, (ask.clone(), published));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Promise, multiplayer: A client receives the chunks that its viewer sees, and no others.
    #[test]
    fn a_client_may_ask_for_as_much_as_its_viewer_sees_sideways_and_up_and_down() {
        let limits = SyncLimits { radius: 32, vertical: 16, ..SyncLimits::default() };
        let most = |sight| {
            let SyncLimits { radius, vertical, .. } = within_sight(limits, sight);
            (radius, vertical)
        };
        let sight = |radius, vertical| {
            let center = ChunkPos::default();
            SyncArea { center, radius, vertical }.grown(SLACK)
        };
        // A client keeps chunks up to two columns beyond its radius.
        assert_eq!(most(sight(8, 4)), (10, 6));
        assert_eq!(most(sight(100, u32::MAX)), (32, 16));
    }
}
