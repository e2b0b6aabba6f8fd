//! In lockstep a run can be repeated exactly.

mod recorded;

use crate::support::*;
use bevy_terrane::chunk::format::encode;
use bevy_terrane::prelude::*;
use bevy_terrane::region::RegionizerConfig;
use bevy_terrane::view::{RegionMerged, RegionSplit};
use std::time::Duration;

/// Hills that take a random time to generate.
struct Sleepy(Hills);

impl Generator for Sleepy {
    fn identity(&self) -> GeneratorIdentity {
        self.0.identity()
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        std::thread::sleep(Duration::from_micros(u64::from(now.subsec_nanos() / 7 % 400)));
        self.0.generate(request)
    }
}

/// Walkers dig a trail and turn at random.
fn dig(mut blocks: RegionBlocks, mut random: ResMut<RegionRandom>, mut walkers: Query<(&mut Walker, &Position)>) {
    for (mut walker, position) in &mut walkers {
        if random.0.below(60) == 0 {
            walker.blocks_a_tick = -walker.blocks_a_tick;
        }
        if let Some(ground) = blocks.surface(position.block.x, position.block.z) {
            blocks.set_block(ground, BlockId::AIR).expect("it is loaded");
        }
    }
}

/// Grass dies at random places, according to the region's random numbers.
fn wither(mut blocks: RegionBlocks, mut random: ResMut<RegionRandom>, types: Res<BlockTypes>) {
    let dirt = types.id("terrane:dirt").expect("a basic block");
    let count = blocks.columns().len() as u32;
    for _ in 0..4 {
        let Some(column) = blocks.columns().get(random.0.below(count) as usize).copied() else { return };
        let (x, z) = (i64::from(random.0.below(16)), i64::from(random.0.below(16)));
        if let Some(ground) = blocks.surface((column.x << 4) + x, (column.z << 4) + z) {
            blocks.set_block(ground, dirt).expect("it is loaded");
        }
    }
}

/// The entire visible state after 500 updates, as text and bytes.
fn run(region_threads: usize) -> (String, Vec<u8>) {
    let config = RegionizerConfig { recalculation_section_count: 8, max_dead_section_percent: 0.1, ..default() };
    let plugin = TerranePlugin {
        seed: 7,
        threads: ThreadSettings { regions: region_threads, ..default() },
        saving: SaveSettings::every(Duration::from_secs(1)),
        regionizer: config,
        ..lockstep()
    };
    let mut app = game(plugin);
    app.add_region_plugins(|region| {
        region.add_systems(RegionTick, (dig, wither).chain());
    });
    listen::<RegionMerged>(&mut app);
    listen::<RegionSplit>(&mut app);
    let dimension = spawn_dimension(&mut app, Dimension::new("overworld", Sleepy(Hills::seeded(42))));
    start(&mut app);
    app.update();
    for (number, (x, speed)) in [(0, 1.0), (420, -1.0), (900, 1.5), (1_300, -1.5), (3_000, 0.5)].iter().enumerate() {
        let name = format!("walker {number}");
        let bundle = (walker(&name, *speed), Viewer::new().with_radius(2));
        spawn_in_region(&mut app, dimension, BlockPos::new(*x, 0, 0), bundle);
    }
    update(&mut app, 500);

    let (merges, splits) = (heard::<RegionMerged>(&app).len(), heard::<RegionSplit>(&app).len());
    let statistics = app.world().resource::<WorldStatistics>().clone();
    assert!(
        merges > 0 && splits > 0 && statistics.saves > 5,
        "{merges} merges, {splits} splits, {} saves",
        statistics.saves
    );
    let regions: Vec<_> = statistics
        .regions
        .iter()
        .map(|region| (region.region, region.columns, region.ticks, &region.sections))
        .collect();
    let mut mirrors = app.world_mut().query::<(&StableId, &Walker, &Position)>();
    let mut entities: Vec<_> =
        mirrors.iter(app.world()).map(|(id, walker, place)| format!("{id:?} {walker:?} {place:?}")).collect();
    entities.sort();
    assert_eq!(entities.len(), 5);
    let mut columns: Vec<_> = app.world().resource::<PublishedColumns>().iter().collect();
    columns.sort_by_key(|(dimension, column)| (*dimension, column.pos()));
    let mut blocks = Vec::new();
    for (_, column) in &columns {
        for (_, chunk) in column.chunks() {
            encode(&(), chunk, &[], &mut blocks).unwrap();
        }
    }
    let text = format!(
        "{regions:?}\n{entities:?}\n{} merges {splits} splits {} saves {} columns {} generated {} loaded",
        merges,
        statistics.saves,
        columns.len(),
        statistics.generated,
        statistics.loaded
    );
    (text, blocks)
}

/// Promise, worlds: The coordinator changes region states in a fixed order.
/// Promise, worlds: Lockstep is deterministic: two runs give the same world, with one thread or two.
#[test]
fn two_runs_give_the_same_world_with_one_and_with_two_threads() {
    let (text, blocks) = run(1);
    for threads in [1, 2] {
        let (other_text, other_blocks) = run(threads);
        assert_eq!(text, other_text);
        assert!(blocks == other_blocks, "the same regions and entities, but other blocks");
    }
}

/// Promise, worlds: In lockstep each update of the app ticks each region exactly once.
#[test]
fn each_update_ticks_each_region_once() {
    let mut app = game(lockstep());
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    viewer(&mut app, dimension, 5_000.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 41);
    let ticks = |app: &App| app.world().resource::<WorldStatistics>().ticks;
    // Statistics arrive every fifth update.
    let before = ticks(&app);
    update(&mut app, 50);
    assert_eq!(ticks(&app) - before, 100);
}

#[test]
#[cfg(feature = "rocksdb")]
fn in_lockstep_a_panic_reaches_the_app_and_other_regions_are_saved() {
    fn fail(walkers: Query<&Walker>) {
        assert!(walkers.iter().all(|walker| walker.name != "bomb"), "a bomb went off");
    }
    let folder = tempfile::tempdir().unwrap();
    let plugin = || TerranePlugin { tick_mode: TickMode::Lockstep, ..TerranePlugin::at(folder.path().join("world")) };
    let mut app = game(plugin());
    app.add_region_plugins(|region| {
        region.add_systems(RegionTick, fail);
    });
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    viewer(&mut app, dimension, 5_000.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 20);
    let (block, position) = (id_of(app.world(), "terrane:stone"), BlockPos::new(5_000, 9, 0));
    app.world_mut().write_message(SetBlock { dimension, position, block });
    spawn_in_region(&mut app, dimension, BlockPos::new(0, 5, 0), walker("bomb", 0.0));
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| update(&mut app, 3))).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"a bomb went off"));
    drop(app);

    let mut app = game(plugin());
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 5_000.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 20);
    assert_eq!(block_at(app.world_mut(), dimension, position), Some(block));
}
