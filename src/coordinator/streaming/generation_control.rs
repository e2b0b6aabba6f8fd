//! How ground is generated in a dimension: settings of the game, and what the coordinator keeps to go by them.

use super::failed_columns::Failures;
use super::token_bucket::TokenBucket;
use super::turns::Turns;
use crate::coordinator::statistics::rate::RecentRate;
use crate::space::ColumnPos;
use bevy::prelude::*;
use std::time::Duration;

/// How ground is generated in a dimension: a component of its entity in the main world, which can be changed at any time.
///
/// Without it the plugin's settings hold.
#[derive(Component, Clone, Copy, Debug, PartialEq, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Component, Clone)]
pub struct DimensionGeneration {
    /// Nothing new is generated. What is stored is loaded as before, and what a thread has begun is finished. A system
    /// of a region that asks for a column within its tick gets it all the same.
    pub paused: bool,
    /// Columns that may be begun in a second of the coordinator's clock, on the average; a quarter of that at once.
    /// `None` for as many as can be done; what is not a positive number lets nothing through.
    pub columns_per_second: Option<f64>,
    /// How much it counts where a viewer is heading, 0 to 1. Work is near to a viewer if it is near to where it is, or to
    /// where it will be in four seconds; the way there counts as distance, less this part of it. With 0 only the place
    /// counts, with 1 both places count alike.
    pub heading_weight: f64,
    /// How often a column is tried before it is set aside and tried again on demand only; at least once.
    pub attempts: u32,
}

impl Default for DimensionGeneration {
    fn default() -> Self {
        Self { paused: false, columns_per_second: None, heading_weight: 0.5, attempts: 5 }
    }
}

/// Has columns that could not be generated tried again at once, those that wait for another try and those that were set
/// aside.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryColumns {
    /// The dimension's entity.
    pub dimension: Entity,
    /// The column; `None` for all of the dimension that failed.
    pub column: Option<ColumnPos>,
}

/// What the coordinator keeps for the generation of one dimension.
#[derive(Default)]
pub struct GenerationState {
    pub settings: DimensionGeneration,
    pub turns: Turns,
    pub failures: Failures,
    /// Columns that were generated since it was opened.
    pub generated: u64,
    pub rate: RecentRate,
    pub bucket: TokenBucket,
}

impl GenerationState {
    pub fn new(settings: DimensionGeneration) -> Self {
        Self { settings, ..Self::default() }
    }

    /// How many columns more may be begun now.
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
