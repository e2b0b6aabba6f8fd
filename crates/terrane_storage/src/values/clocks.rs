//! The time of dimensions over all sessions: how long each has existed, and its time of day.

use crate::bytes::record;
use crate::space::DimensionId;
use crate::{Durability, Family, SaveBatch, StoreError, StoredItem, WorldStore, WriteBatch, envelope, keys};
use serde::de::DeserializeOwned;
use std::time::Duration;

/// A later clock, which a bad tick rate could lead to, is at the end of [`Duration`] or gets there. It starts again, like a damaged
/// one: no other value depends on it.
const LATEST: Duration = Duration::from_secs(u64::MAX / 2);

impl WorldStore {
    /// The last saved clock of a dimension; `None` if it was never saved, or if it is close to the end of [`Duration`], where it could
    /// not go on.
    pub fn clock(&self, dimension: DimensionId) -> Result<Option<Duration>, StoreError> {
        let clock: Option<Duration> = self.time(keys::CLOCK, StoredItem::Clock(dimension), dimension)?;
        Ok(clock.filter(|clock| *clock <= LATEST))
    }

    /// The last saved time of day of a dimension, in days; `None` if it was never saved.
    pub fn days(&self, dimension: DimensionId) -> Result<Option<f64>, StoreError> {
        self.time(keys::DAYS, StoredItem::Days(dimension), dimension)
    }

    /// Agrees with the other servers of a shared world on the clock of a dimension: the later one of `clock` and the stored
    /// clock is stored and returned. `days` is the time of day at `clock`. So the clock of a region never goes back when it
    /// moves to another server.
    pub fn agree_on_clock(
        &self,
        dimension: DimensionId,
        clock: Duration,
        days: Option<f64>,
    ) -> Result<Duration, StoreError> {
        let key = keys::key_of_dimension(keys::CLOCK, dimension);
        loop {
            let value = self.store.get(Family::Meta, &key)?;
            let stored =
                value.as_deref().map(|value| self.open_as(value, StoredItem::Clock(dimension), record::decode));
            match stored.transpose() {
                Ok(Some(stored)) if (clock..=LATEST).contains(&stored) => return Ok(stored),
                // A damaged clock starts again: no other value depends on it.
                Err(error) if !error.is_damage() => return Err(error),
                _ => {}
            }
            let mut writes = WriteBatch::default();
            writes.require(Family::Meta, key.clone(), value);
            let (clocks, days) =
                ([(dimension, clock)].into(), days.map(|days| (dimension, days)).into_iter().collect());
            put_clocks(&SaveBatch { clocks, days, ..SaveBatch::default() }, &mut writes);
            match self.write(writes, Durability::Sync) {
                Err(StoreError::PreconditionFailed { .. }) => {}
                written => return written.map(|()| clock),
            }
        }
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
            store.world().commit(&batch, Durability::Process).unwrap();
            assert_eq!(read(), (Ok(Some(clock)), Ok(Some(days))));
        }
        assert_eq!(store.world().clock(DimensionId(4)), Ok(None));
        let mut batch = SaveBatch::default();
        batch.clocks.insert(DimensionId(5), Duration::MAX);
        store.world().commit(&batch, Durability::Process).unwrap();
        assert_eq!(store.world().clock(DimensionId(5)), Ok(None), "it could not go on");
        for seconds in [5, 4] {
            let agreed = store.world().agree_on_clock(DimensionId(5), Duration::from_secs(seconds), None);
            assert_eq!(agreed, Ok(Duration::from_secs(5)));
        }
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
