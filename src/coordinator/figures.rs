//! Counts, rates and histories, for statistics and for the log. Plain data structures.

pub mod burst;
pub mod history;
pub mod rate;
pub mod tally;
pub mod totals;
