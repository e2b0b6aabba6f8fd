//! Edits of clients, on the server.

use super::ChunkSyncPeer;
use crate::block::BlockId;
use crate::chunk_sync::SyncEdit;
use crate::simulation::SetBlock;
use crate::simulation::{BlockTypes, Viewer};
use crate::view::requests::EditQueue;
use crate::view::viewers::Place;
use bevy::prelude::*;

/// A client asks to set a block, which lies within the reach of its viewer, and within the rate of its
/// [`SyncLimits`](crate::chunk_sync::SyncLimits). The edit is made unless an observer refuses it.
///
/// ```
/// use bevy_terrane::prelude::*;
/// use bevy_terrane::view::ClientEdit;
///
/// #[derive(Component)]
/// struct Spectator;
///
/// /// Add it with `app.add_observer(only_players_build)`.
/// fn only_players_build(mut edit: On<ClientEdit>, spectators: Query<(), With<Spectator>>) {
///     if spectators.contains(edit.peer) {
///         edit.refuse();
///     }
/// }
/// # App::new().add_observer(only_players_build);
/// ```
#[derive(EntityEvent, Clone, Debug)]
pub struct ClientEdit {
    /// The entity with the client's [`ChunkSyncPeer`].
    #[event_target]
    pub peer: Entity,
    /// The request. An observer may change the block, and the client then sees that.
    pub request: SetBlock,
    /// `true` if the client had the newest state of the chunk when it made the edit. Any change of the chunk within the delay of
    /// the connection makes it `false`, the client's own earlier edits included.
    pub is_current: bool,
    is_refused: bool,
}

impl ClientEdit {
    /// Refuses the edit. The client takes it back, and its game receives a [`BlockRefused`](super::super::BlockRefused).
    pub fn refuse(&mut self) {
        self.is_refused = true;
    }

    /// Returns `true` if an observer has refused the edit.
    pub fn is_refused(&self) -> bool {
        self.is_refused
    }
}

/// Sends the edits of clients to regions, if they are in reach and the game does not refuse them.
pub(in crate::view) fn judge_edits(
    world: &mut World,
    peers: &mut QueryState<(Entity, &mut ChunkSyncPeer)>,
    viewers: &mut QueryState<(Option<&Viewer>, Place)>,
) {
    let mut asked: Vec<(Entity, SyncEdit, bool)> = Vec::new();
    for (entity, mut peer) in peers.iter_mut(world) {
        let edits = peer.bypass_change_detection().take_edits();
        asked.extend(edits.into_iter().map(|(edit, is_current)| (entity, edit, is_current)));
    }
    for (peer, edit, is_current) in asked {
        let request = judge(world, viewers, peer, &edit, is_current);
        let number = request.map(|request| world.resource_mut::<EditQueue>().push_of_client(request));
        if let Some(mut peer) = world.get_mut::<ChunkSyncPeer>(peer) {
            peer.note_edit(&edit, number);
        }
    }
}

/// The edit that is to be made, if any.
fn judge(
    world: &mut World,
    viewers: &mut QueryState<(Option<&Viewer>, Place)>,
    entity: Entity,
    edit: &SyncEdit,
    is_current: bool,
) -> Option<SetBlock> {
    let peer = world.get::<ChunkSyncPeer>(entity)?;
    let (dimension, position, block) = (peer.dimension(), edit.position, BlockId::new(edit.block));
    if let Some(viewer) = peer.viewer(entity) {
        let (viewer, place) = viewers.get(world, viewer).ok()?;
        let corner = place.position_in(viewer, dimension)?.relative_to(position);
        let distance = corner.distance(corner.clamp(Vec3::ZERO, Vec3::ONE));
        // A position that is not a number reaches nothing.
        if distance.is_nan() || distance > peer.edit_reach() {
            return None;
        }
    }
    if !world.get_resource::<BlockTypes>().is_some_and(|types| types.0.contains(block)) {
        return None;
    }
    let request = SetBlock { dimension, position, block };
    let mut event = ClientEdit { peer: entity, request, is_current, is_refused: false };
    world.trigger_ref(&mut event);
    (!event.is_refused).then_some(event.request)
}
