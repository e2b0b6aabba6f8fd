//! Clicks in the overlay have their effect in the simulation.

use crate::support::*;
use bevy::asset::AssetPlugin;
use bevy::image::ImagePlugin;
use bevy::input::InputPlugin;
use bevy::shader::Shader;
use bevy::window::{ExitCondition, WindowPlugin};
use bevy_egui::egui::{self, Event, Pos2, Rect, Shape};
use bevy_egui::{
    EguiContext, EguiFullOutput, EguiInput, EguiMultipassSchedule, EguiPlugin, EguiPostUpdateSet,
    EguiPrimaryContextPass, PrimaryEguiContext,
};
use bevy_terrane::prelude::*;
use bevy_terrane::view::{
    CaptureSnapshot, DimensionGeneration, FailedColumn, FarColumns, JobEnded, JobProgress, JobState, Jobs, Pacing,
    Pregeneration, RegionStatistics, SnapshotConfig,
};
use std::time::Duration;
use terrane_overlay::{Overlay, OverlayPlugin, OverlayTab};

const THERE: BlockPos = BlockPos::new(16 * 100, 5, 0);
const SCREEN: Rect = Rect { min: Pos2::ZERO, max: Pos2::new(1280.0, 720.0) };

/// Every text that was drawn in the last frame, with its place.
#[derive(Resource, Default)]
struct Seen(Vec<(String, Rect)>);

fn read_screen(mut seen: ResMut<Seen>, output: Single<&EguiFullOutput>) {
    seen.0.clear();
    let Some(output) = &output.0 else { return };
    fn collect(shape: &Shape, clip: Rect, seen: &mut Vec<(String, Rect)>) {
        match shape {
            Shape::Text(text) if clip.intersects(text.visual_bounding_rect()) => {
                seen.push((text.galley.text().to_owned(), text.visual_bounding_rect()));
            }
            Shape::Vec(shapes) => shapes.iter().for_each(|shape| collect(shape, clip, seen)),
            _ => {}
        }
    }
    output.shapes.iter().for_each(|clipped| collect(&clipped.shape, clipped.clip_rect, &mut seen.0));
}

fn go_off(walkers: Query<&Walker>) {
    assert!(walkers.iter().all(|walker| walker.name != "bomb"), "a bomb went off");
}

/// A game with the overlay on an invisible screen, and two separate regions.
fn two_regions(plugin: TerranePlugin) -> (App, DimensionId) {
    let mut app = game(plugin);
    app.add_region_plugins(|region| {
        region.add_systems(RegionTick, go_off);
    });
    let no_window = WindowPlugin { primary_window: None, exit_condition: ExitCondition::DontExit, ..default() };
    app.add_plugins((InputPlugin, no_window, AssetPlugin::default(), ImagePlugin::default()))
        .init_asset::<Shader>()
        .add_plugins((EguiPlugin::default(), OverlayPlugin))
        .insert_resource(Overlay { visible: true, ..default() })
        .init_resource::<Seen>()
        .add_systems(
            PostUpdate,
            read_screen.after(EguiPostUpdateSet::EndPass).before(EguiPostUpdateSet::ProcessOutput),
        );
    app.world_mut().spawn((
        EguiContext::default(),
        PrimaryEguiContext,
        EguiMultipassSchedule::new(EguiPrimaryContextPass),
    ));
    let types = app.world().resource::<AppTypeRegistry>().clone();
    assert!(types.read().get_with_type_path("terrane_overlay::Overlay").is_some());
    let dimension = flat(&mut app);
    for block in [HERE, THERE] {
        viewer(&mut app, dimension, block.x as f32, 0.0, 1);
    }
    start(&mut app);
    frame_until(&mut app, "both tick", |app| {
        [HERE, THERE].iter().all(|place| {
            region_at(app.world(), dimension, place.column())
                .is_some_and(|region| region.ticks > 0 && region.columns > 0)
        })
    });
    (app, dimension)
}

fn frame(app: &mut App, events: Vec<Event>) {
    let time = app.world().resource::<Time<Real>>().elapsed_secs_f64();
    let mut input = app.world_mut().query::<&mut EguiInput>();
    let mut input = input.single_mut(app.world_mut()).expect("a context");
    input.0.screen_rect = Some(SCREEN);
    input.0.time = Some(time);
    input.0.events = events;
    app.update();
}

fn frame_until(app: &mut App, what: &str, mut done: impl FnMut(&App) -> bool) {
    for _ in 0..3_000 {
        frame(app, Vec::new());
        if done(app) {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let seen: Vec<_> = app.world().resource::<Seen>().0.iter().map(|(text, _)| text).collect();
    panic!("waited in vain until {what}; the screen says {seen:?}");
}

fn places(app: &App, text: &str) -> Vec<Rect> {
    app.world().resource::<Seen>().0.iter().filter(|(seen, _)| seen == text).map(|(_, place)| *place).collect()
}

fn is_seen(app: &App, part: &str) -> bool {
    app.world().resource::<Seen>().0.iter().any(|(seen, _)| seen.contains(part))
}

fn press(place: Pos2, pressed: bool) -> Event {
    Event::PointerButton { pos: place, button: egui::PointerButton::Primary, pressed, modifiers: default() }
}

/// The place of a region in the table: its number is at the left, where the overlay has no other numbers.
fn row_of(app: &App, region: RegionId) -> Pos2 {
    let rows = places(app, &region.index().to_string());
    rows.iter().find(|place| place.left() < 60.0).expect("a row").center()
}

/// Clicks on the last occurrence of this text: the texts of the region's window are drawn last.
fn click(app: &mut App, text: &str) {
    frame(app, Vec::new());
    let place = places(app, text).last().unwrap_or_else(|| panic!("{text} is not on the screen")).center();
    click_at(app, place);
}

fn click_at(app: &mut App, place: Pos2) {
    frame(app, vec![Event::PointerMoved(place)]);
    frame(app, vec![press(place, true)]);
    frame(app, vec![press(place, false)]);
    // Hints disappear with the pointer.
    frame(app, vec![Event::PointerMoved(Pos2::new(1_270.0, 710.0))]);
}

/// Drags the number with this text to the right.
fn drag(app: &mut App, text: &str) {
    frame(app, Vec::new());
    let place = places(app, text).last().unwrap_or_else(|| panic!("{text} is not on the screen")).center();
    frame(app, vec![Event::PointerMoved(place)]);
    frame(app, vec![press(place, true)]);
    for step in 1..=10 {
        frame(app, vec![Event::PointerMoved(place + egui::vec2(4.0 * step as f32, 0.0))]);
    }
    frame(app, vec![press(place, false)]);
    frame(app, vec![Event::PointerMoved(Pos2::new(1_270.0, 710.0))]);
}

fn here(app: &App, dimension: DimensionId) -> RegionStatistics {
    region_at(app.world(), dimension, HERE.column()).expect("a region")
}

fn select_here(app: &mut App, dimension: DimensionId) -> RegionId {
    let region = here(app, dimension);
    app.world_mut().resource_mut::<Overlay>().selected = Some((region.dimension, region.region));
    frame(app, Vec::new());
    region.region
}

fn clock_of(app: &mut App, dimension: DimensionId) -> DimensionClock {
    let entity = dimension_entity(app.world_mut(), dimension);
    app.world().get::<DimensionClock>(entity).copied().unwrap_or_default()
}

/// Promise, clocks and faults: The overlay pauses and steps a dimension, and sets its speed.
/// Promise, features: The overlay shows and controls dimensions and regions.
#[test]
fn a_dimension_is_paused_stepped_and_resumed() {
    let (mut app, dimension) = two_regions(lockstep());
    let ticks = |app: &App| app.world().resource::<WorldStatistics>().regions.iter().map(|one| one.ticks).sum::<u64>();
    click(&mut app, "world");
    click(&mut app, "pause");
    assert!(clock_of(&mut app, dimension).paused);
    frame_until(&mut app, "it is paused", |app| here(app, dimension).paused);
    let before = ticks(&app);
    click(&mut app, "step");
    frame_until(&mut app, "each made a step", |app| ticks(app) == before + 2);
    click(&mut app, "resume");
    assert!(!clock_of(&mut app, dimension).paused);
    frame_until(&mut app, "they tick again", |app| ticks(app) > before + 10);
}

/// Promise, clocks and faults: The overlay pauses and steps a dimension, and sets its speed.
#[test]
fn a_dimensions_tick_rate_and_speed_are_dragged() {
    let (mut app, dimension) = two_regions(lockstep());
    click(&mut app, "world");
    drag(&mut app, " TPS");
    let clock = clock_of(&mut app, dimension);
    assert!(clock.ticks_per_second > 20.5 && clock.rate == 1.0 && !clock.paused, "{clock:?}");
    drag(&mut app, "× ");
    let after = clock_of(&mut app, dimension);
    assert!(after.rate > 1.05 && after.ticks_per_second == clock.ticks_per_second, "{after:?}");
    frame_until(&mut app, "the simulation keeps to it", |app| {
        app.world().resource::<WorldStatistics>().dimensions[0].clock == after
    });
}

/// Promise, clocks and faults: A click on a region in the overlay opens a window to pause, step, halt or restart it, or set its
/// tick rate.
#[test]
fn a_region_is_selected_in_the_table_on_the_map_and_in_the_log() {
    let (mut app, dimension) = two_regions(lockstep());
    let selected = |app: &App| app.world().resource::<Overlay>().selected;
    let ids = [HERE, THERE].map(|place| {
        let region = region_at(app.world(), dimension, place.column()).unwrap();
        (region.dimension, region.region)
    });
    let row = row_of(&app, ids[1].1);
    click_at(&mut app, row);
    assert_eq!(selected(&app), Some(ids[1]));
    assert!(is_seen(&app, &format!("Region {}", ids[1].1.index())));
    click(&mut app, "log");
    click(&mut app, &format!("{} created", ids[0].1.index()));
    assert_eq!(selected(&app), Some(ids[0]));
    // The two regions are at opposite ends of the map, which is between the tabs and the table.
    click(&mut app, "regions");
    frame(&mut app, Vec::new());
    // The details have such a text too, farther right.
    let below = places(&app, "5 s").into_iter().min_by(|a, b| a.left().total_cmp(&b.left())).expect("a button");
    let middle = (places(&app, "regions")[0].bottom() + below.top()) / 2.0;
    frame(&mut app, vec![Event::PointerMoved(Pos2::new(300.0, middle))]);
    for place in (0..90).map(|step| Pos2::new(575.0 - step as f32, middle)) {
        frame(&mut app, vec![Event::PointerMoved(place), press(place, true), press(place, false)]);
        if selected(&app) == Some(ids[1]) {
            let (of, column) = app.world().resource::<Overlay>().column.expect("a column");
            assert_eq!(region_at(app.world(), of, column).map(|region| region.region), Some(ids[1].1));
            return;
        }
    }
    panic!("no click on the map's right end, {middle} below the top, selects the region there: {:?}", selected(&app));
}

/// Promise, clocks and faults: A click on a region in the overlay opens a window to pause, step, halt or restart it, or set its
/// tick rate.
#[test]
fn one_region_is_paused_stepped_and_resumed_while_the_other_ticks() {
    let (mut app, dimension) = two_regions(lockstep());
    select_here(&mut app, dimension);
    let other = |app: &App| region_at(app.world(), dimension, THERE.column()).unwrap();
    click(&mut app, "pause");
    frame_until(&mut app, "it is paused", |app| here(app, dimension).paused_itself);
    assert!(!clock_of(&mut app, dimension).paused && !other(&app).paused);
    frame_until(&mut app, "the overlay says so", |app| is_seen(app, "paused"));
    let before = here(&app, dimension).ticks;
    click(&mut app, "step");
    frame_until(&mut app, "it made a step", |app| here(app, dimension).ticks == before + 1);
    click(&mut app, "resume");
    frame_until(&mut app, "it ticks again", |app| here(app, dimension).ticks > before + 5);
}

/// Promise, clocks and faults: A click on a region in the overlay opens a window to pause, step, halt or restart it, or set its
/// tick rate.
#[test]
fn a_region_gets_a_tick_rate_of_its_own_and_loses_it_again() {
    let (mut app, dimension) = two_regions(lockstep());
    select_here(&mut app, dimension);
    click(&mut app, "own tick rate");
    frame_until(&mut app, "it has its own", |app| here(app, dimension).tick_rate == Some(20.0));
    drag(&mut app, " TPS");
    frame_until(&mut app, "it is another", |app| here(app, dimension).tick_rate.is_some_and(|rate| rate > 20.5));
    assert_eq!(clock_of(&mut app, dimension).ticks_per_second, 20.0);
    click(&mut app, "own tick rate");
    frame_until(&mut app, "it has none", |app| here(app, dimension).tick_rate.is_none());
}

/// Promise, clocks and faults: A click on a region in the overlay opens a window to pause, step, halt or restart it, or set its
/// tick rate.
#[test]
fn a_halted_region_says_why_and_where_and_is_restarted() {
    let plugin =
        TerranePlugin { saving: SaveSettings::every(Duration::from_secs(3_600)), ..TerranePlugin::in_memory() };
    let (mut app, dimension) = two_regions(plugin);
    let region = select_here(&mut app, dimension).index();
    spawn_in_region(&mut app, dimension, HERE, walker("bomb", 0.0));
    frame_until(&mut app, "it halted", |app| here(app, dimension).halted);
    frame(&mut app, Vec::new());
    for text in ["a bomb went off", "overlay.rs:", "go_off", "near column"] {
        assert!(is_seen(&app, text), "{text} is not on the screen");
    }
    click(&mut app, "log");
    click(&mut app, "faults");
    assert!(is_seen(&app, &format!("{region} halted: a bomb went off")));
    click(&mut app, "restart");
    frame_until(&mut app, "it lives again", |app| {
        let region = here(app, dimension);
        !region.halted && region.columns > 0
    });
    frame_until(&mut app, "the overlay says so", |app| is_seen(app, &format!("{region} restarted from the store")));
    assert!(!is_seen(&app, "near column"));
}

/// Promise, clocks and faults: A click on a region in the overlay opens a window to pause, step, halt or restart it, or set its
/// tick rate.
#[test]
fn a_region_is_halted_by_hand() {
    let (mut app, dimension) = two_regions(lockstep());
    select_here(&mut app, dimension);
    app.world_mut().resource_mut::<Overlay>().tab = OverlayTab::Log;
    click(&mut app, "halt");
    frame_until(&mut app, "it halted", |app| here(app, dimension).halted);
    frame_until(&mut app, "the overlay says why", |app| is_seen(app, "halted: by order"));
}

/// Promise, clocks and faults: The overlay's table of regions sorts by every column, over 5 s, 15 s or a minute.
#[test]
fn the_table_uses_the_chosen_window_and_sorts_by_the_clicked_title() {
    let (mut app, dimension) = two_regions(lockstep());
    let mut ids = [HERE, THERE].map(|place| region_at(app.world(), dimension, place.column()).unwrap().region);
    ids.sort();
    let is_sorted = |app: &App| row_of(app, ids[0]).y < row_of(app, ids[1]).y;
    click(&mut app, "region");
    assert!(is_sorted(&app));
    click(&mut app, "region");
    assert!(!is_sorted(&app), "the other way round");
    click(&mut app, "1 min");
    assert!(!is_sorted(&app));
}

#[test]
fn the_window_of_a_region_that_is_gone_says_so() {
    let (mut app, dimension) = two_regions(lockstep());
    let region = select_here(&mut app, dimension);
    let viewers: Vec<_> = app.world_mut().query_filtered::<Entity, With<Viewer>>().iter(app.world()).collect();
    for viewer in viewers {
        app.world_mut().despawn(viewer);
    }
    frame_until(&mut app, "it is gone", |app| is_seen(app, "This region no longer exists."));
    click(&mut app, "log");
    assert!(is_seen(&app, &format!("{} destroyed", region.index())));
}

#[test]
fn generation_is_paused_and_resumed_and_failures_are_listed_in_the_panel() {
    let (mut app, dimension) = two_regions(TerranePlugin::in_memory());
    let entity = dimension_entity(app.world_mut(), dimension);
    let held = |app: &App| app.world().get::<DimensionGeneration>(entity).is_some_and(|settings| settings.paused);
    click(&mut app, "world");
    click(&mut app, "hold generation");
    assert!(held(&app));
    frame_until(&mut app, "the panel knows", |app| is_seen(app, "generate on"));
    click(&mut app, "generate on");
    assert!(!held(&app));

    let id = dimension;
    let error = "no ground here".to_owned();
    let failed = FailedColumn { column: ColumnPos::new(3, 4), attempts: 5, error, set_aside: true };
    let mut statistics = app.world().resource::<WorldStatistics>().clone();
    let told = statistics.dimensions.iter_mut().find(|told| told.dimension == id).expect("it is open");
    (told.set_aside, told.failures) = (1, vec![failed].into());
    // The simulation's own statistics may come in between, four times a second.
    let is_told = (0..20).any(|_| {
        app.insert_resource(statistics.clone());
        frame(&mut app, Vec::new());
        is_seen(&app, "0 failing, 1 set aside") && is_seen(&app, "no ground here (5 tries)")
    });
    assert!(is_told);
}

/// Promise, clocks and faults: The overlay lists pre-generations, captures and restores, and in another list far views.
#[test]
fn a_pre_generation_is_paused_resumed_and_cancelled() {
    let (mut app, dimension) =
        two_regions(TerranePlugin { pacing: Pacing { pregeneration: Some(4), ..default() }, ..lockstep() });
    let area = ColumnArea::Disc { center: ColumnPos::new(500, 0), radius: 200 };
    let job = app.world_mut().spawn((Pregeneration { dimension, area }, Name::new("spawn area"))).id();
    let state = |app: &App| app.world().get::<JobProgress>(job).expect("a job").state;
    click(&mut app, "jobs");
    frame_until(&mut app, "it is shown", |app| is_seen(app, "spawn area in overworld") && is_seen(app, "running"));
    frame_until(&mut app, "its rate is shown", |app| is_seen(app, " left") && is_seen(app, " of 125,629 ("));
    click(&mut app, "pause");
    frame_until(&mut app, "it is paused", |app| state(app) == JobState::Paused && is_seen(app, "paused"));
    click(&mut app, "resume");
    frame_until(&mut app, "it goes on", |app| state(app) == JobState::Running);
    click(&mut app, "cancel");
    frame_until(&mut app, "it ends", |app| state(app) == JobState::Cancelled && is_seen(app, "cancelled"));
    frame(&mut app, Vec::new());
    assert!(places(&app, "cancel").is_empty(), "what is over cannot be cancelled");
}

/// Promise, clocks and faults: The overlay lists pre-generations, captures and restores, and in another list far views.
#[test]
fn a_snapshot_job_is_shown_and_cancelled() {
    let config = SnapshotConfig { columns: 1, ..SnapshotConfig::default() };
    let (mut app, dimension) = two_regions(TerranePlugin { snapshots: config, ..lockstep() });
    listen::<JobEnded>(&mut app);
    let id = dimension;
    click(&mut app, "jobs");
    assert!(is_seen(&app, "Nothing is pre-generated, captured or restored."));
    let area = BlockBox::new(HERE, BlockPos::new(1_000, 5, 1_000));
    let jobs = app.world().resource::<Jobs>().clone();
    jobs.capture(CaptureSnapshot::new(id, area));
    jobs.capture(CaptureSnapshot::new(id, area));
    frame_until(&mut app, "both are shown", |app| is_seen(app, "running") && is_seen(app, "waiting"));
    frame_until(&mut app, "the rate is shown", |app| is_seen(app, " of 3,969 (0 %)") && is_seen(app, "/s, "));
    for text in ["capture in overworld", "worked", "box from [0, 5, 0]"] {
        assert!(is_seen(&app, text), "{text} is not on the screen");
    }
    for left in [1, 0] {
        click(&mut app, "cancel");
        frame_until(&mut app, "one is gone", |app| places(app, "cancel").len() == left);
    }
    frame_until(&mut app, "both have ended", |app| heard::<JobEnded>(app).len() == 2);
    let states: Vec<_> = heard::<JobEnded>(&app).iter().map(|ended| ended.progress.state).collect();
    assert_eq!(states, [JobState::Cancelled; 2]);
}

/// Promise, clocks and faults: The overlay lists pre-generations, captures and restores, and in another list far views.
#[test]
fn far_views_are_shown_with_their_progress() {
    let (mut app, dimension) = two_regions(lockstep());
    let view = FarView::in_dimension(dimension).with_radius(1).with_bytes_per_second(1 << 20);
    let place = Transform::from_xyz(HERE.x as f32, 0.0, 0.0);
    let listener = app.world_mut().spawn((view, place, Name::new("spyglass"))).id();
    click(&mut app, "far views");
    frame_until(&mut app, "it got all", |app| app.world().resource::<FarColumns>().len(listener) == 5);
    frame(&mut app, Vec::new());
    for text in ["spyglass", "5 of up to 5 columns", "B/s of 1.0 MiB/s", "radius 1, detail 16"] {
        assert!(is_seen(&app, text), "{text} is not on the screen");
    }
    app.world_mut().despawn(listener);
    frame_until(&mut app, "nobody listens", |app| is_seen(app, "Nobody listens to a far view."));
}

/// Clicks on the field with this text, and replaces it.
fn type_into(app: &mut App, field: &str, text: &str) {
    click(app, field);
    let modifiers = egui::Modifiers::COMMAND;
    let all = Event::Key { key: egui::Key::A, physical_key: None, pressed: true, repeat: false, modifiers };
    frame(app, vec![all]);
    frame(app, vec![Event::Text(text.to_owned())]);
}

/// Promise, overlay: A tab shows the store and what waits for it, saves the world, and makes a backup.
#[cfg(feature = "rocksdb")]
#[test]
fn the_world_is_saved_and_backed_up_with_clicks() {
    let folder = tempfile::tempdir().unwrap();
    let backups = folder.path().join("b");
    let plugin = TerranePlugin {
        saving: SaveSettings::every(Duration::from_secs(3_600)),
        ..TerranePlugin::at(folder.path().join("world"))
    };
    let (mut app, dimension) = two_regions(plugin);
    let stone = id_of(app.world(), "terrane:stone");
    app.world_mut().write_message(SetBlock { dimension, position: BlockPos::new(3, 20, 3), block: stone });
    listen::<WorldSaved>(&mut app);
    click(&mut app, "storage");
    for text in ["hot", "warm", "cold", "waits for the store", "last commit", "cache and memory tables"] {
        assert!(is_seen(&app, text), "{text} is not on the screen");
    }
    click(&mut app, "save now");
    frame_until(&mut app, "it is saved", |app| is_seen(app, "Everything is saved."));
    assert_eq!(heard::<WorldSaved>(&app).len(), 1);
    click(&mut app, "back up");
    frame(&mut app, Vec::new());
    assert!(is_seen(&app, "Everything is saved."), "a backup needs a folder");

    type_into(&mut app, "folder of backups", backups.to_str().unwrap());
    click(&mut app, "back up");
    frame_until(&mut app, "it is backed up", |app| is_seen(app, "Backup 1 has "));
    assert_eq!(bevy_terrane::storage::RocksStore::backups(&backups).unwrap().len(), 1);
    let file = folder.path().join("file");
    std::fs::write(&file, "no folder").unwrap();
    type_into(&mut app, backups.to_str().unwrap(), file.to_str().unwrap());
    click(&mut app, "back up");
    frame_until(&mut app, "the error is shown", |app| is_seen(app, "cannot back up"));
    assert_eq!(std::fs::read(&file).unwrap(), b"no folder");
}

/// Promise, overlay: A tab makes, reverts and removes arenas, and captures and restores snapshots.
#[test]
fn arenas_and_snapshots_are_made_and_restored_with_clicks() {
    let folder = tempfile::tempdir().unwrap();
    let snapshots = SnapshotConfig { folder: Some(folder.path().to_owned()), ..default() };
    let (mut app, dimension) = two_regions(TerranePlugin { snapshots, ..lockstep() });
    app.world_mut().resource_mut::<Overlay>().tab = OverlayTab::Arenas;
    frame(&mut app, Vec::new());
    assert!(is_seen(&app, "Select a column first.") && is_seen(&app, "There is none."));
    app.world_mut().resource_mut::<Overlay>().column = Some((dimension, HERE.column()));
    let (stone, place) = (id_of(app.world(), "terrane:stone"), BlockPos::new(3, 20, 3));
    let air = block_at(app.world(), dimension, place);
    let build = |app: &mut App| {
        app.world_mut().write_message(SetBlock { dimension, position: place, block: stone });
        frame_until(app, "the block is set", |app| block_at(app.world(), dimension, place) == Some(stone));
    };
    type_into(&mut app, "name", "court");
    click(&mut app, "new arena");
    frame_until(&mut app, "it is there", |app| is_seen(app, "ready") && is_seen(app, "9 columns"));
    build(&mut app);
    click(&mut app, "revert");
    frame_until(&mut app, "it is reverted", |app| block_at(app.world(), dimension, place) == air);
    frame_until(&mut app, "the list says so", |app| is_seen(app, "1 revert") && is_seen(app, "ready"));
    click(&mut app, "remove");
    frame_until(&mut app, "it is removed", |app| is_seen(app, "There is none."));

    click(&mut app, "capture");
    frame_until(&mut app, "it is captured", |app| is_seen(app, "box from [-16, 0, -16]"));
    build(&mut app);
    click(&mut app, "restore");
    frame_until(&mut app, "it is restored", |app| block_at(app.world(), dimension, place) == air);
    click(&mut app, "drop");
    assert!(is_seen(&app, "None was captured here."));
}

/// Promise, overlay: The details of a column have the versions of its chunks, which are read on demand.
#[test]
fn the_versions_of_a_columns_chunks_are_read() {
    let (mut app, dimension) = two_regions(lockstep());
    app.world_mut().resource_mut::<Overlay>().column = Some((dimension, HERE.column()));
    let (stone, position) = (id_of(app.world(), "terrane:stone"), BlockPos::new(3, 20, 3));
    app.world_mut().write_message(SetBlock { dimension, position, block: stone });
    frame_until(&mut app, "the block is set", |app| block_at(app.world(), dimension, position) == Some(stone));
    click(&mut app, "read versions");
    frame_until(&mut app, "they are read", |app| is_seen(app, "chunk y 1") && is_seen(app, "not stored yet"));
    save(&mut app);
    click(&mut app, "read versions");
    frame_until(&mut app, "it is stored", |app| !is_seen(app, "not stored yet") && is_seen(app, "stored"));
    assert_eq!(places(&app, "version 1").len(), 1, "the edited chunk alone");
}

/// Promise, overlay: Plots show the last ten minutes.
#[test]
fn plots_show_figures_over_time() {
    let (mut app, _) = two_regions(TerranePlugin::in_memory());
    click(&mut app, "plots");
    frame_until(&mut app, "there are samples", |app| is_seen(app, "ticks a second"));
    frame(&mut app, Vec::new());
    for text in ["slowest region", "worst frame", "in flight", "-5:00", "fault", "world saved"] {
        assert!(is_seen(&app, text), "{text} is not on the screen");
    }
}

/// The tab, since parts of windows have the same name.
fn show_entities(app: &mut App) {
    app.world_mut().resource_mut::<Overlay>().tab = OverlayTab::Entities;
    frame(app, Vec::new());
}

/// Promise, overlay: The overlay lists the entities of a region, shows and changes the components of one, and follows it from region to
/// region.
#[test]
fn an_entity_is_found_looked_at_changed_and_followed() {
    let (mut app, dimension) = two_regions(lockstep());
    app.register_type::<Transform>();
    let bess = StableId(uuid::Uuid::from_u128(0xbe55));
    spawn_in_region(&mut app, dimension, HERE, (bess, Name::new("Bess"), Transform::from_xyz(41.5, 0.0, 0.0)));
    spawn_in_region(&mut app, dimension, HERE, Name::new("Rex"));
    show_entities(&mut app);
    frame_until(&mut app, "it asks for a region", |app| is_seen(app, "Select a region"));
    let region = select_here(&mut app, dimension);
    frame_until(&mut app, "both are listed", |app| is_seen(app, "Bess") && is_seen(app, "Rex"));
    click(&mut app, "Bess");
    assert_eq!(app.world().resource::<Overlay>().entity, Some(bess.0));
    let of = format!("region {} of ", region.index());
    frame_until(&mut app, "its region is shown", |app| is_seen(app, &of));

    click(&mut app, "Transform");
    frame_until(&mut app, "its value is shown", |app| is_seen(app, "41.5"));
    drag(&mut app, "41.5");
    let mut east = 41.5;
    for _ in 0..100 {
        frame(&mut app, Vec::new());
        east = ask_region(&mut app, dimension, HERE, |all: Query<&Transform, With<Name>>| {
            all.iter().map(|transform| transform.translation.x).fold(0.0, f32::max)
        });
        if east != 41.5 {
            break;
        }
    }
    assert!(east > 41.6, "its region has the dragged value: {east}");

    in_region(&mut app, dimension, HERE, |world| {
        let mut named = world.query::<(&Name, &mut Position)>();
        let (_, mut position) = named.iter_mut(world).find(|(name, _)| name.as_str() == "Bess").unwrap();
        position.block = THERE;
    });
    let there = region_at(app.world(), dimension, THERE.column()).unwrap().region;
    let of = format!("region {} of ", there.index());
    frame_until(&mut app, "it is followed", |app| is_seen(app, &of));
    let crossing = format!("came to region {} of ", there.index());
    frame_until(&mut app, "the crossing is listed", |app| is_seen(app, &crossing) && is_seen(app, "left for column "));
    frame_until(&mut app, "the list is that of the region", |app| is_seen(app, "Rex") && !is_seen(app, "Bess"));
}

/// Promise, overlay: A halted region has no entities to show, and says so.
#[test]
fn a_halted_region_says_that_it_is_halted() {
    let (mut app, dimension) = two_regions(lockstep());
    select_here(&mut app, dimension);
    click(&mut app, "halt");
    frame_until(&mut app, "it is halted", |app| here(app, dimension).halted);
    show_entities(&mut app);
    frame_until(&mut app, "the list says so", |app| is_seen(app, "halted, and answers once it is restarted"));
}

/// Promise, overlay: With "pick" on, a click into the world selects the entity or the region of the block that the pointer hits.
#[test]
fn a_click_into_the_world_selects_what_it_hits() {
    use bevy::camera::NormalizedRenderTarget;
    use bevy::picking::backend::HitData;
    use bevy::picking::pointer::{Location, PointerId};
    use bevy_terrane::chunk::RayHit;

    let (mut app, dimension) = two_regions(lockstep());
    let click = |app: &mut App, entity: Entity, hit: HitData| {
        let location = Location { target: NormalizedRenderTarget::None { width: 1, height: 1 }, position: Vec2::ZERO };
        let event = Click { button: PointerButton::Primary, hit, duration: Duration::ZERO, count: 1 };
        app.world_mut().trigger(Pointer::new(PointerId::Mouse, location, event, entity));
        app.world_mut().flush();
    };
    let mirror = Mirror { id: uuid::Uuid::from_u128(7), previous: default(), current: default() };
    let body = app.world_mut().spawn(mirror).id();
    let hat = app.world_mut().spawn(ChildOf(body)).id();
    let camera = app.world_mut().spawn_empty().id();
    click(&mut app, hat, HitData::new(camera, 1.0, None, None));
    assert_eq!(app.world().resource::<Overlay>().entity, None, "the game's own clicks select nothing");
    app.world_mut().resource_mut::<Overlay>().picks = true;
    click(&mut app, hat, HitData::new(camera, 1.0, None, None));
    assert_eq!(app.world().resource::<Overlay>().entity, Some(mirror.id));
    let ground = dimension_entity(app.world_mut(), dimension);
    let hit = RayHit { block: THERE, layer: 0, face: None, point: [0.5; 3], distance: 1.0 };
    let hit = HitData::new_with_extra(camera, 1.0, None, None, hit);
    let window = places(&app, "regions")[0].center();
    frame(&mut app, vec![Event::PointerMoved(window)]);
    frame(&mut app, Vec::new());
    click(&mut app, ground, hit.clone());
    assert_eq!(app.world().resource::<Overlay>().selected, None, "a window covers the block");
    frame(&mut app, vec![Event::PointerMoved(Pos2::new(1_270.0, 710.0))]);
    frame(&mut app, Vec::new());
    click(&mut app, ground, hit);
    let there = region_at(app.world(), dimension, THERE.column()).unwrap().region;
    assert_eq!(app.world().resource::<Overlay>().selected, Some((dimension, there)));
}
