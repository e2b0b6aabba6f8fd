//! Work on columns at the end of a region's tick: capturing and restoring them, within a budget of the tick.
//!
//! It comes as a letter to the column, so it finds its region through merges and splits, and the column is loaded for it. It is
//! done in the tick with which it came, after the game's systems, or comes back as postponed: nothing of it stays in a region.

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

/// What is to be done with a column. Of a box only the part counts that the column, or the region, has.
pub enum ColumnWork {
    /// What is in it is to be captured.
    Capture {
        column: ColumnPos,
        area: BlockBox,
        /// Whether entities are to be captured too.
        entities: bool,
    },
    /// Blocks are to be restored with their layers and components, and entities of the region to go.
    Restore {
        column: ColumnPos,
        area: BlockBox,
        /// What is to be there.
        snapshot: Arc<Snapshot>,
        /// Which blocks take part.
        filter: Arc<BlockFilter>,
        /// Whether the entities in the box go that are stored with their components, but for players.
        removes_entities: bool,
    },
    /// Entities are to come into it, and the word that it is restored.
    PlaceEntities { column: ColumnPos, area: BlockBox, entities: Vec<EntityRecord> },
    /// Entities are to go from it and from the region's other columns, of those that the snapshot tells of: whoever crossed
    /// into a column that was restored already. Like looking for them, that takes no part in the budget: it is to be done to
    /// all of them at the same moment.
    Clear { area: BlockBox, snapshot: Arc<Snapshot> },
    /// It is to be looked who stands in it and in the region's other columns and is not known already.
    Look { area: BlockBox, known: Arc<FxHashSet<Uuid>> },
}

/// What has come of it.
#[derive(Debug)]
pub enum ColumnAnswer {
    /// It was captured, as it was at the end of a tick.
    Captured {
        /// Ticks of the region before that one.
        tick: u64,
        /// Its blocks, which it shares with the world.
        blocks: Column,
        /// The entities in the box, but for players.
        entities: Vec<EntityRecord>,
    },
    /// It was restored.
    Restored {
        /// The heights of the chunks that were changed, in chunks, ascending.
        chunks: Vec<i64>,
        /// Who was removed, with all that hung on them.
        removed: Vec<Uuid>,
        /// The region, and its ticks before that one.
        tick: (RegionId, u64),
    },
    /// So many entities came into it.
    Placed(usize),
    /// Whoever was there has gone.
    Cleared {
        /// The region's columns that the box reaches, ascending.
        columns: Vec<ColumnPos>,
        /// Who was removed, with all that hung on them.
        removed: Vec<Uuid>,
    },
    /// It was looked who is there.
    Seen {
        /// The region's columns that the box reaches, ascending.
        columns: Vec<ColumnPos>,
        /// Who stands in the box and was not known, but for players.
        entities: Vec<EntityRecord>,
    },
    /// The budget was used up: it is to be sent again.
    Postponed,
    /// It could not be done, and nothing was changed.
    Failed(ColumnError),
    /// It was lost on its way, or with its region: nobody knows whether it was done.
    Lost,
}

/// A column of the region was restored from a snapshot, blocks and entities: light and what else follows from its blocks is
/// to be made anew. It comes once a column, when the whole job has restored all blocks.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnRestored {
    /// The column.
    pub column: ColumnPos,
    /// The box that was restored.
    pub area: BlockBox,
}

/// Work with whom to tell what came of it, and how much of a tick may be spent on it: the first column of a tick is worked on
/// in any case.
pub struct OrderedWork {
    pub work: ColumnWork,
    /// The part of the region's period, from 0 to 1; `None` if time does not count, as in lockstep.
    pub share: Option<f64>,
    /// Chunks that may be changed in a tick.
    pub chunks: usize,
    /// Nobody wants it any more: nothing is done then.
    pub is_void: Stop,
    pub answer: Answer,
}

/// What came of work, and how long it took. Whoever ordered it is told when the tick has ended well; if this is dropped, all
/// of it is lost, and that is told.
pub struct Answer {
    pub result: ColumnAnswer,
    pub took: Duration,
    tell: Option<Box<dyn FnOnce(ColumnAnswer, Duration) + Send>>,
}

impl Answer {
    /// Nothing has come of it yet. `tell` is called once, on whatever thread.
    pub fn new(tell: impl FnOnce(ColumnAnswer, Duration) + Send + 'static) -> Self {
        Self { result: ColumnAnswer::Lost, took: Duration::ZERO, tell: Some(Box::new(tell)) }
    }

    /// Whether something in the world is not as it was.
    pub fn has_changed(&self) -> bool {
        match &self.result {
            ColumnAnswer::Restored { chunks, removed, .. } => !chunks.is_empty() || !removed.is_empty(),
            ColumnAnswer::Placed(count) => *count > 0,
            ColumnAnswer::Cleared { removed, .. } => !removed.is_empty(),
            _ => false,
        }
    }

    /// Tells what came of it.
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
