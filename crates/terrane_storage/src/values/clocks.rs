//! The time of dimensions over all sessions: how long each has existed, and its time of day.

use crate::bytes::record;
use crate::space::DimensionId;
use crate::{Family, SaveBatch, StoreError, StoredItem, WorldStore, WriteBatch, envelope, keys};
use serde::de::DeserializeOwned;
use std::time::Duration;

impl WorldStore {
    /// The last saved clock of a dimension; `None` if it was never saved.
    pub fn clock(&self, dimension: DimensionId) -> Result<Option<Duration>, StoreError> {
        self.time(keys::CLOCK, StoredItem::Clock(dimension), dimension)
    }

    /// The last saved time of day of a dimension, in days; `None` if it was never saved.
    pub fn days(&self, dimension: DimensionId) -> Result<Option<f64>, StoreError> {
        self.time(keys::DAYS, StoredItem::Days(dimension), dimension)
    }

    fn time<T: DeserializeOwned>(
        &self,
        kind: &[u8],
        item: StoredItem,
        dimension: DimensionId,
    ) -> Result<Option<T>, StoreError> {
        let value = self.store.get(Family::Meta, &keys::key_of_dimension(kind, dimension))?;
        value.map(|value| self.open_as(&value, item, record::decode)).transpose()
    }
}

pub(crate) fn put_clocks(batch: &SaveBatch, writes: &mut WriteBatch) {
    let mut put = |kind, dimension, record: Vec<u8>| {
        writes.put(Family::Meta, keys::key_of_dimension(kind, dimension), envelope::sealed(0, &record));
    };
    batch.clocks.iter().for_each(|(dimension, clock)| put(keys::CLOCK, *dimension, record::encode(clock)));
    batch.days.iter().for_each(|(dimension, days)| put(keys::DAYS, *dimension, record::encode(days)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, backends::test_store::TestStore};

    const DIMENSION: DimensionId = DimensionId(3);

    #[test]
    fn the_newest_time_is_read_and_a_damaged_one_is_reported() {
        let store = TestStore::default();
        let read = || (store.world().clock(DIMENSION), store.world().days(DIMENSION));
        assert_eq!(read(), (Ok(None), Ok(None)));
        for (seconds, days) in [(5, -0.25), (7, 1e9 + 0.125)] {
            let (mut batch, clock) = (SaveBatch::default(), Duration::from_secs(seconds));
            batch.clocks.insert(DIMENSION, clock);
            batch.days.insert(DIMENSION, days);
            assert!(batch.is_empty(), "nothing is saved for it alone");
            store.world().commit(&batch, Durability::Process).unwrap();
            assert_eq!(read(), (Ok(Some(clock)), Ok(Some(days))));
        }
        assert_eq!(store.world().clock(DimensionId(4)), Ok(None));
        for kind in [keys::CLOCK, keys::DAYS] {
            store.tamper(Family::Meta, &keys::key_of_dimension(kind, DIMENSION), |value| {
                *value.last_mut().unwrap() ^= 1
            });
        }
        let (clock, days) = read();
        let [clock, days] = [clock.unwrap_err().to_string(), days.unwrap_err().to_string()];
        assert!(clock.contains("the clock of dimension 3"), "{clock}");
        assert!(days.contains("the time of day of dimension 3"), "{days}");
    }
}
