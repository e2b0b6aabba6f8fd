//! The composite values of an export's objects, and kept objects: those of games and of later versions.

use crate::bytes::up_to;
use crate::space::{
    BlockBox, BlockPos, CHUNK_COORDINATES, ChunkPos, ColumnPos, DimensionId, GeneratorIdentity, HeightSet,
};
use crate::upkeep::UpkeepError;
use crate::upkeep::exports::name::Name;
use crate::{Durability, Family, StoreError, StoredItem, WorldStore, WriteBatch, envelope, keys};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use terrane_objects::{MAX_KEY_BYTES, Object};

/// The signature of every file of an export.
pub const EXPORT_SIGNATURE: &str = "bevy_terrane export 1";

/// The source of an export: the object `export`, the same in all files of an export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    /// The creation time of the world in seconds since 1970, and the number of its sessions.
    pub world: (u64, u64),
    pub dimension: String,
    /// The dimension's number in the exported world. The export's entities contain it.
    pub number: DimensionId,
    pub origin: GeneratorIdentity,
    /// `true` if every generated chunk is exported, even if it is all air.
    pub is_sparse: bool,
    /// The exported box, which consists of whole chunks.
    pub area: BlockBox,
    /// `true` if the chunks of a group are one object, and the rest of a batch is another.
    pub is_clustered: bool,
}

impl Header {
    /// Returns `true` if each exported column is enough to create a column that was never generated.
    pub fn makes_columns(&self) -> bool {
        self.has_all_heights() && !self.is_sparse
    }

    fn has_all_heights(&self) -> bool {
        (self.area.min.y, self.area.max.y) == (i64::MIN, i64::MAX)
    }

    /// The chunk heights for which the export has data in a column with chunks at `heights`, moved up by `by`. In a
    /// sparse dimension a missing chunk was not generated, in other dimensions it is air.
    pub fn covered_heights(&self, heights: impl Iterator<Item = i64>, by: i64) -> HeightSet {
        if self.is_sparse {
            return heights.filter_map(|height| moved(height, by)).collect();
        }
        const ALL: Range<i64> = CHUNK_COORDINATES;
        let end = |height: i64| (height >> 4).saturating_add(by);
        match self.has_all_heights() {
            true => HeightSet::from(ALL),
            // Heights beyond the last valid ones are dropped.
            false => HeightSet::from(end(self.area.min.y).max(ALL.start)..end(self.area.max.y).min(ALL.end - 1) + 1),
        }
    }
}

/// The list of an export's files: the object `files` of the first file, which only a complete export has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Files {
    /// The number of batches before each file.
    #[serde(deserialize_with = "up_to::<_, _, MAX_LISTED>")]
    pub starts: Vec<u64>,
    /// The number of columns in all files.
    pub columns: u64,
}

/// The smallest box of whole chunks that contains `area`.
pub(super) fn whole_chunks(area: &BlockBox) -> BlockBox {
    if area.is_empty() {
        return *area;
    }
    let (BlockPos { x, y, z }, max) = (area.min, area.max);
    BlockBox { min: BlockPos::new(x & !15, y & !15, z & !15), max: BlockPos::new(max.x | 15, max.y | 15, max.z | 15) }
}

/// An object in a pack: key, version and bytes.
pub(super) type Packed = (String, u64, Vec<u8>);

/// The stored block ticks of a column: the height and the list of each chunk that has some.
pub(super) type Ticks = Vec<(i64, Vec<u8>)>;

/// The maximum length of a list in an export, so that a file cannot make a reader allocate more memory than the file's
/// own size.
pub(super) const MAX_LISTED: usize = 1 << 20;

/// The maximum number of objects in a pack: the chunks of a group, or four parts of each column of a batch.
pub(super) const MAX_PACKED: usize = 64;

/// The maximum total size of the objects of a batch of columns, in bytes.
pub(super) const LARGEST_BATCH: usize = 1 << 28;

/// The column moved by `by`, in chunks; `None` if it leaves the grid.
pub(super) fn moved_column(column: ColumnPos, by: [i64; 3]) -> Option<ColumnPos> {
    Some(ColumnPos::new(moved(column.x, by[0])?, moved(column.z, by[2])?))
}

pub(super) fn moved_chunk(chunk: ChunkPos, by: [i64; 3]) -> Option<ChunkPos> {
    Some(ChunkPos::new(moved(chunk.x, by[0])?, moved(chunk.y, by[1])?, moved(chunk.z, by[2])?))
}

/// The chunk coordinate moved by `by`; `None` if either coordinate is outside the grid.
pub(super) fn moved(coordinate: i64, by: i64) -> Option<i64> {
    let is_one = |coordinate: &i64| CHUNK_COORDINATES.contains(coordinate);
    Some(coordinate).filter(is_one)?.checked_add(by).filter(is_one)
}

impl WorldStore {
    /// Stores an object with a dimension, to be exported with it. Its key contains a colon, like `game:weather`, or for
    /// objects that belong to a place, `chunk/1,-2,3/game:claim` and `column/1,3/game:owner`.
    ///
    /// # Errors
    /// The key is not of this form, or the store fails.
    pub fn keep_object(&self, dimension: DimensionId, key: &str, version: u64, data: &[u8]) -> Result<(), UpkeepError> {
        let name = Name::parse(key);
        let is_nowhere = name.moved([0; 3]).is_none();
        if !key.contains(':') || key.len() > MAX_KEY_BYTES || !name.is_foreign() || is_nowhere {
            return Err(UpkeepError::Key { key: key.to_owned() });
        }
        let mut writes = WriteBatch::default();
        put_object(&mut writes, dimension, key, version, data);
        Ok(self.write(writes, Durability::Sync)?)
    }

    /// A kept object of a dimension; `None` if it does not exist.
    ///
    /// # Errors
    /// Errors of the store, and damage of the object.
    pub fn kept_object(&self, dimension: DimensionId, key: &str) -> Result<Option<Object>, StoreError> {
        let value = self.store.get(Family::Meta, &object_key(dimension, key))?;
        value.map(|value| self.open_object(dimension, key, &value)).transpose()
    }

    /// The keys and versions of all kept objects of a dimension: first those without a place, then the others by column.
    ///
    /// # Errors
    /// Errors of the store, and damage of an object.
    pub fn kept_objects(&self, dimension: DimensionId) -> Result<Vec<(String, u64)>, StoreError> {
        self.list_meta(keys::dimension_range(keys::OBJECT, dimension), |key, value| {
            let (_, _, name) = self.parsed(Family::Meta, key, keys::parse_object_key)?;
            Ok(Some((name.to_owned(), self.open_object(dimension, name, value)?.version)))
        })
    }

    /// Removes a kept object of a dimension. Returns `true` if it existed.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn remove_kept_object(&self, dimension: DimensionId, key: &str) -> Result<bool, StoreError> {
        let key = object_key(dimension, key);
        let _writing = self.lock_writes()?;
        if self.store.get(Family::Meta, &key)?.is_none() {
            return Ok(false);
        }
        let mut writes = WriteBatch::default();
        writes.delete(Family::Meta, key);
        self.write(writes, Durability::Sync).map(|()| true)
    }

    /// Decodes the stored value of an object.
    pub(crate) fn open_object(&self, dimension: DimensionId, name: &str, value: &[u8]) -> Result<Object, StoreError> {
        let (version, data) = self.open_envelope(value, || StoredItem::Object(dimension, name.to_owned()))?;
        Ok(Object { version, data: data.to_vec() })
    }
}

/// The key of a kept object of a game, by its name.
pub(super) fn object_key(dimension: DimensionId, name: &str) -> Vec<u8> {
    keys::object_key(dimension, Name::parse(name).column(), name)
}

/// Keeps an object of a game.
pub(super) fn put_object(writes: &mut WriteBatch, dimension: DimensionId, name: &str, version: u64, data: &[u8]) {
    writes.put(Family::Meta, object_key(dimension, name), envelope::sealed(version, data));
}
