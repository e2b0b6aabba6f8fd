//! What a dimension remembers of its stored columns: which of them are new, and for which heights they were generated.

use super::OpenDimension;
use crate::simulation::ColumnSource;
use crate::space::{ColumnPos, DimensionId, HeightSet, TilePos};
use crate::storage::{SaveBatch, StoreError, TileHistory, WorldStore};
use bevy::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The histories of a dimension's tiles, as they will be after the pending save.
#[derive(Default)]
pub struct History {
    tiles: BTreeMap<TilePos, TileHistory>,
    /// `true` if the [first heights](crate::simulation::ColumnSource::first_heights) are not stored yet.
    pub has_unsaved_heights: bool,
}

impl History {
    /// The histories that are stored. A server that shares the world reads them for each plot that it acquires.
    pub fn stored(store: &WorldStore, dimension: DimensionId) -> Result<Self, StoreError> {
        let tiles = if store.incarnation().is_none() { store.histories(dimension)? } else { Vec::new() };
        Ok(Self { tiles: tiles.into_iter().collect(), has_unsaved_heights: false })
    }

    /// The heights for which the columns of a dimension were generated, unless their histories say otherwise. They are those at
    /// its first opening, or at the first one of a version that stores them. They are stored with the first save after that.
    pub fn first_heights(
        &mut self,
        store: &WorldStore,
        dimension: DimensionId,
        now: &Range<i64>,
    ) -> Result<Range<i64>, StoreError> {
        let first = match store.incarnation() {
            Some(_) => store.agree_on_heights(dimension, now.clone()).map(Some),
            None => store.first_heights(dimension),
        };
        match first {
            Err(error) if error.is_damage() => warn!("{error}; all of its columns count as generated for {now:?}"),
            first => {
                if let Some(first) = first? {
                    return Ok(first);
                }
            }
        }
        self.has_unsaved_heights = true;
        Ok(now.clone())
    }

    /// Returns `true` if the column is stored and no region was told of it.
    pub fn is_new(&self, column: ColumnPos) -> bool {
        self.tiles.get(&column.tile()).is_some_and(|history| history.is_new(column))
    }

    /// Replaces the history of a tile.
    pub fn restore(&mut self, tile: TilePos, history: TileHistory) {
        match history.is_empty() {
            true => drop(self.tiles.remove(&tile)),
            false => drop(self.tiles.insert(tile, history)),
        }
    }
}

impl OpenDimension {
    /// The block heights for which a stored column was never generated.
    pub fn missing(&self, column: ColumnPos) -> HeightSet {
        self.ground.missing(self.land.history.tiles.get(&column.tile()).and_then(|history| history.heights(column)))
    }

    /// Notes that a column becomes stored, with the heights for which it was generated.
    pub fn begin_history(&mut self, column: ColumnPos, pending: &mut SaveBatch) {
        let ColumnSource { first_heights, heights, is_sparse, .. } = &*self.ground;
        let heights = (!is_sparse && heights != first_heights).then(|| heights.clone().into());
        self.change_history(column, pending, |history| {
            history.set_new(column, true);
            history.set_heights(column, heights);
        });
    }

    /// Notes that a stored column was generated for these block heights too.
    pub fn note_extended(&mut self, column: ColumnPos, extended: &HeightSet, pending: &mut SaveBatch) {
        let first = HeightSet::from(self.ground.first_heights.clone());
        self.change_history(column, pending, |history| {
            let mut heights = history.heights(column).cloned().unwrap_or_else(|| first.clone());
            heights.insert_all(extended);
            history.set_heights(column, (heights != first).then_some(heights));
        });
    }

    /// Notes that a region was told of new columns. What it placed there is in the pending save by now.
    pub fn note_told(&mut self, told: BTreeSet<ColumnPos>, pending: &mut SaveBatch) {
        for column in told {
            self.change_history(column, pending, |history| _ = history.set_new(column, false));
        }
    }

    /// Changes the history of a column with the next commit.
    fn change_history(&mut self, column: ColumnPos, pending: &mut SaveBatch, change: impl FnOnce(&mut TileHistory)) {
        let tile = column.tile();
        let before = self.land.history.tiles.get(&tile).cloned().unwrap_or_default();
        let mut history = before.clone();
        change(&mut history);
        if history != before {
            pending.histories.insert((self.id, tile), history.clone());
            self.land.history.restore(tile, history);
        }
    }
}
