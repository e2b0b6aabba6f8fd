//! From where the demo looks at the land.

use bevy::math::I64Vec2;
use bevy_terrane::prelude::*;

/// The middle of what the camera keeps loaded in the end, in blocks along x and z: the corner where the fault, the
/// mountains and the plateau meet.
pub const CENTRE: I64Vec2 = I64Vec2::new(190, 160);

/// Places to look from. On land other than the Jacksboro fault they are lifted out of the ground.
#[derive(Resource, Clone, Copy)]
pub struct Viewpoints {
    lift: f32,
}

impl Viewpoints {
    /// The places over this land.
    pub fn over(land: &Heightmap) -> Self {
        let corners = [(440, 520), (392, 376), (326, 258)];
        let highest = corners.map(|(x, z)| land.height_at(x, z)).into_iter().fold(0, i64::max);
        Self { lift: (highest as f32 - 30.0).max(0.0) }
    }

    /// Over the lake, looking north-west along the fault.
    pub fn over_the_lake(self) -> Transform {
        self.look([440.0, 100.0, 520.0], [60.0, -40.0, 0.0])
    }

    /// Lower, and nearer to the beacon: where the camera begins to fly.
    pub fn by_the_lake(self) -> Transform {
        self.look([392.0, 36.0, 376.0], [180.0, 20.0, 110.0])
    }

    /// From high above the middle.
    pub fn from_above(self) -> Transform {
        let [x, z] = [CENTRE.x as f32, CENTRE.y as f32];
        self.look([x + 60.0, 280.0, z + 300.0], [x - 40.0, 0.0, z + 40.0])
    }

    /// Straight down to the beacon: so little is seen that a frame costs next to nothing.
    pub fn to_the_ground(self) -> Transform {
        Transform::from_xyz(326.0, 60.0 + self.lift, 258.0).looking_to(Vec3::NEG_Y, Vec3::NEG_Z)
    }

    fn look(self, from: [f32; 3], to: [f32; 3]) -> Transform {
        let lift = Vec3::Y * self.lift;
        Transform::from_translation(Vec3::from(from) + lift).looking_at(Vec3::from(to) + lift, Vec3::Y)
    }
}
