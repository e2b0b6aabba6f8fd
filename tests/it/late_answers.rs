//! The store's answers come late, and commits are confirmed meanwhile: an answer is never taken for the present state.

use crate::disk::Disk;
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::Address;
use bevy_terrane::storage::StorageConfig;
use bevy_terrane::view::{LogIn, LogInRefused, LogOut, PlayerLoggedIn, PlayerLoggedOut};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use uuid::Uuid;

const SPAWN: BlockPos = BlockPos::new(8, 5, 8);

/// A world with the player Ada in it, whose walker has the name `old` in the store.
fn with_ada(disk: &Disk, is_shared: bool) -> (App, DimensionId, Uuid) {
    let storage = match is_shared {
        true => StorageConfig::Shared { store: Arc::new(disk.clone()), address: b"here".to_vec() },
        false => disk.storage(),
    };
    let saving = SaveSettings::every(Duration::from_secs(3_600));
    let mut app = game(TerranePlugin { storage, saving, ..default() });
    listen::<PlayerLoggedIn>(&mut app);
    listen::<PlayerLoggedOut>(&mut app);
    listen::<LogInRefused>(&mut app);
    listen::<WorldSaved>(&mut app);
    let dimension = flat(&mut app);
    start(&mut app);
    log_in(&mut app, Some((dimension, SPAWN)));
    let ada = has_come(&mut app, 1);
    change(&mut app, ada.id, |mut player| {
        player.insert(walker("old", 0.0));
    });
    save(&mut app);
    (app, dimension, ada.id)
}

fn log_in(app: &mut App, first_place: Option<(DimensionId, BlockPos)>) {
    app.world_mut().write_message(LogIn { name: "Ada".to_owned(), first_place });
}

fn has_come(app: &mut App, times: usize) -> PlayerLoggedIn {
    update_until(app, "she is there", |world| world.resource::<Heard<PlayerLoggedIn>>().0.len() == times);
    heard::<PlayerLoggedIn>(app)[times - 1].clone()
}

fn has_gone(app: &mut App, times: usize) {
    update_until(app, "she is gone", |world| world.resource::<Heard<PlayerLoggedOut>>().0.len() == times);
}

fn change(app: &mut App, id: Uuid, run: impl FnOnce(EntityWorldMut) + Send + 'static) {
    app.world_mut().commands().run_on_region_entity(id, 0, run, |_, reason| panic!("{reason}"));
    app.world_mut().flush();
    update(app, 20);
}

/// Asks the store while a commit is on its way, and lets the commit arrive before the answer.
fn ask_beside_a_commit(app: &mut App, disk: &Disk, ask: impl FnOnce(&mut App)) {
    let saves = heard::<WorldSaved>(app).len();
    disk.commits().close();
    app.world_mut().write_message(SaveWorld { request: 1 });
    update_until(app, "the commit is on its way", |_| disk.commits().waiting() > 0);
    disk.answers().close();
    ask(app);
    update_until(app, "the store was asked", |_| disk.answers().waiting() > 0);
    disk.commits().open();
    update_until(app, "the commit is confirmed", |world| world.resource::<Heard<WorldSaved>>().0.len() > saves);
    update(app, 5);
    disk.answers().open();
}

/// Promise, crashes: A player who logs out and in again comes back with everything that it had, however late the store answers.
#[test]
fn a_player_comes_back_with_the_newest_record() {
    let disk = Disk::default();
    let (mut app, _, id) = with_ada(&disk, true);
    for time in 1..=rounds(3) as usize {
        let name = format!("new {time}");
        let has = name.clone();
        change(&mut app, id, move |mut player| {
            player.insert(walker(&has, 0.0));
        });
        app.world_mut().write_message(LogOut { name: "Ada".to_owned() });
        has_gone(&mut app, time);
        ask_beside_a_commit(&mut app, &disk, |app| log_in(app, None));
        assert_eq!(has_come(&mut app, 1 + time).id, id);
        update_until(&mut app, "the main world sees her", |world| walkers(world).len() == 1);
        assert_eq!(walkers(app.world_mut())[0].0, name);
    }
    assert!(heard::<LogInRefused>(&app).is_empty());
}

#[test]
fn a_player_who_died_does_not_come_back_with_an_older_record() {
    for is_shared in [false, true] {
        let disk = Disk::default();
        let (mut app, dimension, id) = with_ada(&disk, is_shared);
        change(&mut app, id, |player| player.despawn());
        has_gone(&mut app, 1);
        ask_beside_a_commit(&mut app, &disk, |app| log_in(app, Some((dimension, SPAWN))));
        let back = has_come(&mut app, 2);
        assert!(back.new && back.id != id, "shared: {is_shared}");
        update(&mut app, 20);
        assert_eq!(walkers(app.world_mut()).len(), 0, "with nothing that she had, shared: {is_shared}");
    }
}

/// The log-in that is taken back has asked the store, and its answer comes after the next log-in.
#[test]
fn the_answer_to_a_log_in_that_was_taken_back_is_not_that_of_the_next() {
    let disk = Disk::default();
    let (mut app, _, id) = with_ada(&disk, true);
    let log_out = |app: &mut App| {
        app.world_mut().write_message(LogOut { name: "Ada".to_owned() });
    };
    log_out(&mut app);
    has_gone(&mut app, 1);
    save(&mut app);
    disk.answers().close();
    log_in(&mut app, None);
    update_until(&mut app, "the store was asked", |_| disk.answers().waiting() > 0);
    log_out(&mut app);
    update(&mut app, 5);
    log_in(&mut app, None);
    update(&mut app, 50);
    disk.answers().open();
    assert_eq!(has_come(&mut app, 2).id, id);
    update(&mut app, 50);
    // She is there once, and the name is hers: it would be free for another server otherwise.
    assert_eq!(heard::<PlayerLoggedIn>(&app).len(), 2);
    change(&mut app, id, |mut player| {
        player.insert(walker("new", 0.0));
    });
    log_out(&mut app);
    has_gone(&mut app, 2);
    log_in(&mut app, None);
    has_come(&mut app, 3);
    update_until(&mut app, "the main world sees her", |world| walkers(world).len() == 1);
    assert_eq!(walkers(app.world_mut())[0].0, "new");
}

#[derive(Clone, Serialize, Deserialize, TypePath)]
struct Parcel(u32);

/// What entities have received.
#[derive(Resource, Clone, Default)]
struct Kept(Arc<Mutex<Vec<u32>>>);

fn keep(mut parcels: MessageReader<Received<Parcel>>, kept: Res<Kept>) {
    kept.0
        .lock()
        .unwrap()
        .extend(parcels.read().filter(|parcel| parcel.entity.is_some()).map(|parcel| parcel.message.0));
}

/// The store's answer is that Ann is where she was before.
#[test]
fn a_message_follows_an_entity_that_has_left_for_the_ground_of_another_server() {
    let disk = Disk::default();
    let storage = StorageConfig::Shared { store: Arc::new(disk.clone()), address: b"here".to_vec() };
    let mut app = game(TerranePlugin { storage, saving: SaveSettings::every(Duration::from_secs(3_600)), ..default() });
    let kept = Kept::default();
    let in_regions = kept.clone();
    app.register_shared_message::<Parcel>().add_region_plugins(move |region| {
        region.insert_resource(in_regions.clone()).add_systems(RegionTick, keep);
    });
    listen::<WorldSaved>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 8.0, 8.0, 2);
    start(&mut app);
    update_until(&mut app, "the ground is loaded", |world| block_at(world, dimension, SPAWN).is_some());
    spawn_in_region(&mut app, dimension, SPAWN, walker("Ann", 0.0));
    update_until(&mut app, "she is there", |world| walkers(world).len() == 1);
    save(&mut app);
    let ann = app.world_mut().query_filtered::<&StableId, With<Mirror>>().single(app.world()).unwrap().0;
    let far = BlockPos::new(20 * 32 * 16, 5, 8);
    in_region(&mut app, dimension, SPAWN, move |region: &mut World| {
        let mut position = region.query_filtered::<&mut Position, With<Walker>>().single_mut(region).unwrap();
        position.block = far;
    });
    update_until(&mut app, "she is gone", |world| walkers(world).is_empty());
    ask_beside_a_commit(&mut app, &disk, |app| {
        in_region(app, dimension, SPAWN, move |region: &mut World| {
            region.resource_mut::<Post>().send(Address::Entity(ann), Parcel(7));
        });
    });
    save(&mut app);
    viewer(&mut app, dimension, far.x as f32, 8.0, 2);
    update_until(&mut app, "she gets it there", |_| !kept.0.lock().unwrap().is_empty());
    assert_eq!(*kept.0.lock().unwrap(), [7]);
    update_until(&mut app, "the main world sees her", |world| walkers(world).len() == 1);
    assert_eq!(walkers(app.world_mut())[0].1.block, far);
}
