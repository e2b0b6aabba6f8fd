//! What a snapshot job is to do.

use crate::snapshot::{BlockFilter, RestoreOrder, Snapshot, SnapshotParts};
use crate::space::{BlockBox, DimensionId};
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
    /// Whoever is in the box from the beginning to the end is in the snapshot once, wherever they go meanwhile. Whoever comes
    /// or goes meanwhile may be in it.
    pub parts: SnapshotParts,
    /// What becomes of columns that were never generated.
    pub ungenerated: UngeneratedGround,
}

impl CaptureSnapshot {
    /// All that is in a box, with what is generated for it.
    pub fn new(dimension: DimensionId, area: BlockBox) -> Self {
        Self { dimension, area, parts: SnapshotParts::ALL, ungenerated: UngeneratedGround::default() }
    }
}

/// What a capture does with columns that were never generated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UngeneratedGround {
    /// They are generated, and captured.
    #[default]
    Generate,
    /// They are missing in the snapshot, and are left alone when it is restored.
    LeaveOut,
}

/// A snapshot to be restored where it lies. To restore it elsewhere, rotated or mirrored, place it first:
/// [`Snapshot::placed`].
#[derive(Clone, Debug)]
pub struct RestoreSnapshot {
    /// The dimension.
    pub dimension: DimensionId,
    /// What is to be there.
    pub snapshot: Arc<Snapshot>,
    /// The part of it that is restored; `None` for all.
    pub area: Option<BlockBox>,
    /// Which blocks take part.
    pub filter: BlockFilter,
    /// In which order, phase by phase, each when the one before is done; `None` for all columns as soon as may be.
    pub order: Option<RestoreOrder>,
    /// What becomes of entities.
    pub entities: EntityRestore,
}

impl RestoreSnapshot {
    /// All of it, blocks and entities, column by column.
    pub fn new(dimension: DimensionId, snapshot: Arc<Snapshot>) -> Self {
        Self {
            dimension,
            snapshot,
            area: None,
            filter: BlockFilter::default(),
            order: None,
            entities: EntityRestore::default(),
        }
    }

    /// The box that it changes.
    pub fn restored_area(&self) -> BlockBox {
        let whole = *self.snapshot.area();
        self.area.map_or(whole, |part| part.intersection(&whole))
    }
}

/// What a restore does with entities. Players are left alone in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
pub enum SnapshotTask {
    /// A capture.
    Capture(CaptureSnapshot),
    /// A restore.
    Restore(RestoreSnapshot),
}

impl SnapshotTask {
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
