//! The workloads L5 and L6: what light adds to ticks and to generation. `cargo bench --profile dev --all-features --bench digging`
//! prints each figure with its goal; arguments select workloads. The plain room has the others: `--bench light`.

#[path = "shared/choose.rs"]
mod choose;
#[path = "shared/report.rs"]
mod report;

use bevy_terrane::prelude::*;
use bevy_terrane::simulation::SplitMix64;
use bevy_terrane::testing::{headless, spawn_dimension, start};
use bevy_terrane::view::{Pacing, PublishedColumns, WorldStatistics};
use report::report;
use std::time::{Duration, Instant};

/// The share of a tick for light, and no light.
const WITH_AND_WITHOUT: [f64; 2] = [0.1, 0.0];

fn main() {
    choose::run(&[("L5", players_who_dig), ("L6", generation)]);
}

/// A player digs down and fills the hole again, one block a tick.
#[derive(Resource)]
struct Diggers(Vec<BlockPos>, u64);

fn dig(mut diggers: ResMut<Diggers>, types: Res<BlockTypes>, mut blocks: RegionBlocks) {
    const DEPTH: u64 = 8;
    let Diggers(places, ticks) = &mut *diggers;
    let stone = types.id("terrane:stone").expect("it is built in");
    for (number, place) in places.iter().enumerate() {
        let step = (*ticks + number as u64) % (2 * DEPTH);
        let (depth, block) = if step < DEPTH { (step, BlockId::AIR) } else { (2 * DEPTH - 1 - step, stone) };
        let _ = blocks.set_block(place.offset(0, -(depth as i64), 0), block);
    }
    *ticks += 1;
}

/// L5: 100 players in one region who dig at once, in lockstep. The ticks with and without light take turns.
fn players_who_dig() {
    const WARM_UP: usize = 200;
    const TICKS: usize = 2_000;
    let mut random = SplitMix64::new(42);
    let places: Vec<_> = (0..100)
        .map(|_| BlockPos::new(i64::from(random.below(160)) - 80, 0, i64::from(random.below(160)) - 80))
        .collect();
    let mut apps = WITH_AND_WITHOUT.map(|light| {
        let mut app = headless(TerranePlugin { light, tick_mode: TickMode::Lockstep, ..TerranePlugin::in_memory() });
        let places = places.clone();
        app.add_region_plugins(move |region| {
            region.insert_resource(Diggers(places.clone(), 0)).add_systems(RegionTick, dig);
        });
        let dimension = spawn_dimension(&mut app, Dimension::new("flat", Flat::new()));
        let viewer = Viewer::in_dimension(dimension).with_radius(8);
        app.world_mut().spawn((viewer, Transform::default()));
        start(&mut app);
        app
    });
    let mut times = [const { Vec::new() }; 2];
    for number in 0..WARM_UP + TICKS {
        for (app, times) in apps.iter_mut().zip(&mut times) {
            let began = Instant::now();
            app.update();
            if number >= WARM_UP {
                times.push(began.elapsed());
            }
        }
    }
    let [with, without] = times.map(|mut times| {
        times.sort_unstable();
        [0.5, 0.99].map(|share| times[(TICKS as f64 * share) as usize].as_secs_f64() * 1e3)
    });
    let ours = format!(
        "p50 {:.2} and {:.2} ms, p99 {:.2} and {:.2} ms: {:+.2} ms",
        with[0],
        without[0],
        with[1],
        without[1],
        with[1] - without[1]
    );
    report("L5 100 players who dig", ours, "p99 + 0.5 ms");
}

/// The time until so many columns are published; without a number, until the statistics say that all are there, and their number.
fn fill(light: f64, wanted: Option<usize>) -> (Duration, usize) {
    let mut app = headless(TerranePlugin { light, pacing: Pacing::fixed(1_024), ..TerranePlugin::in_memory() });
    let dimension = spawn_dimension(&mut app, Dimension::new("hills", Hills::seeded(42)));
    app.world_mut().spawn((Viewer::in_dimension(dimension).with_radius(40), Transform::default()));
    start(&mut app);
    let began = Instant::now();
    loop {
        app.update();
        let (published, statistics) =
            (app.world().resource::<PublishedColumns>().len(), app.world().resource::<WorldStatistics>());
        let is_done = match wanted {
            Some(wanted) => published >= wanted,
            None => statistics.columns == published && published > 0 && statistics.remaining == 0,
        };
        if is_done {
            return (began.elapsed(), published);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// L6: generation with and without light, in turns.
fn generation() {
    const ROUNDS: usize = 9;
    let (_, columns) = fill(0.0, None);
    let mut times = [const { Vec::new() }; 2];
    for _ in 0..ROUNDS {
        for (light, times) in WITH_AND_WITHOUT.into_iter().zip(&mut times) {
            times.push(fill(light, Some(columns)).0);
        }
    }
    let [with, without] = times.map(|mut times| {
        times.sort_unstable();
        times[ROUNDS / 2]
    });
    let ratio = with.as_secs_f64() / without.as_secs_f64();
    let ours = format!("{columns} columns in {with:.2?} and {without:.2?}: {ratio:.2} x");
    report("L6 generation with light", ours, "1.25 x");
}
