//! [`Stop`]: ends long work early.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends long work early, from any of its clones.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Stops the work at the next opportunity.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if the work was stopped.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The return value for a progress callback.
    pub fn go_on(&self) -> ControlFlow<()> {
        if self.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
