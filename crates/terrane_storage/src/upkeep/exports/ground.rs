//! The objects of a batch of columns.

use super::format::{Header, LARGEST_BATCH, MAX_LISTED, Packed, Ticks};
use super::name::{self, Name};
use crate::bytes::record;
use crate::space::{BatchPos, BlockBox, ChunkPos, ColumnPos, DimensionId, TILE_BATCHES, bits};
use crate::tiers::GroupReader;
use crate::work::{Progress, Tell};
use crate::{ChunkGroup, EntityRecord, Family, StoreError, StoredItem, StoredTile, WorldStore, keys};
use std::collections::BTreeMap;

/// Objects with a larger total size are not packed.
const LARGEST_PACK: usize = 64 << 20;

/// The objects of a batch, and totals of their contents.
#[derive(Default)]
pub(super) struct BatchObjects {
    pub objects: Vec<Packed>,
    pub bytes: usize,
    pub chunks: u64,
    pub entities: u64,
    /// The length of their longest list.
    pub longest: usize,
    /// The damage of summaries that were left out.
    pub lost_summaries: Vec<String>,
}

impl BatchObjects {
    /// Returns `true` if a world that imports the export accepts them.
    pub fn fits(&self) -> bool {
        self.bytes <= LARGEST_BATCH && self.longest <= MAX_LISTED
    }
}

/// A walk over the exported data.
pub(super) struct Walk<'a> {
    pub world: &'a WorldStore,
    pub header: &'a Header,
    pub leaves_damaged: bool,
    /// The total number of columns.
    pub columns: u64,
    pub done: Progress,
    pub tell: Tell<'a>,
    /// A reader for each cold cube over the current columns, so that the cube is read once for all of its groups.
    /// Readers must be dropped before the lock that keeps groups from moving.
    pub cubes: BTreeMap<[u8; keys::CHUNK_KEY_LENGTH], GroupReader<'a>>,
}

/// The maximum number of cubes in memory.
const MAX_CUBES: usize = 8;

/// A stored chunk: its version and its bytes.
type Stored = (u64, Vec<u8>);

impl Walk<'_> {
    /// The objects of some columns of a batch. `groups` are all groups with chunks of the batch.
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
                // An import rebuilds the summary from the blocks.
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

    /// The chunks of a group that are in these columns and in the box.
    fn chunks(&mut self, group: ChunkGroup, columns: &[ColumnPos]) -> Result<BTreeMap<ChunkPos, Stored>, StoreError> {
        let (world, heights, key) = (self.world, self.header.area.chunk_heights(), group.cube_key());
        if !self.cubes.contains_key(&key) && self.cubes.len() >= MAX_CUBES {
            self.cubes.clear();
        }
        let groups = self.cubes.entry(key).or_insert_with(|| GroupReader::new(world));
        let is_at_height = |y: i64| heights.as_ref().is_some_and(|heights| heights.contains(&y));
        let is_wanted = |chunk: ChunkPos| columns.contains(&chunk.column()) && is_at_height(chunk.y);
        let (_, values) = groups.values(group, is_wanted)?;
        let opened = values.into_iter().map(|(chunk, value)| {
            let (version, bytes) = world.open_envelope(&value, || StoredItem::Chunk(group.dimension(), chunk))?;
            Ok((chunk, (version, bytes.to_vec())))
        });
        opened.collect()
    }

    pub fn reaches(&self, height: i64) -> bool {
        self.header.area.chunk_heights().is_some_and(|heights| heights.contains(&height))
    }

    fn ticks(&self, batch: BatchPos, columns: &[ColumnPos]) -> Result<BTreeMap<ColumnPos, Ticks>, StoreError> {
        let (dimension, mut found) = (self.header.number, BTreeMap::<ColumnPos, Ticks>::new());
        let (first, last) = (batch.column(0), batch.column(15));
        for x in first.x..=last.x {
            let range = keys::block_ticks_range(dimension, x, first.z, last.z);
            self.world.scan_meta(range, |key, value| {
                let (_, chunk) = self.world.parsed(Family::Meta, key, keys::parse_block_ticks_key)?;
                if columns.contains(&chunk.column()) && self.reaches(chunk.y) {
                    let (_, list) = self.world.open_envelope(value, || StoredItem::BlockTicks(dimension, chunk))?;
                    found.entry(chunk.column()).or_default().push((chunk.y, list.to_vec()));
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
        let (version, bytes) = self.world.open_envelope(&value, || StoredItem::Summary(dimension, column))?;
        Ok(Some((version, bytes.to_vec())))
    }

    /// The records of the entities in the column and in the box.
    fn entities(&self, column: ColumnPos) -> Result<Vec<Vec<u8>>, StoreError> {
        let (world, dimension) = (self.world, self.header.number);
        let id = |key: &[u8]| Ok(Some(world.parsed(Family::Meta, key, keys::parse_place_key)?.2));
        let ids = world.list_meta(keys::place_range(dimension, column.x, column.z, column.z), |key, _| id(key))?;
        let records = world.entity_records(&ids)?.into_iter().flatten();
        let is_here = |record: &EntityRecord| {
            record.dimension == dimension && record.column() == column && self.header.area.contains(record.block)
        };
        Ok(records.filter(is_here).map(|record| record.to_bytes()).collect())
    }
}

/// Adds objects to `into`, as one pack if `is_packed` is `true` and they are not too large.
pub(super) fn put(objects: Vec<Packed>, is_packed: bool, into: &mut Vec<Packed>) {
    let bytes: usize = objects.iter().map(|(_, _, data)| data.len()).sum();
    let pack =
        objects.first().filter(|_| is_packed && bytes <= LARGEST_PACK).and_then(|(key, ..)| Name::parse(key).pack());
    let Some(pack) = pack else { return into.extend(objects) };
    let newest = objects.iter().map(|(_, version, _)| *version).max().unwrap_or_default();
    into.push((pack.to_string(), newest, record::encode(&objects)));
}

/// The batches with stored columns in the order of an export: tiles of 32 x 32 columns by ascending x and then z; in each tile,
/// its four squares of 16 x 16 columns; in each square, the batches by ascending z and then x.
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
    /// The tiles of the stored graph, cut to a box.
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
}
