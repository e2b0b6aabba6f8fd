//! The time of an object store to write, rewrite, open and read 10,000 objects of 1 to 8 KiB. The bench `objects` in
//! `benches/peers` compares it with other crates.

use std::hint::black_box;
use std::time::{Duration, Instant};
use terrane_objects::{ObjectStore, ObjectStoreOptions};

const OBJECTS: usize = 10_000;
/// Writes that are synced, and reads.
const SINGLE: usize = 200;

/// The bytes of an object: half of them are random, so that they can be compressed to about that.
fn object(number: usize) -> Vec<u8> {
    let mut state = number as u64 + 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let blocks = 64 + random() as usize % 448;
    (0..blocks).flat_map(|block| if block % 2 == 0 { random().to_le_bytes() } else { [7; 8] }.repeat(2)).collect()
}

fn key(number: usize) -> String {
    format!("chunk/{},{}", number % 100, number / 100)
}

fn main() {
    let folder = tempfile::tempdir().expect("there is a place for temporary files");
    let path = folder.path().join("bench.objects");
    let objects: Vec<(String, Vec<u8>)> = (0..OBJECTS).map(|number| (key(number), object(number))).collect();
    let options = |sync| ObjectStoreOptions { sync, ..ObjectStoreOptions::default() };
    let tell = |what: &str, took: Duration, count: usize| {
        println!("{what:<20} {:>10.1} us each, {:>8.3} s", took.as_secs_f64() * 1e6 / count as f64, took.as_secs_f64());
    };

    let start = Instant::now();
    let mut store = ObjectStore::create(&path, "bench 1", options(false)).expect("the folder is empty");
    for (key, data) in &objects {
        store.write(key, 1, data).expect("it is written");
    }
    store.close().expect("it is synced");
    tell("write all", start.elapsed(), OBJECTS);

    let start = Instant::now();
    let mut store = ObjectStore::open(&path, "bench 1", options(false)).expect("it is there");
    black_box(store.read(&objects[0].0).expect("it is whole"));
    tell("open and first read", start.elapsed(), 1);

    let start = Instant::now();
    for (key, data) in objects.iter().step_by(10) {
        store.write(key, 2, data).expect("it is written");
    }
    store.sync().expect("it is synced");
    tell("rewrite a tenth", start.elapsed(), OBJECTS / 10);

    let start = Instant::now();
    for (key, _) in objects.iter().cycle().step_by(7_919).take(SINGLE) {
        black_box(store.read(key).expect("it is whole").expect("it is there"));
    }
    tell("read one", start.elapsed(), SINGLE);
    store.close().expect("it is synced");

    let mut store = ObjectStore::open(&path, "bench 1", options(true)).expect("it is there");
    let start = Instant::now();
    for (key, data) in &objects[..SINGLE] {
        store.write(key, 3, data).expect("it is written");
    }
    tell("write one, synced", start.elapsed(), SINGLE);
    println!("{:.1} MB in the file", store.size() as f64 / 1e6);
}
