//! What of the columns of a sparse dimension is loaded.

use crate::chunk::Column;
use crate::coordinator::dimension::column_state::{Failure, Order};
use crate::space::{ChunkPos, ColumnPos, HeightSet};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::ops::Range;

/// What of the columns of a sparse dimension is loaded.
#[derive(Default)]
pub struct SparseColumns {
    pub parts: FxHashMap<ColumnPos, Part>,
    /// Columns of which something else may be wanted than before.
    pub revised: BTreeSet<ColumnPos>,
    /// Those of which more is wanted, when there is room for it.
    pub waiting: BTreeSet<ColumnPos>,
}

/// A column of a sparse dimension.
#[derive(Default)]
pub struct Part {
    /// The chunk heights that are with a region or in its inbox.
    pub loaded: HeightSet,
    /// What is not stored, and was not generated since generation was paused.
    pub ungenerated: HeightSet,
    pub change: PartChange,
}

/// The change of a column that is under way.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum PartChange {
    #[default]
    None,
    /// More of it is on order.
    Ordered(Order),
    /// More of it could not be had.
    Failed(Failure),
    /// The region was asked to let go of some of it.
    Leaving,
}

impl SparseColumns {
    /// Something else may be wanted of the column than before.
    pub fn revise(&mut self, column: ColumnPos) {
        self.revised.insert(column);
    }

    pub fn part(&mut self, column: ColumnPos) -> &mut Part {
        self.parts.entry(column).or_default()
    }

    /// Of these heights, those that are not loaded.
    pub fn unloaded(&self, column: ColumnPos, heights: &HeightSet) -> HeightSet {
        self.parts.get(&column).map_or_else(|| heights.clone(), |part| heights.difference(&part.loaded))
    }

    /// The chunk heights of a column that are loaded.
    pub fn loaded_heights(&self, column: ColumnPos) -> impl Iterator<Item = Range<i64>> {
        self.parts.get(&column).into_iter().flat_map(|part| part.loaded.ranges())
    }

    /// These heights are with the column's region.
    pub fn note_loaded(&mut self, column: ColumnPos, heights: &HeightSet) {
        self.part(column).loaded.insert_all(heights);
        self.revise(column);
    }

    /// The region of the column has none of it any more.
    pub fn forget(&mut self, column: ColumnPos) {
        let Self { parts, revised, waiting } = self;
        parts.remove(&column);
        revised.remove(&column);
        waiting.remove(&column);
    }

    /// What is not stored, and may not be generated now.
    pub fn leave_out(&mut self, column: ColumnPos, heights: &HeightSet) {
        if !heights.is_empty() {
            self.part(column).ungenerated.insert_all(heights);
        }
    }

    /// Whether the chunk cannot be had now: it may not be generated, or a part of its column failed.
    pub fn is_stuck(&self, chunk: ChunkPos) -> bool {
        let is_stuck = |part: &Part| {
            let has_failed = match part.change {
                PartChange::Failed(_) => true,
                PartChange::Ordered(order) => order.attempts > 0,
                PartChange::None | PartChange::Leaving => false,
            };
            has_failed || part.ungenerated.contains(chunk.y)
        };
        self.parts.get(&chunk.column()).is_some_and(is_stuck)
    }

    /// Generation goes on: what was left out is wanted again.
    pub fn resume(&mut self) {
        let left_out = self.parts.iter_mut().filter(|(_, part)| !part.ungenerated.is_empty());
        self.revised.extend(left_out.map(|(column, part)| {
            part.ungenerated = HeightSet::new();
            *column
        }));
    }

    /// Whether all that is known to be loaded of the column is in this one.
    pub fn is_all(&self, column: &Column) -> bool {
        match (self.parts.get(&column.pos()), column.loaded()) {
            (Some(part), Some(loaded)) => loaded.contains_all(&part.loaded),
            _ => true,
        }
    }

    /// No more and no less of the column is with its region.
    pub fn correct(&mut self, column: &Column) {
        self.part(column.pos()).loaded = column.loaded().cloned().unwrap_or_default();
        self.revise(column.pos());
    }

    /// The region was not told what to let go of, and stays as it is.
    pub fn keep(&mut self, column: ColumnPos) {
        if self.parts.get(&column).is_some_and(|part| part.change == PartChange::Leaving) {
            self.part(column).change = PartChange::None;
            self.revise(column);
        }
    }

    /// The order with this claim was answered or taken back. Gives it if it was for a part of the column.
    pub fn end_order(&mut self, column: ColumnPos, claim: u64) -> Option<Order> {
        let part = self.parts.get_mut(&column)?;
        let PartChange::Ordered(order) = part.change else { return None };
        if order.claim != claim {
            return None;
        }
        part.change = PartChange::None;
        self.revise(column);
        Some(order)
    }

    /// A part of the column is ordered. An order after failures counts them.
    pub fn order(&mut self, column: ColumnPos, claim: u64) {
        let change = &mut self.part(column).change;
        let attempts = if let PartChange::Failed(failure) = change { failure.attempts } else { 0 };
        *change = PartChange::Ordered(Order { claim, attempts, ..Order::default() });
    }
}
