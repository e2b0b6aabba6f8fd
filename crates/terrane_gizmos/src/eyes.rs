//! The places from which the world is seen.

use bevy::ecs::system::SystemParam;
use bevy::prelude::*;
use bevy_terrane::simulation::Position;
use bevy_terrane::space::BlockPos;
use bevy_terrane::view::DimensionOpen;
use terrane_render::{RenderOrigin, SeenDimension};

/// The active cameras, in the dimensions that they see.
#[derive(SystemParam)]
pub struct Eyes<'w, 's> {
    cameras: Query<'w, 's, (Entity, &'static Camera, &'static GlobalTransform), With<Camera3d>>,
    seen: SeenDimension<'w, 's>,
    open: Query<'w, 's, &'static DimensionOpen>,
    origin: Res<'w, RenderOrigin>,
}

impl Eyes<'_, '_> {
    /// The block at the origin of what is drawn.
    pub fn origin(&self) -> BlockPos {
        self.origin.0
    }

    /// The places of the cameras, one for each chunk. A camera whose dimension is not known sees the only one.
    pub fn places(&self) -> Vec<Position> {
        let only = self.open.single().ok().map(|open| open.id);
        let mut places: Vec<Position> = Vec::new();
        for (camera, _, transform) in self.cameras.iter().filter(|(_, camera, _)| camera.is_active) {
            let Some(dimension) = self.seen.by(camera).or(only) else { continue };
            let mut place = Position { dimension, block: self.origin.0, offset: Vec3::ZERO };
            place.translate(transform.translation());
            let chunk = |place: &Position| (place.dimension, place.block.chunk());
            if places.iter().all(|known| chunk(known) != chunk(&place)) {
                places.push(place);
            }
        }
        places
    }
}
