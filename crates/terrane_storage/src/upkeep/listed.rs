//! Lists of what there may be any number of.

use serde::{Deserialize, Serialize};

/// What a list has at most: reports are held in memory, and some are written again and again.
const MAX_LISTED: usize = 1_000;

/// What was found of something that there may be any number of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed<T> {
    /// The first thousand, as they were found.
    pub first: Vec<T>,
    /// How many more there are than those.
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

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.first.len() as u64 + self.more
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }
}
