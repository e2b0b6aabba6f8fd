//! The history of a tile's columns.

use super::record;
use super::tile_masks::{self, Masks};
use crate::space::{ColumnPos, HeightSet, TILE_BATCHES};
use std::ops::Range;

/// The history of a tile's columns. Without one, none of them is new, and all were generated for the
/// [first heights](crate::WorldStore::first_heights) of their dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileHistory {
    /// The columns that no region has been told of: a mask for each batch.
    new: Masks,
    /// The columns that were generated for other heights than the first ones, by these heights, in blocks. A column occurs once
    /// at most.
    heights: Vec<(HeightSet, Masks)>,
}

impl Default for TileHistory {
    fn default() -> Self {
        Self { new: NONE, heights: Vec::new() }
    }
}

const NONE: Masks = [0; TILE_BATCHES];

impl TileHistory {
    /// The history in place of a damaged one. None of its columns is new or lacks heights, so nothing is placed or generated
    /// there a second time.
    pub(crate) fn complete() -> Self {
        Self { new: NONE, heights: vec![((i64::MIN..i64::MAX).into(), [u16::MAX; TILE_BATCHES])] }
    }

    /// Returns `true` if no region has been told of the column. The column must be in the tile.
    pub fn is_new(&self, column: ColumnPos) -> bool {
        tile_masks::is_marked(&self.new, column)
    }

    /// Notes whether the column is new. Returns `true` if that changed.
    pub fn set_new(&mut self, column: ColumnPos, is_new: bool) -> bool {
        let has_changed = self.is_new(column) != is_new;
        tile_masks::set_mark(&mut self.new, column, is_new);
        has_changed
    }

    /// The block heights for which the column was generated; `None` for the first ones of its dimension.
    pub fn heights(&self, column: ColumnPos) -> Option<&HeightSet> {
        self.heights.iter().find(|(_, columns)| tile_masks::is_marked(columns, column)).map(|(heights, _)| heights)
    }

    /// Notes the block heights for which the column was generated; `None` for the first ones of its dimension.
    pub fn set_heights(&mut self, column: ColumnPos, heights: Option<HeightSet>) {
        self.heights.iter_mut().for_each(|(_, columns)| tile_masks::set_mark(columns, column, false));
        if let Some(heights) = heights {
            let place = self.heights.iter().position(|(known, _)| *known == heights).unwrap_or_else(|| {
                self.heights.push((heights, NONE));
                self.heights.len() - 1
            });
            tile_masks::set_mark(&mut self.heights[place].1, column, true);
        }
        self.heights.retain(|(_, columns)| *columns != NONE);
    }

    /// Forgets a column that is no longer stored.
    pub(crate) fn forget(&mut self, column: ColumnPos) {
        self.set_new(column, false);
        self.set_heights(column, None);
    }

    /// The history of only these columns. `first` are the first heights of the dimension, if they are known: with them, it says
    /// the heights of each of the columns.
    pub(crate) fn of_columns(mut self, columns: &Masks, first: Option<Range<i64>>) -> Self {
        let keep = |of: &mut Masks| of.iter_mut().zip(columns).for_each(|(of, columns)| *of &= columns);
        keep(&mut self.new);
        let mut rest = *columns;
        for (_, of) in &mut self.heights {
            keep(of);
            rest.iter_mut().zip(of).for_each(|(rest, of)| *rest &= !*of);
        }
        self.heights.extend(first.map(|first| (first.into(), rest)));
        self.heights.retain(|(_, columns)| *columns != NONE);
        self
    }

    /// Returns `true` if it says nothing. It is not stored then.
    pub fn is_empty(&self) -> bool {
        self.new == NONE && self.heights.is_empty()
    }

    /// The history as a record, in worlds and in exports.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let heights = self.heights.iter().map(|(heights, columns)| {
            let ranges: Vec<_> = heights.ranges().map(|range| (range.start, range.end)).collect();
            (ranges, tile_masks::bytes_of(columns))
        });
        record::encode(&(tile_masks::bytes_of(&self.new), heights.collect::<Vec<_>>()))
    }

    /// The error describes the damage.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        type Heights = Vec<(Vec<(i64, i64)>, Vec<u8>)>;
        let (new, heights): (Vec<u8>, Heights) = record::decode(bytes).map_err(|error| error.to_string())?;
        let mut history = Self { new: tile_masks::masks_of(&new)?, heights: Vec::with_capacity(heights.len()) };
        for (ranges, columns) in heights {
            let mut heights = HeightSet::new();
            ranges.into_iter().for_each(|(start, end)| heights.insert(start..end));
            history.heights.push((heights, tile_masks::masks_of(&columns)?));
        }
        Ok(history)
    }
}
