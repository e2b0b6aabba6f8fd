//! Unfinished pre-generations: one value each, a [record](super::record) in an [envelope](crate::envelope).

use crate::commit::Commit;
use crate::space::DimensionId;
use crate::{
    Family, SaveBatch, StoreError, StoredItem, StoredPregeneration, WorldStore, envelope, keys, values::record,
};

/// A stored pre-generation with its number, or a description of its damage.
pub type PregenerationEntry = (u64, Result<StoredPregeneration, StoreError>);

impl WorldStore {
    /// The pre-generations of a dimension, by number, including damaged ones.
    pub fn pregenerations(&self, dimension: DimensionId) -> Result<Vec<PregenerationEntry>, StoreError> {
        self.list_meta(keys::dimension_range(keys::PREGENERATION, dimension), |key, value| {
            let (_, number) = self.parsed(Family::Meta, key, keys::parse_pregeneration_key)?;
            Ok(Some((number, self.pregeneration(dimension, number, value))))
        })
    }

    pub(crate) fn pregeneration(
        &self,
        dimension: DimensionId,
        number: u64,
        value: &[u8],
    ) -> Result<StoredPregeneration, StoreError> {
        self.open_as(value, StoredItem::Pregeneration(dimension, number), record::decode)
    }

    pub(crate) fn add_pregenerations(&self, batch: &SaveBatch, commit: &mut Commit) {
        for (&(dimension, number), job) in &batch.pregenerations {
            let key = keys::pregeneration_key(dimension, number);
            match job {
                // The version of a pre-generation is never used.
                Some(job) => commit.writes.put(Family::Meta, key, envelope::sealed(0, &record::encode(job))),
                None => commit.writes.delete(Family::Meta, key),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Durability;
    use crate::backends::test_store::TestStore;
    use crate::space::{AreaCursor, BatchPos, ColumnArea, ColumnPos};
    use std::time::Duration;

    const DIMENSION: DimensionId = DimensionId(3);

    fn job(radius: u32) -> StoredPregeneration {
        let area = ColumnArea::Disc { center: ColumnPos::new(i64::MIN, 7), radius };
        let cursor = AreaCursor::at(&area, BatchPos::new(i64::MIN >> 2, 2));
        StoredPregeneration { area, cursor, paused: radius == 1, elapsed: Duration::from_millis(1_500) }
    }

    fn save(store: &TestStore, jobs: &[(u64, Option<StoredPregeneration>)]) {
        let pregenerations = jobs.iter().map(|(number, job)| ((DIMENSION, *number), *job)).collect();
        store.world().commit(&SaveBatch { pregenerations, ..SaveBatch::default() }, Durability::Process).unwrap();
    }

    #[test]
    fn the_newest_progress_is_read_and_ended_jobs_are_forgotten() {
        let store = TestStore::default();
        save(&store, &[(0, Some(job(5))), (9, Some(job(1))), (u64::MAX, Some(job(2)))]);
        save(&store, &[(0, None), (9, Some(job(3))), (4, None)]);
        let read = |dimension| store.world().pregenerations(dimension).unwrap();
        assert_eq!(read(DIMENSION), [(9, Ok(job(3))), (u64::MAX, Ok(job(2)))]);
        assert_eq!(read(DimensionId(2)), []);
        assert_eq!(read(DimensionId(4)), []);
    }

    #[test]
    fn a_damaged_one_is_named_and_the_others_are_read() {
        let store = TestStore::default();
        save(&store, &[(1, Some(job(5))), (2, Some(job(6)))]);
        let key = keys::pregeneration_key(DIMENSION, 1);
        store.tamper(Family::Meta, &key, |value| *value.last_mut().unwrap() ^= 1);
        let found = store.world().pregenerations(DIMENSION).unwrap();
        let error = found[0].1.as_ref().unwrap_err().to_string();
        assert!(error.contains("pre-generation 1 of dimension 3"), "{error}");
        assert_eq!(found[1], (2, Ok(job(6))));
    }
}
