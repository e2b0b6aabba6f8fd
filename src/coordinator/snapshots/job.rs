//! One snapshot job: what it orders next, and what came of what it ordered.

use super::files::{FileAnswer, FileWork};
use super::stragglers::Stragglers;
use super::{
    AfterCrash, ColumnOutcome, ColumnResult, EntityRestore, RestoreSnapshot, SnapshotJobId, SnapshotJobState,
    SnapshotJobStatus, SnapshotOutcome, SnapshotProgress, SnapshotSource, SnapshotTask, UngeneratedGround,
};
use crate::coordinator::dimension::{Dimensions, Stage};
use crate::coordinator::post::Directory;
use crate::coordinator::save::Saves;
use crate::simulation::{
    CaptureColumn, CapturedColumn, ColumnAnswer, ColumnWork, LookForEntities, PlaceEntities, RestoreColumn,
    SeenEntities,
};
use crate::snapshot::{BlockFilter, RestoreItem, Snapshot, StoredSnapshot};
use crate::space::{BlockBox, BlockPos, ColumnPos, DimensionId};
use crate::storage::EntityRecord;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
/// A restore in layers of more chunk heights is refused.
const MOST_HEIGHTS: u64 = 4_096;
/// A job of more columns is refused: 1,024 by 1,024.
const MOST_COLUMNS: u128 = 1 << 20;
/// The time between two looks at a job by the main world.
const PROGRESS_PERIOD: Duration = Duration::from_millis(100);

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
    task: SnapshotTask,
    filter: Arc<BlockFilter>,
    state: SnapshotJobState,
    is_cancelled: bool,
    /// Its dimension was closed.
    is_interrupted: bool,
    error: Option<String>,
    /// Nothing of what is under way and has not begun is wanted any more.
    is_void: Arc<AtomicBool>,
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
    alive_elsewhere: usize,
    stored: Option<StoredPlaces>,
    is_finding: bool,
    progress: SnapshotProgress,
    began: Option<Duration>,
    told: Option<(SnapshotJobState, Duration)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Files(FileStep),
    Capture(Vec<ColumnPos>),
    /// Each region that has captured columns looks who is there and was not caught.
    LookAgain,
    /// The chunks at these heights of each column.
    Blocks(Vec<(ColumnPos, RangeInclusive<i64>)>),
    FindStored,
    Entities(Vec<ColumnPos>),
}

/// What is done with files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileStep {
    Read,
    Store,
    Record,
}

/// Whether something is to be done with files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Files {
    None,
    Wanted(FileStep),
    UnderWay,
}

/// The record of a restore on disk.
struct Record {
    path: PathBuf,
    is_written: bool,
    /// What the next session does.
    recovery: RestoreSnapshot,
}

/// What becomes of the record of a restore that has come to its end.
pub(super) enum RecordEnd {
    /// It is removed once all is saved.
    Remove(PathBuf),
    /// The restore goes on when its dimension is opened again.
    Keep(PathBuf, Box<RestoreSnapshot>),
}

#[derive(Clone, Debug)]
struct Piece {
    column: ColumnPos,
    /// In chunks.
    heights: RangeInclusive<i64>,
    tries: u32,
    /// How often it was looked whether its entities are alive.
    looks: u32,
}

impl Piece {
    const fn new(column: ColumnPos, heights: RangeInclusive<i64>) -> Self {
        Self { column, heights, tries: 0, looks: 0 }
    }
}

/// What is known of somebody's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Alive,
    Dead,
    /// A region has to end its tick first.
    Unknown,
}

#[derive(Default)]
struct Outcome {
    is_done: bool,
    is_left_out: bool,
    failure: Option<String>,
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
    fn is_loaded(&self, dimension: DimensionId, column: ColumnPos) -> bool {
        let open = self.dimensions.open.get(&dimension);
        open.is_some_and(|open| open.columns.get(&column) == Some(&Stage::Owned))
    }
}

impl Job {
    /// A job, and where a restore is remembered, if it is.
    pub fn new(id: SnapshotJobId, task: SnapshotTask, record: Option<PathBuf>) -> Self {
        let area = task.area();
        let columns = area.column_area().columns();
        let mut job = Self {
            id,
            is_resumed: false,
            filter: Arc::default(),
            state: SnapshotJobState::Waiting,
            is_cancelled: false,
            is_interrupted: false,
            error: None,
            is_void: Arc::default(),
            ending: None,
            phases: VecDeque::new(),
            phase: None,
            todo: VecDeque::new(),
            under_way: BTreeMap::new(),
            loading: BTreeSet::new(),
            again: BTreeMap::new(),
            files: Files::None,
            record: None,
            captured: Snapshot::new(area),
            snapshot: None,
            stored_snapshot: None,
            stragglers: Stragglers::default(),
            outcomes: BTreeMap::new(),
            removed: BTreeSet::new(),
            alive_elsewhere: 0,
            stored: None,
            is_finding: false,
            progress: SnapshotProgress::default(),
            began: None,
            told: None,
            task: task.clone(),
        };
        match task {
            _ if columns > MOST_COLUMNS => {
                job.fail(format!("the box reaches {columns} columns, and at most {MOST_COLUMNS} are possible"));
            }
            SnapshotTask::Capture(capture) => {
                job.captured = Snapshot::of_parts(area, capture.parts);
                job.add_phase(Phase::Capture(area.columns().collect()));
                if capture.parts.entities {
                    job.add_phase(Phase::LookAgain);
                }
                if capture.store.is_some() {
                    job.add_phase(Phase::Files(FileStep::Store));
                }
            }
            SnapshotTask::Restore(restore) => {
                job.filter = Arc::new(restore.filter.clone());
                let is_remembered = restore.after_crash != AfterCrash::Leave;
                job.record = record.filter(|_| is_remembered).map(|path| Record {
                    path,
                    is_written: false,
                    recovery: restore.clone(),
                });
                match restore.snapshot.held() {
                    Some(_) => job.add_restore(),
                    None => job.add_phase(Phase::Files(FileStep::Read)),
                }
            }
        }
        job
    }

    /// A restore that was cut short and is remembered there.
    pub fn resumed(id: SnapshotJobId, restore: RestoreSnapshot, path: PathBuf) -> Self {
        let record = Record { path, is_written: true, recovery: restore.clone() };
        let mut job = Self::new(id, SnapshotTask::Restore(restore), None);
        (job.record, job.is_resumed) = (Some(record), true);
        job
    }

    fn add_phase(&mut self, phase: Phase) {
        let columns = phase.columns();
        self.progress.total += columns.len();
        for column in columns {
            self.outcomes.entry(column).or_default();
        }
        self.phases.push_back(phase);
    }

    /// The phases of a restore whose snapshot is in memory.
    fn add_restore(&mut self) {
        let SnapshotTask::Restore(restore) = &self.task else { return };
        let Some(snapshot) = restore.snapshot.held() else { return };
        let area = self.task.area();
        let mut phases = Vec::new();
        if let Some(Record { is_written: false, recovery, .. }) = &self.record {
            if recovery.after_crash == AfterCrash::Undo {
                let has = |column: &ColumnPos| snapshot.column(*column).is_some();
                phases.push(Phase::Capture(area.columns().filter(has).collect()));
                phases.push(Phase::LookAgain);
            }
            phases.push(Phase::Files(FileStep::Record));
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
            SnapshotTask::Capture(capture) => capture.parts.entities,
            SnapshotTask::Restore(restore) => !self.is_resumed && restore.after_crash == AfterCrash::Undo,
        }
    }

    pub fn cancel(&mut self) {
        self.is_cancelled = true;
    }

    /// Whether nothing of what is under way is wanted any more.
    pub fn is_void(&self) -> Arc<AtomicBool> {
        self.is_void.clone()
    }

    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled
    }

    /// It cannot go on. What is under way is still answered.
    pub fn fail(&mut self, error: String) {
        self.error.get_or_insert(error);
    }

    /// What it wants next.
    pub fn next(&mut self, now: Duration, limits: Limits, world: &mut Surroundings) -> Step {
        self.state = SnapshotJobState::Running;
        let began = *self.began.get_or_insert(now);
        self.progress.elapsed = now.saturating_sub(began);
        let is_open = world.dimensions.open.get(&self.dimension()).is_some_and(|open| !open.is_closing());
        if !is_open {
            self.is_interrupted = true;
            self.fail(format!("{} is not open", self.dimension()));
        }
        loop {
            if self.is_cancelled || self.error.is_some() {
                self.is_void.store(true, Ordering::Relaxed);
                let since = *self.ending.get_or_insert(now);
                // A region that is halted or hangs does nothing of it later.
                let is_over = self.under_way.is_empty() || now >= since.saturating_add(PATIENCE);
                return if is_over && self.files != Files::UnderWay { Step::End } else { Step::Wait };
            }
            while let Some(entry) = self.again.first_entry().filter(|entry| entry.key().0 <= now) {
                self.todo.push_front(entry.remove());
            }
            if self.under_way.len() >= limits.columns {
                return Step::Wait;
            }
            let next = self.todo.front().map(|piece| piece.column);
            let is_loaded_for_it = next.is_some_and(|column| !world.is_loaded(self.dimension(), column));
            if is_loaded_for_it && self.loading.len() >= limits.loading {
                return Step::Wait;
            }
            if let Some(mut piece) = self.todo.pop_front() {
                if piece.looks < LOOKS && self.is_unclear(&piece, world) {
                    piece.looks += 1;
                    self.again.insert((now.saturating_add(LOOK_AGAIN), piece.column), piece);
                    continue;
                }
                if let Some(work) = self.work_for(&piece, world) {
                    let column = piece.column;
                    self.under_way.insert(column, piece);
                    if is_loaded_for_it {
                        self.loading.insert(column);
                    }
                    return Step::Work(column, work);
                }
                continue;
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
            if self.phase == Some(Phase::LookAgain) {
                self.todo = self.looks(world);
                if !self.todo.is_empty() {
                    continue;
                }
                self.stragglers.give_to(&mut self.captured);
            }
            let Some(phase) = self.phases.pop_front() else { return Step::End };
            if let Phase::Files(step) = phase {
                self.files = Files::Wanted(step);
            }
            self.todo = phase.pieces(&self.task.area());
            if phase == Phase::LookAgain {
                self.stragglers.begin(self.dimension(), &self.captured, world);
            }
            self.phase = Some(phase);
        }
    }

    fn file_work(&mut self, step: FileStep) -> Option<FileWork> {
        let captured = Arc::new(mem::replace(&mut self.captured, Snapshot::new(self.task.area())));
        match (step, &self.task) {
            (FileStep::Read, SnapshotTask::Restore(restore)) => match &restore.snapshot {
                SnapshotSource::Stored(stored) => Some(FileWork::Read(stored.clone())),
                SnapshotSource::Held(_) => None,
            },
            (FileStep::Store, SnapshotTask::Capture(capture)) => {
                self.snapshot = Some(captured.clone());
                Some(FileWork::Store(capture.store.clone()?, capture.dimension, captured))
            }
            (FileStep::Record, SnapshotTask::Restore(restore)) => {
                let record = self.record.as_mut()?;
                if restore.after_crash == AfterCrash::Undo {
                    let entities = match restore.entities {
                        EntityRestore::Keep => EntityRestore::Keep,
                        EntityRestore::Add | EntityRestore::Replace => EntityRestore::Replace,
                    };
                    record.recovery = RestoreSnapshot { entities, ..RestoreSnapshot::new(restore.dimension, captured) };
                }
                Some(FileWork::Record(record.path.clone(), Box::new(record.recovery.clone())))
            }
            _ => None,
        }
    }

    /// What came of the work on files.
    pub fn take_files(&mut self, answer: Result<FileAnswer, String>) {
        self.files = Files::None;
        match answer {
            Ok(FileAnswer::Read(snapshot)) => {
                if let SnapshotTask::Restore(restore) = &mut self.task {
                    restore.snapshot = SnapshotSource::Held(snapshot);
                }
                self.add_restore();
            }
            Ok(FileAnswer::Stored(stored)) => self.stored_snapshot = Some(stored),
            Ok(FileAnswer::Recorded) => {
                if let Some(record) = &mut self.record {
                    record.is_written = true;
                }
            }
            Err(error) => self.fail(error),
        }
    }

    /// What is done if it is cut short.
    pub fn recovery(&self) -> Option<&RestoreSnapshot> {
        self.record.as_ref().map(|record| &record.recovery)
    }

    /// What becomes of its record on disk, if it has one.
    pub fn take_record(&mut self) -> Option<RecordEnd> {
        let Record { path, recovery, .. } = self.record.take().filter(|record| record.is_written)?;
        match (self.is_cancelled, self.is_interrupted, &self.error) {
            (false, true, _) => Some(RecordEnd::Keep(path, Box::new(recovery))),
            // The next session tries it again.
            (false, false, Some(_)) => None,
            _ => Some(RecordEnd::Remove(path)),
        }
    }

    /// A piece for each region that is to look again.
    fn looks(&mut self, world: &Surroundings) -> VecDeque<Piece> {
        let heights = self.task.area().chunk_heights().unwrap_or(0..=0);
        let columns = self.stragglers.wanted(self.dimension(), world).into_iter();
        columns.map(|column| Piece::new(column, heights.clone())).collect()
    }

    /// What is to be done with a column; `None` if it is nothing.
    fn work_for(&mut self, piece: &Piece, world: &mut Surroundings) -> Option<ColumnWork> {
        let column = piece.column;
        if self.outcomes.get(&column).is_some_and(|outcome| outcome.failure.is_some()) {
            self.progress.done += 1;
            return None;
        }
        match (&self.task, &self.phase) {
            (SnapshotTask::Restore(_), Some(Phase::Capture(_))) => {
                Some(ColumnWork::Capture(CaptureColumn { column, area: self.task.area(), entities: true }))
            }
            (_, Some(Phase::LookAgain)) => {
                let known = self.stragglers.known.clone();
                Some(ColumnWork::Look(LookForEntities { area: self.task.area(), known }))
            }
            (SnapshotTask::Capture(capture), _) => {
                let is_generated = world.dimensions.open.get(&capture.dimension)?.stored.is_completed(column);
                if capture.ungenerated == UngeneratedGround::LeaveOut && !is_generated {
                    self.outcomes.entry(column).or_default().is_left_out = true;
                    self.progress.done += 1;
                    return None;
                }
                let (area, entities) = (capture.area, capture.parts.entities);
                Some(ColumnWork::Capture(CaptureColumn { column, area, entities }))
            }
            (SnapshotTask::Restore(restore), Some(Phase::Entities(_))) => {
                let (snapshot, mode) = (restore.snapshot.held()?.clone(), restore.entities);
                let entities = self.coming(&snapshot, column, mode, world);
                Some(ColumnWork::PlaceEntities(PlaceEntities { column, area: self.task.area(), entities }))
            }
            (SnapshotTask::Restore(restore), _) => Some(ColumnWork::Restore(RestoreColumn {
                column,
                area: slab(&restore.restored_area(), &piece.heights),
                snapshot: restore.snapshot.held()?.clone(),
                filter: self.filter.clone(),
                removes_entities: restore.entities == EntityRestore::Replace,
            })),
        }
    }

    /// The entities of a column that come into the world: nobody who is alive.
    fn coming(
        &mut self,
        snapshot: &Snapshot,
        column: ColumnPos,
        mode: EntityRestore,
        world: &mut Surroundings,
    ) -> Vec<EntityRecord> {
        if mode == EntityRestore::Keep {
            return Vec::new();
        }
        let area = self.task.area();
        let dimension = self.dimension();
        let found = snapshot.column(column).map_or(&[][..], |column| column.entities());
        let (coming, alive): (Vec<_>, Vec<_>) = found
            .iter()
            .filter(|entity| area.contains(entity.block) && entity.player().is_none())
            .partition(|entity| self.life(entity.id, world) == Life::Dead);
        self.alive_elsewhere += alive.len();
        coming.into_iter().map(|entity| EntityRecord { dimension, ..entity.clone() }).collect()
    }

    /// Whether somebody is alive: in a region, on a journey, or stored where nothing is loaded. Who is stored where the column is
    /// loaded, and was not reported by its region, has died.
    fn life(&self, id: Uuid, world: &mut Surroundings) -> Life {
        if world.directory.knows(id) {
            return Life::Alive;
        }
        if self.removed.contains(&id) {
            return Life::Dead;
        }
        let unwritten = world.saves.unwritten_batches().find_map(|batch| batch.entities.get(&id));
        let stored = match unwritten {
            Some(record) => record.as_ref().map(|record| (record.dimension, record.column())),
            None => self.stored.as_ref().and_then(|stored| stored.get(&id).copied()),
        };
        let Some((dimension, column)) = stored else { return Life::Dead };
        match world.dimensions.open.get_mut(&dimension).map(|open| open.has_reported(column)) {
            Some(Some(true)) => Life::Dead,
            Some(None) => Life::Unknown,
            _ => Life::Alive,
        }
    }

    /// Whether it has to be waited for until it is known who of the entities of a piece is alive.
    fn is_unclear(&self, piece: &Piece, world: &mut Surroundings) -> bool {
        let (SnapshotTask::Restore(restore), Some(Phase::Entities(_))) = (&self.task, &self.phase) else {
            return false;
        };
        let snapshot = restore.snapshot.held().filter(|_| restore.entities != EntityRestore::Keep);
        let column = snapshot.and_then(|snapshot| snapshot.column(piece.column));
        let entities = column.into_iter().flat_map(|column| column.entities());
        entities.map(|entity| entity.id).any(|id| self.life(id, world) == Life::Unknown)
    }

    fn entities(&self) -> impl Iterator<Item = &EntityRecord> {
        let snapshot = match &self.task {
            SnapshotTask::Restore(restore) if restore.entities != EntityRestore::Keep => restore.snapshot.held(),
            _ => None,
        };
        snapshot.into_iter().flat_map(|snapshot| snapshot.entities())
    }

    /// Who has left a region; `None` if they are outside of the box by then.
    pub fn note_left(&mut self, left: BTreeMap<Uuid, Option<EntityRecord>>) {
        self.stragglers.note(left, &self.captured);
    }

    /// Where the entities of the snapshot are stored.
    pub fn take_stored(&mut self, stored: Result<StoredPlaces, String>) {
        match stored {
            Ok(stored) => self.stored = Some(stored),
            Err(error) => self.fail(error),
        }
    }

    /// What came of a column.
    pub fn take(&mut self, column: ColumnPos, answer: ColumnAnswer, took: Duration, now: Duration) {
        self.progress.worked += took;
        let Some(mut piece) = self.under_way.remove(&column) else { return };
        self.loading.remove(&column);
        let outcome = self.outcomes.entry(column).or_default();
        match answer {
            ColumnAnswer::Postponed => return self.todo.push_front(piece),
            ColumnAnswer::Lost if piece.tries + 1 < TRIES => {
                piece.tries += 1;
                self.again.insert((now.saturating_add(RETRY), column), piece);
                return;
            }
            ColumnAnswer::Lost => {
                outcome.failure = Some("the region of the column did not answer, it may have halted".into());
            }
            ColumnAnswer::Failed(reason) => outcome.failure = Some(reason),
            ColumnAnswer::Captured(CapturedColumn { tick, blocks, entities }) => {
                self.captured.add_column(&blocks, tick, entities);
            }
            ColumnAnswer::Restored(restored) => {
                self.progress.chunks_changed += restored.chunks.len();
                outcome.changed.extend(restored.chunks);
                self.removed.extend(restored.removed);
            }
            ColumnAnswer::Placed(_) => {}
            ColumnAnswer::Seen(SeenEntities { columns, entities }) => {
                self.stragglers.looked(columns.into_iter().chain([column]));
                entities.into_iter().for_each(|entity| self.captured.add_entity(entity.column(), entity));
                return;
            }
        }
        if self.phase == Some(Phase::LookAgain) {
            return self.stragglers.looked([column]);
        }
        self.progress.done += 1;
        let is_last = self.phases.iter().all(|phase| matches!(phase, Phase::LookAgain | Phase::Files(_)));
        outcome.is_done |= is_last && outcome.failure.is_none();
    }

    /// What the main world is to be told, if it is time.
    pub fn tell(&mut self, now: Duration) -> Option<SnapshotJobStatus> {
        let is_news = self.told.is_none_or(|(state, at)| state != self.state || now >= at + PROGRESS_PERIOD);
        is_news.then(|| {
            self.told = Some((self.state, now));
            self.progress.state = self.state;
            SnapshotJobStatus::new(self.id, &self.task, self.is_resumed, self.progress.clone())
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
                Outcome { failure: Some(reason), .. } => ColumnResult::Failed(reason),
                Outcome { is_left_out: true, .. } => ColumnResult::LeftOut,
                Outcome { is_done: true, .. } => ColumnResult::Done,
                _ => ColumnResult::Unfinished,
            },
            changed: outcome.changed.into_iter().collect(),
        });
        let columns = columns.collect();
        let mut status = SnapshotJobStatus::new(self.id, &self.task, self.is_resumed, self.progress);
        let captured = self.snapshot.unwrap_or_else(|| Arc::new(self.captured));
        let snapshot = matches!(self.task, SnapshotTask::Capture(_)).then_some(captured);
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

impl Phase {
    fn columns(&self) -> Vec<ColumnPos> {
        match self {
            Self::Capture(columns) | Self::Entities(columns) => columns.clone(),
            Self::Blocks(pieces) => pieces.iter().map(|(column, _)| *column).collect(),
            Self::FindStored | Self::LookAgain | Self::Files(_) => Vec::new(),
        }
    }

    fn pieces(&self, area: &BlockBox) -> VecDeque<Piece> {
        let whole = area.chunk_heights().unwrap_or(0..=0);
        match self {
            Self::Blocks(pieces) => {
                let pieces = pieces.iter().cloned();
                pieces.map(|(column, heights)| Piece::new(column, heights)).collect()
            }
            other => {
                let columns = other.columns().into_iter();
                columns.map(|column| Piece::new(column, whole.clone())).collect()
            }
        }
    }
}

/// First the blocks, then the entities.
fn restore_phases(restore: &RestoreSnapshot, snapshot: &Snapshot, area: &BlockBox) -> Result<Vec<Phase>, String> {
    let has = |column: &ColumnPos| snapshot.column(*column).is_some();
    let columns: Vec<ColumnPos> = area.columns().filter(has).collect();
    let mut phases = match (restore.order, area.chunk_heights()) {
        (_, None) => Vec::new(),
        (None, Some(heights)) => {
            vec![Phase::Blocks(columns.iter().map(|column| (*column, heights.clone())).collect())]
        }
        (Some(_), Some(heights)) if heights.start().abs_diff(*heights.end()) >= MOST_HEIGHTS => {
            return Err(format!("a restore in an order reaches at most {MOST_HEIGHTS} chunk heights"));
        }
        (Some(order), Some(_)) => {
            let items = order.items(area).map_err(|error| error.to_string())?;
            let items: Vec<RestoreItem> = items.filter(|item| has(&item.chunk.column())).collect();
            items.chunk_by(|a, b| a.phase == b.phase).map(phase_of).collect()
        }
    };
    if restore.entities != EntityRestore::Keep {
        phases.push(Phase::FindStored);
    }
    phases.push(Phase::Entities(columns));
    Ok(phases)
}

/// The chunks of a phase, each column with all of its heights.
fn phase_of(items: &[RestoreItem]) -> Phase {
    let mut columns: BTreeMap<ColumnPos, RangeInclusive<i64>> = BTreeMap::new();
    for RestoreItem { chunk, .. } in items {
        let heights = columns.entry(chunk.column()).or_insert(chunk.y..=chunk.y);
        *heights = *heights.start().min(&chunk.y)..=*heights.end().max(&chunk.y);
    }
    Phase::Blocks(columns.into_iter().collect())
}

/// The part of a box at these chunk heights.
fn slab(area: &BlockBox, heights: &RangeInclusive<i64>) -> BlockBox {
    let mut slab = *area;
    slab.min.y = slab.min.y.max(heights.start() << 4);
    slab.max.y = slab.max.y.min(heights.end() << 4 | 15);
    slab
}
