//! The values of an export's objects that are made up of several.

use crate::bytes::up_to;
use crate::space::{
    BlockBox, BlockPos, CHUNK_COORDINATES, ChunkPos, ColumnPos, DimensionId, GeneratorIdentity, HeightSet,
};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What every file of an export begins with.
pub const EXPORT_SIGNATURE: &str = "bevy_terrane export 1";

/// What was exported: the object `export`, the same in all files of an export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    /// When the world was made, in seconds since 1970, and how often it had been opened to be played.
    pub world: (u64, u64),
    pub dimension: String,
    /// The number of the dimension in the world, which its entities name.
    pub number: DimensionId,
    pub origin: GeneratorIdentity,
    /// Whether every chunk that was generated is there, also one of air.
    pub is_sparse: bool,
    /// The blocks with the lowest and the highest coordinates: whole chunks.
    pub area: BlockBox,
    /// Whether the chunks of a group are one object, and all else of a batch.
    pub is_clustered: bool,
}

impl Header {
    /// Whether a column that was never generated can be made of each of the export's.
    pub fn makes_columns(&self) -> bool {
        self.has_all_heights() && !self.is_sparse
    }

    fn has_all_heights(&self) -> bool {
        (self.area.min.y, self.area.max.y) == (i64::MIN, i64::MAX)
    }

    /// The chunk heights of which the export says what is there in a column that has chunks at `heights`; all of it is moved
    /// so far up. In a sparse dimension what has no chunk was not generated, in others it is air.
    pub fn told_heights(&self, heights: impl Iterator<Item = i64>, by: i64) -> HeightSet {
        if self.is_sparse {
            return heights.filter_map(|height| moved(height, by)).collect();
        }
        const ALL: Range<i64> = CHUNK_COORDINATES;
        let end = |height: i64| (height >> 4).saturating_add(by);
        match self.has_all_heights() {
            true => HeightSet::from(ALL),
            // What would lie beyond the last heights is nowhere.
            false => HeightSet::from(end(self.area.min.y).max(ALL.start)..end(self.area.max.y).min(ALL.end - 1) + 1),
        }
    }
}

/// What an export is made of: the object `files` of the first one, which an export has when it is whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Files {
    /// How many batches are in the files before each.
    #[serde(deserialize_with = "up_to::<_, _, MAX_LISTED>")]
    pub starts: Vec<u64>,
    /// Columns in all of them.
    pub columns: u64,
}

/// All chunks that a box reaches.
pub(super) fn whole_chunks(area: &BlockBox) -> BlockBox {
    if area.is_empty() {
        return *area;
    }
    let (BlockPos { x, y, z }, max) = (area.min, area.max);
    BlockBox { min: BlockPos::new(x & !15, y & !15, z & !15), max: BlockPos::new(max.x | 15, max.y | 15, max.z | 15) }
}

/// An object that is packed with others.
pub(super) type Packed = (String, u64, Vec<u8>);

/// The stored block ticks of a column: for each chunk that has some its height and the list.
pub(super) type Ticks = Vec<(i64, Vec<u8>)>;

/// No list of an export is longer, so that no file can ask for more memory than it has itself.
pub(super) const MAX_LISTED: usize = 1 << 20;

/// A pack has no more objects: the chunks of a group, or four parts of each column of a batch.
pub(super) const MAX_PACKED: usize = 64;

/// The objects of a batch of columns are not larger together.
pub(super) const LARGEST_BATCH: usize = 1 << 28;

/// Somewhere else, in chunks; `None` where there are no blocks.
pub(super) fn moved_column(column: ColumnPos, by: [i64; 3]) -> Option<ColumnPos> {
    Some(ColumnPos::new(moved(column.x, by[0])?, moved(column.z, by[2])?))
}

pub(super) fn moved_chunk(chunk: ChunkPos, by: [i64; 3]) -> Option<ChunkPos> {
    Some(ChunkPos::new(moved(chunk.x, by[0])?, moved(chunk.y, by[1])?, moved(chunk.z, by[2])?))
}

/// A coordinate of a chunk; `None` if the one or the other is none.
pub(super) fn moved(coordinate: i64, by: i64) -> Option<i64> {
    let is_one = |coordinate: &i64| CHUNK_COORDINATES.contains(coordinate);
    Some(coordinate).filter(is_one)?.checked_add(by).filter(is_one)
}
