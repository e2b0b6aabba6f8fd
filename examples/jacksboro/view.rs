//! From where the demo looks at the land.

use bevy::math::I64Vec2;
use bevy_terrane::prelude::*;

/// The middle of what the camera keeps loaded in the end, in blocks along x and z: the corner where the fault, the
/// mountains and the plateau meet.
pub const CENTRE: I64Vec2 = I64Vec2::new(190, 160);

/// Over the lake, looking north-west along the fault.
pub fn over_the_lake() -> Transform {
    Transform::from_xyz(440.0, 100.0, 520.0).looking_at(Vec3::new(60.0, -40.0, 0.0), Vec3::Y)
}

/// Lower, and nearer to the beacon: where the camera begins to fly.
pub fn by_the_lake() -> Transform {
    Transform::from_xyz(392.0, 36.0, 376.0).looking_at(Vec3::new(180.0, 20.0, 110.0), Vec3::Y)
}

/// From high above the middle.
pub fn from_above() -> Transform {
    let [x, z] = [CENTRE.x as f32, CENTRE.y as f32];
    Transform::from_xyz(x + 60.0, 280.0, z + 300.0).looking_at(Vec3::new(x - 40.0, 0.0, z + 40.0), Vec3::Y)
}

/// Straight down to the ground by the lake: so little is seen that a frame costs next to nothing.
pub fn to_the_ground() -> Transform {
    Transform::from_xyz(326.0, 60.0, 258.0).looking_to(Vec3::NEG_Y, Vec3::NEG_Z)
}
