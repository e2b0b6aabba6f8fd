//! Worlds of every earlier format can be read.
//!
//! A fixture is a world as text, with a line for each entry: family, key and value, the last two in hexadecimal digits.
//! `tests/fixtures/README.md` describes how to make one.

use super::*;
use bevy_terrane::block::{BlockComponentId, BlockComponentRecord, BlockRecord, BlockRegistry};
use bevy_terrane::space::ColumnArea;
use bevy_terrane::storage::{
    ChildRecord, Family, KeyValueStore, MemoryStore, RegistryLists, StoredPregeneration, ViewerRecord, WriteBatch,
};
use std::fmt::Write;
use std::time::Duration;

/// The formats with a fixture, including the one of new worlds.
const FORMATS: [u32; 1] = [1];
const NETHER: DimensionId = DimensionId(1);

fn fixture(format: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/world-format-{format}.txt"))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

fn bytes(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn read(text: &str) -> MemoryStore {
    let store = MemoryStore::new();
    let mut batch = WriteBatch::default();
    for line in text.lines() {
        let [family, key, value] = line.split(' ').collect::<Vec<_>>().try_into().expect("three words");
        let family = Family::ALL.into_iter().find(|of| of.name() == family).expect("a family");
        batch.put(family, bytes(key), bytes(value));
    }
    store.write(batch, Durability::Sync).unwrap();
    store
}

fn write(store: &MemoryStore) -> String {
    let mut text = String::new();
    for family in Family::ALL {
        for (key, value) in store.scan(family, &[]..&[0xff; 100], usize::MAX).unwrap() {
            _ = writeln!(text, "{family} {} {}", hexadecimal(&key), hexadecimal(&value));
        }
    }
    text
}

/// The content of the fixture of format 1. It never changes; a later format gets a function of its own.
fn content_of_format_1() -> (RegistryLists, SaveBatch) {
    let block = |name: &str, components: &[u64]| BlockRecord { name: name.into(), components: components.to_vec() };
    let lists = RegistryLists {
        blocks: vec![
            block("terrane:air", &[]),
            block("game:stairs[facing=north]", &[]),
            block("game:chest", &[0, 1 << 63 | 1]),
        ],
        components: vec![
            BlockComponentRecord { name: "game:lock".into(), version: 2, size: Some(4) },
            BlockComponentRecord { name: "game:items".into(), version: 0, size: None },
        ],
        entity_types: vec!["game::Mob".into()],
    };
    let (mut batch, types) = (SaveBatch::default(), types(&lists));
    let columns = [ColumnPos::new(0, 0), ColumnPos::new(-1, 70_000), ColumnPos::new(i64::MIN >> 4, 5)];
    for (number, column) in columns.into_iter().enumerate() {
        let mut seen = Column::new(column);
        let chunks = [
            (-4, Chunk::uniform(BlockId::new(1))),
            (0, Chunk::from_fn(|[x, y, z]| BlockId::new((x + 2 * y + 3 * z + number) as u32 % 3))),
            (19, Chunk::from_fn(|[x, y, z]| BlockId::new(if [x, y, z] == [1, 2, 3] { 1 } else { 0 }))),
        ];
        for (y, chunk) in chunks {
            let chunk = Arc::new(furnished(chunk, &types));
            seen.set_chunk(y, chunk.clone());
            batch.chunks.insert((OVERWORLD, column.chunk(y)), chunk);
        }
        let tick = |remaining| StoredBlockTick {
            block: column.chunk(0).min_block(),
            kind: format!("kind {remaining}").into(),
            remaining,
        };
        batch.block_ticks.insert((OVERWORLD, column.chunk(0)), vec![tick(1), tick(u64::MAX)]);
        batch.summaries.insert((OVERWORLD, column), Arc::new(ColumnSummary::new(&seen)));
        batch.tiles.insert((OVERWORLD, column.tile()), [1 << number; 64]);
        let id = Uuid::from_u128(number as u128 + 1);
        let viewer = ViewerRecord { radius: 3, generation_radius: 5, vertical_radius: 7 };
        let child = ChildRecord {
            parent: None,
            id: Some(Uuid::from_u128(100 + number as u128)),
            place: Some((OVERWORLD, BlockPos::new(1, 2, 3), [0.25; 3])),
            viewer: None,
            components: vec![("game::Hat".into(), vec![9])],
        };
        let entity = EntityRecord {
            id,
            dimension: OVERWORLD,
            block: column.chunk(1).min_block(),
            offset: [0.0, 0.5, 0.75],
            viewer: (number == 1).then_some(viewer),
            components: vec![("game::Mob".into(), vec![1, 2, 3]), ("game::Name".into(), Vec::new())],
            children: vec![child],
        };
        batch.entities.insert(id, Some(entity));
    }
    let area = ColumnArea::Square { center: ColumnPos::new(3, -4), radius: 50 };
    let (cursor, elapsed) = (Default::default(), Duration::from_millis(1_234));
    let job = StoredPregeneration { area, cursor, paused: true, elapsed };
    batch.pregenerations.insert((OVERWORLD, 6), Some(job));
    // In a sparse dimension air is stored too.
    batch.chunks.insert((NETHER, ChunkPos::new(1, 1 << 40, 1)), Arc::new(Chunk::uniform(BlockId::AIR)));
    (lists, batch)
}

fn types(lists: &RegistryLists) -> BlockRegistry {
    BlockRegistry::from_records(lists.blocks.clone(), lists.components.clone()).unwrap()
}

/// The chunk with different locks and items in its chests.
fn furnished(chunk: Chunk, types: &BlockRegistry) -> Chunk {
    let mut chunk = chunk.with_all_components(types).unwrap().unwrap_or(chunk);
    let (lock, items) = (BlockComponentId::new(0), BlockComponentId::new(1 << 63 | 1));
    for at in
        [[0, 0, 2], [1, 2, 0], [15, 15, 15]].into_iter().filter(|at| chunk.block(*at).index() == 2).collect::<Vec<_>>()
    {
        chunk.set_component(types, at, 0, lock, &[at[0] as u8, 2, 3, 4]).unwrap();
        chunk.set_component(types, at, 0, items, format!("items of {at:?}").as_bytes()).unwrap();
    }
    chunk
}

/// Makes a world with this content, in the format of new worlds.
fn make(lists: &RegistryLists, batch: &SaveBatch) -> MemoryStore {
    let store = Arc::new(MemoryStore::new());
    let world = WorldStore::from_store(store.clone()).unwrap();
    world.open_dimension("overworld", &origin()).unwrap();
    world.open_dimension("nether", &GeneratorIdentity { seed: u64::MAX, ..origin() }).unwrap();
    world.make_sparse(NETHER).unwrap();
    world.save_registry_lists(lists).unwrap();
    world.set_blocks(Arc::new(types(lists)));
    world.commit(batch, Durability::Sync).unwrap();
    for (dimension, pos) in batch.chunks.keys() {
        world.opacity(*dimension, pos.column().batch()).unwrap();
    }
    store.snapshot()
}

/// Checks that the world has exactly this content.
fn check(store: MemoryStore, lists: &RegistryLists, batch: &SaveBatch) {
    let world = WorldStore::from_store(Arc::new(store)).unwrap();
    assert_eq!(world.session(), 2);
    assert_eq!(&world.registry_lists().unwrap(), lists);
    assert_eq!(world.open_dimension("overworld", &origin()), Ok(OVERWORLD));
    let nether = GeneratorIdentity { seed: u64::MAX, ..origin() };
    assert_eq!(world.open_dimension("nether", &nether), Ok(NETHER));
    assert_eq!((world.is_sparse(OVERWORLD), world.is_sparse(NETHER)), (Ok(false), Ok(true)));
    for (&(dimension, column), summary) in &batch.summaries {
        let loaded = world.load_batch(dimension, column.batch(), &[column], -4..20).unwrap().remove(0);
        let chunks = batch.chunks.iter().filter(|((of, chunk), _)| *of == dimension && chunk.column() == column);
        let chunks: BTreeMap<_, _> = chunks.map(|((_, chunk), blocks)| (chunk.y, blocks)).collect();
        assert!(loaded.column.chunks().eq(chunks), "{column}");
        let here = batch.block_ticks.iter().filter(|((_, chunk), _)| chunk.column() == column);
        let ticks: Vec<_> = here.flat_map(|(_, ticks)| ticks.clone()).collect();
        assert_eq!(loaded.block_ticks, ticks, "{column}");
        let entities = batch.entities.values().flatten().filter(|entity| entity.column() == column);
        assert_eq!(loaded.entities, entities.cloned().collect::<Vec<_>>(), "{column}");
        let found = world.summaries(dimension, &[column]).unwrap().remove(0);
        assert_eq!(found.as_ref(), Some(&**summary), "{column}");
    }
    let viewers: Vec<_> = batch.entities.values().flatten().filter(|entity| entity.viewer.is_some()).cloned().collect();
    assert_eq!(world.viewers(OVERWORLD), Ok(viewers));
    let mut tiles = world.stored_tiles(OVERWORLD).unwrap();
    tiles.sort_unstable();
    let expected: Vec<_> = batch.tiles.iter().map(|((_, tile), masks)| (*tile, *masks)).collect();
    assert_eq!(tiles, expected);
    let jobs: Vec<_> = world.pregenerations(OVERWORLD).unwrap();
    let expected = batch.pregenerations.iter().map(|((_, number), job)| (*number, Ok(job.unwrap())));
    assert_eq!(jobs, expected.collect::<Vec<_>>());
    let heights = (1_i64 << 40..(1 << 40) + 2).collect();
    let air = world.load_part(NETHER, ColumnPos::new(1, 1), &heights).unwrap().column;
    assert!(air.is_loaded(1 << 40) && !air.is_loaded((1 << 40) + 1));
}

/// Promise, world format: Released world formats stay readable.
#[test]
fn a_world_of_each_format_is_read_in_full() {
    for format in FORMATS {
        let (lists, batch) = match format {
            1 => content_of_format_1(),
            _ => panic!("say what the fixture of format {format} holds"),
        };
        let text = fs::read_to_string(fixture(format)).expect("tests/fixtures/README.md says how to make it");
        assert!(text.len() < 200_000, "{} bytes are a lot", text.len());
        check(read(&text), &lists, &batch);
    }
}

/// Writes the fixture of the present format if `TERRANE_WRITE_FIXTURE` is set. Otherwise only checks that a
/// world can be read back from its text.
#[test]
fn a_fixture_of_new_worlds_can_be_made() {
    let (lists, batch) = content_of_format_1();
    let text = write(&make(&lists, &batch));
    check(read(&text), &lists, &batch);
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()).unwrap());
    let marker = fs::read_to_string(folder.path().join("world.terrane")).unwrap();
    let newest = FORMATS[FORMATS.len() - 1];
    assert!(marker.ends_with(&format!("format = {newest}\n")), "there is no fixture of the newest format: {marker}");
    if std::env::var_os("TERRANE_WRITE_FIXTURE").is_some() {
        fs::write(fixture(newest), text).unwrap();
    }
}
