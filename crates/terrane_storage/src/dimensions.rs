//! The dimensions of a world: their names, numbers and origins, and which of them are sparse.

use super::{Durability, Family, StoreError, StoredItem, WorldStore, WriteBatch, keys, values::record};
use crate::space::{DimensionId, GeneratorIdentity};

/// A stored dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDimension {
    /// Its name.
    pub name: String,
    /// Its number.
    pub id: DimensionId,
    /// The identity of its generator.
    pub generator: GeneratorIdentity,
    /// The seed that the game gave to the generator, for messages; `None` if there is none or it is unknown.
    pub own_seed: Option<u64>,
    /// `true` if the dimension generates each chunk on its own.
    pub is_sparse: bool,
    /// `true` if a removal was begun and not finished. The dimension can only be removed.
    pub being_removed: bool,
}

impl WorldStore {
    /// All dimensions, by name.
    pub fn dimensions(&self) -> Result<Vec<StoredDimension>, StoreError> {
        self.list_meta(keys::range_of(keys::DIMENSION), |key, value| {
            let name = self.parsed(Family::Meta, key, keys::parse_dimension_key)?;
            let (id, generator) = self.dimension_of(name, value)?;
            let (own_seed, is_sparse, being_removed) = (self.own_seed(id)?, self.is_sparse(id)?, self.is_marked(id)?);
            Ok(Some(StoredDimension { name: name.into(), id, generator, own_seed, is_sparse, being_removed }))
        })
    }

    /// The dimension with this name.
    ///
    /// # Errors
    /// [`StoreError::UnknownDimension`], also if the dimension is being removed, or an error of the store.
    pub fn dimension_named(&self, name: &str) -> Result<StoredDimension, StoreError> {
        let mut dimensions = self.dimensions()?.into_iter();
        let found = dimensions.find(|dimension| dimension.name == name && !dimension.being_removed);
        found.ok_or_else(|| self.unknown_dimension(name))
    }

    pub(super) fn unknown_dimension(&self, name: &str) -> StoreError {
        StoreError::UnknownDimension { name: name.into(), path: self.path().to_path_buf() }
    }

    /// The dimension with this name and record.
    pub(super) fn dimension_of(
        &self,
        name: &str,
        value: &[u8],
    ) -> Result<(DimensionId, GeneratorIdentity), StoreError> {
        self.record(value, StoredItem::Dimension(name.into()))
    }

    /// The id of the dimension with this name. A new dimension gets its id here, and must be opened with the same
    /// origin ever after.
    ///
    /// A dimension whose removal was interrupted is refused. Finishing the removal here could take minutes at a moment
    /// that the game did not choose.
    pub fn open_dimension(&self, name: &str, origin: &GeneratorIdentity) -> Result<DimensionId, StoreError> {
        self.open_dimension_as(name, origin, false)
    }

    /// Like [`open_dimension`](Self::open_dimension). A new dimension becomes [sparse](Self::make_sparse) if
    /// `is_sparse` is `true`.
    pub(super) fn open_dimension_as(
        &self,
        name: &str,
        origin: &GeneratorIdentity,
        is_sparse: bool,
    ) -> Result<DimensionId, StoreError> {
        let _writing = self.lock_writes();
        let key = keys::dimension_key(name);
        if let Some((id, stored)) = self.dimension_record(name)? {
            if self.is_marked(id)? {
                return Err(StoreError::BeingRemoved { name: name.into() });
            }
            if stored != *origin {
                let (name, stored, wanted) = (name.into(), Box::new(stored), Box::new(origin.clone()));
                return Err(StoreError::OriginMismatch { name, stored, wanted });
            }
            return Ok(id);
        }
        let last_id: Option<u64> = self.read_record(keys::LAST_DIMENSION, StoredItem::LastDimension)?;
        let id = last_id.map_or(Some(0), |last| last.checked_add(1));
        let id = id.ok_or_else(|| self.corrupt(StoredItem::LastDimension, "no number is left after it"))?;
        let dimension = DimensionId(id);
        let mut writes = WriteBatch::default();
        writes.put(Family::Meta, key, record::encode(&(dimension, origin)));
        writes.put(Family::Meta, keys::LAST_DIMENSION, record::encode(&id));
        if is_sparse {
            writes.put(Family::Meta, keys::key_of_dimension(keys::SPARSE, dimension), Vec::new());
        }
        self.write(writes, Durability::Sync)?;
        Ok(dimension)
    }

    /// Makes the dimension sparse. From now on every generated chunk is stored, even if it is all air, so a chunk that
    /// is not stored was not generated. A sparse dimension stays sparse.
    pub fn make_sparse(&self, dimension: DimensionId) -> Result<(), StoreError> {
        let _writing = self.lock_writes();
        if self.is_sparse(dimension)? {
            return Ok(());
        }
        let mut writes = WriteBatch::default();
        writes.put(Family::Meta, keys::key_of_dimension(keys::SPARSE, dimension), Vec::new());
        self.write(writes, Durability::Sync)
    }

    /// Returns `true` if every generated chunk of the dimension is stored, even if it is all air.
    pub fn is_sparse(&self, dimension: DimensionId) -> Result<bool, StoreError> {
        Ok(self.store.get(Family::Meta, &keys::key_of_dimension(keys::SPARSE, dimension))?.is_some())
    }

    fn own_seed(&self, dimension: DimensionId) -> Result<Option<u64>, StoreError> {
        self.read_record(&keys::key_of_dimension(keys::OWN_SEED, dimension), StoredItem::OwnSeed(dimension))
    }

    /// Stores the seed that the game gave to a dimension's generator, for messages. The origin may hold only a digest of it.
    pub fn note_own_seed(&self, dimension: DimensionId, seed: u64) -> Result<(), StoreError> {
        let _writing = self.lock_writes();
        let (key, value) = (keys::key_of_dimension(keys::OWN_SEED, dimension), record::encode(&seed));
        if self.store.get(Family::Meta, &key)?.as_deref() == Some(&value[..]) {
            return Ok(());
        }
        let mut writes = WriteBatch::default();
        writes.put(Family::Meta, key, value);
        self.write(writes, Durability::Process)
    }

    /// The generator of the dimension with this name, as text for messages, if it can be read.
    pub fn told_generator(&self, name: &str) -> Option<String> {
        let (id, generator) = self.dimension_record(name).ok()??;
        Some(generator.told(self.own_seed(id).ok().flatten()))
    }

    /// The dimension with this name, even if it is being removed; `None` if there is none.
    pub(super) fn dimension_record(&self, name: &str) -> Result<Option<(DimensionId, GeneratorIdentity)>, StoreError> {
        self.read_record(&keys::dimension_key(name), StoredItem::Dimension(name.into()))
    }

    pub(super) fn is_marked(&self, dimension: DimensionId) -> Result<bool, StoreError> {
        Ok(self.store.get(Family::Meta, &keys::key_of_dimension(keys::REMOVAL, dimension))?.is_some())
    }
}
