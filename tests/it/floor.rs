//! The floor of a dimension: what falls out of the world ends there, or comes back, and is neither saved for ever nor doubled.

use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::{FloorOutcome, FloorReached};
use bevy_terrane::storage::MemoryStore;
use bevy_terrane::view::{LogIn, PlayerLoggedIn};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use uuid::Uuid;

/// An item with a number.
#[derive(Component, Clone, Copy, Debug, PartialEq, Serialize, Deserialize, TypePath)]
struct Item(u64);

/// A rider, which follows what it sits on wherever that goes, and is despawned with it.
#[derive(Component, Clone, Debug)]
#[relationship(relationship_target = Seat)]
struct Rides(Entity);

#[derive(Component, Clone, Debug, Default)]
#[relationship_target(relationship = Rides, linked_spawn)]
struct Seat(Vec<Entity>);

/// What was triggered, with the number of the item; players have none.
#[derive(Resource, Clone, Default)]
struct Reached(Arc<Mutex<Vec<(Option<u64>, FloorOutcome)>>>);

impl Reached {
    fn take(&self) -> Vec<(Option<u64>, FloorOutcome)> {
        let mut reached = std::mem::take(&mut *self.0.lock().unwrap());
        reached.sort_by_key(|(item, _)| *item);
        reached
    }
}

/// A world of air, 16 blocks high, with a floor. An item with the number 100 has a place of its own choice at the floor.
fn world(plugin: TerranePlugin, floor: Option<Floor>) -> (App, DimensionId, Reached) {
    let mut app = game(plugin);
    app.add_plugins(BodyPlugin)
        .register_saved_component::<Item>()
        .mirror_region_component::<Item>()
        .mirror_region_component::<Player>()
        .mirror_region_component::<Grounded>()
        .register_region_relationship::<Rides>();
    listen::<PlayerLoggedIn>(&mut app);
    let reached = Reached::default();
    let copy = reached.clone();
    app.add_region_plugins(move |region| {
        region.insert_resource(copy.clone());
        region.add_observer(|on: On<FloorReached>, reached: Res<Reached>, mut items: Query<(&Item, &mut Position)>| {
            let item = items.get(on.entity).ok().map(|(item, _)| item.0);
            reached.0.lock().unwrap().push((item, on.outcome));
            if let (Some(100), Ok((_, mut place))) = (item, items.get_mut(on.entity)) {
                place.block.y = 12;
            }
        });
    });
    let dimension = Dimension::new("overworld", Void).with_height(0..16);
    let dimension = match floor {
        Some(floor) => dimension.with_floor(floor),
        None => dimension,
    };
    let dimension = spawn_dimension(&mut app, dimension);
    viewer(&mut app, dimension, 0.0, 0.0, 2);
    start(&mut app);
    update(&mut app, 10);
    (app, dimension, reached)
}

/// An item that falls fast, or hovers.
fn item(number: u64, falls: bool) -> impl Bundle {
    let body = BlockBody::new(0.25, 0.25);
    let (gravity, speed) = if falls { (body.gravity, -40.0) } else { (0.0, 0.0) };
    (Item(number), BlockBody { gravity, ..body }, BodyVelocity(Vec3::Y * speed))
}

/// The mirrored items by their numbers, with their heights. No number occurs twice.
fn items(world: &mut World) -> BTreeMap<u64, i64> {
    let mut mirrors = world.query_filtered::<(&Item, &Position), With<Mirror>>();
    let mut found = BTreeMap::new();
    for (item, place) in mirrors.iter(world) {
        assert_eq!(found.insert(item.0, place.block.y), None, "item {} is there twice", item.0);
    }
    found
}

/// Promise, bodies: A body that falls out of the world ends at the floor, 64 blocks below the lowest block, and is not in the store.
#[test]
fn bodies_end_at_the_floor_and_do_not_come_back() {
    let store = Arc::new(MemoryStore::new());
    let open = || world(lockstep_on(&store), None);
    let (mut app, dimension, reached) = open();
    for number in 0..50 {
        let place = BlockPos::new(number as i64 % 16, 2, number as i64 / 16);
        spawn_in_region(&mut app, dimension, place, item(number, number > 0));
    }
    spawn_in_region(&mut app, dimension, BlockPos::new(9, 2, 9), item(100, true));
    update(&mut app, 5);
    assert_eq!(items(app.world_mut()).len(), 51);
    save(&mut app);
    update(&mut app, 60);
    assert_eq!(items(app.world_mut()).into_keys().collect::<Vec<_>>(), [0, 100], "one hovers, one was moved up");
    let mut ended = reached.take();
    let moved = ended.extract_if(.., |(item, _)| *item == Some(100)).count();
    assert!(ended.iter().map(|(item, _)| *item).eq((1..50).map(Some)) && moved > 0, "{ended:?}");
    assert!(ended.iter().all(|(_, outcome)| *outcome == FloorOutcome::Ends));
    let (mut app, ..) = reopen(app, open);
    update(&mut app, 10);
    assert_eq!(items(app.world_mut()).into_keys().collect::<Vec<_>>(), [0, 100]);
}

/// Promise, bodies: Bodies that an older version of the game left below the world end, or come back, in the first tick.
#[test]
fn bodies_far_below_the_world_end_or_come_back_when_it_is_opened() {
    for returns in [false, true] {
        let store = Arc::new(MemoryStore::new());
        let (mut app, dimension, _) = world(lockstep_on(&store), Some(Floor::at(i64::MIN)));
        for number in 0..50 {
            let place = BlockPos::new(3, -90 - number as i64, 3);
            spawn_in_region(&mut app, dimension, place, item(number, number % 2 == 0));
        }
        update(&mut app, 30);
        assert_eq!(items(app.world_mut()).len(), 50);
        let home = Position::new(dimension, BlockPos::new(5, 9, 5));
        let floor = returns.then(|| Floor::at(-64).returning_all(home));
        let (mut app, _, reached) = reopen(app, || world(lockstep_on(&store), floor));
        update_until(&mut app, "all are there", |_| reached.0.lock().unwrap().len() >= 50);
        update(&mut app, 2);
        let outcome = if returns { FloorOutcome::Returns(home) } else { FloorOutcome::Ends };
        assert!(reached.take().into_iter().all(|(_, found)| found == outcome));
        let left = items(app.world_mut());
        assert_eq!(left.len(), if returns { 50 } else { 0 });
        assert!(left.into_values().all(|y| y > 0));
    }
}

fn log_in(app: &mut App, dimension: DimensionId) -> Uuid {
    let before = heard::<PlayerLoggedIn>(app).len();
    let first_place = Some((dimension, BlockPos::new(8, 5, 8)));
    app.world_mut().write_message(LogIn { name: "Ida".to_owned(), first_place });
    update_until(app, "the player is there", |world| world.resource::<Heard<PlayerLoggedIn>>().0.len() > before);
    let id = heard::<PlayerLoggedIn>(app)[before].id;
    let give = |mut player: EntityWorldMut| {
        player.insert((BlockBody::new(0.6, 1.8), CharacterController::default()));
    };
    app.world_mut().commands().run_on_region_entity(id, 0, give, |_, reason| panic!("{reason}"));
    app.world_mut().flush();
    id
}

fn player(app: &mut App) -> Option<(Position, Grounded)> {
    let mut players = app.world_mut().query_filtered::<(&Position, &Grounded), (With<Mirror>, With<Player>)>();
    players.iter(app.world()).next().map(|(place, grounded)| (*place, *grounded))
}

/// Promise, bodies: A player who falls out of the world stands on the floor, or comes back to the place of the setting; none ends.
#[test]
fn players_stand_on_the_floor_or_come_back() {
    let store = Arc::new(MemoryStore::new());
    let open = |floor| world(lockstep_on(&store), floor);
    let (mut app, dimension, reached) = open(Some(Floor::at(-10)));
    let id = log_in(&mut app, dimension);
    let own = app.world_mut().spawn(OwnBody::new(id)).id();
    update(&mut app, 60);
    let (place, grounded) = player(&mut app).expect("the player lives");
    assert!(place.block.y == -10 && grounded.ground, "{place:?}");
    let predicted = app.world().get::<OwnBody>(own).and_then(OwnBody::state).map(|state| state.position);
    assert_eq!(predicted, Some(place), "the player's own body stands there too");
    assert_eq!(reached.take(), [(None, FloorOutcome::Stands)], "told once");
    // The floor is higher now, so the player is far below it.
    let (mut app, dimension, reached) = reopen(app, || open(Some(Floor::at(-3))));
    log_in(&mut app, dimension);
    update(&mut app, 10);
    assert_eq!((player(&mut app).unwrap().0.block.y, reached.take()), (-3, vec![(None, FloorOutcome::Stands)]));
    let home = Position::new(dimension, BlockPos::new(20, 9, 5));
    let floor = Floor::at(-3).returning_players(home);
    let (mut app, dimension, reached) = reopen(app, || open(Some(floor)));
    log_in(&mut app, dimension);
    update(&mut app, 3);
    let (place, _) = player(&mut app).unwrap();
    assert!(place.block.y > 5 && place.block.x == 20, "{place:?}");
    assert_eq!(reached.take(), [(None, FloorOutcome::Returns(home))]);
}

#[test]
fn a_body_with_a_player_on_it_does_not_end() {
    let (mut app, dimension, reached) = world(lockstep(), Some(Floor::at(-10)));
    let id = log_in(&mut app, dimension);
    update(&mut app, 2);
    // A boat and a raft.
    for number in [1, 2] {
        spawn_in_region(&mut app, dimension, BlockPos::new(number as i64, 5, 3), item(number, true));
    }
    update(&mut app, 1);
    let board = move |mut player: EntityWorldMut| {
        let boat = player.world_scope(|world| {
            let mut items = world.query::<(Entity, &Item)>();
            items.iter(world).find(|(_, item)| item.0 == 1).expect("the boat is there").0
        });
        player.insert(Rides(boat));
    };
    app.world_mut().commands().run_on_region_entity(id, 0, board, |_, reason| panic!("{reason}"));
    app.world_mut().flush();
    update(&mut app, 40);
    assert!(player(&mut app).is_some());
    assert_eq!(items(app.world_mut()), BTreeMap::from([(1, -10)]), "the boat stands, and the raft ends");
    let reached = reached.take();
    assert!(reached.contains(&(Some(1), FloorOutcome::Stands)) && reached.contains(&(Some(2), FloorOutcome::Ends)));
}

#[cfg(feature = "rocksdb")]
mod killed {
    use super::*;
    use crate::support::process::{here, kill, process};
    use bevy_terrane::plugin::SaveDurability;
    use std::collections::BTreeSet;
    use std::time::Duration;

    /// A line of the process, with the numbers of items.
    fn told(word: &str, numbers: impl IntoIterator<Item = u64>) -> String {
        numbers.into_iter().fold(word.to_owned(), |line, number| format!("{line} {number}"))
    }

    fn numbers(line: &str, word: &str) -> Option<BTreeSet<u64>> {
        let numbers = line.strip_prefix(word)?.split_whitespace();
        Some(numbers.map(|number| number.parse().unwrap()).collect())
    }

    /// Runs only in the process that the test below starts and kills; otherwise it does nothing. In each frame it lets an item fall, and
    /// in every fifth another one hover. It tells which items are there at first, and after each save, which hovered and which
    /// had ended when the save began.
    #[test]
    fn process_whose_items_fall() {
        let Some(path) = here() else { return };
        let first: u64 = std::fs::read_to_string(path.with_extension("first")).unwrap().parse().unwrap();
        let saving =
            SaveSettings { durability: SaveDurability::AtShutdown, ..SaveSettings::every(Duration::from_millis(40)) };
        let clock = DimensionClock { ticks_per_second: 200.0, ..default() };
        let plugin = TerranePlugin { clock, saving, ..TerranePlugin::at(&path) };
        let (mut app, dimension, reached) = world(plugin, Some(Floor::at(-4)));
        listen::<WorldSaved>(&mut app);
        update_until(&mut app, "it is loaded", |world| block_at(world, dimension, BlockPos::new(3, 5, 3)).is_some());
        let ticks = app.world().resource::<WorldStatistics>().ticks;
        update_until(&mut app, "all regions ticked", |world| world.resource::<WorldStatistics>().ticks > ticks + 20);
        println!("\n{}", told("found", items(app.world_mut()).into_keys()));
        let (mut ended, mut saves) = (BTreeSet::new(), BTreeMap::new());
        for frame in 0..1_000_000 {
            if frame < 30 {
                let place = BlockPos::new(3, 5, frame as i64 % 8);
                spawn_in_region(&mut app, dimension, place, item(first + frame, frame % 5 != 0));
            }
            app.update();
            ended.extend(reached.take().into_iter().filter_map(|(item, _)| item));
            let hovering = items(app.world_mut()).into_keys().filter(|number| number % 5 == 0);
            saves.insert(frame, (hovering.collect::<Vec<_>>(), ended.clone()));
            app.world_mut().write_message(SaveWorld { request: frame });
            for WorldSaved { request, .. } in heard::<WorldSaved>(&app) {
                if let Some((hovering, ended)) = saves.remove(request) {
                    println!("\n{}\n{}", told("kept", hovering), told("ended", ended));
                }
            }
            app.world_mut().resource_mut::<Heard<WorldSaved>>().0.clear();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// `TERRANE_ROUNDS=10` kills 200 times.
    ///
    /// Promise, crashes: Whenever the process is killed while items fall out of the world, no item is doubled, none that hovered is lost,
    /// and none that had ended is back.
    #[test]
    fn a_process_whose_items_fall_is_killed_and_each_is_there_or_gone() {
        let mut random = bevy_terrane::simulation::SplitMix64::new(rounds(20));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("world");
        let (mut kept, mut ended) = (BTreeSet::new(), BTreeSet::new());
        for round in 0..=rounds(20) {
            std::fs::write(path.with_extension("first"), (1_000 * (round + 1)).to_string()).unwrap();
            let (mut process, mut lines) = process("floor::killed::process_whose_items_fall", &path);
            let found = lines.find_map(|line| numbers(&line, "found")).expect("it opens the world");
            assert!(kept.is_subset(&found), "after {round} kills: {kept:?} were saved, {found:?} are there");
            assert!(ended.is_disjoint(&found), "after {round} kills: {ended:?} had ended, {found:?} are there");
            let mut note = |line: String| {
                kept.extend(numbers(&line, "kept").into_iter().flatten());
                let gone = numbers(&line, "ended").unwrap_or_default();
                let count = gone.len();
                ended.extend(gone);
                count
            };
            // When the first item falls, and after some of them have ended.
            let wanted = random.below(8) as usize;
            assert!(lines.by_ref().map(&mut note).any(|count| count >= wanted), "it goes on");
            std::thread::sleep(Duration::from_micros(random.below(30_000).into()));
            kill(&mut process);
            lines.map(note).for_each(drop);
        }
        let least = rounds(20) as usize;
        assert!(2 * kept.len() > least && ended.len() > least, "{} {}", kept.len(), ended.len());
    }
}
