//! The life of a dimension's columns: each has one state.
//!
//! | | ordered | for the store | failed | fetched | owned | leaving | halted | lost |
//! |---|---|---|---|---|---|---|---|---|
//! | a viewer or a letter needs it | | ordered | ordered, when it is due | | more slabs on order | | | |
//! | its order is answered | owned | gone | | owned | owned | | | |
//! | its order fails | failed | failed | | its rest failed | the slabs failed | | | |
//! | its order is taken back | gone | gone | | the rest on order again | as before | | | |
//! | a region fetches it within a tick | fetched | fetched | fetched | | | owned | | fetched, the rest later |
//! | some slabs are not needed any more | | | | | these leave | | | |
//! | it loses its last ticket | | | gone | | leaving, unless a part changes | | gone, once its last changes are stored | |
//! | its region gives it up, or those slabs | | | | | owned | gone | | |
//! | its region keeps it | | | | | owned | owned | | |
//! | its region halts | | | | halted | halted | halted | | |
//! | its region is restarted, or merges with a live one | | | | | | | lost | |
//! | the store has its last changes | | | | the rest is ordered | | | | ordered |
//!
//! "Gone" is a column without a state: it is only in the store, or was never generated. An empty field means no change. A
//! column that ran out of tries is gone too: `demand::failures` has the columns that are set aside.
//!
//! A column comes and goes in slabs: the whole column is one, or, in a sparse dimension, 16 chunks of it. Entities and scheduled
//! ticks belong to the column, and come with the first slab.

#[cfg(test)]
mod tests;

use crate::space::{ColumnPos, HeightSet};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::mem;
use std::time::Duration;

/// The first wait after a failure; it doubles each time.
pub const FIRST_RETRY: Duration = Duration::from_secs(1);
/// The longest wait after a failure.
pub const LAST_RETRY: Duration = Duration::from_secs(60);
/// The wait during a store outage, which is not the column's fault.
pub const OUTAGE_RETRY: Duration = Duration::from_secs(2);
/// The maximum number of failed columns that are retried. Beyond it, columns are set aside at their first failure.
pub const MAX_RETRIED: usize = 4_096;

/// The wait after this many failures.
pub fn wait_after(attempts: u32) -> Duration {
    FIRST_RETRY.saturating_mul(1 << attempts.saturating_sub(1).min(10)).min(LAST_RETRY)
}

/// The state of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnState {
    /// On its way to the region of its place.
    Ordered(Order),
    /// Being generated only for the store, without a region.
    ForStore(Order),
    /// Failed to be read or, if it is not stored, to be generated.
    Failed(Failure),
    /// Fetched by a region, which has its blocks; the rest of it is still to come.
    Fetched(Rest),
    /// In its region's inbox or world, complete.
    Owned(Rest),
    /// Its region was asked to evict it.
    Leaving,
    /// Lost with the world of a halted region, whose last changes are in this commit.
    Halted {
        /// The number of the commit.
        until: u64,
        /// `true` if it was lost before and was to be read again.
        again: bool,
    },
    /// In the place of a live region, which waits for it to be read again once the store has this commit.
    Lost {
        /// The number of the commit.
        until: u64,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Its number; 0 until it is assigned.
    pub claim: u64,
    /// The number of earlier failures of the column.
    pub attempts: u32,
    /// `true` if the column was lost and is read again.
    pub again: bool,
}

/// A failure to read or generate a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The number of failed attempts.
    pub attempts: u32,
    /// `true` if the column was lost and was to be read again.
    pub again: bool,
    /// The time of the next try. `Duration::MAX` once it may be ordered again, also for slabs.
    pub due: Duration,
}

/// The change of a part of a column while its region has the column. The part is its entities and scheduled ticks if the
/// column was fetched, and some of its slabs otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// No part changes.
    None,
    /// The part is in flight.
    Ordered(Order),
    /// The part failed to be read or generated.
    Failed(Failure),
    /// The column was lost, and its region fetched it before the store had this commit.
    After {
        /// The number of the commit.
        until: u64,
    },
    /// The region was asked to evict these slabs.
    Leaving,
}

/// The loaded chunk heights of a column in a sparse dimension.
#[derive(Debug, Default)]
pub struct Heights {
    /// The chunk heights that its region has.
    pub loaded: HeightSet,
    /// The heights that are not stored, and were not generated because generation was paused.
    pub ungenerated: HeightSet,
}

impl ColumnState {
    /// Returns `true` if it is in its region's inbox or world, or was until the region halted.
    pub fn is_in_region(self) -> bool {
        matches!(self, Self::Fetched(_) | Self::Owned(_) | Self::Leaving | Self::Halted { .. } | Self::Lost { .. })
    }

    /// Returns `true` if it is on order or with a region.
    pub fn is_under_way(self) -> bool {
        !matches!(self, Self::Failed(_))
    }

    /// The same state with another change of a part, if its region has it.
    fn with(self, rest: Rest) -> Option<Self> {
        match self {
            Self::Fetched(_) => Some(Self::Fetched(rest)),
            Self::Owned(_) => Some(Self::Owned(rest)),
            _ => None,
        }
    }

    /// Returns `true` if it was lost with a halted region and has not been read again.
    pub fn is_lost(self) -> bool {
        matches!(self, Self::Halted { .. } | Self::Lost { .. } | Self::Fetched(Rest::After { .. }))
    }

    /// Returns `true` if a live region has at least part of it.
    fn is_there(self) -> bool {
        matches!(self, Self::Fetched(_) | Self::Owned(_) | Self::Leaving)
    }

    /// The order for the column or for the rest of it.
    fn order(&mut self) -> Option<&mut Order> {
        match self {
            Self::Ordered(order) | Self::ForStore(order) => Some(order),
            Self::Fetched(Rest::Ordered(order)) | Self::Owned(Rest::Ordered(order)) => Some(order),
            _ => None,
        }
    }

    /// The number of failed attempts, if it failed.
    fn failed_attempts(self) -> u32 {
        if let Self::Failed(failure) = self { failure.attempts } else { 0 }
    }

    /// The failure of the column or of the rest of it.
    fn failure(&mut self) -> Option<&mut Failure> {
        match self {
            Self::Failed(failure) => Some(failure),
            Self::Fetched(Rest::Failed(failure)) | Self::Owned(Rest::Failed(failure)) => Some(failure),
            _ => None,
        }
    }

    /// The commit that the store must have before the column is read again.
    fn lost_until(self) -> Option<u64> {
        match self {
            Self::Lost { until } | Self::Fetched(Rest::After { until }) => Some(until),
            _ => None,
        }
    }
}

/// The state of a column, and what a question about it asks for.
#[derive(Clone, Copy, Debug)]
struct Known {
    state: ColumnState,
    /// When a state of this kind began, in seconds of the coordinator's clock.
    since: u32,
    /// The time in microseconds that a thread took to generate or load it; 0 if that is not known.
    made_in: u32,
}

/// The states of all columns that have one.
#[derive(Debug, Default)]
pub struct Columns {
    states: FxHashMap<ColumnPos, Known>,
    /// The coordinator's clock.
    pub now: Duration,
    /// The loaded heights of columns that are with a region, if the dimension is sparse.
    heights: FxHashMap<ColumnPos, Heights>,
    /// All failed columns, and possibly others.
    failed: BTreeSet<ColumnPos>,
    /// The earliest time at which a failure can be due.
    next_due: Duration,
    /// All halted and lost columns, and possibly others.
    lost: BTreeSet<ColumnPos>,
    /// Columns that are being read again.
    again: BTreeSet<ColumnPos>,
}

impl Columns {
    pub fn get(&self, column: ColumnPos) -> Option<ColumnState> {
        self.states.get(&column).map(|known| known.state)
    }

    /// How long the column has been in a state of this kind, to the second, and the time that a thread took to generate or load it.
    pub fn times(&self, column: ColumnPos) -> Option<(Duration, Option<Duration>)> {
        let Known { since, made_in, .. } = *self.states.get(&column)?;
        let made_in = (made_in > 0).then_some(Duration::from_micros(made_in.into()));
        Some((Duration::from_secs(self.now.as_secs().saturating_sub(since.into())), made_in))
    }

    /// Notes how long a thread took to generate or load a column.
    pub fn note_made(&mut self, column: ColumnPos, made_in: Duration) {
        if let Some(known) = self.states.get_mut(&column) {
            known.made_in = u32::try_from(made_in.as_micros()).unwrap_or(u32::MAX).max(1);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (ColumnPos, ColumnState)> {
        self.states.iter().map(|(column, known)| (*column, known.state))
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

    /// Returns `true` if the column is with a region, or on its way to one.
    pub fn is_resident(&self, column: ColumnPos) -> bool {
        self.get(column).is_some_and(|state| state.is_in_region() || matches!(state, ColumnState::Ordered(_)))
    }

    /// Sets the next state of a column; `None` means that it is gone.
    fn set(&mut self, column: ColumnPos, state: Option<ColumnState>) {
        if !state.is_some_and(ColumnState::is_there) {
            self.heights.remove(&column);
        }
        let Some(mut state) = state else {
            self.states.remove(&column);
            self.again.remove(&column);
            return;
        };
        if let Some(failure) = state.failure() {
            self.next_due = self.next_due.min(failure.due);
            self.failed.insert(column);
        }
        if state.is_lost() {
            self.lost.insert(column);
        }
        let is_again = match state {
            ColumnState::Halted { again, .. } => again,
            mut state => {
                state.order().is_some_and(|order| order.again) || state.failure().is_some_and(|failure| failure.again)
            }
        };
        match is_again {
            true => drop(self.again.insert(column)),
            false => drop(self.again.remove(&column)),
        }
        let now = u32::try_from(self.now.as_secs()).unwrap_or(u32::MAX);
        let known = self.states.entry(column).or_insert(Known { state, since: now, made_in: 0 });
        if mem::discriminant(&known.state) != mem::discriminant(&state) {
            known.since = now;
        }
        known.state = state;
    }

    /// Notes that the column, or more slabs of it, are needed. Returns `true` if they must be ordered, `false` if an order
    /// for the store delivers them.
    pub fn want(&mut self, column: ColumnPos) -> bool {
        let (order, is_new) = match self.get(column) {
            Some(ColumnState::Owned(rest)) => {
                let attempts = if let Rest::Failed(failure) = rest { failure.attempts } else { 0 };
                self.set(column, Some(ColumnState::Owned(Rest::Ordered(Order { attempts, ..Order::default() }))));
                return true;
            }
            Some(ColumnState::ForStore(order)) => (order, false),
            state => (Order { attempts: state.map_or(0, ColumnState::failed_attempts), ..Order::default() }, true),
        };
        self.set(column, Some(ColumnState::Ordered(order)));
        is_new
    }

    /// Notes that the column is generated for the store.
    pub fn make(&mut self, column: ColumnPos, claim: u64) {
        let attempts = self.get(column).map_or(0, ColumnState::failed_attempts);
        self.set(column, Some(ColumnState::ForStore(Order { claim, attempts, ..Order::default() })));
    }

    /// Sets the number of the order for the column, or for the rest of it.
    pub fn number(&mut self, column: ColumnPos, claim: u64) {
        if let Some(order) = self.states.get_mut(&column).and_then(|known| known.state.order()) {
            order.claim = claim;
        }
    }

    /// The state of the column that this order is for; `None` if the order is obsolete.
    pub fn awaits(&self, column: ColumnPos, claim: u64) -> Option<ColumnState> {
        self.get(column).filter(|state| { *state }.order().is_some_and(|order| order.claim == claim))
    }

    /// Returns `true` if a region or the game already waits for the column, so that its urgency does not depend on viewers.
    pub fn is_urgent(&self, column: ColumnPos) -> bool {
        match self.get(column) {
            Some(ColumnState::Fetched(_)) => true,
            Some(ColumnState::Ordered(order)) => order.again,
            _ => false,
        }
    }

    /// Notes that the complete column is with its region.
    pub fn deliver(&mut self, column: ColumnPos) {
        self.set(column, Some(ColumnState::Owned(Rest::None)));
    }

    /// Notes that a region fetched the column's blocks.
    pub fn fetch(&mut self, column: ColumnPos) {
        let rest = match self.get(column) {
            None | Some(ColumnState::ForStore(_) | ColumnState::Failed(_)) => Rest::Ordered(Order::default()),
            Some(ColumnState::Ordered(order)) => Rest::Ordered(order),
            Some(ColumnState::Halted { until, .. } | ColumnState::Lost { until }) => Rest::After { until },
            Some(ColumnState::Leaving) => return self.deliver(column),
            Some(ColumnState::Fetched(_) | ColumnState::Owned(_)) => return,
        };
        self.set(column, Some(ColumnState::Fetched(rest)));
    }

    /// Notes that the region is asked to evict the column.
    pub fn leave(&mut self, column: ColumnPos) {
        self.set(column, Some(ColumnState::Leaving));
    }

    /// Notes that the region is asked to evict some of its slabs.
    pub fn leave_in_part(&mut self, column: ColumnPos) {
        self.set(column, Some(ColumnState::Owned(Rest::Leaving)));
    }

    /// Returns `true` if the region was asked to evict the column or some of its slabs.
    pub fn is_leaving(&self, column: ColumnPos) -> bool {
        matches!(self.get(column), Some(ColumnState::Leaving | ColumnState::Owned(Rest::Leaving)))
    }

    /// Returns `true` if more slabs of the column may be ordered now.
    pub fn may_lack_slabs(&self, column: ColumnPos) -> bool {
        match self.get(column) {
            Some(ColumnState::Owned(Rest::Failed(failure))) => failure.due == Duration::MAX,
            state => state == Some(ColumnState::Owned(Rest::None)),
        }
    }

    /// Notes that the column's region halted.
    pub fn halt(&mut self, column: ColumnPos, until: u64) {
        let again = self.again.contains(&column) || self.get(column).is_some_and(|state| state.lost_until().is_some());
        self.set(column, Some(ColumnState::Halted { until, again }));
    }

    /// Notes that the column must be read again.
    pub fn lose(&mut self, column: ColumnPos, until: u64) {
        self.set(column, Some(ColumnState::Lost { until }));
    }

    /// Turns halted columns that have a live region into lost ones, and returns them.
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

    /// Notes that the column is gone.
    pub fn forget(&mut self, column: ColumnPos) {
        self.set(column, None);
    }

    /// Notes that the column, or the rest of it, failed again, to be tried again after a wait. A store outage does not count as
    /// an attempt. Returns the attempts and the wait.
    pub fn fail(&mut self, column: ColumnPos, now: Duration, is_outage: bool) -> (u32, Duration) {
        let mut state = self.get(column);
        let Order { attempts, again, .. } = state.as_mut().and_then(ColumnState::order).copied().unwrap_or_default();
        let (attempts, wait) =
            if is_outage { (attempts, OUTAGE_RETRY) } else { (attempts + 1, wait_after(attempts + 1)) };
        let is_rest = state.is_some_and(ColumnState::is_there);
        let failure = Failure { attempts, again: again && is_rest, due: now.saturating_add(wait) };
        let rest = state.and_then(|state| state.with(Rest::Failed(failure)));
        self.set(column, Some(rest.unwrap_or(ColumnState::Failed(failure))));
        (attempts, wait)
    }

    /// Columns that failed as a whole or in part, in order, each with its failure.
    fn failures(&mut self) -> Vec<(ColumnPos, ColumnState, Failure)> {
        let Self { failed, states, .. } = self;
        let mut failures = Vec::new();
        failed.retain(|column| {
            let Some(mut state) = states.get(column).map(|known| known.state) else { return false };
            let failure = state.failure().copied();
            failures.extend(failure.map(|failure| (*column, state, failure)));
            failure.is_some()
        });
        failures
    }

    /// Columns that failed, without those that are partly with a region, each with the time of its next try, or
    /// `Duration::MAX` if it may be ordered.
    pub fn failed(&mut self) -> impl Iterator<Item = (ColumnPos, Duration)> {
        let failed = self.failures().into_iter().filter(|(_, state, _)| !state.is_there());
        failed.map(|(column, _, failure)| (column, failure.due))
    }

    /// Returns `true` if one more column may fail. Makes room by forgetting columns that may be ordered again and were not.
    pub fn has_room_for_failures(&mut self) -> bool {
        if self.failed.len() <= MAX_RETRIED {
            return true;
        }
        let (over, waiting): (Vec<_>, Vec<_>) = self.failed().partition(|(_, due)| *due == Duration::MAX);
        over.into_iter().for_each(|(column, _)| self.forget(column));
        waiting.len() <= MAX_RETRIED
    }

    /// Retries the failures that are due. Returns the columns that may be ordered again, as a whole or in more slabs, and those
    /// whose rest must be ordered now.
    pub fn retry(&mut self, now: Duration) -> (Vec<ColumnPos>, Vec<ColumnPos>) {
        let (mut columns, mut rests) = (Vec::new(), Vec::new());
        if self.next_due > now {
            return (columns, rests);
        }
        self.next_due = Duration::MAX;
        for (column, state, Failure { attempts, again, due }) in self.failures() {
            if due > now {
                self.next_due = self.next_due.min(due);
                continue;
            }
            let over = Failure { attempts, again, due: Duration::MAX };
            if let ColumnState::Fetched(_) = state {
                rests.push(column);
                let order = Order { claim: 0, attempts, again };
                self.set(column, Some(ColumnState::Fetched(Rest::Ordered(order))));
            } else {
                columns.push(column);
                self.set(column, Some(state.with(Rest::Failed(over)).unwrap_or(ColumnState::Failed(over))));
            }
        }
        (columns, rests)
    }

    /// Ends the retries when the dimension closes.
    pub fn end_failures(&mut self) {
        for (column, state, _) in self.failures() {
            match state.is_there() {
                true => self.deliver(column),
                false => self.forget(column),
            }
        }
    }

    /// Returns `true` if the column, or part of it, failed and waits for another try or is being tried again.
    pub fn has_failed(&self, column: ColumnPos) -> bool {
        let Some(mut state) = self.get(column) else { return false };
        state.failure().is_some_and(|failure| failure.due < Duration::MAX)
            || state.order().is_some_and(|order| order.attempts > 0)
    }

    /// Columns that are lost, in order, each with the commit that the store must have before it is read again.
    pub fn lost(&mut self) -> Vec<(ColumnPos, u64)> {
        let Self { lost, states, .. } = self;
        let mut found = Vec::new();
        lost.retain(|column| {
            let state = states.get(column).map(|known| known.state);
            found.extend(state.and_then(ColumnState::lost_until).map(|until| (*column, until)));
            state.is_some_and(ColumnState::is_lost)
        });
        found
    }

    /// Orders a lost column again; if a region has its blocks, only the rest.
    pub fn read_again(&mut self, column: ColumnPos) {
        let order = Order { again: true, ..Order::default() };
        let rest = self.get(column).and_then(|state| state.with(Rest::Ordered(order)));
        self.set(column, Some(rest.unwrap_or(ColumnState::Ordered(order))));
    }

    /// Returns `true` if lost columns are being read again, or will be once their region, which halted again, is revived.
    pub fn is_reading_again(&self) -> bool {
        !self.again.is_empty()
    }

    /// The loaded heights of a column in a sparse dimension, if its region has some of it.
    pub fn heights(&self, column: ColumnPos) -> Option<&Heights> {
        self.heights.get(&column)
    }

    /// The same for changes, of a column that is with its region.
    pub fn heights_mut(&mut self, column: ColumnPos) -> Option<&mut Heights> {
        self.get(column).filter(|state| state.is_there())?;
        Some(self.heights.entry(column).or_default())
    }

    /// Makes left-out heights wanted again when generation resumes. Returns their columns.
    pub fn resume(&mut self) -> Vec<ColumnPos> {
        let left_out = self.heights.iter_mut().filter(|(_, heights)| !heights.ungenerated.is_empty());
        left_out.map(|(column, heights)| (*column, heights.ungenerated = HeightSet::new()).0).collect()
    }
}
