//! A store that cannot write for a while loses nothing: everything is saved later.

use crate::disk::Disk;
use crate::support::gate::Gate;
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::space::TilePos;
use bevy_terrane::storage::WorldStore;
use bevy_terrane::view::Pacing;
use std::sync::mpsc::channel;
use std::time::Duration;

/// The number of saves that failed since the last call.
fn failures(app: &mut App) -> usize {
    app.world_mut().resource_mut::<Heard<SaveFailed>>().0.drain(..).count()
}

#[test]
fn unwritten_data_is_written_once_the_disk_has_space() {
    let disk = Disk::default();
    let plugin = TerranePlugin {
        tick_mode: TickMode::Lockstep,
        threads: ThreadSettings { regions: 1, generation: 1, ..default() },
        saving: SaveSettings::every(Duration::from_millis(500)),
        pacing: Pacing::fixed(64),
        ..disk.plugin()
    };
    let mut app = headless(plugin);
    listen::<DimensionFailed>(&mut app);
    listen::<SaveFailed>(&mut app);
    listen::<WorldSaved>(&mut app);
    start(&mut app);

    disk.set_full(true);
    let refused = flat(&mut app);
    update(&mut app, 60);
    // Its number could not be stored, so the dimension is not open.
    assert!(!is_open(app.world_mut(), refused));
    assert_eq!(heard::<DimensionFailed>(&app).len(), 1);
    despawn_dimension(&mut app, refused);
    disk.set_full(false);
    let dimension = flat(&mut app);
    update_until(&mut app, "it is open", |world| is_open(world, dimension));

    // The columns are generated while nothing can be written.
    disk.set_full(true);
    failures(&mut app);
    let camera = viewer(&mut app, dimension, 0.0, 0.0, 1);
    update(&mut app, 60);
    assert!(failures(&mut app) >= 2, "it is tried again, and fails again");

    let position = BlockPos::new(3, 20, 3);
    let stone = id_of(app.world(), "terrane:stone");
    app.world_mut().write_message(SetBlock { dimension, position, block: stone });
    app.world_mut().write_message(SaveWorld { request: 7 });
    // Far away, so that unneeded columns are evicted before they could be written; then back again.
    move_viewer(&mut app, camera, 8_000.0, 0.0);
    update(&mut app, 30);
    move_viewer(&mut app, camera, 0.0, 0.0);
    update(&mut app, 30);
    assert!(heard::<WorldSaved>(&app).is_empty(), "nothing is durable yet");

    disk.set_full(false);
    failures(&mut app);
    update(&mut app, 60);
    assert_eq!(heard::<WorldSaved>(&app).iter().map(|saved| saved.request).collect::<Vec<_>>(), [7]);
    assert_eq!(failures(&mut app), 0);
    let store = WorldStore::from_store(std::sync::Arc::new(disk.copy())).unwrap();
    let (id, column) = (dimension, position.column());
    let stored = store.load_batch(id, column.batch(), &[column], -4..4).unwrap();
    assert_eq!(stored[0].column.block(position), stone);
    let marks = store.stored_tiles(id).unwrap();
    assert!(
        marks.iter().any(|(tile, masks)| *tile == TilePos::new(0, 0) && masks[0] & 1 == 1),
        "and is known to be stored"
    );
}

#[test]
fn the_end_comes_also_when_a_commit_ends_while_it_waits_for_a_region() {
    let (ticks, disk) = (Gate::default(), Disk::default());
    let (sender, ended) = channel();
    let (gate, copy) = (ticks.clone(), disk.clone());
    std::thread::spawn(move || {
        let app = with_a_tick_and_a_commit_under_way(gate, copy);
        sender.send(()).unwrap();
        drop(app);
        sender.send(()).unwrap();
    });
    let patience = Duration::from_secs(60);
    assert_eq!(ended.recv_timeout(patience), Ok(()), "the app was not made");
    // The app waits for both: first the commit ends, then the tick.
    for gate in [disk.gate(), &ticks] {
        assert!(ended.recv_timeout(Duration::from_millis(200)).is_err(), "it does not wait");
        gate.open();
    }
    assert_eq!(ended.recv_timeout(Duration::from_secs(20)), Ok(()), "the end hangs");
}

/// An app with a region that waits in a tick, and a storage thread that waits in a commit.
fn with_a_tick_and_a_commit_under_way(ticks: Gate, disk: Disk) -> App {
    let mut app = headless(TerranePlugin { saving: SaveSettings::every(Duration::from_millis(1)), ..disk.plugin() });
    let gate = ticks.clone();
    app.add_region_plugins(move |region| {
        let gate = gate.clone();
        region.add_systems(RegionTick, move || gate.pass());
    });
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 0);
    start(&mut app);
    let position = BlockPos::new(3, 20, 3);
    update_until(&mut app, "the region ticks", |world| block_at(world, dimension, position).is_some());
    disk.gate().close();
    let blocks = ["terrane:stone", "terrane:grass"].map(|name| id_of(app.world(), name));
    let mut blocks = blocks.into_iter().cycle();
    update_until(&mut app, "something is written", |world| {
        let block = blocks.next().unwrap();
        world.write_message(SetBlock { dimension, position, block });
        disk.gate().waiting() > 0
    });
    ticks.close();
    update_until(&mut app, "the region is in a tick", |_| ticks.waiting() > 0);
    app
}
