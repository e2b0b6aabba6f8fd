//! What a column looks like from afar: the surface of each of its cells.

mod format;
#[cfg(test)]
mod tests;

use super::Column;
use crate::block::BlockId;
use crate::space::CHUNK_SIZE;
use std::fmt;

/// How fine a [`ColumnSummary`] is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Detail(u8);

impl Detail {
    /// A cell for each block.
    pub const FINEST: Self = Self(0);
    /// One cell for the whole column.
    pub const COARSEST: Self = Self(CHUNK_SIZE.trailing_zeros() as u8);

    /// Cells of 2^`level` blocks a side; none are larger than a column.
    pub const fn new(level: u8) -> Self {
        if level > Self::COARSEST.0 { Self::COARSEST } else { Self(level) }
    }

    /// The side of a cell is 2^`level` blocks.
    pub const fn level(self) -> u8 {
        self.0
    }

    /// The side of a cell, in blocks.
    pub const fn cell_size(self) -> usize {
        1 << self.0
    }

    /// Cells along a side of the column.
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

/// What is seen of a cell from above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SummaryCell {
    /// The height of its highest block that is not air, in blocks; of a larger cell the mean.
    pub height: i64,
    /// That block; of a larger cell the one that is seen most.
    pub block: BlockId,
}

/// The surface of a column, cell by cell: what is drawn of it, or sent to a player, from afar.
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
    /// x fastest.
    cells: Box<[Option<SummaryCell>]>,
}

impl ColumnSummary {
    /// The finest summary of a column.
    pub fn new(column: &Column) -> Self {
        let highest = column.highest_of_all(|block| block != BlockId::AIR).into_iter();
        let cell = |(height, block)| SummaryCell { height, block };
        Self { detail: Detail::FINEST, cells: highest.map(|found| found.map(cell)).collect() }
    }

    /// How fine it is.
    pub fn detail(&self) -> Detail {
        self.detail
    }

    /// What is seen of the cell `x`, `z`, counted in cells from the column's lowest corner; `None` if there is no ground, or
    /// no such cell.
    pub fn surface(&self, x: usize, z: usize) -> Option<SummaryCell> {
        let side = self.detail.cells();
        (x < side && z < side).then(|| self.cells[x + side * z])?
    }

    /// The same from further away. A summary never gets finer: if it is as coarse already, it is copied.
    pub fn at(&self, detail: Detail) -> Self {
        let mut summary = self.clone();
        while summary.detail < detail {
            summary = summary.coarser();
        }
        summary
    }

    /// Cells of twice the sides.
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

/// One cell of four: ground if at least half of them have it.
fn merge(cells: [Option<SummaryCell>; 4]) -> Option<SummaryCell> {
    let ground: Vec<SummaryCell> = cells.into_iter().flatten().collect();
    if ground.len() < 2 {
        return None;
    }
    let sum: i128 = ground.iter().map(|cell| i128::from(cell.height)).sum();
    let height = sum.div_euclid(ground.len() as i128) as i64;
    let seen = |surface: &&SummaryCell| ground.iter().filter(|other| other.block == surface.block).count();
    // Of those that are seen as often, the higher one; of equally high ones any, but always the same.
    let block = ground.iter().max_by_key(|cell| (seen(cell), cell.height, cell.block.index()))?.block;
    Some(SummaryCell { height, block })
}
