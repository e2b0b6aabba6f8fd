//! What the world remembers of how its columns came about: one value per tile, for the columns that differ from the usual.

use super::tile_history::TileHistory;
use super::{record, tile_masks};
use crate::commit::Commit;
use crate::space::{ColumnPos, DimensionId, TilePos};
use crate::{Durability, Family, SaveBatch, StoreError, StoredItem, WorldStore, WriteBatch, keys};
use std::collections::btree_map::Entry;
use std::ops::Range;

impl WorldStore {
    /// The histories of a dimension's tiles, by ascending x and z. A damaged one is logged: its columns count as old and complete.
    pub fn histories(&self, dimension: DimensionId) -> Result<Vec<(TilePos, TileHistory)>, StoreError> {
        self.list_meta(keys::dimension_range(keys::HISTORY, dimension), |key, value| {
            let (_, tile) = self.parsed(Family::Meta, key, keys::parse_history_key)?;
            Ok(Some((tile, self.undamaged_history(dimension, tile, value)?)))
        })
    }

    /// The history of one tile. A damaged one is logged: its columns count as old and complete.
    pub fn history(&self, dimension: DimensionId, tile: TilePos) -> Result<TileHistory, StoreError> {
        match self.store.get(Family::Meta, &keys::history_key(dimension, tile))? {
            Some(value) => self.undamaged_history(dimension, tile, &value),
            None => Ok(TileHistory::default()),
        }
    }

    /// The history of a column's tile if the column is stored, in one read.
    pub fn history_of_stored(
        &self,
        dimension: DimensionId,
        column: ColumnPos,
    ) -> Result<Option<TileHistory>, StoreError> {
        let tile = column.tile();
        let keys = [keys::tile_key(dimension, tile), keys::history_key(dimension, tile)];
        let mut found = self.store.multi_get(Family::Meta, &keys.each_ref().map(Vec::as_slice))?.into_iter();
        let (stored, history) = (found.next().flatten(), found.next().flatten());
        let masks = stored.map(|value| self.tile_masks(dimension, tile, &value)).transpose()?;
        if !masks.is_some_and(|masks| tile_masks::is_marked(&masks, column)) {
            return Ok(None);
        }
        let history = history.map(|value| self.undamaged_history(dimension, tile, &value)).transpose()?;
        Ok(Some(history.unwrap_or_default()))
    }

    fn undamaged_history(
        &self,
        dimension: DimensionId,
        tile: TilePos,
        value: &[u8],
    ) -> Result<TileHistory, StoreError> {
        match self.tile_history(dimension, tile, value) {
            Err(error) if error.is_damage() => {
                tracing::warn!("{error}; its columns count as old and complete");
                Ok(TileHistory::complete())
            }
            history => history,
        }
    }

    pub(crate) fn tile_history(
        &self,
        dimension: DimensionId,
        tile: TilePos,
        value: &[u8],
    ) -> Result<TileHistory, StoreError> {
        self.open_as(value, StoredItem::History(dimension, tile), TileHistory::decode)
    }

    /// The history of a tile as it will be with this batch, for changes.
    pub(crate) fn history_in<'a>(
        &self,
        batch: &'a mut SaveBatch,
        dimension: DimensionId,
        tile: TilePos,
    ) -> Result<&'a mut TileHistory, StoreError> {
        match batch.histories.entry((dimension, tile)) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => Ok(new.insert(self.history(dimension, tile)?)),
        }
    }

    /// The block heights for which the columns of a dimension were generated, unless their history says otherwise; `None` if it
    /// was never saved by a version that stores them.
    pub fn first_heights(&self, dimension: DimensionId) -> Result<Option<Range<i64>>, StoreError> {
        let key = keys::key_of_dimension(keys::HEIGHTS, dimension);
        let heights: Option<(i64, i64)> = self.read_record(&key, StoredItem::Heights(dimension))?;
        Ok(heights.map(|(low, high)| low..high))
    }

    /// Agrees with the other servers of a shared world on the first heights of a dimension: those that are stored, or else
    /// `heights`, which are stored. A process that has the world alone stores them with [`SaveBatch::heights`].
    pub fn agree_on_heights(&self, dimension: DimensionId, heights: Range<i64>) -> Result<Range<i64>, StoreError> {
        loop {
            if let Some(first) = self.first_heights(dimension)? {
                return Ok(first);
            }
            let (key, mut writes) = (keys::key_of_dimension(keys::HEIGHTS, dimension), WriteBatch::default());
            writes.require(Family::Meta, key.clone(), None);
            writes.put(Family::Meta, key, record::encode(&(heights.start, heights.end)));
            match self.write(writes, Durability::Sync) {
                Err(StoreError::PreconditionFailed { .. }) => {}
                written => return written.map(|()| heights),
            }
        }
    }

    pub(crate) fn add_histories(&self, batch: &SaveBatch, commit: &mut Commit) -> Result<(), StoreError> {
        let values = batch.histories.iter().map(|(&(dimension, tile), history)| {
            let payload = (!history.is_empty()).then(|| history.encode());
            (keys::history_key(dimension, tile), StoredItem::History(dimension, tile), payload)
        });
        self.replace_values(&values.collect::<Vec<_>>(), commit)?;
        for (dimension, heights) in &batch.heights {
            let key = keys::key_of_dimension(keys::HEIGHTS, *dimension);
            commit.writes.put(Family::Meta, key, record::encode(&(heights.start, heights.end)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeyValueStore;
    use crate::backends::test_store::TestStore;
    use crate::space::{HeightSet, TILE_BATCHES};
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    const DIMENSION: DimensionId = DimensionId(3);
    const TILE: TilePos = TilePos::new(-1, 2);

    fn column(index: u16) -> ColumnPos {
        ColumnPos::new(TILE.x * 32 + i64::from(index % 32), TILE.z * 32 + i64::from(index / 32 % 32))
    }

    fn save(store: &TestStore, history: &TileHistory) -> crate::CommitReport {
        let histories = [((DIMENSION, TILE), history.clone())].into();
        store.world().commit(&SaveBatch { histories, ..SaveBatch::default() }, Durability::Process).unwrap()
    }

    fn is_stored(store: &TestStore) -> bool {
        store.get(Family::Meta, &keys::history_key(DIMENSION, TILE)).unwrap().is_some()
    }

    /// Heights that a column may have been generated for.
    fn heights() -> impl Strategy<Value = Option<HeightSet>> {
        let range = (0..3_i64, 1..3_i64).prop_map(|(low, length)| low * 100..(low + length) * 100);
        prop::option::of(prop::collection::vec(range, 1..3).prop_map(|ranges| {
            ranges.into_iter().fold(HeightSet::new(), |mut all, range| {
                all.insert(range);
                all
            })
        }))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// A history is a map of columns, in memory and in the store.
        #[test]
        fn each_column_is_as_new_and_as_high_as_was_noted(
            changes in prop::collection::vec((0..1024_u16, any::<bool>(), heights()), 0..40),
        ) {
            let (mut history, mut new, mut high) = (TileHistory::default(), BTreeSet::new(), BTreeMap::new());
            for (index, is_new, heights) in changes {
                let has_changed = if is_new { new.insert(index) } else { new.remove(&index) };
                prop_assert_eq!(history.set_new(column(index), is_new), has_changed);
                history.set_heights(column(index), heights.clone());
                match heights {
                    Some(heights) => drop(high.insert(index, heights)),
                    None => drop(high.remove(&index)),
                }
            }
            let is_empty = new.is_empty() && high.is_empty();
            prop_assert_eq!(history.is_empty(), is_empty);
            let store = TestStore::default();
            save(&store, &history);
            prop_assert_eq!(is_stored(&store), !is_empty);
            let stored = store.world().history(DIMENSION, TILE).unwrap();
            for index in 0..1024 {
                prop_assert_eq!(stored.is_new(column(index)), new.contains(&index));
                prop_assert_eq!(stored.heights(column(index)), high.get(&index));
            }
            let listed = if is_empty { vec![] } else { vec![(TILE, history.clone())] };
            prop_assert_eq!(store.world().histories(DIMENSION).unwrap(), listed);
            prop_assert_eq!(save(&store, &history).bytes, 0, "nothing changed");

            // A part of it, which names the first heights.
            let (mut part, first) = ([0; TILE_BATCHES], HeightSet::from(-7..7));
            (0..1024).step_by(3).for_each(|index| tile_masks::mark_stored(&mut part, column(index)));
            let told = history.of_columns(&part, Some(-7..7));
            for index in 0..1024 {
                let is_in = index % 3 == 0;
                prop_assert_eq!(told.is_new(column(index)), is_in && new.contains(&index));
                prop_assert_eq!(told.heights(column(index)), is_in.then(|| high.get(&index).unwrap_or(&first)));
            }
        }
    }

    #[test]
    fn the_first_heights_are_stored_with_the_first_save_and_agreed_on() {
        let store = TestStore::default();
        let world = store.world();
        assert_eq!(world.first_heights(DIMENSION), Ok(None));
        let heights = [(DIMENSION, -64..320)].into();
        world.commit(&SaveBatch { heights, ..SaveBatch::default() }, Durability::Process).unwrap();
        assert_eq!(world.first_heights(DIMENSION), Ok(Some(-64..320)));
        assert_eq!(world.agree_on_heights(DIMENSION, 0..16), Ok(-64..320));
        assert_eq!(world.agree_on_heights(DimensionId(4), 0..16), Ok(0..16));
        assert_eq!(store.world().agree_on_heights(DimensionId(4), 0..32), Ok(0..16));
        store.tamper(Family::Meta, &keys::key_of_dimension(keys::HEIGHTS, DIMENSION), |value| value.push(0));
        let error = store.world().first_heights(DIMENSION).unwrap_err();
        assert!(error.is_damage() && error.to_string().contains("the first heights"), "{error}");
    }

    #[test]
    fn a_history_that_says_nothing_any_more_is_deleted() {
        let store = TestStore::default();
        let mut history = TileHistory::default();
        history.set_new(column(40), true);
        save(&store, &history);
        assert!(is_stored(&store));
        history.forget(column(40));
        save(&store, &history);
        assert!(!is_stored(&store));
        assert!(store.world().histories(DIMENSION).unwrap().is_empty());
    }

    /// No column may become new or incomplete by damage: what was placed or generated there once would be there again.
    #[test]
    fn columns_with_a_damaged_history_are_old_and_complete() {
        let store = TestStore::default();
        let mut history = TileHistory::default();
        history.set_new(column(40), true);
        save(&store, &history);
        let key = keys::history_key(DIMENSION, TILE);
        for length in [0, 40, store.get(Family::Meta, &key).unwrap().unwrap().len()] {
            store.tamper(Family::Meta, &key, |value| {
                value.resize(length, 0);
                value.iter_mut().last().into_iter().for_each(|byte| *byte ^= 1);
            });
            assert_eq!(store.world().history(DIMENSION, TILE), Ok(TileHistory::complete()));
            assert_eq!(store.world().histories(DIMENSION), Ok(vec![(TILE, TileHistory::complete())]));
            let stored = store.get(Family::Meta, &key).unwrap().unwrap();
            let error = store.world().tile_history(DIMENSION, TILE, &stored).unwrap_err().to_string();
            assert!(error.contains("the history of tile [-1, 2]"), "{error}");
        }
        assert_eq!(save(&store, &history).replaced.len(), 1);
        assert_eq!(store.world().history(DIMENSION, TILE), Ok(history));
    }
}
