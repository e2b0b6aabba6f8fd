//! Summaries of columns for distant views: the surface of each cell.

mod format;
#[cfg(test)]
mod tests;

use super::Column;
use crate::block::BlockId;
use crate::space::CHUNK_SIZE;
use std::fmt;

/// The cell size of a [`ColumnSummary`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Detail(u8);

impl Detail {
    /// One cell per block.
    pub const FINEST: Self = Self(0);
    /// One cell for the whole column.
    pub const COARSEST: Self = Self(CHUNK_SIZE.trailing_zeros() as u8);

    /// Cells of 2^`level` blocks a side, at most as large as a column.
    pub const fn new(level: u8) -> Self {
        if level > Self::COARSEST.0 { Self::COARSEST } else { Self(level) }
    }

    /// The level: a cell has 2^`level` blocks a side.
    pub const fn level(self) -> u8 {
        self.0
    }

    /// The side length of a cell in blocks.
    pub const fn cell_size(self) -> usize {
        1 << self.0
    }

    /// The number of cells along a side of the column.
    pub const fn cells(self) -> usize {
        CHUNK_SIZE >> self.0
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, cells) = (self.cell_size(), self.cells());
        write!(f, "{cells} x {cells} cells of {size} x {size} blocks")
    }
}

/// The visible surface of a cell, seen from above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SummaryCell {
    /// The height of the highest block that is not air, in blocks; for a larger cell the mean.
    pub height: i64,
    /// The highest block; for a larger cell the most frequent one.
    pub block: BlockId,
}

/// The surface of a column, cell by cell, for distant drawing or for sending to a player.
///
/// ```
/// # use terrane_world::{block::BlockId, chunk::{Column, ColumnSummary, Detail}, space::{BlockPos, ColumnPos}};
/// let mut column = Column::new(ColumnPos::new(0, 0));
/// column.set_block(BlockPos::new(3, 70, 5), BlockId::new(1));
/// let summary = ColumnSummary::new(&column);
/// assert_eq!(summary.surface(3, 5).unwrap().height, 70);
/// assert_eq!(summary.surface(4, 5), None);
/// assert_eq!(summary.at(Detail::COARSEST).surface(0, 0), None, "most of it has no ground");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSummary {
    detail: Detail,
    /// Ordered by z, then by x.
    cells: Box<[Option<SummaryCell>]>,
}

impl ColumnSummary {
    /// The finest summary of a column.
    pub fn new(column: &Column) -> Self {
        let highest = column.highest_of_all(|block| block != BlockId::AIR).into_iter();
        let cell = |(height, block)| SummaryCell { height, block };
        Self { detail: Detail::FINEST, cells: highest.map(|found| found.map(cell)).collect() }
    }

    /// The cell size of the summary.
    pub fn detail(&self) -> Detail {
        self.detail
    }

    /// The surface of the cell `x`, `z`, counted in cells from the column's lowest corner; `None` if there is no
    /// ground or no such cell.
    pub fn surface(&self, x: usize, z: usize) -> Option<SummaryCell> {
        let side = self.detail.cells();
        (x < side && z < side).then(|| self.cells[x + side * z])?
    }

    /// A coarser summary. If this one is already at least as coarse, returns a copy.
    pub fn at(&self, detail: Detail) -> Self {
        let mut summary = self.clone();
        while summary.detail < detail {
            summary = summary.coarser();
        }
        summary
    }

    /// A summary with cells of twice the size.
    fn coarser(&self) -> Self {
        let detail = Detail::new(self.detail.0 + 1);
        let side = detail.cells();
        let cell = |index: usize| {
            let (x, z) = (index % side * 2, index / side * 2);
            merge([(x, z), (x + 1, z), (x, z + 1), (x + 1, z + 1)].map(|(x, z)| self.surface(x, z)))
        };
        Self { detail, cells: (0..side * side).map(cell).collect() }
    }

    /// The lowest and the highest cell with ground.
    pub fn heights(&self) -> Option<(i64, i64)> {
        let heights = || self.cells.iter().flatten().map(|cell| cell.height);
        Some((heights().min()?, heights().max()?))
    }
}

/// Merges four cells into one, which has ground if at least half of them have it.
fn merge(cells: [Option<SummaryCell>; 4]) -> Option<SummaryCell> {
    let ground: Vec<SummaryCell> = cells.into_iter().flatten().collect();
    if ground.len() < 2 {
        return None;
    }
    let sum: i128 = ground.iter().map(|cell| i128::from(cell.height)).sum();
    let height = sum.div_euclid(ground.len() as i128) as i64;
    let seen = |surface: &&SummaryCell| ground.iter().filter(|other| other.block == surface.block).count();
    // Among equally frequent blocks the higher one; among equally high ones an arbitrary, but deterministic choice.
    let block = ground.iter().max_by_key(|cell| (seen(cell), cell.height, cell.block.index()))?.block;
    Some(SummaryCell { height, block })
}
