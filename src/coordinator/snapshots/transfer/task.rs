//! The state of a job that all of its phases share.

use super::columns::{Columns, Piece};
use crate::coordinator::messages::jobs::{JobId, JobProgress, JobState};
use crate::coordinator::messages::snapshots::JobError;
use crate::coordinator::messages::snapshots::{
    AfterCrash, EntityRestore, RestoreSnapshot, SnapshotOrder, SnapshotSource,
};
use crate::coordinator::messages::snapshots::{ColumnOutcome, ColumnResult, JobOutcome};
use crate::coordinator::saves::{Moment, Saves};
use crate::coordinator::snapshots::records::Record;
use crate::coordinator::surroundings::Surroundings;
use crate::region::RegionId;
use crate::simulation::{ColumnAnswer, ColumnError};
use crate::snapshot::{BlockFilter, Snapshot, SnapshotParts};
use crate::space::{BlockBox, ColumnPos, DimensionId};
use crate::work::Stop;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use uuid::Uuid;

/// The stored places of a snapshot's entities.
pub struct StoredPlaces {
    places: BTreeMap<Uuid, Option<(DimensionId, ColumnPos)>>,
    moment: Moment,
}

impl StoredPlaces {
    /// The answer to a question about these entities that began at this moment.
    pub fn new(wanted: &[Uuid], mut found: BTreeMap<Uuid, (DimensionId, ColumnPos)>, moment: Moment) -> Self {
        Self { places: wanted.iter().map(|id| (*id, found.remove(id))).collect(), moment }
    }

    /// Notes what was stored since the question, or since the last call.
    pub fn renew(&mut self, saves: &mut Saves) {
        for (id, now) in saves.renew(&mut self.moment) {
            if let Some(place) = self.places.get_mut(&id) {
                *place = now;
            }
        }
    }

    /// The place of an entity in the store, with what is on its way there.
    pub fn place(&self, id: Uuid, saves: &Saves) -> Option<(DimensionId, ColumnPos)> {
        match saves.missed_entity(&self.moment, id) {
            Some(record) => record.as_ref().map(|record| (record.dimension, record.column())),
            None => self.places.get(&id).copied().flatten(),
        }
    }
}

/// The largest number of columns of a job: 1,024 by 1,024.
const MAX_COLUMNS: u128 = 1 << 20;
/// The largest number of chunk heights of a restore in a sequence.
const MAX_HEIGHTS: u64 = 4_096;

pub struct Task {
    pub id: JobId,
    pub dimension: DimensionId,
    pub area: BlockBox,
    /// `true` for a restore that resumes after an interruption.
    pub is_resumed: bool,
    pub order: Arc<SnapshotOrder>,
    /// The record of a restore until all of its changes are saved.
    pub record: Option<Record>,
    /// The snapshot to restore, once it is in memory.
    pub snapshot: Option<Arc<Snapshot>>,
    pub filter: Arc<BlockFilter>,
    /// The steps of the sequence that remain.
    pub steps: VecDeque<Vec<Piece>>,
    /// The captured part so far, for a capture or for the undo of a restore.
    pub captured: Arc<Snapshot>,
    /// The entities that were removed from the box.
    pub removed: BTreeSet<Uuid>,
    /// The ticks in which columns were restored.
    ticks: BTreeSet<(RegionId, u64)>,
    /// The result, with the columns of the job in ascending order. An error ends the job early.
    pub outcome: JobOutcome,
    /// The number of changed chunks.
    chunks_changed: usize,
    /// The time that regions spent on the job within their ticks.
    pub worked: Duration,
    /// The total number of pieces of work.
    total: usize,
    /// The number of finished pieces of work; threads that work on files count theirs here.
    pub done: Arc<AtomicUsize>,
    /// Set if work that was ordered and has not begun is no longer wanted.
    pub is_void: Stop,
}

impl Task {
    pub fn new(id: JobId, order: SnapshotOrder, record: Option<Record>) -> Self {
        let (dimension, area) = (order.dimension(), order.area());
        let is_resumed = record.as_ref().is_some_and(|record| record.is_written);
        let (parts, snapshot, filter) = match &order {
            SnapshotOrder::Capture(capture) => (capture.parts, None, BlockFilter::default()),
            SnapshotOrder::Restore(restore) => {
                (SnapshotParts::ALL, restore.snapshot.held().cloned(), restore.filter.clone())
            }
        };
        let (steps, removed, ticks, outcome, done, is_void) = Default::default();
        let mut task = Self {
            id,
            dimension,
            area,
            is_resumed,
            order: Arc::new(order),
            record,
            snapshot,
            filter: Arc::new(filter),
            steps,
            captured: Arc::new(Snapshot::of_parts(area, parts)),
            removed,
            ticks,
            outcome,
            chunks_changed: 0,
            worked: Duration::ZERO,
            total: 0,
            done,
            is_void,
        };
        if let Err(error) = task.plan() {
            task.fail(error);
        }
        task
    }

    /// Determines the columns and the total number of pieces of work.
    fn plan(&mut self) -> Result<(), JobError> {
        let order = self.order.clone();
        let area = self.area;
        let reached = area.column_area().columns();
        if reached > MAX_COLUMNS {
            return Err(JobError::TooManyColumns { columns: reached, limit: MAX_COLUMNS });
        }
        let columns: Vec<ColumnPos> = match &*order {
            SnapshotOrder::Capture(_) => area.columns().collect(),
            SnapshotOrder::Restore(restore) => restore.snapshot.columns_in(&area),
        };
        self.total = columns.len();
        match &*order {
            SnapshotOrder::Capture(capture) => {
                self.total += if capture.store.is_some() { columns.len() } else { 0 };
            }
            SnapshotOrder::Restore(restore) => {
                self.steps = steps(restore, &area, &columns)?;
                self.total += self.steps.iter().map(Vec::len).sum::<usize>();
                self.total += match &restore.snapshot {
                    SnapshotSource::Stored(stored) => stored.columns().len(),
                    SnapshotSource::Held(held) if self.wants_record() && !self.wants_undo() => held.columns().len(),
                    SnapshotSource::Held(_) => 0,
                };
                // The undo is captured and written.
                self.total += if self.wants_undo() { 2 * columns.len() } else { 0 };
            }
        }
        let unfinished = |column| ColumnOutcome { column, result: ColumnResult::Unfinished, changed: Vec::new() };
        self.outcome.columns = columns.into_iter().map(unfinished).collect();
        Ok(())
    }

    /// All columns, at all heights of the box.
    pub fn whole_columns(&self) -> Columns {
        let heights = self.heights();
        let columns = self.outcome.columns.iter();
        Columns::new(columns.map(|outcome| Piece::new(outcome.column, heights.clone())).collect())
    }

    pub fn heights(&self) -> RangeInclusive<i64> {
        self.area.chunk_heights().unwrap_or(0..=0)
    }

    /// Returns `true` if the restore has not been recorded yet and must be.
    pub fn wants_record(&self) -> bool {
        self.record.as_ref().is_some_and(|record| !record.is_written)
    }

    /// Returns `true` if the box is captured before the restore, so that the next session can restore the old state.
    pub fn wants_undo(&self) -> bool {
        let undoes = matches!(&*self.order, SnapshotOrder::Restore(restore) if restore.after_crash == AfterCrash::Undo);
        undoes && self.wants_record()
    }

    /// Returns `true` if an entity may have crossed into a column that was restored already. Entities do not move within a tick.
    pub fn wants_clear(&self) -> bool {
        let replaces =
            matches!(&*self.order, SnapshotOrder::Restore(restore) if restore.entities == EntityRestore::Replace);
        replaces && self.ticks.len() > 1
    }

    /// Prepares the record: the next session runs the same restore or its undo.
    pub fn prepare_record(&mut self) {
        let undoes = self.wants_undo();
        let (Some(record), SnapshotOrder::Restore(restore)) = (&mut self.record, &*self.order) else { return };
        if undoes {
            let entities = match restore.entities {
                EntityRestore::Keep => EntityRestore::Keep,
                EntityRestore::Add | EntityRestore::Replace => EntityRestore::Replace,
            };
            record.restore =
                RestoreSnapshot { entities, ..RestoreSnapshot::new(restore.dimension, self.captured.clone()) };
        }
    }

    /// Ends the job with an error. Work in flight is still answered.
    pub fn fail(&mut self, error: impl Into<JobError>) {
        self.outcome.error.get_or_insert(error.into());
    }

    pub fn count(&self, pieces: usize) {
        self.done.fetch_add(pieces, Ordering::Relaxed);
    }

    pub fn column(&mut self, column: ColumnPos) -> Option<&mut ColumnOutcome> {
        let columns = &mut self.outcome.columns;
        let place = columns.binary_search_by_key(&column, |outcome| outcome.column).ok()?;
        Some(&mut columns[place])
    }

    /// Notes the answer for a column.
    pub fn note(&mut self, column: ColumnPos, answer: ColumnAnswer) {
        match answer {
            ColumnAnswer::Seen { entities, .. } => {
                let captured = Arc::make_mut(&mut self.captured);
                return entities.into_iter().for_each(|entity| captured.add_entity(entity.column(), entity));
            }
            ColumnAnswer::Cleared { removed, .. } => return self.removed.extend(removed),
            ColumnAnswer::Captured { tick, blocks, entities } => {
                Arc::make_mut(&mut self.captured).add_column(&blocks, tick, entities);
                if matches!(*self.order, SnapshotOrder::Capture(_)) {
                    self.end_column(column, ColumnResult::Done);
                }
            }
            ColumnAnswer::Restored { chunks, removed, tick } => {
                self.chunks_changed += chunks.len();
                self.removed.extend(removed);
                self.ticks.insert(tick);
                if let Some(outcome) = self.column(column) {
                    outcome.changed.extend(chunks);
                }
            }
            ColumnAnswer::Placed(_) => self.end_column(column, ColumnResult::Done),
            ColumnAnswer::Failed(error) => self.end_column(column, ColumnResult::Failed(error)),
            ColumnAnswer::Lost | ColumnAnswer::Postponed => {
                self.end_column(column, ColumnResult::Failed(ColumnError::Unanswered(column)));
            }
        }
        self.count(1);
    }

    pub fn end_column(&mut self, column: ColumnPos, result: ColumnResult) {
        if let Some(outcome) = self.column(column) {
            outcome.result = result;
        }
    }

    /// Adds the entities that no region found at the places where they were last seen.
    pub fn add_seen(&mut self, world: &mut Surroundings) {
        let captured = Arc::make_mut(&mut self.captured);
        for entity in world.directory.sightings.end(self.id) {
            if captured.entity_column(entity.id).is_none() {
                captured.add_entity(entity.column(), entity);
            }
        }
    }

    pub fn measure(&self, progress: &mut JobProgress) {
        (progress.done, progress.total) = (self.done.load(Ordering::Relaxed) as u64, self.total as u128);
        (progress.worked, progress.chunks_changed) = (self.worked, self.chunks_changed);
    }

    /// Ends the job, and returns its state and its result.
    pub fn end(&mut self) -> (JobState, JobOutcome) {
        let state = match self.outcome.error.take_if(|error| *error == JobError::Cancelled) {
            Some(_) => JobState::Cancelled,
            None if self.outcome.error.is_some() => JobState::Failed,
            None => JobState::Finished,
        };
        // Columns that were left out are not written, so they were not counted.
        if state == JobState::Finished {
            self.done.store(self.total, Ordering::Relaxed);
        }
        for outcome in &mut self.outcome.columns {
            outcome.changed.sort_unstable();
            outcome.changed.dedup();
        }
        if matches!(*self.order, SnapshotOrder::Capture(_)) {
            self.outcome.snapshot = Some(self.captured.clone());
        }
        (state, mem::take(&mut self.outcome))
    }
}

/// The pieces to restore, step by step; the pieces of a step run at the same time.
fn steps(restore: &RestoreSnapshot, area: &BlockBox, columns: &[ColumnPos]) -> Result<VecDeque<Vec<Piece>>, JobError> {
    let Some(heights) = area.chunk_heights() else { return Ok(VecDeque::new()) };
    let Some(sequence) = restore.sequence else {
        return Ok([columns.iter().map(|column| Piece::new(*column, heights.clone())).collect()].into());
    };
    if heights.start().abs_diff(*heights.end()) >= MAX_HEIGHTS {
        return Err(JobError::TooManyHeights { limit: MAX_HEIGHTS });
    }
    let phases = sequence.phases(columns, area).into_iter();
    Ok(phases.map(|phase| phase.into_iter().map(|(column, heights)| Piece::new(column, heights)).collect()).collect())
}
