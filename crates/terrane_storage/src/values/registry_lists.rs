//! The lists of types of a world, which map numbers to names.

use crate::block::{BlockComponentRecord, BlockRecord};
use crate::{Durability, Family, StoreError, StoredItem, WorldStore, WriteBatch, values::record};
use serde::Serialize;
use serde::de::DeserializeOwned;

const BLOCKS: &str = "blocks";
const COMPONENTS: &str = "components";
const ENTITY_TYPES: &str = "entity_types";
/// An unused list that every world has. It is empty in new worlds.
const STRUCTURES: &str = "structures";

pub(crate) const KEYS: [&str; 4] = [BLOCKS, COMPONENTS, ENTITY_TYPES, STRUCTURES];

/// The format of the list of blocks. In format 1 it was a list of names.
const BLOCKS_FORMAT: u8 = 2;

/// The lists in the family `registry`. A type's number is its index in the list. It never changes in a world: types are
/// only appended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistryLists {
    /// The blocks; empty in a new world.
    pub blocks: Vec<BlockRecord>,
    /// The block components.
    pub components: Vec<BlockComponentRecord>,
    /// The types of stored entity components, with a separate entry for each version.
    pub entity_types: Vec<String>,
}

impl WorldStore {
    /// The types that the world knows.
    pub fn registry_lists(&self) -> Result<RegistryLists, StoreError> {
        self.decode_lists(&self.list_values()?)
    }

    /// The stored lists in the order of [`KEYS`]. They are read at once, since another server may store them at this moment.
    fn list_values(&self) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.store.multi_get(Family::Registry, &KEYS.map(str::as_bytes))
    }

    fn decode_lists(&self, values: &[Option<Vec<u8>>]) -> Result<RegistryLists, StoreError> {
        let value = |key: &str| KEYS.iter().zip(values).find(|(of, _)| **of == key)?.1.as_deref();
        Ok(RegistryLists {
            blocks: self.decode_list(BLOCKS, value(BLOCKS), decode_blocks)?,
            components: self.decode_list(COMPONENTS, value(COMPONENTS), record::decode)?,
            entity_types: self.decode_list(ENTITY_TYPES, value(ENTITY_TYPES), record::decode)?,
        })
    }

    /// Stores the world's types: all lists, or none on an error.
    ///
    /// # Errors
    /// [`StoreError::NewTypes`] if other servers share the world and its lists are others: each server knows only the types from
    /// the time when it started.
    pub fn save_registry_lists(&self, lists: &RegistryLists) -> Result<(), StoreError> {
        let _writing = self.lock_writes()?;
        loop {
            match self.try_to_save_lists(lists) {
                // Another server joined or stored its lists at the same moment.
                Err(StoreError::PreconditionFailed { .. }) => {}
                saved => return saved,
            }
        }
    }

    fn try_to_save_lists(&self, lists: &RegistryLists) -> Result<(), StoreError> {
        let (mut writes, values) = (WriteBatch::default(), self.list_values()?);
        let has_structures = KEYS.iter().zip(&values).any(|(key, value)| *key == STRUCTURES && value.is_some());
        if let Some(incarnation) = self.incarnation() {
            let stored = self.decode_lists(&values)?;
            KEYS.iter().zip(values).for_each(|(key, value)| writes.require(Family::Registry, *key, value));
            if stored == *lists {
                return Ok(());
            }
            // Of servers that start together in a new world, one stores the lists.
            let servers = if stored == RegistryLists::default() { 0 } else { incarnation.others(&mut writes)? };
            if servers > 0 {
                // A store may read several values at different moments. This fails if they are no longer what was read.
                self.write(writes, Durability::Sync)?;
                return Err(StoreError::NewTypes { servers, path: self.path().to_path_buf() });
            }
        }
        put_list(&mut writes, BLOCKS, BLOCKS_FORMAT, &lists.blocks);
        put_list(&mut writes, COMPONENTS, record::FORMAT, &lists.components);
        put_list(&mut writes, ENTITY_TYPES, record::FORMAT, &lists.entity_types);
        if !has_structures {
            put_list(&mut writes, STRUCTURES, record::FORMAT, &Vec::<String>::new());
        }
        self.write(writes, Durability::Sync)?;
        self.forget_stored_blocks();
        Ok(())
    }

    /// Checks that the list under this key can be read.
    pub(crate) fn check_list(&self, key: &[u8]) -> Result<(), StoreError> {
        match str::from_utf8(key) {
            Ok(BLOCKS) => {
                self.list(BLOCKS, decode_blocks)?;
                // Types may differ only in their components, so both lists are checked.
                self.known_blocks().map(drop)
            }
            Ok(COMPONENTS) => self.list::<BlockComponentRecord>(COMPONENTS, record::decode).map(drop),
            Ok(name @ (ENTITY_TYPES | STRUCTURES)) => self.list::<String>(name, record::decode).map(drop),
            _ => Err(self.unknown_key(Family::Registry, key)),
        }
    }

    fn list<T: DeserializeOwned>(
        &self,
        key: &str,
        decode: impl Fn(&[u8]) -> Result<Vec<T>, String>,
    ) -> Result<Vec<T>, StoreError> {
        self.decode_list(key, self.store.get(Family::Registry, key.as_bytes())?.as_deref(), decode)
    }

    fn decode_list<T>(
        &self,
        key: &str,
        value: Option<&[u8]>,
        decode: impl Fn(&[u8]) -> Result<Vec<T>, String>,
    ) -> Result<Vec<T>, StoreError> {
        let corrupt = |reason| self.corrupt(StoredItem::Registry(key.into()), reason);
        value.map_or(Ok(Vec::new()), |value| decode(value).map_err(corrupt))
    }
}

fn put_list<T: Serialize>(writes: &mut WriteBatch, key: &str, format: u8, list: &Vec<T>) {
    writes.put(Family::Registry, key, record::encode_as(format, list));
}

fn decode_blocks(bytes: &[u8]) -> Result<Vec<BlockRecord>, String> {
    if bytes.first() != Some(&record::FORMAT) {
        return record::decode_as(BLOCKS_FORMAT, bytes);
    }
    let names: Vec<String> = record::decode(bytes)?;
    Ok(names.into_iter().map(|name| BlockRecord { name, components: Vec::new() }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::test_store::TestStore;

    fn lists() -> RegistryLists {
        RegistryLists {
            blocks: vec![
                BlockRecord { name: "terrane:air".into(), components: vec![] },
                BlockRecord { name: "game:chest[open=true]".into(), components: vec![0, 1 << 63 | 1] },
            ],
            components: vec![BlockComponentRecord { name: "game:lock".into(), version: 3, size: Some(8) }],
            entity_types: vec!["game::Mob@2".into()],
        }
    }

    #[test]
    fn all_lists_last_or_none_is_changed() {
        let store = TestStore::default();
        assert_eq!(store.world().registry_lists(), Ok(RegistryLists::default()));
        store.world().save_registry_lists(&lists()).unwrap();
        store.world().save_registry_lists(&lists()).unwrap();
        assert_eq!(store.world().registry_lists(), Ok(lists()));
        let world = store.world();
        store.fail_writes(true);
        world.save_registry_lists(&RegistryLists::default()).unwrap_err();
        assert_eq!(world.registry_lists(), Ok(lists()));
    }

    /// Promise, world format: A world's list of block types in format 1 is read.
    #[test]
    fn a_list_of_blocks_of_format_1_is_read() {
        let store = TestStore::default();
        store.world().save_registry_lists(&lists()).unwrap();
        let names = ["terrane:air", "game:stone"];
        store.tamper(Family::Registry, BLOCKS.as_bytes(), |value| *value = record::encode(&names.to_vec()));
        let record = |name: &str| BlockRecord { name: name.into(), components: vec![] };
        assert_eq!(store.world().registry_lists().unwrap().blocks, names.map(record));
    }

    #[test]
    fn a_list_that_is_damaged_is_named() {
        for key in KEYS {
            let store = TestStore::default();
            store.world().save_registry_lists(&lists()).unwrap();
            store.tamper(Family::Registry, key.as_bytes(), |value| value.push(0));
            let error = store.world().check_list(key.as_bytes()).unwrap_err();
            assert!(error.to_string().contains(&format!("{key:?}")), "{error}");
            assert_eq!(store.world().registry_lists().is_err(), key != STRUCTURES);
        }
    }
}
