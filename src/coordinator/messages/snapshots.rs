//! Orders for snapshot jobs, their outcomes and their errors.

use crate::coordinator::messages::faults::WorkError;
use crate::simulation::ColumnError;
use crate::snapshot::{BlockFilter, RestoreSequence, Snapshot, SnapshotParts, StoredSnapshot, StoredSnapshotError};
use crate::space::{BlockBox, ColumnPos, DimensionId};
use crate::storage::WorldStore;
use bevy::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// An order to capture a part of the world.
#[derive(Clone, Debug)]
pub struct CaptureSnapshot {
    /// The dimension.
    pub dimension: DimensionId,
    /// The box.
    pub area: BlockBox,
    /// The parts of the snapshot to capture.
    ///
    /// An entity that stays in the box for the whole capture is in the snapshot exactly once, even if it moves. An entity that
    /// enters or leaves the box meanwhile may be in it.
    pub parts: SnapshotParts,
    /// `true` if columns that were never generated are left out: they are missing from the snapshot, and a restore does not
    /// change them. If `false`, they are generated and captured.
    pub leaves_ungenerated: bool,
    /// Where the finished snapshot is stored; `None` keeps it in memory only.
    pub store: Option<StoreSnapshot>,
}

/// How and where a snapshot is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSnapshot {
    /// The folder, which must not exist yet.
    pub folder: PathBuf,
    /// The compression level, from 0 (none) to 9.
    pub level: u32,
    /// Data of the game's own, available when the snapshot is [opened](StoredSnapshot::owner_data).
    pub owner_data: BTreeMap<String, String>,
}

impl StoreSnapshot {
    /// Stores the snapshot in a folder, at level 6. Nothing waits for it, so that is above the default for stored snapshots.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), level: 6, owner_data: BTreeMap::new() }
    }
}

impl CaptureSnapshot {
    /// Captures everything in a box, and generates columns that are missing.
    pub fn new(dimension: DimensionId, area: BlockBox) -> Self {
        Self { dimension, area, parts: SnapshotParts::ALL, leaves_ungenerated: false, store: None }
    }
}

/// An order to restore a snapshot at its original place. To restore it elsewhere, rotated or mirrored, call
/// [`Snapshot::placed`] first.
#[derive(Clone, Debug)]
pub struct RestoreSnapshot {
    /// The dimension.
    pub dimension: DimensionId,
    /// The snapshot.
    pub snapshot: SnapshotSource,
    /// The part of the box that is restored; `None` for all of it.
    pub area: Option<BlockBox>,
    /// Which blocks are restored.
    pub filter: BlockFilter,
    /// The sequence of the restore, phase by phase, each when the one before is done; `None` for all columns as soon as possible.
    pub sequence: Option<RestoreSequence>,
    /// How entities are treated.
    pub entities: EntityRestore,
    /// How an interrupted restore is handled in the next session.
    pub after_crash: AfterCrash,
}

/// The source of a restored snapshot.
#[derive(Clone, Debug)]
pub enum SnapshotSource {
    /// A snapshot in memory.
    Held(Arc<Snapshot>),
    /// A stored snapshot. All of its files are read, and their checksums verified, before anything in the world changes.
    Stored(Arc<StoredSnapshot>),
}

impl SnapshotSource {
    /// The box of the snapshot.
    pub fn area(&self) -> BlockBox {
        match self {
            Self::Held(snapshot) => *snapshot.area(),
            Self::Stored(stored) => *stored.area(),
        }
    }

    /// The folder of a stored snapshot.
    pub(in crate::coordinator) fn folder(&self) -> Option<&Path> {
        match self {
            Self::Held(_) => None,
            Self::Stored(stored) => Some(stored.folder()),
        }
    }

    /// The columns that are also in `area`, ascending.
    pub(in crate::coordinator) fn columns_in(&self, area: &BlockBox) -> Vec<ColumnPos> {
        let columns: Vec<ColumnPos> = match self {
            Self::Held(snapshot) => snapshot.columns().map(|(column, _)| column).collect(),
            Self::Stored(stored) => stored.columns().collect(),
        };
        columns.into_iter().filter(|column| area.reaches(*column)).collect()
    }

    /// The snapshot, if it is in memory.
    pub(in crate::coordinator) fn held(&self) -> Option<&Arc<Snapshot>> {
        match self {
            Self::Held(snapshot) => Some(snapshot),
            Self::Stored(_) => None,
        }
    }
}

impl From<Arc<Snapshot>> for SnapshotSource {
    fn from(snapshot: Arc<Snapshot>) -> Self {
        Self::Held(snapshot)
    }
}

impl From<Snapshot> for SnapshotSource {
    fn from(snapshot: Snapshot) -> Self {
        Self::Held(Arc::new(snapshot))
    }
}

impl From<Arc<StoredSnapshot>> for SnapshotSource {
    fn from(stored: Arc<StoredSnapshot>) -> Self {
        Self::Stored(stored)
    }
}

/// The handling of a restore that the end of the process or of its dimension interrupts. It takes place when the dimension is
/// opened again. If the world is on disk, a restore never stays half done, except with [`Leave`](Self::Leave).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Reflect)]
#[type_path = "bevy_terrane"]
pub enum AfterCrash {
    /// The restore runs again. Columns that were restored already do not change.
    #[default]
    Continue,
    /// The previous contents of the box come back. For that, the box is captured and stored before the restore begins.
    Undo,
    /// The restored part stays, and the rest is not changed. Nothing has to be stored.
    Leave,
}

impl RestoreSnapshot {
    /// Restores blocks and entities, column by column.
    pub fn new(dimension: DimensionId, snapshot: impl Into<SnapshotSource>) -> Self {
        Self {
            dimension,
            snapshot: snapshot.into(),
            area: None,
            filter: BlockFilter::default(),
            sequence: None,
            entities: EntityRestore::default(),
            after_crash: AfterCrash::default(),
        }
    }

    /// The box that the restore changes.
    pub fn restored_area(&self) -> BlockBox {
        let whole = self.snapshot.area();
        self.area.map_or(whole, |part| part.intersection(&whole))
    }
}

/// How a restore treats entities. Players are never touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Reflect)]
#[type_path = "bevy_terrane"]
pub enum EntityRestore {
    /// Entities that are stored with their components and stand in the box are removed. Entities of the snapshot are added
    /// unless they are alive elsewhere.
    #[default]
    Replace,
    /// No entity is removed. Entities of the snapshot are added unless they are alive anywhere.
    Add,
    /// No entity is added or removed.
    Keep,
}

/// An order for a capture or a restore.
#[derive(Clone, Debug)]
pub enum SnapshotOrder {
    /// A capture.
    Capture(CaptureSnapshot),
    /// A restore.
    Restore(RestoreSnapshot),
}

impl SnapshotOrder {
    /// The dimension.
    pub fn dimension(&self) -> DimensionId {
        match self {
            Self::Capture(capture) => capture.dimension,
            Self::Restore(restore) => restore.dimension,
        }
    }

    /// The box.
    pub fn area(&self) -> BlockBox {
        match self {
            Self::Capture(capture) => capture.area,
            Self::Restore(restore) => restore.restored_area(),
        }
    }
}

/// Limits for snapshot jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotConfig {
    /// The number of jobs that run at a time. The others wait in line.
    pub jobs: usize,
    /// The number of columns that a job has in flight. Each takes at least a tick of its region, so a small number makes a job
    /// take many ticks even if there is little to do.
    pub columns: usize,
    /// How many of these columns may be loaded only for the job.
    pub loading: usize,
    /// The share of a region's tick that may be spent on columns, from 0 to 1. At least one column is processed per tick. The
    /// share is ignored in lockstep.
    pub tick_share: f64,
    /// The number of chunks that may be changed in one tick of a region.
    pub chunks: usize,
    /// The folder for arenas and for the records of running restores; `None` for the folder `snapshots` of the world. An
    /// in-memory world has neither unless a folder is set.
    pub folder: Option<PathBuf>,
    /// The maximum length of each side of an arena, in blocks.
    pub arena_side: u64,
}

impl Default for SnapshotConfig {
    /// One job at a time, 1,024 columns in flight with 128 loaded for the job, 60 % of a tick, 4,096 chunks, 1,024 blocks a side.
    fn default() -> Self {
        Self { jobs: 1, columns: 1_024, loading: 128, tick_share: 0.6, chunks: 4_096, folder: None, arena_side: 1_024 }
    }
}

impl SnapshotConfig {
    /// The folder for the snapshots of a world.
    pub(in crate::coordinator) fn folder_in(&self, store: &WorldStore) -> Option<PathBuf> {
        self.folder.clone().or_else(|| store.snapshot_folder())
    }
}

/// Why a job failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JobError {
    /// The box reaches into too many columns.
    #[error("the box reaches {columns} columns, and at most {limit} are possible")]
    TooManyColumns {
        /// The number of columns in the box.
        columns: u128,
        /// The limit.
        limit: u128,
    },
    /// The box is too high to be restored in a sequence.
    #[error("a restore in a sequence reaches at most {limit} chunk heights")]
    TooManyHeights {
        /// The limit.
        limit: u64,
    },
    /// The dimension is not open, or was closed while the job ran.
    #[error("{0} is not open")]
    NotOpen(DimensionId),
    /// A stored snapshot cannot be read or written.
    #[error(transparent)]
    Stored(#[from] StoredSnapshotError),
    /// Work outside of the regions failed.
    #[error(transparent)]
    Work(#[from] WorkError),
    /// A column could not be worked on.
    #[error(transparent)]
    Column(#[from] ColumnError),
    /// The job was cancelled.
    #[error("it was cancelled")]
    Cancelled,
}

/// The result for one column, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnOutcome {
    /// The column.
    pub column: ColumnPos,
    /// The result.
    pub result: ColumnResult,
    /// The heights of the changed chunks, in chunks, ascending.
    pub changed: Vec<i64>,
}

/// The result for one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnResult {
    /// The column is done.
    Done,
    /// The job ended first. The chunks that are listed as changed are restored, the others are not changed.
    Unfinished,
    /// The column was not generated, and was left out.
    LeftOut,
    /// The column failed.
    Failed(ColumnError),
}

/// The result of a capture or a restore; empty for other jobs.
#[derive(Clone, Debug, Default)]
pub struct JobOutcome {
    /// The captured snapshot, even if it is incomplete.
    pub snapshot: Option<Arc<Snapshot>>,
    /// The stored snapshot, if the order asked for one.
    pub stored: Option<Arc<StoredSnapshot>>,
    /// The result for each column, ordered by position.
    pub columns: Vec<ColumnOutcome>,
    /// The number of entities of the snapshot that were not added because they are alive elsewhere.
    pub alive_elsewhere: usize,
    /// The error of a failed job.
    pub error: Option<JobError>,
}
