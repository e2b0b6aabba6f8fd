//! A small world with data of every kind.

use crate::backends::test_store::TestStore;
use crate::block::{BlockComponentId, BlockComponentRecord, BlockId, BlockRecord, BlockRegistry};
use crate::bytes::record;
use crate::chunk::format::cluster::encode_cluster;
use crate::chunk::{Chunk, Column, ColumnSummary};
use crate::player_component;
use crate::space::{
    AreaCursor, BatchPos, BlockPos, ChunkPos, ColumnArea, ColumnPos, DimensionId, GeneratorIdentity, TilePos,
};
use crate::tiers::LOST_CHUNK;
use crate::tiers::cluster::{self, Part, Parts};
use crate::upkeep::{ExistingGround, ImportReport, LostObject};
use crate::{
    ChildRecord, ChunkGroup, Durability, EntityRecord, Family, KeyValueStore, RegistryLists, SaveBatch,
    StoredBlockTick, StoredPregeneration, Tier, TileHistory, ViewerRecord, WorldStore, WriteBatch, keys,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

const OVERWORLD: DimensionId = DimensionId(0);
const NETHER: DimensionId = DimensionId(1);
const RUINS: DimensionId = DimensionId(2);
const STONE: BlockId = BlockId::new(1);
const CHEST: BlockId = BlockId::new(2);
const WATER: BlockId = BlockId::new(3);
/// The positions of chunks that become warm or cold, one that is lost, and one that is damaged and saved again.
const WARM: ChunkPos = ChunkPos::new(-5, 2, 70_000);
const COLD: [ChunkPos; 2] = [ChunkPos::new(17, -3, -20), ChunkPos::new(31, -16, -17)];
const LOST: ChunkPos = ChunkPos::new(1, 1, 40);
const DAMAGED: ChunkPos = ChunkPos::new(0, -1, 0);

pub(super) fn make() -> TestStore {
    let store = TestStore::default();
    let world = store.world();
    let lists = lists();
    for (name, seed) in [("overworld", 7), ("nether", u64::MAX), ("ruins", 0)] {
        let origin = GeneratorIdentity { name: "hügel".into(), version: 3, seed };
        world.open_dimension(name, &origin).unwrap();
    }
    world.make_sparse(NETHER).unwrap();
    world.note_own_seed(OVERWORLD, 42).unwrap();
    world.save_registry_lists(&lists).unwrap();
    let types = BlockRegistry::from_records(lists.blocks, lists.components).unwrap();
    world.set_blocks(Arc::new(types));
    let types = world.blocks().unwrap();
    world.set_session_time(Duration::from_millis(90_500));
    world.commit(&ground(), Durability::Sync).unwrap();
    // One chunk changes, and one is saved over a damaged one.
    store.tamper(Family::Chunks, &keys::chunk_key(OVERWORLD, DAMAGED), |value| value[20] ^= 1);
    let mut batch = SaveBatch::default();
    batch.chunks.insert((OVERWORLD, DAMAGED), Arc::new(slab()));
    batch.chunks.insert((OVERWORLD, ChunkPos::new(0, 0, 0)), Arc::new(furnished(&types)));
    world.commit(&batch, Durability::Sync).unwrap();
    world.commit(&entities(), Durability::Sync).unwrap();
    for (dimension, pos) in ground().chunks.into_keys() {
        world.opacity(dimension, pos.column().batch()).unwrap();
    }
    keep_objects(&world);
    world.adopt_groups(1).unwrap();
    move_groups(&world, &store);
    put_rest(&store);
    store
}

fn lists() -> RegistryLists {
    let block = |name: &str, components: &[u64]| BlockRecord { name: name.into(), components: components.to_vec() };
    RegistryLists {
        blocks: vec![
            block("terrane:air", &[]),
            block("game:stone", &[]),
            block("game:chest[facing=north]", &[0, 1 << 63 | 1]),
            block("game:water", &[2, 1 << 63 | 1]),
        ],
        components: vec![
            BlockComponentRecord { name: "game:lock".into(), version: 2, size: Some(4) },
            BlockComponentRecord { name: "game:items".into(), version: 0, size: None },
            BlockComponentRecord { name: "game:level".into(), version: 0, size: Some(1) },
        ],
        entity_types: vec!["game::Mob".into(), "game::Hat@2".into()],
    }
}

/// Chunks of all kinds, and their other data.
fn ground() -> SaveBatch {
    let mut batch = SaveBatch::default();
    let mut put = |dimension, pos, chunk| drop(batch.chunks.insert((dimension, pos), Arc::new(chunk)));
    put(OVERWORLD, ChunkPos::new(0, 0, 0), Chunk::uniform(STONE));
    put(OVERWORLD, DAMAGED, Chunk::uniform(STONE));
    put(OVERWORLD, ChunkPos::new(i64::MIN >> 4, i64::MAX >> 4, 5), striped());
    put(NETHER, ChunkPos::new(1, 1 << 40, 1), Chunk::uniform(BlockId::AIR));
    put(OVERWORLD, LOST, Chunk::uniform(STONE));
    put(OVERWORLD, WARM, Chunk::uniform(STONE));
    put(OVERWORLD, ChunkPos::new(WARM.x, WARM.y + 1, WARM.z), slab());
    COLD.into_iter().for_each(|pos| put(OVERWORLD, pos, Chunk::uniform(STONE)));

    batch.clocks.insert(OVERWORLD, Duration::from_millis(77_250));
    batch.days.insert(OVERWORLD, 3.625);
    let column = ColumnPos::new(0, 0);
    let mut seen = Column::new(column);
    seen.set_chunk(0, Arc::new(slab()));
    seen.set_block(BlockPos::new(3, -9, 5), WATER);
    seen.set_block(BlockPos::new(15, 1_000, 15), STONE);
    batch.summaries.insert((OVERWORLD, column), Arc::new(ColumnSummary::new(&seen)));
    let air = Column::new(ColumnPos::new(i64::MAX >> 4, -1));
    batch.summaries.insert((OVERWORLD, air.pos()), Arc::new(ColumnSummary::new(&air)));

    let mut masks = [0; 64];
    (masks[0], masks[9], masks[63]) = (0x8001, 1, 0xffff);
    batch.tiles.insert((OVERWORLD, TilePos::new(0, 0)), masks);
    batch.tiles.insert((OVERWORLD, TilePos::new(-1, i64::MAX >> 9)), [1; 64]);
    let mut history = TileHistory::default();
    history.set_new(ColumnPos::new(1, 0), true);
    history.set_new(ColumnPos::new(31, 31), true);
    for column in BatchPos::new(7, 7).columns() {
        history.set_heights(column, Some((-64..-16).chain(0..320).collect()));
    }
    batch.heights.insert(OVERWORLD, -64..320);
    batch.histories.insert((OVERWORLD, TilePos::new(0, 0)), history);
    let tick = |block, kind: &str, remaining| StoredBlockTick { block, kind: kind.into(), remaining };
    let place = BlockPos::new(-1, -17, 15);
    let ticks = vec![tick(place, "game:flow", 300), tick(place, "game:fade", 0), tick(place, "game:fade", u64::MAX)];
    batch.block_ticks.insert((OVERWORLD, place.chunk()), ticks);

    let job = |area, cursor| StoredPregeneration { area, cursor, paused: false, elapsed: Duration::from_nanos(5) };
    let disc = ColumnArea::Disc { center: ColumnPos::new(i64::MIN >> 4, 7), radius: 300 };
    let far = AreaCursor::at(&disc, BatchPos::new(i64::MAX >> 6, -2));
    let square = ColumnArea::Square { center: ColumnPos::new(3, -4), radius: 50 };
    let rest = ColumnArea::Box { min: ColumnPos::new(-1, -2), max: ColumnPos::new(3, 4) };
    for (number, job) in [(0, job(disc, far)), (6, job(square, AreaCursor::default())), (7, job(rest, far))] {
        batch.pregenerations.insert((OVERWORLD, number), Some(StoredPregeneration { paused: number == 6, ..job }));
    }
    batch
}

/// Layers of stone and air, with a varying number of runs per block column.
fn striped() -> Chunk {
    Chunk::from_fn(|[x, y, z]| if y % 3 == 0 && y < x + z / 5 { STONE } else { BlockId::AIR })
}

fn slab() -> Chunk {
    Chunk::from_fn(|[x, y, _]| if y <= x / 4 { STONE } else { BlockId::AIR })
}

/// Chests and water with components, in three layers.
fn furnished(types: &BlockRegistry) -> Chunk {
    let mut chunk = slab();
    let [lock, items, level] = [0, 1 << 63 | 1, 2].map(BlockComponentId::new);
    for (number, at) in [[0, 1, 2], [15, 15, 15], [7, 7, 7]].into_iter().enumerate() {
        chunk.place_block(types, at, 0, CHEST).unwrap();
        chunk.set_component(types, at, 0, lock, &[number as u8, 2, 3, 4]).unwrap();
        chunk.set_component(types, at, 0, items, "item ".repeat(number * 30).as_bytes()).unwrap();
    }
    for layer in 1..3 {
        chunk.place_block(types, [0, 1, 2], layer, WATER).unwrap();
        chunk.set_component(types, [0, 1, 2], layer, level, &[layer]).unwrap();
    }
    chunk.place_block(types, [3, 0, 3], 1, CHEST).unwrap();
    chunk
}

fn entities() -> SaveBatch {
    let viewer = ViewerRecord { radius: 3, generation_radius: 500, vertical_radius: 7 };
    let place = |x: i64| (NETHER, BlockPos::new(x, -2, i64::MIN), [0.25, 0.0, 0.999]);
    let child = |parent, number: Option<u128>| ChildRecord {
        parent,
        id: number.map(Uuid::from_u128),
        place: number.map(|number| place(number as i64)),
        viewer: number.map(|_| viewer),
        components: vec![("game::Hat@2".into(), vec![9; 130])],
    };
    let entity = |number: u128, components, children| EntityRecord {
        id: Uuid::from_u128(number << 64 | 5),
        dimension: OVERWORLD,
        block: BlockPos::new(-17, 1 << 40, number as i64),
        offset: [0.0, 0.5, 0.75],
        viewer: (number == 1).then_some(viewer),
        components,
        children,
    };
    let mob = vec![("game::Mob".to_owned(), vec![1, 2, 3]), ("game::Name".to_owned(), Vec::new())];
    let children = vec![child(None, Some(300)), child(Some(0), None), child(None, None)];
    let all =
        [entity(1, mob, Vec::new()), entity(2, vec![], children), entity(3, vec![player_component("Zoë")], vec![])];
    let entities = all.into_iter().map(|entity| (entity.id, Some(entity))).collect();
    SaveBatch { entities, ..SaveBatch::default() }
}

fn keep_objects(world: &WorldStore) {
    for (version, key) in (5..).zip(["game:weather", "column/3,-4/game:owner", "chunk/-1,2,3/game:claim"]) {
        world.keep_object(OVERWORLD, key, version, key.as_bytes()).unwrap();
    }
}

/// Makes groups warm and cold: one stored uncompressed, and others as zstd frames that need no decompressor.
fn move_groups(world: &WorldStore, store: &TestStore) {
    let group = |pos| ChunkGroup::of(OVERWORLD, pos);
    let cold = COLD.map(|pos| (group(pos), Tier::Cold));
    world.move_groups(&[&[(group(WARM), Tier::Warm)][..], &cold].concat()).unwrap();
    let repack = |family, key: &[u8], stores: fn(usize, &Part) -> Part<'static>| {
        store.tamper(family, key, |value| {
            let parts = cluster::open(value).unwrap().into_iter().enumerate();
            let parts: Parts = parts.map(|(number, (place, part))| (place, stores(number, &part))).collect();
            *value = cluster::encode(&parts);
        });
    };
    repack(Family::WarmChunks, &group(WARM).key(), |_, part| framed(part));
    repack(Family::ColdChunks, &group(COLD[0]).cube_key(), |number, part| match number {
        0 => part.stored_as(raw(part), 0),
        _ => framed(part),
    });
}

fn raw(part: &Part) -> Vec<u8> {
    let (unpacked, mut raw) = (part.unpack().unwrap(), Vec::new());
    let values: BTreeMap<usize, &[u8]> = cluster::values(&unpacked).collect();
    encode_cluster(|place| values.get(&place).copied(), &mut raw);
    raw
}

/// The part as a zstd frame of raw blocks, and run-length blocks for the longest run of zeros.
fn framed(part: &Part) -> Part<'static> {
    let raw = raw(part);
    let runs = raw.chunk_by(|a, b| a == b).scan(0, |end, run| {
        *end += run.len();
        Some((run.len(), *end - run.len()))
    });
    let (length, start) = runs.max_by_key(|(length, _)| *length).unwrap();
    // A single segment, and the length in two bytes, minus 256.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0b0110_0000];
    frame.extend((u16::try_from(raw.len()).unwrap() - 256).to_le_bytes());
    let mut block = |bytes: &[u8], kind: u32, length: usize, is_last: bool| {
        let header = (length as u32) << 3 | kind << 1 | u32::from(is_last);
        frame.extend(&header.to_le_bytes()[..3]);
        frame.extend(bytes);
    };
    block(&raw[..start], 0, start, false);
    block(&raw[start..=start], 1, length, false);
    block(&raw[start + length..], 0, raw.len() - start - length, true);
    part.stored_as(frame, raw.len() as u32)
}

/// Data that worlds contain only temporarily.
fn put_rest(store: &TestStore) {
    let report = ImportReport { finished: false, columns: 300, chunks: 12, new_types: 1, ..ImportReport::default() };
    let mut import =
        ((vec![1_u8, 2, 3], [-4_i64, 0, 5]), (ExistingGround::Replace, true), 70_u64, (2_u32, "a:b"), report);
    let column = Some(ColumnPos::new(-1, 2));
    import.4.lost.first = [column, None].map(|column| LostObject { column, reason: "its checksum".into() }).into();
    import.4.lost.more = 9;
    let mut batch = WriteBatch::default();
    batch.put(Family::Meta, keys::import_key(OVERWORLD, 0xdead_beef), record::encode(&import));
    batch.put(Family::Meta, keys::key_of_dimension(keys::REMOVAL, RUINS), Vec::new());
    batch.put(Family::Chunks, keys::chunk_key(OVERWORLD, LOST), LOST_CHUNK.to_vec());
    store.write(batch, Durability::Process).unwrap();
}
