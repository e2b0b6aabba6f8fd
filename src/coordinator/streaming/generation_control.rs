//! How ground is generated in a dimension: the game's settings, and the coordinator's state for them.

use super::failed_columns::Failures;
use super::token_bucket::TokenBucket;
use super::turns::Turns;
use crate::coordinator::statistics::rate::RecentRate;
use crate::space::{ColumnPos, DimensionId};
use bevy::prelude::*;
use std::time::Duration;

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

/// The coordinator's state of the generation of one dimension.
#[derive(Default)]
pub struct GenerationState {
    pub settings: DimensionGeneration,
    pub turns: Turns,
    pub failures: Failures,
    /// Columns that were generated since the dimension was opened.
    pub generated: u64,
    pub rate: RecentRate,
    pub bucket: TokenBucket,
}

impl GenerationState {
    pub fn new(settings: DimensionGeneration) -> Self {
        Self { settings, ..Self::default() }
    }

    /// The number of columns that may still be begun now.
    pub fn allowance(&mut self, now: Duration) -> usize {
        let available = self.bucket.available(self.settings.columns_per_second, now);
        if self.settings.paused { 0 } else { available }
    }

    /// The part of the way ahead that does not count.
    pub fn heading_weight(&self) -> f64 {
        let weight = self.settings.heading_weight;
        if weight > 0.0 { weight.min(1.0) } else { 0.0 }
    }
}
