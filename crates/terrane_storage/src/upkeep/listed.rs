//! Lists of bounded length for findings of unbounded number.

use serde::{Deserialize, Serialize};

/// The maximum length of a list: reports are held in memory, and some are written repeatedly.
const MAX_LISTED: usize = 1_000;

/// A list of findings, cut off after the first thousand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed<T> {
    /// The first thousand, in the order in which they were found.
    pub first: Vec<T>,
    /// The number of further findings.
    pub more: u64,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self { first: Vec::new(), more: 0 }
    }
}

impl<T> Listed<T> {
    pub(super) fn add(&mut self, found: T) {
        match self.first.len() < MAX_LISTED {
            true => self.first.push(found),
            false => self.more += 1,
        }
    }

    pub(super) fn append(&mut self, other: Self) {
        other.first.into_iter().for_each(|found| self.add(found));
        self.more += other.more;
    }

    /// The total number of findings.
    pub fn count(&self) -> u64 {
        self.first.len() as u64 + self.more
    }

    /// Returns `true` if there are no findings.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }
}
