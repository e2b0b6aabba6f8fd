//! What a batch of columns is in an export.

use super::format::{Header, LARGEST_BATCH, MAX_LISTED, Packed, Ticks};
use super::name::{self, Name};
use crate::space::{BatchPos, BlockBox, ChunkPos, ColumnPos, DimensionId, TILE_BATCHES, bits};
use crate::storage::tiers::PackedGroups;
use crate::storage::values::record;
use crate::storage::{
    ChunkGroup, EntityRecord, Family, KeyValue, StoreError, StoredItem, StoredTile, WorldStore, keys,
};
use crate::work::{Progress, Tell};
use std::collections::BTreeMap;

/// Objects that are larger together stay apart.
const LARGEST_PACK: usize = 64 << 20;

/// The objects of a batch, and what is in them.
#[derive(Default)]
pub(super) struct BatchObjects {
    pub objects: Vec<Packed>,
    pub bytes: usize,
    pub chunks: u64,
    pub entities: u64,
    /// The length of the longest list in them.
    pub longest: usize,
    /// Damage of summaries that are left out.
    pub lost_summaries: Vec<String>,
}

impl BatchObjects {
    /// Whether a world that takes the export in reads them.
    pub fn fits(&self) -> bool {
        self.bytes <= LARGEST_BATCH && self.longest <= MAX_LISTED
    }
}

/// A walk over what is exported.
pub(super) struct Walk<'a> {
    pub world: &'a WorldStore,
    pub header: &'a Header,
    pub leaves_damaged: bool,
    /// All of them.
    pub columns: u64,
    pub done: Progress,
    pub tell: Tell<'a>,
    /// One for each cold cube over the columns that are read, so that it is read once for all of its groups. It must not
    /// outlive the lock that keeps groups from moving.
    pub cubes: BTreeMap<[u8; keys::CHUNK_KEY_LENGTH], PackedGroups<'a>>,
}

/// More cubes are not held in memory.
const MAX_CUBES: usize = 8;

/// A chunk as it is stored: how often it changed, and its bytes.
type Stored = (u64, Vec<u8>);

impl Walk<'_> {
    /// The objects of some columns of a batch. `groups` are all that hold chunks of the batch.
    pub fn objects(&mut self, columns: &[ColumnPos], groups: &[ChunkGroup]) -> Result<BatchObjects, StoreError> {
        let mut found = BatchObjects::default();
        let Some(batch) = columns.first().map(|column| column.batch()) else { return Ok(found) };
        let mut heights: BTreeMap<ColumnPos, Vec<i64>> = columns.iter().map(|column| (*column, Vec::new())).collect();
        for group in groups {
            let mut of_group = Vec::new();
            for (chunk, (version, data)) in self.chunks(*group, columns)? {
                heights.entry(chunk.column()).or_default().push(chunk.y);
                of_group.push((Name::Chunk(chunk, name::BLOCKS).to_string(), version, data));
            }
            found.chunks += of_group.len() as u64;
            put(of_group, self.header.is_clustered, &mut found.objects);
        }
        let mut of_batch = Vec::new();
        let ticks = self.ticks(batch, columns)?;
        for (column, mut heights) in heights {
            heights.sort_unstable();
            found.longest = found.longest.max(heights.len());
            of_batch.push((Name::Column(column, name::CHUNKS).to_string(), 0, record::encode(&heights)));
            if let Some(ticks) = ticks.get(&column) {
                found.longest = found.longest.max(ticks.len());
                of_batch.push((Name::Column(column, name::TICKS).to_string(), 0, record::encode(ticks)));
            }
            match self.summary(column) {
                // It is made of the ground again wherever that comes to.
                Err(error) if self.leaves_damaged && error.is_damage() => found.lost_summaries.push(error.to_string()),
                summary => {
                    if let Some((version, summary)) = summary? {
                        of_batch.push((Name::Column(column, name::SUMMARY).to_string(), version, summary));
                    }
                }
            }
            let entities = self.entities(column)?;
            if !entities.is_empty() {
                found.entities += entities.len() as u64;
                found.longest = found.longest.max(entities.len());
                of_batch.push((Name::Column(column, name::ENTITIES).to_string(), 0, record::encode(&entities)));
            }
        }
        put(of_batch, self.header.is_clustered, &mut found.objects);
        found.bytes = found.objects.iter().map(|(key, _, data)| key.len() + data.len()).sum();
        Ok(found)
    }

    /// The chunks of a group that lie in these columns and in the box.
    fn chunks(&mut self, group: ChunkGroup, columns: &[ColumnPos]) -> Result<BTreeMap<ChunkPos, Stored>, StoreError> {
        let world = self.world;
        let values = match world.hot_values(group) {
            // What is damaged may be what is left of keys that are no more.
            Err(StoreError::Damaged { .. }) => match self.packed_values(group)? {
                Some(packed) => packed,
                None => world.values_one_by_one(group, |chunk| columns.contains(&chunk.column()))?,
            },
            hot => match hot? {
                hot if hot.is_empty() => self.packed_values(group)?.unwrap_or_default(),
                hot => hot,
            },
        };
        let is_wanted = |chunk: &ChunkPos| columns.contains(&chunk.column()) && self.reaches(chunk.y);
        let opened = values.into_iter().filter(|(chunk, _)| is_wanted(chunk)).map(|(chunk, value)| {
            let opened = world.open_envelope(&value, || StoredItem::Chunk(group.dimension(), chunk))?;
            Ok((chunk, (opened.version, opened.payload.to_vec())))
        });
        opened.collect()
    }

    /// The values of a group that is warm or cold.
    fn packed_values(&mut self, group: ChunkGroup) -> Result<Option<Vec<(ChunkPos, Vec<u8>)>>, StoreError> {
        let key = group.cube_key();
        if !self.cubes.contains_key(&key) && self.cubes.len() >= MAX_CUBES {
            self.cubes.clear();
        }
        let groups = self.cubes.entry(key).or_insert_with(|| PackedGroups::new(self.world));
        let Some(packed) = groups.find(group)? else { return Ok(None) };
        let item = StoredItem::Chunk(group.dimension(), group.first());
        let unpacked = packed.part.unpack().map_err(|error| self.world.corrupt(item, error))?;
        Ok(Some(unpacked.values().map(|(place, value)| (group.chunk(place), value.to_vec())).collect()))
    }

    pub fn reaches(&self, height: i64) -> bool {
        self.header.area.chunk_heights().is_some_and(|heights| heights.contains(&height))
    }

    /// The scheduled block ticks of some columns of a batch.
    fn ticks(&self, batch: BatchPos, columns: &[ColumnPos]) -> Result<BTreeMap<ColumnPos, Ticks>, StoreError> {
        let (dimension, mut found) = (self.header.number, BTreeMap::<ColumnPos, Ticks>::new());
        let (first, last) = (batch.column(0), batch.column(15));
        for x in first.x..=last.x {
            let range = keys::block_ticks_range(dimension, x, first.z, last.z);
            self.world.scan_all(Family::Meta, range, |key, value| {
                let (_, chunk) = self.world.parsed(Family::Meta, key, keys::parse_block_ticks_key)?;
                if columns.contains(&chunk.column()) && self.reaches(chunk.y) {
                    let opened = self.world.open_envelope(value, || StoredItem::BlockTicks(dimension, chunk))?;
                    found.entry(chunk.column()).or_default().push((chunk.y, opened.payload.to_vec()));
                }
                Ok(())
            })?;
        }
        Ok(found)
    }

    fn summary(&self, column: ColumnPos) -> Result<Option<Stored>, StoreError> {
        let dimension = self.header.number;
        let Some(value) = self.world.store.get(Family::Meta, &keys::summary_key(dimension, column))? else {
            return Ok(None);
        };
        let opened = self.world.open_envelope(&value, || StoredItem::Summary(dimension, column))?;
        Ok(Some((opened.version, opened.payload.to_vec())))
    }

    /// The records of the entities that are in the column and in the box.
    fn entities(&self, column: ColumnPos) -> Result<Vec<Vec<u8>>, StoreError> {
        let (world, dimension, mut ids) = (self.world, self.header.number, Vec::new());
        world.scan_all(Family::Meta, keys::place_range(dimension, column.x, column.z, column.z), |key, _| {
            ids.push(world.parsed(Family::Meta, key, keys::parse_place_key)?.2);
            Ok(())
        })?;
        let records = world.entity_records(&ids)?.into_iter().flatten();
        let is_here = |record: &EntityRecord| {
            record.dimension == dimension && record.column() == column && self.header.area.contains(record.block)
        };
        Ok(records.filter(is_here).map(|record| record.to_bytes()).collect())
    }
}

/// Adds objects that may be in one pack, as that if they are to be packed.
pub(super) fn put(objects: Vec<Packed>, is_packed: bool, into: &mut Vec<Packed>) {
    let bytes: usize = objects.iter().map(|(_, _, data)| data.len()).sum();
    let pack =
        objects.first().filter(|_| is_packed && bytes <= LARGEST_PACK).and_then(|(key, ..)| Name::parse(key).pack());
    let Some(pack) = pack else { return into.extend(objects) };
    let newest = objects.iter().map(|(_, version, _)| *version).max().unwrap_or_default();
    into.push((pack.to_string(), newest, record::encode(&objects)));
}

/// The batches of columns that are there, in the order of an export: square by square of 32 x 32 columns, by ascending x and
/// then z; in each its four squares of 16 x 16, and in those the batches, by ascending z and then x.
pub(super) fn batches(tiles: &[StoredTile]) -> Vec<(BatchPos, u16)> {
    let mut order: Vec<usize> = (0..TILE_BATCHES).collect();
    order.sort_unstable_by_key(|place| (place >> 5, place >> 2 & 1, place >> 3 & 3, place & 3));
    let of_tile = |(tile, masks): &StoredTile| {
        let batches = order.iter().filter_map(|place| Some((tile.batch(*place)?, masks[*place])));
        batches.filter(|(_, mask)| *mask != 0).collect::<Vec<_>>()
    };
    tiles.iter().flat_map(of_tile).collect()
}

/// The columns of a mask.
pub(super) fn columns_of(batch: BatchPos, mask: u16) -> Vec<ColumnPos> {
    bits(mask.into()).map(|bit| batch.column(bit)).collect()
}

impl WorldStore {
    /// The pieces of the graph of stored columns that lie in a box.
    pub(super) fn tiles_in(&self, dimension: DimensionId, area: &BlockBox) -> Result<Vec<StoredTile>, StoreError> {
        let area = area.column_area();
        let mut found = Vec::new();
        for (tile, mut masks) in self.stored_tiles(dimension)? {
            for (place, mask) in masks.iter_mut().enumerate() {
                *mask &= tile.batch(place).map_or(0, |batch| area.mask(batch));
            }
            if masks.iter().any(|mask| *mask != 0) {
                found.push((tile, masks));
            }
        }
        Ok(found)
    }

    /// The values of a group that is hot; none if it is not.
    fn hot_values(&self, group: ChunkGroup) -> Result<Vec<(ChunkPos, Vec<u8>)>, StoreError> {
        let range = group.range();
        let values = self.store.scan(Family::Chunks, &range.start..&range.end, usize::MAX)?;
        let chunk = |(key, value): KeyValue| Ok((self.parsed(Family::Chunks, &key, keys::parse_chunk_key)?.1, value));
        values.into_iter().map(chunk).collect()
    }

    /// The same for a group of which something cannot be read: that is named if it is wanted.
    fn values_one_by_one(
        &self,
        group: ChunkGroup,
        is_wanted: impl Fn(&ChunkPos) -> bool,
    ) -> Result<Vec<(ChunkPos, Vec<u8>)>, StoreError> {
        let chunks: Vec<ChunkPos> = group.chunks(u64::MAX).filter(is_wanted).collect();
        let keys: Vec<_> = chunks.iter().map(|chunk| keys::chunk_key(group.dimension(), *chunk)).collect();
        let by_bytes: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let item = |index: usize| StoredItem::Chunk(group.dimension(), chunks[index]);
        let values = self.read_named(Family::Chunks, &by_bytes, item)?;
        Ok(chunks.into_iter().zip(values).filter_map(|(chunk, value)| Some((chunk, value?))).collect())
    }
}
