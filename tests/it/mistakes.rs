//! Common mistakes are reported with one clear message each, and not once per frame.

use crate::support::process::{output, program};
use crate::support::*;
use bevy::ecs::system::NonSendMarker;
use bevy::log::LogPlugin;
use bevy_terrane::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// The mistake made by the process that [`log_of`] starts.
const MISTAKE: &str = "TERRANE_TEST_MISTAKE";

const MISTAKES: [(&str, fn()); 9] = [
    ("a viewer without a dimension", a_viewer_without_a_dimension),
    ("a viewer in no dimension", a_viewer_in_no_dimension),
    ("systems of regions in the main app", systems_of_regions_in_the_main_app),
    ("a component without the plugin", a_component_without_the_plugin),
    ("a dimension without the plugin", a_dimension_without_the_plugin),
    ("an unknown name", an_unknown_name),
    ("refused edits", refused_edits),
    ("a generator that fails", a_generator_that_fails),
    ("none", none),
];

/// The log of a process that makes this mistake, line by line.
fn log_of(mistake: &str) -> Vec<String> {
    let mut program = program();
    program.args(["--exact", "mistakes::process_that_makes_a_mistake", "--nocapture"]).env(MISTAKE, mistake);
    let output = output(&mut program);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    text.lines().map(str::to_owned).collect()
}

/// The lines of the log with this text.
fn lines_with(mistake: &str, text: &str) -> Vec<String> {
    log_of(mistake).into_iter().filter(|line| line.contains(text)).collect()
}

/// Runs only in the processes that the tests below start. On its own it does nothing.
#[test]
fn process_that_makes_a_mistake() {
    let Ok(wanted) = std::env::var(MISTAKE) else { return };
    let (_, make) = MISTAKES.iter().find(|(mistake, _)| *mistake == wanted).expect("a known mistake");
    make();
}

/// A game with a log.
fn logged(plugin: TerranePlugin) -> App {
    let mut app = game(plugin);
    app.add_plugins(LogPlugin::default());
    app
}

fn a_viewer_without_a_dimension() {
    let mut app = logged(lockstep());
    flat(&mut app);
    app.world_mut().spawn((Viewer::new(), Transform::default()));
    start(&mut app);
    update(&mut app, 30);
}

fn a_viewer_in_no_dimension() {
    let mut app = logged(lockstep());
    flat(&mut app);
    let none = app.world_mut().spawn_empty().id();
    viewer(&mut app, none, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 30);
}

fn systems_of_regions_in_the_main_app() {
    let mut app = logged(lockstep());
    app.add_systems(RegionTick, || unreachable!("it never runs"));
    start(&mut app);
    update(&mut app, 30);
}

fn a_component_without_the_plugin() {
    let mut app = App::new();
    app.add_plugins((MinimalPlugins, LogPlugin::default())).register_saved_component::<Walker>();
    start(&mut app);
    update(&mut app, 30);
}

fn a_dimension_without_the_plugin() {
    let mut app = App::new();
    app.add_plugins((MinimalPlugins, LogPlugin::default()));
    app.add_systems(Startup, |mut commands: Commands| {
        commands.spawn(Dimension::new("overworld", Void));
    });
    start(&mut app);
    update(&mut app, 30);
}

fn an_unknown_name() {
    let mut app = logged(lockstep());
    start(&mut app);
    let types = app.world().resource::<BlockTypes>();
    (0..30).for_each(|_| assert_eq!(types.id("grass"), None));
    assert_eq!(types.id("xyzzy:plugh"), None);
}

/// Three seconds of the coordinator's clock.
const THREE_SECONDS: usize = 60;

fn refused_edits() {
    let mut app = logged(lockstep());
    let dimension = flat(&mut app);
    start(&mut app);
    update(&mut app, 5);
    let edit = SetBlock { dimension, position: HERE, block: BlockId::AIR };
    for _ in 0..THREE_SECONDS {
        for _ in 0..10 {
            app.world_mut().write_message(edit);
        }
        app.update();
    }
}

fn a_generator_that_fails() {
    let mut app = logged(lockstep());
    let dimension = app.world_mut().spawn(Dimension::new("overworld", Nothing)).id();
    viewer(&mut app, dimension, 0.0, 0.0, 8);
    start(&mut app);
    update(&mut app, THREE_SECONDS);
}

/// A generator that uses an unregistered block.
struct Nothing;

impl Generator for Nothing {
    fn identity(&self) -> GeneratorIdentity {
        GeneratorIdentity::new("nothing", 1, 0)
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        request.block("game:nothing").map(|_| Column::new(request.column))
    }
}

/// A game without a mistake, but with unusual features: mirrors of viewers, dimensions before the plugin.
fn none() {
    let mut app = App::new();
    let dimension = flat(&mut app);
    app.add_plugins((MinimalPlugins, lockstep(), LogPlugin::default())).register_saved_component::<Walker>();
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 30);
}

/// Promise, clocks and faults: Common mistakes are logged, once each.
#[test]
fn a_viewer_without_a_dimension_or_with_a_wrong_one_is_told() {
    let lines = lines_with("a viewer without a dimension", "is a Viewer");
    assert!(lines.len() == 1 && lines[0].contains("Viewer::in_dimension"), "{lines:?}");
    let lines = lines_with("a viewer in no dimension", "is a Viewer");
    assert!(lines.len() == 1 && lines[0].contains("has no Dimension"), "{lines:?}");
}

/// Promise, clocks and faults: Common mistakes are logged, once each.
#[test]
fn systems_of_regions_in_the_main_app_are_told() {
    let lines = lines_with("systems of regions in the main app", "RegionTick");
    assert!(lines.len() == 1 && lines[0].contains("add_region_plugins"), "{lines:?}");
}

/// Promise, clocks and faults: Common mistakes are logged, once each.
#[test]
fn a_missing_plugin_is_told() {
    for mistake in ["a component without the plugin", "a dimension without the plugin"] {
        let lines = lines_with(mistake, "TerranePlugin");
        assert!(lines.len() == 1 && lines[0].contains("add_plugins"), "{lines:?}");
    }
}

/// Promise, clocks and faults: Common mistakes are logged, once each.
#[cfg(debug_assertions)]
#[test]
fn a_name_that_finds_nothing_is_told_with_the_nearest_one() {
    let log = log_of("an unknown name");
    let grass: Vec<_> = log.iter().filter(|line| line.contains("\"grass\"")).collect();
    assert!(grass.len() == 1 && grass[0].contains("is \"terrane:grass\" meant"), "{grass:?}");
    let other: Vec<_> = log.iter().filter(|line| line.contains("xyzzy")).collect();
    assert!(other.len() == 1 && !other[0].contains("meant"), "{other:?}");
}

/// Promise, clocks and faults: Failures that repeat are logged in one line a second at most, with a count.
#[test]
fn refused_edits_are_told_once_a_second_at_most() {
    let lines = lines_with("refused edits", "SetBlock");
    // One line per second, and the rest at the end.
    assert!((1..=4).contains(&lines.len()), "{lines:?}");
    assert!(lines[0].contains("more edits were refused"), "{lines:?}");
}

/// Promise, clocks and faults: Failures that repeat are logged in one line a second at most, with a count.
#[test]
fn a_generators_error_is_one_line_with_a_count() {
    let lines = lines_with("a generator that fails", "game:nothing");
    // One line per second while further columns are tried for the first time, and the rest at the end.
    assert!((1..=4).contains(&lines.len()), "{lines:?}");
    assert!(lines[0].contains("more columns failed"), "{lines:?}");
}

/// Promise, clocks and faults: Common mistakes are logged, once each.
#[test]
fn a_game_without_a_mistake_is_told_nothing() {
    let complaints = log_of("none").into_iter().filter(|line| line.contains("WARN") || line.contains("ERROR"));
    assert_eq!(complaints.collect::<Vec<_>>(), [""; 0]);
}

/// The message of an app that panics in its first updates.
fn panic_of(mut app: App) -> String {
    let payload = catch_unwind(AssertUnwindSafe(|| update(&mut app, 3))).expect_err("it panics");
    payload.downcast_ref::<String>().cloned().unwrap_or_default()
}

/// Promise, clocks and faults: `RegionBlocks` in the main world and `NonSend` in a region are errors that say what to do.
#[test]
fn blocks_of_regions_in_the_main_world_are_told() {
    let mut app = game(lockstep());
    app.add_systems(Update, |blocks: RegionBlocks| assert!(blocks.columns().is_empty()));
    start(&mut app);
    let reason = panic_of(app);
    assert!(reason.contains("add_region_plugins") && reason.contains("PublishedBlocks"), "{reason}");
}

#[test]
fn published_blocks_without_the_plugin_are_told() {
    let mut app = App::new();
    app.add_plugins(MinimalPlugins).add_systems(Update, |blocks: PublishedBlocks| {
        blocks.column(Entity::PLACEHOLDER, ColumnPos::new(0, 0));
    });
    let reason = panic_of(app);
    assert!(reason.contains("TerranePlugin"), "{reason}");
}

/// The error of an app that does not start.
fn refusal(template: impl Fn(&mut SubApp) + Send + Sync + 'static) -> String {
    let mut app = game(lockstep());
    app.add_region_plugins(template);
    start(&mut app);
    app.update();
    assert_eq!(app.should_exit(), Some(AppExit::error()));
    app.world().resource::<WorldFailure>().to_string()
}

/// Promise, clocks and faults: `RegionBlocks` in the main world and `NonSend` in a region are errors that say what to do.
#[test]
fn what_belongs_to_one_thread_is_refused_in_regions() {
    struct OfOneThread(#[expect(dead_code, reason = "it only has to be there")] Rc<u8>);
    fn on_the_main_thread(_: NonSendMarker) {}

    let data = refusal(|region| region.world_mut().insert_non_send(OfOneThread(Rc::new(1))));
    assert!(data.contains("OfOneThread") && data.contains("NonSend"), "{data}");
    let system = refusal(|region| {
        region.add_systems(Update, on_the_main_thread);
    });
    assert!(system.contains("on_the_main_thread") && system.contains("NonSend"), "{system}");
}
