//! The main world's orders for regions and clocks.

use crate::region::RegionId;
use crate::space::DimensionId;
use bevy::prelude::*;
use thiserror::Error;

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
