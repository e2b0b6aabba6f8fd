//! N: what servers ask of their database. `cargo bench --all-features --bench servers` prints the figures; an argument names the run.
//!
//! 20 players on each server walk up and down 160 blocks of flat ground, at 8 blocks a second with a radius of 4 columns, and place a
//! block every two seconds. Each is alone, 6 plots away from the next, so each has a region of its own. All ground is generated in the
//! first 45 seconds; columns that they leave are evicted, and loaded when they come back. The world is saved every five seconds, the
//! default. The figures are of the 40 seconds after that.
//!
//! NR is one server on RocksDB; N1, N2 and N3 are one, two and three servers on PostgreSQL, all on this machine and in one process.
//!
//! N4 is the handover. Beside the players of N2, the first server has 100 camps, each of 489 columns around an entity in the middle of a
//! plot, and the second one has two plots near each of them. A viewer of the second server in the plot between makes it one territory,
//! which the second server gets. Measured is the time from that viewer to the first tick of the camp's entity there, and how long any
//! region of a player did not tick meanwhile.

#[path = "shared/choose.rs"]
mod choose;

use bevy_terrane::prelude::*;
use bevy_terrane::storage::{
    Durability, Family, KeyValue, KeyValueStore, Read, RocksStore, StorageConfig, StoreError, WriteBatch,
};
use bevy_terrane::testing::{flat, headless, spawn_in_region, start};
use bevy_terrane::view::WorldStatistics;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use terrane_postgres::PostgresStore;
use terrane_postgres::server::{PostgresServer, Syncing};

const PLAYERS: i64 = 20;
const WARM_UP: Duration = Duration::from_secs(45);
const MEASURED: Duration = Duration::from_secs(40);
/// Blocks between two players.
const APART: i64 = 6 * 512;
/// The length of a way in blocks, and the distance of a tick.
const WAY: f32 = 160.0;
const STEP: f32 = 0.4;

/// A player that walks up and down.
#[derive(Component, Clone)]
struct Walker {
    home: BlockPos,
    ticks: u64,
}

fn walk(types: Res<BlockTypes>, mut blocks: RegionBlocks, mut walkers: Query<(&mut Walker, &mut Position)>) {
    let stone = types.id("terrane:stone").unwrap_or(BlockId::AIR);
    for (mut walker, mut position) in &mut walkers {
        walker.ticks += 1;
        let way = walker.ticks as f32 * STEP % (2.0 * WAY);
        let along = if way < WAY { way } else { 2.0 * WAY - way };
        let block = BlockPos::new(walker.home.x + along as i64, walker.home.y, walker.home.z);
        position.set_if_neq(Position::new(position.dimension, block));
        if walker.ticks.is_multiple_of(40) {
            // Another height in each lap, so that a block changes each time.
            let place = BlockPos::new(block.x, 8 + (walker.ticks / 800) as i64 % 8, block.z);
            let _ = blocks.set_block(place, stone);
        }
    }
}

/// What was asked of a store.
#[derive(Clone, Default)]
struct Counts {
    commits: u64,
    /// Calls that read, each a round trip to a database.
    reads: u64,
    /// Rows and bytes written, and rows and bytes read, by kind.
    kinds: BTreeMap<String, [u64; 4]>,
}

impl Counts {
    fn count(&mut self, family: Family, key: &[u8], value: usize, way: usize) {
        let kind = match family {
            // The prefix of the key says what is there.
            Family::Meta => {
                let end = key.iter().position(|byte| *byte == b':').unwrap_or(key.len());
                String::from_utf8_lossy(&key[..end]).into_owned()
            }
            family => format!("{family:?}").to_lowercase(),
        };
        let counts = self.kinds.entry(kind).or_default();
        counts[way] += 1;
        counts[way + 1] += (key.len() + value) as u64;
    }

    fn count_read(&mut self, family: Family, found: &[KeyValue]) {
        found.iter().for_each(|(key, value)| self.count(family, key, value.len(), 2));
    }

    fn since(mut self, before: &Self) -> Self {
        self.commits -= before.commits;
        self.reads -= before.reads;
        for (kind, counts) in &mut self.kinds {
            let before = before.kinds.get(kind).copied().unwrap_or_default();
            (0..4).for_each(|at| counts[at] -= before[at]);
        }
        self
    }
}

/// A store that counts.
struct Counted {
    store: Arc<dyn KeyValueStore>,
    counts: Arc<Mutex<Counts>>,
}

impl KeyValueStore for Counted {
    fn path(&self) -> &Path {
        self.store.path()
    }

    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let found = self.store.get(family, key)?;
        let mut counts = self.counts.lock().unwrap();
        counts.reads += 1;
        found.iter().for_each(|value| counts.count(family, key, value.len(), 2));
        Ok(found)
    }

    fn multi_get(&self, family: Family, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let found = self.store.multi_get(family, keys)?;
        let mut counts = self.counts.lock().unwrap();
        counts.reads += 1;
        for (key, value) in keys.iter().zip(&found) {
            value.iter().for_each(|value| counts.count(family, key, value.len(), 2));
        }
        Ok(found)
    }

    fn scan(&self, family: Family, range: Range<&[u8]>, limit: usize) -> Result<Vec<KeyValue>, StoreError> {
        let found = self.store.scan(family, range, limit)?;
        let mut counts = self.counts.lock().unwrap();
        counts.reads += 1;
        counts.count_read(family, &found);
        Ok(found)
    }

    fn read(&self, reads: &[Read]) -> Result<Vec<Vec<KeyValue>>, StoreError> {
        let found = self.store.read(reads)?;
        let mut counts = self.counts.lock().unwrap();
        counts.reads += 1;
        for (read, found) in reads.iter().zip(&found) {
            let (Read::Keys(family, _) | Read::Range(family, ..)) = read;
            counts.count_read(*family, found);
        }
        Ok(found)
    }

    fn write(&self, batch: WriteBatch, durability: Durability) -> Result<(), StoreError> {
        let mut counts = self.counts.lock().unwrap();
        counts.commits += 1;
        for change in batch.changes() {
            counts.count(change.family, &change.key, change.value.as_ref().map_or(0, Vec::len), 0);
        }
        drop(counts);
        self.store.write(batch, durability)
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.store.sync()
    }
}

/// What the servers of a run did meanwhile.
struct Figures {
    counts: Counts,
    loaded: u64,
    generated: u64,
    slowest_tps: f64,
}

/// Runs servers on these storages, each on a thread with its players, and measures them together.
fn measure(storages: Vec<StorageConfig>, counts: Arc<Mutex<Counts>>) -> Figures {
    let barrier = Arc::new(Barrier::new(storages.len() + 1));
    let servers: Vec<_> = storages
        .into_iter()
        .enumerate()
        .map(|(number, storage)| {
            let barrier = barrier.clone();
            thread::spawn(move || serve(number, storage, &barrier))
        })
        .collect();
    barrier.wait();
    let before = counts.lock().unwrap().clone();
    barrier.wait();
    let counts = counts.lock().unwrap().clone().since(&before);
    let done: Vec<_> = servers.into_iter().map(|server| server.join().expect("a server")).collect();
    Figures {
        counts,
        loaded: done.iter().map(|(loaded, ..)| loaded).sum(),
        generated: done.iter().map(|(_, generated, _)| generated).sum(),
        slowest_tps: done.iter().map(|(.., tps)| *tps).fold(f64::INFINITY, f64::min),
    }
}

/// A server with its players.
fn server(number: usize, storage: StorageConfig) -> (App, DimensionId) {
    let mut app = headless(TerranePlugin { storage, ..default() });
    app.register_region_component::<Walker>().register_saved_component::<Camp>().add_region_plugins(move |region| {
        region.insert_resource(Server(number)).add_systems(RegionTick, (walk, note_ticks));
    });
    let dimension = flat(&mut app);
    start(&mut app);
    for player in 0..PLAYERS {
        let home = BlockPos::new(player * APART + 100, 4, number as i64 * APART + 256);
        let walker = Walker { home, ticks: player as u64 * 40 };
        spawn_in_region(&mut app, dimension, home, (walker, Viewer::new().with_radius(4)));
    }
    (app, dimension)
}

/// Columns loaded and generated while it was measured, and the slowest region's TPS at its end.
fn serve(number: usize, storage: StorageConfig, barrier: &Barrier) -> (u64, u64, f64) {
    let (mut app, _) = server(number, storage);
    let mut run = |time: Duration| {
        let end = Instant::now() + time;
        while Instant::now() < end {
            app.update();
            thread::sleep(Duration::from_millis(20));
        }
        let statistics = app.world().resource::<WorldStatistics>();
        (statistics.loaded, statistics.generated, statistics.slowest_tps().unwrap_or_default())
    };
    let (loaded, generated, _) = run(WARM_UP);
    barrier.wait();
    let (loaded_then, generated_then, tps) = run(MEASURED);
    barrier.wait();
    (loaded_then - loaded, generated_then - generated, tps)
}

fn print(name: &str, servers: usize, figures: &Figures) {
    let Figures { counts, loaded, generated, slowest_tps } = figures;
    let rate = |count: u64| count as f64 / MEASURED.as_secs_f64();
    let players = servers as i64 * PLAYERS;
    println!(
        "{name} servers: {servers}, players: {players}, {:.1} commits, {:.1} reads, {:.1} columns loaded, {:.1} generated a second; \
         slowest region {slowest_tps:.1} TPS",
        rate(counts.commits),
        rate(counts.reads),
        rate(*loaded),
        rate(*generated)
    );
    println!(
        "{name}   {:12} {:>14} {:>14} {:>14} {:>14}",
        "a second", "rows written", "bytes written", "rows read", "bytes read"
    );
    let mut all = [0; 4];
    for (kind, counts) in &counts.kinds {
        (0..4).for_each(|at| all[at] += counts[at]);
        if *counts != [0; 4] {
            print_rates(name, kind, *counts);
        }
    }
    print_rates(name, "all", all);
}

fn print_rates(name: &str, kind: &str, counts: [u64; 4]) {
    let [a, b, c, d] = counts.map(|count| count as f64 / MEASURED.as_secs_f64());
    println!("{name}   {kind:12} {a:>14.1} {b:>14.0} {c:>14.1} {d:>14.0}");
}

/// An entity in the middle of a camp.
#[derive(Component, Clone, Serialize, Deserialize, TypePath)]
struct Camp(i64);

/// The number of a server.
#[derive(Resource, Clone, Copy)]
struct Server(usize);

const CAMPS: i64 = 100;
/// The plots from a camp to the next.
const CAMP_DISTANCE: i64 = 8;

/// When camps first ticked on the second server.
static ARRIVED: Mutex<BTreeMap<i64, Instant>> = Mutex::new(BTreeMap::new());
/// For each player, when its region ticked last, its ticks, and its longest pause since the count began.
static TICKED: Mutex<BTreeMap<(usize, i64), (Instant, u64, Duration)>> = Mutex::new(BTreeMap::new());

fn note_ticks(server: Res<Server>, camps: Query<&Camp>, walkers: Query<&Walker>) {
    let now = Instant::now();
    for Camp(number) in camps.iter().filter(|_| server.0 == 1) {
        ARRIVED.lock().unwrap().entry(*number).or_insert(now);
    }
    for walker in &walkers {
        let mut ticked = TICKED.lock().unwrap();
        let (last, ticks, longest) = ticked.entry((server.0, walker.home.x)).or_insert((now, 0, Duration::ZERO));
        *longest = (*longest).max(now - *last);
        (*last, *ticks) = (now, *ticks + 1);
    }
}

/// The middle of a plot on the way from a camp to the next.
fn plot(camp: i64, plots: i64) -> BlockPos {
    BlockPos::new((camp * CAMP_DISTANCE + plots) * 512 + 256, 4, 40 * 512 + 256)
}

fn handover() {
    let database = PostgresServer::start(Syncing::On).expect("PostgreSQL");
    let storage = |number: u8| {
        let store = PostgresStore::open(&format!("{}#world", database.address())).expect("a database");
        StorageConfig::Shared { store: Arc::new(store), address: vec![number] }
    };
    let (ready, is_over) = (Barrier::new(3), AtomicBool::new(false));
    let (wish, wishes) = channel::<BlockPos>();
    let (first, second) = (storage(0), storage(1));
    let mut took = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| serve_camps(0, first, None, &ready, &is_over));
        scope.spawn(|| serve_camps(1, second, Some(wishes), &ready, &is_over));
        ready.wait();
        TICKED.lock().unwrap().clear();
        for camp in 0..CAMPS {
            let begin = Instant::now();
            wish.send(plot(camp, 1)).expect("a server");
            let arrived = loop {
                if let Some(at) = ARRIVED.lock().unwrap().get(&camp) {
                    break *at;
                }
                if begin.elapsed() > Duration::from_secs(60) {
                    // The servers end, and so does the scope.
                    is_over.store(true, Ordering::Relaxed);
                    panic!("camp {camp} does not arrive");
                }
                thread::sleep(Duration::from_millis(5));
            };
            took.push(arrived - begin);
            thread::sleep(Duration::from_secs(1));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    took.sort_unstable();
    let ticked: Vec<_> = TICKED.lock().unwrap().values().copied().collect();
    let seconds = took.iter().sum::<Duration>().as_secs_f64() + CAMPS as f64;
    let mut pauses: Vec<Duration> = ticked.iter().map(|(.., longest)| *longest).collect();
    pauses.sort_unstable();
    let slowest = ticked.iter().map(|(_, ticks, _)| *ticks as f64 / seconds).fold(f64::INFINITY, f64::min);
    println!(
        "N4 {CAMPS} camps of 489 columns: median {:.2?}, p99 {:.2?} until they tick on the other server; meanwhile the slowest of {} \
         other regions had {slowest:.1} TPS, and the longest pause was {:.0?} (median region {:.0?})",
        took[took.len() / 2],
        took[took.len() * 99 / 100 - 1],
        ticked.len(),
        pauses[pauses.len() - 1],
        pauses[pauses.len() / 2]
    );
}

/// A server of N4. It spawns a viewer at each place that it is sent.
fn serve_camps(
    number: usize,
    storage: StorageConfig,
    wishes: Option<Receiver<BlockPos>>,
    ready: &Barrier,
    is_over: &AtomicBool,
) {
    let (mut app, dimension) = server(number, storage);
    for camp in 0..CAMPS {
        if number == 0 {
            spawn_in_region(&mut app, dimension, plot(camp, 0), (Camp(camp), Viewer::new().with_radius(12)));
        } else {
            // The server with more plots gets the ground.
            for plots in [2, 3] {
                spawn_in_region(&mut app, dimension, plot(camp, plots), Viewer::new().with_radius(2));
            }
        }
    }
    let step = |app: &mut App| {
        app.update();
        thread::sleep(Duration::from_millis(5));
    };
    let begin = Instant::now();
    while begin.elapsed() < WARM_UP || app.world().resource::<WorldStatistics>().remaining > 0 {
        step(&mut app);
    }
    ready.wait();
    while !is_over.load(Ordering::Relaxed) {
        for place in wishes.iter().flat_map(|wishes| wishes.try_iter()) {
            spawn_in_region(&mut app, dimension, place, Viewer::new().with_radius(2));
        }
        step(&mut app);
    }
}

fn rocks() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Arc::new(RocksStore::open(&folder.path().join("world"), true).expect("a database"));
    let counts = Arc::<Mutex<Counts>>::default();
    let storage = StorageConfig::Custom(Arc::new(Counted { store, counts: counts.clone() }));
    print("NR", 1, &measure(vec![storage], counts));
}

fn postgres(name: &str, servers: usize) {
    let database = PostgresServer::start(Syncing::On).expect("PostgreSQL");
    let counts = Arc::<Mutex<Counts>>::default();
    let storage = |server: usize| {
        let store = Arc::new(PostgresStore::open(&format!("{}#world", database.address())).expect("a database"));
        let store = Arc::new(Counted { store, counts: counts.clone() });
        StorageConfig::Shared { store, address: vec![server as u8] }
    };
    let storages = (0..servers).map(storage).collect();
    print(name, servers, &measure(storages, counts.clone()));
}

fn main() {
    choose::run(&[
        ("NR", rocks),
        ("N1", || postgres("N1", 1)),
        ("N2", || postgres("N2", 2)),
        ("N3", || postgres("N3", 3)),
        ("N4", handover),
    ]);
}
