//! Memory is freed: regions and viewers that are gone leave nothing behind, and the loaded columns of a viewer follow from its
//! radius.

use crate::meter::{allocations, live_bytes};
use crate::support::ground::disc;
use crate::support::process::{self, here, program};
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::region::RegionizerConfig;
use bevy_terrane::storage::MemoryStore;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The number of regions at the height of a burst, beside the one that stays.
const REGIONS: usize = 150;
/// The distance between two of them, in columns: with one viewer halfway they merge.
const SPACING: i64 = 32;

fn columns(app: &App) -> BTreeSet<ColumnPos> {
    app.world().resource::<PublishedColumns>().iter().map(|(_, column)| column.pos()).collect()
}

fn middle(column: ColumnPos) -> (f32, f32) {
    ((16 * column.x + 8) as f32, (16 * column.z + 8) as f32)
}

/// Promise, worlds: Columns within a viewer's radius are loaded, and unloaded when they are more than two columns further away.
#[test]
fn a_viewer_loads_its_radius_and_keeps_two_columns_more() {
    for radius in [0, 1, 3, 5] {
        // A larger disc includes some of the columns that are kept.
        let is_exact = radius < 4;
        for start_at in [ColumnPos::new(0, 0), ColumnPos::new(2, 1)] {
            let mut app = game(lockstep());
            let dimension = flat(&mut app);
            let (x, z) = middle(start_at);
            let viewer = viewer(&mut app, dimension, x, z, radius);
            start(&mut app);
            update(&mut app, 30);
            let reach = i64::from(radius);
            let is_around = |app: &App, center: ColumnPos| {
                let loaded = columns(app);
                let wanted = disc(center, reach);
                loaded == wanted
                    || !is_exact && loaded.is_superset(&wanted) && loaded.is_subset(&disc(center, reach + 2))
            };
            assert!(is_around(&app, start_at), "radius {radius}, before it moves: {:?}", columns(&app));
            let mut column = start_at;
            for _ in 0..9 {
                column.x += 1;
                let before = columns(&app);
                let (x, z) = middle(column);
                move_viewer(&mut app, viewer, x, z);
                update(&mut app, 20);
                let (loaded, kept) = (columns(&app), disc(column, reach + 2));
                assert!(loaded.is_superset(&disc(column, reach)) && loaded.is_subset(&kept), "{column}: {loaded:?}");
                assert!(
                    before.intersection(&kept).all(|column| loaded.contains(column)),
                    "{column}: a step evicts them"
                );
                let seen = |column: &ColumnPos| (start_at.z - reach..=start_at.z + reach).contains(&column.z);
                assert!(!is_exact || loaded.iter().all(seen), "radius {radius}, never near to it: {loaded:?}");
            }
            let there = ColumnPos::new(1_000, 1_000);
            let (x, z) = middle(there);
            move_viewer(&mut app, viewer, x, z);
            update(&mut app, 30);
            assert!(is_around(&app, there), "radius {radius}, after a leap: {:?}", columns(&app));
        }
    }
}

/// Waits until there are `count` regions, all with a world that has ticked.
fn until_regions(app: &mut App, count: usize) {
    let patience = Patience { limit: Duration::from_secs(120), ..Patience::default() };
    update_until_within(app, patience, &format!("{count} regions tick"), |world| {
        let regions = &world.resource::<WorldStatistics>().regions;
        regions.len() == count && regions.iter().all(|region| region.ticks > 0)
    });
}

/// Spawns viewers in a row along x at the distance [`SPACING`], starting at the column `first`.
fn row(app: &mut App, dimension: DimensionId, first: i64, count: usize) -> Vec<Entity> {
    let place = |number: usize| middle(ColumnPos::new(first + SPACING * number as i64, 4));
    let places: Vec<_> = (0..count).map(place).collect();
    places.into_iter().map(|(x, z)| viewer(app, dimension, x, z, 0)).collect()
}

fn despawn(app: &mut App, viewers: Vec<Entity>) {
    for viewer in viewers {
        app.world_mut().despawn(viewer);
    }
}

/// Regions are created, merge into one, split again and disappear.
fn burst(app: &mut App, dimension: DimensionId, mut at_the_height: impl FnMut(&mut App)) {
    const FIRST: i64 = 1_000;
    let viewers = row(app, dimension, FIRST, REGIONS);
    until_regions(app, REGIONS + 1);
    at_the_height(app);
    let bridges = row(app, dimension, FIRST + SPACING / 2, REGIONS - 1);
    until_regions(app, 2);
    update(app, 10);
    despawn(app, bridges);
    until_regions(app, REGIONS + 1);
    despawn(app, viewers);
    until_regions(app, 1);
    save(app);
    update(app, 40);
}

/// A world on this disk with one viewer that stays.
fn world(plugin: TerranePlugin) -> (App, DimensionId) {
    let regionizer = RegionizerConfig { section_shift: 2, ..parting_soon() };
    let mut app = game(TerranePlugin { regionizer, ..plugin });
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 8.0, 8.0, 0);
    start(&mut app);
    until_regions(&mut app, 1);
    (app, dimension)
}

/// The bytes that the process holds while the world stands still: before all bursts, at the height of the first, and after
/// each of some bursts.
fn held_by_bursts(plugin: impl Fn(&Arc<MemoryStore>) -> TerranePlugin) -> [usize; 5] {
    let disk = Arc::<MemoryStore>::default();
    // Columns and entities are stored before anything is counted.
    let (mut app, dimension) = world(plugin(&disk));
    burst(&mut app, dimension, |app| {
        for number in 0..REGIONS {
            let place = ColumnPos::new(1_000 + SPACING * number as i64, 4).chunk(0).min_block();
            spawn_in_region(app, dimension, place, walker(&format!("walker {number}"), 0.0));
        }
        update_until(app, "all walk", |world| walkers(world).len() == REGIONS);
    });
    drop(app);
    let (mut app, dimension) = world(plugin(&disk));
    update(&mut app, 100);
    save(&mut app);
    let (before, mut height) = (live_bytes(), 0);
    let after = [(); 3].map(|()| {
        burst(&mut app, dimension, |_| height = height.max(live_bytes()));
        live_bytes()
    });
    [before, height, after[0], after[1], after[2]]
}

/// Fails if a burst of regions leaves more behind than a sixteenth of its size, or a later one more than the first.
fn assert_that_memory_comes_back(plugin: impl Fn(&Arc<MemoryStore>) -> TerranePlugin) {
    let held = held_by_bursts(plugin);
    println!("live bytes before, at the height, after three bursts: {held:?}");
    let [before, height, first, _, third] = held;
    let taken = height - before;
    assert!(taken > REGIONS * 50_000, "regions take something: {held:?}");
    assert!(first.saturating_sub(before) <= taken / 16, "the first burst left something behind: {held:?}");
    assert!(third.saturating_sub(first) <= taken / 64, "each burst leaves something behind: {held:?}");
}

/// Runs a test of this file in its own process, where nothing else is counted.
fn alone(test: &str, run: impl FnOnce()) {
    if here().is_some() {
        return run();
    }
    let folder = tempfile::tempdir().unwrap();
    let test = format!("memory::{test}");
    let (mut process, lines) = process::start(program(), &test, folder.path());
    let said: Vec<String> = lines.collect();
    assert!(process.wait().unwrap().success(), "{}", said.join("\n"));
}

#[derive(Component, Clone)]
struct Creature(u32);

/// The fewest allocations in one of some updates, while this many regions with ten creatures each tick.
fn allocations_with(regions: usize) -> usize {
    let mut app = game(TerranePlugin { threads: ThreadSettings { regions: 1, ..default() }, ..lockstep() });
    app.register_region_component::<Creature>().add_region_plugins(|region| {
        region.add_systems(RegionTick, |mut creatures: Query<&mut Creature>| {
            creatures.iter_mut().for_each(|mut creature| creature.0 += 1);
        });
    });
    let dimension = flat(&mut app);
    start(&mut app);
    for number in 0..regions as i64 {
        let place = BlockPos::new(number * SPACING * 16, 5, 0);
        in_region(&mut app, dimension, place, move |region| {
            let id = region.resource::<RegionInfo>().dimension;
            region.spawn((Position::new(id, place), Viewer::new().with_radius(0)));
            region.spawn_batch((0..10).map(move |_| (Position::new(id, place), Creature(0))));
        });
    }
    until_regions(&mut app, regions);
    update(&mut app, 200);
    let used = (0..200).map(|_| {
        let before = allocations();
        app.update();
        allocations() - before
    });
    used.min().unwrap()
}

/// Promise, worlds: A tick in which nothing happens allocates no memory.
#[test]
fn a_plain_tick_allocates_nothing() {
    alone("a_plain_tick_allocates_nothing", || {
        let [few, many] = [20, 60].map(allocations_with);
        // The lists of a pass grow a few times more.
        assert!(many < few + 40 / 4, "20 regions allocate {few} times in an update, and 60 regions {many} times");
    });
}

/// The resident memory of the process, in bytes.
#[cfg(target_os = "linux")]
fn resident_bytes() -> usize {
    let counts = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let resident = counts.lines().find_map(|line| line.strip_prefix("Rss:")?.strip_suffix("kB")).unwrap();
    resident.trim().parse::<usize>().unwrap() << 10
}

/// Promise, worlds: After a burst of regions, glibc returns the freed memory to the system.
#[cfg(target_os = "linux")]
#[test]
fn the_memory_of_a_burst_of_regions_returns_to_the_system() {
    alone("the_memory_of_a_burst_of_regions_returns_to_the_system", || {
        let (mut app, dimension) = world(TerranePlugin::in_memory());
        let before = resident_bytes();
        let viewers = row(&mut app, dimension, 1_000, 2 * REGIONS);
        until_regions(&mut app, 2 * REGIONS + 1);
        let taken = resident_bytes() - before;
        assert!(taken > REGIONS * 100_000, "regions take something: {taken}");
        despawn(&mut app, viewers);
        until_regions(&mut app, 1);
        update_until(&mut app, "the system has most of it again", |_| resident_bytes() < before + taken / 3);
    });
}

/// Promise, worlds: Regions and columns free their memory when they are unloaded.
#[test]
fn regions_that_came_merged_parted_and_went_leave_nothing_behind_in_lockstep() {
    alone("regions_that_came_merged_parted_and_went_leave_nothing_behind_in_lockstep", || {
        assert_that_memory_comes_back(lockstep_on);
    });
}

/// Promise, worlds: Regions and columns free their memory when they are unloaded.
#[test]
fn regions_that_came_merged_parted_and_went_leave_nothing_behind() {
    alone("regions_that_came_merged_parted_and_went_leave_nothing_behind", || {
        assert_that_memory_comes_back(|disk| TerranePlugin { tick_mode: TickMode::Independent, ..lockstep_on(disk) });
    });
}

/// An entity that jumps in each tick.
#[derive(Component, Clone, PartialEq, Serialize, Deserialize, TypePath)]
struct Jumper {
    jumps: i64,
}

/// Jumps from one of 53 places to another.
fn jump(mut jumpers: Query<(&mut Jumper, &mut Position)>) {
    for (mut jumper, mut position) in &mut jumpers {
        jumper.jumps += 1;
        position.block.x = 16 * SPACING * (jumper.jumps * 19 % 53) + 8;
    }
}

/// Promise, worlds: Entities that keep jumping from region to region in a stored world leave no memory behind.
#[test]
fn entities_that_jump_leave_nothing_behind() {
    alone("entities_that_jump_leave_nothing_behind", || {
        let folder = tempfile::tempdir().unwrap();
        let plugin = TerranePlugin {
            tick_mode: TickMode::Lockstep,
            saving: SaveSettings::every(Duration::from_millis(500)),
            ..TerranePlugin::at(folder.path())
        };
        let mut app = game(plugin);
        app.register_saved_component::<Jumper>().mirror_region_component::<Jumper>().add_region_plugins(|region| {
            region.add_systems(RegionTick, jump);
        });
        let dimension = flat(&mut app);
        for number in 0..53 {
            viewer(&mut app, dimension, (16 * SPACING * number + 8) as f32, 8.0, 0);
        }
        start(&mut app);
        until_regions(&mut app, 53);
        for number in 0..6 {
            spawn_in_region(&mut app, dimension, BlockPos::new(8, 5, 8), Jumper { jumps: 9 * number });
        }
        let held = [(); 3].map(|()| {
            update(&mut app, 20 * rounds(30) as usize);
            save(&mut app);
            println!("live bytes: {}", live_bytes());
            live_bytes()
        });
        let jumps = app.world_mut().query::<&Jumper>().iter(app.world()).map(|jumper| jumper.jumps).sum::<i64>();
        assert!(jumps > 2_000, "{jumps} jumps");
        assert!(held[2] < held[1] + 256 * 1024, "live bytes after each part: {held:?}");
    });
}
