//! Kept objects of exports: those of games, and those of later versions.

use super::name::Name;
use crate::space::DimensionId;
use crate::upkeep::UpkeepError;
use crate::{Durability, Family, StoreError, StoredItem, WorldStore, WriteBatch, envelope, keys};
use terrane_objects::{MAX_KEY_BYTES, Object};

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

pub(super) fn object_key(dimension: DimensionId, name: &str) -> Vec<u8> {
    keys::object_key(dimension, Name::parse(name).column(), name)
}

pub(super) fn put_object(writes: &mut WriteBatch, dimension: DimensionId, name: &str, version: u64, data: &[u8]) {
    writes.put(Family::Meta, object_key(dimension, name), envelope::sealed(version, data));
}
