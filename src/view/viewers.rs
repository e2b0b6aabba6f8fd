//! The positions of the main world's viewers.

use super::{Dimension, DimensionOpen, Mirror};
use crate::coordinator::{MainLink, requests};
use crate::simulation::{Position, Viewer, ViewerRadii};
use crate::space::{ChunkPos, DimensionId};
use bevy::ecs::query::QueryData;
use bevy::prelude::*;
use rustc_hash::FxHashMap;

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

pub(super) fn build(app: &mut App) {
    app.register_type::<Viewer>().register_type::<Position>();
}

pub(super) fn send_viewers(
    link: Res<MainLink>,
    viewers: Query<(Entity, &Viewer, Place), Without<Mirror>>,
    dimensions: Query<(), With<Dimension>>,
    opened: Query<(), Added<DimensionOpen>>,
    mut removed: RemovedComponents<Viewer>,
    mut sent: Local<FxHashMap<Entity, (Entity, ChunkPos, ViewerRadii)>>,
) {
    // Viewers of a dimension that had to wait until it could be opened are sent again.
    sent.retain(|_, (dimension, ..)| !opened.contains(*dimension));
    let gone = removed.read().filter(|viewer| sent.remove(viewer).is_some());
    let mut moves: Vec<_> = gone.map(|viewer| (viewer, None)).collect();
    for (entity, viewer, place) in &viewers {
        let Some(dimension) = viewer.dimension() else {
            warn_once!(
                "{entity} is a Viewer without a dimension, so nothing is loaded for it: make it by Viewer::in_dimension, \
                 with the entity that has the Dimension"
            );
            continue;
        };
        if !dimensions.contains(dimension) {
            warn_once!("{entity} is a Viewer in {dimension}, which has no Dimension, so nothing is loaded for it");
            continue;
        }
        let Some(position) = place.position() else {
            warn_once!("{entity} is a Viewer without a Transform or a Position, so nothing is loaded for it");
            continue;
        };
        let state = (dimension, position.block.chunk(), viewer.radii());
        if sent.insert(entity, state) != Some(state) {
            moves.push((entity, Some(state)));
        }
    }
    if !moves.is_empty() {
        link.request(requests::move_viewers, moves);
    }
}
