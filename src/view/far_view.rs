//! Summaries of generated columns in the main world.

use super::Dimension;
use super::jobs::JobIndex;
use super::own_body::FollowedBodies;
use super::viewers::Place;
use crate::chunk::ColumnSummary;
use crate::coordinator::jobs::Jobs;
use crate::coordinator::messages::{FarNews, FarView, Job, JobId, JobKind, JobOrder, JobProgress, Target};
use crate::simulation::Viewer;
use crate::space::{ColumnPos, DimensionId};
use bevy::prelude::*;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A listener receives the summary of a column, which replaces an older one, or loses the column: it is too far away, the
/// listener is in another dimension, or the dimension closes. A column that changed just beyond the radius is lost too. A
/// despawned listener gets no messages.
#[derive(Message, Clone, Debug)]
pub struct FarColumnChanged {
    /// The entity with the [`FarView`].
    pub listener: Entity,
    /// The column's dimension.
    pub dimension: DimensionId,
    /// The column.
    pub column: ColumnPos,
    /// The summary; `None` if the column is gone.
    pub summary: Option<Arc<ColumnSummary>>,
    /// The number of bytes that the message used of the listener's cap.
    pub bytes: u64,
}

/// The present columns of each listener.
#[derive(Resource, Clone, Debug, Default, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(opaque)]
#[reflect(Resource, Clone, Default)]
pub struct FarColumns {
    listeners: BTreeMap<Entity, Known>,
}

#[derive(Clone, Debug)]
struct Known {
    job: JobId,
    /// The settings and the position that were sent last.
    sent: (FarView, Option<(DimensionId, ColumnPos)>),
    columns: FxHashMap<(DimensionId, ColumnPos), Arc<ColumnSummary>>,
}

impl FarColumns {
    /// The summary of a column that the listener with this entity has.
    pub fn column(&self, listener: Entity, dimension: DimensionId, column: ColumnPos) -> Option<&Arc<ColumnSummary>> {
        self.listeners.get(&listener)?.columns.get(&(dimension, column))
    }

    /// All summaries that the listener with this entity has, in no particular order.
    pub fn iter(&self, listener: Entity) -> impl Iterator<Item = (DimensionId, ColumnPos, &Arc<ColumnSummary>)> {
        let columns = self.listeners.get(&listener).into_iter().flat_map(|known| &known.columns);
        columns.map(|((dimension, column), summary)| (*dimension, *column, summary))
    }

    /// The number of columns that the listener with this entity has.
    pub fn len(&self, listener: Entity) -> usize {
        self.listeners.get(&listener).map_or(0, |known| known.columns.len())
    }

    /// Returns `true` if the listener with this entity has no columns.
    pub fn is_empty(&self, listener: Entity) -> bool {
        self.len(listener) == 0
    }
}

pub(super) fn build(app: &mut App) {
    app.init_resource::<FarColumns>().add_message::<FarColumnChanged>();
}

pub(super) fn send_far_views(
    jobs: Res<Jobs>,
    listeners: Query<(Entity, &FarView, Option<&Viewer>, Place)>,
    bodies: FollowedBodies,
    dimensions: Query<&Dimension>,
    mut removed: RemovedComponents<FarView>,
    mut known: ResMut<FarColumns>,
    mut index: ResMut<JobIndex>,
    mut commands: Commands,
) {
    let open: Vec<DimensionId> = dimensions.iter().filter_map(Dimension::id).collect();
    for listener in removed.read() {
        if let Some(known) = known.listeners.remove(&listener) {
            jobs.control(known.job, JobOrder::Cancel);
            commands.entity(listener).try_remove::<(Job, JobProgress)>();
        }
    }
    for (entity, view, viewer, place) in &listeners {
        let body = bodies.position(entity);
        let dimension = match view.target {
            Target::Beside => body.map(|body| body.dimension).or_else(|| viewer.and_then(Viewer::dimension)),
            Target::Dimension(dimension) => Some(dimension),
            Target::Viewer(_) => None,
        };
        let column = body.or_else(|| place.position()).map(|position| position.column());
        let at = match (view.target, dimension.filter(|dimension| open.contains(dimension)), column) {
            (Target::Viewer(_), ..) => None,
            (_, Some(dimension), Some(column)) => Some((dimension, column)),
            (_, None, _) => continue,
            (_, _, None) => {
                warn_once!("{entity} has a FarView without a Transform or a Position: it sees nothing");
                continue;
            }
        };
        let (wish, view) = ((*view, at), *view);
        match known.listeners.get_mut(&entity) {
            Some(known) if known.sent == wish => {}
            Some(known) => {
                known.sent = wish;
                jobs.to_listener(known.job, move |listener| listener.aim(view, at));
            }
            None if index.is_pregeneration(entity) => {
                warn_once!("{entity} already has another job: put its FarView on an entity of its own");
            }
            None => {
                let (job, columns) = (jobs.listen(view, at), FxHashMap::default());
                known.listeners.insert(entity, Known { job, sent: wish, columns });
                commands.entity(entity).try_insert(index.begin(job, entity, JobKind::FarView));
            }
        }
    }
}

impl FarColumns {
    /// Applies one update of a listener, and appends the changes of its columns.
    fn take(
        &mut self,
        listener: Entity,
        (job, dimension, news): (JobId, DimensionId, FarNews),
        told: &mut Vec<FarColumnChanged>,
    ) {
        let Some(known) = self.listeners.get_mut(&listener).filter(|known| known.job == job) else { return };
        let gone = |column| FarColumnChanged { listener, dimension, column, summary: None, bytes: 0 };
        match news {
            FarNews::Column { column, summary, bytes } => {
                known.columns.insert((dimension, column), summary.clone());
                told.push(FarColumnChanged { listener, dimension, column, summary: Some(summary), bytes });
            }
            FarNews::Gone(column) => {
                known.columns.remove(&(dimension, column));
                told.push(gone(column));
            }
            FarNews::AllGone => {
                let all = known.columns.extract_if(|(of, _), _| *of == dimension).map(|((_, column), _)| column);
                let mut all: Vec<_> = all.collect();
                // So that the order does not depend on a hash map.
                all.sort_unstable();
                told.extend(all.into_iter().map(gone));
            }
        }
    }
}

/// Applies the updates of listeners, and confirms them, so that more are sent.
pub(super) fn apply(world: &mut World, updates: &mut VecDeque<(JobId, DimensionId, FarNews)>) {
    if updates.is_empty() {
        return;
    }
    let mut told = Vec::new();
    let mut taken: BTreeMap<JobId, usize> = BTreeMap::new();
    world.resource_scope(|world, mut known: Mut<FarColumns>| {
        let index = world.resource::<JobIndex>();
        for update in updates.drain(..) {
            *taken.entry(update.0).or_default() += 1;
            if let Some(listener) = index.entity(update.0) {
                known.take(listener, update, &mut told);
            }
        }
    });
    world.write_message_batch(told);
    let jobs = world.resource::<Jobs>();
    for (job, updates) in taken {
        jobs.to_listener(job, move |listener| listener.taken(updates));
    }
}
