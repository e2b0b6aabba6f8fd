//! Work on columns at the end of a region's tick: capturing and restoring them, within a budget of the tick.
//!
//! Work arrives as a letter to the column, so it finds its region through merges and splits, and the column is loaded for
//! it. It is done after the game's systems in the tick in which it arrives, or returns as postponed. A region never keeps
//! any of it.

use super::column_source::ColumnError;
use crate::chunk::Column;
use crate::region::RegionId;
use crate::snapshot::{BlockFilter, Snapshot};
use crate::space::{BlockBox, ColumnPos};
use crate::storage::EntityRecord;
use crate::work::Stop;
use bevy::prelude::*;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// The work to do on a column. Only the part of a box that lies in the column, or in the region, counts.
pub enum ColumnWork {
    /// Capture the contents of the column.
    Capture {
        column: ColumnPos,
        area: BlockBox,
        /// `true` if entities are captured too.
        entities: bool,
    },
    /// Restore blocks with their layers and components, and remove entities of the region.
    Restore {
        column: ColumnPos,
        area: BlockBox,
        /// The contents to restore.
        snapshot: Arc<Snapshot>,
        /// The blocks to restore.
        filter: Arc<BlockFilter>,
        /// `true` if saved entities in the box are removed. Players always stay.
        removes_entities: bool,
    },
    /// Spawn entities in the column, and announce that it is restored.
    PlaceEntities { column: ColumnPos, area: BlockBox, entities: Vec<EntityRecord> },
    /// Remove entities from the column and from the region's other columns if the snapshot contains them: those that crossed
    /// into a column that was restored already. Like `Look`, this ignores the budget, because it must happen to all columns of
    /// the region at the same moment.
    Clear { area: BlockBox, snapshot: Arc<Snapshot> },
    /// Find the entities in the column and in the region's other columns that are not in `known`.
    Look { area: BlockBox, known: Arc<FxHashSet<Uuid>> },
}

/// The result of work on a column.
#[derive(Debug)]
pub enum ColumnAnswer {
    /// The column was captured as it was at the end of a tick.
    Captured {
        /// The number of ticks of the region before that one.
        tick: u64,
        /// The blocks, shared with the world.
        blocks: Column,
        /// The entities in the box, without players.
        entities: Vec<EntityRecord>,
    },
    /// The column was restored.
    Restored {
        /// The heights of the chunks that changed, in chunks, ascending.
        chunks: Vec<i64>,
        /// The removed entities and everything attached to them.
        removed: Vec<Uuid>,
        /// The region, and the number of its ticks before that one.
        tick: (RegionId, u64),
    },
    /// The number of entities that were spawned.
    Placed(usize),
    /// The entities were removed.
    Cleared {
        /// The region's columns that the box reaches, ascending.
        columns: Vec<ColumnPos>,
        /// The removed entities and everything attached to them.
        removed: Vec<Uuid>,
    },
    /// The entities in the box were looked up.
    Seen {
        /// The region's columns that the box reaches, ascending.
        columns: Vec<ColumnPos>,
        /// The entities in the box that were not known, without players.
        entities: Vec<EntityRecord>,
    },
    /// The budget was used up, and the work must be sent again.
    Postponed,
    /// The work failed, and nothing was changed.
    Failed(ColumnError),
    /// The work was lost in transit or with its region. It may or may not have been done.
    Lost,
}

/// A column of the region was restored from a snapshot: blocks, entities and light. Other data derived from blocks must be
/// recomputed. Sent once per column, when the whole job has restored all blocks.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnRestored {
    /// The column.
    pub column: ColumnPos,
    /// The box that was restored.
    pub area: BlockBox,
}

/// Work with its budget and the receiver of its result. The first column of a tick is worked on regardless of the budget.
pub struct OrderedWork {
    pub work: ColumnWork,
    /// The budget as a part of the region's period, from 0 to 1; `None` if time does not count, as in lockstep.
    pub share: Option<f64>,
    /// The maximum number of chunks changed in a tick.
    pub chunks: usize,
    /// Set if the work is no longer needed. It is skipped then.
    pub is_void: Stop,
    pub answer: Answer,
}

/// The result of work and the time it took. The sender gets it after the tick has ended without a panic. Dropping the answer
/// reports the work as lost.
pub struct Answer {
    pub result: ColumnAnswer,
    pub took: Duration,
    tell: Option<Box<dyn FnOnce(ColumnAnswer, Duration) + Send>>,
}

impl Answer {
    /// An answer without a result yet. `tell` is called once, on any thread.
    pub fn new(tell: impl FnOnce(ColumnAnswer, Duration) + Send + 'static) -> Self {
        Self { result: ColumnAnswer::Lost, took: Duration::ZERO, tell: Some(Box::new(tell)) }
    }

    /// Returns `true` if the work changed anything in the world.
    pub fn has_changed(&self) -> bool {
        match &self.result {
            ColumnAnswer::Restored { chunks, removed, .. } => !chunks.is_empty() || !removed.is_empty(),
            ColumnAnswer::Placed(count) => *count > 0,
            ColumnAnswer::Cleared { removed, .. } => !removed.is_empty(),
            _ => false,
        }
    }

    /// Reports the result.
    pub fn tell(mut self) {
        let result = std::mem::replace(&mut self.result, ColumnAnswer::Lost);
        if let Some(tell) = self.tell.take() {
            tell(result, self.took);
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(tell) = self.tell.take() {
            tell(ColumnAnswer::Lost, Duration::ZERO);
        }
    }
}
