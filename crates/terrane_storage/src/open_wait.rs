//! Waiting while something else still has a world open.

use crate::servers::TERM;
use std::fmt;
use std::ops::ControlFlow;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(50);

/// How long an opening waits for something else that has the world open: a process that is just ending, the session of a
/// database, which ends a moment after its client, or servers whose last heartbeats are still on their way. The log
/// says what the opening waits for. Once the time is over, the opening fails with an error that names it.
///
/// One wait is for one opening. Its time begins when the opening has to wait.
pub struct OpenWait<'a> {
    longest: Duration,
    term: Duration,
    began: Option<Instant>,
    logged: String,
    tell: Box<dyn FnMut(&str) -> ControlFlow<()> + 'a>,
}

impl<'a> OpenWait<'a> {
    /// The longest time that an opening waits by default.
    pub const LONGEST: Duration = Duration::from_secs(5);

    /// A wait of at most `longest`. Meanwhile `tell` is called about every 50 ms with what is waited for. If it breaks, the
    /// opening fails as if the time was over.
    pub fn new(longest: Duration, tell: impl FnMut(&str) -> ControlFlow<()> + 'a) -> Self {
        Self { longest, term: TERM, began: None, logged: String::new(), tell: Box::new(tell) }
    }

    /// Another time than [`TERM`] after which a silent server counts as dead. Only for tests: all servers must agree on it.
    #[doc(hidden)]
    pub fn with_term(self, term: Duration) -> Self {
        Self { term, ..self }
    }

    /// Repeats `attempt` while it fails because something else has the world open.
    pub fn retry<T, E: fmt::Display>(
        &mut self,
        is_in_use: impl Fn(&E) -> bool,
        mut attempt: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        loop {
            let done = attempt();
            match &done {
                Err(error) if is_in_use(error) && !self.is_over() && self.rest(PAUSE, &error.to_string()) => {}
                _ => return done,
            }
        }
    }

    /// The time after which a silent server counts as dead.
    pub(crate) fn term(&self) -> Duration {
        self.term
    }

    /// Returns `true` if the time is over. It begins with the first call.
    pub(crate) fn is_over(&mut self) -> bool {
        self.began.get_or_insert_with(Instant::now).elapsed() >= self.longest
    }

    /// Waits for `time`, also after the whole time is over. Returns `false` if the wait was broken.
    pub(crate) fn rest(&mut self, time: Duration, reason: &str) -> bool {
        if self.logged != reason {
            tracing::info!("waiting: {reason}");
            self.logged = reason.to_owned();
        }
        let begin = Instant::now();
        loop {
            if (self.tell)(reason).is_break() {
                return false;
            }
            match time.saturating_sub(begin.elapsed()) {
                Duration::ZERO => return true,
                left => sleep(left.min(PAUSE)),
            }
        }
    }
}

impl Default for OpenWait<'_> {
    fn default() -> Self {
        Self::new(Self::LONGEST, |_| ControlFlow::Continue(()))
    }
}

impl fmt::Debug for OpenWait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenWait").field("longest", &self.longest).finish_non_exhaustive()
    }
}
