//! The clocks of dimensions: the elapsed time of each, over all sessions.

use crate::bytes::record;
use crate::space::DimensionId;
use crate::{Family, StoreError, StoredItem, WorldStore, WriteBatch, envelope, keys};
use std::collections::BTreeMap;
use std::time::Duration;

impl WorldStore {
    /// The last saved clock of a dimension; `None` if it was never saved.
    pub fn clock(&self, dimension: DimensionId) -> Result<Option<Duration>, StoreError> {
        let value = self.store.get(Family::Meta, &keys::key_of_dimension(keys::CLOCK, dimension))?;
        value.map(|value| self.open_as(&value, StoredItem::Clock(dimension), record::decode)).transpose()
    }
}

pub(crate) fn put_clocks(clocks: &BTreeMap<DimensionId, Duration>, writes: &mut WriteBatch) {
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
    use crate::{Durability, SaveBatch, backends::test_store::TestStore};

    #[test]
    fn the_newest_clock_is_read_and_a_damaged_one_is_reported() {
        let store = TestStore::default();
        let clocks = |seconds: u64| [(DimensionId(3), Duration::from_secs(seconds))].into_iter().collect();
        assert_eq!(store.world().clock(DimensionId(3)), Ok(None));
        for seconds in [5, 7] {
            let batch = SaveBatch { clocks: clocks(seconds), ..SaveBatch::default() };
            assert!(batch.is_empty(), "nothing is saved for it alone");
            store.world().commit(&batch, Durability::Process).unwrap();
            assert_eq!(store.world().clock(DimensionId(3)), Ok(Some(Duration::from_secs(seconds))));
        }
        assert_eq!(store.world().clock(DimensionId(4)), Ok(None));
        store.tamper(Family::Meta, &keys::key_of_dimension(keys::CLOCK, DimensionId(3)), |value| {
            *value.last_mut().unwrap() ^= 1
        });
        let error = store.world().clock(DimensionId(3)).unwrap_err().to_string();
        assert!(error.contains("the clock of dimension 3"), "{error}");
    }
}
