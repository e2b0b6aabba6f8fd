//! The tiles of a dimension's stored graph, each a square of 32 x 32 columns in an [envelope](crate::envelope).

use super::tile_masks::{Masks, encode, insert, is_marked, masks_of};
use crate::space::{ColumnPos, DimensionId, TilePos};
use crate::walk::walk;
use crate::work::Progress;
use crate::{Durability, Family, StoreError, StoredItem, StoredTile, Tier, WorldStore, WriteBatch, keys};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};

/// The ranges of entries that show that a column is stored.
fn places_of_columns(dimension: DimensionId) -> [(Family, Range<Vec<u8>>); 4] {
    let [hot, warm, cold] = Tier::ALL.map(|tier| (tier.family(), keys::dimension_range(keys::CHUNK, dimension)));
    [(Family::Meta, keys::dimension_range(keys::SUMMARY, dimension)), hot, warm, cold]
}

impl WorldStore {
    /// The saved tiles of a dimension's stored graph, by ascending x and z.
    pub fn stored_tiles(&self, dimension: DimensionId) -> Result<Vec<StoredTile>, StoreError> {
        self.list_meta(keys::dimension_range(keys::TILE, dimension), |key, value| {
            let (dimension, tile) = self.parsed(Family::Meta, key, keys::parse_tile_key)?;
            Ok(Some((tile, self.tile_masks(dimension, tile, value)?)))
        })
    }

    /// One tile of a dimension's stored graph, if it is saved.
    pub(crate) fn stored_tile(&self, dimension: DimensionId, tile: TilePos) -> Result<Option<Masks>, StoreError> {
        let value = self.store.get(Family::Meta, &keys::tile_key(dimension, tile))?;
        value.map(|value| self.tile_masks(dimension, tile, &value)).transpose()
    }

    /// Returns `true` if the column is stored, or in a sparse dimension, a part of it.
    pub fn is_stored(&self, dimension: DimensionId, column: ColumnPos) -> Result<bool, StoreError> {
        let masks = self.stored_tile(dimension, column.tile())?;
        Ok(masks.is_some_and(|masks| is_marked(&masks, column)))
    }

    pub(crate) fn tile_masks(&self, dimension: DimensionId, tile: TilePos, value: &[u8]) -> Result<Masks, StoreError> {
        self.open_as(value, StoredItem::Tile(dimension, tile), masks_of)
    }

    /// Returns `true` if the dimension's stored graph is lost although there are stored columns.
    pub fn has_lost_tiles(&self, dimension: DimensionId) -> Result<bool, StoreError> {
        let is_empty = |family, range: Range<Vec<u8>>| {
            self.store.scan(family, &range.start..&range.end, 1).map(|found| found.is_empty())
        };
        if !is_empty(Family::Meta, keys::dimension_range(keys::TILE, dimension))? {
            return Ok(false);
        }
        for (family, range) in places_of_columns(dimension) {
            if !is_empty(family, range)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Fails if the dimension's stored graph is lost.
    ///
    /// # Errors
    /// [`StoreError::LostGraph`], or an error of the store.
    pub(crate) fn expect_graph(&self, dimension: DimensionId) -> Result<(), StoreError> {
        match self.has_lost_tiles(dimension)? {
            true => Err(StoreError::LostGraph { dimension, path: self.path().to_path_buf() }),
            false => Ok(()),
        }
    }

    /// Rebuilds a lost or damaged stored graph from the stored columns, in one write. Returns the number of columns.
    /// The dimension must not be open in a running world; other dimensions can be saved meanwhile.
    ///
    /// A column is found by its summary, which is stored with the column even if that is all air, or by a chunk. Groups
    /// of chunks may become colder meanwhile, so the hottest tier is searched first.
    ///
    /// `progress` is called regularly, and can stop the rebuild. Then nothing is changed, and the result is `None`.
    #[doc(hidden)]
    pub fn rebuild_tiles(
        &self,
        dimension: DimensionId,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Option<u64>, StoreError> {
        let mut tiles = BTreeMap::new();
        // This may take minutes, so no lock is held: the searched entries have no other writers.
        let (_, finished) = walk(&*self.store, places_of_columns(dimension), progress, |family, found| match found {
            Ok(page) => page.iter().try_for_each(|(key, value)| {
                self.columns_of_entry(family, key, value)?.into_iter().for_each(|column| insert(&mut tiles, column));
                Ok(())
            }),
            // Columns that are missed would be generated again.
            Err((_, reason)) => Err(StoreError::Damaged { family, path: self.path().to_path_buf(), reason }),
        })?;
        if finished { self.replace_tiles(dimension, tiles).map(Some) } else { Ok(None) }
    }

    /// The columns that a stored entry belongs to.
    fn columns_of_entry(&self, family: Family, key: &[u8], value: &[u8]) -> Result<BTreeSet<ColumnPos>, StoreError> {
        let column = match Tier::of_family(family) {
            None => self.parsed(family, key, keys::parse_summary_key)?.1,
            Some(Tier::Hot) => self.parsed(family, key, keys::parse_chunk_key)?.1.column(),
            // The table of a cluster is whole or damaged. Its groups are not decoded.
            Some(tier) => return self.columns_in_cluster(tier, key, value),
        };
        Ok(BTreeSet::from([column]))
    }

    fn replace_tiles(&self, dimension: DimensionId, tiles: BTreeMap<TilePos, Masks>) -> Result<u64, StoreError> {
        let _writing = self.lock_writes()?;
        let mut writes = WriteBatch::default();
        self.scan_meta(keys::dimension_range(keys::TILE, dimension), |key, _| {
            writes.delete(Family::Meta, key.to_vec());
            Ok(())
        })?;
        let mut columns = 0;
        for (tile, masks) in tiles {
            columns += masks.iter().map(|mask| u64::from(mask.count_ones())).sum::<u64>();
            writes.put(Family::Meta, keys::tile_key(dimension, tile), encode(&masks));
        }
        self.write(writes, Durability::Sync)?;
        Ok(columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::test_store::TestStore;
    use crate::block::BlockId;
    use crate::chunk::{Chunk, Column, ColumnSummary};
    use crate::space::TILE_BATCHES;
    use crate::{KeyValueStore, SaveBatch};
    use proptest::collection::btree_set;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::sync::Arc;

    const DIMENSION: DimensionId = DimensionId(3);

    fn coordinate() -> impl Strategy<Value = i64> {
        prop_oneof![-70..70_i64, Just(i64::MIN >> 4), Just(i64::MAX >> 4)]
    }

    fn columns() -> impl Strategy<Value = BTreeSet<(i64, i64)>> {
        btree_set((coordinate(), coordinate()), 0..40)
    }

    /// A batch of columns with a summary and columns with only a chunk, and the graph of some others.
    fn batch(summarized: &BTreeSet<(i64, i64)>, chunks: &BTreeSet<(i64, i64)>) -> SaveBatch {
        let mut batch = SaveBatch::default();
        for &(x, z) in summarized {
            let column = Column::new(ColumnPos::new(x, z));
            batch.summaries.insert((DIMENSION, column.pos()), Arc::new(ColumnSummary::new(&column)));
        }
        for &(x, z) in chunks {
            let chunk = Arc::new(Chunk::uniform(BlockId::new(2)));
            batch.chunks.insert((DIMENSION, ColumnPos::new(x, z).chunk(x)), chunk);
        }
        batch
    }

    /// The columns that are marked in the tiles.
    fn stored(store: &TestStore) -> BTreeSet<(i64, i64)> {
        let mut columns = BTreeSet::new();
        for (TilePos { x, z }, masks) in store.world().stored_tiles(DIMENSION).unwrap() {
            for (batch, mask) in (0..).zip(masks) {
                let bits = (0..16_i64).filter(|bit| mask >> bit & 1 == 1);
                let batch: (i64, i64) = (x * 8 + batch % 8, z * 8 + batch / 8);
                columns.extend(bits.map(|bit| (batch.0 * 4 + bit % 4, batch.1 * 4 + bit / 4)));
            }
        }
        columns
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Promise, crashes: A dimension's lost list of columns is rebuilt while other dimensions keep running.
        #[test]
        fn a_rebuilt_graph_knows_every_column_and_no_other(summarized in columns(), chunks in columns(), old: bool) {
            let store = TestStore::default();
            let mut batch = batch(&summarized, &chunks);
            if old {
                batch.tiles.insert((DIMENSION, TilePos::new(0, 0)), [u16::MAX; TILE_BATCHES]);
                batch.tiles.insert((DIMENSION, TilePos::new(9, 9)), [1; TILE_BATCHES]);
            }
            store.world().commit(&batch, Durability::Process).unwrap();
            let all: BTreeSet<_> = summarized.union(&chunks).copied().collect();
            prop_assert_eq!(store.world().has_lost_tiles(DIMENSION).unwrap(), !(old || summarized.is_empty() && chunks.is_empty()));
            prop_assert_eq!(store.world().rebuild_tiles(DIMENSION, |_| ControlFlow::Continue(())), Ok(Some(all.len() as u64)));
            prop_assert_eq!(stored(&store), all);
            prop_assert!(!store.world().has_lost_tiles(DIMENSION).unwrap());
        }
    }

    #[test]
    fn a_damaged_tile_is_an_error_that_names_it() {
        let store = TestStore::default();
        let tile = TilePos::new(1, -2);
        let tiles = [((DIMENSION, tile), [5; TILE_BATCHES])].into();
        store.world().commit(&SaveBatch { tiles, ..SaveBatch::default() }, Durability::Process).unwrap();
        assert_eq!(store.world().stored_tile(DIMENSION, tile), Ok(Some([5; TILE_BATCHES])));
        let key = keys::tile_key(DIMENSION, tile);
        for length in [0, 40, store.get(Family::Meta, &key).unwrap().unwrap().len()] {
            store.tamper(Family::Meta, &key, |value| {
                value.resize(length, 0);
                value.iter_mut().last().into_iter().for_each(|byte| *byte ^= 1);
            });
            let error = store.world().stored_tiles(DIMENSION).unwrap_err().to_string();
            assert!(error.contains("graph tile [1, -2]"), "{error}");
        }
    }
}
