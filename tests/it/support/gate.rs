//! A gate that blocks threads, instead of sleeps.

use bevy::prelude::Resource;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Threads wait at the gate while it is closed, and the test sees that they do. It is open at first.
#[derive(Resource, Clone, Default)]
pub struct Gate(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    opened: Condvar,
}

#[derive(Default)]
struct State {
    is_closed: bool,
    waiting: usize,
}

/// A failed test may leave the gate closed, and a thread that waits at it must still end.
const DEADLINE: Duration = Duration::from_secs(120);

impl Gate {
    pub fn close(&self) {
        self.0.state.lock().unwrap().is_closed = true;
    }

    pub fn open(&self) {
        self.0.state.lock().unwrap().is_closed = false;
        self.0.opened.notify_all();
    }

    /// The number of waiting threads.
    pub fn waiting(&self) -> usize {
        self.0.state.lock().unwrap().waiting
    }

    /// Waits until the gate is open.
    pub fn pass(&self) {
        let mut state = self.0.state.lock().unwrap();
        state.waiting += 1;
        let (mut state, wait) = self.0.opened.wait_timeout_while(state, DEADLINE, |state| state.is_closed).unwrap();
        state.waiting -= 1;
        drop(state);
        assert!(!wait.timed_out(), "the gate was not opened for {DEADLINE:?}");
    }
}
