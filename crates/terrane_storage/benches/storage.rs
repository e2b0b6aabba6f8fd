//! The workloads K of the store, and C5: `cargo bench --profile dev --all-features --bench storage`.
//!
//! Each is compared with its reference, the same bytes through plain RocksDB in the same run; a filter as an argument
//! chooses workloads by their names. One line a figure; times are wall-clock.

#[path = "../../../benches/worlds/terrain.rs"]
mod terrain;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use terrain::EDGE;
use terrane_storage::{
    ChunkGroup, Durability, Family, KeyValueStore, RocksStore, SaveBatch, StorageConfig, Tier, WorldStore, WriteBatch,
    keys,
};
use terrane_world::block::{BlockId, BlockRegistry};
use terrane_world::chunk::{Chunk, Column, ColumnSummary};
use terrane_world::space::{BatchPos, ChunkPos, ColumnPos, DimensionId, TilePos};

const DIMENSION: DimensionId = DimensionId(0);
/// Columns along an edge of the world of the workloads K.
const WIDE: i64 = 64;

/// Chunks by their places; air is left out, as the store does.
type Chunks = BTreeMap<ChunkPos, Arc<Chunk>>;

fn terrain() -> Chunks {
    let blocks = terrain::generate();
    let mut chunks = Chunks::new();
    for number in 0..EDGE.pow(3) {
        let pos = ChunkPos::new(number / EDGE / EDGE, number / EDGE % EDGE, number % EDGE);
        let chunk = terrain::chunk(&blocks, pos);
        if chunk.uniform_block() != Some(BlockId::AIR) {
            chunks.insert(pos, Arc::new(chunk));
        }
    }
    chunks
}

/// terrain42 repeated over 64 x 64 columns, each time shifted by a column.
fn wide(terrain: &Chunks) -> Chunks {
    let mut chunks = Chunks::new();
    for (pos, chunk) in terrain {
        for (tile_x, tile_z) in (0..3).flat_map(|x| (0..3).map(move |z| (x, z))) {
            let x = tile_x * EDGE + (pos.x + tile_z) % EDGE;
            let z = tile_z * EDGE + (pos.z + tile_x) % EDGE;
            if x < WIDE && z < WIDE {
                chunks.insert(ChunkPos::new(x, pos.y, z), chunk.clone());
            }
        }
    }
    chunks
}

/// The batches that the coordinator would hand over, 256 columns at a time: chunks, summaries for far views, and the graph.
fn saves(chunks: &Chunks) -> Vec<SaveBatch> {
    let mut columns: BTreeMap<BatchPos, BTreeMap<ColumnPos, Column>> = BTreeMap::new();
    for (pos, chunk) in chunks {
        let column = pos.column();
        let batch = columns.entry(column.batch()).or_default();
        batch.entry(column).or_insert_with(|| Column::new(column)).set_chunk(pos.y, chunk.clone());
    }
    let columns: Vec<_> = columns.into_values().collect();
    let mut graph: BTreeMap<(DimensionId, TilePos), [u16; 64]> = BTreeMap::new();
    let save = |batches: &[BTreeMap<ColumnPos, Column>]| {
        let mut save = SaveBatch::default();
        for (pos, column) in batches.iter().flatten() {
            save.chunks.extend(column.chunks().map(|(y, chunk)| ((DIMENSION, pos.chunk(y)), chunk.clone())));
            save.summaries.insert((DIMENSION, *pos), Arc::new(ColumnSummary::new(column)));
            let tile = (DIMENSION, pos.tile());
            let masks = graph.entry(tile).or_insert([0; 64]);
            masks[pos.batch().in_tile()] |= 1 << pos.in_batch();
            save.tiles.insert(tile, *masks);
        }
        save
    };
    columns.chunks(16).map(save).collect()
}

/// The types of blocks of terrain42.
fn blocks() -> Arc<BlockRegistry> {
    Arc::new(terrain::registry())
}

/// All stored entries by family, except those that a world has only once.
fn entries(path: &Path) -> Vec<(Family, Vec<u8>, Vec<u8>)> {
    let store = RocksStore::open_to_read(&path.join("db")).expect("it was just closed");
    let mut entries = Vec::new();
    for family in Family::ALL {
        let mut from = Vec::new();
        loop {
            let page = store.scan(family, &from..&[0xff; 40], 4_096).expect("it is whole");
            let Some((last, _)) = page.last() else { break };
            from = [last.as_slice(), &[0]].concat();
            let is_of_ground =
                |key: &[u8]| family != Family::Meta || [b"sum", b"sto"].contains(&&key[..3].try_into().expect("three"));
            entries
                .extend(page.into_iter().filter(|(key, _)| is_of_ground(key)).map(|(key, value)| (family, key, value)));
        }
    }
    entries
}

/// K1: all columns are saved. The reference writes the same values with as many writes.
fn save_all(terrain: &Chunks, folder: &Path) {
    let chunks = wide(terrain);
    let saves = saves(&chunks);
    let path = folder.join("k1");
    let world = open(&path);
    world.set_blocks(blocks());
    let (began, mut bytes) = (Instant::now(), 0);
    for save in &saves {
        bytes += world.commit(save, Durability::Process).expect("the disk has room").bytes;
    }
    let ours = began.elapsed().as_secs_f64();
    drop(world);
    let entries = entries(&path);
    let store = RocksStore::open(&folder.join("k1 raw"), true).expect("the folder is new");
    let mut batches: Vec<WriteBatch> = Vec::new();
    for entries in entries.chunks(entries.len().div_ceil(saves.len())) {
        let mut batch = WriteBatch::default();
        entries.iter().for_each(|(family, key, value)| batch.put(*family, key.clone(), value.clone()));
        batches.push(batch);
    }
    let (began, mut raw_bytes) = (Instant::now(), 0);
    for batch in batches {
        raw_bytes += batch.bytes();
        store.write(batch, Durability::Process).expect("the disk has room");
    }
    let raw = began.elapsed().as_secs_f64();
    println!(
        "K1 save {} columns, {} chunks, {:.0} MB: {:.0} MB/s, raw {:.0} MB of them with {:.0} MB/s: {:.0} % of it, goal 80 %",
        WIDE * WIDE,
        chunks.len(),
        bytes as f64 / 1e6,
        bytes as f64 / 1e6 / ours,
        raw_bytes as f64 / 1e6,
        raw_bytes as f64 / 1e6 / raw,
        100.0 * raw / ours
    );
}

/// Drops these files from the page cache; `false` if that is not possible.
fn forget_files(folder: &Path) -> bool {
    let forgets = |file: &std::fs::DirEntry| {
        let file = format!("if={}", file.path().display());
        let dd = Command::new("dd").args([&file, "iflag=nocache", "count=0", "status=none"]).status();
        dd.is_ok_and(|status| status.success())
    };
    let files: Vec<_> = std::fs::read_dir(folder).into_iter().flatten().flatten().collect();
    files.into_iter().filter(|file| !forgets(file)).count() == 0
}

/// K2: all columns are loaded, batch by batch. The reference reads the same ranges.
fn load_all(terrain: &Chunks, folder: &Path) {
    let chunks = wide(terrain);
    let path = folder.join("k2");
    let world = open(&path);
    save(&world, &chunks);
    drop(world);
    let bytes = sizes(&path)[0];
    let batches: BTreeSet<BatchPos> = chunks.keys().map(|pos| pos.column().batch()).collect();
    let load = |world: &WorldStore| {
        let began = Instant::now();
        let mut loaded = 0;
        for batch in &batches {
            let columns: Vec<_> = batch.columns().collect();
            let batch = world.load_batch(DIMENSION, *batch, &columns, 0..EDGE).expect("the world is whole");
            loaded += batch.iter().map(|stored| stored.column.chunks().len()).sum::<usize>();
        }
        assert_eq!(loaded, chunks.len());
        began.elapsed().as_secs_f64()
    };
    let scan = |store: &RocksStore| {
        let began = Instant::now();
        let mut read = 0;
        for batch in &batches {
            for y in 0..EDGE / 4 {
                let range = keys::chunk_cube_range(DIMENSION, batch.column(0).chunk(y * 4), 2);
                read += store.scan(Family::Chunks, &range.start..&range.end, 64).expect("it is whole").len();
            }
        }
        assert_eq!(read, chunks.len());
        began.elapsed().as_secs_f64()
    };
    let database = path.join("db");
    let is_cold = forget_files(&database);
    let store = RocksStore::open(&database, false).expect("it was just closed");
    let (raw_cold, raw_warm) = (scan(&store), scan(&store));
    drop(store);
    forget_files(&database);
    let world = open(&path);
    let (cold, warm) = (load(&world), load(&world));
    for (name, ours, raw) in [("cold", cold, raw_cold), ("warm", warm, raw_warm)] {
        println!(
            "K2 load {} columns, {bytes:.0} MB on disk, {name}: {:.0} columns a second, raw ranges {:.0}: {:.0} % of it, goal 80 %",
            WIDE * WIDE,
            (WIDE * WIDE) as f64 / ours,
            (WIDE * WIDE) as f64 / raw,
            100.0 * raw / ours
        );
    }
    if !is_cold {
        println!("K2 `dd` could not empty the system's cache: cold is only the database's own");
    }
}

/// K3: one batch of columns is loaded while another thread saves 800 changed chunks ten times a second.
fn load_while_saving(terrain: &Chunks, folder: &Path) {
    let chunks = wide(terrain);
    let world = open(&folder.join("k3"));
    world.set_blocks(blocks());
    saves(&chunks).iter().for_each(|save| drop(world.commit(save, Durability::Process).expect("the disk has room")));
    let batches: Vec<BatchPos> =
        chunks.keys().map(|pos| pos.column().batch()).collect::<BTreeSet<_>>().into_iter().collect();
    let places: Vec<_> = chunks.iter().collect();
    let load = || {
        let mut times = Vec::new();
        for number in 0..2_000 {
            let batch = batches[number * 101 % batches.len()];
            let columns: Vec<_> = batch.columns().collect();
            let began = Instant::now();
            assert_eq!(world.load_batch(DIMENSION, batch, &columns, 0..EDGE).expect("the world is whole").len(), 16);
            times.push(began.elapsed());
            // As a game does, and not all the time.
            std::thread::sleep(Duration::from_millis(2));
        }
        times.sort_unstable();
        times
    };
    let idle = load();
    let ends = AtomicBool::new(false);
    let (busy, saved) = std::thread::scope(|scope| {
        let saving = scope.spawn(|| {
            let mut saved = 0;
            while !ends.load(Ordering::Relaxed) {
                let began = Instant::now();
                let mut batch = SaveBatch::default();
                for number in saved..saved + 800 {
                    let (pos, chunk) = places[number * 7_919 % places.len()];
                    let mut chunk = Chunk::clone(chunk);
                    chunk.set_block(
                        [number % 16, number / 16 % 16, 3],
                        BlockId::new(1 + (number / places.len()) as u32 % 40),
                    );
                    batch.chunks.insert((DIMENSION, *pos), Arc::new(chunk));
                }
                saved += batch.chunks.len();
                world.commit(&batch, Durability::Process).expect("the disk has room");
                std::thread::sleep(Duration::from_millis(100).saturating_sub(began.elapsed()));
            }
            saved
        });
        let busy = load();
        ends.store(true, Ordering::Relaxed);
        (busy, saving.join().expect("it saves"))
    });
    let at = |times: &[Duration], percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    println!(
        "K3 load a batch: median {:.2} ms, p99 {:.2} ms; while {saved} chunks are saved {:.2} ms, {:.2} ms: p99 {:.1} x, goal 2 x",
        at(&idle, 50),
        at(&idle, 99),
        at(&busy, 50),
        at(&busy, 99),
        at(&busy, 99) / at(&idle, 99)
    );
}

fn open(path: &Path) -> WorldStore {
    WorldStore::open(&StorageConfig::Path(path.to_owned())).expect("the folder is new")
}

/// Saves everything, in batches of about as many chunks as an autosave has.
fn save(world: &WorldStore, chunks: &Chunks) {
    let all: Vec<_> = chunks.iter().collect();
    for chunks in all.chunks(8_192) {
        let chunks = chunks.iter().map(|(pos, chunk)| ((DIMENSION, **pos), (*chunk).clone())).collect();
        world.commit(&SaveBatch { chunks, ..SaveBatch::default() }, Durability::Process).expect("the disk has room");
    }
}

fn groups(chunks: &Chunks) -> BTreeSet<ChunkGroup> {
    chunks.keys().map(|pos| ChunkGroup::of(DIMENSION, *pos)).collect()
}

/// Moves everything into a tier, and gives the bytes that were written.
fn move_all(world: &WorldStore, chunks: &Chunks, tier: Tier) -> u64 {
    let mut moves: Vec<_> = groups(chunks).into_iter().map(|group| (group, tier)).collect();
    let mut written = 0;
    loop {
        let (report, left) = world.move_groups(&moves).expect("the disk has room");
        written += report.written;
        if left == 0 {
            return written;
        }
        // Moved groups are where they belong, and cost no more than a look.
        moves.retain(|(group, tier)| world.tier(*group).expect("the world is whole") != Some(*tier));
    }
}

/// The size of the families of chunks on disk, compacted.
fn sizes(path: &Path) -> [f64; 3] {
    let store = RocksStore::open(&path.join("db"), false).expect("it was just closed");
    Family::ALL.into_iter().for_each(|family| store.compact(family).expect("the disk has room"));
    let size = |family| store.approximate_family(family).expect("it is open").map_or(0, |size| size.bytes);
    [Family::Chunks, Family::WarmChunks, Family::ColdChunks].map(|family| size(family) as f64 / 1e6)
}

/// C5: the size of terrain42 on disk in each tier.
fn size_of_terrain(terrain: &Chunks, folder: &Path) {
    for (tier, goal) in [(Tier::Hot, "3.6"), (Tier::Warm, "-"), (Tier::Cold, "3.1")] {
        let path = folder.join(format!("c5 {tier}"));
        let world = open(&path);
        save(&world, terrain);
        move_all(&world, terrain, tier);
        drop(world);
        let [hot, warm, cold] = sizes(&path);
        println!(
            "C5 terrain42 {tier}: {:.2} MB (hot {hot:.2}, warm {warm:.2}, cold {cold:.2}), goal {goal} MB",
            hot + warm + cold
        );
    }
}

/// The stored values of all hot chunks, in the order of their keys.
fn values(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let store = RocksStore::open_to_read(&path.join("db")).expect("it can be read beside the world");
    let range = keys::dimension_range(keys::CHUNK, DIMENSION);
    store.scan(Family::Chunks, &range.start..&range.end, usize::MAX).expect("the world is whole")
}

/// The seconds in which plain RocksDB reads all these values in groups and writes them elsewhere.
fn raw_copy(values: &[(Vec<u8>, Vec<u8>)], folder: &Path) -> f64 {
    let store = RocksStore::open(&folder.join("raw"), true).expect("the folder is new");
    let mut batch = WriteBatch::default();
    values.iter().for_each(|(key, value)| batch.put(Family::Chunks, key.clone(), value.clone()));
    store.write(batch, Durability::Process).expect("the disk has room");
    let began = Instant::now();
    for values in values.chunks(4_096) {
        let mut batch = WriteBatch::default();
        for group in values.chunks(64) {
            let end = [&group[group.len() - 1].0[..], &[0]].concat();
            for (key, value) in store.scan(Family::Chunks, &group[0].0..&end, 64).expect("it was just written") {
                batch.delete(Family::Chunks, key.clone());
                batch.put(Family::Opacity, key, value);
            }
        }
        store.write(batch, Durability::Process).expect("the disk has room");
    }
    began.elapsed().as_secs_f64()
}

/// The times of loading squares of 5 x 5 columns, batch by batch, all over the world.
fn load_squares(world: &WorldStore, between: impl Fn(&WorldStore)) -> Vec<Duration> {
    let mut times = Vec::new();
    for number in 0..200_i64 {
        let (x, z) = (number * 37 % (WIDE - 5), number * 101 % (WIDE - 5));
        let mut batches: BTreeMap<BatchPos, Vec<ColumnPos>> = BTreeMap::new();
        for column in (0..25).map(|n| ColumnPos::new(x + n / 5, z + n % 5)) {
            batches.entry(column.batch()).or_default().push(column);
        }
        let began = Instant::now();
        for (batch, columns) in batches {
            let loaded = world.load_batch(DIMENSION, batch, &columns, 0..EDGE).expect("the world is whole");
            assert_eq!(loaded.len(), columns.len());
        }
        between(world);
        times.push(began.elapsed());
    }
    times.sort_unstable();
    times
}

fn tell_loads(name: &str, times: &[Duration], goal: &str) {
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    println!("K4 load 5x5 columns, {name}: median {:.2} ms, p99 {:.2} ms{goal}", at(50), at(99));
}

/// K4: everything becomes cold, and is loaded from there.
fn cold(terrain: &Chunks, folder: &Path) {
    let chunks = wide(terrain);
    let path = folder.join("k4");
    let world = open(&path);
    save(&world, &chunks);
    let values = values(&path);
    let bytes: usize = values.iter().map(|(key, value)| key.len() + value.len()).sum();
    let raw = raw_copy(&values, folder);
    drop(values);
    tell_loads("hot", &load_squares(&world, |_| {}), "");
    let began = Instant::now();
    let written = move_all(&world, &chunks, Tier::Cold);
    let ours = began.elapsed().as_secs_f64();
    let mega = bytes as f64 / 1e6;
    println!(
        "K4 demote {} chunks, {mega:.0} MB: {:.0} MB/s, raw read and write {:.0} MB/s: {:.0} % of it, goal 70 %; {:.1} MB written",
        chunks.len(),
        mega / ours,
        mega / raw,
        100.0 * raw / ours,
        written as f64 / 1e6
    );
    tell_loads("cold, read where it lies", &load_squares(&world, |_| {}), ", goal 40 ms");
    world.set_promotes_on_load(true);
    let written = std::cell::Cell::new(0);
    let promote = |world: &WorldStore| {
        while world.has_promotions() {
            written.set(written.get() + world.promote_loaded().expect("the disk has room").written);
        }
    };
    tell_loads("cold, promoted at the load", &load_squares(&world, promote), "");
    println!("K4 promotions at 200 loads wrote {:.1} MB, reading in place wrote nothing", written.get() as f64 / 1e6);
    drop(world);
    let [hot, warm, cold] = sizes(&path);
    println!("K4 sizes in the end: hot {hot:.1} MB, warm {warm:.1} MB, cold {cold:.1} MB");
}

fn main() {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with("--")).unwrap_or_default();
    let folder = tempfile::tempdir().expect("there is a place for temporary files");
    let terrain = terrain();
    let workloads: [(&str, fn(&Chunks, &Path)); 5] =
        [("C5", size_of_terrain), ("K1", save_all), ("K2", load_all), ("K3", load_while_saving), ("K4", cold)];
    for (name, run) in workloads {
        if name.contains(&filter) {
            run(&terrain, folder.path());
        }
    }
}
