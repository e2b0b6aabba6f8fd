//! Columns that could not be generated: when each is tried again, and which are set aside.

use crate::coordinator::tally::Tally;
use crate::generation::DistanceGraph;
use crate::space::ColumnPos;
use std::collections::BTreeMap;
use std::time::Duration;

/// The first wait after a failure; it doubles each time.
pub const FIRST_RETRY: Duration = Duration::from_secs(1);
/// The longest wait after a failure.
pub const LAST_RETRY: Duration = Duration::from_secs(60);
/// The wait while the store does not work, which is no fault of the column.
pub const OUTAGE_RETRY: Duration = Duration::from_secs(2);
/// No more is asked of the store for so long when it does not work.
pub const OUTAGE_PAUSE: Duration = Duration::from_secs(1);
/// Columns that wait for another try. A generator that fails everywhere has the others set aside at their first failure.
const MAX_RETRIED: usize = 4_096;
/// Columns that are set aside and of which the reason is still known: the last ones.
const MAX_LISTED: usize = 64;
/// Bytes of a reason that are kept.
const LONGEST_REASON: usize = 400;

/// A column that could not be generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedColumn {
    /// The column.
    pub column: ColumnPos,
    /// How often it was tried.
    pub attempts: u32,
    /// The text of the last [`ColumnError`](crate::simulation::ColumnError), shortened.
    pub error: String,
    /// It is not tried again before somebody asks for it.
    pub given_up: bool,
}

/// The wait after so many failures.
pub fn wait_after(attempts: u32) -> Duration {
    FIRST_RETRY.saturating_mul(1 << attempts.saturating_sub(1).min(10)).min(LAST_RETRY)
}

/// What comes of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub attempts: u32,
    /// When it is tried again; `None` if it is set aside.
    pub retry_in: Option<Duration>,
}

#[derive(Clone, Debug)]
struct Retried {
    attempts: u32,
    error: String,
    /// `None` while it is tried again, or may be.
    due: Option<Duration>,
}

/// All failures of a dimension. A plain data structure, of bounded size but for one bit for each column that is set aside.
#[derive(Default)]
pub struct Failures {
    retried: BTreeMap<ColumnPos, Retried>,
    /// Those that wait and not those that are tried again.
    waiting: usize,
    next_due: Option<Duration>,
    set_aside: DistanceGraph,
    /// The last ones that were set aside, the oldest first.
    listed: Vec<FailedColumn>,
}

impl Failures {
    /// A column failed once more; it is set aside when it was tried `most_attempts` times.
    pub fn note(&mut self, column: ColumnPos, error: &str, now: Duration, most_attempts: u32) -> Verdict {
        let attempts = self.forget_retry(column).map_or(0, |retried| retried.attempts).saturating_add(1);
        self.set(column, attempts, error, now, (attempts < most_attempts).then(|| wait_after(attempts)))
    }

    /// The store does not work at this moment: the column is tried again soon, and this try does not count.
    pub fn note_outage(&mut self, column: ColumnPos, error: &str, now: Duration) -> Verdict {
        let attempts = self.forget_retry(column).map_or(0, |retried| retried.attempts);
        self.set(column, attempts, error, now, Some(OUTAGE_RETRY))
    }

    fn set(
        &mut self,
        column: ColumnPos,
        attempts: u32,
        error: &str,
        now: Duration,
        retry_in: Option<Duration>,
    ) -> Verdict {
        let error = shortened(error);
        let Some(wait) = retry_in.filter(|_| self.has_room()) else {
            self.set_aside.mark_completed(column);
            self.listed.retain(|failed| failed.column != column);
            if self.listed.len() == MAX_LISTED {
                self.listed.remove(0);
            }
            self.listed.push(FailedColumn { column, attempts, error, given_up: true });
            return Verdict { attempts, retry_in: None };
        };
        let due = now.saturating_add(wait);
        self.next_due = Some(self.next_due.map_or(due, |next| next.min(due)));
        self.waiting += 1;
        self.retried.insert(column, Retried { attempts, error, due: Some(due) });
        Verdict { attempts, retry_in: Some(wait) }
    }

    /// Makes room by forgetting who may be tried again and has not failed since; says whether there is room.
    fn has_room(&mut self) -> bool {
        if self.retried.len() >= MAX_RETRIED && self.waiting < self.retried.len() {
            self.retried.retain(|_, retried| retried.due.is_some());
        }
        self.retried.len() < MAX_RETRIED
    }

    fn forget_retry(&mut self, column: ColumnPos) -> Option<Retried> {
        let retried = self.retried.remove(&column)?;
        self.waiting -= usize::from(retried.due.is_some());
        Some(retried)
    }

    /// The columns that are to be tried again now. How often they failed is remembered until they are there.
    pub fn take_due(&mut self, now: Duration) -> Vec<ColumnPos> {
        if self.next_due.is_none_or(|due| due > now) {
            return Vec::new();
        }
        let mut due = Vec::new();
        self.next_due = None;
        for (column, retried) in &mut self.retried {
            match retried.due {
                Some(at) if at <= now => {
                    retried.due = None;
                    due.push(*column);
                }
                Some(at) => self.next_due = Some(self.next_due.map_or(at, |next| next.min(at))),
                None => {}
            }
        }
        self.waiting -= due.len();
        due
    }

    /// The column is there, however that came.
    pub fn forget(&mut self, column: ColumnPos) {
        if self.is_empty() {
            return;
        }
        self.forget_retry(column);
        if self.set_aside.unmark(column) {
            self.listed.retain(|failed| failed.column != column);
        }
    }

    /// The column is tried again from the start, if it failed; says whether it did.
    pub fn retry(&mut self, column: ColumnPos) -> bool {
        let failed = self.retried.contains_key(&column) || self.set_aside.is_completed(column);
        self.forget(column);
        failed
    }

    /// All columns that wait or are set aside are tried again from the start.
    pub fn retry_all(&mut self) -> Vec<ColumnPos> {
        let failures = std::mem::take(self);
        let waiting = failures.retried.into_iter().filter(|(_, retried)| retried.due.is_some());
        let waiting: Vec<_> = waiting.map(|(column, _)| column).collect();
        waiting.into_iter().chain(failures.set_aside.completed_columns()).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.retried.is_empty() && self.set_aside.completed_count() == 0
    }

    /// Whether the column waits for another try.
    pub fn is_waiting(&self, column: ColumnPos) -> bool {
        self.retried.get(&column).is_some_and(|retried| retried.due.is_some())
    }

    /// Whether the column failed, and waits for another try or for a demand.
    pub fn has(&self, column: ColumnPos) -> bool {
        self.is_waiting(column) || self.set_aside.is_completed(column)
    }

    /// How many wait for another try.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many are set aside.
    pub fn set_aside(&self) -> u64 {
        self.set_aside.completed_count()
    }

    /// The last ones that were set aside, the newest first, then some that wait for another try.
    pub fn list(&self) -> Vec<FailedColumn> {
        let waiting = self.retried.iter().filter(|(_, retried)| retried.due.is_some());
        let waiting = waiting.map(|(column, retried)| {
            let Retried { attempts, error, .. } = retried.clone();
            FailedColumn { column: *column, attempts, error, given_up: false }
        });
        self.listed.iter().rev().cloned().chain(waiting).take(MAX_LISTED).collect()
    }
}

/// What is to be logged of columns that could not be had.
#[derive(Default)]
pub struct ColumnComplaints {
    /// Those that are generated once more.
    pub retried: Tally,
    /// Those that are not.
    pub set_aside: Tally,
    /// Those that could not be read, and parts of columns.
    pub unread: Tally,
}

fn shortened(error: &str) -> String {
    let end = (0..=LONGEST_REASON.min(error.len())).rev().find(|end| error.is_char_boundary(*end));
    let start = &error[..end.unwrap_or_default()];
    if start.len() < error.len() { format!("{start}...") } else { start.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(x: i64) -> ColumnPos {
        ColumnPos::new(x, 0)
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn waits_double_until_it_is_set_aside() {
        let mut failures = Failures::default();
        let mut now = Duration::ZERO;
        for (attempts, wait) in [(1, 1), (2, 2), (3, 4)] {
            let verdict = failures.note(at(0), "no", now, 4);
            assert_eq!(verdict, Verdict { attempts, retry_in: Some(seconds(wait)) });
            assert_eq!(failures.take_due(now + seconds(wait) - Duration::from_millis(1)), []);
            now += seconds(wait);
            assert_eq!(failures.take_due(now), [at(0)]);
            assert_eq!(failures.waiting(), 0);
        }
        assert_eq!(failures.note(at(0), "no", now, 4), Verdict { attempts: 4, retry_in: None });
        assert_eq!((failures.set_aside(), failures.take_due(now + seconds(9_999))), (1, Vec::new()));
        let error = "no".to_owned();
        assert_eq!(failures.list(), [FailedColumn { column: at(0), attempts: 4, error, given_up: true }]);
        assert_eq!(wait_after(u32::MAX), LAST_RETRY);
    }

    #[test]
    fn an_outage_of_the_store_sets_nothing_aside() {
        let mut failures = Failures::default();
        failures.note(at(0), "no", Duration::ZERO, 2);
        for second in 1..100 {
            let verdict = failures.note_outage(at(0), "the disk is gone", seconds(second));
            assert_eq!(verdict, Verdict { attempts: 1, retry_in: Some(OUTAGE_RETRY) });
        }
        assert_eq!(failures.note(at(0), "no", seconds(100), 2).retry_in, None, "its own faults count as before");
    }

    #[test]
    fn what_is_there_or_tried_on_demand_begins_anew() {
        let mut failures = Failures::default();
        failures.note(at(0), "no", Duration::ZERO, 5);
        failures.note(at(1), "no", Duration::ZERO, 1);
        assert_eq!(failures.take_due(seconds(1)), [at(0)]);
        failures.forget(at(0));
        assert_eq!(failures.note(at(0), "no", Duration::ZERO, 5).attempts, 1);
        assert!(!failures.retry(at(7)) && failures.retry(at(1)));
        assert_eq!(failures.set_aside(), 0);
        failures.note(at(1), "no", Duration::ZERO, 1);
        assert_eq!(failures.retry_all(), [at(0), at(1)]);
        assert!(failures.is_empty() && failures.list().is_empty());
    }

    #[test]
    fn a_generator_that_fails_everywhere_costs_bounded_memory() {
        let mut failures = Failures::default();
        let reason = "ä".repeat(10_000);
        for x in 0..20_000 {
            failures.note(at(x), &reason, Duration::ZERO, 5);
        }
        assert_eq!(failures.waiting(), MAX_RETRIED);
        assert_eq!(failures.set_aside(), 20_000 - MAX_RETRIED as u64);
        assert_eq!(failures.list().len(), MAX_LISTED);
        assert!(failures.list().iter().all(|failed| failed.error.len() <= LONGEST_REASON + 3));
        assert!(failures.set_aside.memory() < 100_000);
        // Those that are tried again make room.
        assert_eq!(failures.take_due(seconds(1)).len(), MAX_RETRIED);
        assert_eq!(failures.note(at(30_000), "no", seconds(1), 5).retry_in, Some(seconds(1)));
        assert_eq!(failures.retry_all().len(), 1 + 20_000 - MAX_RETRIED);
    }
}
