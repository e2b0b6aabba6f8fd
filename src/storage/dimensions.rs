//! The dimensions of a world: their names, numbers and origins, and which of them are sparse.

use super::{Durability, Family, StoreError, StoredItem, WorldStore, WriteBatch, keys, values::record};
use crate::space::DimensionId;
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// A dimension as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDimension {
    /// Its name.
    pub name: String,
    /// Its number.
    pub id: DimensionId,
    /// What it is generated from.
    pub origin: DimensionOrigin,
    /// The seed that the game gave its generator, for messages; `None` if there is none, or none is known.
    pub own_seed: Option<u64>,
    /// A removal has begun and is not finished: it can only be removed.
    pub being_removed: bool,
}

/// A generator as messages tell of it: with the seed that the game gave it, where one is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedBy {
    /// Name, version, and the seed or a digest of it and all settings.
    pub origin: DimensionOrigin,
    /// The seed that the game gave it.
    pub own_seed: Option<u64>,
}

impl fmt::Display for GeneratedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { origin: DimensionOrigin { generator, version, seed }, own_seed } = self;
        write!(f, "{generator} version {version}")?;
        match own_seed {
            Some(own) if own == seed => write!(f, " with seed {own}"),
            Some(own) => write!(f, " with seed {own} and settings {seed:016x}"),
            None => write!(f, " with settings {seed:016x}"),
        }
    }
}

impl StoredDimension {
    /// What made it.
    pub fn generated_by(&self) -> GeneratedBy {
        GeneratedBy { origin: self.origin.clone(), own_seed: self.own_seed }
    }
}

/// What a dimension is generated from. It cannot change, or new ground would not fit to old.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DimensionOrigin {
    /// Name of the generator.
    pub generator: String,
    /// Version of the generator.
    pub version: u32,
    /// The seed.
    pub seed: u64,
}

impl fmt::Display for DimensionOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} version {} with seed {}", self.generator, self.version, self.seed)
    }
}

/// A dimension could not be opened: what the store knows of it does not allow that.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StoredDimensionError {
    /// The dimension was made from something else.
    #[error("the dimension {name:?} was made by {stored}, but {wanted} is wanted; give it another name")]
    OriginMismatch {
        /// The dimension's name.
        name: String,
        /// What it was made from.
        stored: DimensionOrigin,
        /// What it should be made from now.
        wanted: DimensionOrigin,
    },
    /// Its removal has begun.
    #[error(
        "the dimension {name:?} is being removed; call remove_dimension again to finish that, then the name is free"
    )]
    BeingRemoved {
        /// The dimension's name.
        name: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl WorldStore {
    /// Every dimension, by name.
    pub fn dimensions(&self) -> Result<Vec<StoredDimension>, StoreError> {
        let mut dimensions = Vec::new();
        self.scan_all(Family::Meta, keys::range_of(keys::DIMENSION), |key, value| {
            let name = self.parsed(Family::Meta, key, keys::parse_dimension_key)?;
            let (id, origin) = self.dimension_of(name, value)?;
            let (own_seed, being_removed) = (self.own_seed(id)?, self.is_marked(id)?);
            dimensions.push(StoredDimension { name: name.into(), id, origin, own_seed, being_removed });
            Ok(())
        })?;
        Ok(dimensions)
    }

    /// The dimension with this name.
    ///
    /// # Errors
    /// [`StoreError::UnknownDimension`], also if it is being removed, or what the store says.
    pub fn dimension_named(&self, name: &str) -> Result<StoredDimension, StoreError> {
        let mut dimensions = self.dimensions()?.into_iter();
        let found = dimensions.find(|dimension| dimension.name == name && !dimension.being_removed);
        found.ok_or_else(|| self.unknown_dimension(name))
    }

    pub(super) fn unknown_dimension(&self, name: &str) -> StoreError {
        StoreError::UnknownDimension { name: name.into(), path: self.path().to_path_buf() }
    }

    /// The dimension with this name, of which this is the record.
    pub(super) fn dimension_of(&self, name: &str, value: &[u8]) -> Result<(DimensionId, DimensionOrigin), StoreError> {
        record::decode(value).map_err(|reason| self.corrupt(StoredItem::Dimension(name.into()), reason))
    }

    /// The id of the dimension with this name, given when it is first opened. From then on it must be opened with the
    /// same origin.
    ///
    /// A dimension whose removal was cut short is not removed here but refused: that can take minutes, and only the
    /// game knows when it has them.
    pub fn open_dimension(&self, name: &str, origin: &DimensionOrigin) -> Result<DimensionId, StoredDimensionError> {
        self.open_dimension_as(name, origin, false)
    }

    /// The same, for one that is [sparse](Self::make_sparse) if it is made now.
    pub(super) fn open_dimension_as(
        &self,
        name: &str,
        origin: &DimensionOrigin,
        is_sparse: bool,
    ) -> Result<DimensionId, StoredDimensionError> {
        let _writing = self.lock_writes();
        let key = keys::dimension_key(name);
        if let Some((id, stored)) = self.dimension_record(name)? {
            if self.is_marked(id)? {
                return Err(StoredDimensionError::BeingRemoved { name: name.into() });
            }
            if stored != *origin {
                let (name, wanted) = (name.into(), origin.clone());
                return Err(StoredDimensionError::OriginMismatch { name, stored, wanted });
            }
            return Ok(id);
        }
        let last_id: Option<u64> = self.read_record(keys::LAST_DIMENSION, || StoredItem::LastDimension)?;
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

    /// From now on every chunk that is generated in the dimension is stored, also one of air: a chunk that is not stored
    /// was not generated. A dimension that is sparse stays so.
    pub fn make_sparse(&self, dimension: DimensionId) -> Result<(), StoreError> {
        let _writing = self.lock_writes();
        if self.is_sparse(dimension)? {
            return Ok(());
        }
        let mut writes = WriteBatch::default();
        writes.put(Family::Meta, keys::key_of_dimension(keys::SPARSE, dimension), Vec::new());
        self.write(writes, Durability::Sync)
    }

    /// Whether every chunk that was generated in the dimension is stored, also one of air.
    pub fn is_sparse(&self, dimension: DimensionId) -> Result<bool, StoreError> {
        Ok(self.store.get(Family::Meta, &keys::key_of_dimension(keys::SPARSE, dimension))?.is_some())
    }

    fn own_seed(&self, dimension: DimensionId) -> Result<Option<u64>, StoreError> {
        let value = self.store.get(Family::Meta, &keys::key_of_dimension(keys::OWN_SEED, dimension))?;
        value.map(|value| self.read_own_seed(dimension, &value)).transpose()
    }

    pub(super) fn read_own_seed(&self, dimension: DimensionId, value: &[u8]) -> Result<u64, StoreError> {
        record::decode(value).map_err(|reason| self.corrupt(StoredItem::OwnSeed(dimension), reason))
    }

    /// Remembers the seed that the game gave a dimension's generator, for messages: the origin may have a digest of it.
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

    /// What made the dimension with this name, as far as that can be read.
    pub fn generated_by(&self, name: &str) -> Option<GeneratedBy> {
        let (id, origin) = self.dimension_record(name).ok()??;
        Some(GeneratedBy { origin, own_seed: self.own_seed(id).ok().flatten() })
    }

    /// The dimension with this name, also if it is being removed; `None` if there is none.
    pub(super) fn dimension_record(&self, name: &str) -> Result<Option<(DimensionId, DimensionOrigin)>, StoreError> {
        self.read_record(&keys::dimension_key(name), || StoredItem::Dimension(name.into()))
    }

    /// Whether a removal of the dimension has begun.
    pub(super) fn is_marked(&self, dimension: DimensionId) -> Result<bool, StoreError> {
        Ok(self.store.get(Family::Meta, &keys::key_of_dimension(keys::REMOVAL, dimension))?.is_some())
    }
}
