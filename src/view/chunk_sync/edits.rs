//! Edits of clients, on the server.

use super::ChunkSyncPeer;
use super::actors::NamedAction;
use super::hub::FromHub;
use super::peer::SyncLink;
use crate::block::BlockId;
use crate::bytes;
use crate::chunk_sync::{SyncAction, SyncEdit, SyncWish};
use crate::coordinator::MainLink;
use crate::coordinator::passes::letters::post_letters;
use crate::simulation::{ActionOrder, BlockTypes, ErasedAction, Letter, Refusal, SetBlock, Viewer};
use crate::view::actions::KnownActions;
use crate::view::edit_queue::EditQueue;
use crate::view::region_commands::RegionCommands;
use crate::view::viewers::Place;
use bevy::prelude::*;
use std::sync::Arc;

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

/// Sends the edits and actions of clients to regions. An edit of a client without an actor must be in reach, and the game may refuse it;
/// the others are checked in the regions.
pub(in crate::view) fn judge_edits(world: &mut World, viewers: &mut QueryState<(Option<&Viewer>, Place)>) {
    let Some(mut link) = world.get_resource_mut::<SyncLink>() else { return };
    let wishes = link.take_wishes();
    let mut letters = Vec::new();
    let sets_blocks = world.resource::<KnownActions>().types.contains(SetBlock::type_path());
    for (entity, wish) in wishes {
        let Some(mut peer) = world.get_mut::<ChunkSyncPeer>(entity) else { continue };
        let (wish, is_current) = match wish {
            FromHub::Wish(_, wish, is_current) => (wish, is_current),
            FromHub::TooMany(_, id) => {
                peer.note_action(id, Err(Refusal::TooMany));
                continue;
            }
            FromHub::Steps(_, steps) => {
                let (steps, actor) = (peer.bypass_change_detection().new_steps(steps), peer.actor());
                let mut commands = world.commands();
                actor
                    .into_iter()
                    .for_each(|actor| steps.iter().for_each(|step| _ = commands.send_to_entity(actor, *step)));
                continue;
            }
            FromHub::Ask(..) => continue,
        };
        let (actor, session, of_dimension) = (peer.actor(), peer.session(), peer.dimension());
        let (id, action) = match wish {
            SyncWish::Edit(edit) if actor.is_some() && sets_blocks => {
                let (dimension, block) = (of_dimension, BlockId::new(edit.block));
                let action: Arc<dyn ErasedAction> = Arc::new(SetBlock { dimension, position: edit.position, block });
                (edit.id, Ok(action))
            }
            SyncWish::Edit(edit) => {
                let request = judge(world, viewers, entity, &edit, is_current);
                let number = request.map(|request| world.resource_mut::<EditQueue>().push_of_client(request));
                if let Some(mut peer) = world.get_mut::<ChunkSyncPeer>(entity) {
                    peer.note_edit(&edit, number);
                }
                continue;
            }
            SyncWish::Action(SyncAction { id, bytes }) => (id, read(world, &bytes)),
        };
        let of = actor.zip(session).ok_or(Refusal::NotHere);
        let order = of.and_then(|(actor, session)| Ok((actor, session, action?)));
        let order = order.map(|(actor, session, action)| {
            let order = world.resource_mut::<EditQueue>().number();
            letters.push(Letter::action(ActionOrder { id: order, actor, session, number: id, action }));
            order
        });
        if let Some(mut peer) = world.get_mut::<ChunkSyncPeer>(entity) {
            peer.note_action(id, order);
        }
    }
    if !letters.is_empty() {
        world.resource::<MainLink>().request(post_letters, letters);
    }
}

/// Reads an action of a client.
fn read(world: &World, bytes: &[u8]) -> Result<Arc<dyn ErasedAction>, Refusal> {
    let NamedAction { name, bytes } = bytes::value(bytes).map_err(Refusal::Because)?;
    world.resource::<KnownActions>().types.decode(&name, &bytes)
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
