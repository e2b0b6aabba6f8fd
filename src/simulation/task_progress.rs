//! The progress of a region thread's current task, for monitoring.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The progress of a region's task. The region thread writes it, the coordinator reads it.
#[derive(Debug, Default)]
pub struct TaskProgress {
    /// Nanoseconds from `ORIGIN` to the task's start; 0 while it waits for a thread.
    began: AtomicU64,
    step: AtomicU8,
    schedules: OnceLock<Vec<String>>,
}

/// A point in time before every task.
static ORIGIN: OnceLock<Instant> = OnceLock::new();

/// The names of the steps before and after the game's schedules, by number.
const STEPS: [&str; 6] =
    ["waiting for a thread", "making the region's world", "absorbing", "receiving", "sending", "splitting"];

/// The crate's own steps of a task, without the game's schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskStep {
    Waiting,
    Making,
    Absorbing,
    Receiving,
    Sending,
    Splitting,
}

impl TaskProgress {
    pub(super) fn pass(&self, step: TaskStep) {
        // Only shown to people: no other memory depends on it.
        self.step.store(step as u8, Ordering::Relaxed);
    }

    /// Reports that the schedule with this number in the tick's order begins.
    pub(super) fn pass_schedule(&self, number: usize) {
        let number = u8::try_from(number + STEPS.len()).unwrap_or(u8::MAX);
        self.step.store(number, Ordering::Relaxed);
    }

    pub(super) fn begin(&self) {
        let since = ORIGIN.get_or_init(Instant::now).elapsed().as_nanos();
        self.began.store(u64::try_from(since).unwrap_or(u64::MAX).max(1), Ordering::Relaxed);
    }

    /// Resets the progress. Must be called before the task goes to a region thread.
    pub fn reset(&self) {
        self.began.store(0, Ordering::Relaxed);
        self.pass(TaskStep::Waiting);
    }

    pub(super) fn name_schedules(&self, names: impl FnOnce() -> Vec<String>) {
        self.schedules.get_or_init(names);
    }

    /// The running time of the task; zero while it waits for a thread.
    pub fn running_for(&self) -> Duration {
        let began = Duration::from_nanos(self.began.load(Ordering::Relaxed));
        if began.is_zero() {
            return Duration::ZERO;
        }
        ORIGIN.get_or_init(Instant::now).elapsed().saturating_sub(began)
    }

    /// The name of the current step.
    pub fn step(&self) -> String {
        let number = usize::from(self.step.load(Ordering::Relaxed));
        let schedule = |number: usize| self.schedules.get()?.get(number).cloned();
        match STEPS.get(number) {
            Some(step) => (*step).to_owned(),
            None => schedule(number - STEPS.len()).unwrap_or_else(|| "running the game's schedules".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_shows_its_place_and_its_duration() {
        let progress = TaskProgress::default();
        assert_eq!((progress.step().as_str(), progress.running_for()), ("waiting for a thread", Duration::ZERO));
        progress.name_schedules(|| vec!["First".into(), "RegionTick".into()]);
        progress.begin();
        progress.pass_schedule(1);
        assert_eq!(progress.step(), "RegionTick");
        while progress.running_for() == Duration::ZERO {}
        progress.pass_schedule(200);
        assert_eq!(progress.step(), "running the game's schedules");
        progress.reset();
        assert_eq!((progress.step().as_str(), progress.running_for()), ("waiting for a thread", Duration::ZERO));
    }
}
