//! The time of day.

use bevy::prelude::*;
use std::f32::consts::TAU;
use std::time::Duration;

/// The time of day in a dimension: a component of its entity, beside the [`Dimension`](crate::view::Dimension).
///
/// It follows the dimension's clock, so it is slowed down and paused with it, and it is saved. Change `days` to set the time.
/// When the dimension is opened again, the saved `days` replace those of its entity. In a region,
/// [`RegionBlocks::time_of_day`](crate::simulation::RegionColumns::time_of_day) has it. Without this component it is always day.
///
/// The entity of a [`ChunkSyncClient`](crate::view::ChunkSyncClient) can have it too. It then follows the client's `Time`, and the
/// game sets `days` to what the server tells it.
///
/// ```
/// use bevy_terrane::prelude::*;
///
/// fn sleep(mut times: Query<&mut TimeOfDay>) {
///     for mut time in &mut times {
///         time.days = time.days.floor() + 1.0 + TimeOfDay::SUNRISE;
///     }
/// }
/// # bevy::ecs::system::assert_is_system(sleep);
/// ```
///
/// The crate moves `days` without marking the component as changed: `Changed<TimeOfDay>` finds what the game has set.
#[derive(Component, Clone, Copy, Debug, PartialEq, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Component, Clone)]
pub struct TimeOfDay {
    /// The number of days that have passed. The part after the point is the time of day: 0.0 at midnight, 0.5 at noon.
    pub days: f64,
    /// The length of a day in seconds of the dimension's clock. The time of day stands still if it is not a positive number.
    pub seconds_per_day: f64,
}

impl Default for TimeOfDay {
    fn default() -> Self {
        Self { days: 0.35, seconds_per_day: 1_200.0 }
    }
}

impl TimeOfDay {
    /// The time of day at sunrise.
    pub const SUNRISE: f64 = 0.25;
    /// The time of day at sunset.
    pub const SUNSET: f64 = 0.75;

    /// The time of day, from 0 at midnight to just below 1. If `days` is not a number, it is noon.
    pub fn time(&self) -> f64 {
        if self.days.is_finite() { self.days.rem_euclid(1.0) } else { 0.5 }
    }

    /// The direction to the sun, of length 1. It rises in the east (+x), stands in the south (+z) at noon, 60 degrees above the
    /// horizon, and sets in the west. The moon is opposite.
    pub fn sun(&self) -> Vec3 {
        let (sin, cos) = ((self.time() - Self::SUNRISE) as f32 * TAU).sin_cos();
        Vec3::new(cos, sin * 0.866_025_4, sin * 0.5)
    }

    /// The light of the day, from 0 at night to 1 by day. It changes in the hour or so around sunrise and sunset.
    pub fn daylight(&self) -> f32 {
        let height = ((self.sun().y + 0.15) / 0.35).clamp(0.0, 1.0);
        height * height * (3.0 - 2.0 * height)
    }
}

/// A time of day, and the time of the dimension's clock to which it belongs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ClockedTimeOfDay {
    pub time: TimeOfDay,
    pub clock: Duration,
}

impl ClockedTimeOfDay {
    /// The time of day when the clock shows this time.
    pub fn at(&self, clock: Duration) -> TimeOfDay {
        let TimeOfDay { days, seconds_per_day } = self.time;
        let passed = (clock.as_secs_f64() - self.clock.as_secs_f64()) / seconds_per_day;
        let moves = seconds_per_day > 0.0 && passed.is_finite();
        TimeOfDay { days: if moves { days + passed } else { days }, seconds_per_day }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(days: f64) -> TimeOfDay {
        TimeOfDay { days, ..default() }
    }

    #[test]
    fn the_sun_is_up_by_day_and_daylight_follows_it() {
        assert!(at(0.5).sun().distance(Vec3::new(0.0, 0.866_025_4, 0.5)) < 1e-6);
        assert!(at(TimeOfDay::SUNRISE).sun().distance(Vec3::X) < 1e-6);
        assert!(at(7.0 + TimeOfDay::SUNSET).sun().distance(Vec3::NEG_X) < 1e-5);
        assert_eq!([0.0, 0.2, 0.35, 0.5, 0.65, 0.8].map(|time| at(time).daylight()), [0.0, 0.0, 1.0, 1.0, 1.0, 0.0]);
        let dusk = at(TimeOfDay::SUNSET).daylight();
        assert!(0.2 < dusk && dusk < 0.6, "{dusk}");
        // Before the first day, and without a number.
        assert_eq!(at(-0.75).time(), 0.25);
        assert_eq!([f64::NAN, f64::INFINITY].map(|days| at(days).daylight()), [1.0; 2]);
    }

    #[test]
    fn time_passes_with_the_clock() {
        let morning =
            ClockedTimeOfDay { time: TimeOfDay { days: 3.5, seconds_per_day: 10.0 }, clock: Duration::from_secs(100) };
        assert_eq!(morning.at(Duration::from_secs(105)).days, 4.0);
        // A region's step may be earlier than the clock.
        assert_eq!(morning.at(Duration::from_secs(95)).days, 3.0);
        for seconds_per_day in [0.0, -5.0, f64::NAN, f64::INFINITY, 1e-320] {
            let still = ClockedTimeOfDay { time: TimeOfDay { seconds_per_day, ..morning.time }, ..morning };
            assert_eq!(still.at(Duration::MAX).days, 3.5, "{seconds_per_day}");
        }
    }
}
