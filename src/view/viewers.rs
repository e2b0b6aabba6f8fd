//! The positions of the main world's viewers.

use super::own_body::FollowedBodies;
use super::{Dimension, DimensionOpen, Job, Mirror, WorldStatistics};
use crate::coordinator::MainLink;
use crate::coordinator::collect::move_viewers;
use crate::simulation::{Position, Viewer, ViewerRadii};
use crate::space::{ChunkPos, DimensionId};
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

    /// The position in this dimension; `None` if the entity, or its viewer, is in another one.
    pub fn position_in(&self, viewer: Option<&Viewer>, dimension: DimensionId) -> Option<Position> {
        let its = viewer.and_then(Viewer::dimension).or_else(|| self.dimension());
        self.position().filter(|_| its.is_none_or(|its| its == dimension))
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

/// The time after which a world without viewers is worth a message.
const WITHOUT_VIEWERS: Duration = Duration::from_secs(3);

/// Explains a world in which nothing happens: a dimension is open for a while, but no viewer, job or letter loads ground. A dimension
/// without viewers beside one that has some may be meant to be empty.
pub(super) fn log_missing_viewers(
    time: Res<Time<Real>>,
    open: Query<&Dimension, With<DimensionOpen>>,
    viewers: Query<(), (With<Viewer>, Without<Mirror>)>,
    jobs: Query<(), With<Job>>,
    statistics: Res<WorldStatistics>,
    mut since: Local<Option<Duration>>,
    mut is_done: Local<bool>,
) {
    if *is_done || open.is_empty() {
        return;
    }
    let has_ground = || statistics.regions.iter().any(|region| region.columns > 0);
    if !viewers.is_empty() || !jobs.is_empty() || has_ground() {
        *is_done = true;
    } else if time.elapsed() > *since.get_or_insert(time.elapsed()) + WITHOUT_VIEWERS {
        *is_done = true;
        let names: Vec<_> = open.iter().map(|dimension| format!("{:?}", dimension.name())).collect();
        // Not a warning: a server has no viewers until a client connects.
        info!(
            "no ground of {} is loaded, because no entity has a Viewer: spawn one with \
             Viewer::in_dimension(dimensions.id(name)) and a Transform",
            names.join(", ")
        );
    }
}

pub(super) fn send_viewers(
    link: Res<MainLink>,
    viewers: Query<(Entity, &Viewer, Place), Without<Mirror>>,
    bodies: FollowedBodies,
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
        let body = bodies.position(entity);
        let Some(dimension) = body.map(|body| body.dimension).or_else(|| viewer.dimension()) else {
            if bodies.is_follower(entity) {
                continue;
            }
            warn_once!(
                "{entity} is a Viewer without a dimension, so nothing is loaded for it: make it by \
                 Viewer::in_dimension(dimensions.id(name)), with Res<Dimensions>"
            );
            continue;
        };
        if !known.contains(&dimension) {
            warn_once!(
                "{entity} is a Viewer in {dimension}, and no entity has a Dimension with this id, so nothing is loaded for it: spawn \
                 the Dimension, and take its id from Res<Dimensions>, as dimensions.id(name)"
            );
            continue;
        }
        let Some(position) = body.or_else(|| place.position()) else {
            warn_once!(
                "{entity} is a Viewer without a Transform or a Position, so nothing is loaded for it: insert a Transform beside it"
            );
            continue;
        };
        let state = (dimension, position.block.chunk(), viewer.radii());
        if sent.insert(entity, state) != Some(state) {
            moves.push((entity, Some(state)));
        }
    }
    if !moves.is_empty() {
        link.request(move_viewers, moves);
    }
}
