//! Jobs in the main world: an entity, orders and results for each.

use super::dimension::{Despawned, is_spawned};
use crate::coordinator::jobs::Jobs;
use crate::coordinator::messages::{
    DimensionClosed, FarView, Job, JobId, JobKind, JobOrder, JobOutcome, JobProgress, JobStatus, Pregeneration,
};
use bevy::prelude::*;
use rustc_hash::FxHashMap;
use std::mem;
use std::sync::Arc;

/// An order for one [`Job`].
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlJob {
    /// The entity of the job.
    pub entity: Entity,
    /// The order.
    pub order: JobOrder,
}

/// A job has ended: a message, and an event that is triggered on the job's entity.
#[derive(Message, EntityEvent, Clone, Debug)]
pub struct JobEnded {
    /// The job's entity, unless it was despawned. It is despawned when this frame's observers of a capture or a restore have run.
    pub entity: Entity,
    /// The job.
    pub job: Job,
    /// The last progress.
    pub progress: JobProgress,
    /// The outcome of a capture or a restore, column by column, with the captured snapshot.
    pub outcome: Arc<JobOutcome>,
}

/// The entity of each job that has not ended.
#[derive(Resource, Default)]
pub(super) struct JobIndex {
    jobs: FxHashMap<JobId, (Entity, JobKind)>,
    /// Jobs whose entities may have lost them.
    dropped: Vec<JobId>,
}

impl JobIndex {
    /// Notes that a job begins on this entity.
    pub fn begin(&mut self, id: JobId, entity: Entity, kind: JobKind) -> Job {
        self.jobs.insert(id, (entity, kind));
        Job { id, kind }
    }

    pub fn entity(&self, id: JobId) -> Option<Entity> {
        self.jobs.get(&id).map(|(entity, _)| *entity)
    }

    /// Returns `true` if the entity is a pre-generation.
    pub fn is_pregeneration(&self, entity: Entity) -> bool {
        self.jobs.values().any(|(of, kind)| *of == entity && matches!(kind, JobKind::Pregeneration(_)))
    }

    /// The job of this entity.
    fn of(&self, entity: Entity) -> Option<JobId> {
        self.jobs.iter().find(|(_, (of, _))| *of == entity).map(|(id, _)| *id)
    }
}

pub(super) fn build(app: &mut App) {
    app.init_resource::<JobIndex>().add_message::<ControlJob>().add_message::<JobEnded>().add_observer(note_dropped);
}

fn note_dropped(dropped: On<Discard, Job>, jobs: Query<&Job>, mut index: ResMut<JobIndex>) {
    if let Ok(job) = jobs.get(dropped.entity) {
        index.dropped.push(job.id);
    }
}

/// Begins spawned pre-generations, cancels jobs whose entities were despawned, and sends orders. A pre-generation that is
/// despawned in the same frame as its dimension is not cancelled.
pub(super) fn send(
    jobs: Res<Jobs>,
    mut index: ResMut<JobIndex>,
    known: Query<&Job>,
    pregenerations: Query<(), With<Pregeneration>>,
    mut removed: RemovedComponents<Pregeneration>,
    spawned: Query<(Entity, &Pregeneration), Added<Pregeneration>>,
    gone: Res<Despawned>,
    mut orders: MessageReader<ControlJob>,
    mut commands: Commands,
) {
    for entity in removed.read().filter(|entity| !pregenerations.contains(*entity)) {
        let is_pregeneration = |job: &&Job| matches!(job.kind, JobKind::Pregeneration(_));
        if known.get(entity).is_ok_and(|job| is_pregeneration(&job)) {
            commands.entity(entity).try_remove::<Job>();
        }
    }
    let is_gone = |dimension| gone.0.iter().any(|(_, id)| *id == dimension);
    for id in mem::take(&mut index.dropped) {
        let Some((entity, kind)) = index.jobs.get(&id).copied() else { continue };
        match kind {
            _ if known.get(entity).is_ok_and(|job| job.id == id) => {}
            JobKind::Pregeneration(order) if is_gone(order.dimension) => drop(index.jobs.remove(&id)),
            _ => jobs.control(id, JobOrder::Cancel),
        }
    }
    for (entity, order) in &spawned {
        // The entity was spawned for a job that runs already.
        if known.get(entity).is_ok_and(|job| job.kind == JobKind::Pregeneration(*order)) {
            continue;
        }
        if index.of(entity).is_some() {
            warn!("{entity} already has another job: put its Pregeneration on an entity of its own");
            continue;
        }
        let (id, kind) = (jobs.pregenerate(*order), JobKind::Pregeneration(*order));
        commands.entity(entity).try_insert(index.begin(id, entity, kind));
    }
    for ControlJob { entity, order } in orders.read() {
        index.of(*entity).into_iter().for_each(|id| jobs.control(id, *order));
    }
}

/// Applies the status of a job.
pub(super) fn apply(world: &mut World, status: JobStatus) {
    let JobStatus { job, progress, outcome } = status;
    let known = world.resource::<JobIndex>().entity(job.id);
    let entity = match (known, job.kind) {
        (Some(entity), _) => entity,
        // The job ends with its dimension.
        (None, JobKind::Pregeneration(order)) if !is_spawned(world, order.dimension) => return,
        (None, JobKind::Pregeneration(order)) => world.spawn((job, order)).id(),
        (None, JobKind::FarView) => return,
        (None, JobKind::Capture { .. } | JobKind::Restore { .. }) => world.spawn(job).id(),
    };
    world.resource_mut::<JobIndex>().begin(job.id, entity, job.kind);
    // The entity may have another job by now.
    let is_its = |entity: &EntityWorldMut| entity.get::<Job>().is_some_and(|current| current.id == job.id);
    if let Some(mut entity) = world.get_entity_mut(entity).ok().filter(is_its) {
        entity.insert(progress.clone());
    }
    let Some(outcome) = outcome else { return };
    world.resource_mut::<JobIndex>().jobs.remove(&job.id);
    let ended = JobEnded { entity, job, progress, outcome };
    world.write_message(ended.clone());
    world.trigger(ended);
    if let Some(mut entity) = world.get_entity_mut(entity).ok().filter(is_its) {
        match job.kind {
            JobKind::Pregeneration(_) => drop(entity.remove::<Job>()),
            JobKind::FarView => drop(entity.remove::<(Job, FarView)>()),
            JobKind::Capture { .. } | JobKind::Restore { .. } => entity.despawn(),
        }
    }
}

/// Removes the pre-generations of a closed dimension that no entity has; others wait for it to open again.
pub(super) fn close(world: &mut World, closed: &DimensionClosed) {
    if is_spawned(world, closed.dimension) {
        return;
    }
    let is_of_it =
        |kind: &JobKind| matches!(kind, JobKind::Pregeneration(order) if order.dimension == closed.dimension);
    let going = world.resource_mut::<JobIndex>().jobs.extract_if(|_, (_, kind)| is_of_it(kind)).collect::<Vec<_>>();
    for (_, (entity, _)) in going {
        world.try_despawn(entity).ok();
    }
}
