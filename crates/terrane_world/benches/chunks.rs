//! The workloads C1 to C4 of the chunk codec: `cargo bench --profile dev --all-features --bench chunks`.
//!
//! Each is compared with its reference in the same run. After Criterion's own report comes one table: the medians,
//! their ratio, and the goal.

#[path = "../../../benches/shared/measure.rs"]
mod measure;
#[path = "../../../benches/worlds/terrain.rs"]
mod terrain;

use criterion::Criterion;
use measure::timed;
use std::hint::black_box;
use std::time::Duration;
use terrane_world::block::{BlockComponentId, BlockComponentLayout, BlockId, BlockLayout};
use terrane_world::chunk::Chunk;
use terrane_world::chunk::format::{EncodedChunk, decode, encode};

/// Chunks along an edge of terrain42.
const EDGE: usize = terrain::EDGE as usize;
/// Blocks in a chunk.
const VOLUME: usize = 4096;
/// Kinds of blocks in a built chunk, from [`FIRST_KIND`] on.
const KINDS: u32 = 48;
const FIRST_KIND: u32 = 100;
/// The kind with the component [`BOOK`]; a built chunk has 200 such blocks.
const SHELF: BlockId = BlockId::new(FIRST_KIND);
const SHELVES: usize = 200;
const BOOK: BlockComponentId = BlockComponentId::at(0, None);
const BOOK_BYTES: usize = 40;
const BUILT: usize = 1024;

/// Shelves have books, and nothing else has anything.
struct Books;

impl BlockLayout for Books {
    fn components(&self, block: BlockId) -> &[BlockComponentLayout] {
        if block == SHELF { &[BlockComponentLayout { id: BOOK, size: None }] } else { &[] }
    }
}

/// The result of one measurement, in nanoseconds per operation.
struct Line {
    name: String,
    reference: f64,
    ours: f64,
    goal: &'static str,
}

struct Bench {
    criterion: Criterion,
    lines: Vec<Line>,
}

impl Bench {
    /// Measures a workload and its reference, each with this number of operations per run.
    fn compare<A, B>(
        &mut self,
        group: &str,
        part: &str,
        goal: &'static str,
        operations: usize,
        reference: impl FnMut() -> A,
        ours: impl FnMut() -> B,
    ) {
        let reference = self.measure(group, &format!("{part}, reference"), operations, reference);
        let ours = self.measure(group, part, operations, ours);
        if let (Some(reference), Some(ours)) = (reference, ours) {
            self.lines.push(Line { name: format!("{group} {part}"), reference, ours, goal });
        }
    }

    /// The median of all runs; `None` if it was left out by a filter.
    fn measure<R>(&mut self, group: &str, part: &str, operations: usize, mut run: impl FnMut() -> R) -> Option<f64> {
        let runs = measure::runs(&mut self.criterion, group, part, operations, || {
            // The result is dropped after the time is taken.
            let (time, _result) = timed(|| black_box(run()));
            time
        });
        measure::median(&runs)
    }

    fn print_table(&self) {
        println!("\n{:<44} {:>14} {:>12} {:>8}  goal", "workload", "reference, ns", "ours, ns", "ratio");
        for Line { name, reference, ours, goal } in &self.lines {
            println!("{name:<44} {reference:>14.2} {ours:>12.2} {:>8.2}  {goal}", ours / reference);
        }
    }
}

/// Numbers that look random, the same ones in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 32) as usize * end) >> 32
    }

    fn position(&mut self) -> [usize; 3] {
        [self.below(16), self.below(16), self.below(16)]
    }
}

/// terrain42 as dense chunks, x slowest within each.
fn dense_terrain() -> Vec<[u16; VOLUME]> {
    let blocks = terrain::generate();
    let mut chunks = Vec::new();
    for number in 0..EDGE * EDGE * EDGE {
        let [x, y, z] = [number / EDGE / EDGE, number / EDGE % EDGE, number % EDGE];
        chunks.push(std::array::from_fn(|cell| {
            let at = [x * 16 + cell / 256, y * 16 + cell / 16 % 16, z * 16 + cell % 16];
            blocks[terrain::index(at)].into()
        }));
    }
    chunks
}

fn pack(dense: &[u16; VOLUME]) -> Chunk {
    Chunk::from_fn(|[x, y, z]| BlockId::new(dense[x * 256 + y * 16 + z].into()))
}

/// Chunks of 48 random kinds, 200 blocks of which carry a component.
fn built_chunks() -> Vec<Chunk> {
    let mut random = Random(1);
    let mut built = || {
        let mut chunk = Chunk::from_fn(|_| BlockId::new(FIRST_KIND + 1 + random.below(KINDS as usize - 1) as u32));
        for shelf in 0..SHELVES {
            let mut position = random.position();
            while chunk.block(position) == SHELF {
                position = random.position();
            }
            chunk.place_block(&Books, position, 0, SHELF).expect("layer 0 is always there");
            let book: [u8; BOOK_BYTES] = std::array::from_fn(|byte| (byte * shelf) as u8);
            chunk.set_component(&Books, position, 0, BOOK, &book).expect("shelves have books");
        }
        chunk
    };
    (0..BUILT).map(|_| built()).collect()
}

fn encoded(chunks: &[Chunk]) -> Vec<Vec<u8>> {
    let encoded = chunks.iter().map(|chunk| {
        let mut bytes = Vec::new();
        encode(&Books, chunk, &[], &mut bytes).expect("books are on shelves");
        bytes
    });
    encoded.collect()
}

/// Copies the same bytes, each chunk's at once.
fn copy(encoded: &[Vec<u8>], out: &mut Vec<u8>) {
    for bytes in encoded {
        out.clear();
        out.extend_from_slice(black_box(bytes));
        black_box(&out);
    }
}

/// C1: encode and decode, a chunk.
fn codec(bench: &mut Bench, terrain: &[Chunk], built: &[Chunk]) {
    let (terrain_bytes, built_bytes) = (encoded(terrain), encoded(built));
    let (mut out, mut copied) = (Vec::new(), Vec::new());
    bench.compare(
        "C1",
        "encode terrain42, a chunk",
        "1,500 ns",
        terrain.len(),
        || copy(&terrain_bytes, &mut copied),
        || {
            for chunk in terrain {
                out.clear();
                encode(&(), black_box(chunk), &[], &mut out).expect("it has no components");
                black_box(&out);
            }
        },
    );
    bench.compare(
        "C1",
        "decode terrain42, a chunk",
        "1,000 ns",
        terrain.len(),
        || copy(&terrain_bytes, &mut copied),
        || terrain_bytes.iter().for_each(|bytes| drop(black_box(decode(&(), black_box(bytes))))),
    );
    bench.compare(
        "C1",
        "encode built, a chunk",
        "",
        built.len(),
        || copy(&built_bytes, &mut copied),
        || {
            for chunk in built {
                out.clear();
                encode(&Books, black_box(chunk), &[], &mut out).expect("books are on shelves");
                black_box(&out);
            }
        },
    );
    bench.compare(
        "C1",
        "decode built, a chunk",
        "",
        built.len(),
        || copy(&built_bytes, &mut copied),
        || built_bytes.iter().for_each(|bytes| drop(black_box(decode(&Books, black_box(bytes))))),
    );
}

/// C2: a random block, in one chunk of the surface that stays in the cache, and in all of terrain42.
fn access(bench: &mut Bench, dense: &[[u16; VOLUME]], terrain: &[Chunk]) {
    let surface = surface(terrain);
    let mut random = Random(2);
    for (name, chunks) in [("one chunk", surface..surface + 1), ("all chunks", 0..terrain.len())] {
        let places: Vec<(usize, [usize; 3])> =
            (0..100_000).map(|_| (chunks.start + random.below(chunks.len()), random.position())).collect();
        bench.compare(
            "C2",
            &format!("get, {name}"),
            "1.5x",
            places.len(),
            || {
                let at = |(chunk, [x, y, z]): &(usize, [usize; 3])| dense[*chunk][x * 256 + y * 16 + z];
                places.iter().fold(0_u32, |sum, place| sum.wrapping_add(at(place).into()))
            },
            || {
                let at = |(chunk, position): &(usize, [usize; 3])| terrain[*chunk].block(*position);
                places.iter().fold(0_u32, |sum, place| sum.wrapping_add(at(place).index()))
            },
        );

        // Blocks of the chunk itself, as when a player digs and builds there.
        let edits: Vec<u16> = places.iter().map(|(chunk, _)| dense[*chunk][random.below(VOLUME)]).collect();
        let (mut dense, mut terrain) = (dense.to_vec(), terrain.to_vec());
        bench.compare(
            "C2",
            &format!("set, {name}"),
            "3x",
            places.len(),
            || {
                for ((chunk, [x, y, z]), block) in places.iter().zip(&edits) {
                    dense[*chunk][x * 256 + y * 16 + z] = *block;
                }
            },
            || {
                for ((chunk, position), block) in places.iter().zip(&edits) {
                    terrain[*chunk].set_block(*position, BlockId::new(u32::from(*block)));
                }
            },
        );
    }
}

/// C2: the same within [`Chunk::edit`]. Each edit makes as many calls as a chunk has blocks. Beginning and ending it counts too.
fn edits(bench: &mut Bench, dense: &[[u16; VOLUME]], terrain: &[Chunk]) {
    let surface = surface(terrain);
    let mut random = Random(4);
    for (name, chunks, times) in [("one chunk", surface..surface + 1, 24), ("all chunks", 0..terrain.len(), 1)] {
        let (before, mut chunks_now) = (&dense[chunks.clone()], terrain[chunks.clone()].to_vec());
        let mut dense = before.to_vec();
        let places: Vec<Vec<[usize; 3]>> =
            (0..times).map(|_| (0..VOLUME).map(|_| random.position()).collect()).collect();
        let operations = times * VOLUME * dense.len();
        bench.compare(
            "C2",
            &format!("get in an edit, {name}"),
            "1.5x",
            operations,
            || {
                let mut sum = 0_u32;
                for (places, blocks) in
                    places.iter().flat_map(|places| dense.iter().map(move |blocks| (places, blocks)))
                {
                    let at = |[x, y, z]: &[usize; 3]| u32::from(blocks[x * 256 + y * 16 + z]);
                    sum = places.iter().fold(sum, |sum, place| sum.wrapping_add(at(place)));
                }
                sum
            },
            || {
                let mut sum = 0_u32;
                for places in &places {
                    for chunk in &mut chunks_now {
                        let edit = chunk.edit();
                        sum = places.iter().fold(sum, |sum, place| sum.wrapping_add(edit.block(*place).index()));
                    }
                }
                sum
            },
        );
        bench.compare(
            "C2",
            &format!("set in an edit, {name}"),
            "3x",
            operations,
            || {
                for places in &places {
                    for (blocks, new) in dense.iter_mut().zip(before) {
                        for ([x, y, z], block) in places.iter().zip(new) {
                            blocks[x * 256 + y * 16 + z] = *block;
                        }
                    }
                }
            },
            || {
                for places in &places {
                    for (chunk, new) in chunks_now.iter_mut().zip(before) {
                        let mut edit = chunk.edit();
                        for (place, block) in places.iter().zip(new) {
                            edit.set_block(*place, BlockId::new(u32::from(*block)));
                        }
                    }
                }
            },
        );
    }
    let (mut copy, mut chunk) = ([0; VOLUME], terrain[surface].clone());
    bench.compare(
        "C2",
        "begin and end an edit, one chunk",
        "",
        1000,
        || (0..1000).for_each(|_| black_box(&mut copy).copy_from_slice(black_box(&dense[surface]))),
        || (0..1000).for_each(|_| drop(black_box(black_box(&mut chunk).edit()))),
    );
}

/// A chunk with many kinds of blocks.
fn surface(terrain: &[Chunk]) -> usize {
    terrain.iter().position(|chunk| chunk.palette().len() > 12).expect("terrain42 has a surface")
}

/// C3: one component of one block, from the encoded bytes.
fn one_component(bench: &mut Bench, built: &[Chunk]) {
    let bytes = encoded(built);
    let mut random = Random(3);
    let shelves: Vec<[usize; 3]> = built
        .iter()
        .map(|chunk| {
            let positions = std::iter::repeat_with(|| random.position());
            positions.into_iter().find(|position| chunk.block(*position) == SHELF).expect("there are 200")
        })
        .collect();
    bench.compare(
        "C3",
        "read one component, a chunk",
        "0.33x",
        built.len(),
        || {
            for (bytes, position) in bytes.iter().zip(&shelves) {
                let decoded = decode(&Books, black_box(bytes)).expect("it was just encoded");
                black_box(decoded.0.component(*position, 0, BOOK));
            }
        },
        || {
            for (bytes, position) in bytes.iter().zip(&shelves) {
                let chunk = EncodedChunk::new(black_box(bytes)).expect("it was just encoded");
                black_box(chunk.component(&Books, *position, 0, BOOK).expect("it was just encoded"));
            }
        },
    );
}

/// C4: the memory of terrain42, including the chunks themselves.
fn memory(terrain: &[Chunk]) {
    let megabytes = |bytes: usize| bytes as f64 / 1e6;
    let ours = size_of_val(terrain) + terrain.iter().map(Chunk::heap_bytes).sum::<usize>();
    let dense = terrain.len() * VOLUME * size_of::<u16>();
    println!("C4 memory of terrain42: {:.1} MB, dense {:.1} MB, goal 16 MB", megabytes(ours), megabytes(dense));
}

fn main() {
    let criterion = measure::criterion(Duration::from_secs(1), Duration::from_millis(300));
    let mut bench = Bench { criterion, lines: Vec::new() };
    let dense = dense_terrain();
    let terrain: Vec<Chunk> = dense.iter().map(pack).collect();
    let built = built_chunks();
    codec(&mut bench, &terrain, &built);
    access(&mut bench, &dense, &terrain);
    edits(&mut bench, &dense, &terrain);
    one_component(&mut bench, &built);
    bench.criterion.final_summary();
    bench.print_table();
    memory(&terrain);
}
