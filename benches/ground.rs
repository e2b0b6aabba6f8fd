//! The workload B4: a sea of 256 x 256 that is let loose into a valley. `cargo bench --profile dev --all-features --bench ground` prints
//! the ticks' times.

#[path = "shared/choose.rs"]
mod choose;
#[path = "shared/report.rs"]
mod report;

use bevy_terrane::generation::{GenerateError, GenerateRequest, GeneratorIdentity};
use bevy_terrane::liquid::{LiquidRules, liquid_states};
use bevy_terrane::plugin::LiquidsPlugin;
use bevy_terrane::prelude::*;
use bevy_terrane::testing::{ask_region, headless, spawn_dimension, start};
use bevy_terrane::view::WorldStatistics;
use report::report;
use std::time::{Duration, Instant};

/// The sea is at x 0..256 and z 0..256, four blocks deep. The valley lies east of it and falls by a block every four.
const SEA: i64 = 256;
const DEPTH: i64 = 4;
const SEA_LEVEL: i64 = 40;

fn main() {
    choose::run(&[("B4", sea)]);
}

struct Valley;

impl Generator for Valley {
    fn identity(&self) -> GeneratorIdentity {
        GeneratorIdentity { name: "bench:valley".into(), version: 1, seed: 0 }
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        let [stone, water] = ["terrane:stone", "game:water"].map(|name| request.blocks.id(name).unwrap_or_default());
        let corner = request.column.min_block(0);
        let mut column = Column::new(request.column);
        for (x, z) in (0..16).flat_map(|x| (0..16).map(move |z| (corner.x + x, corner.z + z))) {
            let is_sea = (0..SEA).contains(&x) && (0..SEA).contains(&z);
            let top = match x - SEA {
                _ if is_sea => SEA_LEVEL - DEPTH,
                1.. if (0..SEA).contains(&z) => SEA_LEVEL - DEPTH - (x - SEA + z / 8 % 4) / 4,
                _ => SEA_LEVEL + 1,
            };
            for y in 0..=top.max(0) {
                column.set_block(BlockPos::new(x, y, z), stone);
            }
            for y in top + 1..=SEA_LEVEL {
                if is_sea {
                    column.set_block(BlockPos::new(x, y, z), water);
                }
            }
        }
        Ok(column)
    }
}

/// Takes the dam away, which is a wall at x = 256.
fn open_the_dam(mut blocks: RegionBlocks) -> usize {
    let cells = (0..SEA).flat_map(|z| (SEA_LEVEL - DEPTH + 1..=SEA_LEVEL + 1).map(move |y| BlockPos::new(SEA, y, z)));
    cells.filter(|cell| blocks.set_block(*cell, BlockId::AIR).is_ok()).count()
}

fn waiting(blocks: RegionBlocks) -> usize {
    blocks.ticks().len()
}

/// B4: the time of each update in lockstep, in which the one region ticks once, until the flood rests.
fn sea() {
    let mut app = headless(TerranePlugin { tick_mode: TickMode::Lockstep, ..TerranePlugin::in_memory() });
    let water = BlockType::new("game:water").transparent().with_attenuation(2);
    app.register_block_states(liquid_states(water)).expect("the names are free");
    app.add_plugins(LiquidsPlugin::new([LiquidRules::new("game:water").renewing()]));
    let dimension = spawn_dimension(&mut app, Dimension::new("valley", Valley));
    let middle = Transform::from_xyz(SEA as f32, 0.0, SEA as f32 / 2.0);
    app.world_mut().spawn((Viewer::in_dimension(dimension).with_radius(20), middle));
    start(&mut app);
    for _ in 0..10_000 {
        app.update();
        let statistics = app.world().resource::<WorldStatistics>();
        if statistics.columns > 1_000 && statistics.remaining == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let here = BlockPos::new(SEA, SEA_LEVEL, SEA / 2);
    let taken = ask_region(&mut app, dimension, here, open_the_dam);
    let mut times = Vec::new();
    let mut most = 0;
    loop {
        for _ in 0..100 {
            let began = Instant::now();
            app.update();
            times.push(began.elapsed());
        }
        let left = ask_region(&mut app, dimension, here, waiting);
        most = most.max(left);
        if left == 0 || times.len() >= 6_000 {
            break;
        }
    }
    let ticks = times.len();
    times.sort_unstable();
    let [p50, p99, max] =
        [0.5, 0.99, 1.0].map(|share| times[((ticks - 1) as f64 * share) as usize].as_secs_f64() * 1e3);
    let ours = format!(
        "{taken} blocks of dam, {ticks} ticks, up to {most} waiting: p50 {p50:.2}, p99 {p99:.2}, max {max:.2} ms"
    );
    report("B4 a sea in a valley", ours, "p99 25 ms");
}
