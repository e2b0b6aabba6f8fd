//! Snapshot jobs in the main world: an entity each, and what becomes of them.

use crate::coordinator::{
    SnapshotJob, SnapshotJobId, SnapshotJobStatus, SnapshotJobs, SnapshotOutcome, SnapshotProgress,
};
use bevy::prelude::*;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A snapshot job has come to its end: a message, and an event that is triggered on the job's entity.
#[derive(Message, EntityEvent, Clone, Debug)]
pub struct SnapshotJobEnded {
    /// Its entity, which is despawned after this frame's observers have run.
    pub entity: Entity,
    /// What it was.
    pub job: SnapshotJob,
    /// How far it came.
    pub progress: SnapshotProgress,
    /// What has come of it, column by column, and what was captured.
    pub outcome: Arc<SnapshotOutcome>,
}

/// Which entity stands for which job.
#[derive(Resource, Default)]
pub(super) struct SnapshotJobIndex(FxHashMap<SnapshotJobId, Entity>);

pub(super) fn build(app: &mut App) {
    app.init_resource::<SnapshotJobIndex>().add_message::<SnapshotJobEnded>();
}

/// Jobs whose entities were despawned by the game are cancelled.
pub(super) fn cancel_despawned(
    jobs: Option<Res<SnapshotJobs>>,
    index: Res<SnapshotJobIndex>,
    mut removed: RemovedComponents<SnapshotJob>,
) {
    for entity in removed.read() {
        // It stays in the index until the job has come to its end, so that it gets no entity again.
        let job = index.0.iter().find(|(_, of)| **of == entity);
        if let (Some((id, _)), Some(jobs)) = (job, &jobs) {
            jobs.cancel(*id);
        }
    }
}

/// Takes in how far a job is.
pub(super) fn apply(world: &mut World, status: SnapshotJobStatus) {
    let SnapshotJobStatus { job, progress, outcome } = status;
    let known = world.resource::<SnapshotJobIndex>().0.get(&job.id).copied();
    let entity = match known.filter(|entity| world.get_entity(*entity).is_ok()) {
        Some(entity) => entity,
        // Its entity was despawned, and it has not come to its end yet.
        None if known.is_some() && outcome.is_none() => return,
        None => world.spawn(job).id(),
    };
    world.resource_mut::<SnapshotJobIndex>().0.insert(job.id, entity);
    world.entity_mut(entity).insert(progress.clone());
    if let Some(outcome) = outcome {
        world.resource_mut::<SnapshotJobIndex>().0.remove(&job.id);
        let ended = SnapshotJobEnded { entity, job, progress, outcome };
        world.write_message(ended.clone());
        world.trigger(ended);
        if let Ok(entity) = world.get_entity_mut(entity) {
            entity.despawn();
        }
    }
}
