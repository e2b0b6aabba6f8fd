//! Common mistakes are reported: with one clear message each, and not in every frame.

use crate::support::process::{output, program};
use crate::support::*;
use bevy::ecs::system::NonSendMarker;
use bevy::log::LogPlugin;
use bevy_terrane::prelude::*;
use bevy_terrane::storage::MemoryStore;
use bevy_terrane::view::DimensionGeneration;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

/// The mistake of a process that [`log_of`] starts.
const MISTAKE: &str = "TERRANE_TEST_MISTAKE";

const MISTAKES: [(&str, fn()); 20] = [
    ("a viewer without a dimension", a_viewer_without_a_dimension),
    ("a viewer in no dimension", a_viewer_in_no_dimension),
    ("a viewer without a place", a_viewer_without_a_place),
    ("systems of regions in the main app", systems_of_regions_in_the_main_app),
    ("a component without the plugin", a_component_without_the_plugin),
    ("a dimension without the plugin", a_dimension_without_the_plugin),
    ("an unknown name", an_unknown_name),
    ("refused edits", refused_edits),
    ("a generator that fails", a_generator_that_fails),
    ("a column that is set aside", a_column_that_is_set_aside),
    ("a generator that panics", a_generator_that_panics),
    ("a registration while the app runs", a_registration_while_the_app_runs),
    ("no plugins of Bevy", no_plugins_of_bevy),
    ("a world without a viewer", a_world_without_a_viewer),
    ("an empty dimension", an_empty_dimension),
    ("a renamed block", a_renamed_block),
    ("a large radius", a_large_radius),
    ("a large radius in a region", a_large_radius_in_a_region),
    ("a panic in a region", a_panic_in_a_region),
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

/// Runs only in the processes that the tests below start; otherwise it does nothing.
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
    viewer(&mut app, DimensionId(99), 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 30);
}

fn a_viewer_without_a_place() {
    let mut app = logged(lockstep());
    let dimension = flat(&mut app);
    app.world_mut().spawn(Viewer::in_dimension(dimension));
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
    assert_eq!(types.state("terrane:gras", &[("wet", "true")]), None);
    assert!(types.tag("game:wood").is_none());
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
    let dimension = spawn_dimension(&mut app, Dimension::new("overworld", Nothing));
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

fn a_column_that_is_set_aside() {
    let generation = DimensionGeneration { attempts: 1, ..default() };
    let mut app = logged(TerranePlugin { generation, ..lockstep() });
    let dimension = spawn_dimension(&mut app, Dimension::new("overworld", Nothing));
    viewer(&mut app, dimension, 0.0, 0.0, 0);
    start(&mut app);
    update(&mut app, THREE_SECONDS);
}

fn a_generator_that_panics() {
    let mut app = logged(lockstep());
    let dimension = spawn_dimension(&mut app, Dimension::new("overworld", Panics));
    viewer(&mut app, dimension, 0.0, 0.0, 0);
    start(&mut app);
    update(&mut app, 10);
}

/// A generator with a bug.
struct Panics;

impl Generator for Panics {
    fn identity(&self) -> GeneratorIdentity {
        GeneratorIdentity::new("panics", 1, 0)
    }

    fn generate(&self, _: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        panic!("a hill is late")
    }
}

fn a_registration_while_the_app_runs() {
    let mut app = logged(lockstep());
    start(&mut app);
    app.register_region_component::<Walker>();
    app.update();
}

fn no_plugins_of_bevy() {
    let mut app = App::new();
    app.add_plugins((lockstep(), LogPlugin::default()));
    start(&mut app);
    app.update();
    assert_eq!(app.should_exit(), Some(AppExit::error()));
}

fn a_world_without_a_viewer() {
    let mut app = logged(lockstep());
    flat(&mut app);
    spawn_dimension(&mut app, Dimension::new("moon", Flat::new()));
    run_for_four_seconds(&mut app);
}

/// A dimension that is meant to be empty, such as one for arenas, beside one that is not.
fn an_empty_dimension() {
    let mut app = logged(lockstep());
    let overworld = flat(&mut app);
    viewer(&mut app, overworld, 0.0, 0.0, 1);
    spawn_dimension(&mut app, Dimension::new("moon", Flat::new()));
    run_for_four_seconds(&mut app);
}

fn run_for_four_seconds(app: &mut App) {
    start(app);
    for _ in 0..80 {
        app.update();
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

fn a_renamed_block() {
    let store = Arc::new(MemoryStore::new());
    let mut first = game(lockstep_on(&store));
    let oven = BlockStates::new(BlockType::new("game:oven")).with_property("lit", ["false", "true"]);
    first.register_block_states(oven).unwrap();
    start(&mut first);
    first.update();
    drop(first);
    let mut second = logged(lockstep_on(&store));
    second.register_block(BlockType::new("game:furnace")).unwrap();
    start(&mut second);
    update(&mut second, 5);
}

fn a_large_radius() {
    let mut app = logged(TerranePlugin { pacing: bevy_terrane::view::Pacing::fixed(1), ..lockstep() });
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 500);
    start(&mut app);
    app.update();
    viewer(&mut app, dimension, 0.0, 0.0, 500);
    app.update();
}

fn a_large_radius_in_a_region() {
    let mut app = logged(TerranePlugin { pacing: bevy_terrane::view::Pacing::fixed(1), ..lockstep() });
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    spawn_in_region(&mut app, dimension, HERE, Viewer::new().with_radius(500));
    update(&mut app, 5);
}

fn a_panic_in_a_region() {
    let mut app = logged(TerranePlugin { tick_mode: TickMode::Independent, ..lockstep() });
    app.add_region_plugins(|region| {
        region.add_systems(RegionTick, || panic!("a cow is late"));
    });
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    listen::<RegionHalted>(&mut app);
    start(&mut app);
    update_until(&mut app, "the region halts", |world| !world.resource::<Heard<RegionHalted>>().0.is_empty());
}

/// A game without a mistake, but with lookalikes: mirrors of viewers, dimensions before the plugin.
fn none() {
    let mut app = App::new();
    // Before the plugin, which is fine.
    app.world_mut().spawn(Dimension::new("overworld", Flat::new()));
    app.add_plugins((MinimalPlugins, lockstep(), LogPlugin::default())).register_saved_component::<Walker>();
    let dimension = app.world().resource::<Dimensions>().id("overworld");
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 30);
}

/// Promise, clocks and faults: Common mistakes are logged, once each.
#[test]
fn a_viewer_without_a_valid_dimension_is_logged() {
    let lines = lines_with("a viewer without a dimension", "is a Viewer");
    assert!(lines.len() == 1 && lines[0].contains("Viewer::in_dimension"), "{lines:?}");
    let lines = lines_with("a viewer in no dimension", "is a Viewer");
    assert!(lines.len() == 1 && lines[0].contains("no entity has a Dimension with this id"), "{lines:?}");
    assert!(lines[0].contains("dimensions.id(name)"), "{lines:?}");
    let lines = lines_with("a viewer without a place", "is a Viewer");
    assert!(lines.len() == 1 && lines[0].contains("insert a Transform"), "{lines:?}");
}

/// Promise, clocks and faults: Common mistakes are logged, once each.
#[test]
fn systems_of_regions_in_the_main_app_are_logged() {
    let lines = lines_with("systems of regions in the main app", "RegionTick");
    assert!(lines.len() == 1 && lines[0].contains("add_region_plugins"), "{lines:?}");
}

/// Promise, clocks and faults: Common mistakes are logged, once each.
#[test]
fn a_missing_plugin_is_logged() {
    for mistake in ["a component without the plugin", "a dimension without the plugin"] {
        let lines = lines_with(mistake, "TerranePlugin");
        assert!(lines.len() == 1 && lines[0].contains("add_plugins"), "{lines:?}");
    }
}

/// Promise, clocks and faults: Common mistakes are logged, once each.
#[cfg(debug_assertions)]
#[test]
fn an_unknown_block_name_is_logged_with_the_nearest_one() {
    let log = log_of("an unknown name");
    let grass: Vec<_> = log.iter().filter(|line| line.contains("\"grass\"")).collect();
    assert!(grass.len() == 1 && grass[0].contains("is \"terrane:grass\" meant"), "{grass:?}");
    let other: Vec<_> = log.iter().filter(|line| line.contains("xyzzy")).collect();
    assert!(other.len() == 1 && !other[0].contains("meant"), "{other:?}");
    let state: Vec<_> = log.iter().filter(|line| line.contains("terrane:gras[wet=true]")).collect();
    assert!(state.len() == 1 && state[0].contains("is \"terrane:grass\" meant"), "{state:?}");
    let tag: Vec<_> = log.iter().filter(|line| line.contains("the tag \"game:wood\"")).collect();
    assert_eq!(tag.len(), 1, "{tag:?}");
}

/// Promise, clocks and faults: Common mistakes are logged, once each.
#[test]
fn a_registration_while_the_app_runs_is_logged() {
    let lines = lines_with("a registration while the app runs", "register it while the app is built");
    assert!(lines.len() == 1 && lines[0].contains("Walker"), "{lines:?}");
}

#[test]
fn a_block_that_is_registered_while_the_app_runs_is_refused() {
    let mut app = game(lockstep());
    start(&mut app);
    let block = || BlockType::new("game:late");
    let refusals = [
        app.register_block(block()).err(),
        app.register_block_states(BlockStates::new(block()).with_property("wet", ["false", "true"])).err(),
        app.register_block_component(BlockComponent::variable("game:late")).err(),
    ];
    for refusal in refusals {
        let refusal = refusal.expect("it is refused").to_string();
        assert!(refusal.contains("game:late") && refusal.contains("while the app is built"), "{refusal}");
    }
}

/// Promise, clocks and faults: Common mistakes are logged, once each.
#[test]
fn an_app_without_the_plugins_of_bevy_ends_with_a_message() {
    let lines = lines_with("no plugins of Bevy", "TerranePlugin needs Bevy's MinimalPlugins or DefaultPlugins");
    assert_eq!(lines.len(), 1, "{lines:?}");
}

/// Promise, clocks and faults: Common mistakes are logged, once each.
#[test]
fn a_world_without_viewers_is_logged_and_an_empty_dimension_is_not() {
    let lines = lines_with("a world without a viewer", "because no entity has a Viewer");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("\"overworld\"") && lines[0].contains("\"moon\""), "{lines:?}");
    let lines = lines_with("an empty dimension", "Viewer");
    assert!(lines.is_empty(), "{lines:?}");
}

/// Promise, clocks and faults: Common mistakes are logged, once each.
#[test]
fn stored_block_types_that_the_game_lacks_are_named() {
    let lines = lines_with("a renamed block", "game:oven");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("WARN") && lines[0].contains("formerly(\"game:oven\")"), "{lines:?}");
}

/// Bevy's own message names no plugin.
///
/// Promise, clocks and faults: Common mistakes are logged, once each.
#[test]
fn the_id_of_a_dimension_before_the_plugin_is_refused() {
    let mut app = App::new();
    let payload = catch_unwind(AssertUnwindSafe(|| app.dimension_id("moon"))).expect_err("it panics");
    let reason = payload.downcast_ref::<String>().cloned().unwrap_or_default();
    assert!(reason.contains("\"moon\"") && reason.contains("TerranePlugin"), "{reason}");
    app.add_plugins((MinimalPlugins, lockstep()));
    assert_eq!(app.dimension_id("moon"), app.world().resource::<Dimensions>().id("moon"));
}

/// Promise, clocks and faults: Common mistakes are logged, once each.
#[test]
fn a_very_large_radius_is_logged() {
    for mistake in ["a large radius", "a large radius in a region"] {
        let lines = lines_with(mistake, "loads 785349 columns: about 3834 MB of memory");
        assert_eq!(lines.len(), 1, "{mistake}: {lines:?}");
    }
}

/// Promise, clocks and faults: Common mistakes are logged, once each.
#[test]
fn the_log_of_a_halted_region_names_the_restart() {
    let lines = lines_with("a panic in a region", "RegionOrder::Restart");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("a cow is late") && lines[0].contains("mistakes.rs"), "{lines:?}");
}

#[test]
fn a_second_plugin_is_refused() {
    let add = || {
        App::new().add_plugins(lockstep()).add_plugins(lockstep());
    };
    let payload = catch_unwind(AssertUnwindSafe(add)).expect_err("it panics");
    let reason = payload.downcast_ref::<&str>().copied().unwrap_or_default();
    assert!(reason.contains("TerranePlugin was added twice") && reason.contains("add it once"), "{reason}");
}

/// Promise, clocks and faults: Failures that repeat are logged in one line a second at most, with a count.
#[test]
fn refused_edits_are_logged_once_a_second_at_most() {
    let lines = lines_with("refused edits", "SetBlock");
    // One line per second, and one for the rest at the end.
    assert!((1..=4).contains(&lines.len()), "{lines:?}");
    assert!(lines[0].contains("more edits were refused"), "{lines:?}");
}

/// Promise, clocks and faults: Failures that repeat are logged in one line a second at most, with a count.
#[test]
fn a_generators_error_is_one_line_with_a_count() {
    let lines = lines_with("a generator that fails", "game:nothing");
    // One line per second while further columns are tried for the first time, and one for the rest at the end.
    assert!((1..=4).contains(&lines.len()), "{lines:?}");
    assert!(lines[0].contains("more columns failed"), "{lines:?}");
}

/// Promise, clocks and faults: Common mistakes are logged, once each.
#[test]
fn a_column_that_is_set_aside_or_whose_generator_panics_is_logged() {
    let lines = lines_with("a column that is set aside", "set aside after attempt 1");
    assert!(lines.len() == 1 && lines[0].contains("RetryColumns"), "{lines:?}");
    let lines = lines_with("a generator that panics", "generating it panicked: a hill is late");
    assert!(lines.len() == 1 && lines[0].contains("next try in"), "{lines:?}");
}

/// Promise, clocks and faults: Common mistakes are logged, once each.
#[test]
fn a_game_without_a_mistake_logs_nothing() {
    let complaints = log_of("none").into_iter().filter(|line| line.contains("WARN") || line.contains("ERROR"));
    assert_eq!(complaints.collect::<Vec<_>>(), [""; 0]);
}

/// The message of an app that panics in its first updates.
fn panic_of(mut app: App) -> String {
    let payload = catch_unwind(AssertUnwindSafe(|| update(&mut app, 3))).expect_err("it panics");
    payload.downcast_ref::<String>().cloned().unwrap_or_default()
}

/// Promise, clocks and faults: `RegionBlocks` in the main world and `NonSend` in a region are errors with a hint.
#[test]
fn region_blocks_in_the_main_world_are_an_error_with_a_hint() {
    let mut app = game(lockstep());
    app.add_systems(Update, |blocks: RegionBlocks| assert!(blocks.columns().is_empty()));
    start(&mut app);
    let reason = panic_of(app);
    assert!(reason.contains("add_region_plugins") && reason.contains("PublishedBlocks"), "{reason}");
}

#[test]
fn published_blocks_without_the_plugin_are_an_error_with_a_hint() {
    let mut app = App::new();
    app.add_plugins(MinimalPlugins).add_systems(Update, |blocks: PublishedBlocks| {
        blocks.column(DimensionId(0), ColumnPos::new(0, 0));
    });
    let reason = panic_of(app);
    assert!(reason.contains("TerranePlugin"), "{reason}");
}

/// The reason why the app does not start.
fn refusal(template: impl Fn(&mut SubApp) + Send + Sync + 'static) -> String {
    let mut app = game(lockstep());
    app.add_region_plugins(template);
    start(&mut app);
    app.update();
    assert_eq!(app.should_exit(), Some(AppExit::error()));
    app.world().resource::<WorldFailure>().to_string()
}

/// Promise, clocks and faults: `RegionBlocks` in the main world and `NonSend` in a region are errors with a hint.
#[test]
fn non_send_data_is_refused_in_regions() {
    struct OfOneThread(#[expect(dead_code, reason = "it only has to be there")] Rc<u8>);
    fn on_the_main_thread(_: NonSendMarker) {}

    let data = refusal(|region| region.world_mut().insert_non_send(OfOneThread(Rc::new(1))));
    assert!(data.contains("OfOneThread") && data.contains("NonSend"), "{data}");
    let system = refusal(|region| {
        region.add_systems(Update, on_the_main_thread);
    });
    assert!(system.contains("on_the_main_thread") && system.contains("NonSend"), "{system}");
}
