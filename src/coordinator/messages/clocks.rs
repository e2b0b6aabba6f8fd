//! The clocks of dimensions, orders for clocks and regions, and regions that tick together.

use crate::region::RegionId;
use crate::space::{BlockPos, DimensionId};
use bevy::prelude::*;
use std::time::Duration;
use thiserror::Error;

/// The longest time between two ticks.
const LONGEST_PERIOD: Duration = Duration::from_secs(24 * 60 * 60);

/// How time passes in a dimension: a component of its entity in the main world.
///
/// A dimension without it has the plugin's tick rate. In lockstep every region ticks once per update at any rate,
/// but pauses and steps still apply.
#[derive(Component, Clone, Copy, Debug, PartialEq, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Component, Clone)]
pub struct DimensionClock {
    /// Ticks of each region per second of the dimension's clock. Less than one tick a day counts as one tick a day.
    pub ticks_per_second: f64,
    /// Seconds of the dimension's clock per real second: 2 ticks twice as often, with the same `Time::delta`. A value that is not
    /// a positive number counts as 1, and one above a million as a million.
    pub rate: f64,
    /// Stops the clock. Regions tick only for a [`StepDimension`](crate::view::StepDimension).
    pub paused: bool,
}

impl Default for DimensionClock {
    fn default() -> Self {
        Self { ticks_per_second: 20.0, rate: 1.0, paused: false }
    }
}

impl DimensionClock {
    /// The time between two ticks on the dimension's clock. A rate that is not a positive number counts as 20 ticks a second.
    pub fn period(&self) -> Duration {
        period(self.ticks_per_second).unwrap_or(Duration::from_millis(50))
    }
}

/// The time between two ticks at this rate, if it is a positive number.
pub(in crate::coordinator) fn period(ticks_per_second: f64) -> Option<Duration> {
    let seconds = 1.0 / ticks_per_second;
    (ticks_per_second > 0.0 && seconds > 0.0)
        .then(|| Duration::try_from_secs_f64(seconds).map_or(LONGEST_PERIOD, |period| period.min(LONGEST_PERIOD)))
}

/// Couples the regions at two places, such as the two ends of a portal. Spawn it in the main world; despawning it ends it.
///
/// The regions keep their worlds, and tick one after the other on the same thread, lowest dimension and region first.
/// Letters from the first to the second arrive within the same pair of ticks. The regions may be in different dimensions; if
/// one ticks less often than the other, they tick together whenever both are due.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Component, Clone)]
pub struct Coupling {
    /// The two places.
    pub ends: [(DimensionId, BlockPos); 2],
}

/// Lets every region of a paused dimension tick this many times, each with the dimension's tick period as its `Time`'s delta.
/// A step that is not possible is answered by [`StepRefused`](crate::view::StepRefused).
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepDimension {
    /// The dimension.
    pub dimension: DimensionId,
    /// The number of ticks.
    pub ticks: u32,
}

/// An order for one region from the main world.
///
/// It applies to the region with this id, or to the one that absorbed it a moment ago. A part that splits off starts with the
/// region's orders. After a merge the surviving region's orders apply, and the result is paused only if both were; a region
/// that has not ticked yet does not count. An impossible order is answered by [`ControlRefused`](crate::view::ControlRefused),
/// and an order that changes nothing has no answer.
#[derive(Message, Clone, Copy, Debug, PartialEq)]
pub struct ControlRegion {
    /// Its dimension.
    pub dimension: DimensionId,
    /// The region.
    pub region: RegionId,
    /// The order.
    pub order: RegionOrder,
}

/// An order that a region can carry out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RegionOrder {
    /// Stop ticking. The region still saves, receives and evicts columns, except columns for which a letter waits.
    Pause,
    /// Tick again.
    Resume,
    /// Tick this many times while paused. A region that is not paused ticks anyway.
    Step(u32),
    /// Tick this many times per second of the dimension's clock; `None` for the dimension's rate.
    TickRate(Option<f64>),
    /// Start a halted region again from the store. Letters that wait for it and entities on their way into it are delivered when
    /// their columns are loaded again.
    Restart,
    /// Halt as if the tick had panicked, once the current tick has ended; unsaved changes are lost. A region that waits to merge
    /// cannot halt.
    Halt,
}

/// The reason why an order for a region or for the clock of a dimension is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ControlError {
    /// The dimension is not open.
    #[error("the dimension is not open")]
    NotOpen,
    /// The region is gone.
    #[error("the region is gone")]
    Gone,
    /// The region cannot halt because it waits to merge with another one.
    #[error("the region waits to merge with another one")]
    Merging,
}
