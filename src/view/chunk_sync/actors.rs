//! The entity that acts for a client: what the server tells the client of it, and how the client shows it as a mirror.

use super::packets::SentBody;
use super::peer::ChunkSyncPeer;
use crate::bytes;
use crate::coordinator::messages::{ActionAnswer, ActionOutcome};
use crate::simulation::{Actor, BoxedComponent, MirrorUpdate, Position, Refusal, RegionComponents, Steering};
use crate::space::{BlockPos, DimensionId};
use crate::view::Components;
use crate::view::actions::{ActionPredictions, KnownActions};
use crate::view::{Mirror, MirrorIndex};
use bevy::ecs::resource::IsResource;
use bevy::prelude::*;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use uuid::Uuid;

/// What a server tells a client of its actor and its actions, in postcard.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ActorMessage {
    /// The client acts for this entity, in this session. It is about to be told the state.
    Begins { actor: Uuid, session: u64 },
    /// The entity is at this place at this time of the dimension's clock, and these components of it have changed.
    State { block: BlockPos, offset: Vec3, elapsed: Duration, components: Vec<SentComponent> },
    /// The entity is not in the world any more.
    Gone,
    /// The action of this number is about to be refused, for this reason.
    Refused(u64, Refusal),
    /// The actions of these numbers are durable.
    Durable(Vec<u64>),
    /// The actions of these numbers are lost.
    Lost(Vec<u64>),
}

/// The type path of a component and its fields; `None` if the entity does not have it any more.
pub(super) type SentComponent = (String, Option<Vec<u8>>);

impl ActorMessage {
    pub fn encode(&self) -> Vec<u8> {
        bytes::put_value(Vec::new(), self)
    }

    pub fn decode(message: &[u8]) -> Result<Self, String> {
        bytes::value(message)
    }
}

/// An action with its type path, as a client sends it.
#[derive(Serialize, Deserialize)]
pub(super) struct NamedAction {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Tells clients of their actors, before they are told what became of their actions.
pub(in crate::view) fn tell_of_actors(
    mut peers: Query<&mut ChunkSyncPeer>,
    mirrors: Query<(EntityRef, &Mirror), (Without<ChunkSyncPeer>, Without<IsResource>)>,
    index: Res<MirrorIndex>,
    (components, known): (Option<Res<Components>>, Option<Res<KnownActions>>),
    mut predictions: ResMut<ActionPredictions>,
) {
    let (Some(components), Some(known)) = (components, known) else { return };
    let actors: FxHashSet<Uuid> = peers.iter().filter_map(ChunkSyncPeer::actor).collect();
    // Only what a region has changed is compared.
    let with_news = predictions.take_news(&actors);
    for mut peer in &mut peers {
        let peer = peer.bypass_change_detection();
        let Some(actor) = peer.actor() else { continue };
        let Some((entity, mirror)) = index.entity(actor).and_then(|mirror| mirrors.get(mirror).ok()) else {
            peer.tell_gone();
            continue;
        };
        if peer.may_begin()
            && let Some(last) = entity.get::<Actor>().map(Actor::last)
        {
            peer.begin(predictions.new_session(actor, last.0, known.sessions_from));
        }
        if let Some(steering) = entity.get_ref::<Steering>().filter(Ref::is_changed)
            && let Some(body) = steering.state()
        {
            peer.tell_body(&SentBody { clock: mirror.current.1, body: *body });
        }
        if peer.owes_state(with_news.contains(&actor)) {
            peer.tell_state(mirror.current, components.0.mirrored.encode_for_owner(entity));
        }
    }
}

/// Tells clients which of their actions are durable or lost.
pub(in crate::view) fn tell_of_settled(mut peers: Query<&mut ChunkSyncPeer>, mut answers: MessageReader<ActionAnswer>) {
    for answer in answers.read() {
        let is_durable = match answer.outcome {
            ActionOutcome::Durable => true,
            ActionOutcome::Lost => false,
            ActionOutcome::Done | ActionOutcome::Refused(_) => continue,
        };
        for mut peer in peers.iter_mut().filter(|peer| peer.actor() == Some(answer.actor)) {
            peer.bypass_change_detection().tell_settled(answer.action, is_durable);
        }
    }
}

/// A component that a server has sent; `None` if it is not registered here, or invalid.
pub(super) fn decoded(
    components: &RegionComponents,
    (path, bytes): SentComponent,
) -> Option<(usize, Option<BoxedComponent>)> {
    let decoded = components.mirrored.decode_replicated(&path, bytes.as_deref());
    decoded.inspect_err(|reason| warn_once!("a component of the server is invalid: {reason}")).ok().flatten()
}

/// The mirror's news in a message about its state. Components that this app does not register are left out.
pub(super) fn mirror_update(
    actor: Uuid,
    dimension: DimensionId,
    (block, offset, elapsed): (BlockPos, Vec3, Duration),
    sent: Vec<SentComponent>,
    components: &RegionComponents,
) -> MirrorUpdate {
    let components = sent.into_iter().filter_map(|sent| decoded(components, sent)).collect();
    let position = Some((Position { dimension, block, offset }, elapsed));
    MirrorUpdate { id: actor, is_new: false, position, components }
}
