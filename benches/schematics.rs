//! The workloads S4 and S5 of schematics: `cargo bench --profile dev --all-features --bench schematics`.
//!
//! S4 reads terrain42, 384 x 384 x 384 blocks, from version 3 into chunks; S5 writes it at two levels of compression. Each
//! runs several times; the table has the medians, the memory that they took at the most beyond what was there before, and
//! the goals.

// A copy of the project's shared workload, kept as it is so that figures stay comparable.
#[path = "worlds/terrain42.rs"]
#[allow(dead_code, missing_docs, clippy::all)]
mod terrain42;

use bevy_terrane::block::BlockId;
use bevy_terrane::chunk::Chunk;
use bevy_terrane::snapshot::schematic::{AIR, ReadOptions, Schematic, WriteOptions};
use bevy_terrane::space::ChunkPos;
use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::time::Instant;

const RUNS: usize = 7;

/// The system's allocator, and a count of what it holds.
struct Meter;

#[global_allocator]
static METER: Meter = Meter;

static HELD: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

fn count(bytes: isize) {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(held, Ordering::Relaxed);
}

// SAFETY: Every call is passed on to the system's allocator as it is, and its answer passed back.
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: The caller promises what the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: The caller promises what the system's allocator asks for.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: The caller promises what the system's allocator asks for.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// The terrain as chunks.
fn terrain() -> Schematic {
    let cells = terrain42::generate();
    let (width, height, length) = (terrain42::W, terrain42::H, terrain42::L);
    let mut schematic = Schematic::new([width as u32, height as u32, length as u32]);
    schematic.data_version = Some(3955);
    schematic.palette = terrain42::NAMES.map(str::to_owned).to_vec();
    assert_eq!(schematic.palette[0], AIR);
    for (x, y, z) in
        (0..width / 16).flat_map(|x| (0..height / 16).flat_map(move |y| (0..length / 16).map(move |z| (x, y, z))))
    {
        let chunk = Chunk::from_fn(|[cx, cy, cz]| {
            let at = (x * 16 + cx) + (z * 16 + cz) * width + (y * 16 + cy) * width * length;
            BlockId::new(cells[at].into())
        });
        schematic.blocks.set_chunk(ChunkPos::new(x as i64, y as i64, z as i64), chunk.into());
    }
    schematic
}

/// Milliseconds that this thread has had a processor, where the system tells: unlike the time that passes it does not
/// depend on what else the machine does.
fn processor_time() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|nanoseconds| nanoseconds.parse::<f64>().ok()).unwrap_or_default() / 1e6
}

/// Runs it several times, and prints the median times and the peak.
fn measure<T>(name: &str, goal: &str, mut run: impl FnMut() -> T) {
    let (mut times, mut busy) = (Vec::new(), Vec::new());
    let mut peak = 0;
    for _ in 0..RUNS {
        let before = HELD.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        let (start, before_busy) = (Instant::now(), processor_time());
        let made = black_box(run());
        times.push(start.elapsed().as_secs_f64() * 1e3);
        busy.push(processor_time() - before_busy);
        peak = peak.max(PEAK.load(Ordering::Relaxed) - before);
        drop(made);
    }
    times.sort_by(f64::total_cmp);
    busy.sort_by(f64::total_cmp);
    println!("| {name} | {:.0} | {:.0} | {:.1} | {goal} |", times[RUNS / 2], busy[RUNS / 2], peak as f64 / 1e6);
}

fn main() {
    // Only benchmarks are measured: `cargo test` runs this too.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let schematic = terrain();
    let file = |level| {
        let mut file = Vec::new();
        schematic.write(&mut file, &WriteOptions { version: 3, level }).expect("a schematic that can be written");
        file
    };
    let (small, quick) = (file(6), file(3));
    println!(
        "terrain42: {} chunks of {:.1} MB",
        schematic.blocks.chunks().count(),
        schematic.blocks.heap_bytes() as f64 / 1e6
    );
    println!("files: {:.2} MB at level 6, {:.2} MB at level 3", small.len() as f64 / 1e6, quick.len() as f64 / 1e6);
    let read = Schematic::read(&small[..], &ReadOptions::default()).expect("a file just written").0;
    assert!(read == schematic);
    drop(read);
    println!("| workload | ms | ms of a processor | peak MB | goal |\n|---|---|---|---|---|");
    measure("S4 read", "110 ms, 24 MB", || Schematic::read(&small[..], &ReadOptions::default()));
    for (level, goal) in [(6, "560 ms, 24 MB"), (3, "190 ms, 24 MB"), (1, "")] {
        measure(&format!("S5 write, level {level}"), goal, || {
            schematic.write(std::io::sink(), &WriteOptions { version: 3, level })
        });
    }
    let uniform = {
        let mut schematic = Schematic::new([1000; 3]);
        schematic.palette.push("minecraft:stone".to_owned());
        let stone = std::sync::Arc::new(Chunk::uniform(BlockId::new(1)));
        for (x, y, z) in (0..62).flat_map(|x| (0..62).flat_map(move |y| (0..62).map(move |z| (x, y, z)))) {
            schematic.blocks.set_chunk(ChunkPos::new(x, y, z), stone.clone());
        }
        schematic
    };
    let mut billion = Vec::new();
    uniform.write(&mut billion, &WriteOptions { version: 3, level: 1 }).expect("a schematic that can be written");
    drop(uniform);
    measure("read 10^9 blocks of stone", "32 MB", || Schematic::read(&billion[..], &ReadOptions::default()));
}
