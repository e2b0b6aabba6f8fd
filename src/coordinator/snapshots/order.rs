//! What a snapshot job is to do.

use crate::snapshot::{BlockFilter, RestoreSequence, Snapshot, SnapshotParts, StoredSnapshot};
use crate::space::{BlockBox, ColumnPos, DimensionId};
use crate::storage::WorldStore;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A part of the world to be captured.
#[derive(Clone, Debug)]
pub struct CaptureSnapshot {
    /// The dimension.
    pub dimension: DimensionId,
    /// The box.
    pub area: BlockBox,
    /// What is captured of it.
    ///
    /// An entity that is in the box from the beginning to the end is in the snapshot once, wherever it goes meanwhile. One that comes
    /// or goes meanwhile may be in it.
    pub parts: SnapshotParts,
    /// Whether columns that were never generated are left out: they are missing in the snapshot, and are left alone when it is
    /// restored. If `false`, they are generated and captured.
    pub leaves_ungenerated: bool,
    /// Where it is stored in the end; `None` if it stays in memory.
    pub store: Option<StoreSnapshot>,
}

/// Where a snapshot is stored, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSnapshot {
    /// The folder, which must not be there yet.
    pub folder: PathBuf,
    /// How much time is spent on making it small: 0 for none at all to 9.
    pub level: u32,
    /// What the game wants to know of it when it is [opened](StoredSnapshot::owner_data).
    pub owner_data: BTreeMap<String, String>,
}

impl StoreSnapshot {
    /// Into a folder, at level 6: smaller than a snapshot is stored by default, as nothing waits for it.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), level: 6, owner_data: BTreeMap::new() }
    }
}

impl CaptureSnapshot {
    /// All that is in a box, with what is generated for it.
    pub fn new(dimension: DimensionId, area: BlockBox) -> Self {
        Self { dimension, area, parts: SnapshotParts::ALL, leaves_ungenerated: false, store: None }
    }
}

/// A snapshot to be restored where it lies. To restore it elsewhere, rotated or mirrored, place it first:
/// [`Snapshot::placed`].
#[derive(Clone, Debug)]
pub struct RestoreSnapshot {
    /// The dimension.
    pub dimension: DimensionId,
    /// What is to be there.
    pub snapshot: SnapshotSource,
    /// The part of it that is restored; `None` for all.
    pub area: Option<BlockBox>,
    /// Which blocks take part.
    pub filter: BlockFilter,
    /// In which sequence, phase by phase, each when the one before is done; `None` for all columns as soon as may be.
    pub sequence: Option<RestoreSequence>,
    /// What becomes of entities.
    pub entities: EntityRestore,
    /// What becomes of it if the process ends before it is done.
    pub after_crash: AfterCrash,
}

/// Where a restore has its snapshot from.
#[derive(Clone, Debug)]
pub enum SnapshotSource {
    /// From memory.
    Held(Arc<Snapshot>),
    /// From its files. All of them are read, and their checksums verified, before anything in the world changes.
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

    /// Where it is stored, if it is.
    pub(super) fn folder(&self) -> Option<&Path> {
        match self {
            Self::Held(_) => None,
            Self::Stored(stored) => Some(stored.folder()),
        }
    }

    /// The columns that are in a box too, ascending.
    pub(super) fn columns_in(&self, area: &BlockBox) -> Vec<ColumnPos> {
        let columns: Vec<ColumnPos> = match self {
            Self::Held(snapshot) => snapshot.columns().map(|(column, _)| column).collect(),
            Self::Stored(stored) => stored.columns().collect(),
        };
        columns.into_iter().filter(|column| area.reaches(*column)).collect()
    }

    /// The snapshot, if it is in memory.
    pub(super) fn held(&self) -> Option<&Arc<Snapshot>> {
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

/// What becomes of a restore that the end of the process, or of its dimension, cuts short: when the dimension is opened again
/// it is never left half done, if the world is on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AfterCrash {
    /// It is done once more: what is restored already differs no more.
    #[default]
    Continue,
    /// The box is restored as it was before. For that it is captured and stored before anything changes.
    Undo,
    /// What was restored stays, and the rest is left as it is. Nothing has to be stored.
    Leave,
}

impl RestoreSnapshot {
    /// All of it, blocks and entities, column by column.
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

    /// The box that it changes.
    pub fn restored_area(&self) -> BlockBox {
        let whole = self.snapshot.area();
        self.area.map_or(whole, |part| part.intersection(&whole))
    }
}

/// What a restore does with entities. Players are left alone in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntityRestore {
    /// Those that are stored with their components and stand in the box go, and those of the snapshot come, unless they are
    /// alive elsewhere.
    #[default]
    Replace,
    /// Nobody goes. Those of the snapshot come that are not alive anywhere.
    Add,
    /// Nobody comes or goes.
    Keep,
}

/// What a job is to do.
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

/// How much snapshot jobs may take of the world.
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotConfig {
    /// Jobs that run at a time; the others wait in their order.
    pub jobs: usize,
    /// Columns that a job has under way at a time. Work on one waits for a tick of its region, so with few of them a job takes
    /// many ticks, however little there is to do.
    pub columns: usize,
    /// Those of them that nobody had loaded: so many are held loaded for a job.
    pub loading: usize,
    /// The part of a region's tick that work on columns may take, from 0 to 1. The first column of a tick is worked on in any
    /// case. In lockstep it does not count.
    pub tick_share: f64,
    /// Chunks that may be changed in a region's tick.
    pub chunks: usize,
    /// Where arenas are stored, and restores remembered that are under way; `None` for the folder `snapshots` in that of the world. A world
    /// that is not on disk has none of both without a folder.
    pub folder: Option<PathBuf>,
    /// Blocks along each side of an arena at the most.
    pub arena_side: u64,
}

impl Default for SnapshotConfig {
    /// One job at a time, 1,024 columns and 128 that are loaded for it, 60 % of a tick, 4,096 chunks; arenas of 1,024 blocks a side.
    fn default() -> Self {
        Self { jobs: 1, columns: 1_024, loading: 128, tick_share: 0.6, chunks: 4_096, folder: None, arena_side: 1_024 }
    }
}

impl SnapshotConfig {
    /// Where snapshots of a world are.
    pub(in crate::coordinator) fn folder_in(&self, store: &WorldStore) -> Option<PathBuf> {
        self.folder.clone().or_else(|| store.snapshot_folder())
    }
}
