//! A fault stays where it happens, and a halted region can be restarted from the store.

use crate::support::gate::Gate;
use crate::support::*;
use bevy_terrane::chunk::ColumnSummary;
use bevy_terrane::plugin::RegionFaults;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::RegionColumns;
use bevy_terrane::storage::{KeyValueStore, MemoryStore, StorageConfig, WorldStore};
use bevy_terrane::view::{DimensionClosed, RegionDestroyed, RegionOrder, RegionRestarted, SaveError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A place in a region of its own.
pub const THERE: BlockPos = BlockPos::new(16 * 200, 5, 0);

/// `true` if bombs explode.
#[derive(Resource, Clone)]
pub struct Armed(Arc<AtomicBool>);

impl Armed {
    pub fn set(&self, armed: bool) {
        self.0.store(armed, Ordering::SeqCst);
    }
}

/// Explodes if a bomb has arrived on the near side of x = 1,000.
fn go_off(armed: Res<Armed>, columns: Res<RegionColumns>, walkers: Query<(&Walker, &Position)>) {
    let is_here = |position: &Position| position.block.x < 1_000 && columns.contains(position.column());
    let goes_off = walkers.iter().any(|(walker, position)| walker.name == "bomb" && is_here(position));
    assert!(!armed.0.load(Ordering::SeqCst) || !goes_off, "a bomb went off");
}

/// Saves happen only on demand.
pub fn plugin() -> TerranePlugin {
    TerranePlugin { saving: SaveSettings::every(Duration::from_secs(3_600)), ..TerranePlugin::in_memory() }
}

/// A game with two separate regions in which bombs explode.
pub fn two_regions(plugin: TerranePlugin) -> (App, DimensionId, [Entity; 2], Armed) {
    two_regions_with(plugin, |_| {})
}

/// The same game with additions.
pub fn two_regions_with(plugin: TerranePlugin, more: impl FnOnce(&mut App)) -> (App, DimensionId, [Entity; 2], Armed) {
    let mut app = game(plugin);
    more(&mut app);
    let armed = Armed(Arc::new(AtomicBool::new(true)));
    let copy = armed.clone();
    app.add_region_plugins(move |region| {
        region.insert_resource(copy.clone()).add_systems(RegionTick, go_off);
    });
    listen::<RegionHalted>(&mut app);
    listen::<RegionRestarted>(&mut app);
    listen::<RegionDestroyed>(&mut app);
    listen::<WorldSaved>(&mut app);
    listen::<BlockRefused>(&mut app);
    let dimension = flat(&mut app);
    let viewers = [HERE, THERE].map(|block| viewer(&mut app, dimension, block.x as f32, 0.0, 1));
    start(&mut app);
    update_until(&mut app, "both tick", |world| {
        [HERE, THERE].iter().all(|place| {
            let region = region_at(world, dimension, place.column());
            region.is_some_and(|region| region.ticks > 0 && region.columns > 0)
        })
    });
    (app, dimension, viewers, armed)
}

pub fn set(app: &mut App, dimension: DimensionId, position: BlockPos, name: &str) {
    let block = id_of(app.world(), name);
    app.world_mut().write_message(SetBlock { dimension, position, block });
    update_until(app, "the edit is seen", |world| block_at(world, dimension, position) == Some(block));
}

pub fn wait_halted(app: &mut App, times: usize) {
    update_until(app, "a region halted", |world| world.resource::<Heard<RegionHalted>>().0.len() >= times);
    // Until the statistics are up to date.
    let halted = heard::<RegionHalted>(app)[times - 1].region;
    update_until(app, "the statistics know it", |world| {
        let regions = &world.resource::<WorldStatistics>().regions;
        regions.iter().any(|region| region.region == halted && region.halted)
    });
}

pub fn bomb(app: &mut App, dimension: DimensionId) {
    let times = heard::<RegionHalted>(app).len();
    spawn_in_region(app, dimension, HERE, walker("bomb", 0.0));
    wait_halted(app, times + 1);
}

pub fn restart(app: &mut App, dimension: DimensionId) {
    let times = heard::<RegionRestarted>(app).len();
    order(app, dimension, HERE.column(), RegionOrder::Restart);
    update_until(app, "it began again", |world| {
        world.resource::<Heard<RegionRestarted>>().0.len() > times
            && region_at(world, dimension, HERE.column()).is_some_and(|region| !region.halted && region.columns > 0)
    });
}

/// Moves the walker of this name from the region at `from` to another place.
pub fn jump(app: &mut App, dimension: DimensionId, from: BlockPos, name: &'static str, to: BlockPos) {
    in_region(app, dimension, from, move |region| {
        let dimension = region.resource::<RegionInfo>().dimension;
        let mut walkers = region.query::<(&Walker, &mut Position)>();
        let (_, mut position) = walkers.iter_mut(region).find(|(walker, _)| walker.name == name).expect("it is here");
        *position = Position::new(dimension, to);
    });
}

pub fn is_at(world: &mut World, name: &str, place: BlockPos) -> bool {
    walkers(world).iter().any(|(at, position)| at == name && position.block == place)
}

/// Promise, clocks and faults: A region whose tick panics halts and reports the place, and the other regions continue.
#[test]
fn a_panic_is_reported_with_its_source_system_and_place_and_other_regions_tick() {
    let (mut app, dimension, ..) = two_regions(plugin());
    let region = region_at(app.world(), dimension, HERE.column()).unwrap();
    bomb(&mut app, dimension);
    let halted = heard::<RegionHalted>(&app)[0].clone();
    assert_eq!((halted.dimension, halted.region), (region.dimension, region.region));
    let shift = app.world().resource::<WorldStatistics>().section_shift;
    let fault = halted.fault;
    assert!(region.contains(fault.column.unwrap().section(shift)), "{:?}", fault.column);
    assert_eq!(fault.reason, "a bomb went off");
    let location = fault.location.as_ref().unwrap();
    assert!(location.contains("faults.rs:"), "{location}");
    let system = fault.system.as_ref().unwrap();
    assert!(system.contains("go_off"), "{system}");

    let before = region_at(app.world(), dimension, THERE.column()).unwrap().ticks;
    set(&mut app, dimension, THERE, "terrane:stone");
    update_until(&mut app, "the other ticks on", |world| {
        region_at(world, dimension, THERE.column()).is_some_and(|region| region.ticks > before + 20)
    });
    assert_eq!(heard::<RegionHalted>(&app).len(), 1, "it does not tick again");
    let position = BlockPos::new(3, 9, 3);
    let block = id_of(app.world(), "terrane:stone");
    app.world_mut().write_message(SetBlock { dimension, position, block });
    update_until(&mut app, "edits of it are refused", |world| !world.resource::<Heard<BlockRefused>>().0.is_empty());
}

#[test]
fn an_error_that_a_system_returns_halts_its_region_with_the_systems_name() {
    fn complain(walkers: Query<&Walker>) -> Result {
        if walkers.iter().any(|walker| walker.name == "complainer") {
            return Err("the food is bad".into());
        }
        Ok(())
    }
    let mut app = game(plugin());
    app.add_region_plugins(|region| {
        region.add_systems(RegionTick, complain);
    });
    listen::<RegionHalted>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    spawn_in_region(&mut app, dimension, HERE, walker("complainer", 0.0));
    update_until(&mut app, "it halted", |world| !world.resource::<Heard<RegionHalted>>().0.is_empty());
    let halted = &heard::<RegionHalted>(&app)[0].fault;
    assert!(halted.reason.contains("the food is bad"), "{}", halted.reason);
    let system = halted.system.as_deref().unwrap_or_default();
    assert!(system.contains("complain"), "{halted:?}");
}

/// Promise, clocks and faults: `RegionHalted` gives the source location of the panic that ended the tick.
#[test]
fn the_location_is_that_of_the_panic_that_ended_the_tick() {
    /// A panic within a library that catches it silently.
    fn recover() {
        let caught = catch_unwind(|| panic!("caught in time"));
        assert!(caught.is_err());
    }
    fn recover_and_fail(walkers: Query<&Walker>) {
        recover();
        assert!(walkers.iter().all(|walker| walker.name != "bomb"), "not caught"); // the line
    }
    let line = include_str!("faults.rs").lines().position(|line| line.ends_with("// the line")).unwrap() + 1;
    let mut app = game(plugin());
    app.add_region_plugins(|region| {
        region.add_systems(RegionTick, recover_and_fail);
    });
    listen::<RegionHalted>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    spawn_in_region(&mut app, dimension, HERE, walker("bomb", 0.0));
    update_until(&mut app, "it halted", |world| !world.resource::<Heard<RegionHalted>>().0.is_empty());
    let halted = &heard::<RegionHalted>(&app)[0].fault;
    assert_eq!(halted.reason, "not caught");
    let location = halted.location.as_deref().unwrap_or_default();
    assert!(location.contains(&format!("faults.rs:{line}:")), "{location}, and not line {line}");
    let system = halted.system.as_deref().unwrap_or_default();
    assert!(system.contains("recover_and_fail"), "{system}");
}

/// Promise, clocks and faults: A halted region restarts from the store.
#[test]
fn a_restart_restores_exactly_the_last_save() {
    let (mut app, dimension, _, armed) = two_regions(plugin());
    let [saved, unsaved] = [BlockPos::new(2, 9, 2), BlockPos::new(3, 9, 2)];
    set(&mut app, dimension, saved, "terrane:stone");
    spawn_in_region(&mut app, dimension, HERE, walker("saved", 0.0));
    update_until(&mut app, "it is there", |world| walkers(world).len() == 1);
    save(&mut app);
    set(&mut app, dimension, unsaved, "terrane:stone");
    spawn_in_region(&mut app, dimension, HERE, walker("unsaved", 0.0));
    update_until(&mut app, "it is there", |world| walkers(world).len() == 2);
    bomb(&mut app, dimension);
    armed.set(false);
    restart(&mut app, dimension);
    update_until(&mut app, "what was saved is back", |world| is_at(world, "saved", HERE));
    let air = BlockId::AIR;
    update_until(&mut app, "what was not is gone", |world| block_at(world, dimension, unsaved) == Some(air));
    assert_eq!(block_at(app.world_mut(), dimension, saved), Some(id_of(app.world(), "terrane:stone")));
    assert_eq!(names(&mut app), ["saved"], "also from the main world");
    set(&mut app, dimension, unsaved, "terrane:stone");
    let ticks = region_at(app.world(), dimension, HERE.column()).unwrap().ticks;
    update_until(&mut app, "it ticks on", |world| {
        region_at(world, dimension, HERE.column()).is_some_and(|region| region.ticks > ticks + 5)
    });
}

/// Promise, clocks and faults: `RegionOrder::Halt` stops a region as a panic would.
/// Promise, clocks and faults: `Regions` names the fault of a halted region, the step of a hanging one, and the regions coupled with it.
#[test]
fn a_region_halts_by_order_and_restarts_from_the_last_save() {
    for is_paused in [false, true] {
        let (mut app, dimension, ..) = two_regions(plugin());
        let [saved, unsaved] = [BlockPos::new(2, 9, 2), BlockPos::new(3, 9, 2)];
        set(&mut app, dimension, saved, "terrane:stone");
        save(&mut app);
        set(&mut app, dimension, unsaved, "terrane:stone");
        if is_paused {
            order(&mut app, dimension, HERE.column(), RegionOrder::Pause);
            run_for(&mut app, Duration::from_millis(200));
        }
        order(&mut app, dimension, HERE.column(), RegionOrder::Halt);
        wait_halted(&mut app, 1);
        let region = region_at(app.world(), dimension, HERE.column()).unwrap();
        let fault = region.fault.unwrap();
        assert_eq!((fault.reason.as_str(), &fault.location, &fault.system), ("by order", &None, &None));
        assert_eq!(heard::<RegionHalted>(&app)[0].fault, fault);
        assert_eq!(region_at(app.world(), dimension, THERE.column()).unwrap().fault, None);
        let (sender, receiver) = std::sync::mpsc::channel();
        in_region(&mut app, dimension, HERE, move |_| sender.send(()).unwrap());
        restart(&mut app, dimension);
        if is_paused {
            order(&mut app, dimension, HERE.column(), RegionOrder::Resume);
        }
        update_until(&mut app, "what waited for it is there", |_| receiver.try_recv().is_ok());
        update_until(&mut app, "what was not saved is gone", |world| {
            block_at(world, dimension, unsaved) == Some(BlockId::AIR)
        });
        assert_eq!(block_at(app.world_mut(), dimension, saved), Some(id_of(app.world(), "terrane:stone")));
        assert_eq!(region_at(app.world(), dimension, HERE.column()).unwrap().fault, None);
    }
}

#[test]
fn an_order_to_halt_ends_no_app_in_lockstep() {
    let mut app = game(lockstep());
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 20);
    let is_halted = |app: &App| region_at(app.world(), dimension, HERE.column()).unwrap().halted;
    for (told, halted) in [(RegionOrder::Halt, true), (RegionOrder::Restart, false)] {
        order(&mut app, dimension, HERE.column(), told);
        update(&mut app, 10);
        assert_eq!(is_halted(&app), halted);
    }
    assert!(block_at(app.world_mut(), dimension, HERE).is_some());
}

/// Two regions, one with a walker.
fn with_a_walker(place: BlockPos, name: &str) -> (App, DimensionId, Armed) {
    let (mut app, dimension, _, armed) = two_regions(plugin());
    spawn_in_region(&mut app, dimension, place, walker(name, 0.0));
    update_until(&mut app, "it is there", |world| walkers(world).len() == 1);
    (app, dimension, armed)
}

#[test]
fn an_entity_on_its_way_into_a_halted_region_waits_and_arrives_once() {
    let (mut app, dimension, armed) = with_a_walker(THERE, "jumper");
    bomb(&mut app, dimension);
    armed.set(false);
    jump(&mut app, dimension, THERE, "jumper", HERE);
    run_for(&mut app, Duration::from_millis(300));
    restart(&mut app, dimension);
    update_until(&mut app, "it arrived", |world| is_at(world, "jumper", HERE));
    save(&mut app);
    assert_eq!(names(&mut app), ["jumper"]);
}

#[test]
fn an_entity_that_arrives_in_the_tick_that_panics_is_not_lost() {
    let (mut app, dimension, armed) = with_a_walker(THERE, "bomb");
    // It was never saved: an entity that leaves a region is stored with it.
    jump(&mut app, dimension, THERE, "bomb", HERE);
    wait_halted(&mut app, 1);
    order(&mut app, dimension, HERE.column(), RegionOrder::Restart);
    wait_halted(&mut app, 2);
    armed.set(false);
    restart(&mut app, dimension);
    update_until(&mut app, "it arrived", |world| is_at(world, "bomb", HERE));
    run_for(&mut app, Duration::from_millis(300));
    assert_eq!(names(&mut app), ["bomb"]);
}

#[test]
fn an_entity_that_left_before_the_fault_does_not_come_back_a_second_time() {
    let (mut app, dimension, armed) = with_a_walker(HERE, "jumper");
    save(&mut app);
    jump(&mut app, dimension, HERE, "jumper", THERE);
    update_until(&mut app, "it left", |world| is_at(world, "jumper", THERE));
    bomb(&mut app, dimension);
    armed.set(false);
    restart(&mut app, dimension);
    update_until(&mut app, "it arrived", |world| is_at(world, "jumper", THERE));
    run_for(&mut app, Duration::from_millis(500));
    assert_eq!(names(&mut app).iter().filter(|name| *name == "jumper").count(), 1);
    let (sender, receiver) = std::sync::mpsc::channel();
    for place in [HERE, THERE] {
        let sender = sender.clone();
        in_region(&mut app, dimension, place, move |region| {
            sender.send(region.query::<&Walker>().iter(region).filter(|it| it.name == "jumper").count()).unwrap();
        });
    }
    let mut found = Vec::new();
    update_until(&mut app, "both regions answer", |_| {
        found.extend(receiver.try_iter());
        found.len() == 2
    });
    assert_eq!(found.iter().sum::<usize>(), 1);
}

#[test]
fn letters_to_a_halted_region_wait_for_its_restart() {
    let (mut app, dimension, _, armed) = two_regions(plugin());
    bomb(&mut app, dimension);
    armed.set(false);
    let (sender, receiver) = std::sync::mpsc::channel();
    in_region(&mut app, dimension, HERE, move |_| sender.send(()).unwrap());
    run_for(&mut app, Duration::from_millis(300));
    assert!(receiver.try_recv().is_err());
    restart(&mut app, dimension);
    update_until(&mut app, "the letter is read", |_| receiver.try_recv().is_ok());
}

/// Promise, clocks and faults: A halted region restarts from the store when a live region merges with it.
#[test]
fn a_viewer_that_walks_into_a_halted_region_finds_the_last_save() {
    let (mut app, dimension, [_, walking], armed) = two_regions(plugin());
    let saved = BlockPos::new(2, 9, 2);
    set(&mut app, dimension, saved, "terrane:stone");
    spawn_in_region(&mut app, dimension, HERE, walker("saved", 0.0));
    update_until(&mut app, "it is there", |world| walkers(world).len() == 1);
    save(&mut app);
    spawn_in_region(&mut app, dimension, THERE, (walker("guest", 0.0), Viewer::new().with_radius(1)));
    bomb(&mut app, dimension);
    armed.set(false);
    update_until(&mut app, "the guest is there", |world| is_at(world, "guest", THERE));
    // Separately, since the guest holds its columns too.
    app.world_mut().despawn(walking);
    let mut at = THERE;
    for column in [100, 50, 25, 12, 8, 4] {
        let to = BlockPos::new(16 * column, 5, 0);
        jump(&mut app, dimension, at, "guest", to);
        update_until(&mut app, "the guest arrived", |world| {
            is_at(world, "guest", to) && block_at(world, dimension, to).is_some()
        });
        at = to;
        run_for(&mut app, Duration::from_millis(100));
    }
    update_until(&mut app, "the halted region is a part of a live one", |world| {
        region_at(world, dimension, HERE.column()).is_some_and(|region| !region.halted && region.columns > 0)
    });
    update_until(&mut app, "what was saved is back", |world| is_at(world, "saved", HERE));
    assert_eq!(names(&mut app), ["guest", "saved"]);
    assert_eq!(block_at(app.world_mut(), dimension, saved), Some(id_of(app.world(), "terrane:stone")));
    set(&mut app, dimension, BlockPos::new(3, 9, 3), "terrane:stone");
}

#[test]
fn unneeded_columns_of_a_halted_region_unload_and_reload_as_saved() {
    let (mut app, dimension, [here, _], armed) =
        two_regions(TerranePlugin { clock: DimensionClock { ticks_per_second: 4.0, ..default() }, ..plugin() });
    let saved = BlockPos::new(2, 9, 2);
    set(&mut app, dimension, saved, "terrane:stone");
    save(&mut app);
    let region = region_at(app.world(), dimension, HERE.column()).unwrap().region;
    // The very tick that panics asks for its columns again.
    app.world_mut().despawn(here);
    spawn_in_region(&mut app, dimension, HERE, walker("bomb", 0.0));
    update_until(&mut app, "it halted", |world| !world.resource::<Heard<RegionHalted>>().0.is_empty());
    armed.set(false);
    update_until(&mut app, "it is gone", |world| {
        world.resource::<Heard<RegionDestroyed>>().0.iter().any(|gone| gone.region == region)
    });
    assert_eq!(block_at(app.world_mut(), dimension, HERE), None);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    let stone = id_of(app.world(), "terrane:stone");
    update_until(&mut app, "it is loaded again", |world| block_at(world, dimension, saved) == Some(stone));
}

/// A place between the two regions.
const BESIDE: BlockPos = BlockPos::new(16 * 60, 5, 0);

/// Puts a guest into the other region, and lets that grow until it merges with the halted one: viewers join the two.
fn join_with_the_halted_region(app: &mut App, dimension: DimensionId, walking: Entity) {
    move_viewer(app, walking, BESIDE.x as f32, 0.0);
    update_until(app, "it has ground there", |world| block_at(world, dimension, BESIDE).is_some());
    spawn_in_region(app, dimension, BESIDE, walker("guest", 0.0));
    update_until(app, "it is there", |world| is_at(world, "guest", BESIDE));
    viewer(app, dimension, BESIDE.x as f32, 0.0, 1);
    // They stay, so that no region splits, however long that takes.
    for column in (4..60).rev().step_by(3) {
        viewer(app, dimension, 16.0 * column as f32, 0.0, 1);
    }
    update_until(app, "they are one, and halted", |world| {
        let regions = &world.resource::<WorldStatistics>().regions;
        regions.len() == 1 && regions[0].halted
    });
}

/// Promise, clocks and faults: With `RegionFaults`, a panic in a region can also halt its neighbours, or propagate to the app.
#[test]
fn by_a_setting_regions_that_merge_with_a_halted_one_halt_until_a_restart() {
    let (mut app, dimension, [_, walking], armed) = two_regions(TerranePlugin {
        faults: FaultSettings { on_panic: RegionFaults::HaltNeighbors, ..default() },
        ..plugin()
    });
    spawn_in_region(&mut app, dimension, HERE, walker("saved", 0.0));
    update_until(&mut app, "it is there", |world| walkers(world).len() == 1);
    save(&mut app);
    bomb(&mut app, dimension);
    armed.set(false);
    join_with_the_halted_region(&mut app, dimension, walking);
    let ticks = app.world().resource::<WorldStatistics>().regions[0].ticks;
    run_for(&mut app, Duration::from_millis(600));
    assert_eq!(app.world().resource::<WorldStatistics>().regions[0].ticks, ticks);
    restart(&mut app, dimension);
    update_until(&mut app, "both are there", |world| is_at(world, "saved", HERE) && is_at(world, "guest", BESIDE));
    update_until(&mut app, "it ticks", |world| world.resource::<WorldStatistics>().regions[0].ticks > ticks + 5);
}

#[test]
fn unsaved_data_in_a_halted_region_is_saved() {
    let disk = Arc::new(MemoryStore::default());
    let plugin = TerranePlugin {
        saving: SaveSettings::every(Duration::from_secs(3_600)),
        faults: FaultSettings { on_panic: RegionFaults::HaltNeighbors, ..default() },
        ..TerranePlugin::stored_in(StorageConfig::Custom(disk.clone()))
    };
    let (mut app, dimension, [_, walking], armed) = two_regions(plugin);
    bomb(&mut app, dimension);
    armed.set(false);
    join_with_the_halted_region(&mut app, dimension, walking);
    let id = dimension;
    let stored = || {
        let store = WorldStore::from_store(Arc::new(disk.snapshot())).unwrap();
        let columns = store.load_batch(id, BESIDE.column().batch(), &[BESIDE.column()], 0..1).unwrap();
        columns[0].entities.len()
    };
    assert_eq!(stored(), 0);
    save(&mut app);
    assert_eq!(stored(), 1, "the guest is in the store");

    // Also at the end of its dimension, in which it is not restarted.
    listen::<DimensionClosed>(&mut app);
    despawn_dimension(&mut app, dimension);
    update_until(&mut app, "it is closed", |world| !world.resource::<Heard<DimensionClosed>>().0.is_empty());
    assert_eq!(stored(), 1);
}

/// Promise, crashes: If a halted region cannot save, a `SaveFailed` with the request's number answers the `SaveWorld`.
#[test]
fn a_save_that_was_asked_for_before_a_region_halts_fails_by_its_number() {
    let (mut app, dimension, ..) = two_regions(plugin());
    listen::<SaveFailed>(&mut app);
    let gate = Gate::default();
    gate.close();
    let copy = gate.clone();
    in_region(&mut app, dimension, HERE, move |_| {
        copy.pass();
        panic!("too late for a save");
    });
    update_until(&mut app, "it ticks", |_| gate.waiting() == 1);
    // The second request waits until the first has an answer.
    for request in [7, 8] {
        app.world_mut().write_message(SaveWorld { request });
        run_for(&mut app, Duration::from_millis(100));
    }
    gate.open();
    update_until(&mut app, "it failed", |world| !world.resource::<Heard<SaveFailed>>().0.is_empty());
    let failed: Vec<_> = heard::<SaveFailed>(&app).iter().flat_map(|failed| &failed.requests).copied().collect();
    assert_eq!(failed, [7, 8]);
    assert!(matches!(heard::<SaveFailed>(&app)[0].error, SaveError::Halted { .. }));
    app.world_mut().write_message(SaveWorld { request: 9 });
    update_until(&mut app, "the others are saved", |world| !world.resource::<Heard<WorldSaved>>().0.is_empty());
    assert_eq!(heard::<WorldSaved>(&app).iter().map(|saved| saved.request).collect::<Vec<_>>(), [9]);
}

/// Promise, crashes: A region that hangs as the app ends keeps its last saved state, with the edits that waited for it.
#[test]
fn edits_that_wait_for_a_region_that_hangs_as_the_app_ends_are_stored() {
    let disk: Arc<dyn KeyValueStore> = Arc::new(MemoryStore::default());
    let storage = StorageConfig::Custom(disk.clone());
    let saving = SaveSettings { shutdown_patience: Duration::ZERO, ..SaveSettings::every(Duration::from_secs(3_600)) };
    let (mut app, dimension, ..) = two_regions(TerranePlugin { saving, ..TerranePlugin::stored_in(storage.clone()) });
    let id = dimension;
    let stone = id_of(app.world(), "terrane:stone");
    let [saved, waiting, in_the_air, lost] = [(1, 2), (2, 3), (3, 100), (4, 4)].map(|(x, y)| BlockPos::new(x, y, 0));
    set(&mut app, dimension, saved, "terrane:stone");
    save(&mut app);
    set(&mut app, dimension, lost, "terrane:stone");
    let gate = Gate::default();
    gate.close();
    let copy = gate.clone();
    in_region(&mut app, dimension, HERE, move |_| copy.pass());
    update_until(&mut app, "it hangs", |_| gate.waiting() == 1);
    for position in [waiting, in_the_air] {
        app.world_mut().write_message(SetBlock { dimension, position, block: stone });
    }
    run_for(&mut app, Duration::from_millis(200));
    drop(app);

    let store = WorldStore::open(&storage).unwrap();
    let stored = store.load_batch(id, HERE.column().batch(), &[HERE.column()], -4..20).unwrap().remove(0).column;
    let found = [saved, waiting, in_the_air, lost].map(|block| stored.block(block) == stone);
    assert_eq!(found, [true, true, true, false]);
    let seen_from_afar = store.summaries(id, &[HERE.column()]).unwrap().remove(0);
    assert_eq!(seen_from_afar, Some(ColumnSummary::new(&stored)));
    gate.open();
}

/// Promise, clocks and faults: With `RegionFaults`, a panic in a region can also halt its neighbours, or propagate to the app.
#[test]
fn by_a_setting_a_panic_reaches_the_app() {
    let (mut app, dimension, ..) = two_regions(TerranePlugin {
        faults: FaultSettings { on_panic: RegionFaults::Propagate, ..default() },
        ..plugin()
    });
    spawn_in_region(&mut app, dimension, HERE, walker("bomb", 0.0));
    let forever = catch_unwind(AssertUnwindSafe(|| update_until(&mut app, "the app panics", |_| false)));
    assert_eq!(forever.unwrap_err().downcast_ref::<&str>(), Some(&"a bomb went off"));
}
