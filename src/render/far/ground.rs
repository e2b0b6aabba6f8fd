//! The summaries of the columns of a tile.

use crate::chunk::{ColumnSummary, Detail, SummaryCell};
use crate::space::CHUNK_SIZE;
use std::sync::Arc;

/// The number of columns along a side of a tile.
pub(super) const TILE: i64 = 8;
/// The same with one more on each side.
const PADDED: usize = TILE as usize + 2;
const SIZE: i64 = CHUNK_SIZE as i64;

/// The summaries of the columns of a tile and those around it.
#[derive(Clone, Default)]
pub(super) struct FarGround {
    columns: [[Option<Arc<ColumnSummary>>; PADDED]; PADDED],
}

impl FarGround {
    /// `column` returns the columns by their offset from the tile's lowest one: -1 to 8.
    pub fn from_fn(mut column: impl FnMut(i64, i64) -> Option<Arc<ColumnSummary>>) -> Self {
        let columns = std::array::from_fn(|x| std::array::from_fn(|z| column(x as i64 - 1, z as i64 - 1)));
        Self { columns }
    }

    pub fn column(&self, x: i64, z: i64) -> Option<&ColumnSummary> {
        self.columns[(x + 1) as usize][(z + 1) as usize].as_deref()
    }

    /// The detail of the column with a block, relative to the tile's lowest block.
    pub fn detail(&self, x: i64, z: i64) -> Option<Detail> {
        Some(self.column(x.div_euclid(SIZE), z.div_euclid(SIZE))?.detail())
    }

    /// The visible cell at a block, relative to the tile's lowest block.
    pub fn surface(&self, x: i64, z: i64) -> Option<SummaryCell> {
        let column = self.column(x.div_euclid(SIZE), z.div_euclid(SIZE))?;
        let cell = |block: i64| block.rem_euclid(SIZE) as usize / column.detail().cell_size();
        column.surface(cell(x), cell(z))
    }

    /// The lowest height in the tile's own columns.
    pub fn lowest(&self) -> Option<i64> {
        let own = (0..TILE).flat_map(|x| (0..TILE).map(move |z| (x, z)));
        own.filter_map(|(x, z)| Some(self.column(x, z)?.heights()?.0)).min()
    }
}
