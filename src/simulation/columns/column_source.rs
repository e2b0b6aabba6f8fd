//! The sources of a column that a region requests during a tick: the store, or the dimension's generator.

use crate::block::{BlockId, BlockRegistry, BlockSet, tags};
use crate::chunk::{Chunk, Column};
use crate::generation::{GenerateError, GenerateRequest, Generator, generate};
use crate::region::RegionId;
use crate::simulation::columns::light::LightRules;
use crate::simulation::info::Floor;
use crate::simulation::position::Viewer;
use crate::space::{
    BlockPos, CHUNK_SIZE, ChunkPos, ColumnPos, DimensionId, HeightSet, SectionPos, TilePos, chunk_heights,
};
use crate::storage::{LoadedColumn, StoreError, WorldStore};
use bevy::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Duration;

/// Block types that the ground looks for.
pub struct GroundTypes {
    /// The types that hear of changes; `None` if there are none.
    pub noticing: Option<BlockSet>,
    /// The types that get random ticks; `None` if there are none.
    pub random: Option<BlockSet>,
}

impl GroundTypes {
    pub fn new(blocks: &BlockRegistry) -> Self {
        Self { noticing: blocks.tag(tags::NOTICES).cloned(), random: blocks.tag(tags::RANDOM_TICKS).cloned() }
    }
}

/// Names the column of an error that does not name a place itself.
fn prefix(column: ColumnPos, error: &GenerateError) -> String {
    match error {
        GenerateError::UnknownBlock { .. } => format!("column {column}: "),
        _ => String::new(),
    }
}

/// The reason why a column was not available, or why work on it failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ColumnError {
    /// The column lies on ground that this server does not own, in a world that several servers share.
    #[error("column {0} lies on ground that this server does not own")]
    OtherServer(ColumnPos),
    /// The region does not own the column's section.
    #[error("column {0} lies in a section that this region does not own")]
    NotOwned(ColumnPos),
    /// The world has been closed.
    #[error("column {0} is not available: the world is closed")]
    Closed(ColumnPos),
    /// Generating the column failed.
    #[error("{}{source}", prefix(*column, source))]
    Generate {
        /// The column.
        column: ColumnPos,
        /// The generator's error.
        source: GenerateError,
    },
    /// Reading the column failed.
    #[error("column {column}: {source}")]
    Store {
        /// The column.
        column: ColumnPos,
        /// The store's error.
        source: StoreError,
    },
    /// The generator, or a migration of stored data, panicked.
    #[error("column {column}: reading or generating it panicked: {message}")]
    Panicked {
        /// The column.
        column: ColumnPos,
        /// The message of the panic.
        message: String,
    },
    /// A snapshot to be restored contains a block with an unregistered id.
    #[error("block {block} is not restored: it is {id} in the snapshot, and no type is registered under that id")]
    Unregistered {
        /// The block.
        block: BlockPos,
        /// The id.
        id: BlockId,
    },
    /// In a sparse dimension, the requested part of the column is larger than may be loaded at once.
    #[error("column {column}: the box reaches more than {limit} chunk heights of a sparse dimension")]
    TooManyHeights {
        /// The column.
        column: ColumnPos,
        /// The maximum number of chunk heights that are loaded.
        limit: u64,
    },
    /// The request got no answer.
    #[error("column {0} was requested, but never arrived")]
    Unanswered(ColumnPos),
}

impl ColumnError {
    /// Returns `true` if the store is temporarily unavailable and the column itself is fine.
    pub(crate) fn is_outage(&self) -> bool {
        matches!(self, Self::Store { source, .. } if source.is_outage())
    }
}

/// An evicted column, or an evicted part of one, until it is stored.
#[derive(Debug)]
struct Departed {
    /// Includes the column's entities if it is whole.
    loaded: LoadedColumn,
    is_whole: bool,
    /// The commit that stores it.
    until: u64,
}

/// The columns of a dimension that belong to no region and are not completely stored yet: evicted columns and parts, and
/// columns whose region halted. Of evicted ground only the latest version is kept.
#[derive(Debug, Default)]
pub struct DepartedColumns {
    /// For each column, oldest first. No chunk height occurs in more than one entry.
    evicted: Mutex<FxHashMap<ColumnPos, Vec<Departed>>>,
    lost: Mutex<FxHashMap<ColumnPos, SavedChunks>>,
}

/// Chunks of a column that were handed out for saving, by height.
pub type SavedChunks = Vec<(i64, Arc<Chunk>)>;

fn locked<T>(all: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code of the game runs under the lock, and no insertion or removal stops half way.
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

impl DepartedColumns {
    /// Records that the column was lost with the world of a halted region and must be read again. These chunks of it are being
    /// saved and are newer than any other copy.
    pub fn lose(&self, column: ColumnPos, chunks: SavedChunks) {
        locked(&self.lost).insert(column, chunks);
        locked(&self.evicted).remove(&column);
    }

    /// Records that the column was read again, or belongs to no region any more.
    pub fn find_again(&self, column: ColumnPos) {
        locked(&self.lost).remove(&column);
    }

    fn unwritten(&self, column: ColumnPos) -> SavedChunks {
        locked(&self.lost).get(&column).cloned().unwrap_or_default()
    }

    /// Keeps a column until the commit `until` is stored.
    pub fn keep(&self, loaded: LoadedColumn, until: u64) {
        self.insert(Departed { loaded, is_whole: true, until });
    }

    /// Keeps a part of a column until the commit `until` is stored.
    pub fn keep_part(&self, loaded: LoadedColumn, until: u64) {
        self.insert(Departed { loaded, is_whole: false, until });
    }

    fn insert(&self, departed: Departed) {
        let heights = departed.loaded.column.loaded().cloned().unwrap_or_default();
        let mut all = locked(&self.evicted);
        let known = all.entry(departed.loaded.column.pos()).or_default();
        known.retain(|older| !(older.is_whole && departed.is_whole));
        known.iter_mut().for_each(|older| older.loaded.drop_heights(&heights));
        known.push(departed);
    }

    /// Returns `true` if the column was evicted and is not stored yet.
    pub fn contains(&self, column: ColumnPos) -> bool {
        locked(&self.evicted).get(&column).is_some_and(|known| known.iter().any(|departed| departed.is_whole))
    }

    /// The evicted column. It stays here until it is stored, since the store has an older version.
    pub fn get(&self, column: ColumnPos) -> Option<LoadedColumn> {
        let all = locked(&self.evicted);
        all.get(&column)?.iter().find(|departed| departed.is_whole).map(|departed| departed.loaded.clone())
    }

    /// The evicted parts of the column that are not stored yet, including the whole column.
    fn evicted(&self, column: ColumnPos) -> Vec<LoadedColumn> {
        let all = locked(&self.evicted);
        all.get(&column).into_iter().flatten().map(|departed| departed.loaded.clone()).collect()
    }

    /// Removes everything that `commit` has stored.
    pub fn forget_until(&self, commit: u64) {
        locked(&self.evicted).retain(|_, known| {
            known.retain(|departed| departed.until > commit);
            !known.is_empty()
        });
    }
}

/// The data that all regions of a dimension share for loading or generating one of its columns on any thread.
pub struct ColumnSource {
    /// The dimension.
    pub dimension: DimensionId,
    /// Its heights, in blocks.
    pub heights: Range<i64>,
    /// Its heights, in chunks.
    pub chunk_heights: Range<i64>,
    /// Its floor, for bodies.
    pub floor: Floor,
    /// The block heights for which its columns were generated, unless their history says otherwise.
    pub first_heights: Range<i64>,
    /// `true` if only the part of a column near viewers, above and below them, is generated, stored and loaded.
    pub is_sparse: bool,
    /// The generator of new ground.
    pub generator: Arc<dyn Generator>,
    /// The block types of the world.
    pub blocks: Arc<BlockRegistry>,
    /// The types among them that hear of changes or get random ticks.
    pub types: GroundTypes,
    /// How its light is computed; `None` if there is no light.
    pub light: Option<LightRules>,
    /// The store. The reference is weak, so that a region that hangs when the app ends does not keep the world open.
    pub store: Weak<WorldStore>,
    /// Columns that are newer than in the store.
    pub departed: DepartedColumns,
    /// If damaged stored chunks are regenerated, those of them that were, each with the error that was found.
    pub regenerated: Option<Mutex<Vec<(ChunkPos, StoreError)>>>,
    /// The number of columns along the side of a section, as a power of two.
    pub section_shift: u32,
    /// In strict mode, a development aid, the owners of all sections: any access outside of the own region is then an error.
    pub owners: Option<RwLock<FxHashMap<SectionPos, RegionId>>>,
    /// The plots on which ground may be fetched, if several servers share the world.
    pub open_plots: Option<RwLock<FxHashSet<TilePos>>>,
}

/// The number of chunks in a slab, the unit in which columns of a sparse dimension are loaded and evicted. A power of two, and a
/// multiple of the height of a stored chunk group.
const SLAB: i64 = 16;

/// A column that was loaded or generated, or a part of one.
pub struct FetchedColumn {
    /// The column as it was fetched. If a region fetched it during a tick, its stored entities arrive separately. In a
    /// dimension that is not sparse, its scheduled ticks do so too.
    pub loaded: LoadedColumn,
    /// The chunk heights that are new and not stored yet. In a dimension that is not sparse, set only if a region fetched
    /// the column itself.
    pub made: HeightSet,
    /// In a sparse dimension, the heights that are not stored and were not to be generated.
    pub left_out: HeightSet,
    /// The block heights at which a stored column was generated now, because it was stored with smaller heights.
    pub extended: HeightSet,
    /// How long a thread took to make it of what it had read; zero if a region fetched it.
    pub made_in: Duration,
}

impl From<LoadedColumn> for FetchedColumn {
    fn from(loaded: LoadedColumn) -> Self {
        let (made, left_out, extended, made_in) = Default::default();
        Self { loaded, made, left_out, extended, made_in }
    }
}

impl ColumnSource {
    /// The ground of a dimension that is not sparse.
    pub fn new(
        dimension: DimensionId,
        heights: Range<i64>,
        generator: Arc<dyn Generator>,
        blocks: Arc<BlockRegistry>,
        store: Weak<WorldStore>,
    ) -> Self {
        let chunk_heights = chunk_heights(&heights);
        Self {
            dimension,
            floor: Floor::below(&heights),
            first_heights: heights.clone(),
            heights,
            chunk_heights,
            is_sparse: false,
            generator,
            types: GroundTypes::new(&blocks),
            blocks,
            light: None,
            store,
            departed: DepartedColumns::default(),
            regenerated: None,
            section_shift: 0,
            owners: None,
            open_plots: None,
        }
    }

    /// Fetches the column of a block for a region during a tick. In a sparse dimension, this is the part of it around the block
    /// that is not in `known`.
    pub fn fetch(&self, block: BlockPos, known: &HeightSet) -> Result<FetchedColumn, ColumnError> {
        let column = block.column();
        if let Some(open) = &self.open_plots
            && !open.read().unwrap_or_else(PoisonError::into_inner).contains(&column.tile())
        {
            return Err(ColumnError::OtherServer(column));
        }
        if self.is_sparse {
            let window = self.window(block.chunk().y, Viewer::DEFAULT_VERTICAL_RADIUS);
            return self.gather(column, &window.difference(known), true);
        }
        // Taken before reading the store: a chunk that is written in between is found in the store unchanged.
        let unwritten = self.departed.unwritten(column);
        let mut fetched = self.read_or_generate(column)?;
        for (height, chunk) in unwritten {
            fetched.loaded.column.set_chunk(height, chunk);
        }
        Ok(fetched)
    }

    /// The chunk heights of the slabs within `radius` of this height. A dimension that is not sparse has a single slab with all
    /// heights.
    pub fn window(&self, height: i64, radius: u32) -> HeightSet {
        let Range { start, end } = self.chunk_heights.clone();
        if !self.is_sparse {
            return HeightSet::from(start..end);
        }
        let (height, radius) = (height.clamp(start, end - 1), i64::from(radius));
        let (low, high) = ((height - radius) & !(SLAB - 1), (height + radius) | (SLAB - 1));
        HeightSet::from(low.max(start)..(high + 1).min(end))
    }

    /// The part of a column of a sparse dimension at these chunk heights: stored chunks, replaced by newer ones. Other
    /// heights are generated or left out.
    pub fn gather(
        &self,
        column: ColumnPos,
        wanted: &HeightSet,
        may_generate: bool,
    ) -> Result<FetchedColumn, ColumnError> {
        let mut block_ticks = Vec::new();
        let mut part = Column::partial(column, HeightSet::new());
        let mut take = |part: &mut Column, LoadedColumn { column: mut more, block_ticks: ticks, .. }: LoadedColumn| {
            let new = part.extend(&more.cut(wanted));
            block_ticks.extend(ticks.into_iter().filter(|tick| new.contains(tick.block.chunk().y)));
        };
        // Taken before reading the store: a chunk that is written in between is found in the store unchanged.
        let unwritten = self.departed.unwritten(column);
        self.departed.evicted(column).into_iter().for_each(|newer| take(&mut part, newer));
        let missing = |part: &Column| part.loaded().map_or_else(HeightSet::new, |loaded| wanted.difference(loaded));
        let heights = missing(&part);
        let mut stored = self.read(column, |store| store.load_part(self.dimension, column, &heights))?;
        for (height, chunk) in unwritten {
            stored.column.set_chunk(height, chunk);
        }
        take(&mut part, stored);
        let made = if may_generate { missing(&part) } else { HeightSet::new() };
        for range in made.ranges() {
            part.extend(&self.generate(column, range)?);
        }
        let left_out = missing(&part);
        let loaded = LoadedColumn { block_ticks, ..part.into() };
        Ok(FetchedColumn { made, left_out, ..loaded.into() })
    }

    /// Generates a part of a column.
    pub fn generate(&self, column: ColumnPos, chunks: Range<i64>) -> Result<Column, ColumnError> {
        let Range { start, end } = self.heights;
        // The end of the highest possible chunk overflows.
        let top = chunks.end.checked_mul(CHUNK_SIZE as i64).unwrap_or(end).min(end);
        let heights = start.max(chunks.start << 4)..top;
        let made = self.make(column, heights)?;
        let mut part = Column::partial(column, HeightSet::from(chunks.clone()));
        let within = made.chunks().filter(|(height, _)| chunks.contains(height));
        within.for_each(|(height, chunk)| drop(part.set_chunk(height, chunk.clone())));
        Ok(part)
    }

    /// Reads a stored column; in a sparse dimension, only the stored part at these chunk heights.
    pub fn stored(&self, column: ColumnPos, heights: &HeightSet) -> Result<Column, ColumnError> {
        if self.is_sparse {
            return Ok(self.gather(column, heights, false)?.loaded.column);
        }
        let heights = || self.chunk_heights.clone();
        let load = |store: &WorldStore| store.load_batch(self.dimension, column.batch(), &[column], heights());
        let loaded = self.read(column, load)?;
        Ok(loaded.into_iter().next().map_or_else(|| Column::new(column), |stored| stored.column))
    }

    fn read_or_generate(&self, column: ColumnPos) -> Result<FetchedColumn, ColumnError> {
        if let Some(departed) = self.departed.get(column) {
            return Ok(LoadedColumn::from(departed.column).into());
        }
        // Read before the chunks: a part that is generated and stored in between is found there, and stays.
        if let Some(history) = self.read(column, |store| store.history_of_stored(self.dimension, column))? {
            let stored = LoadedColumn::from(self.stored(column, &HeightSet::new())?);
            return self.extend(stored, self.missing(history.heights(column)));
        }
        let made = self.make(column, self.heights.clone())?;
        Ok(FetchedColumn { made: HeightSet::from(self.chunk_heights.clone()), ..LoadedColumn::from(made).into() })
    }

    /// Reads data of a column from the store.
    fn read<T>(
        &self,
        column: ColumnPos,
        read: impl Fn(&WorldStore) -> Result<T, StoreError>,
    ) -> Result<T, ColumnError> {
        let store = self.store.upgrade().ok_or(ColumnError::Closed(column))?;
        self.read_repaired(&store, column, read).map_err(|source| ColumnError::Store { column, source })
    }

    /// Generates a column at these block heights.
    pub fn make(&self, column: ColumnPos, heights: Range<i64>) -> Result<Column, ColumnError> {
        let request = GenerateRequest { column, heights, blocks: &self.blocks };
        generate(&*self.generator, &request).map_err(|source| ColumnError::Generate { column, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BlockId;
    use crate::generation::Flat;
    use crate::storage::{Durability, SaveBatch, StorageConfig, StoredBlockTick};

    const COLUMN: ColumnPos = ColumnPos::new(-5, 3);
    const BOUNDLESS: Range<i64> = i64::MIN..i64::MAX;

    fn ground(store: &Arc<WorldStore>) -> ColumnSource {
        let mut blocks = BlockRegistry::new();
        blocks.register_basic_blocks();
        let (blocks, store) = (Arc::new(blocks), Arc::downgrade(store));
        ColumnSource {
            is_sparse: true,
            ..ColumnSource::new(DimensionId(0), BOUNDLESS, Arc::new(Flat::new()), blocks, store)
        }
    }

    /// A part of the column filled with this block, with one scheduled tick named after it.
    fn part(heights: Range<i64>, block: u32) -> (LoadedColumn, u64) {
        let mut column = Column::partial(COLUMN, HeightSet::new());
        let chunk = Arc::new(Chunk::uniform(BlockId::new(block)));
        heights.clone().for_each(|y| drop(column.set_chunk(y, chunk.clone())));
        let tick =
            |y| StoredBlockTick { block: COLUMN.chunk(y).min_block(), kind: block.to_string().into(), remaining: 1 };
        let block_ticks = heights.map(tick).collect();
        (LoadedColumn { block_ticks, ..column.into() }, block.into())
    }

    fn keep_part(ground: &ColumnSource, (part, until): (LoadedColumn, u64)) {
        ground.departed.keep_part(part, until);
    }

    /// The blocks at these chunk heights and the names of their ticks.
    fn gathered(ground: &ColumnSource, heights: Range<i64>) -> Vec<(u32, String)> {
        let found = ground.gather(COLUMN, &HeightSet::from(heights.clone()), false).unwrap().loaded;
        assert_eq!(found.column.loaded(), Some(&HeightSet::from(heights.clone())));
        let mut ticks: Vec<_> = found.block_ticks;
        ticks.sort_unstable();
        assert!(ticks.iter().map(|tick| tick.block.chunk().y).eq(heights.clone()), "one each: {ticks:?}");
        let block = |y| found.column.block(COLUMN.chunk(y).min_block()).index();
        heights.map(block).zip(ticks.iter().map(|tick| tick.kind.to_string())).collect()
    }

    #[test]
    fn of_all_that_was_evicted_the_newest_counts() {
        let store = Arc::new(WorldStore::open(&StorageConfig::Memory).unwrap());
        store.make_sparse(DimensionId(0)).unwrap();
        let mut batch = SaveBatch::default();
        let (oldest, _) = part(0..8, 1);
        batch.chunks = oldest.column.chunks().map(|(y, it)| ((DimensionId(0), COLUMN.chunk(y)), it.clone())).collect();
        for tick in oldest.block_ticks {
            batch.block_ticks.insert((DimensionId(0), tick.block.chunk()), vec![tick]);
        }
        store.commit(&batch, Durability::Process).unwrap();
        let ground = ground(&store);
        let expect = |blocks: [u32; 8]| {
            assert_eq!(gathered(&ground, 0..8), blocks.map(|block| (block, block.to_string())));
        };
        expect([1; 8]);
        keep_part(&ground, part(0..4, 2));
        expect([2, 2, 2, 2, 1, 1, 1, 1]);
        keep_part(&ground, part(3..5, 3));
        expect([2, 2, 2, 3, 3, 1, 1, 1]);
        let (whole, until) = part(2..6, 4);
        ground.departed.keep(whole, until);
        expect([2, 2, 4, 4, 4, 4, 1, 1]);
        keep_part(&ground, part(5..7, 5));
        expect([2, 2, 4, 4, 4, 5, 5, 1]);
        // The departed blocks count as stored now; the store itself has other blocks in this test.
        ground.departed.forget_until(3);
        expect([1, 1, 4, 4, 4, 5, 5, 1]);
        ground.departed.forget_until(5);
        expect([1; 8]);
    }

    #[test]
    fn a_window_lies_within_the_dimension_in_whole_slabs() {
        let store = Arc::new(WorldStore::open(&StorageConfig::Memory).unwrap());
        let boundless = ground(&store);
        let window = |ground: &ColumnSource, height, radius| ground.window(height, radius).ranges().next().unwrap();
        assert_eq!(window(&boundless, 0, 0), 0..16);
        assert_eq!(window(&boundless, -1, 0), -16..0);
        assert_eq!(window(&boundless, 14, 3), 0..32);
        let Range { start, end } = boundless.chunk_heights.clone();
        assert_eq!(window(&boundless, i64::MAX, 1), end - 16..end);
        assert_eq!(window(&boundless, i64::MIN, 5), start..start + 16);
        let low = ColumnSource { chunk_heights: -3..23, ..ground(&store) };
        assert_eq!([window(&low, 1_000, 2), window(&low, 1, 2)], [16..23, -3..16]);
        assert_eq!(window(&ColumnSource { is_sparse: false, ..low }, 1_000, 2), -3..23, "all of it is one slab");
    }

    #[test]
    fn missing_chunks_are_generated_or_left_out() {
        let store = Arc::new(WorldStore::open(&StorageConfig::Memory).unwrap());
        let ground = ground(&store);
        keep_part(&ground, part(-2..0, 1));
        let wanted = [-4, -2, 1].into_iter().collect();
        let found = ground.gather(COLUMN, &wanted, true).unwrap();
        assert!(found.made.iter().eq([-4, 1]) && found.left_out.is_empty());
        assert_eq!(found.loaded.column.loaded(), Some(&wanted));
        let left = ground.gather(COLUMN, &wanted, false).unwrap();
        assert!(left.made.is_empty() && left.left_out.iter().eq([-4, 1]));
        assert!(left.loaded.column.loaded().unwrap().iter().eq([-2]));
    }
}
