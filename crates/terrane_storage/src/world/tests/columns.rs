//! Stored columns of chunks.

use super::*;
use crate::{Family, KeyValue, KeyValueStore, MemoryStore, Read, StoreError, WriteBatch};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn a_batch_comes_back_as_it_was_saved() {
    for batch_pos in [BatchPos::new(0, 0), BatchPos::new(-1, -1), BatchPos::new(i64::MIN >> 2, i64::MAX >> 2)] {
        let world = WorldStore::open(&StorageConfig::Memory).unwrap();
        let mut saved = SaveBatch::default();
        let mut expected: Vec<Column> = batch_pos.columns().map(Column::new).collect();
        for (index, column) in expected.iter_mut().enumerate() {
            for y in HEIGHTS.step_by(1 + index % 3) {
                let block = chunk(1 + index as u32 * 100 + (y + 4) as u32);
                saved.chunks.insert((OVERWORLD, column.pos().chunk(y)), Arc::clone(&block));
                // The same positions in another dimension, and chunks just outside the heights, must stay separate.
                saved.chunks.insert((NETHER, column.pos().chunk(y)), chunk(9000));
                column.set_chunk(y, block);
            }
            saved.chunks.insert((OVERWORLD, column.pos().chunk(HEIGHTS.start - 1)), chunk(9001));
            saved.chunks.insert((OVERWORLD, column.pos().chunk(HEIGHTS.end)), chunk(9002));
        }
        let report = world.commit(&saved, Durability::Sync).unwrap();
        assert_eq!(report.chunks, saved.chunks.len());
        assert!(report.bytes > 0 && report.replaced.is_empty());

        let wanted: Vec<ColumnPos> = batch_pos.columns().collect();
        let loaded = world.load_batch(OVERWORLD, batch_pos, &wanted, HEIGHTS).unwrap();
        assert!(loaded.iter().map(|stored| &stored.column).eq(&expected));
        assert!(loaded.iter().all(|stored| stored.entities.is_empty()));
    }
}

/// A store at the other end of a network, which counts its calls.
#[derive(Default)]
struct FarStore {
    memory: MemoryStore,
    calls: AtomicUsize,
}

impl FarStore {
    fn call(&self) -> &MemoryStore {
        self.calls.fetch_add(1, Ordering::SeqCst);
        &self.memory
    }
}

impl KeyValueStore for FarStore {
    fn path(&self) -> &Path {
        self.memory.path()
    }

    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.call().get(family, key)
    }

    fn multi_get(&self, family: Family, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.call().multi_get(family, keys)
    }

    fn scan(&self, family: Family, range: Range<&[u8]>, limit: usize) -> Result<Vec<KeyValue>, StoreError> {
        self.call().scan(family, range, limit)
    }

    fn read(&self, reads: &[Read]) -> Result<Vec<Vec<KeyValue>>, StoreError> {
        self.call().read(reads)
    }

    fn write(&self, batch: WriteBatch, durability: Durability) -> Result<(), StoreError> {
        self.call().write(batch, durability)
    }

    fn sync(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[test]
fn a_batch_is_loaded_with_two_calls() {
    let store = Arc::new(FarStore::default());
    let world = WorldStore::from_store(store.clone()).unwrap();
    let batch = BatchPos::new(-1, 0);
    let columns: Vec<ColumnPos> = batch.columns().collect();
    columns.iter().for_each(|column| _ = save_chunk(&world, column.chunk(0), chunk(5)));
    // The types of blocks are read once.
    world.known_blocks().unwrap();
    store.calls.store(0, Ordering::SeqCst);
    let loaded = world.load_batch(OVERWORLD, batch, &columns, HEIGHTS).unwrap();
    assert!(loaded.iter().all(|stored| stored.column.chunks().len() == 1));
    assert_eq!(store.calls.load(Ordering::SeqCst), 2);
}

/// New groups of chunks are read eight at a time, and hot ones all at once.
#[test]
fn a_commit_reads_its_groups_together() {
    let store = Arc::new(FarStore::default());
    let world = WorldStore::from_store(store.clone()).unwrap();
    let calls = [3, 4].map(|block| {
        let mut batch = SaveBatch::default();
        for group in 0..64 {
            batch.chunks.insert((OVERWORLD, ColumnPos::new(4 * group, 0).chunk(0)), chunk(block));
        }
        store.calls.store(0, Ordering::SeqCst);
        assert_eq!(world.commit(&batch, Durability::Sync).unwrap().chunks, 64);
        store.calls.load(Ordering::SeqCst)
    });
    assert!(calls[0] < 32 && calls[1] < 16, "{calls:?} calls for 64 groups");
}

#[test]
fn only_the_wanted_columns_come_in_their_order() {
    let world = WorldStore::open(&StorageConfig::Memory).unwrap();
    let columns: Vec<ColumnPos> = BatchPos::new(-1, 0).columns().collect();
    columns.iter().for_each(|column| _ = save_chunk(&world, column.chunk(0), chunk(5)));
    let wanted = [columns[7], columns[2], ColumnPos::new(0, 0), columns[7], columns[15]];
    let loaded = world.load_batch(OVERWORLD, BatchPos::new(-1, 0), &wanted, HEIGHTS).unwrap();
    let places: Vec<ColumnPos> = loaded.iter().map(|stored| stored.column.pos()).collect();
    assert_eq!(places, [columns[7], columns[2], columns[15]]);
    assert!(loaded.iter().all(|stored| stored.column.chunks().len() == 1));
    assert!(world.load_batch(OVERWORLD, BatchPos::new(-1, 0), &[], HEIGHTS).unwrap().is_empty());
    let nothing = world.load_batch(OVERWORLD, BatchPos::new(-1, 0), &wanted, 0..0).unwrap();
    assert!(nothing.iter().all(|stored| stored.column.chunks().len() == 0));
}

#[test]
fn a_boundless_height_range_finds_all_with_few_reads() {
    let store = TestStore::default();
    let world = store.world();
    let column = ColumnPos::new(-3, 70_000);
    let heights = [i64::MIN, i64::MIN + 5, -1_000_000, -1, 0, 1, 7_000, i64::MAX - 1, i64::MAX];
    heights.iter().for_each(|y| _ = save_chunk(&world, column.chunk(*y), chunk(5)));
    (0..100).for_each(|x| _ = save_chunk(&world, ChunkPos::new(x * 1000, 0, 0), chunk(6)));
    store.take_scans();
    for (range, expected) in [
        (i64::MIN..i64::MAX, &heights[..8]),
        (-1_000_000..7_001, &heights[2..7]),
        (-999_999..7_000, &heights[3..6]),
        (i64::MAX - 1..i64::MAX, &heights[7..8]),
        (8_000..i64::MAX - 1, &[]),
    ] {
        let loaded = world.load_batch(OVERWORLD, column.batch(), &[column], range).unwrap();
        let found: Vec<i64> = loaded[0].column.chunks().map(|(y, _)| y).collect();
        assert_eq!(found, expected);
        assert!(store.take_scans() < 1000);
    }
}

/// Promise, multiplayer: A generated chunk has version 0, and each saved change adds one.
#[test]
fn versions_count_changes_and_nothing_else() {
    let store = TestStore::default();
    let world = store.world();
    let pos = ChunkPos::new(-1, 2, -3);
    assert_eq!(save_chunk(&world, pos, chunk(1)).chunks, 1);
    assert_eq!(version(&store, pos), 0);
    let unchanged = save_chunk(&world, pos, chunk(1));
    assert_eq!((unchanged.chunks, unchanged.bytes, version(&store, pos)), (0, 0, 0));
    for expected in 1..4 {
        save_chunk(&world, pos, chunk(expected as u32 + 1));
        assert_eq!(version(&store, pos), expected);
    }
}

#[test]
fn air_replaces_stored_chunks_and_otherwise_takes_no_space() {
    let store = TestStore::default();
    let world = store.world();
    let (pos, air) = (ChunkPos::new(3, 0, 3), Arc::new(Chunk::uniform(BlockId::AIR)));
    let before = store.contents();
    assert_eq!(save_chunk(&world, pos, Arc::clone(&air)).chunks, 0);
    assert!(store.contents() == before);
    save_chunk(&world, pos, chunk(1));
    save_chunk(&world, pos, air);
    let loaded = world.load_batch(OVERWORLD, pos.column().batch(), &[pos.column()], HEIGHTS).unwrap();
    assert_eq!(loaded[0].column, Column::new(pos.column()));
    // The version keeps counting through air, so that readers of an older one see that it is old.
    assert_eq!(version(&store, pos), 1);
    save_chunk(&world, pos, chunk(1));
    assert_eq!(version(&store, pos), 2);
}

#[test]
fn a_momentary_disk_error_does_not_make_stored_air_look_ungenerated() {
    let store = TestStore::default();
    let world = store.world();
    let pos = ChunkPos::new(3, 0, 3);
    let mut masks = [0; 64];
    mark_stored(&mut masks, pos.column());
    save(&world, SaveBatch { tiles: [((OVERWORLD, TilePos::new(0, 0)), masks)].into(), ..SaveBatch::default() });
    let built = SaveBatch { chunks: [((OVERWORLD, pos), chunk(1))].into(), ..SaveBatch::default() };
    store.fail_reads(true);
    let failed = world.commit(&built, Durability::Process);
    assert!(matches!(failed, Err(StoreError::Backend { .. })), "{failed:?}");
    store.fail_reads(false);
    save(&world, built);
    assert_eq!(version(&store, pos), 1);
}

#[test]
fn of_a_sparse_dimension_all_that_was_generated_is_known() {
    const FAR: i64 = 1 << 55;
    let store = TestStore::default();
    let world = store.world();
    world.make_sparse(OVERWORLD).unwrap();
    let world = store.world();
    assert!(world.is_sparse(OVERWORLD).unwrap() && !world.is_sparse(NETHER).unwrap());
    let (column, air) = (ColumnPos::new(-3, 7), Arc::new(Chunk::uniform(BlockId::AIR)));
    let mut batch = SaveBatch::default();
    for (y, chunk) in [(FAR, chunk(1)), (FAR + 1, air.clone()), (-FAR, air), (5, chunk(2))] {
        batch.chunks.insert((OVERWORLD, column.chunk(y)), chunk);
    }
    let block = column.chunk(FAR + 1).min_block();
    let tick = StoredBlockTick { block, kind: "flow".into(), remaining: 3 };
    batch.block_ticks.insert((OVERWORLD, column.chunk(FAR + 1)), vec![tick.clone()]);
    let neighbour = column.offset(1, 0);
    batch.chunks.insert((OVERWORLD, neighbour.chunk(FAR + 2)), chunk(3));
    save(&world, batch);

    let heights = |ranges: &[Range<i64>]| ranges.iter().cloned().flatten().collect::<HeightSet>();
    let wanted = heights(&[-FAR - 2..-FAR + 2, FAR..FAR + 4]);
    let part = world.load_part(OVERWORLD, column, &wanted).unwrap();
    assert_eq!(part.column.loaded(), Some(&heights(&[-FAR..-FAR + 1, FAR..FAR + 2])));
    assert!(part.column.chunks().eq([(FAR, &chunk(1))]), "air is known, and takes no room in memory");
    assert_eq!(part.block_ticks, [tick]);
    let nothing = world.load_part(OVERWORLD, column, &HeightSet::from(6..9)).unwrap();
    assert_eq!(nothing.column, Column::partial(column, HeightSet::new()));
}

#[test]
fn a_damaged_chunk_is_named_and_others_load() {
    let store = TestStore::default();
    let world = store.world();
    let (bad, good) = (ChunkPos::new(-2, 7, 5), ChunkPos::new(-1, 7, 5));
    let key = keys::chunk_key(OVERWORLD, bad);
    let load = |pos: ChunkPos| world.load_batch(OVERWORLD, pos.column().batch(), &[pos.column()], HEIGHTS);
    let damages: [fn(&mut Vec<u8>); 4] = [
        |value| *value.last_mut().unwrap() ^= 1,
        |value| value[0] ^= 1,
        |value| value.truncate(5),
        // A right checksum of bytes that are not a chunk.
        |value| {
            value.truncate(20);
            envelope::seal(value, 0);
        },
    ];
    for damage in damages {
        [bad, good].into_iter().for_each(|pos| _ = save_chunk(&world, pos, chunk(4)));
        store.tamper(Family::Chunks, &key, damage);
        let before = store.contents();
        let error = load(bad).unwrap_err();
        assert!(matches!(&error, StoreError::Corrupt { what: StoredItem::Chunk(OVERWORLD, pos), .. } if *pos == bad));
        assert!(error.to_string().contains("chunk [-2, 7, 5] of dimension 0"), "{error}");
        assert_eq!(load(good).unwrap()[0].column.chunks().len(), 1);
        assert!(store.contents() == before);
    }
    // The whole chunk in memory replaces the damaged one, and the damage is reported.
    store.tamper(Family::Chunks, &key, |value| value[9] ^= 1);
    let report = save_chunk(&world, bad, chunk(8));
    assert!(matches!(&report.replaced[..], [StoreError::Corrupt { what: StoredItem::Chunk(OVERWORLD, _), .. }]));
    assert_eq!(load(bad).unwrap()[0].column.chunk(7), Some(&chunk(8)));
}

#[test]
fn tiles_of_a_dimension_come_back() {
    let store = TestStore::default();
    let world = store.world();
    let mut batch = SaveBatch::default();
    // More tiles than fit in one page.
    let mut expected = Vec::new();
    for (x, z) in (-30..30).flat_map(|x| (-20..20).map(move |z| (x, z))) {
        let masks = std::array::from_fn(|index| (x * 1000 + z * 10 + index as i64) as u16);
        batch.tiles.insert((NETHER, TilePos::new(x, z)), masks);
        expected.push((TilePos::new(x, z), masks));
    }
    let corner = TilePos::new(i64::MIN, i64::MAX);
    batch.tiles.insert((OVERWORLD, corner), [1; 64]);
    save(&world, batch);
    assert_eq!(world.stored_tiles(NETHER).unwrap(), expected);
    assert_eq!(world.stored_tiles(OVERWORLD).unwrap(), [(corner, [1; 64])]);
    assert!(world.stored_tiles(DimensionId(2)).unwrap().is_empty());
    let tile = TilePos::new(3, -4);
    store.tamper(Family::Meta, &keys::tile_key(NETHER, tile), |value| _ = value.pop());
    let error = world.stored_tiles(NETHER).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { what: StoredItem::Tile(NETHER, of), .. } if of == tile), "{error}");
}
