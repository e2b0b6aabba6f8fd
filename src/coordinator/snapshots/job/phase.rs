//! The phases of a job, and the pieces of work that each of them consists of.

use crate::coordinator::snapshots::{EntityRestore, RestoreSnapshot, SnapshotJobError};
use crate::snapshot::Snapshot;
use crate::space::{BlockBox, ColumnPos};
use std::collections::VecDeque;
use std::ops::RangeInclusive;

/// A restore in layers of more chunk heights is refused.
const MAX_HEIGHTS: u64 = 4_096;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// And how many columns are read or written.
    Files(FileStep, usize),
    Capture(Vec<ColumnPos>),
    /// Each region that has captured columns looks who is there and was not caught.
    LookAgain,
    /// Each region that has restored columns removes who has crossed into one of them since.
    Clear,
    /// The chunks at these heights of each column.
    Blocks(Vec<(ColumnPos, RangeInclusive<i64>)>),
    FindStored,
    Entities(Vec<ColumnPos>),
}

/// What is done with files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileStep {
    Read,
    Store,
    Record,
}

#[derive(Clone, Debug)]
pub struct Piece {
    pub(super) column: ColumnPos,
    /// In chunks.
    pub(super) heights: RangeInclusive<i64>,
    pub(super) tries: u32,
    /// How often it was looked whether its entities are alive.
    pub(super) looks: u32,
}

impl Piece {
    pub(super) const fn new(column: ColumnPos, heights: RangeInclusive<i64>) -> Self {
        Self { column, heights, tries: 0, looks: 0 }
    }
}

impl Phase {
    pub(super) fn columns(&self) -> Vec<ColumnPos> {
        match self {
            Self::Capture(columns) | Self::Entities(columns) => columns.clone(),
            Self::Blocks(pieces) => pieces.iter().map(|(column, _)| *column).collect(),
            Self::FindStored | Self::LookAgain | Self::Clear | Self::Files(..) => Vec::new(),
        }
    }

    /// What it counts for in the whole of a job.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Files(_, columns) => *columns,
            other => other.columns().len(),
        }
    }

    pub(super) fn pieces(&self, area: &BlockBox) -> VecDeque<Piece> {
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
pub fn restore_phases(
    restore: &RestoreSnapshot,
    snapshot: &Snapshot,
    area: &BlockBox,
) -> Result<Vec<Phase>, SnapshotJobError> {
    let has = |column: &ColumnPos| snapshot.column(*column).is_some();
    let columns: Vec<ColumnPos> = area.columns().filter(has).collect();
    let mut phases = match (restore.sequence, area.chunk_heights()) {
        (_, None) => Vec::new(),
        (None, Some(heights)) => {
            vec![Phase::Blocks(columns.iter().map(|column| (*column, heights.clone())).collect())]
        }
        (Some(_), Some(heights)) if heights.start().abs_diff(*heights.end()) >= MAX_HEIGHTS => {
            return Err(SnapshotJobError::TooManyHeights { limit: MAX_HEIGHTS });
        }
        (Some(sequence), Some(_)) => sequence.phases(&columns, area).into_iter().map(Phase::Blocks).collect(),
    };
    if restore.entities == EntityRestore::Replace {
        phases.push(Phase::Clear);
    }
    if restore.entities != EntityRestore::Keep {
        phases.push(Phase::FindStored);
    }
    phases.push(Phase::Entities(columns));
    Ok(phases)
}

/// The part of a box at these chunk heights.
pub fn slab(area: &BlockBox, heights: &RangeInclusive<i64>) -> BlockBox {
    let mut slab = *area;
    slab.min.y = slab.min.y.max(heights.start() << 4);
    slab.max.y = slab.max.y.min(heights.end() << 4 | 15);
    slab
}
