//! Actions of the main world: shown before they are decided, and handed to the regions of their entities.
//!
//! A mirror shows the *confirmed* components of its entity, which are those of the region, with the undecided actions done over them
//! in the order of their numbers. The [`Actor`] among the confirmed components tells which actions they include. An undecided action is
//! done anew whenever something that it depends on has changed. If it has become impossible, it is shown as it was until it is decided.

use super::edit_queue::EditQueue;
use super::mirror::Components;
use super::{ColumnChange, ColumnChanged, MirrorIndex, OwnBody, PublishedColumns};
use crate::chunk::BlockChange;
use crate::coordinator::messages::{ActionAnswer, ActionId, ActionOutcome};
use crate::simulation::{
    Acting, Action, ActionContext, ActionOrder, ActionTypes, Actor, BlockTypes, DecidedAction, ErasedAction, Ground,
    MirroredChanges, MirroredValues, Outcome, Position, Refusal, RegionComponents, Values,
};
use crate::space::{BlockPos, ChunkPos, ColumnPos, DimensionId};
use crate::view::Mirror;
use bevy::ecs::system::SystemParam;
use bevy::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// The undecided actions that are shown of one entity, at most. More are shown when they are done.
const MOST_SHOWN: usize = 256;

/// Lets entities act, from the main world.
///
/// ```
/// use bevy_terrane::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize, TypePath)]
/// # struct Dig(BlockPos);
/// # impl Action for Dig {
/// #     fn apply(&self, context: &mut ActionContext) -> Result<(), Refusal> {
/// #         context.set_block(self.0, BlockId::AIR).map(drop)
/// #     }
/// # }
///
/// fn dig(mut actions: Actions, player: Single<&OwnBody>, buttons: Res<ButtonInput<MouseButton>>) {
///     if buttons.just_pressed(MouseButton::Left) {
///         actions.act(player.id(), Dig(BlockPos::new(3, 64, 5)));
///     }
/// }
///
/// fn tell(mut answers: MessageReader<ActionAnswer>) {
///     for answer in answers.read() {
///         if let ActionOutcome::Refused(reason) = &answer.outcome {
///             info!("this cannot be done: {reason}");
///         }
///     }
/// }
/// # use bevy_terrane::view::{ActionAnswer, ActionOutcome};
/// # bevy::ecs::system::assert_is_system(dig);
/// # bevy::ecs::system::assert_is_system(tell);
/// ```
#[derive(SystemParam)]
pub struct Actions<'w> {
    queue: ResMut<'w, EditQueue>,
}

impl Actions<'_> {
    /// Lets the entity with this stable id act. The entity has a mirror here and an [`Actor`]. The result is shown at the end of the
    /// frame; an [`ActionAnswer`] tells what has become of it. The actions of an entity are done in the order of these calls.
    pub fn act<A: Action>(&mut self, actor: Uuid, action: A) -> ActionId {
        self.queue.push_action(actor, Arc::new(action))
    }
}

/// The types of the game's actions, and a number below which all sessions of earlier openings of the world are.
#[derive(Resource, Clone, Default)]
pub(crate) struct KnownActions {
    pub types: ActionTypes,
    pub sessions_from: u64,
}

/// What is shown of undecided actions.
#[derive(Resource, Default)]
pub(super) struct ActionPredictions {
    actors: FxHashMap<Uuid, PredictedActor>,
    /// The last sessions of entities that began here.
    sessions: FxHashMap<Uuid, u64>,
    /// The sessions in which this app itself lets entities act.
    own_sessions: FxHashMap<Uuid, u64>,
    /// The actors whose actions are to be done anew.
    outdated: FxHashSet<Uuid>,
    /// The actors of clients, each with whether its mirror has news.
    watched: FxHashMap<Uuid, bool>,
}

/// An entity with undecided actions.
struct PredictedActor {
    session: u64,
    dimension: DimensionId,
    /// The components as its region has them.
    confirmed: MirroredValues,
    pending: BTreeMap<u64, PendingAction>,
}

struct PendingAction {
    action: Arc<dyn ErasedAction>,
    /// What it changed when it was possible last.
    changes: Vec<(BlockPos, BlockChange)>,
    components: MirroredValues,
    /// The chunks that it looked at.
    reads: BTreeSet<ChunkPos>,
}

impl ActionPredictions {
    /// Begins a session of an entity, after the last one that it knows, all that began here, and all of earlier openings of the world.
    pub fn new_session(&mut self, actor: Uuid, last: u64, from: u64) -> u64 {
        let known = self.sessions.get(&actor).copied().unwrap_or_default();
        let session = last.max(known).max(from).saturating_add(1);
        self.sessions.insert(actor, session);
        // This app counts its own actions anew after that.
        self.own_sessions.remove(&actor);
        session
    }

    /// Notes the session that a server has begun for this app.
    pub fn set_session(&mut self, actor: Uuid, session: u64) {
        self.own_sessions.insert(actor, session);
    }

    /// Watches these actors of clients, and only them. Returns those whose mirrors have had news since the last call.
    pub fn take_news(&mut self, actors: &FxHashSet<Uuid>) -> FxHashSet<Uuid> {
        self.watched.retain(|id, _| actors.contains(id));
        let mut has_news = |id: &Uuid| mem::take(self.watched.entry(*id).or_insert(true));
        actors.iter().filter(|id| has_news(id)).copied().collect()
    }

    /// Takes the new components of a mirror, if actions are shown over them, and leaves those that are gone.
    pub fn confirm(&mut self, id: Uuid, components: &mut MirroredChanges) {
        if let Some(has_news) = self.watched.get_mut(&id) {
            *has_news = true;
        }
        if let Some(actor) = self.actors.get_mut(&id) {
            for (number, change) in mem::take(components) {
                match change {
                    Some(component) => _ = actor.confirmed.insert(number, component),
                    None => {
                        actor.confirmed.remove(&number);
                        components.insert(number, None);
                    }
                }
            }
            self.outdated.insert(id);
        }
    }

    /// Notes that a mirror is gone.
    pub fn forget(&mut self, id: Uuid) {
        self.actors.remove(&id);
        self.sessions.remove(&id);
        self.own_sessions.remove(&id);
        self.outdated.remove(&id);
        self.watched.remove(&id);
    }
}

impl PredictedActor {
    /// The last action that the confirmed components include.
    fn settled(&self, components: &RegionComponents) -> u64 {
        let number = components.mirrored.number(TypeId::of::<Actor>());
        let actor = number.and_then(|number| self.confirmed.get(&number)?.downcast_ref::<Actor>());
        match actor.map(Actor::last) {
            Some((session, number)) if session == self.session => number,
            Some((session, _)) if session > self.session => u64::MAX,
            _ => 0,
        }
    }
}

/// What predicting an action needs.
struct Shown<'a> {
    published: &'a mut PublishedColumns,
    types: &'a BlockTypes,
    components: &'a RegionComponents,
}

impl Shown<'_> {
    /// Does an action on the ground as it is shown, without the edits from this number on.
    fn run(
        &self,
        number: u64,
        (actor, position, elapsed): (Uuid, Position, Duration),
        values: &MirroredValues,
        action: &dyn ErasedAction,
    ) -> (Result<Outcome, Refusal>, BTreeSet<ChunkPos>) {
        let dimension = position.dimension;
        let (types, predictions) = (&*self.types.0, &self.published.predictions);
        let block = |block: BlockPos| {
            let column = self.published.confirmed(dimension, block.column())?;
            let predicted = || predictions.block_before(number, dimension, block);
            column.is_loaded(block.chunk().y).then(|| predicted().unwrap_or_else(|| column.block(block)))
        };
        let component = |block: BlockPos, id| {
            predictions.component_before(number, dimension, block, id, types).unwrap_or_else(|| {
                let chunk = self.published.confirmed(dimension, block.column())?.chunk(block.chunk().y)?;
                chunk.component(block.in_chunk(), 0, id).map(<[u8]>::to_vec)
            })
        };
        let ground = Ground { block: &block, component: &component };
        let acting = Acting { actor, position, elapsed, values: Values::Copies(values) };
        let number = |type_id| self.components.mirrored.number(type_id);
        ActionContext::new(acting, types, &number, ground).run(action)
    }

    fn copies(&self, values: &MirroredValues) -> MirroredValues {
        values
            .iter()
            .filter_map(|(number, value)| Some((*number, self.components.mirrored.copy_value(*number, value)?)))
            .collect()
    }
}

/// Shows an action. Returns the order for its region, and the chunks that look different.
pub(super) fn predict(
    world: &mut World,
    mirrors: &mut QueryState<(EntityRef<'static>, &'static Mirror)>,
    bodies: &mut QueryState<(&'static OwnBody, &'static Position)>,
    ActionId(id): ActionId,
    actor: Uuid,
    action: &Arc<dyn ErasedAction>,
) -> Result<(ActionOrder, Vec<ChunkPos>), Refusal> {
    let known = world.resource::<KnownActions>();
    let sessions_from = known.sessions_from;
    if !known.types.contains(action.name()) {
        return Err(Refusal::Unregistered(action.name().to_owned()));
    }
    let mirror = world.resource::<MirrorIndex>().entity(actor).ok_or(Refusal::NotHere)?;
    let own_body = bodies.iter(world).find(|(body, _)| body.id() == actor && body.state().is_some());
    let own_place = own_body.map(|(_, position)| *position);
    world.resource_scope(|world, mut predictions: Mut<ActionPredictions>| {
        world.resource_scope(|world, mut published: Mut<PublishedColumns>| {
            let components = world.resource::<Components>().0.clone();
            let types = world.resource::<BlockTypes>().clone();
            let (entity, mirror) = mirrors.get(world, mirror).map_err(|_| Refusal::NotHere)?;
            let last = entity.get::<Actor>().ok_or(Refusal::NotAnActor)?.last();
            let order = |session, number| ActionOrder { id, actor, session, number, action: action.clone() };
            if predictions.watched.contains_key(&actor) {
                // A client acts for it and counts its actions, without those of the server.
                return Ok((order(0, 0), Vec::new()));
            }
            let session = match predictions.own_sessions.get(&actor) {
                Some(session) => *session,
                None => {
                    let session = predictions.new_session(actor, last.0, sessions_from);
                    predictions.set_session(actor, session);
                    session
                }
            };
            let (position, elapsed) = mirror.current;
            let position = own_place.filter(|own| own.dimension == position.dimension).unwrap_or(position);
            let predicted = predictions.actors.entry(actor).or_insert_with(|| PredictedActor {
                session,
                dimension: position.dimension,
                confirmed: components.mirrored.copy(entity),
                pending: BTreeMap::new(),
            });
            if predicted.pending.len() >= MOST_SHOWN || predicted.dimension != position.dimension {
                return Ok((order(session, id), Vec::new()));
            }
            let shown = Shown { published: &mut published, types: &types, components: &components };
            let values = components.mirrored.copy(entity);
            let (result, reads) = shown.run(id, (actor, position, elapsed), &values, &**action);
            let outcome = result.unwrap_or_default();
            let (changes, copies) = (outcome.changes(), shown.copies(&outcome.components));
            let chunks: BTreeSet<ChunkPos> = changes.iter().map(|(position, _)| position.chunk()).collect();
            if published.predict_changes(id, position.dimension, &changes, &types.0) {
                tell_of_chunks(world, chunks.iter().map(|chunk| (position.dimension, *chunk)));
            }
            let pending = PendingAction { action: action.clone(), changes, components: copies, reads };
            predicted.pending.insert(id, pending);
            let entity = entity_of(world, actor);
            if let Some(mut entity) = entity.and_then(|entity| world.get_entity_mut(entity).ok()) {
                for (number, value) in outcome.components {
                    components.mirrored.apply(&mut entity, number, Some(value));
                }
            }
            Ok((order(session, id), chunks.into_iter().collect()))
        })
    })
}

fn entity_of(world: &World, actor: Uuid) -> Option<Entity> {
    world.resource::<MirrorIndex>().entity(actor)
}

fn tell_of_chunks(world: &mut World, chunks: impl IntoIterator<Item = (DimensionId, ChunkPos)>) {
    let changed = chunks.into_iter().map(|(dimension, chunk)| {
        let (column, change) = (chunk.column(), ColumnChange::Chunk(chunk.y));
        ColumnChanged { dimension, column, change }
    });
    world.write_message_batch(changed);
}

/// Follows the regions: these columns have changed, and these actions are decided. The mirrors were confirmed before.
pub(super) fn follow(world: &mut World, changed: &BTreeSet<(DimensionId, ColumnPos)>, decided: &[DecidedAction]) {
    let has_none = world.resource::<ActionPredictions>().actors.is_empty();
    if has_none && decided.is_empty() {
        return;
    }
    for decided in decided {
        let outcome = match &decided.result {
            Ok(_) => ActionOutcome::Done,
            Err(refusal) => ActionOutcome::Refused(refusal.clone()),
        };
        world.write_message(ActionAnswer { action: ActionId(decided.id), actor: decided.actor, outcome });
    }
    world.resource_scope(|world, mut predictions: Mut<ActionPredictions>| {
        let ActionPredictions { actors, outdated, .. } = &mut *predictions;
        for decided in decided {
            let actor = actors.get_mut(&decided.actor);
            if actor.is_some_and(|actor| actor.pending.remove(&decided.id).is_some()) {
                outdated.insert(decided.actor);
            }
        }
        for (id, actor) in &*actors {
            let is_changed = |chunk: &ChunkPos| changed.contains(&(actor.dimension, chunk.column()));
            if actor.pending.values().any(|pending| pending.reads.iter().any(is_changed)) {
                outdated.insert(*id);
            }
        }
        for id in mem::take(outdated) {
            let Some(actor) = actors.get_mut(&id) else { continue };
            show_anew(world, id, actor);
            if actor.pending.is_empty() {
                actors.remove(&id);
            }
        }
    });
}

/// Does the undecided actions of an entity anew.
fn show_anew(world: &mut World, id: Uuid, actor: &mut PredictedActor) {
    let components = world.resource::<Components>().0.clone();
    let Some(types) = world.get_resource::<BlockTypes>().cloned() else { return };
    let Some(entity) = entity_of(world, id) else { return };
    let Some((position, elapsed)) = world.get::<Mirror>(entity).map(|mirror| mirror.current) else { return };
    let settled = actor.settled(&components);
    let mut other = FxHashSet::default();
    let mut values = world.resource_scope(|_, mut published: Mut<PublishedColumns>| {
        let shown = Shown { published: &mut published, types: &types, components: &components };
        let mut values = shown.copies(&actor.confirmed);
        // It may be in another dimension by now.
        let unsettled = actor.pending.range_mut(settled.saturating_add(1)..);
        for (number, pending) in unsettled.filter(|_| position.dimension == actor.dimension) {
            let (result, reads) = shown.run(*number, (id, position, elapsed), &values, &*pending.action);
            if let Ok(outcome) = result {
                let changes = outcome.changes();
                if changes != pending.changes {
                    let changed = shown.published.replace_predicted(*number, actor.dimension, &changes, &types.0);
                    other.extend(changed);
                }
                (pending.changes, pending.components, pending.reads) = (changes, outcome.components, reads);
            }
            values.extend(shown.copies(&pending.components));
        }
        values
    });
    tell_of_chunks(world, other);
    if let Ok(mut entity) = world.get_entity_mut(entity) {
        values.drain().for_each(|(number, value)| components.mirrored.apply(&mut entity, number, Some(value)));
    }
}
