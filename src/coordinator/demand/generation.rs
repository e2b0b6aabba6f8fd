//! How ground is generated in a dimension: the game's settings, and the coordinator's state for them.

use crate::coordinator::demand::failures::Failures;
use crate::coordinator::demand::token_bucket::TokenBucket;
use crate::coordinator::demand::turns::Turns;
use crate::coordinator::figures::rate::RecentRate;
use crate::coordinator::messages::generation::DimensionGeneration;
use std::time::Duration;

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
