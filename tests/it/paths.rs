//! Paths of entities in regions.

use crate::support::*;
use bevy_terrane::path;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::{PathPlugin, PathSystems, PathTo};
use bevy_terrane::view::RegionMerged;
use std::sync::Arc;

#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sheep(usize);

/// A game whose sheep walk along their paths, a fifth of a block in each tick.
fn meadow(plugin: TerranePlugin, paths: PathPlugin) -> (App, DimensionId) {
    fn walk(mut sheep: Query<(&mut Position, &mut PathTo), With<Sheep>>) {
        for (mut position, mut path) in &mut sheep {
            if let Some(way) = path.follow(&position) {
                position.translate(way.clamp_length_max(0.2));
            }
        }
    }
    let mut app = game(plugin);
    app.register_region_component::<Sheep>().mirror_region_component::<Sheep>().add_region_plugins(move |region| {
        region.add_plugins(paths).add_systems(RegionTick, walk.after(PathSystems::Find));
    });
    let dimension = flat(&mut app);
    (app, dimension)
}

fn grazing(plugin: TerranePlugin, paths: PathPlugin) -> (App, DimensionId) {
    let (mut app, dimension) = meadow(plugin, paths);
    viewer(&mut app, dimension, 0.0, 0.0, 4);
    start(&mut app);
    update(&mut app, 20);
    (app, dimension)
}

/// A sheep that walks to this block.
fn to(number: usize, goal: BlockPos) -> (Sheep, PathTo) {
    (Sheep(number), PathTo::new(path::Walker::default().with_size(0.9, 1.3), goal))
}

/// Builds a wall along z, two blocks high.
fn wall(app: &mut App, dimension: DimensionId, x: i64, z: std::ops::RangeInclusive<i64>) {
    let stone = id_of(app.world(), "terrane:stone");
    in_region(app, dimension, BlockPos::new(x, 0, 0), move |region| {
        let mut columns = region.resource_mut::<bevy_terrane::simulation::RegionColumns>();
        for z in z {
            for y in 1..3 {
                columns.set_block(BlockPos::new(x, y, z), stone).expect("it is loaded");
            }
        }
    });
}

/// The sheep of the region: number, block, path.
fn flock(app: &mut App, dimension: DimensionId) -> Vec<(Sheep, BlockPos, PathTo)> {
    ask_region(app, dimension, BlockPos::default(), |sheep: Query<(&Sheep, &Position, &PathTo)>| {
        let mut all: Vec<_> = sheep.iter().map(|(sheep, at, to)| (*sheep, at.block, to.clone())).collect();
        all.sort_by_key(|(sheep, ..)| *sheep);
        all
    })
}

/// Updates until the only sheep is at a block, and returns all blocks on its way.
#[track_caller]
fn walk_to(app: &mut App, dimension: DimensionId, goal: BlockPos) -> Vec<BlockPos> {
    let mut way = Vec::new();
    for _ in 0..600 {
        let (_, at, _) = flock(app, dimension)[0].clone();
        way.push(at);
        if at == goal {
            return way;
        }
    }
    panic!("the sheep is at {} and not at {goal}", way[way.len() - 1]);
}

/// Promise, paths: An entity with a `PathTo` gets a path from its position, round a wall.
#[test]
fn a_sheep_walks_round_a_wall() {
    let (mut app, dimension) = grazing(lockstep(), PathPlugin::default());
    wall(&mut app, dimension, 4, -6..=6);
    update(&mut app, 2);
    let goal = BlockPos::new(9, 1, 0);
    spawn_in_region(&mut app, dimension, BlockPos::new(0, 1, 0), to(0, goal));
    update(&mut app, 2);
    let way = walk_to(&mut app, dimension, goal);
    assert!(way.iter().any(|at| at.x == 4 && at.z.abs() == 7), "{way:?}");
    let (.., path) = flock(&mut app, dimension)[0].clone();
    assert!(!path.is_searching() && path.path().is_some_and(|path| path.is_complete));
}

/// Promise, paths: A path is found again when blocks change so that it leads no further.
#[test]
fn a_wall_that_appears_on_the_way_is_walked_around() {
    let (mut app, dimension) = grazing(lockstep(), PathPlugin::default());
    let goal = BlockPos::new(12, 1, 0);
    spawn_in_region(&mut app, dimension, BlockPos::new(0, 1, 0), to(0, goal));
    // A walker of a size that no world has room for does no harm.
    let endless = path::Walker { jump: f32::MAX, ..path::Walker::default() }.with_size(f32::INFINITY, f32::INFINITY);
    spawn_in_region(&mut app, dimension, BlockPos::new(0, 1, 30), (Sheep(1), PathTo::new(endless, goal)));
    update(&mut app, 10);
    let before = flock(&mut app, dimension)[0].2.path().cloned().expect("it is found");
    assert!(before.waypoints.iter().all(|point| point.block.z == 0));
    // A change beside the way leaves the path as it is.
    wall(&mut app, dimension, 8, 4..=5);
    update(&mut app, 3);
    assert_eq!(flock(&mut app, dimension)[0].2.path().unwrap().waypoints, before.waypoints);
    wall(&mut app, dimension, 8, -3..=3);
    update(&mut app, 3);
    let after = flock(&mut app, dimension)[0].2.path().cloned().expect("it is found");
    assert!(after.is_complete && after.waypoints != before.waypoints);
    let way = walk_to(&mut app, dimension, goal);
    assert!(way.iter().all(|at| at.x != 8 || at.z.abs() > 3), "{way:?}");
}

/// Promise, paths: The steps of searches in a tick are bounded, and the oldest requests are answered first.
#[test]
fn a_thousand_requests_are_answered_in_turn() {
    let paths = PathPlugin { steps_per_tick: 400, ..default() };
    let (mut app, dimension) = grazing(lockstep(), paths);
    in_region(&mut app, dimension, BlockPos::default(), move |region| {
        for number in 0..1_000 {
            let at = BlockPos::new((number % 32) as i64 - 16, 1, (number / 32) as i64 - 16);
            region.spawn((Position::new(dimension, at), to(number, at.offset(9, 0, 4))));
        }
    });
    update(&mut app, 1);
    let (mut answered, mut ticks) = (0, 0);
    while answered < 1_000 {
        let flock = flock(&mut app, dimension);
        let now = flock.iter().filter(|(.., to)| !to.is_searching()).count();
        // Each search takes at least as many steps as its path has waypoints, which are 10 here.
        assert!(now <= answered + 80, "{now} after {answered}");
        (answered, ticks) = (now, ticks + 1);
        assert!(ticks < 400, "{answered} after {ticks} ticks");
    }
    assert!(flock(&mut app, dimension).iter().all(|(.., to)| to.path().is_some_and(|path| path.is_complete)));
    assert!(ticks >= 8, "{ticks}");
}

/// Where the sheep are after two regions have merged, with their paths.
fn roam(region_threads: usize) -> String {
    let plugin = TerranePlugin { threads: ThreadSettings { regions: region_threads, ..default() }, ..lockstep() };
    let (mut app, dimension) = meadow(plugin, PathPlugin { steps_per_tick: 150, ..default() });
    listen::<RegionMerged>(&mut app);
    start(&mut app);
    app.update();
    let walker = Arc::new(path::Walker::default());
    for (number, x) in [0, 420].into_iter().enumerate() {
        let bundle = (walker_of(number, &walker, BlockPos::new(x + 40, 1, 9)), Viewer::new().with_radius(4));
        spawn_in_region(&mut app, dimension, BlockPos::new(x, 1, 0), bundle);
    }
    update(&mut app, 60);
    for number in 2..40 {
        let x = [0, 420][number % 2] + number as i64 / 2;
        let bundle = walker_of(number, &walker, BlockPos::new(x - 12, 1, number as i64 - 20));
        spawn_in_region(&mut app, dimension, BlockPos::new(x, 1, 0), bundle);
    }
    update(&mut app, 10);
    viewer(&mut app, dimension, 210.0, 0.0, 14);
    update(&mut app, 200);
    assert!(!heard::<RegionMerged>(&app).is_empty());
    let flock = flock(&mut app, dimension);
    assert_eq!(flock.len(), 40);
    assert!(flock.iter().all(|(.., to)| to.path().is_some()));
    flock.iter().map(|(sheep, at, to)| format!("{sheep:?} {at} {:?}\n", to.path())).collect()
}

fn walker_of(number: usize, walker: &Arc<path::Walker>, goal: BlockPos) -> (Sheep, PathTo) {
    (Sheep(number), PathTo::new(walker.clone(), goal))
}

/// Promise, paths: Requests travel with their entities, and lockstep gives the same paths with one thread and with two.
#[test]
fn two_threads_find_the_same_paths_as_one() {
    let paths = roam(1);
    assert_eq!(paths, roam(2));
}
