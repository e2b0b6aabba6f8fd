//! The server's side: one component per client.

use super::actors::ActorMessage;
use crate::block::{BlockId, BlockRegistry};
use crate::chunk::Chunk;
use crate::chunk_sync::{
    FoundChunk, KnownVersion, SyncArea, SyncEdit, SyncError, SyncLimits, SyncServer, SyncServerProgress, SyncWish,
};
use crate::coordinator::answers::ask_chunks;
use crate::coordinator::messages::{ActionId, AskChunks, AskError, ChunkState, ChunksAnswer};
use crate::coordinator::{MAX_WHOLE_HEIGHT, MainLink};
use crate::simulation::{BlockTypes, DecidedAction, Position, Refusal, Viewer};
use crate::space::{BlockPos, ChunkPos, DimensionId, chunk_heights};
use crate::view::receive::DecidedEdits;
use crate::view::viewers::{Place, PlaceItem};
use crate::view::{ColumnChange, ColumnChanged, Dimension, DimensionOpen, PublishedColumns};
use bevy::ecs::query::QueryEntityError;
use bevy::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
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
/// The columns that a client keeps beyond its radius, so that a step back requests nothing again.
const MARGIN: u32 = 2;
/// The columns beyond its viewer's reach that a client may receive, since the two are not always in the same place.
const SLACK: u32 = 4;

/// A connected client of a server. It receives the chunks around it that it lacks, nearest first and limited in bytes per
/// second, and all later changes.
///
/// The component has no transport: the game passes it the client's messages ([`receive`](Self::receive)), and sends its
/// messages to the client ([`take_messages`](Self::take_messages)), reliably and in order. Despawn it when the client is gone.
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
    server: Option<SyncServer>,
    /// The present limits of the client.
    #[reflect(ignore)]
    known: Option<SyncLimits>,
    #[reflect(ignore)]
    outgoing: Vec<Vec<u8>>,
    #[reflect(ignore)]
    began: Instant,
    /// The number of the open question, and its time.
    #[reflect(ignore)]
    asked: Option<(u64, Instant)>,
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
    told: FxHashMap<String, Vec<u8>>,
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
        let (limits, outgoing, edits) = Default::default();
        let (tie, began) = (Tie::Own, Instant::now());
        let (actor, session, told, told_block, actions, done) = Default::default();
        Self {
            dimension,
            limits,
            tie,
            server: None,
            known: None,
            outgoing,
            began,
            asked: None,
            edits,
            actor,
            session,
            told,
            told_block,
            owes_state: false,
            actions,
            done,
        }
    }

    /// Lets the client act for the entity with this stable id, such as its player. The entity has an
    /// [`Actor`](crate::simulation::Actor). The client gets a mirror of it, with its saved and mirrored components, and its
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
        self.session.is_none() && self.server.is_some()
    }

    /// Returns `true` if the client is to be told the state of its actor: there is news, now or from before, and it has taken in what it was
    /// told last.
    pub(super) fn owes_state(&mut self, has_news: bool) -> bool {
        self.owes_state |= has_news;
        let is_listening = self.server.as_ref().is_some_and(|server| server.waiting_actor_news() < MOST_NEWS);
        self.session.is_some() && is_listening && mem::take(&mut self.owes_state)
    }

    /// Begins a session of the actor.
    pub(super) fn begin(&mut self, session: u64) {
        let (Some(actor), Some(server)) = (self.actor, &mut self.server) else { return };
        self.session = Some(session);
        (self.told, self.told_block) = Default::default();
        self.owes_state = true;
        server.take_actions();
        server.tell_of_actor(ActorMessage::Begins { actor, session }.encode());
    }

    /// Tells the client the state of its actor, as far as it has changed.
    pub(super) fn tell_state(
        &mut self,
        (Position { block, offset, .. }, elapsed): (Position, Duration),
        mut components: Vec<(String, Vec<u8>)>,
    ) {
        let (Some(_), Some(server)) = (self.session, &mut self.server) else { return };
        components.retain(|(name, bytes)| self.told.get(name) != Some(bytes));
        if components.is_empty() && self.told_block.replace(block) == Some(block) {
            return;
        }
        self.told_block = Some(block);
        self.told.extend(components.iter().cloned());
        server.tell_of_actor(ActorMessage::State { block, offset, elapsed, components }.encode());
    }

    /// Tells the client that its actor is gone.
    pub(super) fn tell_gone(&mut self) {
        if let (Some(_), Some(server)) = (self.session.take(), &mut self.server) {
            server.tell_of_actor(ActorMessage::Gone.encode());
        }
    }

    /// Tells the client that one of its actions is durable or lost.
    pub(super) fn tell_settled(&mut self, action: ActionId, is_durable: bool) {
        let (Some(id), Some(server)) = (self.done.remove(&action.0), &mut self.server) else { return };
        let message = if is_durable { ActorMessage::Durable(vec![id]) } else { ActorMessage::Lost(vec![id]) };
        server.tell_of_actor(message.encode());
    }

    /// Notes that an action of the client is on its way to its region, as an order with this number, or why it is refused.
    pub(super) fn note_action(&mut self, id: u64, order: Result<u64, Refusal>) {
        match order {
            Ok(number) => _ = self.actions.insert(number, id),
            Err(refusal) => self.refuse_action(id, refusal),
        }
    }

    fn refuse_action(&mut self, id: u64, refusal: Refusal) {
        if let Some(server) = &mut self.server {
            server.tell_of_actor(ActorMessage::Refused(id, refusal).encode());
            server.action_decided(id, None);
        }
    }

    /// Tells the client what has become of an action.
    fn tell_decided(&mut self, decided: &DecidedAction) {
        let Some(id) = self.actions.remove(&decided.id) else { return };
        match (&decided.result, &mut self.server) {
            (Ok((_, chunks)), Some(server)) => {
                if self.done.len() >= MOST_DONE {
                    self.done.pop_first();
                }
                self.done.insert(decided.id, id);
                server.action_decided(id, Some(chunks));
            }
            (Err(refusal), _) => self.refuse_action(id, refusal.clone()),
            (Ok(_), None) => {}
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
    /// Fails without any change if the message is malformed, or comes before the client was sent anything. Such a client is
    /// another program.
    pub fn receive(&mut self, message: &[u8]) -> Result<(), SyncError> {
        self.server.as_mut().ok_or(SyncError::Early)?.receive(message)
    }

    /// The messages for the client, in order. While they are not taken, no more are made, so a game leaves them here while its
    /// client does not read.
    pub fn take_messages(&mut self) -> Vec<Vec<u8>> {
        mem::take(&mut self.outgoing)
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

    /// The client's new edits and actions. Actions that are too many are refused at once.
    pub(super) fn take_wishes(&mut self) -> Vec<SyncWish> {
        let Some(server) = &mut self.server else { return Vec::new() };
        let (wishes, excess) = (server.take_wishes(), server.take_excess());
        excess.into_iter().for_each(|id| self.note_action(id, Err(Refusal::TooMany)));
        wishes
    }

    /// Returns `true` if an edit was made on the newest state of its chunk.
    pub(super) fn is_current(&self, edit: &SyncEdit) -> bool {
        self.server.as_ref().is_some_and(|server| server.is_current(edit))
    }

    /// Notes the number under which an edit was sent to its region; `None` if it is refused.
    pub(super) fn note_edit(&mut self, edit: &SyncEdit, number: Option<u64>) {
        let chunk = edit.position.chunk();
        match (number, &mut self.server) {
            (Some(number), _) => _ = self.edits.insert(number, (edit.id, chunk)),
            (None, Some(server)) => server.edit_decided(edit.id, chunk, false),
            (None, None) => {}
        }
    }

    /// Makes messages for a client with this sight, and returns the chunks that are to be looked up for it.
    fn look(&mut self, dimension: &Dimension, sight: Option<SyncArea>, blocks: &BlockRegistry) -> Vec<ChunkPos> {
        let limits = within_sight(self.limits, sight);
        // The client gets another first message if the viewer's range changes.
        let is_known = self.known.replace(limits) == Some(limits);
        let heights = chunk_heights(&dimension.heights());
        let records = || (blocks.block_records().collect(), blocks.component_records().cloned().collect());
        let server = match self.server.take() {
            Some(server) if is_known => server,
            Some(mut server) => {
                server.greet(dimension.name(), heights, records(), limits);
                server
            }
            None => SyncServer::new(dimension.name(), heights, records(), limits),
        };
        let server = self.server.insert(server);
        server.see(sight);
        if self.outgoing.is_empty() {
            self.outgoing = server.messages(self.began.elapsed());
        }
        match self.asked {
            Some((_, asked)) if asked.elapsed() < PATIENCE => return Vec::new(),
            Some(_) => server.lost(),
            None => {}
        }
        self.asked = None;
        server.wanted(MAX_LOOKED_UP)
    }

    /// The work done for the client.
    pub fn progress(&self) -> SyncServerProgress {
        self.server.as_ref().map(SyncServer::progress).unwrap_or_default()
    }
}

/// The questions that have not been answered yet. Clients that want a few chunks in the same frame share one.
#[derive(Resource, Default)]
pub(in crate::view) struct Questions {
    /// Counted down from the largest number, since a game may number its own questions upwards.
    last: u64,
    open: FxHashMap<u64, Question>,
}

struct Question {
    asked: Instant,
    /// The clients, with the chunks that they want.
    wanted: Vec<(Entity, Vec<ChunkPos>)>,
}

impl Questions {
    fn number(&mut self) -> u64 {
        self.last = self.last.wrapping_sub(1);
        self.last
    }

    fn ask(
        &mut self,
        request: u64,
        dimension: DimensionId,
        wanted: Vec<(Entity, Vec<ChunkPos>)>,
        asks: &mut MessageWriter<AskChunks>,
    ) {
        let chunks: BTreeSet<ChunkPos> = wanted.iter().flat_map(|(_, chunks)| chunks).copied().collect();
        self.open.insert(request, Question { asked: Instant::now(), wanted });
        asks.write(AskChunks { request, dimension, chunks: chunks.into_iter().collect() });
    }
}

/// Hands answers to the clients that asked.
pub(in crate::view) fn apply_answers(
    mut peers: Query<&mut ChunkSyncPeer>,
    mut questions: ResMut<Questions>,
    mut answers: MessageReader<ChunksAnswer>,
) {
    for ChunksAnswer { request, chunks, .. } in answers.read() {
        let Some(Question { wanted, .. }) = questions.open.remove(request) else { continue };
        // A closed dimension cannot answer.
        let is_open = !chunks.iter().any(|(_, state)| matches!(state, Err(AskError::NotOpen)));
        let found = |(chunk, state): &(ChunkPos, Result<Option<ChunkState>, AskError>)| {
            let state = state.as_ref().map_err(|error| warn_once!("a chunk cannot be announced to a client: {error}"));
            let found = state.map(|state| {
                let ChunkState { version, checksum, bytes, .. } = state.as_ref()?;
                let known = KnownVersion { version: *version, checksum: *checksum };
                Some(FoundChunk::new(*chunk, known, bytes.clone()))
            });
            (*chunk, found)
        };
        let found: FxHashMap<ChunkPos, _> = chunks.iter().map(found).collect();
        for (entity, wanted) in wanted {
            // The client may be another by now, or have stopped waiting.
            let awaits = |peer: &Mut<ChunkSyncPeer>| peer.asked.is_some_and(|(asked, _)| asked == *request);
            let Some(mut peer) = peers.get_mut(entity).ok().filter(awaits) else { continue };
            peer.asked = None;
            let Some(server) = &mut peer.server else { continue };
            if !is_open {
                server.lost();
                continue;
            }
            for chunk in wanted {
                if let Some(state) = found.get(&chunk) {
                    server.found(chunk, state.clone());
                }
            }
        }
    }
}

/// Tells clients what has changed, and what became of their edits.
pub(in crate::view) fn apply_changes(
    mut peers: Query<&mut ChunkSyncPeer>,
    mut changed: MessageReader<ColumnChanged>,
    decided: Res<DecidedEdits>,
) {
    // A change just before the column was unloaded is reported only by the unloading.
    let (mut columns, mut chunks) = (FxHashSet::default(), FxHashSet::default());
    for ColumnChanged { dimension, column, change } in changed.read() {
        match change {
            ColumnChange::Chunk(y) => chunks.insert((*dimension, column.chunk(*y))),
            // Clients compute light themselves.
            ColumnChange::Light(_) => false,
            _ => columns.insert((*dimension, *column)),
        };
    }
    if columns.is_empty() && chunks.is_empty() && decided.edits.is_empty() && decided.actions.is_empty() {
        return;
    }
    for mut peer in &mut peers {
        let peer = &mut *peer;
        let (id, Some(server)) = (peer.dimension, &mut peer.server) else { continue };
        columns.iter().filter(|(of, _)| *of == id).for_each(|(_, column)| server.column_changed(*column));
        chunks.iter().filter(|(of, _)| *of == id).for_each(|(_, chunk)| server.changed(*chunk));
        // Most clients have none.
        let own = if peer.edits.is_empty() { &[][..] } else { &decided.edits[..] };
        for edit in own {
            if let Some((id, chunk)) = peer.edits.remove(&edit.number) {
                server.edit_decided(id, chunk, edit.is_accepted);
            }
        }
        if !peer.actions.is_empty() {
            decided.actions.iter().for_each(|decided| peer.tell_decided(decided));
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
fn within_sight(limits: SyncLimits, sight: Option<SyncArea>) -> SyncLimits {
    let Some(SyncArea { radius, vertical, .. }) = sight else { return limits };
    let reach = |most: u32, seen: u32| most.min(seen - SLACK + MARGIN);
    SyncLimits { radius: reach(limits.radius, radius), vertical: reach(limits.vertical, vertical), ..limits }
}

/// Looks up the chunks that clients request, and makes their messages.
pub(in crate::view) fn send(
    mut peers: Query<(Entity, &mut ChunkSyncPeer)>,
    viewers: Query<(Option<&Viewer>, Place)>,
    dimensions: Query<(&Dimension, Ref<DimensionOpen>)>,
    blocks: Option<Res<BlockTypes>>,
    mut questions: ResMut<Questions>,
    mut asks: MessageWriter<AskChunks>,
) {
    let Some(blocks) = blocks else { return };
    // The shared question of each dimension that is not asked yet: its number, its chunks and its clients.
    let mut shared: BTreeMap<DimensionId, (u64, FxHashSet<ChunkPos>, Vec<(Entity, Vec<ChunkPos>)>)> = BTreeMap::new();
    for (entity, peer) in &mut peers {
        let peer = peer.into_inner();
        let its = |(_, open): &(&Dimension, Ref<DimensionOpen>)| open.id == peer.dimension;
        let Some((dimension, open)) = dimensions.iter().find(its) else { continue };
        if open.is_added() {
            // Its heights may be others now.
            peer.known = None;
        }
        let sight = match peer.viewer(entity) {
            None => None,
            Some(viewer) => {
                let sight = sight(viewers.get(viewer), peer, dimension);
                if sight.is_none() {
                    warn_once!("the client of {entity} receives nothing: its viewer {viewer} is not in the dimension");
                    continue;
                }
                sight
            }
        };
        let (chunks, dimension) = (peer.look(dimension, sight, &blocks.0), peer.dimension);
        if chunks.is_empty() {
            continue;
        }
        if chunks.len() > MAX_SHARED {
            let request = questions.number();
            peer.asked = Some((request, Instant::now()));
            questions.ask(request, dimension, vec![(entity, chunks)], &mut asks);
            continue;
        }
        let new = || (questions.number(), default(), default());
        let (request, all, wanted) = shared.entry(dimension).or_insert_with(new);
        peer.asked = Some((*request, Instant::now()));
        all.extend(&chunks);
        wanted.push((entity, chunks));
        if all.len() > MAX_SHARED
            && let Some((request, _, wanted)) = shared.remove(&dimension)
        {
            questions.ask(request, dimension, wanted, &mut asks);
        }
    }
    for (dimension, (request, _, wanted)) in shared {
        questions.ask(request, dimension, wanted, &mut asks);
    }
    questions.open.retain(|_, question| question.asked.elapsed() < PATIENCE);
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
            Some(SyncArea { center, radius, vertical }.grown(SLACK))
        };
        // A client keeps chunks up to two columns beyond its radius.
        assert_eq!(most(sight(8, 4)), (10, 6));
        assert_eq!(most(sight(100, u32::MAX)), (32, 16));
        assert_eq!(most(None), (32, 16));
    }
}
