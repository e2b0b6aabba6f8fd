//! Runs that go on by themselves have to know when to go on.

use std::time::{Duration, Instant};

/// Frames that nothing may change before all has come to rest.
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
    /// How long the step takes.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// To be asked each frame: whether all has been done for some time.
    pub fn is_calm(&mut self, is_done: bool) -> bool {
        self.calm = if is_done { self.calm + 1 } else { 0 };
        self.calm >= CALM
    }
}
