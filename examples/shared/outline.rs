//! The outline of a block.

use bevy_terrane::prelude::*;
use bevy_terrane::space::FaceSet;

/// Draws dark edges around the shape of a block, whose lowest corner is here.
pub fn draw(gizmos: &mut Gizmos, types: &BlockTypes, block: BlockId, corner: Vec3) {
    for part in types.block(block).shape().boxes(FaceSet::NONE) {
        let [min, max] = [part.min, part.max].map(|place| Vec3::from(place.map(f32::from)) / 16.0);
        let (middle, size) = (corner + (min + max) / 2.0, (max - min) * 1.005);
        gizmos.cube(Transform::from_translation(middle).with_scale(size), Color::BLACK);
    }
}
