//! How messages reach the coordinator, and the data that it shares with the main world. Neither side ever waits.
//!
//! A request of the main world names the system of the coordinator that answers it. Results from other threads come back in
//! the same way: as a function that runs in the coordinator's world.

use crate::coordinator::figures::totals::FrameTimes;
use crate::coordinator::messages::published::Published;
use crate::coordinator::threads::columns::ColumnsReady;
use crate::coordinator::threads::regions::{FinishedTasks, TaskDone};
use crate::storage::Commit;
use bevy::platform::cell::SyncCell;
use bevy::prelude::*;
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::mem;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant};

/// Work in the coordinator's world.
type Work = Box<dyn FnOnce(&mut World) + Send>;

/// An event that reaches the coordinator.
pub enum Event {
    /// Work for the next pass, in order of arrival.
    Do(Work),
    TasksDone(Arc<FinishedTasks>),
    ColumnsReady(ColumnsReady),
    Committed(Box<Commit>),
    Shutdown,
}

/// Sends events to the coordinator, from any thread.
#[derive(Clone)]
pub struct Notifier(Sender<Event>);

/// Makes the channel to the coordinator.
pub fn channel() -> (Notifier, Inbound) {
    let (events, inbound) = unbounded();
    (Notifier(events), Inbound::new(inbound))
}

impl Notifier {
    pub fn send(&self, event: Event) {
        // The coordinator is gone only while the app shuts down.
        let _ = self.0.send(event);
    }

    /// Runs `work` in the coordinator's world, in its next pass.
    pub fn run(&self, work: impl FnOnce(&mut World) + Send + 'static) {
        self.send(Event::Do(Box::new(work)));
    }

    /// Runs a system of the coordinator with a request, in its next pass.
    pub fn request<T: Send + 'static, M: 'static>(
        &self,
        system: impl IntoSystem<In<T>, (), M> + Send + 'static,
        request: T,
    ) {
        self.run(move |world| {
            if let Err(error) = world.run_system_cached_with(system, request) {
                error!("a request to the coordinator could not be handled: {error}");
            }
        });
    }
}

/// Events that the coordinator has not handled yet.
#[derive(Resource)]
pub struct Inbound {
    events: Receiver<Event>,
    work: SyncCell<Vec<Work>>,
    pub tasks: SyncCell<Vec<TaskDone>>,
    pub columns: Vec<ColumnsReady>,
    pub commits: Vec<Commit>,
    pub is_shutting_down: bool,
}

impl Inbound {
    pub fn new(events: Receiver<Event>) -> Self {
        let (work, tasks) = (SyncCell::new(Vec::new()), SyncCell::new(Vec::new()));
        Self { events, work, tasks, columns: Vec::new(), commits: Vec::new(), is_shutting_down: false }
    }

    /// Receives all waiting events.
    pub fn receive(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            self.push(event);
        }
    }

    /// Waits for an event and receives it. Returns `false` if none came in time, or if none can come any more.
    pub fn wait_until(&mut self, until: Option<Instant>) -> bool {
        let event = match until {
            Some(until) => self.events.recv_deadline(until).ok(),
            None => self.events.recv().ok(),
        };
        let has_come = event.is_some();
        event.into_iter().for_each(|event| self.push(event));
        has_come
    }

    fn push(&mut self, event: Event) {
        match event {
            Event::Do(work) => self.work.get().push(work),
            Event::TasksDone(done) => done.take(self.tasks.get()),
            Event::ColumnsReady(ready) => self.columns.push(ready),
            Event::Committed(commit) => self.commits.push(*commit),
            Event::Shutdown => self.is_shutting_down = true,
        }
    }
}

/// Runs the requested work in the order in which it was sent.
pub fn do_work(world: &mut World) {
    for work in mem::take(world.resource_mut::<Inbound>().work.get()) {
        work(world);
    }
}

/// The main world's end of the exchange.
#[derive(Resource, Clone)]
pub struct MainLink {
    pub notifier: Notifier,
    pub published: Arc<Mutex<Published>>,
    pub frames: Arc<FrameTimes>,
    /// The id of the last job.
    pub last_job: Arc<AtomicU64>,
}

impl MainLink {
    pub fn new(notifier: Notifier) -> Self {
        Self { notifier, published: Arc::default(), frames: Arc::default(), last_job: Arc::default() }
    }

    /// A link for an app without a world; all requests are dropped.
    pub fn to_nowhere() -> Self {
        Self::new(channel().0)
    }

    /// Runs a system of the coordinator with a request, in its next pass, in the order of the calls. After the coordinator has
    /// ended, requests are dropped.
    pub(crate) fn request<T: Send + 'static, M: 'static>(
        &self,
        system: impl IntoSystem<In<T>, (), M> + Send + 'static,
        request: T,
    ) {
        self.notifier.request(system, request);
    }

    /// Notes how long a frame of the main world took, without the wait for the next one.
    pub fn note_frame(&self, took: Duration) {
        self.frames.note(took);
    }

    /// Takes the published changes, unless the coordinator is writing to them at this moment; then the next frame takes them.
    pub fn take_published(&self) -> Option<Published> {
        let mut published = match self.published.try_lock() {
            Ok(published) => published,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(mem::take(&mut *published))
    }
}
