//! Common operations on a running game.

use super::{update_until, walkers};
use bevy_terrane::prelude::*;
use bevy_terrane::region::RegionizerConfig;
use std::time::{Duration, Instant};

/// The place of most tests.
pub const HERE: BlockPos = BlockPos::new(0, 5, 0);

/// Removes dead sections soon, so that regions split within a test.
pub fn parting_soon() -> RegionizerConfig {
    RegionizerConfig { recalculation_section_count: 4, max_dead_section_percent: 0.1, ..default() }
}

/// Updates the app for this time.
pub fn run_for(app: &mut App, span: Duration) {
    let end = Instant::now() + span;
    update_until(app, "the time is over", |_| Instant::now() >= end);
}

/// The names of the mirrored walkers, sorted.
pub fn names(app: &mut App) -> Vec<String> {
    walkers(app.world_mut()).into_iter().map(|(name, _)| name).collect()
}
