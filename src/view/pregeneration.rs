//! Pre-generations, as a game spawns them.

use super::{Dimension, DimensionOpen};
use crate::coordinator::{
    DimensionClosed, MainLink, PregenerationOrder, PregenerationProgress, PregenerationState, PregenerationStatus,
    requests,
};
use crate::space::{ColumnArea, DimensionId};
use bevy::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// An area of a dimension that is to be generated and stored, without being loaded into a region: spawn it in the main
/// world, and see its [`PregenerationProgress`] beside it.
///
/// Columns that are stored already count as done. Of a sparse dimension the ground around sea level is generated, as
/// far as a viewer's default vertical radius reaches, in columns of which nothing is stored. Several of one dimension
/// run one after the other, in the order in which they were spawned; those of several dimensions run beside each other.
/// Viewers come first. A column that cannot be generated is tried three times, told of by
/// [`ColumnFailed`](super::ColumnFailed) and counted; the rest goes on.
///
/// [`ControlPregeneration`] pauses, resumes and cancels it, and so it ends if it is despawned. It is stored until it has
/// come to its end, which [`PregenerationEnded`] tells: when its dimension is opened again, in a later session too, it
/// goes on where it was, paused or not. Then it has the entity that the game spawned for the same area, or else a new one.
/// When its dimension is closed it waits; if the dimension is despawned, so is it. Whoever despawns it in the same frame
/// does not cancel it.
///
/// ```
/// use bevy_terrane::prelude::*;
///
/// fn prepare_spawn(mut commands: Commands, dimension: Single<Entity, Added<Dimension>>) {
///     let area = ColumnArea::Disc { center: ColumnPos::new(0, 0), radius: 64 };
///     commands.spawn(Pregeneration { dimension: *dimension, area });
/// }
///
/// fn tell(jobs: Query<(&Pregeneration, &PregenerationProgress), Changed<PregenerationProgress>>) {
///     for (job, progress) in &jobs {
///         info!("{}: {} of {} columns, {:?} left", job.area, progress.done, progress.total, progress.time_left());
///     }
/// }
/// # bevy::ecs::system::assert_is_system(prepare_spawn);
/// # bevy::ecs::system::assert_is_system(tell);
/// ```
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[component(immutable)]
#[require(PregenerationProgress)]
pub struct Pregeneration {
    /// The dimension's entity.
    pub dimension: Entity,
    /// What is to be generated.
    pub area: ColumnArea,
}

/// An order for one [`Pregeneration`].
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlPregeneration {
    /// Its entity.
    pub pregeneration: Entity,
    /// What it is to do.
    pub order: PregenerationOrder,
}

/// A [`Pregeneration`] has come to its end: it is finished or cancelled, as its progress says, and forgotten by the store.
/// Its entity stays.
#[derive(Message, Clone, Debug, PartialEq)]
pub struct PregenerationEnded {
    /// Its entity; it may have been despawned.
    pub pregeneration: Entity,
    /// What was to be generated.
    pub area: ColumnArea,
    /// How far it came.
    pub progress: PregenerationProgress,
}

/// Which entity stands for which job of the coordinator.
#[derive(Resource, Default)]
pub(super) struct PregenerationIndex {
    entities: BTreeMap<(DimensionId, u64), Entity>,
    /// Entities that the coordinator knows, and the dimension's entity of each.
    sent: FxHashMap<Entity, Entity>,
    /// Jobs that were told to stop and whose end was not told yet.
    cancelled: BTreeSet<(DimensionId, u64)>,
}

pub(super) fn build(app: &mut App) {
    app.register_type::<PregenerationProgress>()
        .init_resource::<PregenerationIndex>()
        .add_message::<ControlPregeneration>()
        .add_message::<PregenerationEnded>();
}

impl PregenerationIndex {
    /// The coordinator may have closed the dimension a moment ago, and find the job in the store again.
    fn note_cancelled(&mut self, entity: Entity) {
        let jobs = self.entities.iter().filter(|(_, of)| **of == entity).map(|(job, _)| *job);
        self.cancelled.extend(jobs);
    }
}

/// Sends new jobs and orders. What goes in the same frame as its dimension is not cancelled but waits.
pub(super) fn send(
    link: Res<MainLink>,
    mut index: ResMut<PregenerationIndex>,
    mut jobs: Query<(Entity, &Pregeneration, &mut PregenerationProgress)>,
    open: Query<(), With<DimensionOpen>>,
    mut removed: RemovedComponents<Pregeneration>,
    mut gone: RemovedComponents<Dimension>,
    mut orders: MessageReader<ControlPregeneration>,
    mut ended: MessageWriter<PregenerationEnded>,
) {
    for &ControlPregeneration { pregeneration: entity, order } in orders.read() {
        if index.sent.contains_key(&entity) {
            if order == PregenerationOrder::Cancel {
                index.note_cancelled(entity);
            }
            link.request(requests::control_pregeneration, (entity, order));
        } else if let Ok((_, job, progress)) = jobs.get_mut(entity) {
            let ending = control_unsent(job, progress, order);
            ended.write_batch(ending.map(|progress| PregenerationEnded {
                pregeneration: entity,
                area: job.area,
                progress,
            }));
        }
    }
    let gone: FxHashSet<Entity> = gone.read().collect();
    for entity in removed.read() {
        let Some(dimension) = index.sent.remove(&entity) else { continue };
        if gone.contains(&dimension) {
            continue;
        }
        index.note_cancelled(entity);
        link.request(requests::control_pregeneration, (entity, PregenerationOrder::Cancel));
    }
    for (entity, job, progress) in &jobs {
        if !progress.state.is_over() && open.contains(job.dimension) && !index.sent.contains_key(&entity) {
            let &Pregeneration { dimension, area } = job;
            index.sent.insert(entity, dimension);
            let is_paused = progress.state == PregenerationState::Paused;
            link.request(requests::start_pregeneration, (entity, dimension, area, is_paused));
        }
    }
}

/// Of a job that waits until its dimension is open nobody else knows. Gives its progress if that is its end.
fn control_unsent(
    job: &Pregeneration,
    mut progress: Mut<PregenerationProgress>,
    order: PregenerationOrder,
) -> Option<PregenerationProgress> {
    if progress.state.is_over() {
        return None;
    }
    progress.total = job.area.columns();
    progress.state = match order {
        PregenerationOrder::Pause => PregenerationState::Paused,
        PregenerationOrder::Resume => PregenerationState::Waiting,
        PregenerationOrder::Cancel => PregenerationState::Cancelled,
    };
    progress.state.is_over().then(|| progress.clone())
}

/// Takes in how far a job is.
pub(super) fn apply(world: &mut World, (dimension, number): (DimensionId, u64), status: PregenerationStatus) {
    let is_over = status.progress.state.is_over();
    let index = &mut *world.resource_mut::<PregenerationIndex>();
    if is_over {
        index.cancelled.remove(&(dimension, number));
    } else if status.entity.is_none() && index.cancelled.contains(&(dimension, number)) {
        cancel_again(world, (dimension, number));
        return;
    }
    let Some(entity) = entity_of(world, (dimension, number), &status) else { return };
    let PregenerationStatus { area, progress, .. } = status;
    if let Ok(mut job) = world.get_entity_mut(entity) {
        job.insert(progress.clone());
    }
    if is_over {
        let mut index = world.resource_mut::<PregenerationIndex>();
        index.entities.remove(&(dimension, number));
        index.sent.remove(&entity);
        world.write_message(PregenerationEnded { pregeneration: entity, area, progress });
    }
}

/// The job was cancelled in the moment in which its dimension was closed, and the store did not hear of it.
fn cancel_again(world: &mut World, (dimension, number): (DimensionId, u64)) {
    // Orders go by entities, and it has none any more.
    let entity = world.spawn_empty().id();
    world.despawn(entity);
    let link = world.resource::<MainLink>();
    link.request(requests::adopt_pregeneration, (entity, dimension, number));
    link.request(requests::control_pregeneration, (entity, PregenerationOrder::Cancel));
}

/// The entity of a job: the one that it has, one that was spawned for the same, or a new one.
fn entity_of(world: &mut World, key: (DimensionId, u64), status: &PregenerationStatus) -> Option<Entity> {
    let known = world.resource::<PregenerationIndex>().entities.get(&key).copied();
    if let Some(entity) = known.or(status.entity) {
        world.resource_mut::<PregenerationIndex>().entities.insert(key, entity);
        return Some(entity);
    }
    let wanted = Pregeneration { dimension: status.dimension, area: status.area };
    let mut jobs = world.query::<(Entity, &Pregeneration, &PregenerationProgress)>();
    let same = |(_, job, progress): &(Entity, &Pregeneration, &PregenerationProgress)| {
        **job == wanted && !progress.state.is_over()
    };
    let mut found: Vec<_> = jobs.iter(world).filter(same).map(|(entity, ..)| entity).collect();
    let index = world.resource::<PregenerationIndex>();
    found.retain(|entity| !index.entities.values().any(|taken| taken == entity));
    found.sort_unstable();
    if found.is_empty() && world.get::<Dimension>(status.dimension).is_none() {
        // It goes with its dimension.
        return None;
    }
    let entity = found.first().copied().unwrap_or_else(|| world.spawn(wanted).id());
    let mut index = world.resource_mut::<PregenerationIndex>();
    index.entities.insert(key, entity);
    index.sent.insert(entity, status.dimension);
    let (dimension, number) = key;
    world.resource::<MainLink>().request(requests::adopt_pregeneration, (entity, dimension, number));
    Some(entity)
}

/// The jobs of a dimension that was closed wait for it, or are gone with its entity.
pub(super) fn close(world: &mut World, closed: &DimensionClosed) {
    world.resource_mut::<PregenerationIndex>().entities.retain(|(dimension, _), _| *dimension != closed.dimension);
    let is_gone = world.get::<Dimension>(closed.entity).is_none();
    let mut jobs = world.query::<(Entity, &Pregeneration, &mut PregenerationProgress)>();
    let mut waiting = Vec::new();
    for (entity, job, mut progress) in jobs.iter_mut(world) {
        if job.dimension == closed.entity && !progress.state.is_over() {
            if progress.state == PregenerationState::Running {
                progress.state = PregenerationState::Waiting;
            }
            progress.columns_per_second = None;
            waiting.push(entity);
        }
    }
    for entity in waiting {
        world.resource_mut::<PregenerationIndex>().sent.remove(&entity);
        if is_gone {
            world.despawn(entity);
        }
    }
}
