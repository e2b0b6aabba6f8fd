//! Group O, files of objects: `cargo bench --manifest-path benches/peers/Cargo.toml`.
//!
//! 10,000 objects of 4 to 32 KiB of chunk data, in an object store and in its alternatives. One data set has encoded chunks,
//! which every store compresses at the same level. The other has chunks that are already compressed, which every store keeps as
//! they are. All stores run in turns, and the table shows the medians. `open and read one` opens the file again each time; `read
//! one` reads each object once in a separate order, `read one again` a second time, when redb has it in its own cache. A rewrite
//! of a ZIP archive copies it. Writes that are synced one by one go to all stores in turns. Finally, the time for opening an
//! object store with 100,000 objects.

#[path = "../../worlds/terrain.rs"]
mod terrain;

use bevy_terrane::chunk::format::encode;
use bevy_terrane::object_store::{FILE_BLOCK_BYTES, ObjectStore, ObjectStoreOptions};
use bevy_terrane::simulation::SplitMix64;
use bevy_terrane::space::ChunkPos;
use flate2::Compression;
use flate2::read::ZlibEncoder;
use std::collections::BTreeMap;
use std::fs;
use std::hint::black_box;
use std::io::Read;
use std::path::Path;
use std::time::Instant;
use terrain::EDGE;
use terrane_peers::Store;
use terrane_peers::archive::Archive;
use terrane_peers::database::Rows;
use terrane_peers::objects::Objects;
use terrane_peers::tables::Tables;

const OBJECTS: usize = 10_000;
const MANY: usize = 100_000;
/// The number of writes that are synced one by one.
const SYNCED: usize = 300;
const ROUNDS: usize = 5;
const OPENS: usize = 15;

/// Keys with their bytes.
type Data = Vec<(String, Vec<u8>)>;
/// The measured times, by workload and then by store.
type Times = BTreeMap<(&'static str, &'static str), Vec<f64>>;
/// [`run`] for one store.
type Run = fn(&Path, &Data, bool, &mut Times) -> u64;

/// The encoded chunks of terrain42, column by column.
fn chunks() -> Vec<Vec<u8>> {
    let blocks = terrain::generate();
    let encode = |number: i64| {
        let (x, z, y) = (number / EDGE / EDGE, number / EDGE % EDGE, number % EDGE);
        let chunk = terrain::chunk(&blocks, ChunkPos::new(x, y, z));
        let mut bytes = Vec::new();
        encode(&(), &chunk, &[], &mut bytes).expect("it has no components");
        bytes
    };
    (0..EDGE.pow(3)).map(encode).collect()
}

/// Objects of random size, at least 4 KiB, each with neighbouring chunks.
fn objects(chunks: &[Vec<u8>], random: &mut SplitMix64) -> Data {
    let object = |number: usize| {
        let bytes = 4_096 + random.below(25 << 10) as usize;
        let first = random.below(chunks.len() as u32) as usize;
        let mut data = Vec::new();
        for chunk in chunks.iter().cycle().skip(first) {
            data.extend_from_slice(chunk);
            if data.len() >= bytes {
                break;
            }
        }
        (key(number), data)
    };
    (0..OBJECTS).map(object).collect()
}

fn key(number: usize) -> String {
    format!("chunk/{},{},{}/blocks", number as i64 % 50 - 25, number / 50 % 8, number as i64 / 400 - 12)
}

fn borrowed(data: &[(String, Vec<u8>)]) -> Vec<(&str, &[u8])> {
    data.iter().map(|(key, data)| (key.as_str(), &data[..])).collect()
}

/// Measures the time of `work` in microseconds.
fn time<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let began = Instant::now();
    let made = black_box(work());
    (began.elapsed().as_secs_f64() * 1e6, made)
}

/// The processor time of this thread in seconds. Unlike elapsed time, it does not depend on other load on the machine.
fn processor_time() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|nanoseconds| nanoseconds.parse::<f64>().ok()).unwrap_or_default() / 1e9
}

/// Runs all workloads other than the synced writes with one store. Returns the size of its file.
fn run<S: Store>(folder: &Path, data: &Data, packs: bool, times: &mut Times) -> u64 {
    let path = folder.join("file");
    let mut took = |workload, time: f64| times.entry((workload, S::NAME)).or_default().push(time);
    let all = borrowed(data);
    let busy = processor_time();
    let (passed, ()) = time(|| {
        let mut store = S::create(&path, packs);
        store.write(&all);
        store.close();
    });
    took("write all, s", passed / 1e6);
    took("write all, s of a processor", processor_time() - busy);
    let size = fs::metadata(&path).expect("a file").len();

    let mut random = SplitMix64::new(5);
    for _ in 0..OPENS {
        let (key, expected) = all[random.below(OBJECTS as u32) as usize];
        let (passed, (store, read)) = time(|| {
            let mut store = S::open(&path, packs);
            let read = store.read(key);
            (store, read)
        });
        assert!(read == expected);
        store.close();
        took("open and read one, ms", passed / 1e3);
    }
    let mut order: Vec<usize> = (0..OBJECTS).collect();
    (1..OBJECTS).rev().for_each(|place| order.swap(place, random.below(place as u32 + 1) as usize));
    let mut store = S::open(&path, packs);
    for workload in ["read one, us", "read one again, us"] {
        let mut each: Vec<f64> = Vec::new();
        for number in &order {
            let (passed, read) = time(|| store.read(all[*number].0));
            assert!(read == all[*number].1);
            each.push(passed);
        }
        took(workload, median(&mut each));
    }
    store.close();
    let mut store = S::open(&path, packs);
    let busy = processor_time();
    took("read all, s", time(|| all.iter().map(|(key, _)| store.read(key).len()).sum::<usize>()).0 / 1e6);
    took("read all, s of a processor", processor_time() - busy);

    let rewritten: Vec<_> =
        order.iter().take(OBJECTS / 10).map(|number| (all[*number].0, all[(*number + 1) % OBJECTS].1)).collect();
    let busy = processor_time();
    let (passed, ()) = time(|| {
        store.write(&rewritten);
        store.close();
    });
    took("rewrite 10 %, ms", passed / 1e3);
    took("rewrite 10 %, ms of a processor", (processor_time() - busy) * 1e3);
    clear(folder);
    size
}

/// Writes objects, each synced, to all stores that support it, in turns, because the time of a sync depends on other load.
fn write_synced(folder: &Path, data: &Data, packs: bool, times: &mut Times) {
    let all = borrowed(data);
    let mut objects = Objects::create(&folder.join("objects"), packs);
    let mut tables = Tables::create(&folder.join("tables"), packs);
    let mut rows = Rows::create(&folder.join("rows"), packs);
    for (workload, shift) in [("write one, synced, us", 0), ("rewrite one, synced, us", 1)] {
        for number in 0..SYNCED {
            let object = [(all[number].0, all[number + shift].1)];
            for turn in 0..3 {
                let (store, passed) = match (turn + number) % 3 {
                    0 => (Objects::NAME, time(|| objects.write(&object)).0),
                    1 => (Tables::NAME, time(|| tables.write(&object)).0),
                    _ => (Rows::NAME, time(|| rows.write(&object)).0),
                };
                times.entry((workload, store)).or_default().push(passed);
            }
        }
    }
    objects.close();
    tables.close();
    rows.close();
    clear(folder);
}

fn clear(folder: &Path) {
    for file in fs::read_dir(folder).expect("a folder") {
        fs::remove_file(file.expect("a file").path()).expect("the disk works");
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs all stores in turns, and prints a table of the medians.
fn compare(name: &str, data: &Data, packs: bool, folder: &Path) {
    let bytes: usize = data.iter().map(|(_, data)| data.len()).sum();
    println!(
        "\n{name}: {} objects of {:.1} KiB on average, {:.0} MB",
        data.len(),
        bytes as f64 / 1024.0 / data.len() as f64,
        bytes as f64 / 1e6
    );
    let (mut times, mut sizes) = (Times::new(), BTreeMap::new());
    for round in 0..ROUNDS {
        let stores: [(&str, Run); 4] = [
            (Objects::NAME, run::<Objects>),
            (Tables::NAME, run::<Tables>),
            (Rows::NAME, run::<Rows>),
            (Archive::NAME, run::<Archive>),
        ];
        for turn in 0..stores.len() {
            let (store, run) = stores[(turn + round) % stores.len()];
            sizes.insert(store, run(folder, data, packs, &mut times));
        }
        write_synced(folder, data, packs, &mut times);
    }
    let names = [Objects::NAME, Tables::NAME, Rows::NAME, Archive::NAME];
    println!("| | {} | of the best other | of ZIP | goal |\n|{}", names.join(" | "), "---|".repeat(names.len() + 4));
    let row = |workload: &str, figures: [Option<f64>; 4], goal: &str| {
        let cells = figures.map(|figure| figure.map_or("-".to_owned(), |figure| format!("{figure:.2}")));
        let best = figures[1..].iter().flatten().copied().fold(f64::INFINITY, f64::min);
        let ratio = |other: f64| figures[0].map_or("-".to_owned(), |ours| format!("{:.2}", ours / other));
        let of_zip = figures[3].map_or("-".to_owned(), ratio);
        println!("| {workload} | {} | {} | {of_zip} | {goal} |", cells.join(" | "), ratio(best));
    };
    for (workload, goal) in [
        ("write all, s", "1.5 of the best"),
        ("write all, s of a processor", "1.5 of the best"),
        ("write one, synced, us", "1.5 of the best"),
        ("rewrite one, synced, us", "1.5 of the best"),
        ("open and read one, ms", "1 of ZIP"),
        ("read one, us", "1 of the best"),
        ("read one again, us", ""),
        ("read all, s", ""),
        ("read all, s of a processor", ""),
        ("rewrite 10 %, ms", "1.5 of the best"),
        ("rewrite 10 %, ms of a processor", "1.5 of the best"),
    ] {
        row(workload, names.map(|store| times.get_mut(&(workload, store)).map(|times| median(times))), goal);
    }
    row("file, MB", names.map(|store| sizes.get(store).map(|size| *size as f64 / 1e6)), "1.7 of ZIP");
}

/// Measures opening an object store with many objects.
fn many(chunks: &[Vec<u8>], folder: &Path) {
    let path = folder.join("many");
    let options = ObjectStoreOptions { sync: false, ..ObjectStoreOptions::default() };
    let mut store = ObjectStore::create(&path, "many 1", options).expect("a new file");
    for number in 0..MANY {
        store.write(&key(number), number as u64 % 9, &chunks[number % chunks.len()]).expect("the disk has room");
    }
    store.sync().expect("the disk works");
    let (written, ()) = time(|| store.write_index().expect("the disk works"));
    store.close().expect("the disk works");
    let bytes = fs::read(&path).expect("a file");
    // A block's trailer contains its kind.
    let blocks = bytes.chunks(FILE_BLOCK_BYTES).filter(|block| block[4_059] == 1).count();
    let mut opened: Vec<f64> =
        (0..OPENS).map(|_| time(|| ObjectStore::open(&path, "many 1", options).expect("a store").len()).0).collect();
    // Without the index.
    let mut lost = bytes;
    lost[4_059] = 0;
    fs::write(&path, &lost).expect("the disk has room");
    let (scanned, store) = time(|| ObjectStore::open_to_read(&path, "many 1").expect("a store"));
    assert!(store.len() == MANY && store.recovery().is_some());
    println!(
        "\n{MANY} objects in {:.0} MB: opened in {:.1} ms, the index of {:.2} MB written in {:.0} ms, made anew in {:.0} ms",
        lost.len() as f64 / 1e6,
        median(&mut opened) / 1e3,
        (blocks * FILE_BLOCK_BYTES) as f64 / 1e6,
        written / 1e3,
        scanned / 1e3
    );
    fs::remove_file(&path).expect("the disk works");
}

fn main() {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with("--")).unwrap_or_default();
    let folder = tempfile::tempdir().expect("a place for temporary files");
    let chunks = chunks();
    let pack = |chunk: &Vec<u8>| {
        let mut packed = Vec::new();
        ZlibEncoder::new(&chunk[..], Compression::new(6)).read_to_end(&mut packed).expect("memory");
        packed
    };
    let packed: Vec<Vec<u8>> = chunks.iter().map(pack).collect();
    let mut random = SplitMix64::new(42);
    for (name, chunks, packs) in [("chunks", &chunks, true), ("packed chunks", &packed, false)] {
        if name.starts_with(&filter) {
            compare(name, &objects(chunks, &mut random), packs, folder.path());
        }
    }
    if "many".starts_with(&filter) {
        many(&chunks, folder.path());
    }
}
