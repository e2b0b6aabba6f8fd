//! The requests on their way to the main world, of which only a limited number is under way.

use crate::error::{RpcError, code};
use crate::methods::{Question, Reply, Rights};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

const MOST_UNDER_WAY: usize = 32;
/// How long a region may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// What the threads share.
pub struct Shared {
    pub token: String,
    pub rights: Rights,
    jobs: SyncSender<Job>,
    pub is_closed: AtomicBool,
    pub connections: Arc<AtomicUsize>,
    under_way: Arc<AtomicUsize>,
}

/// One of a limited number. Dropping it gives it back.
pub struct Permit(Arc<AtomicUsize>);

impl Permit {
    pub fn take(taken: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let more = |taken: usize| (taken < most).then_some(taken + 1);
        taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        Some(Self(taken.clone()))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Shared {
    pub fn new(token: String, rights: Rights) -> (Arc<Self>, Receiver<Job>) {
        // There is room for all that have a permit.
        let (jobs, receiver) = sync_channel(MOST_UNDER_WAY);
        let [connections, under_way] = Default::default();
        let is_closed = AtomicBool::new(false);
        (Arc::new(Self { token, rights, jobs, is_closed, connections, under_way }), receiver)
    }

    /// Hands a question to the main world. Returns the place of its answer, and when to wait no longer.
    pub fn ask(&self, question: Question) -> Result<(Receiver<Reply>, Instant), RpcError> {
        let busy = || RpcError::new(code::BUSY, format!("{MOST_UNDER_WAY} requests are under way: ask again later"));
        let permit = Permit::take(&self.under_way, MOST_UNDER_WAY).ok_or_else(busy)?;
        let until = Instant::now() + question.length() + ANSWER_WITHIN;
        let (reply, answer) = sync_channel(1);
        self.jobs.try_send(Job { question, reply, until, permit }).map_err(|error| match error {
            TrySendError::Full(_) => busy(),
            TrySendError::Disconnected(_) => RpcError::new(code::NO_ANSWER, "the app ends"),
        })?;
        Ok((answer, until))
    }
}

/// A request on its way to the main world.
pub struct Job {
    pub question: Question,
    pub reply: SyncSender<Reply>,
    /// When the client is told that there is no answer.
    pub until: Instant,
    pub permit: Permit,
}
