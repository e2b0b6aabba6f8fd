//! Pre-generations: areas that are generated and stored without being loaded into a region.
//!
//! A pre-generation walks over the batches of its area, nearest to the centre first, and orders the columns that the stored
//! graph misses.

use crate::coordinator::dimension::OpenDimension;
use crate::coordinator::messages::events::ColumnFailed;
use crate::coordinator::messages::jobs::{JobProgress, Pregeneration};
use crate::coordinator::publish::Publisher;
use crate::coordinator::stream::orders::Orders;
use crate::generation::DistanceGraph;
use crate::simulation::ColumnError;
use crate::space::{AreaBatches, AreaCursor, BatchPos, ColumnPos, DimensionId};
use crate::storage::StoredPregeneration;
use bevy::prelude::*;
use std::collections::BTreeMap;
use std::mem;
use std::time::Duration;

/// The number of batches that a pre-generation looks at in one pass, at most.
const MAX_LOOKED_AT: usize = 1 << 14;
/// How often a column is tried before it counts as failed.
const TRIES: u32 = 3;
/// The wait after the first failure, doubled after each further one. Also the wait for columns that others have ordered.
const RETRY: Duration = Duration::from_secs(1);
/// While this many columns wait for a retry, no new ones are tried.
const MAX_WAITING: usize = 1_024;
/// The number of failed columns that are logged; later ones are reported by messages only.
const MAX_COMPLAINTS: u32 = 10;

/// One pre-generation. Every stored column counts as done, even one that was generated for a viewer. So if the process ends at
/// any moment, only the position of the walk is lost.
pub struct Sweep {
    /// The order, with the area and the dimension.
    pub order: Pregeneration,
    /// The dimension and the number under which it is stored, once its dimension has been open.
    pub place: Option<(DimensionId, u64)>,
    batches: AreaBatches,
    /// `true` once the walk has reached its end.
    is_swept: bool,
    /// The columns in flight, and how often each has failed.
    in_flight: BTreeMap<ColumnPos, u32>,
    /// The columns that wait for a retry: when, and how often each has failed.
    waiting: BTreeMap<(Duration, ColumnPos), u32>,
    total: u128,
    done: u64,
    failed: u64,
    /// The number of completed columns in the stored graph when `done` was last correct.
    counted_at: Option<u64>,
    complaints: u32,
}

impl Sweep {
    pub fn new(order: Pregeneration) -> Self {
        let (in_flight, waiting) = Default::default();
        Self {
            order,
            place: None,
            batches: order.area.batches(),
            is_swept: false,
            in_flight,
            waiting,
            total: order.area.columns(),
            done: 0,
            failed: 0,
            counted_at: None,
            complaints: 0,
        }
    }

    /// Begins or continues in a dimension that was opened.
    pub fn begin(&mut self, dimension: &OpenDimension, number: u64, cursor: AreaCursor) {
        let batches = AreaBatches::from_cursor(self.order.area, cursor);
        let (place, complaints) = (Some((dimension.id, number)), self.complaints);
        *self = Self { place, batches, complaints, ..Self::new(self.order) };
        self.recount(&dimension.land.stored);
    }

    /// The record for the store, with the position of the nearest batch that is not settled.
    pub fn to_stored(&self, paused: bool, elapsed: Duration) -> StoredPregeneration {
        let area = self.order.area;
        let open = self.in_flight.keys().chain(self.waiting.keys().map(|(_, column)| column));
        let open = open.map(|column| AreaCursor::at(&area, column.batch()));
        let cursor = open.min().unwrap_or(self.batches.cursor()).min(self.batches.cursor());
        StoredPregeneration { area, cursor, paused, elapsed }
    }

    pub fn measure(&self, progress: &mut JobProgress) {
        (progress.done, progress.total, progress.failed) = (self.done, self.total, self.failed);
    }

    fn may_complain(&mut self) -> bool {
        self.complaints = self.complaints.saturating_add(1);
        if self.complaints == MAX_COMPLAINTS {
            warn!("more failed columns of the pre-generation of a {} are not logged", self.order.area);
        }
        self.complaints <= MAX_COMPLAINTS
    }

    /// Checks the columns in flight. Reports those that failed for good, with the reason.
    pub fn settle(&mut self, dimension: &mut OpenDimension, publisher: &mut Publisher) {
        let OpenDimension { id, columns, .. } = dimension;
        let (now, stored, for_jobs) =
            (&dimension.time.real_now, &mut dimension.land.stored, &mut dimension.orders.for_jobs);
        let is_settled = |column: &ColumnPos| stored.is_completed(*column) || !columns.is_under_way(*column);
        let settled: Vec<_> = self.in_flight.extract_if(.., |column, _| is_settled(column)).collect();
        for (column, failed) in settled {
            let error = for_jobs.remove(&column).flatten();
            if stored.is_completed(column) {
                self.done += 1;
                self.counted_at = self.counted_at.map(|counted| counted + 1);
            } else if error.as_ref().is_some_and(ColumnError::is_outage) {
                // The column itself did not fail.
                self.waiting.insert((now.saturating_add(RETRY), column), failed);
            } else if failed + 1 < TRIES {
                self.waiting.insert((now.saturating_add(RETRY * (1 << failed)), column), failed + 1);
            } else {
                self.failed += 1;
                let error = error.unwrap_or(ColumnError::Unanswered(column));
                if self.may_complain() {
                    error!("{id}: the pre-generation skips a column: {error}");
                }
                publisher.event(ColumnFailed { dimension: *id, column, error, attempts: TRIES, set_aside: true });
            }
        }
    }

    /// Orders up to `share` columns, nearest first. Returns how many it ordered.
    pub fn order(&mut self, dimension: &mut OpenDimension, share: usize, orders: &mut Orders) -> usize {
        let share = share.min(dimension.orders.generation.allowance(dimension.time.real_now));
        let (mut ordered, mut looks) = (0, MAX_LOOKED_AT);
        while ordered < share
            && let Some((batch, wanted)) = self.next_order(dimension, &mut looks)
        {
            ordered += wanted.len();
            dimension.orders.generation.bucket.take(wanted.len());
            dimension.orders.for_jobs.extend(wanted.iter().map(|column| (*column, None)));
            orders.order_for_store(dimension, batch, wanted);
        }
        ordered
    }

    /// Gives up the columns in flight at the end of the job or of its dimension.
    pub fn leave(&mut self, dimension: &mut OpenDimension) {
        mem::take(&mut self.in_flight).keys().for_each(|column| _ = dimension.orders.for_jobs.remove(column));
    }

    /// The next columns to order: of one batch, nearest first. Looks at `looks` batches at most.
    fn next_order(&mut self, ground: &OpenDimension, looks: &mut usize) -> Option<(BatchPos, Vec<ColumnPos>)> {
        if let Some((column, failures)) = self.next_retry(ground) {
            self.in_flight.insert(column, failures);
            return Some((column.batch(), vec![column]));
        }
        while *looks > 0 && self.waiting.len() < MAX_WAITING {
            *looks -= 1;
            let Some((batch, mask)) = self.batches.next() else {
                self.is_swept = true;
                return None;
            };
            let columns = self.take_free(ground, batch, mask & !ground.land.stored.completed_in_batch(batch));
            if !columns.is_empty() {
                self.in_flight.extend(columns.iter().map(|column| (*column, 0)));
                return Some((batch, columns));
            }
        }
        None
    }

    fn next_retry(&mut self, ground: &OpenDimension) -> Option<(ColumnPos, u32)> {
        let now = ground.time.real_now;
        loop {
            let first = self.waiting.first_entry().filter(|first| first.key().0 <= now)?;
            let ((_, column), failures) = first.remove_entry();
            if ground.land.stored.is_completed(column) {
                continue;
            }
            if !ground.columns.is_under_way(column) {
                return Some((column, failures));
            }
            self.waiting.insert((now.saturating_add(RETRY), column), failures);
        }
    }

    /// The columns of the batch that are not ordered yet, nearest first. The others are checked again later.
    fn take_free(&mut self, ground: &OpenDimension, batch: BatchPos, missing: u16) -> Vec<ColumnPos> {
        let missing = (0..16).filter(|bit| missing >> bit & 1 == 1).map(|bit| batch.column(bit));
        let (busy, mut free): (Vec<_>, Vec<_>) = missing.partition(|column| ground.columns.is_under_way(*column));
        let later = ground.time.real_now.saturating_add(RETRY);
        self.waiting.extend(busy.into_iter().map(|column| ((later, column), 0)));
        let center = self.order.area.center();
        free.sort_by_key(|column| column.distance_squared(center));
        free
    }

    /// Returns `true` if nothing is left to do. If columns behind the walk are missing, the walk begins again.
    pub fn is_finished(&mut self, stored: &DistanceGraph) -> bool {
        if !self.is_swept || !self.in_flight.is_empty() || !self.waiting.is_empty() {
            return false;
        }
        self.recount(stored);
        if self.total.saturating_sub(self.done.into()) <= self.failed.into() {
            return true;
        }
        // They were unmarked meanwhile, or were in flight when an earlier session ended.
        self.batches = self.order.area.batches();
        self.is_swept = false;
        self.failed = 0;
        false
    }

    /// Returns `true` if columns of the dimension were completed since the last count.
    pub fn is_outdated(&self, stored: &DistanceGraph) -> bool {
        self.counted_at != Some(stored.completed_count())
    }

    /// Recounts the stored columns of the area, since others complete some of them too.
    pub fn recount(&mut self, stored: &DistanceGraph) {
        self.done = stored.count_completed_in(&self.order.area);
        self.counted_at = Some(stored.completed_count());
    }
}
