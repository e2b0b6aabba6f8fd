//! Columns that failed to generate: which are set aside, and what is said of them.

use crate::coordinator::figures::tally::Tally;
use crate::coordinator::messages::generation::FailedColumn;
use crate::generation::DistanceGraph;
use crate::space::ColumnPos;
use std::collections::VecDeque;
use std::time::Duration;

/// The pause in requests to the store during an outage.
pub const OUTAGE_PAUSE: Duration = Duration::from_secs(1);
/// The number of recent failures whose reason is kept.
const MAX_LISTED: usize = 64;
/// The maximum bytes of a kept reason.
const LONGEST_REASON: usize = 400;

/// The columns of a dimension that are tried again only on demand, and the reasons of the last failures. A plain data
/// structure of bounded size, apart from one bit for each column.
#[derive(Default)]
pub struct Failures {
    set_aside: DistanceGraph,
    /// The last failures, oldest first.
    listed: VecDeque<FailedColumn>,
}

impl Failures {
    /// Notes another failure of a column.
    pub fn note(&mut self, failed: FailedColumn) {
        if failed.set_aside {
            self.set_aside.mark_completed(failed.column);
        }
        self.listed.retain(|listed| listed.column != failed.column);
        if self.listed.len() == MAX_LISTED {
            self.listed.pop_front();
        }
        self.listed.push_back(FailedColumn { error: shortened(&failed.error), ..failed });
    }

    /// Forgets a column that now exists or is tried from the beginning. Returns `true` if it was set aside.
    pub fn forget(&mut self, column: ColumnPos) -> bool {
        self.listed.retain(|failed| failed.column != column);
        self.set_aside.unmark(column)
    }

    /// Forgets all columns, and returns those that were set aside.
    pub fn forget_all(&mut self) -> Vec<ColumnPos> {
        std::mem::take(self).set_aside.completed_columns().collect()
    }

    /// Returns `true` if the column is set aside.
    pub fn has(&self, column: ColumnPos) -> bool {
        self.set_aside.is_completed(column)
    }

    /// The number of columns set aside.
    pub fn set_aside(&self) -> u64 {
        self.set_aside.completed_count()
    }

    /// The last failures, newest first.
    pub fn list(&self) -> Vec<FailedColumn> {
        self.listed.iter().rev().cloned().collect()
    }
}

/// Failed columns, for the log.
#[derive(Default)]
pub struct ColumnComplaints {
    /// Columns that are tried again.
    pub retried: Tally,
    /// Columns that were set aside.
    pub set_aside: Tally,
    /// Columns that could not be read, and parts of columns.
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

    fn failed(x: i64, error: &str, set_aside: bool) -> FailedColumn {
        FailedColumn { column: ColumnPos::new(x, 0), attempts: 1, error: error.to_owned(), set_aside }
    }

    #[test]
    fn the_last_reasons_are_known_until_the_columns_are_there() {
        let mut failures = Failures::default();
        for set_aside in [false, true] {
            failures.note(failed(0, "no", set_aside));
        }
        failures.note(failed(1, "never", false));
        assert_eq!(failures.list(), [failed(1, "never", false), failed(0, "no", true)]);
        assert_eq!([0, 1].map(|x| failures.has(ColumnPos::new(x, 0))), [true, false]);
        assert!(failures.forget(ColumnPos::new(0, 0)) && !failures.forget(ColumnPos::new(0, 0)));
        assert_eq!((failures.list(), failures.set_aside()), (vec![failed(1, "never", false)], 0));
        failures.note(failed(7, "no", true));
        assert_eq!(failures.forget_all(), [ColumnPos::new(7, 0)]);
        assert!(failures.list().is_empty());
    }

    #[test]
    fn a_generator_that_fails_everywhere_costs_bounded_memory() {
        let mut failures = Failures::default();
        let reason = "ä".repeat(10_000);
        (0..20_000).for_each(|x| failures.note(failed(x, &reason, true)));
        assert_eq!((failures.set_aside(), failures.list().len()), (20_000, MAX_LISTED));
        assert!(failures.list().iter().all(|failed| failed.error.len() <= LONGEST_REASON + 3));
    }
}
