//! Jobs in the main world: an entity each, and what becomes of them.

use super::Dimension;
use crate::coordinator::{
    DimensionClosed, Job, JobId, JobKind, JobOrder, JobOutcome, JobProgress, JobStatus, Jobs, Pregeneration,
};
use bevy::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// An order for one [`Job`].
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlJob {
    /// Its entity.
    pub entity: Entity,
    /// What it is to do.
    pub order: JobOrder,
}

/// A job has come to its end: a message, and an event that is triggered on the job's entity.
#[derive(Message, EntityEvent, Clone, Debug)]
pub struct JobEnded {
    /// Its entity, if nobody despawned it. That of a capture or a restore is despawned after this frame's observers have run.
    pub entity: Entity,
    /// What it was.
    pub job: Job,
    /// How far it came.
    pub progress: JobProgress,
    /// What has come of a capture or a restore, column by column, and what was captured.
    pub outcome: Arc<JobOutcome>,
}

/// Which entity stands for which job, until that has come to its end.
#[derive(Resource, Default)]
pub(super) struct JobIndex(FxHashMap<JobId, (Entity, JobKind)>);

impl JobIndex {
    /// A job begins on this entity.
    pub fn begin(&mut self, id: JobId, entity: Entity, kind: JobKind) -> Job {
        self.0.insert(id, (entity, kind));
        Job { id, kind }
    }

    pub fn entity(&self, id: JobId) -> Option<Entity> {
        self.0.get(&id).map(|(entity, _)| *entity)
    }

    fn of(&self, entity: Entity) -> Option<(JobId, JobKind)> {
        self.0.iter().find(|(_, (of, _))| *of == entity).map(|(id, (_, kind))| (*id, *kind))
    }
}

pub(super) fn build(app: &mut App) {
    app.register_type::<JobProgress>()
        .init_resource::<JobIndex>()
        .add_message::<ControlJob>()
        .add_message::<JobEnded>();
}

/// Begins pre-generations that were spawned, cancels jobs that were despawned, and sends orders. What goes in the same frame as
/// its dimension is not cancelled but waits.
pub(super) fn send(
    jobs: Res<Jobs>,
    mut index: ResMut<JobIndex>,
    spawned: Query<(Entity, &Pregeneration), (Added<Pregeneration>, Without<Job>)>,
    mut removed: RemovedComponents<Job>,
    mut gone: RemovedComponents<Dimension>,
    mut orders: MessageReader<ControlJob>,
    mut commands: Commands,
) {
    for (entity, order) in &spawned {
        let (id, kind) = (jobs.pregenerate(*order), JobKind::Pregeneration(*order));
        commands.entity(entity).insert(index.begin(id, entity, kind));
    }
    let gone: FxHashSet<Entity> = gone.read().collect();
    for (id, kind) in removed.read().filter_map(|entity| index.of(entity)).collect::<Vec<_>>() {
        match kind {
            JobKind::Pregeneration(order) if gone.contains(&order.dimension) => _ = index.0.remove(&id),
            _ => jobs.control(id, JobOrder::Cancel),
        }
    }
    for ControlJob { entity, order } in orders.read() {
        index.of(*entity).into_iter().for_each(|(id, _)| jobs.control(id, *order));
    }
}

/// Takes in how far a job is.
pub(super) fn apply(world: &mut World, status: JobStatus) {
    let JobStatus { job, progress, outcome } = status;
    let known = world.resource::<JobIndex>().entity(job.id);
    let entity = match (known, job.kind) {
        (Some(entity), _) => entity,
        // It goes with its dimension.
        (None, JobKind::Pregeneration(order)) if world.get::<Dimension>(order.dimension).is_none() => return,
        (None, JobKind::Pregeneration(order)) => world.spawn((job, order)).id(),
        (None, JobKind::FarView) => return,
        (None, JobKind::Capture { .. } | JobKind::Restore { .. }) => world.spawn(job).id(),
    };
    world.resource_mut::<JobIndex>().begin(job.id, entity, job.kind);
    // It may have another one meanwhile.
    let is_its = |entity: &EntityWorldMut| entity.get::<Job>().is_some_and(|current| current.id == job.id);
    if let Some(mut entity) = world.get_entity_mut(entity).ok().filter(is_its) {
        entity.insert(progress.clone());
    }
    let Some(outcome) = outcome else { return };
    world.resource_mut::<JobIndex>().0.remove(&job.id);
    let ended = JobEnded { entity, job, progress, outcome };
    world.write_message(ended.clone());
    world.trigger(ended);
    if let Some(mut entity) = world.get_entity_mut(entity).ok().filter(is_its) {
        match job.kind {
            JobKind::Pregeneration(_) | JobKind::FarView => drop(entity.remove::<Job>()),
            JobKind::Capture { .. } | JobKind::Restore { .. } => entity.despawn(),
        }
    }
}

/// The pre-generations of a dimension that was closed wait for it, or are gone with its entity.
pub(super) fn close(world: &mut World, closed: &DimensionClosed) {
    if world.get::<Dimension>(closed.entity).is_some() {
        return;
    }
    let is_of_it = |kind: &JobKind| matches!(kind, JobKind::Pregeneration(order) if order.dimension == closed.entity);
    let going = world.resource_mut::<JobIndex>().0.extract_if(|_, (_, kind)| is_of_it(kind)).collect::<Vec<_>>();
    for (_, (entity, _)) in going {
        world.try_despawn(entity).ok();
    }
}
