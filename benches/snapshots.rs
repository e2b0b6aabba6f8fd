//! The workloads S of snapshots: `cargo bench --profile dev --all-features --bench snapshots`.
//!
//! The arena is terrain42: 24 x 24 columns, 384 blocks high. A filter as an argument selects workloads by name. Times are
//! wall-clock on one core. Each round goes over all columns, and operations on single columns are reported as minimum,
//! average, median, 95 % and maximum of all rounds.

#[path = "worlds/running_arena.rs"]
mod running_arena;
#[path = "worlds/terrain.rs"]
mod terrain;

use bevy_terrane::block::{BlockId, BlockRegistry};
use bevy_terrane::chunk::{Chunk, Column};
use bevy_terrane::snapshot::{BlockFilter, BlockTurns, Relocation, Snapshot, StoreOptions, StoredSnapshot, Turn};
use bevy_terrane::space::{BlockBox, BlockPos, ColumnPos, DimensionId};
use bevy_terrane::view::RestoreSnapshot;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use terrain::EDGE;

const ROUNDS: usize = 10;

type World = BTreeMap<ColumnPos, Column>;

/// The arena, in which every chunk has its own `Arc`, even of air, as if players had built everywhere.
fn terrain() -> World {
    let blocks = terrain::generate();
    let mut world = World::new();
    for pos in (0..EDGE).flat_map(|x| (0..EDGE).map(move |z| ColumnPos::new(x, z))) {
        let mut column = Column::new(pos);
        for chunk_y in 0..EDGE {
            column.set_chunk(chunk_y, Arc::new(terrain::chunk(&blocks, pos.chunk(chunk_y))));
        }
        world.insert(pos, column);
    }
    world
}

fn arena() -> BlockBox {
    let edge = EDGE * 16 - 1;
    BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(edge, edge, edge))
}

fn captured(world: &World) -> Snapshot {
    let mut snapshot = Snapshot::new(arena());
    for column in world.values() {
        snapshot.add_column(column, 1, Vec::new());
    }
    snapshot
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Prints one line for all columns of all rounds, and one for the rounds.
fn tell(name: &str, goal: f64, mut rounds: Vec<Vec<Duration>>) {
    let totals: Vec<f64> = rounds.iter().map(|round| milliseconds(round.iter().sum())).collect();
    let mut all: Vec<f64> = rounds.drain(..).flatten().map(milliseconds).collect();
    all.sort_by(f64::total_cmp);
    let at = |share: f64| all[((all.len() - 1) as f64 * share) as usize];
    println!(
        "{name}: a column: min {:.4} / avg {:.4} / median {:.4} / 95 % {:.4} / max {:.4} ms",
        all[0],
        all.iter().sum::<f64>() / all.len() as f64,
        at(0.5),
        at(0.95),
        at(1.0),
    );
    let best = totals.iter().copied().fold(f64::INFINITY, f64::min);
    let totals: Vec<String> = totals.iter().map(|total| format!("{total:.2}")).collect();
    println!("{name}: all columns: best {best:.2} ms (goal {goal}), rounds {} ms", totals.join(" "));
}

/// S1: captures the arena. The previous capture is dropped outside of the measured time.
fn capture(world: &World) {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let mut snapshot = Snapshot::new(arena());
        let mut round = Vec::with_capacity(world.len());
        for column in world.values() {
            let start = Instant::now();
            snapshot.add_column(column, 1, Vec::new());
            round.push(start.elapsed());
        }
        assert!(snapshot.is_complete());
        rounds.push(round);
    }
    tell("S1 capture", 1.0, rounds);
}

/// S2: restores a changed world to the captured one. The measured time includes dropping the replaced blocks.
fn restore(world: &World) {
    let snapshot = captured(world);
    let filter = BlockFilter::default();
    let one_in_hundred = |chunk: &mut Chunk| {
        for number in 0..41 {
            let cell = number * 97 + 11;
            let position = [cell >> 8 & 15, cell >> 4 & 15, cell & 15];
            chunk.set_block(position, BlockId::new(1 + (chunk.block(position).index() + 1) % 43));
        }
    };
    let everything = |chunk: &mut Chunk| {
        let before = chunk.clone();
        *chunk = Chunk::from_fn(|position| BlockId::new(1 + before.block(position).index()));
    };
    type Change<'a> = (&'a str, f64, i64, &'a dyn Fn(&mut Chunk));
    let changes: [Change; 3] = [
        ("S2 restore, nothing changed", 1.0, i64::MAX, &|_| {}),
        ("S2 restore, 1 % of 5 % of the chunks changed", 10.0, 20, &one_in_hundred),
        ("S2 restore, all changed", 100.0, 1, &everything),
    ];
    for (name, goal, one_in, change) in changes {
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            let mut now = world.clone();
            let mut changed = 0;
            let places = (0..EDGE.pow(3)).filter(|place| place % one_in == 7 % one_in && one_in < i64::MAX);
            for place in places {
                let pos = ColumnPos::new(place / EDGE / EDGE, place / EDGE % EDGE);
                if let Some(column) = now.get_mut(&pos) {
                    change(column.chunk_mut(place % EDGE));
                    changed += 1;
                }
            }
            let mut restored = 0;
            let mut round = Vec::with_capacity(now.len());
            for column in now.values_mut() {
                let start = Instant::now();
                let chunks: Vec<_> = snapshot.restored_chunks(column, &filter).collect();
                restored += chunks.len();
                chunks.into_iter().for_each(|(y, chunk)| drop(column.set_chunk(y, chunk)));
                round.push(start.elapsed());
            }
            assert_eq!(restored, changed);
            assert!(now.iter().all(|(pos, column)| *column == world[pos]));
            rounds.push(round);
        }
        tell(name, goal, rounds);
    }
}

/// The bytes of a snapshot's chunks that only the snapshot holds, and of those that are shared.
fn own_and_shared(snapshot: &Snapshot) -> [usize; 2] {
    let mut held: BTreeMap<*const Chunk, (usize, &Arc<Chunk>)> = BTreeMap::new();
    for (_, chunk) in snapshot.columns().flat_map(|(_, column)| column.chunks()) {
        held.entry(Arc::as_ptr(chunk)).or_insert((0, chunk)).0 += 1;
    }
    let mut bytes = [0; 2];
    for (count, chunk) in held.into_values() {
        bytes[usize::from(Arc::strong_count(chunk) > count)] += size_of::<Chunk>() + chunk.heap_bytes() + 16;
    }
    // Each chunk also takes an entry in a list.
    bytes[0] += snapshot.columns().map(|(_, column)| 150 + 16 * column.chunks().len()).sum::<usize>();
    bytes
}

/// S3: the memory of a captured arena, with and without the world.
fn memory(world: &World) {
    let copy: World = world
        .iter()
        .map(|(pos, column)| {
            let mut copy = Column::new(*pos);
            column.chunks().for_each(|(y, chunk)| drop(copy.set_chunk(y, Arc::new(Chunk::clone(chunk)))));
            (*pos, copy)
        })
        .collect();
    let snapshot = captured(&copy);
    let mega = |bytes: usize| bytes as f64 / 1e6;
    let [own, shared] = own_and_shared(&snapshot).map(mega);
    println!("S3 memory, the world holds it too: {own:.2} MB (goal 1), {shared:.2} MB shared");
    drop(copy);
    let [own, shared] = own_and_shared(&snapshot).map(mega);
    println!("S3 memory, alone: {own:.2} MB (goal 16), {shared:.2} MB shared");
}

/// Without a goal: places the arena elsewhere.
fn place(world: &World) {
    let snapshot = captured(world);
    let registry = terrain::registry();
    for (name, turn, to) in [
        ("by whole chunks", Turn::NONE, 1_600),
        ("by half a chunk", Turn::NONE, 8),
        ("by a quarter turn and a flip", Turn::FLIP_X.then(Turn::quarters(1)), 1_600),
    ] {
        let turns = BlockTurns::new(&registry, turn);
        let relocation = Relocation { turn, from: BlockPos::new(0, 0, 0), to: BlockPos::new(to, to, to) };
        let start = Instant::now();
        black_box(snapshot.placed(&relocation, &turns).expect("there is room"));
        println!("placed {name}: {:.2} ms in all", milliseconds(start.elapsed()));
    }
}

/// S6: restores the arena from disk in a running world with default budgets, at 20 ticks a second.
fn running(world: &World) {
    let mut arena = running_arena::RunningArena::new(arena(), &terrain::NAMES);
    let ids: Vec<BlockId> = terrain::NAMES.iter().map(|name| arena.id(name)).collect();
    let mut snapshot = Snapshot::new(self::arena());
    for (pos, column) in world {
        let mut translated = Column::new(*pos);
        for (y, chunk) in column.chunks() {
            let chunk = Chunk::from_fn(|position| ids[chunk.block(position).index() as usize]);
            translated.set_chunk(y, Arc::new(chunk));
        }
        snapshot.add_column(&translated, 1, Vec::new());
    }
    let (flat, took) = arena.capture();
    println!(
        "S6 capture of the running arena: {:.0} ms, of it {:.2} ms of work",
        milliseconds(took.wall),
        milliseconds(took.worked)
    );
    let folder = tempfile::tempdir().expect("a folder");
    let store =
        |name: &str, snapshot: &Snapshot| {
            let (path, of) = (folder.path().join(name), (DimensionId(1), snapshot));
            let options = StoreOptions { level: 6, sync: false };
            StoredSnapshot::create(&path, of, arena.blocks(), &options, BTreeMap::new(), &mut |_| {
                ControlFlow::Continue(())
            })
            .expect("there is room on the disk");
            path
        };
    let (built, flat) = (store("built", &snapshot), store("flat", &flat));
    let restore = |arena: &mut running_arena::RunningArena, what: &str, path: &Path| {
        // The time includes reading the index.
        let took = arena.restore(|dimension| {
            let stored = StoredSnapshot::open(path).expect("it was written");
            RestoreSnapshot::new(dimension, Arc::new(stored))
        });
        println!(
            "S6 restore, {what}: {:.0} ms from the order to the end (goal 500), of it {:.1} ms of work, {} chunks changed",
            milliseconds(took.wall),
            milliseconds(took.worked),
            took.chunks_changed
        );
    };
    for _ in 0..3 {
        restore(&mut arena, "all changed", &built);
        println!("S6 the longest tick then: {:.1} ms", milliseconds(arena.worst_tick()));
        restore(&mut arena, "nothing changed", &built);
        let columns: Vec<ColumnPos> = world.keys().copied().collect();
        // Changes one block in a hundred, in one chunk of twenty.
        arena.change(columns, |columns, column| {
            let place = column.x * EDGE + column.z;
            for y in (0..EDGE).filter(|y| (place * EDGE + y) % 20 == 7) {
                let corner = column.chunk(y).min_block();
                for number in 0..41 {
                    let cell = number * 97 + 11;
                    let place = corner.offset(cell >> 8 & 15, cell >> 4 & 15, cell & 15);
                    let now = columns.block(place).unwrap_or_default();
                    let _ = columns.set_block(place, BlockId::new(now.index() % 40 + 1));
                }
            }
        });
        restore(&mut arena, "1 % of 5 % of the chunks changed", &built);
        restore(&mut arena, "back to flat ground, all changed", &flat);
    }
}

/// The reading half of S6: the arena is stored, and read from disk again by one thread and by two.
fn stored(world: &World) {
    let snapshot = captured(world);
    let registry = terrain::registry();
    let folder = tempfile::tempdir().expect("a folder");
    for level in [1, 3, 6] {
        let path = folder.path().join(level.to_string());
        let options = StoreOptions { level, sync: false };
        let of = (DimensionId(1), &snapshot);
        let start = Instant::now();
        let stored =
            StoredSnapshot::create(&path, of, &registry, &options, BTreeMap::new(), &mut |_| ControlFlow::Continue(()));
        let stored = stored.expect("there is room on the disk");
        let mega = stored.bytes() as f64 / 1e6;
        println!("S6 stored, level {level}: {:.0} ms, {mega:.2} MB", milliseconds(start.elapsed()));
        let rounds = (0..ROUNDS).map(|_| {
            let read = |pos| {
                let start = Instant::now();
                black_box(stored.read_column(pos, &registry).expect("it is whole"));
                start.elapsed()
            };
            stored.columns().map(read).collect()
        });
        tell(&format!("S4 read a file a column, level {level}, one thread"), 110.0, rounds.collect());
        for threads in [1, 2] {
            let rounds = (0..ROUNDS).map(|_| {
                let start = Instant::now();
                let read = read(&path, &registry, threads);
                let time = milliseconds(start.elapsed());
                assert!(read.columns().eq(snapshot.columns()));
                time
            });
            let mut rounds: Vec<f64> = rounds.collect();
            rounds.sort_by(f64::total_cmp);
            println!(
                "S6 read, level {level}, threads {threads}: best {:.1}, median {:.1} ms",
                rounds[0],
                rounds[ROUNDS / 2]
            );
        }
    }
}

fn read(path: &Path, registry: &BlockRegistry, threads: usize) -> Snapshot {
    let stored = StoredSnapshot::open(path).expect("it was written");
    let columns: Vec<ColumnPos> = stored.columns().collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut read = Vec::new();
        while let Some(pos) = columns.get(next.fetch_add(1, Ordering::Relaxed)) {
            read.push((*pos, stored.read_column(*pos, registry).expect("it is whole").0));
        }
        read
    };
    let mut snapshot = stored.without_columns();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            for (pos, column) in thread.join().expect("nothing panics") {
                snapshot.insert_column(pos, column);
            }
        }
    });
    snapshot
}

fn main() {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with("--")).unwrap_or_default();
    let world = terrain();
    let workloads: [(&str, fn(&World)); 6] = [
        ("S1 capture", capture),
        ("S2 restore", restore),
        ("S3 memory", memory),
        ("placed", place),
        ("S6 running", running),
        ("S6 stored", stored),
    ];
    for (name, run) in workloads {
        if name.contains(&filter) {
            run(&world);
        }
    }
}
