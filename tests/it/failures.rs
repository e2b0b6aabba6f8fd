//! A world that cannot be opened is refused with what and where, and stays as it is.

#![cfg(feature = "rocksdb")]

use crate::support::folder::files;
use crate::support::*;
use bevy_terrane::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

/// What the app says of the world at this path, as it ends at once.
fn refusal(path: &Path) -> String {
    let mut app = game(TerranePlugin::at(path).with_tick_mode(TickMode::Lockstep));
    flat(&mut app);
    start(&mut app);
    app.update();
    assert_eq!(app.should_exit(), Some(AppExit::error()), "{path:?} was opened");
    app.world().resource::<WorldFailure>().to_string()
}

/// A folder with a world that has been played in.
fn played(folder: &Path) -> PathBuf {
    let path = folder.join("world");
    let mut app = game(TerranePlugin::at(&path).with_tick_mode(TickMode::Lockstep));
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 10);
    path
}

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
    let mut app = game(TerranePlugin::at(&path).with_tick_mode(TickMode::Lockstep));
    start(&mut app);
    app.update();
    let refusal = refusal(&path);
    assert!(refusal.contains(&std::process::id().to_string()), "{refusal}");
    assert_eq!(app.should_exit(), None, "the first one goes on");
}

#[test]
fn another_generator_is_refused_and_the_world_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = played(folder.path());
    let mut app = game(TerranePlugin::at(&path).with_tick_mode(TickMode::Lockstep));
    listen::<DimensionFailed>(&mut app);
    app.world_mut().spawn(Dimension::new("overworld", Hills::seeded(1)));
    start(&mut app);
    update(&mut app, 5);
    let failed = heard::<DimensionFailed>(&app);
    assert_eq!(failed.len(), 1);
    assert!(failed[0].error.to_string().contains("overworld"), "{}", failed[0].error);
    drop(app);

    let mut app = game(TerranePlugin::at(&path).with_tick_mode(TickMode::Lockstep));
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 10);
    assert!(app.world().resource::<WorldStatistics>().loaded >= 5);
}
