//! The viewpoints of the demo.

use bevy::math::I64Vec2;
use bevy_terrane::generation::Heightmap;
use bevy_terrane::prelude::*;
use terrane_dev::haze;

/// The name of the dimension.
pub const DIMENSION: &str = "jacksboro";

/// The middle of the land that the camera finally keeps loaded, in blocks along x and z: the corner where the fault, the
/// mountains and the plateau meet.
pub const CENTRE: I64Vec2 = I64Vec2::new(190, 160);

/// The radius in columns for which the places below are chosen.
const RADIUS: f32 = 24.0;

#[derive(Resource, Clone, Copy)]
pub struct Viewpoints {
    /// Over the lake, looking north-west along the fault.
    pub over_the_lake: Transform,
    /// Lower and nearer to the beacon: the start of the camera's flight.
    pub by_the_lake: Transform,
    /// From high above the middle.
    pub from_above: Transform,
}

/// A camera that sees land up to `distance` blocks away.
pub fn camera(distance: f32) -> impl Bundle {
    (Camera3d::default(), haze(distance * 0.55..distance))
}

impl Viewpoints {
    /// The viewpoints over this land, near enough to the middle for a camera with this radius.
    pub fn new(land: &Heightmap, radius: u32) -> Self {
        let part = (radius as f32 / RADIUS).min(1.0);
        let middle = CENTRE.as_vec2();
        let near = |x: f32, z: f32| middle + (Vec2::new(x, z) - middle) * part;
        let look = |from: [f32; 3], to: [f32; 3]| {
            let (place, goal) = (near(from[0], from[2]), near(to[0], to[2]));
            // A custom map may be higher than the land around the fault.
            let ground = land.height_at(place.x as i64, place.y as i64) as f32;
            let lift = (ground + 25.0 - from[1] * part).max(0.0);
            Transform::from_xyz(place.x, from[1] * part + lift, place.y)
                .looking_at(Vec3::new(goal.x, to[1] * part + lift, goal.y), Vec3::Y)
        };
        Self {
            over_the_lake: look([440.0, 100.0, 520.0], [60.0, -40.0, 0.0]),
            by_the_lake: look([392.0, 36.0, 376.0], [180.0, 20.0, 110.0]),
            from_above: look([250.0, 280.0, 460.0], [150.0, 0.0, 200.0]),
        }
    }
}
