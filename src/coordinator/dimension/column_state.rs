//! The life of a dimension's columns: each has one state.
//!
//! | | ordered | for the store | failed | owned | leaving | halted | lost |
//! |---|---|---|---|---|---|---|---|
//! | a viewer or a letter wants it | | ordered | ordered, when it is due | | | | |
//! | its order is answered | owned | gone | | owned, whole | | | |
//! | its order fails | failed | gone | | owned, its rest failed | | | |
//! | its order is taken back | gone | gone | | owned, the rest on order anew | | | |
//! | a region fetches it within a tick | owned, the rest on order | the same | the same | | owned | | owned, the rest later |
//! | nobody holds it | | | gone | leaving, if it is whole | | gone, when its last changes are stored | |
//! | its region gives it up | | | | | gone | | |
//! | its region keeps it | | | | | owned | | |
//! | its region halts | | | | halted | halted | | |
//! | its region is restarted, or merges with a live one | | | | | | lost | |
//! | the store has the last changes of it | | | | | | | ordered |
//!
//! Gone is a column without a state: it is only in the store, or was never generated. An empty field is no change. A column that
//! could not be generated has no state either: `streaming::failed_columns` has those.

#[cfg(test)]
mod tests;

use crate::space::ColumnPos;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::time::Duration;

/// Where a column is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnState {
    /// It is on its way to the region of its place.
    Ordered(Order),
    /// It is generated to be stored, for no region.
    ForStore {
        /// The order.
        claim: u64,
    },
    /// It could not be read.
    Failed(Failure),
    /// In its region's inbox or world.
    Owned(Rest),
    /// Its region was asked to give it up.
    Leaving,
    /// It went with the world of a halted region, whose last changes are in this commit.
    Halted {
        /// The number of the commit.
        until: u64,
        /// It was lost before, and was to be read again.
        again: bool,
    },
    /// A live region has its place, and waits for it to be read again as soon as the store has this commit.
    Lost {
        /// The number of the commit.
        until: u64,
    },
}

/// An order for a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Its number; 0 until it is given.
    pub claim: u64,
    /// How often the column could not be read before.
    pub attempts: u32,
    /// The column was lost, and is read again.
    pub again: bool,
}

/// A column could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// So often.
    pub attempts: u32,
    /// The column was lost, and was to be read again.
    pub again: bool,
    /// When it is tried again. `Duration::MAX` once it may be ordered again.
    pub due: Duration,
}

/// How the rest of a column is doing whose blocks a region has: its entities, its scheduled ticks, other heights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// All of the column is there.
    None,
    /// It is on its way.
    Ordered(Order),
    /// It could not be read.
    Failed(Failure),
    /// The column was lost, and its region fetched it before the store had this commit.
    After {
        /// The number of the commit.
        until: u64,
    },
}

impl ColumnState {
    /// Whether it is in its region's inbox or world, or was until that halted.
    pub fn is_in_region(self) -> bool {
        matches!(self, Self::Owned(_) | Self::Leaving | Self::Halted { .. } | Self::Lost { .. })
    }

    /// Whether an order for it is out, or it is with a region.
    pub fn is_under_way(self) -> bool {
        !matches!(self, Self::Failed(_))
    }

    /// Whether it went with a halted region, and has not been read again.
    pub fn is_lost(self) -> bool {
        matches!(self, Self::Halted { .. } | Self::Lost { .. } | Self::Owned(Rest::After { .. }))
    }

    /// The order for the column or for the rest of it.
    fn order(&mut self) -> Option<&mut Order> {
        match self {
            Self::Ordered(order) | Self::Owned(Rest::Ordered(order)) => Some(order),
            _ => None,
        }
    }

    /// The column, or the rest of it, could not be read.
    fn failure(&mut self) -> Option<&mut Failure> {
        match self {
            Self::Failed(failure) | Self::Owned(Rest::Failed(failure)) => Some(failure),
            _ => None,
        }
    }

    /// The commit that the store must have before it is read again.
    fn lost_until(self) -> Option<u64> {
        match self {
            Self::Lost { until } | Self::Owned(Rest::After { until }) => Some(until),
            _ => None,
        }
    }
}

/// The states of all columns that have one.
#[derive(Debug, Default)]
pub struct Columns {
    states: FxHashMap<ColumnPos, ColumnState>,
    /// Columns that failed, and perhaps others.
    failed: BTreeSet<ColumnPos>,
    /// Columns that halted or are lost, and perhaps others.
    lost: BTreeSet<ColumnPos>,
    /// Columns that are being read again.
    again: BTreeSet<ColumnPos>,
}

impl Columns {
    pub fn get(&self, column: ColumnPos) -> Option<ColumnState> {
        self.states.get(&column).copied()
    }

    pub fn iter(&self) -> impl Iterator<Item = (ColumnPos, ColumnState)> {
        self.states.iter().map(|(column, state)| (*column, *state))
    }

    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    pub fn is_under_way(&self, column: ColumnPos) -> bool {
        self.get(column).is_some_and(ColumnState::is_under_way)
    }

    pub fn is_in_region(&self, column: ColumnPos) -> bool {
        self.get(column).is_some_and(ColumnState::is_in_region)
    }

    /// Whether the column is with a region, or on its way to one.
    pub fn is_resident(&self, column: ColumnPos) -> bool {
        self.get(column).is_some_and(|state| state.is_in_region() || matches!(state, ColumnState::Ordered(_)))
    }

    /// Gives a column its next state; `None` if it is gone.
    fn set(&mut self, column: ColumnPos, state: Option<ColumnState>) {
        let Some(mut state) = state else {
            self.states.remove(&column);
            self.again.remove(&column);
            return;
        };
        if state.failure().is_some() {
            self.failed.insert(column);
        }
        if state.is_lost() {
            self.lost.insert(column);
        }
        let is_again = match state {
            ColumnState::Ordered(order) | ColumnState::Owned(Rest::Ordered(order)) => order.again,
            ColumnState::Failed(failure) | ColumnState::Owned(Rest::Failed(failure)) => failure.again,
            ColumnState::Halted { again, .. } => again,
            _ => false,
        };
        match is_again {
            true => drop(self.again.insert(column)),
            false => drop(self.again.remove(&column)),
        }
        self.states.insert(column, state);
    }

    /// Somebody wants the column. `true` if it is to be ordered, `false` if it comes from an order for the store.
    pub fn want(&mut self, column: ColumnPos) -> bool {
        let (order, is_new) = match self.get(column) {
            Some(ColumnState::ForStore { claim }) => (Order { claim, ..Order::default() }, false),
            Some(ColumnState::Failed(Failure { attempts, .. })) => (Order { attempts, ..Order::default() }, true),
            _ => (Order::default(), true),
        };
        self.set(column, Some(ColumnState::Ordered(order)));
        is_new
    }

    /// The column is generated to be stored.
    pub fn make(&mut self, column: ColumnPos, claim: u64) {
        self.set(column, Some(ColumnState::ForStore { claim }));
    }

    /// The order for the column, or for the rest of it, has this number.
    pub fn number(&mut self, column: ColumnPos, claim: u64) {
        if let Some(order) = self.states.get_mut(&column).and_then(ColumnState::order) {
            order.claim = claim;
        }
    }

    /// Where the column is that this order is for; `None` if the order does not count any more.
    pub fn awaits(&self, column: ColumnPos, claim: u64) -> Option<ColumnState> {
        self.get(column).filter(|state| match *state {
            ColumnState::ForStore { claim: made } => made == claim,
            mut state => state.order().is_some_and(|order| order.claim == claim),
        })
    }

    /// Whether the order for the column does not come from its nearest viewer: a region or the game has waited for it before.
    pub fn is_urgent(&self, column: ColumnPos) -> bool {
        match self.get(column) {
            Some(ColumnState::Owned(_)) => true,
            Some(ColumnState::Ordered(order)) => order.again,
            _ => false,
        }
    }

    /// The column is with its region, with all that there is of it.
    pub fn deliver(&mut self, column: ColumnPos) {
        self.set(column, Some(ColumnState::Owned(Rest::None)));
    }

    /// A region fetched the column's blocks.
    pub fn fetch(&mut self, column: ColumnPos) {
        let rest = match self.get(column) {
            None | Some(ColumnState::ForStore { .. } | ColumnState::Failed(_)) => Rest::Ordered(Order::default()),
            Some(ColumnState::Ordered(order)) => Rest::Ordered(order),
            Some(ColumnState::Owned(rest)) => rest,
            Some(ColumnState::Leaving) => Rest::None,
            Some(ColumnState::Halted { until, .. } | ColumnState::Lost { until }) => Rest::After { until },
        };
        self.set(column, Some(ColumnState::Owned(rest)));
    }

    /// The region is asked to give the column up.
    pub fn leave(&mut self, column: ColumnPos) {
        self.set(column, Some(ColumnState::Leaving));
    }

    /// The column's region halted.
    pub fn halt(&mut self, column: ColumnPos, until: u64) {
        let again = self.again.contains(&column) || self.get(column).is_some_and(|state| state.lost_until().is_some());
        self.set(column, Some(ColumnState::Halted { until, again }));
    }

    /// The column is to be read again.
    pub fn lose(&mut self, column: ColumnPos, until: u64) {
        self.set(column, Some(ColumnState::Lost { until }));
    }

    /// Those of the halted columns that have a live region now are lost. Gives them.
    pub fn revive(&mut self, is_alive: impl Fn(ColumnPos) -> bool) -> FxHashSet<ColumnPos> {
        let halted = self.lost.iter().filter(|column| is_alive(**column));
        let halted = halted.filter_map(|column| match self.get(*column) {
            Some(ColumnState::Halted { until, .. }) => Some((*column, until)),
            _ => None,
        });
        let halted: Vec<_> = halted.collect();
        halted.iter().for_each(|(column, until)| self.lose(*column, *until));
        halted.into_iter().map(|(column, _)| column).collect()
    }

    /// The column is gone.
    pub fn forget(&mut self, column: ColumnPos) {
        self.set(column, None);
    }

    /// The column, or the rest of it, could not be read once more, and is tried again after the wait for so many attempts. Gives
    /// the attempts and the wait.
    pub fn fail(&mut self, column: ColumnPos, now: Duration, wait: impl Fn(u32) -> Duration) -> (u32, Duration) {
        let state = self.states.get_mut(&column);
        let is_rest = matches!(state, Some(ColumnState::Owned(_)));
        let Order { attempts, again, .. } = state.and_then(ColumnState::order).copied().unwrap_or_default();
        let (attempts, wait) = (attempts + 1, wait(attempts + 1));
        let failure = Failure { attempts, again: again && is_rest, due: now.saturating_add(wait) };
        let next = if is_rest { ColumnState::Owned(Rest::Failed(failure)) } else { ColumnState::Failed(failure) };
        self.set(column, Some(next));
        (attempts, wait)
    }

    /// Columns that could not be read, in order, with the failure of each and whether a region has its blocks.
    fn failures(&mut self) -> Vec<(ColumnPos, Failure, bool)> {
        let Self { failed, states, .. } = self;
        let mut failures = Vec::new();
        failed.retain(|column| {
            let state = states.get(column).copied();
            let failure = state.and_then(|mut state| state.failure().copied());
            failures.extend(failure.map(|failure| (*column, failure, matches!(state, Some(ColumnState::Owned(_))))));
            failure.is_some()
        });
        failures
    }

    /// Forgets failed columns that are not wanted any more, and gives them.
    pub fn forget_failures(&mut self, is_wanted: impl Fn(ColumnPos) -> bool) -> Vec<ColumnPos> {
        let failures = self.failures().into_iter().filter(|(column, _, is_rest)| !is_rest && !is_wanted(*column));
        let forgotten: Vec<_> = failures.map(|(column, ..)| column).collect();
        forgotten.iter().for_each(|column| self.forget(*column));
        forgotten
    }

    /// Retries the failures that are due. Gives the columns that may be ordered again, and those whose rest must be ordered now.
    pub fn retry(&mut self, now: Duration) -> (Vec<ColumnPos>, Vec<ColumnPos>) {
        let (mut columns, mut rests) = (Vec::new(), Vec::new());
        for (column, failure @ Failure { attempts, again, due }, is_rest) in self.failures() {
            if due > now {
                continue;
            }
            let next = match is_rest {
                true => ColumnState::Owned(Rest::Ordered(Order { claim: 0, attempts, again })),
                false => ColumnState::Failed(Failure { due: Duration::MAX, ..failure }),
            };
            self.set(column, Some(next));
            if is_rest { rests.push(column) } else { columns.push(column) }
        }
        (columns, rests)
    }

    /// The dimension closes: what could not be read is not tried again.
    pub fn end_failures(&mut self) {
        for (column, _, is_rest) in self.failures() {
            match is_rest {
                true => self.deliver(column),
                false => self.forget(column),
            }
        }
    }

    /// Whether the column could not be read, or is being read once more since then.
    pub fn has_failed(&self, column: ColumnPos) -> bool {
        let Some(mut state) = self.get(column) else { return false };
        state.failure().is_some() || state.order().is_some_and(|order| order.attempts > 0)
    }

    /// Columns that are lost, in order, each with the commit that the store must have before it is read again.
    pub fn lost(&mut self) -> Vec<(ColumnPos, u64)> {
        let Self { lost, states, .. } = self;
        let mut found = Vec::new();
        lost.retain(|column| {
            let state = states.get(column).copied();
            found.extend(state.and_then(ColumnState::lost_until).map(|until| (*column, until)));
            state.is_some_and(ColumnState::is_lost)
        });
        found
    }

    /// A lost column is read again; if a region has its blocks, the rest is.
    pub fn read_again(&mut self, column: ColumnPos) {
        let order = Order { again: true, ..Order::default() };
        let is_fetched = matches!(self.get(column), Some(ColumnState::Owned(_)));
        let next = if is_fetched { ColumnState::Owned(Rest::Ordered(order)) } else { ColumnState::Ordered(order) };
        self.set(column, Some(next));
    }

    /// Whether lost columns are being read again, or will be when their region, which halted once more, lives again.
    pub fn is_reading_again(&self) -> bool {
        !self.again.is_empty()
    }
}
