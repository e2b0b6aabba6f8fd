//! Finding out when an automatic run can continue.

use std::time::{Duration, Instant};

/// The number of frames without changes after which everything counts as settled.
const CALM: u32 = 20;

/// Watches a step of a run.
pub struct Watch {
    began: Instant,
    calm: u32,
}

impl Default for Watch {
    fn default() -> Self {
        Self { began: Instant::now(), calm: 0 }
    }
}

impl Watch {
    /// The duration of the step so far.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns `true` if `is_done` has been true for some time. Must be called in each frame.
    pub fn is_calm(&mut self, is_done: bool) -> bool {
        self.calm = if is_done { self.calm + 1 } else { 0 };
        self.calm >= CALM
    }
}
