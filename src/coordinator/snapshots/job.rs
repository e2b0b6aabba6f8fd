//! One snapshot job: what it orders next, and what came of what it ordered.

mod files;
mod life;
mod phase;

use super::files::FileWork;
use super::stragglers::Stragglers;
use super::{
    AfterCrash, ColumnOutcome, ColumnResult, EntityRestore, RestoreSnapshot, SnapshotJobError, SnapshotJobId,
    SnapshotJobState, SnapshotJobStatus, SnapshotOrder, SnapshotOutcome, SnapshotProgress, SnapshotSource,
    UngeneratedGround,
};
use crate::coordinator::dimension::Dimensions;
use crate::coordinator::dimension::column_state::ColumnState;
use crate::coordinator::saving::save::Saves;
use crate::coordinator::travel::letters::Directory;
use crate::region::RegionId;
use crate::simulation::{ColumnAnswer, ColumnError, ColumnWork};
use crate::snapshot::{BlockFilter, Snapshot, StoredSnapshot};
use crate::space::{BlockBox, BlockPos, ColumnPos, DimensionId};
use crate::storage::EntityRecord;
use crate::work::Stop;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use uuid::Uuid;

/// How often work that was lost is sent again: a region that halts is restarted by somebody, or not.
const TRIES: u32 = 10;
/// The wait before that.
const RETRY: Duration = Duration::from_millis(500);
/// What ends before all is done waits no longer for a region that does not tick.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is asked again whether somebody is alive, and the wait in between: a tick ends soon.
const LOOKS: u32 = 100;
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// A job of more columns is refused: 1,024 by 1,024.
const MAX_COLUMNS: u128 = 1 << 20;
/// The time between two looks at a job by the main world.
const PROGRESS_PERIOD: Duration = Duration::from_millis(100);

pub(super) use files::RecordEnd;
use files::{Files, Record};
use phase::{FileStep, Phase, Piece, restore_phases, slab};

/// What a job wants now.
pub(super) enum Step {
    /// A column is to be worked on.
    Work(ColumnPos, ColumnWork),
    /// It is to be found out where these entities are stored.
    FindStored(Vec<Uuid>),
    /// Something is to be done with files.
    Files(FileWork),
    /// It waits for what is under way.
    Wait,
    /// It has come to its end.
    End,
}

/// Where an entity is stored.
pub(in crate::coordinator) type StoredPlaces = BTreeMap<Uuid, (DimensionId, ColumnPos)>;

pub(super) struct Job {
    pub id: SnapshotJobId,
    is_resumed: bool,
    task: SnapshotOrder,
    filter: Arc<BlockFilter>,
    state: SnapshotJobState,
    is_cancelled: bool,
    /// Its dimension was closed.
    is_interrupted: bool,
    error: Option<SnapshotJobError>,
    /// Nothing of what is under way and has not begun is wanted any more.
    is_void: Stop,
    /// Since when it waits for the rest of what is under way.
    ending: Option<Duration>,
    /// Those that have not begun, the next one first.
    phases: VecDeque<Phase>,
    phase: Option<Phase>,
    /// What the current phase has not ordered.
    todo: VecDeque<Piece>,
    under_way: BTreeMap<ColumnPos, Piece>,
    /// Those of them that are loaded for it.
    loading: BTreeSet<ColumnPos>,
    /// What was lost, and when it is tried again.
    again: BTreeMap<(Duration, ColumnPos), Piece>,
    files: Files,
    /// Where it is remembered, until all that it changed is saved, and what the next session does if this one ends before.
    record: Option<Record>,
    captured: Snapshot,
    /// What was captured, when it is to be stored.
    snapshot: Option<Arc<Snapshot>>,
    stored_snapshot: Option<Arc<StoredSnapshot>>,
    stragglers: Stragglers,
    outcomes: BTreeMap<ColumnPos, Outcome>,
    /// Who was in the box and was removed.
    removed: BTreeSet<Uuid>,
    /// The ticks in which columns were restored.
    ticks: BTreeSet<(RegionId, u64)>,
    alive_elsewhere: usize,
    stored: Option<StoredPlaces>,
    is_finding: bool,
    progress: SnapshotProgress,
    /// Columns that the work on files has done of its phase.
    of_files: Arc<AtomicUsize>,
    /// Pieces of the phases that are only known when the snapshot is read.
    expected: usize,
    began: Option<Duration>,
    told: Option<(SnapshotJobState, Duration)>,
}

#[derive(Default)]
struct Outcome {
    is_done: bool,
    is_left_out: bool,
    failure: Option<ColumnError>,
    changed: BTreeSet<i64>,
}

/// How many columns a job may have under way, and how many of them may be loaded for it.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub columns: usize,
    pub loading: usize,
}

/// What a job has to know of the world.
pub(super) struct Surroundings<'a> {
    pub dimensions: &'a mut Dimensions,
    pub directory: &'a Directory,
    pub saves: &'a Saves,
}

impl Surroundings<'_> {
    /// Whether the region of the column has halted.
    pub fn is_halted(&self, dimension: DimensionId, column: ColumnPos) -> bool {
        let open = self.dimensions.open.get(&dimension);
        let slot = open.and_then(|open| open.regionizer.data(open.regionizer.region_at(column)?));
        slot.is_some_and(|slot| slot.halted.is_some())
    }

    fn is_loaded(&self, dimension: DimensionId, column: ColumnPos) -> bool {
        let open = self.dimensions.open.get(&dimension);
        open.is_some_and(|open| {
            matches!(open.columns.get(column), Some(ColumnState::Owned(_) | ColumnState::Halted { .. }))
        })
    }
}

impl Job {
    /// A job, and where a restore is remembered, if it is.
    pub fn new(id: SnapshotJobId, task: SnapshotOrder, record: Option<PathBuf>) -> Self {
        let mut job = Self {
            id,
            is_resumed: false,
            filter: Arc::default(),
            state: SnapshotJobState::Waiting,
            is_cancelled: false,
            is_interrupted: false,
            error: None,
            is_void: Stop::default(),
            ending: None,
            phases: VecDeque::new(),
            phase: None,
            todo: VecDeque::new(),
            under_way: BTreeMap::new(),
            loading: BTreeSet::new(),
            again: BTreeMap::new(),
            files: Files::None,
            record: None,
            captured: Snapshot::new(task.area()),
            snapshot: None,
            stored_snapshot: None,
            stragglers: Stragglers::default(),
            outcomes: BTreeMap::new(),
            removed: BTreeSet::new(),
            ticks: BTreeSet::new(),
            alive_elsewhere: 0,
            stored: None,
            is_finding: false,
            progress: SnapshotProgress::default(),
            of_files: Arc::default(),
            expected: 0,
            began: None,
            told: None,
            task,
        };
        job.plan(record);
        job
    }

    /// The phases, as far as they are known before a snapshot is read.
    fn plan(&mut self, record: Option<PathBuf>) {
        let area = self.task.area();
        let columns = area.column_area().columns();
        match self.task.clone() {
            _ if columns > MAX_COLUMNS => {
                self.fail(SnapshotJobError::TooManyColumns { columns, limit: MAX_COLUMNS });
            }
            SnapshotOrder::Capture(capture) => {
                self.captured = Snapshot::of_parts(area, capture.parts);
                self.add_phase(Phase::Capture(area.columns().collect()));
                if capture.parts.entities {
                    self.add_phase(Phase::LookAgain);
                }
                if capture.store.is_some() {
                    self.add_phase(Phase::Files(FileStep::Store, self.progress.total));
                }
            }
            SnapshotOrder::Restore(restore) => {
                self.filter = Arc::new(restore.filter.clone());
                let is_remembered = restore.after_crash != AfterCrash::Leave;
                self.record = record.filter(|_| is_remembered).map(|path| Record {
                    path,
                    is_written: false,
                    recovery: restore.clone(),
                });
                match &restore.snapshot {
                    SnapshotSource::Held(_) => self.add_restore(),
                    SnapshotSource::Stored(stored) => self.add_read(stored, restore.after_crash),
                }
            }
        }
    }

    /// A restore that was cut short and is remembered there.
    pub fn resumed(id: SnapshotJobId, restore: RestoreSnapshot, path: PathBuf) -> Self {
        let record = Record { path, is_written: true, recovery: restore.clone() };
        let mut job = Self::new(id, SnapshotOrder::Restore(restore), None);
        (job.record, job.is_resumed) = (Some(record), true);
        job
    }

    fn add_phase(&mut self, phase: Phase) {
        self.progress.total += phase.size();
        for column in phase.columns() {
            self.outcomes.entry(column).or_default();
        }
        self.phases.push_back(phase);
    }

    /// The first phase of a restore whose snapshot is on disk, and about what comes after it.
    fn add_read(&mut self, stored: &StoredSnapshot, after_crash: AfterCrash) {
        let area = self.task.area();
        let wanted = stored.columns().filter(|column| area.reaches(*column)).count();
        // Blocks and entities; before them the undo is captured and written.
        let undoes = self.record.is_some() && after_crash == AfterCrash::Undo;
        let phases = if undoes { 4 } else { 2 };
        self.expected = phases * wanted;
        self.progress.total += self.expected;
        self.add_phase(Phase::Files(FileStep::Read, stored.columns().len()));
    }

    /// The phases of a restore whose snapshot is in memory.
    fn add_restore(&mut self) {
        let SnapshotOrder::Restore(restore) = &self.task else { return };
        let Some(snapshot) = restore.snapshot.held() else { return };
        let area = self.task.area();
        self.progress.total -= mem::take(&mut self.expected);
        let mut phases = Vec::new();
        if let Some(Record { is_written: false, recovery, .. }) = &self.record {
            let mut written = recovery.snapshot.held().map_or(0, |snapshot| snapshot.columns().len());
            if recovery.after_crash == AfterCrash::Undo {
                let has = |column: &ColumnPos| snapshot.column(*column).is_some();
                let columns: Vec<ColumnPos> = area.columns().filter(has).collect();
                written = columns.len();
                phases.push(Phase::Capture(columns));
                phases.push(Phase::LookAgain);
            }
            phases.push(Phase::Files(FileStep::Record, written));
        }
        match restore_phases(restore, snapshot, &area) {
            Ok(restoring) => phases.into_iter().chain(restoring).for_each(|phase| self.add_phase(phase)),
            Err(error) => self.fail(error),
        }
    }

    pub fn dimension(&self) -> DimensionId {
        self.task.dimension()
    }

    pub fn area(&self) -> BlockBox {
        self.task.area()
    }

    /// Whether it wants to hear who leaves a region and is in the box.
    pub fn is_watching(&self) -> bool {
        match &self.task {
            SnapshotOrder::Capture(capture) => capture.parts.entities,
            SnapshotOrder::Restore(restore) => !self.is_resumed && restore.after_crash == AfterCrash::Undo,
        }
    }

    pub fn cancel(&mut self) {
        self.is_cancelled = true;
    }

    /// Whether nothing of what is under way is wanted any more.
    pub fn is_void(&self) -> Stop {
        self.is_void.clone()
    }

    /// Where the work on files says how many columns it has done.
    pub fn of_files(&self) -> Arc<AtomicUsize> {
        self.of_files.clone()
    }

    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled
    }

    /// It cannot go on. What is under way is still answered.
    pub fn fail(&mut self, error: impl Into<SnapshotJobError>) {
        self.error.get_or_insert(error.into());
    }

    /// What it wants next.
    pub fn next(&mut self, now: Duration, limits: Limits, world: &mut Surroundings) -> Step {
        self.state = SnapshotJobState::Running;
        let began = *self.began.get_or_insert(now);
        self.progress.elapsed = now.saturating_sub(began);
        let is_open = world.dimensions.open.get(&self.dimension()).is_some_and(|open| !open.is_closing());
        if !is_open {
            self.is_interrupted = true;
            self.fail(SnapshotJobError::NotOpen(self.dimension()));
        }
        loop {
            if self.is_cancelled || self.error.is_some() {
                return self.wind_up(now);
            }
            if let Some(step) = self.next_piece(now, limits, world) {
                return step;
            }
            if self.phase == Some(Phase::FindStored) && self.stored.is_none() {
                if mem::replace(&mut self.is_finding, true) {
                    return Step::Wait;
                }
                return Step::FindStored(self.entities().map(|entity| entity.id).collect());
            }
            if !self.under_way.is_empty() || !self.again.is_empty() || self.files == Files::UnderWay {
                return Step::Wait;
            }
            if let Files::Wanted(step) = mem::replace(&mut self.files, Files::None)
                && let Some(work) = self.file_work(step)
            {
                self.files = Files::UnderWay;
                return Step::Files(work);
            }
            if self.is_round() {
                self.todo = self.looks(world);
                if !self.todo.is_empty() {
                    continue;
                }
                if self.phase == Some(Phase::LookAgain) {
                    self.stragglers.give_to(&mut self.captured);
                }
            }
            let Some(phase) = self.phases.pop_front() else { return Step::End };
            self.begin_phase(phase, world);
        }
    }

    /// It ends before all is done: it waits for what is under way, as long as that may take.
    fn wind_up(&mut self, now: Duration) -> Step {
        self.is_void.stop();
        let since = *self.ending.get_or_insert(now);
        // A region that is halted or hangs does nothing of it later.
        let is_over = self.under_way.is_empty() || now >= since.saturating_add(PATIENCE);
        if is_over && self.files != Files::UnderWay { Step::End } else { Step::Wait }
    }

    /// The next piece of the phase, if there is room for it; `None` if all are ordered.
    fn next_piece(&mut self, now: Duration, limits: Limits, world: &mut Surroundings) -> Option<Step> {
        while let Some(entry) = self.again.first_entry().filter(|entry| entry.key().0 <= now) {
            self.todo.push_front(entry.remove());
        }
        if self.is_round() {
            // Nobody walks about in it, and what was captured is complete but for those who just had.
            self.under_way.retain(|column, _| !world.is_halted(self.task.dimension(), *column));
        }
        if self.under_way.len() >= limits.columns {
            return Some(Step::Wait);
        }
        while let Some(mut piece) = self.todo.pop_front() {
            let column = piece.column;
            let is_loaded_for_it = !world.is_loaded(self.dimension(), column);
            if is_loaded_for_it && self.loading.len() >= limits.loading {
                self.todo.push_front(piece);
                return Some(Step::Wait);
            }
            if piece.looks < LOOKS && self.is_unclear(&piece, world) {
                piece.looks += 1;
                self.again.insert((now.saturating_add(LOOK_AGAIN), column), piece);
            } else if let Some(work) = self.work_for(&piece, world) {
                self.under_way.insert(column, piece);
                if is_loaded_for_it {
                    self.loading.insert(column);
                }
                return Some(Step::Work(column, work));
            }
        }
        None
    }

    fn begin_phase(&mut self, phase: Phase, world: &Surroundings) {
        if let Phase::Files(step, _) = phase {
            self.files = Files::Wanted(step);
        }
        self.todo = phase.pieces(&self.task.area());
        match (&phase, &self.task) {
            (Phase::LookAgain, _) => self.stragglers.begin(self.dimension(), &self.captured, world),
            // Within a tick nobody moves.
            (Phase::Clear, SnapshotOrder::Restore(restore)) if self.ticks.len() > 1 => {
                if let Some(snapshot) = restore.snapshot.held() {
                    self.stragglers.begin_round(self.dimension(), snapshot, world);
                }
            }
            _ => {}
        }
        self.phase = Some(phase);
    }

    /// Whether each region does something to all of its columns at once.
    fn is_round(&self) -> bool {
        matches!(self.phase, Some(Phase::LookAgain | Phase::Clear))
    }

    /// A piece for each region that is to look again, or to be cleared.
    fn looks(&mut self, world: &Surroundings) -> VecDeque<Piece> {
        let heights = self.task.area().chunk_heights().unwrap_or(0..=0);
        let columns = self.stragglers.wanted(self.dimension(), world).into_iter();
        columns.map(|column| Piece::new(column, heights.clone())).collect()
    }

    /// What is to be done with a column; `None` if it is nothing.
    fn work_for(&mut self, piece: &Piece, world: &mut Surroundings) -> Option<ColumnWork> {
        let column = piece.column;
        let has_failed = self.outcomes.get(&column).is_some_and(|outcome| outcome.failure.is_some());
        if has_failed && !self.is_round() {
            self.progress.done += 1;
            return None;
        }
        match (&self.task, &self.phase) {
            (SnapshotOrder::Restore(_), Some(Phase::Capture(_))) => {
                Some(ColumnWork::Capture { column, area: self.task.area(), entities: true })
            }
            (_, Some(Phase::LookAgain)) => {
                let known = self.stragglers.known.clone();
                Some(ColumnWork::Look { area: self.task.area(), known })
            }
            (SnapshotOrder::Capture(capture), _) => {
                let is_generated = world.dimensions.open.get(&capture.dimension)?.stored.is_completed(column);
                if capture.ungenerated == UngeneratedGround::LeaveOut && !is_generated {
                    self.outcomes.entry(column).or_default().is_left_out = true;
                    self.progress.done += 1;
                    return None;
                }
                let (area, entities) = (capture.area, capture.parts.entities);
                Some(ColumnWork::Capture { column, area, entities })
            }
            (SnapshotOrder::Restore(restore), Some(Phase::Clear)) => {
                let snapshot = restore.snapshot.held()?.clone();
                Some(ColumnWork::Clear { area: self.task.area(), snapshot })
            }
            (SnapshotOrder::Restore(restore), Some(Phase::Entities(_))) => {
                let (snapshot, mode) = (restore.snapshot.held()?.clone(), restore.entities);
                let entities = self.coming(&snapshot, column, mode, world);
                Some(ColumnWork::PlaceEntities { column, area: self.task.area(), entities })
            }
            (SnapshotOrder::Restore(restore), _) => Some(ColumnWork::Restore {
                column,
                area: slab(&restore.restored_area(), &piece.heights),
                snapshot: restore.snapshot.held()?.clone(),
                filter: self.filter.clone(),
                removes_entities: restore.entities == EntityRestore::Replace,
            }),
        }
    }

    /// Who has left a region; `None` if they are outside of the box by then.
    pub fn note_left(&mut self, left: BTreeMap<Uuid, Option<EntityRecord>>) {
        self.stragglers.note(left, &self.captured);
    }

    /// What came of a column.
    pub fn take(&mut self, column: ColumnPos, answer: ColumnAnswer, took: Duration, now: Duration) {
        self.progress.worked += took;
        let Some(mut piece) = self.under_way.remove(&column) else { return };
        self.loading.remove(&column);
        let outcome = self.outcomes.entry(column).or_default();
        match answer {
            ColumnAnswer::Postponed => return self.todo.push_front(piece),
            // It is asked again, or has halted.
            ColumnAnswer::Lost if matches!(self.phase, Some(Phase::LookAgain | Phase::Clear)) => return,
            ColumnAnswer::Lost if piece.tries + 1 < TRIES => {
                piece.tries += 1;
                self.again.insert((now.saturating_add(RETRY), column), piece);
                return;
            }
            ColumnAnswer::Lost => outcome.failure = Some(ColumnError::Unanswered(column)),
            ColumnAnswer::Failed(error) => outcome.failure = Some(error),
            ColumnAnswer::Captured { tick, blocks, entities } => {
                self.captured.add_column(&blocks, tick, entities);
            }
            ColumnAnswer::Restored { chunks, removed, tick } => {
                self.progress.chunks_changed += chunks.len();
                outcome.changed.extend(chunks);
                self.removed.extend(removed);
                self.ticks.insert(tick);
            }
            ColumnAnswer::Cleared { columns, removed } => {
                self.stragglers.looked(columns.into_iter().chain([column]));
                self.removed.extend(removed);
                return;
            }
            ColumnAnswer::Placed(_) => {}
            ColumnAnswer::Seen { columns, entities } => {
                self.stragglers.looked(columns.into_iter().chain([column]));
                entities.into_iter().for_each(|entity| self.captured.add_entity(entity.column(), entity));
                return;
            }
        }
        self.progress.done += 1;
        let is_last = self.phases.iter().all(|phase| matches!(phase, Phase::LookAgain | Phase::Files(..)));
        outcome.is_done |= is_last && outcome.failure.is_none();
    }

    /// What the main world is to be told, if it is time.
    pub fn tell(&mut self, now: Duration) -> Option<SnapshotJobStatus> {
        let is_news = self.told.is_none_or(|(state, at)| state != self.state || now >= at + PROGRESS_PERIOD);
        is_news.then(|| {
            self.told = Some((self.state, now));
            self.progress.state = self.state;
            let done = self.progress.done + self.of_files.load(Ordering::Relaxed);
            let progress = SnapshotProgress { done, ..self.progress.clone() };
            SnapshotJobStatus::new(self.id, &self.task, self.is_resumed, progress)
        })
    }

    /// What has come of it.
    pub fn end(mut self) -> SnapshotJobStatus {
        self.progress.state = match (&self.error, self.is_cancelled) {
            (Some(_), _) => SnapshotJobState::Failed,
            (None, true) => SnapshotJobState::Cancelled,
            (None, false) => SnapshotJobState::Finished,
        };
        let columns = mem::take(&mut self.outcomes).into_iter().map(|(column, outcome)| ColumnOutcome {
            column,
            result: match outcome {
                Outcome { failure: Some(error), .. } => ColumnResult::Failed(error),
                Outcome { is_left_out: true, .. } => ColumnResult::LeftOut,
                Outcome { is_done: true, .. } => ColumnResult::Done,
                _ => ColumnResult::Unfinished,
            },
            changed: outcome.changed.into_iter().collect(),
        });
        let columns = columns.collect();
        let mut status = SnapshotJobStatus::new(self.id, &self.task, self.is_resumed, self.progress);
        let captured = self.snapshot.unwrap_or_else(|| Arc::new(self.captured));
        let snapshot = matches!(self.task, SnapshotOrder::Capture(_)).then_some(captured);
        let (stored, alive_elsewhere, error) = (self.stored_snapshot, self.alive_elsewhere, self.error);
        status.outcome = Some(Arc::new(SnapshotOutcome { snapshot, stored, columns, alive_elsewhere, error }));
        status
    }

    /// A block at whose height the work of a piece is sent: in a sparse dimension the ground around it is loaded.
    pub fn place_of(&self, column: ColumnPos) -> BlockPos {
        let height = self.under_way.get(&column).map_or(0, |piece| *piece.heights.start());
        column.chunk(height).min_block()
    }
}
