//! A world that cannot be opened is refused with a precise reason, and is not changed.

#![cfg(feature = "rocksdb")]

use crate::support::folder::files;
use crate::support::*;
use bevy::ecs::schedule::ScheduleLabel;
use bevy_terrane::prelude::*;
use bevy_terrane::storage::MemoryStore;
use bevy_terrane::view::Jobs;
use std::fs;
use std::path::{Path, PathBuf};

/// The error of an app with the world at this path, which ends at once.
fn refusal(path: &Path) -> String {
    let mut app = game(TerranePlugin { tick_mode: TickMode::Lockstep, ..TerranePlugin::at(path) });
    flat(&mut app);
    // The resources that a game's systems need exist without a world too.
    app.add_systems(Update, |_: Res<Jobs>| {});
    start(&mut app);
    app.update();
    assert_eq!(app.should_exit(), Some(AppExit::error()), "{path:?} was opened");
    app.world().resource::<WorldFailure>().to_string()
}

/// A folder with a world that has been played.
fn played(folder: &Path) -> PathBuf {
    let path = folder.join("world");
    let mut app = game(TerranePlugin { tick_mode: TickMode::Lockstep, ..TerranePlugin::at(&path) });
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 10);
    path
}

/// Promise, crashes: A world of a newer format is refused, and stays untouched.
#[test]
fn a_world_of_a_newer_format_is_refused_and_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let path = played(folder.path());
    let marker = path.join("world.terrane");
    let text = fs::read_to_string(&marker).unwrap();
    fs::write(&marker, text.replace("format = 1", "format = 2")).unwrap();
    let before = files(&path);
    let refusal = refusal(&path);
    assert!(refusal.contains("format 2") && refusal.contains(&path.display().to_string()), "{refusal}");
    assert!(files(&path) == before, "files of the world changed");
}

#[test]
fn a_world_that_is_open_is_refused_with_the_process_that_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world");
    let mut app = game(TerranePlugin { tick_mode: TickMode::Lockstep, ..TerranePlugin::at(&path) });
    start(&mut app);
    app.update();
    let refusal = refusal(&path);
    assert!(refusal.contains(&std::process::id().to_string()), "{refusal}");
    assert_eq!(app.should_exit(), None, "the first one goes on");
}

/// Promise, crashes: A world with another generator is refused and stays unchanged.
#[test]
fn another_generator_is_refused_and_the_world_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = played(folder.path());
    let mut app = game(TerranePlugin { tick_mode: TickMode::Lockstep, ..TerranePlugin::at(&path) });
    listen::<DimensionFailed>(&mut app);
    app.world_mut().spawn(Dimension::new("overworld", Hills::seeded(1)));
    start(&mut app);
    update(&mut app, 5);
    let failed = heard::<DimensionFailed>(&app);
    assert_eq!(failed.len(), 1);
    let error = failed[0].error.to_string();
    assert!(error.contains("overworld") && error.contains("with seed 1 "), "{error}");
    assert!(error.contains("another name") && error.contains("another folder"), "{error}");
    drop(app);

    let mut app = game(TerranePlugin { tick_mode: TickMode::Lockstep, ..TerranePlugin::at(&path) });
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 10);
    assert!(app.world().resource::<WorldStatistics>().loaded >= 5);
}

#[test]
fn seeds_in_messages_are_those_that_the_game_gave() {
    let disk = std::sync::Arc::new(MemoryStore::new());
    let refusal = |seed| {
        let mut app = game(lockstep_on(&disk));
        listen::<DimensionFailed>(&mut app);
        let ground = Layers::new(Hills::seeded(seed)).with(Caves::seeded(seed + 1));
        app.world_mut().spawn(Dimension::new("overworld", ground));
        start(&mut app);
        update(&mut app, 5);
        heard::<DimensionFailed>(&app).first().map(|failed| failed.error.to_string())
    };
    assert_eq!(refusal(42), None);
    let error = refusal(7).expect("another seed");
    assert!(error.contains("with seed 42 ") && error.contains("with seed 7 "), "{error}");
}

/// A renderer that is interrupted while it starts may crash in its driver when the process ends, and the exit status is then
/// that of a signal.
#[test]
fn without_a_world_nothing_beside_the_main_world_begins() {
    #[derive(bevy::app::AppLabel, Clone, Copy, Debug, Hash, PartialEq, Eq)]
    struct Renderer;
    fn draw() {
        unreachable!("nothing is drawn of an app that has no world");
    }

    let folder = tempfile::tempdir().unwrap();
    let path = played(folder.path());
    fs::write(path.join("world.terrane"), "nonsense").unwrap();
    for is_renderer_first in [true, false] {
        let mut app = App::new();
        app.add_plugins(MinimalPlugins);
        let mut renderer = SubApp::new();
        renderer.update_schedule = Some(Update.intern());
        renderer.add_systems(Update, draw);
        let plugin = TerranePlugin::at(&path);
        if is_renderer_first {
            app.insert_sub_app(Renderer, renderer);
            app.add_plugins(plugin);
        } else {
            app.add_plugins(plugin);
            app.insert_sub_app(Renderer, renderer);
        }
        assert_eq!(app.run(), AppExit::error());
    }
}
