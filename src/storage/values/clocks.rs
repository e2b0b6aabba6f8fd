//! The clocks of dimensions: how much time has passed in each, all sessions together.

use crate::space::DimensionId;
use crate::storage::values::record;
use crate::storage::{Durability, Family, StoreError, StoredItem, WorldStore, WriteBatch, envelope, keys};
use std::collections::BTreeMap;
use std::time::Duration;

impl WorldStore {
    /// The clock of a dimension as it was saved last; `None` if it never was.
    pub fn clock(&self, dimension: DimensionId) -> Result<Option<Duration>, StoreError> {
        let value = self.store.get(Family::Meta, &keys::key_of_dimension(keys::CLOCK, dimension))?;
        value.map(|value| self.open_as(&value, StoredItem::Clock(dimension), record::decode)).transpose()
    }

    /// Writes clocks, for when nothing else is saved any more.
    pub(crate) fn save_clocks(&self, clocks: &BTreeMap<DimensionId, Duration>) -> Result<(), StoreError> {
        let _writing = self.lock_writes();
        let mut writes = WriteBatch::default();
        put_clocks(clocks, &mut writes);
        if writes.is_empty() {
            return Ok(());
        }
        self.write(writes, Durability::Process)
    }
}

/// Adds clocks to a write.
pub(in crate::storage) fn put_clocks(clocks: &BTreeMap<DimensionId, Duration>, writes: &mut WriteBatch) {
    for (dimension, clock) in clocks {
        writes.put(
            Family::Meta,
            keys::key_of_dimension(keys::CLOCK, *dimension),
            envelope::sealed(0, &record::encode(clock)),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{SaveBatch, backends::test_store::TestStore};

    #[test]
    fn a_clock_is_what_was_saved_last_and_a_damaged_one_is_named() {
        let store = TestStore::default();
        let clocks = |seconds: u64| [(DimensionId(3), Duration::from_secs(seconds))].into_iter().collect();
        assert_eq!(store.world().clock(DimensionId(3)), Ok(None));
        let batch = SaveBatch { clocks: clocks(5), ..SaveBatch::default() };
        assert!(batch.is_empty(), "nothing is saved for it alone");
        store.world().commit(&batch, Durability::Process).unwrap();
        assert_eq!(store.world().clock(DimensionId(3)), Ok(Some(Duration::from_secs(5))));
        store.world().save_clocks(&clocks(7)).unwrap();
        assert_eq!(store.world().clock(DimensionId(3)), Ok(Some(Duration::from_secs(7))));
        assert_eq!(store.world().clock(DimensionId(4)), Ok(None));
        store.tamper(Family::Meta, &keys::key_of_dimension(keys::CLOCK, DimensionId(3)), |value| {
            *value.last_mut().unwrap() ^= 1
        });
        let error = store.world().clock(DimensionId(3)).unwrap_err().to_string();
        assert!(error.contains("the clock of dimension 3"), "{error}");
    }
}
