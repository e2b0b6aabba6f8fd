//! [`SyncArea`]: the chunks around a client.

use crate::space::{ChunkPos, ColumnPos};
use serde::{Deserialize, Serialize};

/// The chunks that a client wants to have: a disc of columns, limited in height.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncArea {
    /// The chunk in the middle.
    pub center: ChunkPos,
    /// The radius in columns.
    pub radius: u32,
    /// The distance above and below the center, in chunks.
    pub vertical: u32,
}

impl SyncArea {
    /// Returns `true` if the area contains the column.
    pub fn contains_column(&self, column: ColumnPos) -> bool {
        self.center.column().distance_squared(column) <= u128::from(self.radius).pow(2)
    }

    /// Returns `true` if the area contains the chunk.
    pub fn contains(&self, chunk: ChunkPos) -> bool {
        self.contains_column(chunk.column()) && chunk.y.abs_diff(self.center.y) <= self.vertical.into()
    }

    /// A key that sorts nearest first: by the distance of columns, then by height.
    pub(super) fn order(&self, chunk: ChunkPos) -> (u128, u64, ChunkPos) {
        (chunk.column().distance_squared(self.center.column()), chunk.y.abs_diff(self.center.y), chunk)
    }

    pub(super) fn columns(&self) -> Vec<ColumnPos> {
        let reach = i64::from(self.radius);
        let around = |center: i64| center.saturating_sub(reach)..=center.saturating_add(reach);
        let rows = around(self.center.x).flat_map(|x| around(self.center.z).map(move |z| ColumnPos::new(x, z)));
        let mut columns: Vec<ColumnPos> = rows.filter(|column| self.contains_column(*column)).collect();
        columns.sort_by_cached_key(|column| self.order(column.chunk(self.center.y)));
        columns
    }

    /// The area, extended by this many chunks in each direction.
    #[doc(hidden)]
    pub fn grown(self, chunks: u32) -> Self {
        let Self { center, radius, vertical } = self;
        Self { center, radius: radius.saturating_add(chunks), vertical: vertical.saturating_add(chunks) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_columns_of_the_disc_come_first() {
        let area = SyncArea { center: ChunkPos::new(10, 3, -5), radius: 2, vertical: 1 };
        let columns = area.columns();
        assert_eq!((columns.len(), columns[0]), (13, ColumnPos::new(10, -5)));
        let distance = |column: &ColumnPos| (column.x - 10).pow(2) + (column.z + 5).pow(2);
        assert!(columns.is_sorted_by_key(distance));
        assert!(columns.iter().all(|column| distance(column) <= 4));
        assert!(area.contains(ChunkPos::new(12, 4, -5)) && !area.contains(ChunkPos::new(10, 5, -5)));
    }

    #[test]
    fn the_end_of_the_world_is_no_end_of_the_program() {
        let area = SyncArea { center: ChunkPos::new(i64::MAX, i64::MIN, i64::MAX), radius: 1, vertical: u32::MAX };
        assert_eq!(area.columns().len(), 3);
        assert!(!area.contains(ChunkPos::new(i64::MIN, i64::MIN, i64::MIN)));
        assert_eq!(area.grown(u32::MAX).radius, u32::MAX);
    }
}
