//! The workloads S4 and S5 of schematics: `cargo bench --profile dev --all-features --bench schematics`.
//!
//! S4 reads terrain42, 384 x 384 x 384 blocks, from version 3 into chunks; S5 writes it at two levels of compression. Each
//! runs several times; the table has the medians, their peak memory beyond that of the process, and
//! the goals.

// The bench does not use the function that measures the whole process.
#[allow(dead_code)]
#[path = "../../../tests/it/meter.rs"]
mod meter;
#[path = "../../../benches/shared/processor.rs"]
mod processor;
#[path = "../../../benches/worlds/terrain.rs"]
mod terrain;

use meter::peak_bytes;
use processor::processor_time;
use std::hint::black_box;
use std::time::Instant;
use terrane_world::block::BlockId;
use terrane_world::chunk::Chunk;
use terrane_world::snapshot::schematic::{AIR, ReadOptions, Schematic, WriteOptions};
use terrane_world::space::ChunkPos;

const RUNS: usize = 7;

/// Runs it several times, and prints the median times and the peak.
fn measure<T>(name: &str, goal: &str, mut run: impl FnMut() -> T) {
    let (mut times, mut busy) = (Vec::new(), Vec::new());
    let mut peak = 0;
    for _ in 0..RUNS {
        let mut made = None;
        let (start, before_busy) = (Instant::now(), processor_time());
        let taken = peak_bytes(|| made = Some(black_box(run())));
        times.push(start.elapsed().as_secs_f64() * 1e3);
        busy.push((processor_time() - before_busy).as_secs_f64() * 1e3);
        peak = peak.max(taken);
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
    let mut schematic = terrain::schematic();
    schematic.data_version = Some(3955);
    assert_eq!(schematic.palette[0], AIR);
    let file = |level| {
        let mut file = Vec::new();
        schematic.write(&mut file, &WriteOptions { version: 3, level }).expect("a schematic that can be written");
        file
    };
    let (small, quick) = (file(6), file(3));
    println!(
        "terrain42: {} chunks of {:.1} MB",
        schematic.blocks.chunks().count(),
        schematic.blocks.chunks().map(|(_, chunk)| size_of::<Chunk>() + chunk.heap_bytes()).sum::<usize>() as f64 / 1e6
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
