//! Paths of entities in regions.

use crate::support::*;
use bevy_terrane::path;
use bevy_terrane::plugin::WalkPlugin;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::{PathPlugin, PathSystems, PathTo, Walk, WalkEnded};
use bevy_terrane::storage::MemoryStore;
use bevy_terrane::view::RegionMerged;
use serde::{Deserialize, Serialize};
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

/// An animal with a body, and the ends of its walks.
#[derive(Component, Clone, Debug, Default, PartialEq, Serialize, Deserialize, TypePath)]
#[type_path = "my_game"]
struct Animal(Vec<String>);

/// A game whose animals walk with bodies.
fn pasture(plugin: TerranePlugin) -> (App, DimensionId) {
    fn note(ended: On<WalkEnded>, mut animals: Query<&mut Animal>) {
        animals.get_mut(ended.entity).expect("it is there").0.push(format!("{:?} {}", ended.end, ended.goal));
    }
    let mut app = game(plugin);
    app.add_plugins((BodyPlugin, WalkPlugin::default())).register_saved_component::<Animal>();
    app.add_region_plugins(|region| {
        region.add_observer(note);
    });
    let dimension = flat(&mut app);
    (app, dimension)
}

/// An animal that walks to a block.
fn animal(goal: BlockPos) -> impl Bundle {
    let (body, character) = (BlockBody::new(0.9, 1.3), CharacterController { walk: 3.0, ..default() });
    (Animal::default(), body, character, Walk::default(), PathTo::new(character.walker(&body), goal))
}

/// The animals of the region: where they are, and the ends of their walks.
fn herd(app: &mut App, dimension: DimensionId) -> Vec<(Position, Vec<String>)> {
    ask_region(app, dimension, BlockPos::default(), |animals: Query<(&StableId, &Position, &Animal)>| {
        let mut all: Vec<_> = animals.iter().map(|(id, at, animal)| (*id, (*at, animal.0.clone()))).collect();
        all.sort_by_key(|(id, _)| *id);
        all.into_iter().map(|(_, animal)| animal).collect::<Vec<_>>()
    })
}

/// Promise, paths: A character with a `Walk` walks to its goal, over steps that it jumps onto. The walk goes on after a restart, and its end
/// is told once.
#[test]
fn a_walk_goes_on_after_a_restart_and_ends_once() {
    let store = Arc::new(MemoryStore::new());
    let open = |store: &Arc<MemoryStore>| {
        let (mut app, dimension) = pasture(lockstep_on(store));
        viewer(&mut app, dimension, 0.0, 0.0, 4);
        start(&mut app);
        update(&mut app, 20);
        (app, dimension)
    };
    let (mut app, dimension) = open(&store);
    // A hill of two steps.
    let stone = id_of(app.world(), "terrane:stone");
    in_region(&mut app, dimension, BlockPos::default(), move |region| {
        let mut columns = region.resource_mut::<bevy_terrane::simulation::RegionColumns>();
        for (x, z) in (6..16).flat_map(|x| (-20..20).map(move |z| (x, z))) {
            for y in 1..if x < 9 { 2 } else { 3 } {
                columns.set_block(BlockPos::new(x, y, z), stone).expect("it is loaded");
            }
        }
    });
    let goal = BlockPos::new(12, 3, 3);
    spawn_in_region(&mut app, dimension, BlockPos::new(0, 1, 0), animal(goal));
    update(&mut app, 40);
    save(&mut app);
    let on_its_way = herd(&mut app, dimension);
    assert!((2..12).contains(&on_its_way[0].0.block.x) && on_its_way[0].1.is_empty(), "{on_its_way:?}");
    let (mut app, dimension) = reopen(app, || open(&store));
    update(&mut app, 200);
    let arrived = herd(&mut app, dimension);
    assert_eq!((arrived[0].0.block, &arrived[0].1), (goal, &vec![format!("Arrived {goal}")]));
    save(&mut app);
    let (mut app, dimension) = reopen(app, || open(&store));
    update(&mut app, 40);
    assert_eq!(herd(&mut app, dimension), arrived);
}

/// Promise, paths: A walk that something holds up is told as stuck, and one to a goal without a way as that.
#[test]
fn a_walk_that_gets_no_farther_is_told() {
    let (mut app, dimension) = pasture(lockstep());
    viewer(&mut app, dimension, 0.0, 0.0, 4);
    start(&mut app);
    update(&mut app, 20);
    // Too long for a way around it.
    wall(&mut app, dimension, 4, -64..=79);
    let goal = BlockPos::new(9, 1, 0);
    // A walker that jumps higher than its body.
    let frog = path::Walker { jump: 3.0, ..path::Walker::default() };
    for (z, path) in [(0, Some(PathTo::new(frog, goal))), (8, None)] {
        spawn_in_region(&mut app, dimension, BlockPos::new(0, 1, z), animal(goal));
        if let Some(path) = path {
            update(&mut app, 1);
            in_region(&mut app, dimension, BlockPos::default(), move |region| {
                let mut paths = region.query::<&mut PathTo>();
                paths.iter_mut(region).for_each(|mut to| *to = path.clone());
            });
        }
    }
    update(&mut app, 300);
    let mut ends: Vec<_> = herd(&mut app, dimension).into_iter().map(|(_, ends)| ends).collect();
    ends.sort();
    assert_eq!(ends, [vec![format!("NoWay {goal}")], vec![format!("Stuck {goal}")]]);
    // They walk to another place.
    let home = BlockPos::new(0, 1, 4);
    in_region(&mut app, dimension, BlockPos::default(), move |region| {
        let mut paths = region.query::<&mut PathTo>();
        paths.iter_mut(region).for_each(|mut to| to.go_to(home));
    });
    update(&mut app, 200);
    let herd = herd(&mut app, dimension);
    assert!(herd.iter().all(|(at, ends)| at.block == home && ends[1] == format!("Arrived {home}")), "{herd:?}");
}

/// Promise, paths: In lockstep, characters walk the same on one thread and on two, while their regions merge.
#[test]
fn walks_are_the_same_on_one_thread_and_on_two() {
    let run = |threads: usize| {
        let plugin = TerranePlugin { threads: ThreadSettings { regions: threads, ..default() }, ..lockstep() };
        let (mut app, dimension) = pasture(plugin);
        listen::<RegionMerged>(&mut app);
        start(&mut app);
        app.update();
        for x in [0, 420] {
            let goal = BlockPos::new(x + 30, 1, 9);
            let bundle = (animal(goal), Viewer::new().with_radius(4));
            spawn_in_region(&mut app, dimension, BlockPos::new(x, 1, 0), bundle);
        }
        update(&mut app, 60);
        for number in 0..20 {
            let at = BlockPos::new([0, 420][number % 2] + number as i64, 1, 5);
            spawn_in_region(&mut app, dimension, at, animal(at.offset(-12, 0, number as i64 - 20)));
        }
        update(&mut app, 10);
        viewer(&mut app, dimension, 210.0, 0.0, 14);
        update(&mut app, 300);
        assert!(!heard::<RegionMerged>(&app).is_empty());
        herd(&mut app, dimension)
    };
    let walked = run(1);
    assert_eq!(walked, run(2));
    assert_eq!(walked.len(), 22);
    assert!(walked.iter().all(|(_, ends)| ends.len() == 1), "{walked:?}");
}
