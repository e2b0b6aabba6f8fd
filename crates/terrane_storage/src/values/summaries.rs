//! Summaries of columns: one value per column. They also show which columns were ever stored.

use crate::chunk::ColumnSummary;
use crate::commit::Commit;
use crate::space::{ColumnPos, DimensionId};
use crate::{Family, SaveBatch, StoreError, StoredItem, WorldStore, keys};

impl WorldStore {
    /// The summaries of these columns, in the same order; `None` for columns without one.
    pub fn summaries(
        &self,
        dimension: DimensionId,
        columns: &[ColumnPos],
    ) -> Result<Vec<Option<ColumnSummary>>, StoreError> {
        let keys: Vec<_> = columns.iter().map(|column| keys::summary_key(dimension, *column)).collect();
        let values = self.store.multi_get(Family::Meta, &keys.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        let read = |(value, column): (Option<Vec<u8>>, &ColumnPos)| {
            value.map(|value| self.summary(dimension, *column, &value)).transpose()
        };
        values.into_iter().zip(columns).map(read).collect()
    }

    pub(crate) fn summary(
        &self,
        dimension: DimensionId,
        column: ColumnPos,
        value: &[u8],
    ) -> Result<ColumnSummary, StoreError> {
        self.open_as(value, StoredItem::Summary(dimension, column), ColumnSummary::decode)
    }

    pub(crate) fn add_summaries(&self, batch: &SaveBatch, commit: &mut Commit) -> Result<(), StoreError> {
        let values = batch.summaries.iter().map(|(&(dimension, column), summary)| {
            let mut payload = Vec::new();
            summary.encode(&mut payload);
            (keys::summary_key(dimension, column), StoredItem::Summary(dimension, column), Some(payload))
        });
        self.replace_values(&values.collect::<Vec<_>>(), commit)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Durability;
    use crate::backends::test_store::TestStore;
    use crate::block::BlockId;
    use crate::chunk::Column;
    use crate::space::BlockPos;
    use std::sync::Arc;

    const DIMENSION: DimensionId = DimensionId(3);

    /// The summary of a column near the edge of the grid, with one block at this height.
    fn summary(x: i64, height: i64) -> (ColumnPos, ColumnSummary) {
        let mut column = Column::new(ColumnPos::new(x, i64::MIN >> 4));
        column.set_block(BlockPos::new(x << 4, height, i64::MIN), BlockId::new(7));
        (column.pos(), ColumnSummary::new(&column))
    }

    fn save(store: &TestStore, summaries: &[(ColumnPos, ColumnSummary)]) -> crate::CommitReport {
        let summaries = summaries.iter().cloned();
        let summaries = summaries.map(|(column, summary)| ((DIMENSION, column), Arc::new(summary))).collect();
        store.world().commit(&SaveBatch { summaries, ..SaveBatch::default() }, Durability::Process).unwrap()
    }

    #[test]
    fn the_newest_summary_is_read() {
        let store = TestStore::default();
        let [one, two, newer] = [summary(-1, 5), summary(2, i64::MAX), summary(-1, 6)];
        save(&store, &[one.clone(), two.clone()]);
        let read = |columns: &[ColumnPos]| store.world().summaries(DIMENSION, columns).unwrap();
        let nobody = ColumnPos::new(0, 0);
        assert_eq!(read(&[two.0, nobody, one.0]), [Some(two.1.clone()), None, Some(one.1.clone())]);
        assert_eq!(save(&store, &[one.clone(), two.clone()]).bytes, 0, "nothing changed");
        save(&store, std::slice::from_ref(&newer));
        assert_eq!(read(&[one.0]), [Some(newer.1)]);
        assert_eq!(store.world().summaries(DimensionId(4), &[one.0]).unwrap(), [None]);
    }

    #[test]
    fn a_damaged_one_is_an_error_until_it_is_saved_again() {
        let store = TestStore::default();
        let (column, one) = summary(9, 5);
        save(&store, &[(column, one.clone())]);
        let damage = || {
            store.tamper(Family::Meta, &keys::summary_key(DIMENSION, column), |value| *value.last_mut().unwrap() ^= 1);
        };
        damage();
        let error = store.world().summaries(DIMENSION, &[column]).unwrap_err();
        assert!(error.to_string().contains(&format!("the summary of column {column}")), "{error}");
        assert_eq!(save(&store, &[(column, one.clone())]).replaced.len(), 1);
        assert_eq!(store.world().summaries(DIMENSION, &[column]).unwrap(), [Some(one)]);
    }
}
