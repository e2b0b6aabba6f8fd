//! The positions of the main world's viewers.

use super::{Dimension, DimensionOpen, Job, Mirror, WorldStatistics};
use crate::coordinator::{MainLink, requests};
use crate::simulation::{Position, Viewer, ViewerRadii};
use crate::space::{ChunkPos, ColumnArea, ColumnPos, DimensionId};
use bevy::ecs::query::QueryData;
use bevy::prelude::*;
use rustc_hash::FxHashMap;
use std::time::Duration;

/// The place of an entity of the main world, from its position or else its transform.
#[derive(QueryData)]
pub(super) struct Place {
    position: Option<&'static Position>,
    transform: Option<&'static Transform>,
    global: Option<&'static GlobalTransform>,
    is_child: Has<ChildOf>,
}

impl PlaceItem<'_, '_> {
    /// The entity's dimension, if it has a position, which names it.
    pub fn dimension(&self) -> Option<DimensionId> {
        self.position.map(|position| position.dimension)
    }

    pub fn position(&self) -> Option<Position> {
        let translation = match (self.is_child, self.transform, self.global) {
            // A root's own transform is current; its global transform may be the last frame's.
            (false, Some(transform), _) | (true, Some(transform), None) => Some(transform.translation),
            (_, _, global) => global.map(GlobalTransform::translation),
        };
        self.position.copied().or(translation.map(|at| Position::from_translation(default(), at)))
    }
}

/// Larger radii are worth a warning, in columns.
const LARGE_RADIUS: u32 = 80;
const LARGE_GENERATION_RADIUS: u32 = 560;
/// The time after which a dimension without viewers is worth a warning.
const WITHOUT_VIEWERS: Duration = Duration::from_secs(3);

/// Warns of a radius that costs much, before it does. The figures are those of hills: see docs/performance.md.
fn log_large_radii(entity: Entity, radii: ViewerRadii) {
    let columns = |radius| ColumnArea::Disc { center: ColumnPos::default(), radius }.columns();
    if radii.load > LARGE_RADIUS {
        let loaded = columns(radii.load);
        warn_once!(
            "{entity} is a Viewer with a radius of {} columns, which loads {loaded} columns: about {} MB of memory without \
             meshes; a radius of 8 to 32 is usual, and a FarView shows land beyond it",
            radii.load,
            loaded * 5 / 1024
        );
    }
    if radii.generation > LARGE_GENERATION_RADIUS {
        let generated = columns(radii.generation);
        warn_once!(
            "{entity} is a Viewer with a generation radius of {} columns, which generates and stores {generated} columns: about {} \
             minutes of work for a core",
            radii.generation,
            generated / 2_000 / 60
        );
    }
}

/// Explains a world in which nothing happens: a dimension is open for a while, but no viewer, job or letter loads ground.
pub(super) fn log_missing_viewers(
    time: Res<Time<Real>>,
    open: Query<&Dimension, With<DimensionOpen>>,
    loaders: Query<(), Or<(With<Viewer>, With<Job>)>>,
    statistics: Res<WorldStatistics>,
    mut since: Local<Option<Duration>>,
    mut is_done: Local<bool>,
) {
    let Some(dimension) = open.iter().next().filter(|_| !*is_done) else { return };
    if !loaders.is_empty() || statistics.columns > 0 {
        *is_done = true;
    } else if time.elapsed() > *since.get_or_insert(time.elapsed()) + WITHOUT_VIEWERS {
        *is_done = true;
        warn!(
            "the dimension {:?} is open, but no ground is loaded, because no entity has a Viewer: spawn one with \
             Viewer::in_dimension(dimensions.id(name)) and a Transform",
            dimension.name()
        );
    }
}

pub(super) fn send_viewers(
    link: Res<MainLink>,
    viewers: Query<(Entity, &Viewer, Place), Without<Mirror>>,
    dimensions: Query<&Dimension>,
    opened: Query<&DimensionOpen, Added<DimensionOpen>>,
    mut removed: RemovedComponents<Viewer>,
    mut sent: Local<FxHashMap<Entity, (DimensionId, ChunkPos, ViewerRadii)>>,
) {
    // Viewers of a dimension that had to wait until it could be opened are sent again.
    for open in &opened {
        sent.retain(|_, (dimension, ..)| *dimension != open.id);
    }
    let known: Vec<DimensionId> = dimensions.iter().filter_map(Dimension::id).collect();
    let gone = removed.read().filter(|viewer| sent.remove(viewer).is_some());
    let mut moves: Vec<_> = gone.map(|viewer| (viewer, None)).collect();
    for (entity, viewer, place) in &viewers {
        let Some(dimension) = viewer.dimension() else {
            warn_once!(
                "{entity} is a Viewer without a dimension, so nothing is loaded for it: make it by \
                 Viewer::in_dimension(dimensions.id(name)), with Res<Dimensions>"
            );
            continue;
        };
        if !known.contains(&dimension) {
            warn_once!(
                "{entity} is a Viewer in {dimension}, and no entity has a Dimension with this id, so nothing is loaded for it"
            );
            continue;
        }
        let Some(position) = place.position() else {
            warn_once!("{entity} is a Viewer without a Transform or a Position, so nothing is loaded for it");
            continue;
        };
        let state = (dimension, position.block.chunk(), viewer.radii());
        if sent.insert(entity, state) != Some(state) {
            log_large_radii(entity, viewer.radii());
            moves.push((entity, Some(state)));
        }
    }
    if !moves.is_empty() {
        link.request(requests::move_viewers, moves);
    }
}
