//! Counts, rates and histories, for statistics and for the log. Plain data structures.

pub mod history;
pub mod tally;
pub mod totals;
