//! A gate that holds up threads, in place of sleeps.

use bevy::prelude::Resource;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Who comes to it while it is closed waits until it is opened; whoever tests sees that somebody waits. It begins open.
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

/// A test that failed may leave it closed, and a thread that waits at it must end all the same.
const DEADLINE: Duration = Duration::from_secs(120);

impl Gate {
    pub fn close(&self) {
        self.0.state.lock().unwrap().is_closed = true;
    }

    pub fn open(&self) {
        self.0.state.lock().unwrap().is_closed = false;
        self.0.opened.notify_all();
    }

    /// How many wait at it.
    pub fn waiting(&self) -> usize {
        self.0.state.lock().unwrap().waiting
    }

    /// Goes through, as soon as it is open.
    pub fn pass(&self) {
        let mut state = self.0.state.lock().unwrap();
        state.waiting += 1;
        let (mut state, wait) = self.0.opened.wait_timeout_while(state, DEADLINE, |state| state.is_closed).unwrap();
        state.waiting -= 1;
        drop(state);
        assert!(!wait.timed_out(), "the gate was not opened for {DEADLINE:?}");
    }
}
