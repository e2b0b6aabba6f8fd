//! The connections for reads.

use crate::connection::{Connection, Database};
use crate::failure::{Failure, Kind};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A bounded number of connections, which are opened when they are first needed.
pub(crate) struct Pool {
    /// The connections that nothing uses; a slot without a connection may open one.
    idle: Mutex<Vec<Option<Connection>>>,
    returned: Condvar,
}

impl Pool {
    pub fn new(connections: usize) -> Self {
        let slots = (0..connections.max(1)).map(|_| None).collect();
        Self { idle: Mutex::new(slots), returned: Condvar::new() }
    }

    /// A pool of this connection only.
    pub fn of(connection: Option<Connection>) -> Self {
        Self { idle: Mutex::new(vec![connection]), returned: Condvar::new() }
    }

    /// Runs `act` on a connection until it succeeds, fails for good, or the database's patience ends.
    pub fn with<T>(
        &self,
        database: &Database,
        act: impl FnMut(&mut Connection, Duration) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let deadline = Instant::now() + database.patience;
        let mut slot = self.take(database.patience)?;
        let done = database.persist(&mut slot, deadline, act);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // The last slot is taken first, so open connections stay in use and empty slots stay empty.
        let place = if slot.is_some() { idle.len() } else { 0 };
        idle.insert(place, slot);
        self.returned.notify_one();
        done
    }

    fn take(&self, patience: Duration) -> Result<Option<Connection>, Failure> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.returned.wait_timeout_while(idle, patience, |idle| idle.is_empty());
        let (mut idle, _) = waited.unwrap_or_else(PoisonError::into_inner);
        idle.pop().ok_or_else(|| Failure::new(Kind::Busy, "all connections for reads are in use"))
    }
}
