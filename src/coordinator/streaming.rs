//! Which ground is ordered, and how fast: the nearest first, over all viewers and dimensions.
//!
//! `stream` runs it in each pass.

pub(super) mod failed_columns;
pub(super) mod generation_control;
pub(super) mod generation_requests;
pub(super) mod heading;
pub(super) mod holding;
pub(super) mod nearest;
pub(super) mod order_queue;
pub(super) mod orders;
pub(super) mod outlook;
pub(super) mod pacing;
pub(super) mod progress;
pub(super) mod rebuild;
pub(super) mod shares;
pub(super) mod slabs;
pub(super) mod tickets;
pub(super) mod token_bucket;
pub(super) mod turns;
pub(super) mod viewer_limits;
