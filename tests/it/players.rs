//! Players are loaded at log-in and removed at log-out, and return to the place where they left.

use crate::disk::Disk;
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::LoggedOut;
use bevy_terrane::storage::{Durability, Family, KeyValue, KeyValueStore, MemoryStore, Read, StoreError, WriteBatch};
use bevy_terrane::view::{
    DimensionRemoved, LogIn, LogInError, LogInRefused, LogOut, PlayerLoggedIn, PlayerLoggedOut, RegionOrder,
};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use uuid::Uuid;

const SPAWN: BlockPos = BlockPos::new(8, 5, 8);

/// A world in lockstep whose columns are held by players only, and that is saved on demand.
fn world(disk: &Disk) -> (App, DimensionId) {
    let plugin = TerranePlugin { saving: SaveSettings::every(Duration::from_secs(3_600)), ..disk.plugin() };
    world_of(TerranePlugin { tick_mode: TickMode::Lockstep, ..plugin })
}

fn world_of(plugin: TerranePlugin) -> (App, DimensionId) {
    let mut app = game(plugin);
    app.mirror_region_component::<Player>();
    listen::<PlayerLoggedIn>(&mut app);
    listen::<LogInRefused>(&mut app);
    listen::<PlayerLoggedOut>(&mut app);
    let dimension = flat(&mut app);
    start(&mut app);
    update(&mut app, 3);
    (app, dimension)
}

fn send_in(app: &mut App, name: &str, first_place: Option<(DimensionId, BlockPos)>) {
    app.world_mut().write_message(LogIn { name: name.to_owned(), first_place });
}

fn log_in(app: &mut App, name: &str, first_place: Option<(DimensionId, BlockPos)>) -> PlayerLoggedIn {
    let before = heard::<PlayerLoggedIn>(app).len();
    send_in(app, name, first_place);
    update(app, 20);
    assert!(heard::<LogInRefused>(app).is_empty(), "{:?}", heard::<LogInRefused>(app));
    assert_eq!(heard::<PlayerLoggedIn>(app).len(), before + 1);
    heard::<PlayerLoggedIn>(app)[before].clone()
}

fn log_out(app: &mut App, name: &str) {
    let before = heard::<PlayerLoggedOut>(app).len();
    app.world_mut().write_message(LogOut { name: name.to_owned() });
    update(app, 5);
    assert_eq!(heard::<PlayerLoggedOut>(app).len(), before + 1);
}

fn refused(app: &mut App, name: &str, first_place: Option<(DimensionId, BlockPos)>) -> LogInError {
    let before = heard::<LogInRefused>(app).len();
    send_in(app, name, first_place);
    update(app, 5);
    assert_eq!(heard::<LogInRefused>(app).len(), before + 1);
    let LogInRefused { name: of, reason } = heard::<LogInRefused>(app)[before].clone();
    assert_eq!(of, name);
    reason
}

/// The players that the main world sees, and their places.
fn seen(app: &mut App) -> Vec<(String, BlockPos)> {
    let mut players = app.world_mut().query_filtered::<(&Player, &Position), With<Mirror>>();
    let mut found: Vec<_> = players.iter(app.world()).map(|(it, at)| (it.name().to_owned(), at.block)).collect();
    found.sort();
    found
}

fn on_player(app: &mut App, id: Uuid, run: impl FnOnce(EntityWorldMut) + Send + 'static) {
    app.world_mut().commands().run_on_region_entity(id, 0, run, |_, reason| panic!("{reason}"));
    app.world_mut().flush();
    update(app, 3);
}

fn walk_on(app: &mut App, id: Uuid, blocks_a_tick: f32) {
    on_player(app, id, move |mut player| {
        player.insert(walker("", blocks_a_tick));
    });
}

/// Promise, crashes: A player is stored apart from columns, and after a crash is where it was last saved.
#[test]
fn a_player_returns_where_it_logged_out_with_its_components() {
    let disk = Disk::default();
    let (mut app, dimension) = world(&disk);
    let first = log_in(&mut app, "Zoë", Some((dimension, SPAWN)));
    assert!(first.new);
    assert_eq!((first.dimension, first.block), (dimension, SPAWN));
    assert_eq!(seen(&mut app), [("Zoë".to_owned(), SPAWN)]);
    // Through many columns, with its own loaded columns around it.
    walk_on(&mut app, first.id, 2.0);
    update(&mut app, 200);
    walk_on(&mut app, first.id, 0.0);
    let there = seen(&mut app)[0].1;
    assert!(there.x > 350, "{there}");
    log_out(&mut app, "Zoë");
    assert_eq!(heard::<PlayerLoggedOut>(&app)[0].id, first.id);
    assert!(seen(&mut app).is_empty());
    update(&mut app, 60);
    assert_eq!(block_at(app.world_mut(), dimension, there), None, "it holds no ground any more");

    // At once from the pending save, later from the store, and by another session.
    for session in 0..3 {
        if session == 2 {
            drop(app);
            (app, _) = world(&disk);
            update(&mut app, 20);
            assert!(seen(&mut app).is_empty(), "nobody is there before the log-in");
        }
        let back = log_in(&mut app, "Zoë", None);
        assert_eq!((back.id, back.block, back.new), (first.id, there, false), "session {session}");
        assert_eq!(seen(&mut app), [("Zoë".to_owned(), there)]);
        assert_eq!(walkers(app.world_mut()).len(), 1, "with its components");
        log_out(&mut app, "Zoë");
        if session == 0 {
            save(&mut app);
        }
    }
}

/// Promise, crashes: A player is stored apart from columns, and after a crash is where it was last saved.
#[test]
fn after_a_crash_a_player_is_where_it_was_last_saved() {
    let disk = Disk::default();
    let (mut app, dimension) = world(&disk);
    let first = log_in(&mut app, "bob", Some((dimension, SPAWN)));
    walk_on(&mut app, first.id, 1.0);
    update(&mut app, 30);
    save(&mut app);
    walk_on(&mut app, first.id, 1.0);
    let crashed = disk.copy();
    let (mut app, dimension) = world(&crashed);
    // A viewer at its place finds no player there.
    viewer(&mut app, dimension, SPAWN.x as f32 + 30.0, 8.0, 3);
    update(&mut app, 30);
    assert!(seen(&mut app).is_empty());
    let back = log_in(&mut app, "bob", Some((dimension, SPAWN)));
    assert_eq!((back.id, back.new), (first.id, false));
    assert!((SPAWN.x + 25..SPAWN.x + 45).contains(&back.block.x), "{}", back.block);
    update(&mut app, 30);
    assert_eq!(seen(&mut app).len(), 1, "it is there once");
}

#[test]
fn a_name_is_in_the_world_once_and_the_answer_to_others_is_clear() {
    let disk = Disk::default();
    let (mut app, dimension) = world(&disk);
    let place = Some((dimension, SPAWN));
    assert_eq!(refused(&mut app, "bob", None), LogInError::UnknownName);
    assert_eq!(refused(&mut app, "", place), LogInError::InvalidName(0));
    assert_eq!(refused(&mut app, &"b".repeat(256), place), LogInError::InvalidName(256));
    let nowhere = DimensionId(7_777);
    assert_eq!(refused(&mut app, "bob", Some((nowhere, SPAWN))), LogInError::DimensionNotOpen(nowhere));
    app.world_mut().resource_mut::<Heard<LogInRefused>>().0.clear();

    let bob = log_in(&mut app, "bob", place);
    assert_eq!(refused(&mut app, "bob", place), LogInError::AlreadyThere);
    // Two requests at once: one of them logs in.
    for _ in 0..2 {
        send_in(&mut app, "eve", place);
    }
    update(&mut app, 20);
    assert_eq!(heard::<PlayerLoggedIn>(&app).len(), 2);
    assert_eq!(heard::<LogInRefused>(&app).len(), 2);
    assert_eq!(seen(&mut app).len(), 2);
    app.world_mut().resource_mut::<Heard<LogInRefused>>().0.clear();

    // The name of a dead player is free again, before and after its death is stored.
    for saves in [false, true] {
        let bob = heard::<PlayerLoggedIn>(&app).iter().rfind(|it| it.name == "bob").unwrap().id;
        save(&mut app);
        on_player(&mut app, bob, |player| player.despawn());
        assert_eq!(heard::<PlayerLoggedOut>(&app).last().map(|it| it.id), Some(bob));
        if saves {
            save(&mut app);
        }
        let other = log_in(&mut app, "bob", place);
        assert!(other.new && other.id != bob);
    }
    assert_ne!(heard::<PlayerLoggedIn>(&app).last().map(|it| it.id), Some(bob.id));
}

/// Counts the questions to a store.
#[derive(Default)]
struct Asked {
    store: MemoryStore,
    questions: AtomicUsize,
}

impl Asked {
    fn ask(&self) -> &MemoryStore {
        self.questions.fetch_add(1, Ordering::Relaxed);
        &self.store
    }
}

impl KeyValueStore for Asked {
    fn path(&self) -> &Path {
        self.store.path()
    }

    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.ask().get(family, key)
    }

    fn multi_get(&self, family: Family, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.ask().multi_get(family, keys)
    }

    fn scan(&self, family: Family, range: Range<&[u8]>, limit: usize) -> Result<Vec<KeyValue>, StoreError> {
        self.ask().scan(family, range, limit)
    }

    fn read(&self, reads: &[Read]) -> Result<Vec<Vec<KeyValue>>, StoreError> {
        self.ask().read(reads)
    }

    fn write(&self, batch: WriteBatch, durability: Durability) -> Result<(), StoreError> {
        self.ask().write(batch, durability)
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.store.sync()
    }
}

/// Promise, players: Players who log in together are found with a few questions to the store, and a damaged one holds up no other.
#[test]
fn players_who_log_in_together_are_one_question_and_a_damaged_one_holds_up_no_other() {
    let store = Arc::new(Asked::default());
    let open = || {
        let plugin = TerranePlugin { saving: SaveSettings::every(Duration::from_secs(3_600)), ..lockstep_on(&store) };
        world_of(plugin)
    };
    let names: Vec<String> = (0..100).map(|number| format!("player {number:02}")).collect();
    let (mut app, dimension) = open();
    names.iter().for_each(|name| send_in(&mut app, name, Some((dimension, SPAWN))));
    update(&mut app, 20);
    let first = heard::<PlayerLoggedIn>(&app).to_vec();
    assert_eq!(first.len(), 100);
    save(&mut app);
    let (mut app, _) = reopen(app, open);
    // The record of one of them.
    let mut damaged = WriteBatch::default();
    damaged.put(Family::Entities, first[7].id.as_bytes().to_vec(), vec![1, 2, 3]);
    store.write(damaged, Durability::Sync).unwrap();
    let before = store.questions.load(Ordering::Relaxed);
    names[..7].iter().chain(&names[8..]).for_each(|name| send_in(&mut app, name, None));
    update(&mut app, 2);
    let asked = store.questions.load(Ordering::Relaxed) - before;
    assert!((1..30).contains(&asked), "{asked} questions for 99 players");
    update(&mut app, 20);
    assert_eq!(heard::<PlayerLoggedIn>(&app).len(), 99);

    for name in &names {
        app.world_mut().write_message(LogOut { name: name.clone() });
    }
    update(&mut app, 10);
    save(&mut app);
    assert!(seen(&mut app).is_empty() && heard::<LogInRefused>(&app).is_empty());
    app.world_mut().resource_mut::<Heard<PlayerLoggedIn>>().0.clear();
    names.iter().for_each(|name| send_in(&mut app, name, None));
    update(&mut app, 20);
    let refused = heard::<LogInRefused>(&app);
    assert_eq!((heard::<PlayerLoggedIn>(&app).len(), refused.len()), (99, 1));
    assert_eq!(refused[0].name, names[7]);
    assert!(refused[0].reason.to_string().contains(&first[7].id.to_string()), "{}", refused[0].reason);
}

#[test]
fn a_player_whose_dimension_is_not_open_waits_for_it_in_the_store() {
    let disk = Disk::default();
    let (mut app, dimension) = world(&disk);
    let bob = log_in(&mut app, "bob", Some((dimension, SPAWN)));
    despawn_dimension(&mut app, dimension);
    update(&mut app, 20);
    assert_eq!(heard::<PlayerLoggedOut>(&app).iter().map(|it| it.id).collect::<Vec<_>>(), [bob.id]);
    assert_eq!(refused(&mut app, "bob", None), LogInError::DimensionNotOpen(bob.dimension));
    app.world_mut().resource_mut::<Heard<LogInRefused>>().0.clear();
    flat(&mut app);
    update(&mut app, 5);
    assert_eq!(log_in(&mut app, "bob", None).id, bob.id);
}

#[test]
fn a_player_of_a_halted_region_logs_in_again_and_comes_when_that_is_restarted() {
    let disk = Disk::default();
    let (mut app, dimension) = world(&disk);
    // Another viewer holds the columns.
    viewer(&mut app, dimension, 8.0, 8.0, 1);
    let bob = log_in(&mut app, "bob", Some((dimension, SPAWN)));
    save(&mut app);
    update(&mut app, 10);
    order(&mut app, dimension, SPAWN.column(), RegionOrder::Halt);
    update(&mut app, 10);
    assert_eq!(heard::<PlayerLoggedOut>(&app).len(), 1);
    send_in(&mut app, "bob", None);
    update(&mut app, 20);
    assert_eq!(heard::<PlayerLoggedIn>(&app).len(), 1, "it waits");
    order(&mut app, dimension, SPAWN.column(), RegionOrder::Restart);
    update(&mut app, 30);
    let back = heard::<PlayerLoggedIn>(&app).last().unwrap();
    assert_eq!((back.id, back.new, heard::<PlayerLoggedIn>(&app).len()), (bob.id, false, 2));
    assert_eq!(seen(&mut app), [("bob".to_owned(), SPAWN)]);
}

#[test]
fn a_log_out_during_a_log_in_wins() {
    let disk = Disk::default();
    let (mut app, dimension) = world(&disk);
    send_in(&mut app, "bob", Some((dimension, SPAWN)));
    app.update();
    app.update();
    app.world_mut().write_message(LogOut { name: "bob".to_owned() });
    app.world_mut().write_message(LogOut { name: "nobody".to_owned() });
    update(&mut app, 30);
    assert!(seen(&mut app).is_empty());
    assert_eq!(heard::<PlayerLoggedIn>(&app).len(), heard::<PlayerLoggedOut>(&app).len());
}

#[test]
fn a_player_that_is_made_a_child_stays_one_of_its_own() {
    let disk = Disk::default();
    let (mut app, dimension) = world(&disk);
    let bob = log_in(&mut app, "bob", Some((dimension, SPAWN)));
    on_player(&mut app, bob.id, |mut player| {
        let place = *player.get::<Position>().unwrap();
        let boat = player.world_scope(|region| region.spawn((walker("boat", 0.0), place)).id());
        player.insert(ChildOf(boat));
    });
    save(&mut app);
    let (mut app, _) = world(&disk.copy());
    assert_eq!(log_in(&mut app, "bob", None).block, SPAWN);
}

/// Promise, crashes: Whenever the process is killed, each item is there exactly once.
#[test]
fn an_item_dropped_at_log_out_exists_once_after_a_crash() {
    let disk = Disk::default();
    let (mut app, dimension) = world(&disk);
    viewer(&mut app, dimension, 8.0, 8.0, 1);
    let bob = log_in(&mut app, "bob", Some((dimension, SPAWN)));
    walk_on(&mut app, bob.id, 0.0);
    save(&mut app);
    disk.keep_copies();
    // The item is a component of the player, and becomes an entity of its region.
    on_player(&mut app, bob.id, |mut player| {
        let place = *player.get::<Position>().unwrap();
        let had = player.take::<Walker>().unwrap();
        player.world_scope(|region| {
            region.spawn((had, place));
        });
        player.insert(LoggedOut);
    });
    update(&mut app, 5);
    let copies = [disk.take_copies(), vec![disk.copy()]].concat();
    save(&mut app);
    for disk in copies.into_iter().chain(disk.take_copies()) {
        let (mut app, dimension) = world(&disk);
        viewer(&mut app, dimension, 8.0, 8.0, 1);
        log_in(&mut app, "bob", None);
        assert_eq!(walkers(app.world_mut()).len(), 1);
    }
}

#[test]
fn a_player_of_a_removed_dimension_starts_at_the_first_place_with_its_components() {
    let disk = Disk::default();
    let (mut app, home) = world(&disk);
    listen::<DimensionRemoved>(&mut app);
    let arena = spawn_dimension(&mut app, Dimension::new("arena", Flat::new()));
    update(&mut app, 5);
    let first = log_in(&mut app, "Bob", Some((arena, SPAWN)));
    on_player(&mut app, first.id, |mut player| {
        player.insert(walker("", 0.0));
    });
    log_out(&mut app, "Bob");
    save(&mut app);
    app.world().resource::<Dimensions>().remove(arena);
    update_until(&mut app, "it is removed", |world| !world.resource::<Heard<DimensionRemoved>>().0.is_empty());
    assert!(matches!(refused(&mut app, "Bob", None), LogInError::DimensionNotOpen(_)));
    app.world_mut().resource_mut::<Heard<LogInRefused>>().0.clear();
    let place = BlockPos::new(40, 5, 8);
    let back = log_in(&mut app, "Bob", Some((home, place)));
    assert_eq!((back.id, back.block, back.new), (first.id, place, false));
    assert_eq!(walkers(app.world_mut()).len(), 1, "with its components");
}
