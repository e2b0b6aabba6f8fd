//! Worlds in PostgreSQL.

use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::storage::{StorageConfig, WorldStore};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;
use terrane_postgres::PostgresStore;
use terrane_postgres::server::{PostgresServer, Stop, Syncing};

/// A server for all tests of this process.
static SERVER: LazyLock<PostgresServer> = LazyLock::new(|| PostgresServer::start(Syncing::Off).unwrap());

/// The address of a world that no other test uses.
pub fn new_world() -> String {
    static WORLDS: AtomicU32 = AtomicU32::new(0);
    format!("{}#world-{}", SERVER.address(), WORLDS.fetch_add(1, Ordering::Relaxed))
}

fn plugin(address: &str) -> TerranePlugin {
    TerranePlugin {
        storage: StorageConfig::Custom(Arc::new(PostgresStore::open(address).unwrap())),
        saving: SaveSettings::every(Duration::from_millis(100)),
        ..default()
    }
}

/// Promise, crashes: A world in PostgreSQL keeps everything through restarts of the game and of the database.
#[test]
fn a_game_plays_in_a_database_that_restarts() {
    let server = PostgresServer::start(Syncing::Off).unwrap();
    let address = server.address();
    let edits = 20;
    let block_at = |edit: i64| BlockPos::new(edit % 5 * 3, 40 + edit, edit / 5 * 3);

    let mut app = headless(plugin(&address));
    listen::<WorldSaved>(&mut app);
    start(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 2);
    update_until(&mut app, "the ground is there", |world| {
        (0..edits).all(|edit| bevy_terrane::testing::block_at(world, dimension, block_at(edit)).is_some())
    });
    let stone = id_of(app.world(), "terrane:stone");
    for edit in 0..edits {
        app.world_mut().write_message(SetBlock { dimension, position: block_at(edit), block: stone });
        app.world_mut().write_message(SaveWorld { request: edit as u64 });
        if edit == edits / 2 {
            // Like a crash of the database in the middle of the saves.
            server.stop(Stop::Immediate).unwrap();
            let frames = 60;
            (0..frames).for_each(|_| {
                app.update();
                thread::sleep(Duration::from_millis(5));
            });
            server.restart().unwrap();
        }
        app.update();
    }
    update_until(&mut app, "all edits are saved", |world| {
        world.resource::<Heard<WorldSaved>>().0.iter().any(|saved| saved.request == edits as u64 - 1)
    });
    drop(app);

    let store = WorldStore::from_store(Arc::new(PostgresStore::open(&address).unwrap())).unwrap();
    for edit in 0..edits {
        let column = block_at(edit).column();
        let loaded = store.load_batch(dimension, column.batch(), &[column], -4..8).unwrap().remove(0);
        assert_eq!(loaded.column.block(block_at(edit)), stone, "edit {edit}");
    }
    assert!(store.verify(|_| std::ops::ControlFlow::Continue(())).unwrap().damage.is_empty());
}
