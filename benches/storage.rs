//! The workloads K of the store, and C5: `cargo bench --profile dev --all-features --bench storage`.
//!
//! Each is measured beside its reference, the same bytes through plain RocksDB in the same run; a filter as an argument
//! chooses workloads by their names. One line a figure; times are wall-clock.

// A copy of the project's shared workload, kept as it is so that figures stay comparable.
#[path = "worlds/terrain42.rs"]
#[allow(dead_code, missing_docs, clippy::all)]
mod terrain42;

use bevy_terrane::block::BlockId;
use bevy_terrane::chunk::Chunk;
use bevy_terrane::space::{BatchPos, ChunkPos, ColumnPos, DimensionId};
use bevy_terrane::storage::{
    ChunkGroup, Durability, Family, KeyValueStore, Promotion, RocksStore, SaveBatch, StorageConfig, Tier, WorldStore,
    WriteBatch,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const DIMENSION: DimensionId = DimensionId(0);
/// Chunks along an edge of terrain42.
const EDGE: i64 = terrain42::W as i64 / 16;
/// Columns along an edge of the world of the workloads K.
const WIDE: i64 = 64;

/// Chunks by their places; air is left out, as the store does.
type Chunks = BTreeMap<ChunkPos, Arc<Chunk>>;

fn terrain() -> Chunks {
    let blocks = terrain42::generate();
    let mut chunks = Chunks::new();
    for number in 0..EDGE.pow(3) {
        let pos = ChunkPos::new(number / EDGE / EDGE, number / EDGE % EDGE, number % EDGE);
        let chunk = Chunk::from_fn(|[x, y, z]| {
            let at = |chunk: i64, cell: usize| chunk as usize * 16 + cell;
            let (x, y, z) = (at(pos.x, x), at(pos.y, y), at(pos.z, z));
            BlockId::new(u32::from(blocks[x + z * terrain42::W + y * terrain42::W * terrain42::L]))
        });
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
        // What was moved is where it belongs, and costs no more than a look.
        moves.retain(|(group, tier)| world.tier(*group).expect("the world is whole") != Some(*tier));
    }
}

/// What the families of chunks take on disk, everything compacted.
fn sizes(path: &Path) -> [f64; 3] {
    let store = RocksStore::open(&path.join("db"), false).expect("it was just closed");
    Family::ALL.into_iter().for_each(|family| store.compact(family).expect("the disk has room"));
    let size = |family| store.approximate_family(family).expect("it is open").map_or(0, |size| size.bytes);
    [Family::Chunks, Family::WarmChunks, Family::ColdChunks].map(|family| size(family) as f64 / 1e6)
}

/// C5: what terrain42 takes on disk in each tier.
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

/// The stored values of all chunks, in the order of their keys.
fn values(world: &WorldStore) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut values = Vec::new();
    let visited = world.visit_chunks(|_, chunk| {
        let (dimension, pos, value) = chunk.expect("the world is whole");
        values.push((bevy_terrane::storage::keys::chunk_key(dimension, pos).to_vec(), value.to_vec()));
        std::ops::ControlFlow::Continue(())
    });
    assert!(visited.expect("the world is whole").is_continue());
    values.sort_unstable();
    values
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
    let values = values(&world);
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
    world.set_promotion(Promotion::OnLoad);
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
    let workloads: [(&str, fn(&Chunks, &Path)); 2] = [("C5", size_of_terrain), ("K4", cold)];
    for (name, run) in workloads {
        if name.contains(&filter) {
            run(&terrain, folder.path());
        }
    }
}
