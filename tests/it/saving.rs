//! Acknowledged saves survive a crash, and the end of the app loses nothing.

#![cfg(feature = "rocksdb")]

use crate::disk::Disk;
use crate::support::gate::Gate;
use crate::support::ground::disc;
use crate::support::process::{DEADLINE, here, kill, process};
#[cfg(unix)]
use crate::support::process::{ENDING, ignoring, program, start as start_process};
use crate::support::*;
use bevy::app::TerminalCtrlCHandlerPlugin;
use bevy_terrane::prelude::*;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
/// The line that the process writes when its save was acknowledged.
const ACKNOWLEDGED: &str = "acknowledged";

fn at(path: &Path) -> TerranePlugin {
    TerranePlugin { saving: SaveSettings::every(Duration::from_secs(3_600)), ..TerranePlugin::at(path) }
}

/// The blocks that round `round` places.
fn edits(round: u32) -> impl Iterator<Item = BlockPos> {
    (0..40).map(move |number| BlockPos::new(number * 3 - 60, 10 + i64::from(round), (number % 7) * 5 - 15))
}

fn open(plugin: TerranePlugin) -> (App, DimensionId) {
    open_with(plugin, |_| {})
}

fn open_with(plugin: TerranePlugin, more: impl FnOnce(&mut App)) -> (App, DimensionId) {
    let mut app = game(plugin);
    more(&mut app);
    listen::<WorldSaved>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 6);
    start(&mut app);
    let far = BlockPos::new(-60, 10, -15);
    let columns = disc(ColumnPos::new(0, 0), 6).len();
    update_until(&mut app, "the ground is loaded", |world| {
        // Older statistics, from before any order, have nothing remaining either.
        let statistics = world.resource::<WorldStatistics>();
        let is_there = statistics.remaining == 0 && statistics.columns >= columns;
        is_there && block_at(world, dimension, far).is_some()
    });
    (app, dimension)
}

fn edit(app: &mut App, dimension: DimensionId, round: u32) {
    let block = id_of(app.world(), "terrane:stone");
    for position in edits(round) {
        app.world_mut().write_message(SetBlock { dimension, position, block });
    }
}

/// Runs only in the process that `acknowledged_saves_survive_a_kill` starts and kills; otherwise it does nothing.
#[test]
fn process_that_is_killed() {
    let Some(path) = here() else { return };
    let (mut app, dimension) = open(at(&path));
    for round in 0.. {
        edit(&mut app, dimension, round);
        app.update();
        app.world_mut().write_message(SaveWorld { request: u64::from(round) });
        update_until(&mut app, "the save is acknowledged", |world| {
            world.resource::<Heard<WorldSaved>>().0.iter().any(|saved| saved.request == u64::from(round))
        });
        println!("\n{ACKNOWLEDGED} {round}");
    }
}

/// Promise, commands: The second run of a game loads the world that the first one saved.
/// Promise, crashes: Data that a `WorldSaved` confirmed survives a kill.
#[test]
fn acknowledged_saves_survive_a_kill() {
    for number in 0..rounds(3) as u32 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("world");
        let (mut process, mut lines) = process("saving::process_that_is_killed", &path);
        let wanted = 1 + number % 4;
        let acknowledged =
            lines.by_ref().filter_map(|line| line.strip_prefix(ACKNOWLEDGED)?.trim().parse::<u32>().ok());
        let last = acknowledged.take(wanted as usize).last().expect("the process saved");
        // At any point of the next round.
        thread::sleep(Duration::from_millis(u64::from(number * 13 % 60)));
        kill(&mut process);

        let (mut app, dimension) = open(at(&path));
        let stone = id_of(app.world(), "terrane:stone");
        for round in 0..=last {
            for position in edits(round) {
                assert_eq!(block_at(app.world_mut(), dimension, position), Some(stone), "{position} of round {round}");
            }
        }
        assert_eq!(app.world().resource::<WorldStatistics>().generated, 0, "what was saved is loaded");
    }
}

/// Runs only in the processes that the tests below start; otherwise it does nothing.
#[test]
fn process_that_is_terminated() {
    let Some(path) = here() else { return };
    let (app, dimension) = open(at(&path));
    end_by_signal(app, dimension);
}

/// The same with the part of Bevy's `DefaultPlugins` that handles signals.
#[test]
fn process_with_default_plugins_that_is_terminated() {
    let Some(path) = here() else { return };
    let (app, dimension) = open_with(at(&path), |app| {
        app.add_plugins(TerminalCtrlCHandlerPlugin);
    });
    end_by_signal(app, dimension);
}

fn end_by_signal(mut app: App, dimension: DimensionId) {
    edit(&mut app, dimension, 0);
    app.update();
    println!("\n{ACKNOWLEDGED} 0");
    // The parent may have ended silently.
    let end = Instant::now() + DEADLINE;
    while app.should_exit().is_none() && Instant::now() < end {
        app.update();
    }
    let status = match app.should_exit() {
        Some(AppExit::Success) => 0,
        Some(AppExit::Error(code)) => code.get().into(),
        None => 1,
    };
    drop(app);
    std::process::exit(status)
}

/// Runs the process under a parent that ignores some signals, sends it these signals, and checks its status and what it saved.
#[cfg(unix)]
fn end_by_signals(test: &str, ignored: &[&str], signals: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world");
    let (mut process, mut lines) = start_process(ignoring(program(), ignored), test, &path);
    assert!(lines.any(|line| line.starts_with(ACKNOWLEDGED)));
    for signal in signals {
        process.signal(signal);
        if ignored.contains(signal) {
            // Time to end, if it does not ignore the signal.
            thread::sleep(Duration::from_millis(200));
            assert!(process.try_wait().unwrap().is_none(), "{test}: {signal} was to be ignored");
        }
    }
    // Supervisors end a service by SIGTERM.
    let expected = if signals.last() == Some(&"-TERM") { 0 } else { 130 };
    let status = process.wait().unwrap();
    assert_eq!(status.code(), Some(expected), "{test}: {signals:?} is an orderly end, where {ignored:?} is ignored");

    let (mut app, dimension) = open(at(&path));
    let stone = id_of(app.world(), "terrane:stone");
    for position in edits(0) {
        assert_eq!(block_at(app.world_mut(), dimension, position), Some(stone), "{position} after {signals:?}");
    }
}

#[cfg(unix)]
const TERMINATED: [&str; 2] =
    ["saving::process_that_is_terminated", "saving::process_with_default_plugins_that_is_terminated"];

/// Promise, crashes: When the app ends by SIGINT or SIGTERM, everything is saved.
#[cfg(unix)]
#[test]
fn a_signal_ends_the_app_and_everything_is_saved() {
    for test in TERMINATED {
        ENDING.iter().for_each(|(_, signal)| end_by_signals(test, &[], &[*signal]));
    }
}

/// Promise, crashes: When the app ends by `AppExit`, everything is saved.
#[test]
fn the_end_of_the_app_saves_blocks_and_entities() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world");
    let (mut app, dimension) = open(at(&path));
    edit(&mut app, dimension, 0);
    spawn_in_region(&mut app, dimension, BlockPos::new(1, 5, 1), walker("bob", 0.0));
    // Without a tick: requests are handled before the end.
    app.update();
    drop(app);

    let (mut app, dimension) = open(at(&path));
    let stone = id_of(app.world(), "terrane:stone");
    for position in edits(0) {
        assert_eq!(block_at(app.world_mut(), dimension, position), Some(stone));
    }
    update_until(&mut app, "bob is back", |world| !walkers(world).is_empty());
    let back = walkers(app.world_mut());
    assert_eq!(back.len(), 1);
    assert_eq!((back[0].0.as_str(), back[0].1.block), ("bob", BlockPos::new(1, 5, 1)));
}

/// Promise, crashes: When the app ends by `AppExit`, everything is saved.
#[test]
fn the_order_to_end_the_app_saves_everything_within_the_update() {
    let disk = Disk::default();
    let (mut app, dimension) =
        open(TerranePlugin { saving: SaveSettings::every(Duration::from_secs(3_600)), ..disk.plugin() });
    edit(&mut app, dimension, 0);
    app.world_mut().write_message(AppExit::Success);
    app.update();
    // The app still exists, so nothing is left to its drop.
    let (mut again, dimension) = open(disk.copy().plugin());
    let stone = id_of(app.world(), "terrane:stone");
    assert!(edits(0).all(|position| block_at(again.world_mut(), dimension, position) == Some(stone)));
}

/// A region far from the slow one.
const THERE: BlockPos = BlockPos::new(4_000, 9, 0);

/// A game with a region that waits in its tick at the gate, which is closed, and another region at `THERE`.
fn with_a_slow_region(plugin: TerranePlugin) -> (App, DimensionId, Gate) {
    fn dawdle(gate: Res<Gate>, walkers: Query<&Walker>) {
        if !walkers.is_empty() {
            gate.pass();
        }
    }
    let gate = Gate::default();
    let copy = gate.clone();
    let mut app = game(plugin);
    app.add_region_plugins(move |region| {
        region.insert_resource(copy.clone()).add_systems(RegionTick, dawdle);
    });
    listen::<WorldSaved>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    viewer(&mut app, dimension, THERE.x as f32, 0.0, 1);
    start(&mut app);
    update_until(&mut app, "the ground is loaded", |world| block_at(world, dimension, THERE).is_some());
    gate.close();
    spawn_in_region(&mut app, dimension, BlockPos::new(0, 5, 0), walker("slow", 0.0));
    update_until(&mut app, "the slow tick began", |_| gate.waiting() == 1);
    (app, dimension, gate)
}

#[test]
fn the_end_waits_for_a_slow_region_but_not_for_ever() {
    for (is_for_ever, patience) in [(false, 60), (true, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("world");
        let mut plugin = at(&path);
        plugin.saving.shutdown_patience = Duration::from_secs(patience);
        let (mut app, dimension, gate) = with_a_slow_region(plugin);
        let block = id_of(app.world(), "terrane:stone");
        app.world_mut().write_message(SetBlock { dimension, position: THERE, block });
        app.update();
        let began = Instant::now();
        if is_for_ever {
            drop(app);
            let took = began.elapsed();
            assert!(took >= Duration::from_millis(900), "the end took {took:?}");
            gate.open();
        } else {
            let is_opened = Arc::<AtomicBool>::default();
            let (other, gate) = (is_opened.clone(), gate.clone());
            let opener = thread::spawn(move || {
                thread::sleep(Duration::from_millis(200));
                other.store(true, Ordering::SeqCst);
                gate.open();
            });
            drop(app);
            assert!(is_opened.load(Ordering::SeqCst), "the end did not wait for the region");
            opener.join().unwrap();
        }

        let mut app = game(at(&path));
        let dimension = flat(&mut app);
        viewer(&mut app, dimension, THERE.x as f32, 0.0, 1);
        start(&mut app);
        update_until(&mut app, "the other region's edit is there", |world| {
            block_at(world, dimension, THERE) == Some(block)
        });
    }
}

#[test]
fn a_region_that_hangs_does_not_keep_others_from_being_saved() {
    let folder = tempfile::tempdir().unwrap();
    let mut plugin = at(&folder.path().join("world"));
    plugin.saving.shutdown_patience = Duration::ZERO;
    let (mut app, dimension, gate) = with_a_slow_region(plugin);
    let saves = app.world().resource::<WorldStatistics>().saves;
    let block = id_of(app.world(), "terrane:stone");
    app.world_mut().write_message(SetBlock { dimension, position: THERE, block });
    app.world_mut().write_message(SaveWorld { request: 7 });
    update_until(&mut app, "the other region is saved", |world| world.resource::<WorldStatistics>().saves > saves);
    assert!(heard::<WorldSaved>(&app).is_empty(), "not everything is saved");
    gate.open();
    update_until(&mut app, "everything is saved", |world| {
        world.resource::<Heard<WorldSaved>>().0.iter().any(|saved| saved.request == 7)
    });
}

/// Like a process that a script starts with `&` or `nohup`: every game ignores the signals that its parent ignores.
///
/// Promise, crashes: When the app ends by SIGINT or SIGTERM, everything is saved.
#[cfg(unix)]
#[test]
fn a_signal_ends_the_app_in_order_also_where_others_are_ignored() {
    for test in TERMINATED {
        end_by_signals(test, &["-INT"], &["-INT", "-HUP"]);
        end_by_signals(test, &["-INT", "-HUP"], &["-INT", "-HUP", "-TERM"]);
        end_by_signals(test, &["-HUP"], &["-HUP", "-INT"]);
    }
}
