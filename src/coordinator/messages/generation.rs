//! How ground is generated, how many columns are in flight, and columns that failed.

use crate::space::{ColumnPos, DimensionId};
use bevy::prelude::*;
use std::time::Duration;

/// The bounds and goals by which the number of columns in flight adapts: a resource of the main world that can be changed at
/// any time.
///
/// While frames and ticks keep within their budgets, the limit grows by a batch of 16 columns every quarter of a second.
/// Otherwise it falls by three tenths. In lockstep the limit is always `most`.
#[derive(Resource, Clone, Copy, Debug, PartialEq, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Resource, Clone, Default)]
pub struct Pacing {
    /// The limit however slow everything is; at least one. If it equals `most`, nothing adapts.
    pub least: usize,
    /// The limit if everything is fast.
    pub most: usize,
    /// The time that the main world may take for a frame, from `First` to `Last`. Waiting between frames does not count.
    pub frame_budget: Duration,
    /// The part of its period that the slowest region's tick may take, averaged over its last ticks: 0.8 means 40 ms at
    /// 20 ticks a second.
    pub tick_share: f64,
    /// The number of columns that pre-generations may have in flight, where viewers leave room; at least one. `None` means 64 for
    /// each generation thread.
    pub pregeneration: Option<usize>,
}

impl Default for Pacing {
    fn default() -> Self {
        Self { least: 16, most: 256, frame_budget: Duration::from_millis(16), tick_share: 0.8, pregeneration: None }
    }
}

impl Pacing {
    /// A constant number of columns in flight.
    pub fn fixed(columns: usize) -> Self {
        Self { least: columns.max(1), most: columns.max(1), ..default() }
    }

    pub(in crate::coordinator) fn is_too_slow(&self, frame: Option<Duration>, tick_share: f64) -> bool {
        frame.is_some_and(|frame| frame > self.frame_budget) || tick_share > self.tick_share
    }
}

/// How ground is generated in a dimension: a component of its entity in the main world that can be changed at any time.
///
/// A dimension without it uses the plugin's settings.
#[derive(Component, Clone, Copy, Debug, PartialEq, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Component, Clone)]
pub struct DimensionGeneration {
    /// Stops the generation of new columns. Stored columns are still loaded, and columns that a thread has begun are finished.
    /// A system of a region that asks for a column within its tick still gets it.
    pub paused: bool,
    /// The average number of columns that may be begun per second of the coordinator's clock; at most a quarter of it at
    /// once. `None` means no limit. A value that is not a positive number allows no column.
    pub columns_per_second: Option<f64>,
    /// How much a viewer's heading counts, 0 to 1. The distance to a viewer is measured from its place and from the place where
    /// it will be in four seconds. The way there is added as distance, less this part of it. With 0 only the current place
    /// counts; with 1 both places count alike.
    pub heading_weight: f64,
    /// The number of tries, at least one, before a column is set aside and tried again only on demand.
    pub attempts: u32,
}

impl Default for DimensionGeneration {
    fn default() -> Self {
        Self { paused: false, columns_per_second: None, heading_weight: 0.5, attempts: 5 }
    }
}

/// Retries failed columns immediately: those that wait for another try and those that were set aside.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryColumns {
    /// The dimension.
    pub dimension: DimensionId,
    /// The column; `None` for all failed columns of the dimension.
    pub column: Option<ColumnPos>,
}

/// A column that failed to generate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedColumn {
    /// The column.
    pub column: ColumnPos,
    /// The number of tries.
    pub attempts: u32,
    /// The text of the last [`ColumnError`](crate::simulation::ColumnError), shortened.
    pub error: String,
    /// `true` if the column is tried again only on demand.
    pub set_aside: bool,
}
