//! One pre-generation: what it orders next, and what came of what it ordered.

use super::progress::Samples;
use super::progress::{PROGRESS_PERIOD, PregenerationProgress, PregenerationState, PregenerationStatus};
use crate::coordinator::dimension::column_state::Columns;
use crate::generation::DistanceGraph;
use crate::simulation::ColumnError;
use crate::space::{AreaBatches, AreaCursor, BatchPos, ColumnArea, ColumnPos};
use crate::storage::StoredPregeneration;
use bevy::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

/// How often a column is tried before it counts as failed.
pub const TRIES: u32 = 3;
/// The wait after the first failure; it doubles each time. Also the wait for what somebody else has ordered.
const RETRY: Duration = Duration::from_secs(1);
/// With so many columns that wait to be tried again, nothing new is tried.
const MAX_WAITING: usize = 1_024;
/// Failed columns of which the log tells; the others are told in messages alone.
const MAX_COMPLAINTS: u32 = 10;

/// What a job has to know of its dimension.
pub struct JobView<'a> {
    pub stored: &'a DistanceGraph,
    pub columns: &'a Columns,
}

impl JobView<'_> {
    fn is_on_its_way(&self, column: ColumnPos) -> bool {
        self.columns.is_under_way(column)
    }
}

pub struct Job {
    pub entity: Option<Entity>,
    pub area: ColumnArea,
    pub is_paused: bool,
    state: PregenerationState,
    batches: AreaBatches,
    /// The walk has come to its end.
    is_swept: bool,
    /// Columns on order, and how often each has failed.
    in_flight: BTreeMap<ColumnPos, u32>,
    /// Columns to look at again, when, and how often each has failed.
    waiting: BTreeMap<(Duration, ColumnPos), u32>,
    total: u128,
    done: u64,
    failed: u64,
    /// How many columns the stored graph had completed when `done` was right.
    counted_at: u64,
    elapsed: Duration,
    last_pass: Option<Duration>,
    samples: Samples,
    /// When the main world is told next.
    due: Duration,
    complaints: u32,
}

impl Job {
    pub fn restore(entry: StoredPregeneration, stored: &DistanceGraph) -> Self {
        let StoredPregeneration { area, cursor, is_paused, elapsed } = entry;
        Self {
            entity: None,
            area,
            is_paused,
            state: PregenerationState::Waiting,
            batches: AreaBatches::from_cursor(area, cursor),
            is_swept: false,
            in_flight: BTreeMap::new(),
            waiting: BTreeMap::new(),
            total: area.columns(),
            done: stored.count_completed_in(&area),
            failed: 0,
            counted_at: stored.completed_count(),
            elapsed,
            last_pass: None,
            samples: Samples::default(),
            due: Duration::ZERO,
            complaints: 0,
        }
    }

    /// As it is kept: with the place of the nearest batch that is not settled.
    pub fn to_stored(&self) -> StoredPregeneration {
        let open = self.in_flight.keys().chain(self.waiting.keys().map(|(_, column)| column));
        let open = open.map(|column| AreaCursor::at(&self.area, column.batch()));
        let cursor = open.min().unwrap_or(self.batches.cursor()).min(self.batches.cursor());
        StoredPregeneration { area: self.area, cursor, is_paused: self.is_paused, elapsed: self.elapsed }
    }

    pub fn state(&self) -> PregenerationState {
        self.state
    }

    pub fn set_state(&mut self, state: PregenerationState) {
        if self.state != state {
            self.state = state;
            self.samples.clear();
            self.tell();
        }
    }

    /// Whether the column is on order for it.
    pub fn has_ordered(&self, column: ColumnPos) -> bool {
        self.in_flight.contains_key(&column)
    }

    /// Columns that it has on order.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// The main world is told with the next pass.
    pub fn tell(&mut self) {
        self.due = Duration::ZERO;
    }

    pub fn pass_time(&mut self, now: Duration) {
        let last = self.last_pass.replace(now).unwrap_or(now);
        if self.state == PregenerationState::Running {
            self.elapsed += now.saturating_sub(last);
        }
    }

    pub fn may_complain(&mut self) -> bool {
        self.complaints = self.complaints.saturating_add(1);
        if self.complaints == MAX_COMPLAINTS {
            warn!("more failed columns of the pre-generation of a {} are not logged", self.area);
        }
        self.complaints <= MAX_COMPLAINTS
    }

    /// Looks at the columns on order. Gives those that failed for good, and why.
    pub fn settle(
        &mut self,
        now: Duration,
        ground: &JobView,
        failures: &BTreeMap<ColumnPos, ColumnError>,
    ) -> Vec<(ColumnPos, ColumnError)> {
        let is_settled = |column: &ColumnPos| ground.stored.is_completed(*column) || !ground.is_on_its_way(*column);
        let settled: Vec<_> = self.in_flight.extract_if(.., |column, _| is_settled(column)).collect();
        let mut given_up = Vec::new();
        for (column, failed) in settled {
            if ground.stored.is_completed(column) {
                self.done += 1;
                self.counted_at += 1;
            } else if failures.get(&column).is_some_and(ColumnError::is_outage) {
                // No fault of the column.
                self.waiting.insert((now.saturating_add(RETRY), column), failed);
            } else if failed + 1 < TRIES {
                self.waiting.insert((now.saturating_add(RETRY * (1 << failed)), column), failed + 1);
            } else {
                self.failed += 1;
                let error = failures.get(&column).cloned().unwrap_or(ColumnError::Unanswered(column));
                given_up.push((column, error));
            }
        }
        given_up
    }

    /// What is to be ordered next: columns of one batch, nearest first. Looks at `looks` batches at most.
    pub fn next_order(
        &mut self,
        now: Duration,
        ground: &JobView,
        looks: &mut usize,
    ) -> Option<(BatchPos, Vec<ColumnPos>)> {
        if let Some((column, failures)) = self.next_retry(now, ground) {
            self.in_flight.insert(column, failures);
            return Some((column.batch(), vec![column]));
        }
        while *looks > 0 && self.waiting.len() < MAX_WAITING {
            *looks -= 1;
            let Some((batch, mask)) = self.batches.next() else {
                self.is_swept = true;
                return None;
            };
            let columns = self.take_free(now, ground, batch, mask & !ground.stored.completed_in_batch(batch));
            if !columns.is_empty() {
                self.in_flight.extend(columns.iter().map(|column| (*column, 0)));
                return Some((batch, columns));
            }
        }
        None
    }

    fn next_retry(&mut self, now: Duration, ground: &JobView) -> Option<(ColumnPos, u32)> {
        loop {
            let first = self.waiting.first_entry().filter(|first| first.key().0 <= now)?;
            let ((_, column), failures) = first.remove_entry();
            if ground.stored.is_completed(column) {
                continue;
            }
            if !ground.is_on_its_way(column) {
                return Some((column, failures));
            }
            self.waiting.insert((now.saturating_add(RETRY), column), failures);
        }
    }

    /// Those columns of the batch that nobody has ordered, nearest first. The others are looked at again later.
    fn take_free(&mut self, now: Duration, ground: &JobView, batch: BatchPos, missing: u16) -> Vec<ColumnPos> {
        let missing = (0..16).filter(|bit| missing >> bit & 1 == 1).map(|bit| batch.column(bit));
        let (busy, mut free): (Vec<_>, Vec<_>) = missing.partition(|column| ground.is_on_its_way(*column));
        let later = now.saturating_add(RETRY);
        self.waiting.extend(busy.into_iter().map(|column| ((later, column), 0)));
        let center = self.area.center();
        free.sort_by_key(|column| column.distance_squared(center));
        free
    }

    /// Whether nothing is left to do. If columns are missing that the walk went past, it begins again.
    pub fn is_finished(&mut self, stored: &DistanceGraph) -> bool {
        let is_at_end = self.is_swept && self.in_flight.is_empty() && self.waiting.is_empty();
        if !is_at_end || self.state != PregenerationState::Running {
            return false;
        }
        self.recount(stored);
        if self.total.saturating_sub(self.done.into()) <= self.failed.into() {
            return true;
        }
        // They were unmarked meanwhile, or were on their way when an earlier session ended.
        self.batches = self.area.batches();
        self.is_swept = false;
        self.failed = 0;
        false
    }

    /// Whether the main world is to be told of it now, four times a second while it runs.
    pub fn is_due(&mut self, now: Duration, stored: &DistanceGraph) -> bool {
        let has_changed = self.state == PregenerationState::Running || self.counted_at != stored.completed_count();
        if now < self.due || self.due != Duration::ZERO && !has_changed {
            return false;
        }
        self.due = now.saturating_add(PROGRESS_PERIOD);
        if self.counted_at != stored.completed_count() {
            self.recount(stored);
        }
        if self.state == PregenerationState::Running {
            self.samples.push(now, self.done);
        }
        true
    }

    /// Others complete columns of the area too.
    pub fn recount(&mut self, stored: &DistanceGraph) {
        self.done = stored.count_completed_in(&self.area);
        self.counted_at = stored.completed_count();
    }

    pub fn status(&self, dimension: Entity) -> PregenerationStatus {
        let progress = PregenerationProgress {
            state: self.state,
            done: self.done,
            total: self.total,
            failed: self.failed,
            columns_per_second: self.samples.rate(),
            elapsed: self.elapsed,
        };
        PregenerationStatus { entity: self.entity, dimension, area: self.area, progress }
    }
}
