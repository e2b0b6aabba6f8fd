//! Loading from the world.

use super::tiers::{ChunkValues, Entries, GroupReader, READ_AHEAD};
use super::{
    ChunkGroup, EntityRecord, Family, KeyValue, Read, StoreError, StoredBlockTick, StoredItem, Tier, WorldStore, keys,
    values::block_ticks,
};
use crate::block::BlockId;
use crate::chunk::{Chunk, Column};
use crate::space::{BATCH_SIZE, BatchPos, ChunkPos, ColumnPos, DimensionId, HeightSet};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use terrane_world::light::ColumnLight;
use uuid::Uuid;

/// Up to this number, groups are read one by one. In a taller range, stored groups are searched for first.
const DIRECT_GROUPS: u64 = 64;
/// The number of entries of a long range that are read at a time.
const PAGE: usize = 1024;

/// A column or a part of one, as stored or on its way between the store and a region.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedColumn {
    /// Its chunks, without those of air.
    pub column: Column,
    /// Its stored entities. Loaded entities are in the order of their UUIDs.
    pub entities: Vec<EntityRecord>,
    /// Its scheduled block ticks. Loaded ticks are in the order of blocks, and then of kinds.
    pub block_ticks: Vec<StoredBlockTick>,
    /// The light of its chunks without its neighbors. The store has none: light is computed.
    pub light: Option<ColumnLight>,
    /// `true` if a region is to be told that the column is new. A load leaves it `false`: the [history](crate::TileHistory) of
    /// the column's tile says which columns are new.
    pub is_new: bool,
}

/// The parts of columns that a load includes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Contents {
    Chunks,
    ChunksAndTicks,
    All,
}

struct BatchLoad {
    dimension: DimensionId,
    batch: BatchPos,
    chunk_heights: Range<i64>,
    loaded: Vec<LoadedColumn>,
    /// The index in `loaded` of each column of the batch.
    indices: [Option<usize>; BATCH_SIZE * BATCH_SIZE],
    /// The groups of chunks with stored data.
    found: Vec<ChunkGroup>,
    /// The warm and cold groups among them.
    packed: Vec<ChunkGroup>,
}

impl WorldStore {
    /// Loads columns of one batch with their entities and block ticks, in the order of `columns`. Columns of other
    /// batches and repetitions are skipped. A column without stored data is a column of air: only
    /// [`stored_tiles`](Self::stored_tiles) lists the columns that were ever stored.
    ///
    /// The entities include viewers, which [`viewers`](Self::viewers) lists too. Damage is an error that names the
    /// damaged value. Damaged data is never replaced here.
    pub fn load_batch(
        &self,
        dimension: DimensionId,
        batch: BatchPos,
        columns: &[ColumnPos],
        chunk_heights: Range<i64>,
    ) -> Result<Vec<LoadedColumn>, StoreError> {
        let mut load = BatchLoad::new(dimension, batch, columns, chunk_heights);
        if load.loaded.is_empty() {
            return Ok(load.loaded);
        }
        self.settle_moves()?;
        self.load(&mut load, Contents::All)?;
        self.note_loaded(&load);
        Ok(load.loaded)
    }

    /// Loads the chunks of columns of one batch for the store's own use. Unlike a load by the game, it leaves cold
    /// groups cold.
    pub(super) fn peek_batch(
        &self,
        dimension: DimensionId,
        batch: BatchPos,
        columns: &[ColumnPos],
        chunk_heights: Range<i64>,
    ) -> Result<Vec<LoadedColumn>, StoreError> {
        let mut load = BatchLoad::new(dimension, batch, columns, chunk_heights);
        self.load(&mut load, Contents::Chunks)?;
        Ok(load.loaded)
    }

    fn note_loaded(&self, load: &BatchLoad) {
        self.note_accesses(load.found.iter().copied());
        self.note_packed(&load.packed);
    }

    /// Loads the generated part of a [sparse](Self::make_sparse) dimension's column at these chunk heights, without entities.
    pub fn load_part(
        &self,
        dimension: DimensionId,
        column: ColumnPos,
        heights: &HeightSet,
    ) -> Result<LoadedColumn, StoreError> {
        self.settle_moves()?;
        let mut part = LoadedColumn::from(Column::partial(column, HeightSet::new()));
        for range in heights.ranges() {
            let mut load = BatchLoad::new(dimension, column.batch(), &[column], range);
            load.loaded = vec![part];
            self.load(&mut load, Contents::ChunksAndTicks)?;
            self.note_loaded(&load);
            part = load.loaded.remove(0);
        }
        Ok(part)
    }

    /// The entities of a dimension that are viewers or have a child that is one, by ascending UUID.
    pub fn viewers(&self, dimension: DimensionId) -> Result<Vec<EntityRecord>, StoreError> {
        let id = |key: &[u8]| Ok(Some(self.parsed(Family::Meta, key, keys::parse_viewer_key)?.1));
        let ids = self.list_meta(keys::dimension_range(keys::VIEWER, dimension), |key, _| id(key))?;
        let mut viewers = Vec::new();
        for id in ids {
            match self.entity_records(&[id]) {
                Ok(records) => viewers.extend(records.into_iter().flatten()),
                // The viewer's column is refused, and nothing else.
                Err(error @ StoreError::Corrupt { .. }) => tracing::warn!("a stored viewer is ignored: {error}"),
                Err(error) => return Err(error),
            }
        }
        viewers.retain(|record| record.dimension == dimension && record.viewers().next().is_some());
        Ok(viewers)
    }

    /// The record of one entity, from any place; `None` if it is not stored.
    pub fn entity(&self, id: Uuid) -> Result<Option<EntityRecord>, StoreError> {
        let value = self.store.get(Family::Entities, &keys::entity_key(id))?;
        value.map(|value| self.entity_record(id, &value)).transpose()
    }

    /// The places of these entities. The place of an entity on its way to another server is the one where it goes. Entities
    /// that are not stored are left out.
    #[doc(hidden)]
    pub fn entity_places(&self, ids: &[Uuid]) -> Result<BTreeMap<Uuid, (DimensionId, ColumnPos)>, StoreError> {
        let records = self.entity_records(ids)?.into_iter().flatten();
        let mut places: BTreeMap<_, _> =
            records.map(|record| (record.id, (record.dimension, record.column()))).collect();
        let missing: BTreeSet<Uuid> = ids.iter().filter(|id| !places.contains_key(id)).copied().collect();
        if !missing.is_empty() {
            places.extend(self.places_underway(&missing)?);
        }
        Ok(places)
    }

    /// Loads with two reads of the store: hot chunks, block ticks and place keys, then clusters and entities. In a tall
    /// range of heights, stored groups are searched for first and read one by one.
    fn load(&self, load: &mut BatchLoad, contents: Contents) -> Result<(), StoreError> {
        // A lookup without the lock could miss a group that moves between tiers meanwhile.
        let _resting = self.groups_at_rest();
        let groups = load.direct_groups();
        let has_ticks = contents != Contents::Chunks && !load.chunk_heights.is_empty();
        let ticks = if has_ticks { load.rows(keys::block_ticks_range) } else { Vec::new() };
        let places = if contents == Contents::All { load.rows(keys::place_range) } else { Vec::new() };
        let chunks = groups.iter().map(|group| Read::Range(Family::Chunks, group.range(), usize::MAX));
        let rows = ticks.iter().chain(&places).map(|range| Read::Range(Family::Meta, range.clone(), PAGE));
        let mut found = self.read_apart(&chunks.chain(rows).collect::<Vec<_>>())?.into_iter();
        let hot: Vec<(ChunkGroup, Entries)> = groups.into_iter().zip(found.by_ref()).collect();
        let ticks: Vec<(Range<Vec<u8>>, Entries)> = ticks.into_iter().zip(found.by_ref()).collect();
        let places = self.places(load, places.into_iter().zip(found))?;

        let packed = hot.iter().filter(|(_, hot)| hot.as_ref().map_or(true, Vec::is_empty)).map(|(group, _)| *group);
        let [warm, cold] = GroupReader::reads_ahead(packed.take(READ_AHEAD));
        let entities = Read::Keys(Family::Entities, places.iter().map(|(id, _)| id.as_bytes().to_vec()).collect());
        let mut found = self.read_apart(&[warm, cold, entities])?.into_iter();
        let mut next = || found.next().unwrap_or(Ok(Vec::new()));
        let (mut groups, mut others) = (GroupReader::ahead(self, next(), next()), GroupReader::new(self));
        let mut left = READ_AHEAD;
        for (group, hot) in hot {
            let is_hot = hot.as_ref().is_ok_and(|hot| !hot.is_empty());
            let groups = if is_hot || left > 0 { &mut groups } else { &mut others };
            left -= usize::from(!is_hot && left > 0);
            let values = groups.values_beside(group, hot, |chunk| load.index(chunk).is_some())?;
            self.put_group(load, group, values)?;
        }
        if load.is_tall() {
            let mut groups = GroupReader::new(self);
            let (column, heights) = (load.batch.column(0), load.chunk_heights.clone());
            self.visit_cubes(load.dimension, column, heights, 2, |bottom| {
                let group = ChunkGroup::of(load.dimension, column.chunk(bottom));
                let values = groups.values(group, |chunk| load.index(chunk).is_some())?;
                self.put_group(load, group, values)
            })?;
        }
        for (range, page) in ticks {
            self.put_block_ticks(load, range, page?)?;
        }
        load.loaded.iter_mut().for_each(|stored| stored.block_ticks.sort_unstable());
        self.put_entities(load, places, next())
    }

    /// Calls `visit` with the lowest chunk height of each aligned cube of 2^`smallest` chunks a side that contains a
    /// part of the column in `heights` and may hold stored chunks. The search halves the dimension's cube repeatedly,
    /// and skips parts that are empty in all tiers.
    pub(super) fn visit_cubes(
        &self,
        dimension: DimensionId,
        column: ColumnPos,
        heights: Range<i64>,
        smallest: u32,
        mut visit: impl FnMut(i64) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut cubes = vec![(i64::MIN, i64::BITS, Tier::ALL.to_vec())];
        while let Some((bottom, shift, mut tiers)) = cubes.pop() {
            let top = bottom.wrapping_add(keys::span(shift) as i64);
            if top < heights.start || bottom >= heights.end {
                continue;
            }
            if shift == smallest {
                visit(bottom)?;
                continue;
            }
            let range = keys::chunk_cube_range(dimension, column.chunk(bottom), shift);
            let is_empty = |tier: &Tier| {
                // Keys tell nothing about parts of a cold cube.
                if *tier == Tier::Cold && shift < 4 {
                    return Ok(false);
                }
                match self.store.scan(tier.family(), &range.start..&range.end, 1) {
                    // Damage counts as data. It is reported when it is read.
                    Err(StoreError::Damaged { .. }) => Ok(false),
                    found => found.map(|found| found.is_empty()),
                }
            };
            let mut empty = tiers.iter().map(is_empty).collect::<Result<Vec<_>, _>>()?.into_iter();
            tiers.retain(|_| empty.next() == Some(false));
            if !tiers.is_empty() {
                let half = 1_i64 << (shift - 1);
                // For the whole dimension, `half` is the sign bit, and adding it must wrap to zero.
                cubes.extend([(bottom.wrapping_add(half), shift - 1, tiers.clone()), (bottom, shift - 1, tiers)]);
            }
        }
        Ok(())
    }

    /// Puts the stored chunks of a group into their columns.
    fn put_group(
        &self,
        load: &mut BatchLoad,
        group: ChunkGroup,
        (tier, values): (Option<Tier>, ChunkValues),
    ) -> Result<(), StoreError> {
        load.found.extend(tier.map(|_| group));
        load.packed.extend(tier.filter(|tier| *tier != Tier::Hot).map(|_| group));
        if values.is_empty() {
            return Ok(());
        }
        let blocks = self.known_blocks()?;
        for (pos, value) in values {
            let chunk = self.decode_chunk(&blocks, (load.dimension, pos), &value)?;
            if let Some(index) = load.index(pos) {
                load.loaded[index].put_chunk(pos, chunk);
            }
        }
        Ok(())
    }

    /// Puts the block ticks of a row into their columns. `page` is the beginning of its range.
    fn put_block_ticks(
        &self,
        load: &mut BatchLoad,
        range: Range<Vec<u8>>,
        page: Vec<KeyValue>,
    ) -> Result<(), StoreError> {
        self.visit_meta(range, page, |key, value| {
            let (dimension, pos) = self.parsed(Family::Meta, key, keys::parse_block_ticks_key)?;
            if !load.chunk_heights.contains(&pos.y) {
                return Ok(());
            }
            let Some(stored) = load.column(pos.column()) else { return Ok(()) };
            stored.block_ticks.extend(self.block_ticks(dimension, pos, value)?);
            Ok(())
        })
    }

    pub(super) fn block_ticks(
        &self,
        dimension: DimensionId,
        pos: ChunkPos,
        value: &[u8],
    ) -> Result<Vec<StoredBlockTick>, StoreError> {
        self.open_as(value, StoredItem::BlockTicks(dimension, pos), |payload| block_ticks::decode(pos, payload))
    }

    /// The entities that may be in the wanted columns, by the pages of place keys that begin these ranges.
    fn places(
        &self,
        load: &mut BatchLoad,
        rows: impl Iterator<Item = (Range<Vec<u8>>, Entries)>,
    ) -> Result<Vec<(Uuid, ColumnPos)>, StoreError> {
        let mut places = Vec::new();
        for (range, page) in rows {
            self.visit_meta(range, page?, |key, _| {
                let (_, column, id) = self.parsed(Family::Meta, key, keys::parse_place_key)?;
                places.extend(load.column(column).map(|_| (id, column)));
                Ok(())
            })?;
        }
        Ok(places)
    }

    /// Puts entities into the columns of their places if their records agree.
    fn put_entities(
        &self,
        load: &mut BatchLoad,
        places: Vec<(Uuid, ColumnPos)>,
        found: Entries,
    ) -> Result<(), StoreError> {
        let ids = places.iter().map(|(id, _)| *id).collect::<Vec<_>>();
        let records = match found {
            Ok(found) => {
                let record = |(key, value): KeyValue| {
                    let id = self.parsed(Family::Entities, &key, keys::parse_entity_key)?;
                    self.entity_record(id, &value).map(Some)
                };
                found.into_iter().map(record).collect()
            }
            // The error names the damaged one.
            Err(_) => self.entity_records(&ids),
        };
        let records: BTreeMap<Uuid, EntityRecord> =
            records?.into_iter().flatten().map(|record| (record.id, record)).collect();
        for (id, place) in places {
            let here = records.get(&id).filter(|entity| entity.dimension == load.dimension && entity.column() == place);
            if let (Some(entity), Some(stored)) = (here, load.column(place)) {
                stored.entities.push(entity.clone());
            }
        }
        Ok(())
    }

    /// The records of these entities; `None` for those that are not stored.
    pub(super) fn entity_records(&self, ids: &[Uuid]) -> Result<Vec<Option<EntityRecord>>, StoreError> {
        let keys = ids.iter().map(|id| &id.as_bytes()[..]).collect::<Vec<_>>();
        let values = self.read_named(Family::Entities, &keys, |index| StoredItem::Entity(ids[index]))?;
        let records =
            ids.iter().zip(values).map(|(id, value)| value.map(|value| self.entity_record(*id, &value)).transpose());
        records.collect()
    }

    pub(super) fn entity_record(&self, id: Uuid, value: &[u8]) -> Result<EntityRecord, StoreError> {
        let damaged = |reason: String| self.corrupt(StoredItem::Entity(id), reason);
        let entity = EntityRecord::from_bytes(value).map_err(damaged)?;
        if entity.id != id {
            return Err(damaged(format!("it is the record of {}", entity.id)));
        }
        Ok(entity)
    }

    /// The results of `read` for the entries of a range of `meta`.
    pub(super) fn list_meta<T>(
        &self,
        range: Range<Vec<u8>>,
        mut read: impl FnMut(&[u8], &[u8]) -> Result<Option<T>, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        self.scan_meta(range, |key, value| {
            found.extend(read(key, value)?);
            Ok(())
        })?;
        Ok(found)
    }

    /// Visits every entry of a range of `meta` page by page, to limit the memory for long ranges.
    pub(super) fn scan_meta(
        &self,
        range: Range<Vec<u8>>,
        visit: impl FnMut(&[u8], &[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let page = self.store.scan(Family::Meta, &range.start..&range.end, PAGE)?;
        self.visit_meta(range, page, visit)
    }

    /// Visits every entry of a range of `meta` whose first page was read already.
    fn visit_meta(
        &self,
        mut range: Range<Vec<u8>>,
        mut page: Vec<KeyValue>,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        loop {
            page.iter().try_for_each(|(key, value)| visit(key, value))?;
            match page.last() {
                Some((key, _)) if page.len() == PAGE => range.start = keys::after(key),
                _ => return Ok(()),
            }
            page = self.store.scan(Family::Meta, &range.start..&range.end, PAGE)?;
        }
    }

    pub(super) fn parsed<'k, T>(
        &self,
        family: Family,
        key: &'k [u8],
        parse: impl FnOnce(&'k [u8]) -> Option<T>,
    ) -> Result<T, StoreError> {
        parse(key).ok_or_else(|| self.unknown_key(family, key))
    }

    pub(super) fn unknown_key(&self, family: Family, key: &[u8]) -> StoreError {
        self.corrupt(StoredItem::Key(family, key.to_vec()), "it does not have the form of its neighbours")
    }
}

impl From<Column> for LoadedColumn {
    /// A column without entities and scheduled ticks.
    fn from(column: Column) -> Self {
        Self { column, entities: Vec::new(), block_ticks: Vec::new(), light: None, is_new: false }
    }
}

impl LoadedColumn {
    /// Drops everything at these chunk heights, except entities.
    #[doc(hidden)]
    pub fn drop_heights(&mut self, heights: &HeightSet) {
        self.column.cut(heights);
        self.light = None;
        self.block_ticks.retain(|tick| !heights.contains(tick.block.chunk().y));
    }

    /// Puts a chunk into the column. A chunk of air is marked as loaded and takes no memory.
    fn put_chunk(&mut self, pos: ChunkPos, chunk: Chunk) {
        let is_air = chunk.uniform_block() == Some(BlockId::AIR);
        self.column.set_chunk(pos.y, Arc::new(chunk));
        if is_air {
            self.column.remove_chunk(pos.y);
        }
    }
}

impl BatchLoad {
    fn new(dimension: DimensionId, batch: BatchPos, columns: &[ColumnPos], chunk_heights: Range<i64>) -> Self {
        let indices = [None; BATCH_SIZE * BATCH_SIZE];
        let (loaded, found, packed) = Default::default();
        let mut load = Self { dimension, batch, chunk_heights, loaded, indices, found, packed };
        for &pos in columns.iter().filter(|pos| pos.batch() == batch) {
            let next = load.loaded.len();
            if *load.indices[pos.in_batch() as usize].get_or_insert(next) == next {
                load.loaded.push(Column::new(pos).into());
            }
        }
        load
    }

    /// The groups of the range of heights if they are few enough to be read without a search.
    fn direct_groups(&self) -> Vec<ChunkGroup> {
        if self.chunk_heights.is_empty() || self.is_tall() {
            return Vec::new();
        }
        let heights = self.chunk_heights.start >> 2..=(self.chunk_heights.end - 1) >> 2;
        heights.map(|height| ChunkGroup::of(self.dimension, self.batch.column(0).chunk(height << 2))).collect()
    }

    fn is_tall(&self) -> bool {
        let Range { start, end } = self.chunk_heights;
        start < end && (start >> 2).abs_diff((end - 1) >> 2) >= DIRECT_GROUPS
    }

    /// The range of keys of the requested columns of each x.
    fn rows(&self, range_of: fn(DimensionId, i64, i64, i64) -> Range<Vec<u8>>) -> Vec<Range<Vec<u8>>> {
        let mut wanted: Vec<ColumnPos> = self.loaded.iter().map(|stored| stored.column.pos()).collect();
        wanted.sort_unstable();
        let rows = wanted.chunk_by(|a, b| a.x == b.x);
        rows.map(|row| range_of(self.dimension, row[0].x, row[0].z, row[row.len() - 1].z)).collect()
    }

    /// The index of the chunk's column, if the chunk is requested.
    fn index(&self, chunk: ChunkPos) -> Option<usize> {
        self.column_index(chunk.column()).filter(|_| self.chunk_heights.contains(&chunk.y))
    }

    fn column_index(&self, pos: ColumnPos) -> Option<usize> {
        self.indices[pos.in_batch() as usize].filter(|_| pos.batch() == self.batch)
    }

    /// The column at `pos`, if it is requested.
    fn column(&mut self, pos: ColumnPos) -> Option<&mut LoadedColumn> {
        self.column_index(pos).map(|index| &mut self.loaded[index])
    }
}
