//! What the main world can order of regions and of clocks.

use crate::region::RegionId;
use crate::space::DimensionId;
use bevy::prelude::*;
use thiserror::Error;

/// Lets every region of a paused dimension tick so many times, each with the dimension's tick period as its `Time`'s delta.
/// [`StepRefused`](crate::view::StepRefused) answers if that cannot be.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepDimension {
    /// The dimension's entity.
    pub dimension: Entity,
    /// How many ticks.
    pub ticks: u32,
}

/// An order for one region from the main world.
///
/// It holds for the region with this id, or for the one that took over from it in a merge a moment ago. Parts that split
/// off begin as the region is; what merges keeps the orders of the region that goes on, and is paused only if both are.
/// A region that has not ticked yet has no say in that. [`ControlRefused`](crate::view::ControlRefused) answers what comes to nothing, and
/// nothing answers what is so already.
#[derive(Message, Clone, Copy, Debug, PartialEq)]
pub struct ControlRegion {
    /// Its dimension.
    pub dimension: DimensionId,
    /// The region.
    pub region: RegionId,
    /// What it is to do.
    pub order: RegionOrder,
}

/// What a region can be told to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RegionOrder {
    /// Stop to tick. It is saved, and takes in and gives up columns, as before; those that a letter waits for are held.
    Pause,
    /// Tick again.
    Resume,
    /// Tick so many times while it is paused; one that runs ticks anyway.
    Step(u32),
    /// Tick so many times a second of its dimension's clock; `None` for the dimension's rate.
    TickRate(Option<f64>),
    /// Begin again from the store after it halted. Letters that waited for it, and entities on their way into it, are
    /// handed over when the columns that they are for are there again.
    Restart,
    /// Halt as if its tick had panicked, when the tick that runs has ended: what was not saved is lost. A region that
    /// waits to merge cannot.
    Halt,
}

/// Why an order for a region or for the clock of a dimension comes to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ControlError {
    /// The dimension is not open.
    #[error("the dimension is not open")]
    NotOpen,
    /// The region is gone.
    #[error("the region is gone")]
    Gone,
    /// The region cannot halt, since it waits to merge with another one.
    #[error("the region waits to merge with another one")]
    Merging,
}
