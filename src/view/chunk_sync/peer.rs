//! The server's side: one component a client.

use crate::block::BlockId;
use crate::chunk::Chunk;
use crate::chunk_sync::{KnownVersion, SyncArea, SyncError, SyncLimits, SyncServer, SyncServerProgress};
use crate::coordinator::{AskChunks, AskError, ChunkState, ChunksAnswer, MAX_WHOLE_HEIGHT, MainLink, requests};
use crate::simulation::{BlockTypes, Viewer};
use crate::space::{ChunkPos, DimensionId, chunk_heights};
use crate::view::viewers::{Place, PlaceItem};
use crate::view::{ColumnChange, ColumnChanged, Dimension, DimensionOpen, PublishedColumns};
use bevy::ecs::query::QueryEntityError;
use bevy::prelude::*;
use rustc_hash::FxHashSet;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Chunks of one client that are looked up at a time.
const MAX_LOOKED_UP: usize = 256;
/// An answer that has not come by now was dropped.
const PATIENCE: Duration = Duration::from_secs(10);
/// Columns that a client keeps beyond its radius, so that a step back asks for nothing again.
const MARGIN: u32 = 2;
/// Columns beyond its viewer's reach that a client may be told of: the two are not always in the same place.
const SLACK: u32 = 4;

/// A connected client of a server, which is told of the chunks around it: what it does not have, nearest first, within so many
/// bytes a second, and whatever changes later.
///
/// It has no transport: the game hands it what the client sent ([`receive`](Self::receive)), and sends to the client what is to
/// be sent ([`take_messages`](Self::take_messages)), reliably and in order. When the client is gone, despawn it. It loads no
/// ground: that is what a [`Viewer`] where the player is does. Ground that is generated and not loaded is told from the store.
///
/// Whatever a client asks for, it is told only of what its viewer sees: of columns within the viewer's generation radius, and
/// four more. The viewer is the peer's own entity unless [`with_viewer`](Self::with_viewer) names another one; a peer that is
/// [untied](Self::untied) has none. Questions about ground beyond that are answered when the viewer comes near.
///
/// A client that sends without end and never reads takes no more memory than [`SyncLimits::chunks`] allows, and some hundred
/// KiB: nothing more is looked up for it, and no more messages are made.
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
///                 warn!("a client sent nonsense: {error}");
///             }
///         }
///         for message in peer.take_messages() {
///             client.0.send(message);
///         }
///     }
/// }
/// # bevy::ecs::system::assert_is_system(serve);
/// ```
#[derive(Component, Debug)]
pub struct ChunkSyncPeer {
    dimension: Entity,
    limits: SyncLimits,
    tie: Tie,
    server: Option<SyncServer>,
    /// The dimension that it is for, and the limits that it has.
    known: Option<(DimensionId, SyncLimits)>,
    outgoing: Vec<Vec<u8>>,
    began: Instant,
    asked: Option<Instant>,
}

/// Whose sight bounds what a client is told of.
#[derive(Clone, Copy, Debug)]
enum Tie {
    Own,
    Viewer(Entity),
    Untied,
}

impl ChunkSyncPeer {
    /// A client that is to be told of this dimension, where the [`Viewer`] of the peer's own entity is.
    pub fn new(dimension: Entity) -> Self {
        let (limits, outgoing, tie) = (SyncLimits::default(), Vec::new(), Tie::Own);
        Self { dimension, limits, tie, server: None, known: None, outgoing, began: Instant::now(), asked: None }
    }

    /// The client is told of what this entity of the main world sees. It has a [`Viewer`], or is the
    /// [`Mirror`](crate::view::Mirror) of an entity that has one in a region: around a mirror the limits say how far.
    pub fn with_viewer(mut self, viewer: Entity) -> Self {
        self.tie = Tie::Viewer(viewer);
        self
    }

    /// The client is told of ground wherever it looks, as far as it is generated: for games whose clients may see the whole
    /// world.
    pub fn untied(mut self) -> Self {
        self.tie = Tie::Untied;
        self
    }

    /// What it may ask for, and how many bytes a second it is sent.
    pub fn with_limits(mut self, limits: SyncLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The dimension's entity.
    pub fn dimension(&self) -> Entity {
        self.dimension
    }

    /// Takes in a message of the client.
    ///
    /// # Errors
    /// A message that is none, or that comes before the client was sent anything; nothing changes then. A client that sends such
    /// a thing is another program.
    pub fn receive(&mut self, message: &[u8]) -> Result<(), SyncError> {
        self.server.as_mut().ok_or(SyncError::Early)?.receive(message)
    }

    /// What is to be sent to the client, in this order. While it is not taken, nothing more is made: a game whose client does not
    /// read leaves it here.
    pub fn take_messages(&mut self) -> Vec<Vec<u8>> {
        mem::take(&mut self.outgoing)
    }

    /// What was done for the client.
    pub fn progress(&self) -> SyncServerProgress {
        self.server.as_ref().map(SyncServer::progress).unwrap_or_default()
    }
}

/// Takes in answers, and what changed.
pub(in crate::view) fn hear(
    mut peers: Query<&mut ChunkSyncPeer>,
    mut answers: MessageReader<ChunksAnswer>,
    mut changed: MessageReader<ColumnChanged>,
) {
    for ChunksAnswer { asker, chunks, .. } in answers.read() {
        // While the dimension is closed nobody can tell.
        let is_open = !chunks.iter().any(|(_, state)| matches!(state, Err(AskError::NotOpen)));
        let Ok(mut peer) = peers.get_mut(*asker) else { continue };
        let peer = &mut *peer;
        let Some(server) = peer.server.as_mut().filter(|_| is_open) else { continue };
        peer.asked = None;
        for (chunk, state) in chunks {
            let found = state.as_ref().map_err(|error| warn_once!("a client is not told of a chunk: {error}"));
            let found = found.map(|state| {
                let ChunkState { version, checksum, bytes, .. } = state.as_ref()?;
                let known = KnownVersion { version: *version, checksum: *checksum };
                Some((known, bytes.clone()))
            });
            server.found(*chunk, found);
        }
    }
    // What changed just before its column was unloaded is told by that alone.
    let (mut columns, mut chunks) = (FxHashSet::default(), FxHashSet::default());
    for ColumnChanged { dimension, column, change } in changed.read() {
        match change {
            ColumnChange::Chunk(y) => chunks.insert((*dimension, column.chunk(*y))),
            _ => columns.insert((*dimension, *column)),
        };
    }
    if columns.is_empty() && chunks.is_empty() {
        return;
    }
    for mut peer in &mut peers {
        let peer = &mut *peer;
        let (Some((id, _)), Some(server)) = (peer.known, &mut peer.server) else { continue };
        columns.iter().filter(|(of, _)| *of == id).for_each(|(_, column)| server.column_changed(*column));
        chunks.iter().filter(|(of, _)| *of == id).for_each(|(_, chunk)| server.changed(*chunk));
    }
}

/// What the client of `peer` may be told of around its viewer; `None` if there is no such viewer in the dimension.
fn sight(
    viewer: Result<(Option<&Viewer>, PlaceItem), QueryEntityError>,
    peer: &ChunkSyncPeer,
    (dimension, id): (&Dimension, DimensionId),
) -> Option<SyncArea> {
    let (viewer, place) = viewer.ok()?;
    let is_here = match viewer.and_then(Viewer::dimension) {
        Some(dimension) => dimension == peer.dimension,
        None => place.dimension().is_none_or(|of| of == id),
    };
    let center = place.position().filter(|_| is_here)?.block.chunk();
    let heights = dimension.heights();
    let is_sparse = heights.end.abs_diff(heights.start) > MAX_WHOLE_HEIGHT as u64;
    let (radius, vertical) = match viewer.map(Viewer::radii) {
        Some(radii) => (radii.generation, if is_sparse { radii.vertical } else { u32::MAX }),
        None => (peer.limits.radius, if is_sparse { peer.limits.vertical } else { u32::MAX }),
    };
    Some(SyncArea { center, radius, vertical }.grown(SLACK))
}

/// The limits within which a client may ask for no more than its viewer sees, so that all its questions are answered.
fn within_sight(limits: SyncLimits, sight: Option<SyncArea>) -> SyncLimits {
    let Some(SyncArea { radius, vertical, .. }) = sight else { return limits };
    let reach = |most: u32, seen: u32| most.min(seen - SLACK + MARGIN);
    SyncLimits { radius: reach(limits.radius, radius), vertical: reach(limits.vertical, vertical), ..limits }
}

/// Asks for what clients want to know, and makes their messages.
pub(in crate::view) fn send(
    mut peers: Query<(Entity, &mut ChunkSyncPeer)>,
    viewers: Query<(Option<&Viewer>, Place)>,
    dimensions: Query<(Ref<Dimension>, &DimensionOpen)>,
    blocks: Option<Res<BlockTypes>>,
    mut asks: MessageWriter<AskChunks>,
) {
    let Some(blocks) = blocks else { return };
    for (entity, peer) in &mut peers {
        let peer = peer.into_inner();
        let Ok((dimension, open)) = dimensions.get(peer.dimension) else { continue };
        if dimension.is_added() {
            peer.known = None;
        }
        let sight = match peer.tie {
            Tie::Untied => None,
            Tie::Own | Tie::Viewer(_) => {
                let viewer = if let Tie::Viewer(viewer) = peer.tie { viewer } else { entity };
                let sight = sight(viewers.get(viewer), peer, (&*dimension, open.id));
                if sight.is_none() {
                    warn_once!(
                        "the client of {entity} is told of nothing: {viewer}, its viewer, is not in the dimension"
                    );
                    continue;
                }
                sight
            }
        };
        let limits = within_sight(peer.limits, sight);
        // A viewer that sees farther or less far than before begins with another first message; but not while chunks are looked
        // up, since the next server would take that answer for its own.
        let is_looking = peer.asked.is_some();
        if peer.known.is_none_or(|(id, known)| id != open.id || (known != limits && !is_looking)) {
            (peer.known, peer.server, peer.asked) = (Some((open.id, limits)), None, None);
        }
        let server = peer.server.get_or_insert_with(|| {
            let chunk_heights = chunk_heights(&dimension.heights());
            let records = (blocks.0.block_records().collect(), blocks.0.component_records().cloned().collect());
            SyncServer::new(dimension.name(), chunk_heights, records, limits)
        });
        server.see(sight);
        if peer.outgoing.is_empty() {
            peer.outgoing = server.messages(peer.began.elapsed());
        }
        match peer.asked {
            Some(asked) if asked.elapsed() < PATIENCE => continue,
            Some(_) => server.lost(),
            None => {}
        }
        let chunks = server.wanted(MAX_LOOKED_UP);
        peer.asked = (!chunks.is_empty()).then(Instant::now);
        if !chunks.is_empty() {
            asks.write(AskChunks { asker: entity, dimension: peer.dimension, chunks });
        }
    }
}

/// What is published goes along: the store may not have it yet.
pub(in crate::view) fn ask(
    link: Res<MainLink>,
    mut asks: MessageReader<AskChunks>,
    dimensions: Query<&DimensionOpen>,
    published: Res<PublishedColumns>,
) {
    for ask in asks.read() {
        let dimension = dimensions.get(ask.dimension).ok().map(|open| open.id);
        let newest = |chunk: &ChunkPos| {
            let column = published.column(dimension?, chunk.column())?;
            let air = || Arc::new(Chunk::uniform(BlockId::AIR));
            column.is_loaded(chunk.y).then(|| column.chunk(chunk.y).cloned().unwrap_or_else(air))
        };
        let published: Vec<_> = ask.chunks.iter().map(newest).collect();
        link.request(requests::ask_chunks, (ask.clone(), published));
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
        // A client keeps what is two columns farther away than it looks.
        assert_eq!(most(sight(8, 4)), (10, 6));
        assert_eq!(most(sight(100, u32::MAX)), (32, 16));
        assert_eq!(most(None), (32, 16));
    }
}
