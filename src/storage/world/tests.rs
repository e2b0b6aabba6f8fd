//! Opening worlds, with what can be wrong with them, and what a world remembers.

use super::*;
use crate::block::BlockId;
use crate::chunk::{Chunk, Column};
use crate::space::{BatchPos, BlockPos, ChunkPos, ColumnPos, HeightSet};
use crate::storage::backends::test_store::TestStore;
use crate::storage::{EntityRecord, SaveBatch, StoredBlockTick, ViewerRecord, envelope, mark_stored};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use uuid::Uuid;

const OVERWORLD: DimensionId = DimensionId(0);
const NETHER: DimensionId = DimensionId(1);
const HEIGHTS: std::ops::Range<i64> = -4..20;

fn chunk(block: u32) -> Arc<Chunk> {
    let mut chunk = Chunk::uniform(BlockId::AIR);
    chunk.set_block([1, 2, 3], BlockId::new(block));
    Arc::new(chunk)
}

fn entity(id: u128, block: BlockPos) -> EntityRecord {
    EntityRecord {
        id: Uuid::from_u128(id),
        dimension: OVERWORLD,
        block,
        offset: [0.25, 0.0, 0.75],
        viewer: None,
        components: vec![("health".into(), vec![1, 2, 3]), ("name".into(), Vec::new())],
        children: Vec::new(),
    }
}

fn origin(seed: u64) -> DimensionOrigin {
    DimensionOrigin { generator: "hills".into(), version: 3, seed }
}

fn save(world: &WorldStore, batch: SaveBatch) -> crate::storage::CommitReport {
    world.commit(&batch, Durability::Process).unwrap()
}

fn save_chunk(world: &WorldStore, pos: ChunkPos, chunk: Arc<Chunk>) -> crate::storage::CommitReport {
    save(world, SaveBatch { chunks: [((OVERWORLD, pos), chunk)].into(), ..SaveBatch::default() })
}

fn save_entity(world: &WorldStore, id: u128, entity: Option<EntityRecord>) -> crate::storage::CommitReport {
    save(world, SaveBatch { entities: [(Uuid::from_u128(id), entity)].into(), ..SaveBatch::default() })
}

fn entities_in(world: &WorldStore, dimension: DimensionId, column: ColumnPos) -> Vec<EntityRecord> {
    let mut loaded = world.load_batch(dimension, column.batch(), &[column], HEIGHTS).unwrap();
    assert_eq!(loaded.len(), 1);
    loaded.remove(0).entities
}

fn version(store: &TestStore, pos: ChunkPos) -> u64 {
    let value = store.get(Family::Chunks, &keys::chunk_key(OVERWORLD, pos)).unwrap().unwrap();
    envelope::open(&value).unwrap().version
}

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
                // The same places of another dimension, and just outside of the heights, must stay apart.
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
fn air_replaces_what_is_stored_and_takes_no_room_else() {
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
    // The version goes on through air: whoever has seen one of these must see that it is old.
    assert_eq!(version(&store, pos), 1);
    save_chunk(&world, pos, chunk(1));
    assert_eq!(version(&store, pos), 2);
}

#[test]
fn what_was_air_in_a_stored_column_is_not_taken_for_new_when_the_disk_fails_for_a_moment() {
    let store = TestStore::default();
    let world = store.world();
    let pos = ChunkPos::new(3, 0, 3);
    let mut masks = [0; 64];
    mark_stored(&mut masks, pos.column());
    save(&world, SaveBatch { tiles: [((OVERWORLD, (0, 0)), masks)].into(), ..SaveBatch::default() });
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

    let heights = |ranges: &[std::ops::Range<i64>]| ranges.iter().cloned().flatten().collect::<HeightSet>();
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
        // The right checksum of something that is no chunk.
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
    // What is in memory is whole, so it may replace what is damaged, but it is reported.
    store.tamper(Family::Chunks, &key, |value| value[9] ^= 1);
    let report = save_chunk(&world, bad, chunk(8));
    assert!(matches!(&report.replaced[..], [StoreError::Corrupt { what: StoredItem::Chunk(OVERWORLD, _), .. }]));
    assert_eq!(load(bad).unwrap()[0].column.chunk(7), Some(&chunk(8)));
}

#[test]
fn an_entity_is_in_exactly_one_place() {
    let store = TestStore::default();
    let world = store.world();
    let places =
        [BlockPos::new(0, 0, 0), BlockPos::new(-1, 0, 15), BlockPos::new(16, 500, -17), BlockPos::new(3, 1, 2)];
    let mut other = entity(2, BlockPos::new(5, 5, 5));
    other.dimension = NETHER;
    save_entity(&world, 2, Some(other.clone()));
    for place in places {
        let moved = entity(1, place);
        assert_eq!(save_entity(&world, 1, Some(moved.clone())).entities, 1);
        assert_eq!(save_entity(&world, 1, Some(moved.clone())).bytes, 0);
        for column in places.map(BlockPos::column) {
            let expected = if column == place.column() { vec![moved.clone()] } else { Vec::new() };
            assert_eq!(entities_in(&world, OVERWORLD, column), expected);
        }
    }
    assert_eq!(entities_in(&world, NETHER, ColumnPos::new(0, 0)), [other]);
    // To another dimension, and away.
    let mut moved = entity(1, places[0]);
    moved.dimension = NETHER;
    save_entity(&world, 1, Some(moved.clone()));
    assert!(entities_in(&world, OVERWORLD, places[0].column()).is_empty());
    assert_eq!(entities_in(&world, NETHER, places[0].column())[0], moved);
    assert_eq!(save_entity(&world, 1, None).entities, 1);
    assert_eq!(save_entity(&world, 2, None).entities, 1);
    assert_eq!(save_entity(&world, 2, None).entities, 0);
    assert!(entities_in(&world, NETHER, places[0].column()).is_empty());
    let header_only = store.contents();
    assert!(header_only.iter().all(|(_, (key, _))| key == keys::HEADER), "{header_only:?}");
}

#[test]
fn viewers_are_found_without_their_place() {
    let world = WorldStore::open(&StorageConfig::Memory).unwrap();
    let mut viewers: Vec<EntityRecord> = (0..3).map(|id| entity(id, BlockPos::new(id as i64 * 1000, 70, -5))).collect();
    viewers.iter_mut().for_each(|viewer| viewer.viewer = Some(ViewerRecord::default()));
    let mut batch = SaveBatch::default();
    viewers.iter().for_each(|viewer| _ = batch.entities.insert(viewer.id, Some(viewer.clone())));
    batch.entities.insert(Uuid::from_u128(9), Some(entity(9, BlockPos::new(0, 0, 0))));
    save(&world, batch);
    assert_eq!(world.viewers(OVERWORLD).unwrap(), viewers);
    assert!(world.viewers(NETHER).unwrap().is_empty());
    // Their columns have them too.
    assert_eq!(entities_in(&world, OVERWORLD, viewers[1].column()), viewers[1..2]);
    // One stops looking, one moves on, one changes the dimension.
    viewers[0].viewer = None;
    viewers[1].block.x += 100;
    viewers[2].dimension = NETHER;
    viewers.iter().zip(0..).for_each(|(viewer, id)| _ = save_entity(&world, id, Some(viewer.clone())));
    assert_eq!(world.viewers(OVERWORLD).unwrap(), viewers[1..2]);
    assert_eq!(world.viewers(NETHER).unwrap(), viewers[2..]);
    save_entity(&world, 1, None);
    assert!(world.viewers(OVERWORLD).unwrap().is_empty());
}

#[test]
fn the_record_decides_where_an_entity_is() {
    let store = TestStore::default();
    let world = store.world();
    save_entity(&world, 1, Some(entity(1, BlockPos::new(0, 0, 0))));
    let mut batch = WriteBatch::default();
    let (elsewhere, id) = (ColumnPos::new(5, 5), Uuid::from_u128(1));
    batch.put(Family::Meta, keys::place_key(OVERWORLD, elsewhere, id), Vec::new());
    batch.put(Family::Meta, keys::place_key(NETHER, ColumnPos::new(0, 0), id), Vec::new());
    batch.put(Family::Meta, keys::place_key(OVERWORLD, elsewhere, Uuid::from_u128(7)), Vec::new());
    batch.put(Family::Meta, keys::viewer_key(OVERWORLD, id), Vec::new());
    store.write(batch, Durability::Process).unwrap();
    assert!(entities_in(&world, OVERWORLD, elsewhere).is_empty());
    assert!(entities_in(&world, NETHER, ColumnPos::new(0, 0)).is_empty());
    assert!(world.viewers(OVERWORLD).unwrap().is_empty());
    assert_eq!(entities_in(&world, OVERWORLD, ColumnPos::new(0, 0)).len(), 1);
}

#[test]
fn a_damaged_entity_is_named() {
    let store = TestStore::default();
    let world = store.world();
    let id = Uuid::from_u128(1);
    let load = || world.load_batch(OVERWORLD, BatchPos::new(0, 0), &[ColumnPos::new(0, 0)], HEIGHTS);
    for damage in [
        |value: &mut Vec<u8>| value[0] = 200,
        |value: &mut Vec<u8>| value.truncate(9),
        |value: &mut Vec<u8>| value[5] ^= 1,
    ] {
        save_entity(&world, 1, Some(entity(1, BlockPos::new(0, 0, 0))));
        store.tamper(Family::Entities, &keys::entity_key(id), damage);
        assert!(matches!(load(), Err(StoreError::Corrupt { what: StoredItem::Entity(of), .. }) if of == id));
        let report = save_entity(&world, 1, Some(entity(1, BlockPos::new(20, 0, 0))));
        assert_eq!(report.replaced.len(), 1);
        assert!(load().unwrap()[0].entities.is_empty());
        assert_eq!(entities_in(&world, OVERWORLD, ColumnPos::new(1, 0)).len(), 1);
    }
    let error = world.commit(
        &SaveBatch {
            entities: [(Uuid::from_u128(2), Some(entity(1, BlockPos::new(0, 0, 0))))].into(),
            ..SaveBatch::default()
        },
        Durability::Process,
    );
    assert!(matches!(error, Err(StoreError::Corrupt { what: StoredItem::Entity(_), .. })));
}

#[test]
fn an_entity_is_found_by_its_id_alone() {
    let store = TestStore::default();
    let world = store.world();
    let id = Uuid::from_u128(1);
    assert_eq!(world.entity(id), Ok(None));
    let mut record = entity(1, BlockPos::new(i64::MIN, 70, i64::MAX));
    save_entity(&world, 1, Some(record.clone()));
    save_entity(&world, 2, Some(entity(2, BlockPos::new(0, 0, 0))));
    assert_eq!(world.entity(id), Ok(Some(record.clone())));
    record.dimension = NETHER;
    save_entity(&world, 1, Some(record.clone()));
    assert_eq!(world.entity(id), Ok(Some(record)));
    store.tamper(Family::Entities, &keys::entity_key(id), |value| value[5] ^= 1);
    assert!(matches!(world.entity(id), Err(StoreError::Corrupt { what: StoredItem::Entity(of), .. }) if of == id));
    save_entity(&world, 1, None);
    assert_eq!(world.entity(id), Ok(None));
}

#[test]
fn tiles_of_a_dimension_come_back() {
    let store = TestStore::default();
    let world = store.world();
    let mut batch = SaveBatch::default();
    // More than one page of them.
    let mut expected = Vec::new();
    for (x, z) in (-30..30).flat_map(|x| (-20..20).map(move |z| (x, z))) {
        let masks = std::array::from_fn(|index| (x * 1000 + z * 10 + index as i64) as u16);
        batch.tiles.insert((NETHER, (x, z)), masks);
        expected.push((x, z, masks));
    }
    batch.tiles.insert((OVERWORLD, (i64::MIN, i64::MAX)), [1; 64]);
    save(&world, batch);
    assert_eq!(world.stored_tiles(NETHER).unwrap(), expected);
    assert_eq!(world.stored_tiles(OVERWORLD).unwrap(), [(i64::MIN, i64::MAX, [1; 64])]);
    assert!(world.stored_tiles(DimensionId(2)).unwrap().is_empty());
    store.tamper(Family::Meta, &keys::tile_key(NETHER, 3, -4), |value| _ = value.pop());
    let error = world.stored_tiles(NETHER).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { what: StoredItem::Tile(NETHER, 3, -4), .. }), "{error}");
}

#[test]
fn a_failed_commit_changes_nothing() {
    let store = TestStore::default();
    let world = store.world();
    save_entity(&world, 1, Some(entity(1, BlockPos::new(0, 0, 0))));
    let before = store.contents();
    let mut batch = SaveBatch::default();
    batch.chunks.insert((OVERWORLD, ChunkPos::new(0, 0, 0)), chunk(1));
    batch.entities.insert(Uuid::from_u128(1), Some(entity(1, BlockPos::new(50, 0, 0))));
    store.fail_writes(true);
    let error = world.commit(&batch, Durability::Process).unwrap_err();
    assert!(error.to_string().contains("cannot write"), "{error}");
    assert!(store.contents() == before);
    store.fail_writes(false);
    assert_eq!(world.commit(&batch, Durability::Process).unwrap().entities, 1);
    assert_eq!(world.commit(&SaveBatch::default(), Durability::Sync).unwrap().bytes, 0);
}

#[test]
fn sessions_and_dimensions_last() {
    let store = TestStore::default();
    let started = SystemTime::now();
    let mut created_at = None;
    for session in 1..4 {
        let world = store.world();
        assert_eq!(world.session(), session);
        assert_eq!(*created_at.get_or_insert(world.created_at()), world.created_at());
        assert!(started.duration_since(world.created_at()).unwrap_or_default() < Duration::from_secs(2));
        assert_eq!(world.open_dimension("overworld", &origin(42)), Ok(DimensionId(0)));
        assert_eq!(world.open_dimension("", &origin(0)), Ok(DimensionId(1)));
        assert_eq!(world.open_dimension("overworld ", &origin(42)), Ok(DimensionId(2)));
        assert_eq!(world.open_dimension(&session.to_string(), &origin(0)), Ok(DimensionId(2 + session)));
    }
    assert!(store.world().approximate_bytes().unwrap() > 0);
}

#[test]
fn a_backend_of_the_callers_own_outlives_the_world_on_it() {
    let disk = Arc::new(MemoryStore::new());
    let config = StorageConfig::Custom(disk.clone());
    let pos = ChunkPos::new(1, 2, 3);
    let world = WorldStore::open(&config).unwrap();
    save_chunk(&world, pos, chunk(7));
    let cut = disk.snapshot();
    save_chunk(&world, pos, chunk(8));
    drop(world);

    let stored = |config: &StorageConfig, session: u64| {
        let world = WorldStore::open(config).unwrap();
        assert_eq!(world.session(), session);
        let mut loaded = world.load_batch(OVERWORLD, pos.column().batch(), &[pos.column()], HEIGHTS).unwrap();
        loaded.remove(0).column.chunk(2).cloned()
    };
    assert_eq!(stored(&config, 2), Some(chunk(8)));
    // The power was cut between the two commits.
    assert_eq!(stored(&StorageConfig::Custom(Arc::new(cut)), 2), Some(chunk(7)));
    assert_eq!(stored(&config.clone(), 3), Some(chunk(8)));
}

#[test]
fn storage_settings_can_be_compared_and_shown() {
    let disk: Arc<dyn KeyValueStore> = Arc::new(MemoryStore::new());
    let custom = || StorageConfig::Custom(disk.clone());
    assert_eq!(custom(), custom());
    assert_ne!(custom(), StorageConfig::Custom(Arc::new(MemoryStore::new())));
    assert_ne!(custom(), StorageConfig::Memory);
    assert_eq!(StorageConfig::Memory, StorageConfig::Memory);
    assert_eq!(StorageConfig::Path("world".into()), StorageConfig::Path("world".into()));
    assert_ne!(StorageConfig::Path("world".into()), StorageConfig::Path("other".into()));
    assert_eq!(format!("{:?}", custom()), "Custom(\"in memory\")");
    assert_eq!(format!("{:?}", StorageConfig::Path("world".into())), "Path(\"world\")");
}

#[test]
fn a_dimension_keeps_its_origin() {
    let world = WorldStore::open(&StorageConfig::Memory).unwrap();
    world.open_dimension("overworld", &origin(42)).unwrap();
    let changed = [
        origin(43),
        DimensionOrigin { version: 4, ..origin(42) },
        DimensionOrigin { generator: "flat".into(), ..origin(42) },
    ];
    for wanted in changed {
        let error = world.open_dimension("overworld", &wanted).unwrap_err();
        let expected = StoredDimensionError::OriginMismatch { name: "overworld".into(), stored: origin(42), wanted };
        assert_eq!(error, expected);
    }
    assert_eq!(world.open_dimension("overworld", &origin(42)), Ok(DimensionId(0)));
}

#[test]
fn damaged_or_newer_headers_are_refused() {
    let store = TestStore::default();
    drop(store.world());
    store.tamper(Family::Meta, keys::HEADER, |value| value[0] = 77);
    let before = store.contents();
    let open = || WorldStore::from_store(Box::new(store.clone())).unwrap_err();
    assert!(matches!(
        open(),
        WorldOpenError::Database { source: StoreError::Corrupt { what: StoredItem::Header, .. }, .. }
    ));
    assert!(store.contents() == before);
    let newer = Header { format: 2, created_at_seconds: 0, sessions: 0 };
    store.tamper(Family::Meta, keys::HEADER, |value| *value = record::encode(&newer).unwrap());
    assert!(matches!(open(), WorldOpenError::NewerFormat { found: 2, supported: 1, .. }));
}

/// Opening folders, with a store in memory that stands for the database in them.
mod folders {
    use super::*;
    use std::fs;

    fn open(path: &Path, store: &TestStore) -> Result<WorldStore, WorldOpenError> {
        WorldStore::open_folder(path, |database, create| {
            assert_eq!(create, !path.join("world.terrane").exists());
            fs::create_dir_all(database).unwrap();
            Ok(Box::new(store.clone()))
        })
    }

    #[test]
    fn the_folder_is_locked_as_long_as_the_world_lives() {
        let root = tempfile::tempdir().unwrap();
        let store = TestStore::default();
        for session in 1..4 {
            let world = open(root.path(), &store).unwrap();
            assert_eq!(world.session(), session);
            let error = open(root.path(), &store).unwrap_err();
            assert!(matches!(error, WorldOpenError::Locked { process: Some(_), .. }), "{error}");
        }
    }

    #[test]
    fn a_world_whose_database_does_not_open_stays_free_and_as_it_was() {
        let root = tempfile::tempdir().unwrap();
        let store = TestStore::default();
        let fail = |path: &Path, _| {
            let reason = "damaged".into();
            let operation = crate::storage::Operation::Open;
            Err(StoreError::Backend { operation, family: None, path: path.to_path_buf(), reason })
        };
        // While it is made, and later.
        for _ in 0..2 {
            let error = WorldStore::open_folder(root.path(), fail).unwrap_err();
            assert!(matches!(&error, WorldOpenError::Database { path, .. } if path == root.path()), "{error}");
            assert!(error.to_string().contains("damaged"), "{error}");
            drop(open(root.path(), &store).unwrap());
        }
        // A world that cannot be marked complete is not complete: its next opening goes on making it.
        let second = root.path().join("second");
        store.fail_writes(true);
        assert!(open(&second, &store).is_err());
        assert!(!second.join("world.terrane").exists());
        store.fail_writes(false);
        assert!(open(&second, &store).is_ok());
    }

    #[test]
    fn an_emptied_database_is_not_taken_for_a_new_world() {
        let root = tempfile::tempdir().unwrap();
        drop(open(root.path(), &TestStore::default()).unwrap());
        let error = open(root.path(), &TestStore::default()).unwrap_err();
        assert!(matches!(error, WorldOpenError::Database { source: StoreError::Corrupt { .. }, .. }), "{error}");
    }

    #[cfg(not(feature = "rocksdb"))]
    #[test]
    fn without_a_backend_a_path_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let error = WorldStore::open(&StorageConfig::Path(root.path().join("world"))).unwrap_err();
        assert_eq!(error, WorldOpenError::NoBackend { path: root.path().join("world") });
        assert!(!root.path().join("world").exists());
    }

    #[cfg(feature = "rocksdb")]
    #[test]
    fn a_world_on_disk_is_there_the_next_time() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("saves/world");
        let config = StorageConfig::Path(path.clone());
        let pos = ChunkPos::new(-1, 2, -3);
        for session in 1..4 {
            let world = WorldStore::open(&config).unwrap();
            assert_eq!(world.session(), session);
            assert_eq!(world.open_dimension("overworld", &origin(42)), Ok(OVERWORLD));
            if session > 1 {
                let column = pos.column();
                let loaded = world.load_batch(OVERWORLD, column.batch(), &[column], HEIGHTS).unwrap();
                assert_eq!(loaded[0].column.chunk(2), Some(&chunk(session as u32 - 1)));
                assert_eq!(loaded[0].entities, [entity(1, BlockPos::new(-1, session as i64 - 1, -33))]);
            }
            let mut batch = SaveBatch::default();
            batch.chunks.insert((OVERWORLD, pos), chunk(session as u32));
            batch.entities.insert(Uuid::from_u128(1), Some(entity(1, BlockPos::new(-1, session as i64, -33))));
            save(&world, batch);
            assert!(matches!(WorldStore::open(&config), Err(WorldOpenError::Locked { process: Some(_), .. })));
        }
        fs::write(path.join("db/CURRENT"), "nonsense").unwrap();
        let error = WorldStore::open(&config).unwrap_err();
        assert!(matches!(&error, WorldOpenError::Database { path: of, .. } if *of == path), "{error}");
        fs::write(path.join("world.terrane"), "bevy_terrane world\nformat = 2\n").unwrap();
        let files = |path: &Path| -> BTreeMap<PathBuf, Vec<u8>> {
            let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
            entries.filter(|path| path.is_file()).map(|path| (path.clone(), fs::read(path).unwrap())).collect()
        };
        let before = (files(&path), files(&path.join("db")));
        assert!(matches!(WorldStore::open(&config), Err(WorldOpenError::NewerFormat { found: 2, .. })));
        assert_eq!((files(&path), files(&path.join("db"))), before);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Chunk(i64, i64, u32),
    Entity(u8, Option<(i64, i64, bool)>),
    Commit,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let place = -3..3_i64;
    prop_oneof![
        4 => (place.clone(), place.clone(), 0..3_u32).prop_map(|(x, y, block)| Step::Chunk(x, y, block)),
        4 => (0..4_u8, prop::option::of((place.clone(), place, any::<bool>())))
            .prop_map(|(id, place)| Step::Entity(id, place)),
        2 => Just(Step::Commit),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is saved, loaded and reopened in any order: the store holds what a map would hold.
    #[test]
    fn a_world_agrees_with_a_map(steps in vec(step(), 1..60)) {
        let store = TestStore::default();
        let mut world = store.world();
        let mut pending = SaveBatch::default();
        let mut chunks: BTreeMap<ChunkPos, Arc<Chunk>> = BTreeMap::new();
        let mut entities: BTreeMap<Uuid, EntityRecord> = BTreeMap::new();
        for step in steps.into_iter().chain([Step::Commit]) {
            match step {
                Step::Chunk(x, y, block) => {
                    let mut newer = SaveBatch::default();
                    newer.chunks.insert((OVERWORLD, ChunkPos::new(x, y, 0)), chunk(block));
                    pending.merge(newer);
                }
                Step::Entity(id, place) => {
                    let record = place.map(|(x, z, is_viewer)| EntityRecord {
                        viewer: is_viewer.then(ViewerRecord::default),
                        ..entity(id.into(), BlockPos::new(x * 16, 0, z * 16))
                    });
                    pending.entities.insert(Uuid::from_u128(id.into()), record);
                }
                Step::Reopen => {
                    drop(world);
                    world = store.world();
                }
                Step::Commit => {
                    let pending = std::mem::take(&mut pending);
                    world.commit(&pending, Durability::Process).unwrap();
                    chunks.extend(pending.chunks.into_iter().map(|((_, pos), chunk)| (pos, chunk)));
                    for (id, record) in pending.entities {
                        match record {
                            Some(record) => drop(entities.insert(id, record)),
                            None => drop(entities.remove(&id)),
                        }
                    }
                }
            }
            let mut found_chunks = BTreeMap::new();
            let mut found_entities = Vec::new();
            for batch in [BatchPos::new(-1, -1), BatchPos::new(-1, 0), BatchPos::new(0, -1), BatchPos::new(0, 0)] {
                let wanted: Vec<ColumnPos> = batch.columns().collect();
                for stored in world.load_batch(OVERWORLD, batch, &wanted, -3..3).unwrap() {
                    let pos = stored.column.pos();
                    found_chunks.extend(stored.column.chunks().map(|(y, chunk)| (pos.chunk(y), Arc::clone(chunk))));
                    prop_assert!(stored.entities.iter().all(|entity| entity.column() == pos));
                    found_entities.extend(stored.entities);
                }
            }
            found_entities.sort_by_key(|entity| entity.id);
            let not_air = |chunk: &Chunk| chunk.uniform_block() != Some(BlockId::AIR);
            prop_assert!(found_chunks.iter().eq(chunks.iter().filter(|(_, chunk)| not_air(chunk))));
            prop_assert!(found_entities.iter().eq(entities.values()));
            let viewers: BTreeSet<Uuid> = world.viewers(OVERWORLD).unwrap().iter().map(|entity| entity.id).collect();
            let expected = entities.values().filter(|entity| entity.viewer.is_some());
            prop_assert_eq!(viewers, expected.map(|entity| entity.id).collect());
        }
        // One place key an entity, and nothing left of those that are gone.
        let places = store.contents().into_iter().filter(|(_, (key, _))| keys::parse_place_key(key).is_some());
        prop_assert_eq!(places.count(), entities.len());
    }
}

#[test]
fn whoever_lost_the_world_to_another_changes_nothing_any_more() {
    let store = TestStore::default();
    let (older, pos) = (store.world(), ChunkPos::new(1, 2, 3));
    older.open_dimension("overworld", &origin(1)).unwrap();
    save_chunk(&older, pos, chunk(1));
    let newer = store.world();
    assert_eq!((older.session(), newer.session()), (1, 2));
    let before = store.contents();
    let writes: [&dyn Fn() -> Result<(), StoreError>; 5] = [
        &|| {
            let batch = SaveBatch { chunks: [((OVERWORLD, pos), chunk(2))].into(), ..SaveBatch::default() };
            older.commit(&batch, Durability::Sync).map(drop)
        },
        &|| older.make_sparse(NETHER),
        &|| older.save_registry_lists(&older.registry_lists()?),
        &|| match older.open_dimension("nether", &origin(1)) {
            Err(StoredDimensionError::Store(error)) => Err(error),
            other => panic!("{other:?}"),
        },
        &|| older.rebuild_tiles(OVERWORLD, |_| std::ops::ControlFlow::Continue(())).map(drop),
    ];
    for write in writes {
        let error = write().unwrap_err();
        assert!(matches!(error, StoreError::Superseded { session: 1, .. }), "{error}");
        assert!(error.to_string().contains("opened again elsewhere"), "{error}");
    }
    assert!(store.contents() == before);
    // The newer one goes on, and the older one can still read.
    save_chunk(&newer, pos, chunk(3));
    let load =
        |world: &WorldStore| world.load_batch(OVERWORLD, pos.column().batch(), &[pos.column()], HEIGHTS).unwrap();
    assert_eq!(load(&older), load(&newer));
    assert_eq!(load(&newer)[0].column.chunk(2), Some(&chunk(3)));
}

#[test]
fn of_many_who_open_a_world_at_once_each_has_a_session_and_the_last_one_has_the_world() {
    let store = TestStore::default();
    let worlds: Vec<WorldStore> = std::thread::scope(|scope| {
        let opening = [(); 8].map(|()| scope.spawn(|| store.world()));
        opening.into_iter().map(|opening| opening.join().unwrap()).collect()
    });
    let sessions: BTreeSet<u64> = worlds.iter().map(WorldStore::session).collect();
    assert!(sessions.into_iter().eq(1..=8));
    for world in &worlds {
        let written = world.make_sparse(DimensionId(world.session()));
        assert_eq!(written.is_ok(), world.session() == 8, "{written:?}");
    }
}
