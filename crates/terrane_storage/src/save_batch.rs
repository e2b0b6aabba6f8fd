//! The data to be saved.

use super::servers::{Crossing, CrossingId};
use super::{EntityRecord, StoredBlockTick, TileHistory};
use crate::chunk::{Chunk, ColumnSummary};
use crate::space::{AreaCursor, ChunkPos, ColumnArea, ColumnPos, DimensionId, TILE_BATCHES, TilePos};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// A tile of a stored graph: its position, and the masks of its batches.
pub type StoredTile = (TilePos, [u16; TILE_BATCHES]);

/// A stored pre-generation, which exists until it is finished or cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPregeneration {
    /// The area to generate.
    pub area: ColumnArea,
    /// The position in the area. All columns before it were stored or failed.
    pub cursor: AreaCursor,
    /// `true` if it is paused until it is resumed.
    pub paused: bool,
    /// The time that it has been running.
    pub elapsed: Duration,
}

/// The data to be saved for all regions: the newest state of everything that changed.
///
/// A commit writes a whole batch or nothing, so the data of one batch stays consistent through a crash.
#[derive(Clone, Default, PartialEq)]
pub struct SaveBatch {
    /// Chunks, by position.
    pub chunks: BTreeMap<(DimensionId, ChunkPos), Arc<Chunk>>,
    /// All scheduled block ticks of a chunk; an empty list if none are left.
    pub block_ticks: BTreeMap<(DimensionId, ChunkPos), Vec<StoredBlockTick>>,
    /// Entities, by UUID; `None` for removed ones.
    pub entities: BTreeMap<Uuid, Option<EntityRecord>>,
    /// Tiles of stored graphs.
    pub tiles: BTreeMap<(DimensionId, TilePos), [u16; TILE_BATCHES]>,
    /// The histories of tiles whose columns have become new or old, or higher.
    pub histories: BTreeMap<(DimensionId, TilePos), TileHistory>,
    /// Summaries of columns.
    pub summaries: BTreeMap<(DimensionId, ColumnPos), Arc<ColumnSummary>>,
    /// Generated columns that are not in use. Their chunks start cold.
    pub unused: BTreeSet<(DimensionId, ColumnPos)>,
    /// Pre-generations, by number; `None` for ended ones.
    pub pregenerations: BTreeMap<(DimensionId, u64), Option<StoredPregeneration>>,
    /// Everything that leaves for another server of a shared world, and messages on their way from region to region.
    pub sent: BTreeMap<CrossingId, Crossing>,
    /// Crossings whose content is in this batch or has arrived by it. The commit removes them.
    pub received: BTreeSet<CrossingId>,
    /// The clocks of dimensions. They are saved along with other data, and never alone.
    pub clocks: BTreeMap<DimensionId, Duration>,
    /// The heights for which the columns of dimensions were generated at first, until they are stored. Saved along like clocks.
    pub heights: BTreeMap<DimensionId, Range<i64>>,
    /// The time of day of dimensions, in days, at the time of their clocks. Saved along with them.
    pub days: BTreeMap<DimensionId, f64>,
}

impl SaveBatch {
    /// Adds newer changes to this batch.
    pub fn merge(&mut self, newer: Self) {
        if self.is_empty() {
            *self = newer;
            return;
        }
        self.unused.extend(newer.unused);
        self.chunks.extend(newer.chunks);
        self.block_ticks.extend(newer.block_ticks);
        self.entities.extend(newer.entities);
        self.tiles.extend(newer.tiles);
        self.histories.extend(newer.histories);
        self.summaries.extend(newer.summaries);
        self.pregenerations.extend(newer.pregenerations);
        self.sent.extend(newer.sent);
        self.received.extend(newer.received);
        self.clocks.extend(newer.clocks);
        self.heights.extend(newer.heights);
        self.days.extend(newer.days);
    }

    /// The number of items to save, without the clocks, days and heights of dimensions.
    pub fn len(&self) -> usize {
        let Self { chunks, block_ticks, entities, tiles, histories, summaries, pregenerations, sent, received, .. } =
            self;
        let ground = chunks.len() + block_ticks.len() + tiles.len() + histories.len() + summaries.len();
        ground + entities.len() + pregenerations.len() + sent.len() + received.len()
    }

    /// Returns `true` if there is nothing to save.
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.clocks.is_empty()
    }
}

impl fmt::Debug for SaveBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaveBatch")
            .field("chunks", &self.chunks.len())
            .field("block_ticks", &self.block_ticks.len())
            .field("entities", &self.entities.len())
            .field("tiles", &self.tiles.len())
            .field("histories", &self.histories.len())
            .field("summaries", &self.summaries.len())
            .field("pregenerations", &self.pregenerations.len())
            .field("sent", &self.sent.len())
            .field("received", &self.received.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BlockId;
    use crate::chunk::Column;
    use crate::space::ColumnArea;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[test]
    fn counts_everything() {
        let mut batch = SaveBatch::default();
        assert!(batch.is_empty());
        batch.entities.insert(Uuid::nil(), None);
        assert!(!batch.is_empty());
        batch.tiles.insert((DimensionId(1), TilePos::new(0, 0)), [0; 64]);
        batch.chunks.insert((DimensionId(1), ChunkPos::new(0, 0, 0)), Arc::new(Chunk::uniform(BlockId::AIR)));
        batch.block_ticks.insert((DimensionId(1), ChunkPos::new(0, 0, 0)), Vec::new());
        let summary = ColumnSummary::new(&Column::new(ColumnPos::new(0, 0)));
        batch.summaries.insert((DimensionId(1), ColumnPos::new(0, 0)), Arc::new(summary));
        batch.pregenerations.insert((DimensionId(1), 0), None);
        let crossing = CrossingId { plot: (DimensionId(1), TilePos::new(0, 0)), sender: 1, number: 1 };
        batch.sent.insert(crossing, Crossing::Entities(Vec::new()));
        batch.received.insert(crossing);
        batch.histories.insert((DimensionId(1), TilePos::new(0, 0)), TileHistory::default());
        assert_eq!(batch.len(), 9);
        let counts = "SaveBatch { chunks: 1, block_ticks: 1, entities: 1, tiles: 1, histories: 1, summaries: 1, \
                      pregenerations: 1, sent: 1, received: 1 }";
        assert_eq!(format!("{batch:?}"), counts);
    }

    proptest! {
        /// Merging a series of batches in order is the same as remembering the last value of each key.
        #[test]
        fn the_newest_of_each_counts(changes in vec(vec((0..7_u8, 0..4_i64, any::<u16>()), 0..8), 0..8)) {
            let dimension = DimensionId(1);
            let mut model: HashMap<(u8, i64), u16> = HashMap::new();
            let mut merged = SaveBatch::default();
            for changes in changes {
                let mut newer = SaveBatch::default();
                for (kind, key, value) in changes {
                    model.insert((kind, key), value);
                    let mut chunk = Chunk::uniform(BlockId::AIR);
                    chunk.set_block([0, 0, 0], BlockId::new(value.into()));
                    match kind {
                        0 => drop(newer.chunks.insert((dimension, ChunkPos::new(key, 0, 0)), Arc::new(chunk))),
                        1 => drop(newer.entities.insert(Uuid::from_u128(key as u128), record(key, value))),
                        2 => drop(newer.block_ticks.insert((dimension, ChunkPos::new(key, 0, 0)), ticks(key, value))),
                        3 => drop(newer.summaries.insert((dimension, ColumnPos::new(key, 0)), summary(key, value))),
                        4 => drop(newer.pregenerations.insert((dimension, key as u64), pregeneration(value))),
                        5 => drop(newer.histories.insert((dimension, TilePos::new(key, 0)), history(key, value))),
                        _ => drop(newer.tiles.insert((dimension, TilePos::new(key, 0)), [value; 64])),
                    }
                }
                merged.merge(newer);
            }
            prop_assert_eq!(merged.len(), model.len());
            for ((kind, key), value) in model {
                let mut chunk = Chunk::uniform(BlockId::AIR);
                chunk.set_block([0, 0, 0], BlockId::new(value.into()));
                match kind {
                    0 => prop_assert!(*merged.chunks[&(dimension, ChunkPos::new(key, 0, 0))] == chunk),
                    1 => prop_assert_eq!(&merged.entities[&Uuid::from_u128(key as u128)], &record(key, value)),
                    2 => {
                        let found = &merged.block_ticks[&(dimension, ChunkPos::new(key, 0, 0))];
                        prop_assert_eq!(found, &ticks(key, value));
                    }
                    3 => {
                        let found = &merged.summaries[&(dimension, ColumnPos::new(key, 0))];
                        prop_assert_eq!(found, &summary(key, value));
                    }
                    4 => prop_assert_eq!(merged.pregenerations[&(dimension, key as u64)], pregeneration(value)),
                    5 => {
                        let found = &merged.histories[&(dimension, TilePos::new(key, 0))];
                        prop_assert_eq!(found, &history(key, value));
                    }
                    _ => prop_assert_eq!(merged.tiles[&(dimension, TilePos::new(key, 0))], [value; 64]),
                }
            }
        }
    }

    /// Every fourth pre-generation has ended.
    fn pregeneration(value: u16) -> Option<StoredPregeneration> {
        let area = ColumnArea::Square { center: ColumnPos::new(0, 0), radius: value.into() };
        let (cursor, elapsed) = (Default::default(), Duration::ZERO);
        (!value.is_multiple_of(4)).then_some(StoredPregeneration { area, cursor, paused: false, elapsed })
    }

    /// The history of a tile in which one column is new.
    fn history(key: i64, value: u16) -> TileHistory {
        let mut history = TileHistory::default();
        history.set_new(ColumnPos::new(key * 32, i64::from(value % 32)), true);
        history
    }

    /// The summary of a column with one block at this height.
    fn summary(key: i64, value: u16) -> Arc<ColumnSummary> {
        let mut column = Column::new(ColumnPos::new(key, 0));
        let block = crate::space::BlockPos::new(key << 4, value.into(), 0);
        column.set_block(block, BlockId::new(1));
        Arc::new(ColumnSummary::new(&column))
    }

    /// Every fourth list is empty.
    fn ticks(key: i64, value: u16) -> Vec<StoredBlockTick> {
        let block = ChunkPos::new(key, 0, 0).min_block();
        let tick = |kind| StoredBlockTick { block, kind: "flow".into(), remaining: u64::from(kind) };
        (0..value % 4).map(tick).collect()
    }

    /// Every fourth entity is removed.
    fn record(key: i64, value: u16) -> Option<EntityRecord> {
        (!value.is_multiple_of(4)).then(|| EntityRecord {
            id: Uuid::from_u128(key as u128),
            dimension: DimensionId(1),
            block: crate::space::BlockPos::new(value.into(), 0, 0),
            offset: [0.5; 3],
            viewer: None,
            components: Vec::new(),
            children: Vec::new(),
        })
    }
}
