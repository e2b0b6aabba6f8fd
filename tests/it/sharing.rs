//! Small regions that share a world are still regions: they are reported, controlled, halted, merged and saved one by one.

use crate::disk::Disk;
use crate::support::*;
use bevy_terrane::plugin::TickMode;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::{EntityMoved, SplitMix64};
use bevy_terrane::view::{
    ControlRegion, Coupling, RegionHung, RegionMerged, RegionOrder, RegionRestarted, RegionSplit,
};
use std::time::Duration;

/// The distance of islands in blocks: their regions do not touch.
const APART: i64 = 16 * 100;

fn place(island: i64) -> BlockPos {
    BlockPos::new(island * APART, 5, 0)
}

/// Explodes where a walker called "bomb" is, and works for long where one called "slow" is.
fn act(walkers: Query<&Walker>, time: Res<Time>) {
    assert!(time.delta() < Duration::from_secs(60), "a long tick");
    assert!(walkers.iter().all(|walker| walker.name != "bomb"), "a bomb went off");
    if walkers.iter().any(|walker| walker.name == "slow") {
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A world with this many islands of one column, each with a viewer.
fn islands(plugin: TerranePlugin, count: i64) -> (App, DimensionId, Vec<Entity>) {
    islands_with(plugin, count, |_| {})
}

/// The same world with additions.
fn islands_with(plugin: TerranePlugin, count: i64, more: impl FnOnce(&mut App)) -> (App, DimensionId, Vec<Entity>) {
    let mut app = game(plugin);
    more(&mut app);
    app.register_region_message::<Call>().add_region_plugins(|region| {
        region.init_resource::<Calls>().add_systems(RegionTick, (act, hear));
    });
    listen::<RegionMerged>(&mut app);
    listen::<RegionSplit>(&mut app);
    listen::<RegionHalted>(&mut app);
    listen::<RegionRestarted>(&mut app);
    listen::<RegionHung>(&mut app);
    listen::<BlockRefused>(&mut app);
    let dimension = flat(&mut app);
    let viewers =
        (0..count).map(|island| viewer(&mut app, dimension, place(island).x as f32, 0.0, 0)).collect::<Vec<_>>();
    start(&mut app);
    (app, dimension, viewers)
}

/// A message to regions, and how many came.
#[derive(Clone)]
struct Call;

#[derive(Resource, Default)]
struct Calls(usize);

fn hear(mut heard: MessageReader<Received<Call>>, mut calls: ResMut<Calls>) {
    calls.0 += heard.read().count();
}

fn settle(app: &mut App, dimension: DimensionId, count: i64) {
    for island in 0..count {
        spawn_in_region(app, dimension, place(island), walker(&format!("walker {island:03}"), 0.0));
    }
    update_until(app, "all walkers are there", |world| walkers(world).len() == count as usize);
}

fn sharing(regions_per_world: usize) -> TerranePlugin {
    TerranePlugin { regions_per_world, ..lockstep() }
}

/// The same on the clock. On a busy machine too, ticks are short beside a period of 200 ms.
fn sharing_on_the_clock(regions_per_world: usize) -> TerranePlugin {
    let clock = DimensionClock { ticks_per_second: 5.0, ..default() };
    let saving = SaveSettings::every(Duration::from_secs(3_600));
    TerranePlugin { regions_per_world, clock, saving, ..TerranePlugin::in_memory() }
}

fn worlds(world: &World) -> usize {
    world.resource::<WorldStatistics>().worlds()
}

fn wait_shared(app: &mut App, expected: usize) {
    update_until(app, "the regions share worlds", |world| worlds(world) == expected);
}

/// The ticks of each island's region.
fn ticks(app: &App, dimension: DimensionId, count: i64) -> Vec<u64> {
    let at = |island| region_at(app.world(), dimension, place(island).column()).map_or(0, |region| region.ticks);
    (0..count).map(at).collect()
}

/// Promise, worlds: Small, quick regions may share a world; they are reported, saved and controlled as regions.
#[test]
fn small_regions_share_a_world_and_are_reported_one_by_one() {
    const COUNT: i64 = 20;
    let (mut app, dimension, ..) = islands(sharing(8), COUNT);
    settle(&mut app, dimension, COUNT);
    let before = app.world().resource::<WorldStatistics>().regions.clone();
    assert_eq!((before.len(), worlds(app.world())), (COUNT as usize, COUNT as usize));
    wait_shared(&mut app, 3);
    // Two of the statistics of each fifth update.
    update(&mut app, 10);
    let after = app.world().resource::<WorldStatistics>().regions.clone();
    assert_eq!(after.len(), before.len());
    for (before, after) in before.iter().zip(&after) {
        assert_eq!((before.region, &before.sections), (after.region, &after.sections));
        assert_eq!((after.columns, after.entities, after.viewers), (1, 1, 0), "{}", after.region);
        assert!(after.ticks > before.ticks && !after.halted && after.hung.is_none());
    }
    let members = |host: RegionId| after.iter().filter(|region| region.world == host).count();
    let mut sizes: Vec<_> = after.iter().filter(|it| it.world == it.region).map(|it| members(it.region)).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [4, 8, 8]);
    assert!(heard::<RegionMerged>(&app).is_empty() && heard::<RegionSplit>(&app).is_empty(), "sharing is no merge");

    let before = ticks(&app, dimension, COUNT);
    update(&mut app, 20);
    let passed: Vec<_> = ticks(&app, dimension, COUNT).iter().zip(before).map(|(now, then)| now - then).collect();
    assert_eq!(passed, [20; COUNT as usize], "each region ticks once with each update");

    // A system sees all regions of the world; edits and letters reach their places.
    let seen = ask_region(&mut app, dimension, place(0), |walkers: Query<&Walker>, blocks: RegionBlocks| {
        (walkers.iter().count(), blocks.columns().len())
    });
    let host = region_at(app.world(), dimension, place(0).column()).expect("it is there").world;
    assert_eq!(seen, (members(host), members(host)));
    let stone = id_of(app.world(), "terrane:stone");
    for island in 0..COUNT {
        app.world_mut().write_message(SetBlock { dimension, position: place(island), block: stone });
    }
    update_until(&mut app, "all edits are seen", |world| {
        (0..COUNT).all(|island| block_at(world, dimension, place(island)) == Some(stone))
    });
    assert_eq!(walkers(app.world_mut()).len(), COUNT as usize);
}

#[test]
fn a_letter_to_all_regions_reaches_each_world_once_and_one_to_an_entity_reaches_it() {
    let (mut app, dimension, _) = islands(sharing(4), 4);
    settle(&mut app, dimension, 4);
    wait_shared(&mut app, 1);
    app.world_mut().commands().send_to_regions(Some(dimension), Call);
    let mut mirrors = app.world_mut().query_filtered::<&StableId, With<Mirror>>();
    let ids: Vec<_> = mirrors.iter(app.world()).map(|id| id.0).collect();
    for id in ids {
        let call = |mut entity: EntityWorldMut| entity.get_mut::<Walker>().expect("it is a walker").name += " called";
        app.world_mut().commands().run_on_region_entity(id, 0, call, |_, reason| panic!("{reason}"));
    }
    app.world_mut().flush();
    update_until(&mut app, "all are called", |world| walkers(world).iter().all(|(name, _)| name.ends_with(" called")));
    assert_eq!(ask_region(&mut app, dimension, place(3), |calls: Res<Calls>| calls.0), 1);
}

/// Promise, worlds: A region that grows, or gets an order, leaves the world that it shared, and the others go on.
#[test]
fn a_region_that_grows_or_gets_an_order_leaves_and_the_others_go_on() {
    const COUNT: i64 = 6;
    let (mut app, dimension, viewers) = islands(sharing(6), COUNT);
    settle(&mut app, dimension, COUNT);
    wait_shared(&mut app, 1);

    // The first region is the host, so all leave with it; the others share a world again.
    for island in [3, 0] {
        app.world_mut().get_mut::<Viewer>(viewers[island as usize]).expect("a viewer").radius = 4;
        update_until(&mut app, "it has grown alone", |world| {
            let region = region_at(world, dimension, place(island).column()).expect("it is there");
            region.columns > 40 && region.world == region.region && worlds(world) > 1
        });
        assert_eq!(ask_region(&mut app, dimension, place(island), |walkers: Query<&Walker>| walkers.iter().count()), 1);
        update_until(&mut app, "the others share", |world| worlds(world) <= 3);
    }
    let known =
        |app: &App| app.world().resource::<WorldStatistics>().regions.iter().map(|it| it.region).collect::<Vec<_>>();
    let regions = known(&app);
    assert_eq!(regions.len(), COUNT as usize);
    // Ground that appears beside a ticking region is a region that merges at the end of the tick.
    assert!(heard::<RegionMerged>(&app).iter().all(|merged| !regions.contains(&merged.from)));
    assert!(heard::<RegionSplit>(&app).is_empty());

    let before = ticks(&app, dimension, COUNT);
    order(&mut app, dimension, place(1).column(), RegionOrder::Pause);
    order(&mut app, dimension, place(2).column(), RegionOrder::TickRate(Some(5.0)));
    update(&mut app, 20);
    let passed: Vec<_> = ticks(&app, dimension, COUNT).iter().zip(before).map(|(now, then)| now - then).collect();
    assert!(passed[1] < 5 && passed[2..].iter().all(|ticks| *ticks == 20), "nobody misses a tick: {passed:?}");
    let before = ticks(&app, dimension, COUNT);
    update(&mut app, 40);
    let passed: Vec<_> = ticks(&app, dimension, COUNT).iter().zip(before).map(|(now, then)| now - then).collect();
    assert_eq!(passed, [40, 0, 40, 40, 40, 40], "in lockstep all regions tick equally often");
    let alone = |app: &App, island| {
        region_at(app.world(), dimension, place(island).column()).is_some_and(|it| it.world == it.region)
    };
    assert!(alone(&app, 1) && alone(&app, 2));

    order(&mut app, dimension, place(4).column(), RegionOrder::Halt);
    update_until(&mut app, "it halted", |world| !world.resource::<Heard<RegionHalted>>().0.is_empty());
    update(&mut app, 10);
    let halted: Vec<_> =
        app.world().resource::<WorldStatistics>().regions.iter().filter(|region| region.halted).cloned().collect();
    assert_eq!(halted.len(), 1);
    assert_eq!(halted[0].region, region_at(app.world(), dimension, place(4).column()).expect("it is there").region);
    order(&mut app, dimension, place(4).column(), RegionOrder::Restart);
    update_until(&mut app, "it began again", |world| !world.resource::<Heard<RegionRestarted>>().0.is_empty());
    save(&mut app);
    update(&mut app, 10);
    assert_eq!(walkers(app.world_mut()).len(), COUNT as usize);
}

#[test]
fn regions_that_share_a_world_and_come_near_each_other_merge() {
    let (mut app, dimension, _) = islands(sharing(4), 4);
    settle(&mut app, dimension, 4);
    wait_shared(&mut app, 1);
    let [from, into] =
        [0, 1].map(|island| region_at(app.world(), dimension, place(island).column()).expect("it is there").region);
    let middle = place(0).x as f32 + APART as f32 / 2.0;
    viewer(&mut app, dimension, middle, 0.0, 50);
    update_until(&mut app, "they merged", |world| {
        let at = |island| region_at(world, dimension, place(island).column()).map(|region| region.region);
        at(0).is_some() && at(0) == at(1) && walkers(world).len() == 4
    });
    assert!(
        heard::<RegionMerged>(&app)
            .iter()
            .any(|merged| [merged.from, merged.into].iter().any(|it| [from, into].contains(it)))
    );
    save(&mut app);
    let names: Vec<_> = walkers(app.world_mut()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["walker 000", "walker 001", "walker 002", "walker 003"]);
}

#[test]
fn in_a_paused_dimension_a_region_that_meets_another_leaves_and_they_merge() {
    let (mut app, dimension, _) = islands(sharing(4), 4);
    settle(&mut app, dimension, 4);
    wait_shared(&mut app, 1);
    clock(&mut app, dimension, DimensionClock { paused: true, ..default() });
    update(&mut app, 5);
    let before = ticks(&app, dimension, 4);
    viewer(&mut app, dimension, place(0).x as f32 + APART as f32 / 2.0, 0.0, 50);
    update_until(&mut app, "they merged", |world| {
        let at = |island: i64| region_at(world, dimension, place(island).column()).map(|region| region.region);
        at(0).is_some() && at(0) == at(1)
    });
    assert_eq!(ticks(&app, dimension, 4)[2..], before[2..], "nothing ticks");
    clock(&mut app, dimension, DimensionClock::default());
    save(&mut app);
    assert_eq!(walkers(app.world_mut()).len(), 4);
}

#[test]
fn a_region_that_leaves_gets_the_letters_to_all_regions_too() {
    const COUNT: i64 = 4;
    let (mut app, dimension, _) = islands(sharing(4), COUNT);
    settle(&mut app, dimension, COUNT);
    wait_shared(&mut app, 1);
    app.world_mut().commands().send_to_regions(Some(dimension), Call);
    app.world_mut().flush();
    order(&mut app, dimension, place(2).column(), RegionOrder::TickRate(Some(10.0)));
    update_until(&mut app, "it is alone", |world| worlds(world) == 2);
    for island in 0..COUNT {
        let calls = ask_region(&mut app, dimension, place(island), |calls: Res<Calls>| calls.0);
        assert_eq!(calls, 1, "island {island}");
    }
}

/// A walker called "touchy" panics when its region moves into the world of another.
#[test]
fn a_panic_while_regions_move_into_a_world_loses_no_saved_and_doubles_no_walker() {
    const COUNT: i64 = 5;
    let (mut app, dimension, _) = islands_with(sharing_on_the_clock(8), COUNT, |app| {
        app.add_region_plugins(|region| {
            region.add_observer(|moved: On<EntityMoved>, walkers: Query<&Walker>| {
                let is_touchy = walkers.get(moved.entity).is_ok_and(|walker| walker.name == "touchy");
                assert!(!is_touchy, "it was moved");
            });
        });
    });
    settle(&mut app, dimension, COUNT);
    spawn_in_region(&mut app, dimension, place(2), walker("touchy", 0.0));
    save(&mut app);
    update_until(&mut app, "they tried to share", |world| !world.resource::<Heard<RegionRestarted>>().0.is_empty());
    update_until(&mut app, "all walkers are back", |world| walkers(world).len() == COUNT as usize + 1);
    // None of them shares a world again.
    run_for(&mut app, Duration::from_secs(2));
    assert_eq!(worlds(app.world()), COUNT as usize);
    assert!(heard::<RegionHalted>(&app).is_empty());
    let names: Vec<_> = walkers(app.world_mut()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["touchy", "walker 000", "walker 001", "walker 002", "walker 003", "walker 004"]);
    for island in 0..COUNT {
        let seen = ask_region(&mut app, dimension, place(island), |walkers: Query<&Walker>| walkers.iter().count());
        assert_eq!(seen, 1 + usize::from(island == 2), "island {island}");
    }
}

#[test]
fn coupled_regions_do_not_share() {
    let (mut app, dimension, _) = islands(sharing(4), 4);
    settle(&mut app, dimension, 4);
    wait_shared(&mut app, 1);
    app.world_mut().spawn(Coupling { ends: [(dimension, place(1)), (dimension, place(2))] });
    update_until(&mut app, "they are coupled", |world| {
        let at = |island| region_at(world, dimension, place(island).column()).expect("it is there");
        [1, 2].iter().all(|island| at(*island).world == at(*island).region && at(*island).coupled.len() == 1)
    });
    update(&mut app, 60);
    assert_eq!(worlds(app.world()), 3, "the other two share");
    let before = ticks(&app, dimension, 4);
    update(&mut app, 20);
    let passed: Vec<_> = ticks(&app, dimension, 4).iter().zip(before).map(|(now, then)| now - then).collect();
    assert_eq!(passed, [20; 4], "all tick");
}

/// Promise, clocks and faults: A panic in a world that regions share halts one region only.
#[test]
fn a_panic_in_a_shared_world_halts_one_region_only() {
    const COUNT: i64 = 5;
    for island in [0, 3] {
        let (mut app, dimension, _) = islands(sharing_on_the_clock(8), COUNT);
        settle(&mut app, dimension, COUNT);
        wait_shared(&mut app, 1);
        save(&mut app);
        run_for(&mut app, Duration::from_millis(1_200));
        // An edit of a tick that panics is refused, wherever it is.
        let stone = id_of(app.world(), "terrane:stone");
        for other in 0..COUNT {
            app.world_mut().write_message(SetBlock { dimension, position: place(other), block: stone });
        }
        spawn_in_region(&mut app, dimension, place(island), walker("bomb", 0.0));
        update_until(&mut app, "the others are back", |world| {
            walkers(world).len() == COUNT as usize && worlds(world) == COUNT as usize
        });
        update_until(&mut app, "each edit is decided", |world| {
            let made = (0..COUNT).filter(|other| block_at(world, dimension, place(*other)) == Some(stone)).count();
            made + world.resource::<Heard<BlockRefused>>().0.len() == COUNT as usize
        });
        assert_eq!(heard::<RegionRestarted>(&app).len(), COUNT as usize, "all are told that they go on from the store");
        // The bomb was never saved, so all go on without it. Saved, it goes off again, and then its region halts alone.
        assert!(heard::<RegionHalted>(&app).is_empty());
        spawn_in_region(&mut app, dimension, place(island), walker("bomb", 0.0));
        update_until(&mut app, "its region halted", |world| {
            let halted = world.resource::<WorldStatistics>().regions.iter().filter(|region| region.halted).count();
            halted == 1 && walkers(world).len() == COUNT as usize - 1
        });
        let at = region_at(app.world(), dimension, place(island).column()).expect("it is there");
        assert_eq!(heard::<RegionHalted>(&app).iter().map(|halted| halted.region).collect::<Vec<_>>(), [at.region]);
        assert!(at.fault.is_some_and(|fault| fault.reason == "a bomb went off"));
        let before = ticks(&app, dimension, COUNT);
        update_until(&mut app, "the others tick", |world| {
            (0..COUNT).filter(|other| *other != island).all(|other| {
                region_at(world, dimension, place(other).column())
                    .is_some_and(|it| it.ticks > before[other as usize] + 5)
            })
        });
        order(&mut app, dimension, place(island).column(), RegionOrder::Restart);
        update_until(&mut app, "all walkers are back", |world| walkers(world).len() == COUNT as usize);
    }
}

#[test]
fn a_slow_region_does_not_slow_the_others_down_for_long() {
    const COUNT: i64 = 4;
    let faults = FaultSettings { watchdog_limit: Duration::from_millis(500), ..default() };
    let plugin = TerranePlugin { faults, ..sharing_on_the_clock(4) };
    let (mut app, dimension, _) = islands(plugin, COUNT);
    settle(&mut app, dimension, COUNT);
    wait_shared(&mut app, 1);
    spawn_in_region(&mut app, dimension, place(2), walker("slow", 0.0));
    update_until(&mut app, "it is alone", |world| worlds(world) == COUNT as usize);
    update_until(&mut app, "the others share", |world| worlds(world) == 2);
    let slow = region_at(app.world(), dimension, place(2).column()).expect("it is there");
    assert_eq!(slow.world, slow.region);

    // Neither a region that leaves nor one that is paused hangs.
    order(&mut app, dimension, place(0).column(), RegionOrder::Pause);
    run_for(&mut app, Duration::from_millis(800));
    assert!(heard::<RegionHung>(&app).is_empty());
    assert!(app.world().resource::<WorldStatistics>().regions.iter().all(|region| region.hung.is_none()));
}

#[test]
fn a_dimension_with_shared_worlds_closes_and_the_app_ends_with_everything_saved() {
    const COUNT: i64 = 6;
    for closes in [false, true] {
        let disk = Disk::default();
        let plugin = || TerranePlugin { regions_per_world: 3, tick_mode: TickMode::Lockstep, ..disk.plugin() };
        let (mut app, dimension, _) = islands(plugin(), COUNT);
        settle(&mut app, dimension, COUNT);
        wait_shared(&mut app, 2);
        // Not saved before the end.
        for island in 0..COUNT {
            spawn_in_region(&mut app, dimension, place(island), walker(&format!("late {island}"), 0.0));
        }
        update(&mut app, 3);
        if closes {
            despawn_dimension(&mut app, dimension);
            update_until(&mut app, "it is closed", |world| world.resource::<WorldStatistics>().dimensions.is_empty());
        }
        drop(app);
        let (mut app, ..) = islands(plugin(), COUNT);
        update_until(&mut app, "all are there", |world| walkers(world).len() == 2 * COUNT as usize);
    }
}

/// One random history: regions share worlds, grow, merge, split, halt and get orders, and the process is killed. Each walker
/// that was saved exists exactly once.
fn live(seed: u64) -> usize {
    const COUNT: i64 = 8;
    let disk = Disk::default();
    let saving = SaveSettings::every(Duration::from_millis([150, 900, 3_600_000][seed as usize % 3]));
    let plugin = |disk: &Disk| TerranePlugin {
        regions_per_world: 3,
        tick_mode: TickMode::Lockstep,
        regionizer: parting_soon(),
        saving,
        seed,
        ..disk.plugin()
    };
    let mut random = SplitMix64::new(seed);
    let (mut app, dimension, viewers) = islands(plugin(&disk), COUNT);
    settle(&mut app, dimension, COUNT);
    let (mut expected, mut shared, mut restarts) = (COUNT as usize, 0, 0);
    for step in 0..60 {
        let island = i64::from(random.below(COUNT as u32));
        let at = place(island).column();
        match random.below(12) {
            0..=2 => {
                spawn_in_region(&mut app, dimension, place(island), walker(&format!("walker {step} at {island}"), 0.0));
                update(&mut app, 2);
                expected += 1;
            }
            3 | 4 => {
                let radius = [0, 0, 3, 60][random.below(4) as usize];
                app.world_mut().get_mut::<Viewer>(viewers[island as usize]).expect("a viewer").radius = radius;
            }
            5 if region_at(app.world(), dimension, at).is_some() => {
                let what = [
                    RegionOrder::Pause,
                    RegionOrder::Resume,
                    RegionOrder::TickRate(Some(10.0)),
                    RegionOrder::TickRate(None),
                ];
                order(&mut app, dimension, at, what[random.below(4) as usize]);
            }
            6 if region_at(app.world(), dimension, at).is_some() => {
                // A halt loses unsaved changes, so everything is saved first.
                save(&mut app);
                order(&mut app, dimension, at, RegionOrder::Halt);
                update(&mut app, random.below(4) as usize);
                order(&mut app, dimension, at, RegionOrder::Restart);
                restarts += 1;
                update_until(&mut app, "it goes on", |world| {
                    world.resource::<Heard<RegionRestarted>>().0.len() == restarts
                });
            }
            _ => update(&mut app, 1 + random.below(40) as usize),
        }
        let statistics = app.world().resource::<WorldStatistics>();
        shared += usize::from(statistics.worlds() < statistics.regions.len());
        if random.below(8) == 0 {
            for region in app.world().resource::<WorldStatistics>().regions.clone() {
                app.world_mut().write_message(ControlRegion {
                    dimension,
                    region: region.region,
                    order: RegionOrder::Resume,
                });
            }
            save(&mut app);
            update_until(&mut app, "all walkers are there", |world| walkers(world).len() >= expected);
            update(&mut app, 20);
            let found = walkers(app.world_mut());
            assert_eq!(found.len(), expected, "seed {seed}, step {step}: {found:?}");
            let copy = disk.copy();
            let (mut other, ..) = islands(plugin(&copy), COUNT);
            update(&mut other, 30);
            let found = walkers(other.world_mut());
            assert_eq!(found.len(), expected, "seed {seed}, step {step}, after a crash: {found:?}");
        }
    }
    shared
}

fn live_with(seeds: impl Iterator<Item = u64>) {
    let shared: Vec<usize> = seeds.map(live).collect();
    println!("regions shared worlds {shared:?} times");
    assert!(shared.iter().sum::<usize>() > 10 * shared.len(), "regions shared worlds only {shared:?} times");
}

#[test]
fn nothing_is_lost_or_doubled_while_regions_share_and_part() {
    live_with((0..rounds(6)).step_by(2));
}

#[test]
fn nothing_is_lost_or_doubled_while_regions_share_and_part_with_other_seeds() {
    live_with((1..rounds(6)).step_by(2));
}
