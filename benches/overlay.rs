//! The workload I1: the overlay's systems and the tessellation of what it shows, with 1,000 regions and 100,000 columns, for each of
//! its tabs. `cargo bench --profile dev --all-features --bench overlay` prints the figures. Nothing is drawn.

#[path = "shared/choose.rs"]
mod choose;
#[path = "shared/report.rs"]
mod report;

use bevy::asset::AssetPlugin;
use bevy::image::ImagePlugin;
use bevy::input::InputPlugin;
use bevy::prelude::*;
use bevy::shader::Shader;
use bevy::window::{ExitCondition, WindowPlugin};
use bevy_egui::egui::{Pos2, Rect};
use bevy_egui::{
    EguiContext, EguiFullOutput, EguiInput, EguiMultipassSchedule, EguiPlugin, EguiPostUpdateSet,
    EguiPrimaryContextPass, PrimaryEguiContext,
};
use bevy_terrane::generation::Void;
use bevy_terrane::plugin::ThreadSettings;
use bevy_terrane::prelude::*;
use bevy_terrane::testing::{Patience, headless, spawn_dimension, start, update_until_within, viewer};
use bevy_terrane::view::{DimensionClock, PublishedColumns, WorldStatistics};
use report::report;
use std::hint::black_box;
use std::time::{Duration, Instant};
use terrane_overlay::{Overlay, OverlayPlugin, OverlayTab};

const REGIONS: i64 = 1_000;
/// A disc of this radius has 113 columns.
const RADIUS: u32 = 6;
const FRAMES: usize = 240;
const SCREEN: Rect = Rect { min: Pos2::ZERO, max: Pos2::new(1280.0, 720.0) };

fn main() {
    choose::run(&[("I1", overlay)]);
}

/// The time of the egui passes since the last look.
#[derive(Resource, Default)]
struct Passes {
    began: Option<Instant>,
    last: Duration,
}

fn begin(mut passes: ResMut<Passes>) {
    passes.began = Some(Instant::now());
}

fn end(mut passes: ResMut<Passes>, context: Single<(&mut EguiContext, &EguiFullOutput)>) {
    let (mut context, output) = context.into_inner();
    // The copy of the shapes, of which bevy_egui makes none, is not measured.
    passes.last = passes.began.take().map_or(Duration::ZERO, |began| began.elapsed());
    if let Some(output) = &output.0 {
        let shapes = output.shapes.clone();
        let began = Instant::now();
        black_box(context.get_mut().tessellate(shapes, output.pixels_per_point));
        passes.last += began.elapsed();
    }
}

fn overlay() {
    let threads = ThreadSettings { regions: 1, ..default() };
    let mut app = headless(TerranePlugin { threads, ..TerranePlugin::in_memory() });
    let no_window = WindowPlugin { primary_window: None, exit_condition: ExitCondition::DontExit, ..default() };
    app.add_plugins((InputPlugin, no_window, AssetPlugin::default(), ImagePlugin::default()))
        .init_asset::<Shader>()
        .add_plugins((EguiPlugin::default(), OverlayPlugin))
        .init_resource::<Passes>()
        .add_systems(PostUpdate, begin.before(EguiPostUpdateSet::EndPass))
        .add_systems(PostUpdate, end.after(EguiPostUpdateSet::EndPass).before(EguiPostUpdateSet::ProcessOutput));
    app.world_mut().spawn((
        EguiContext::default(),
        PrimaryEguiContext,
        EguiMultipassSchedule::new(EguiPrimaryContextPass),
    ));
    let clock = DimensionClock { ticks_per_second: 1.0, ..default() };
    let dimension = spawn_dimension(&mut app, (Dimension::new("void", Void), clock));
    for number in 0..REGIONS {
        // Regions of a square, so that the map is full.
        let (x, z) = (number % 32 * 1_024, number / 32 * 1_024);
        viewer(&mut app, dimension, x as f32, z as f32, RADIUS);
    }
    start(&mut app);
    let patience = Patience { limit: Duration::from_secs(60), frame: Duration::from_millis(5) };
    update_until_within(&mut app, patience, "all ground is there", |world| {
        let statistics = world.resource::<WorldStatistics>();
        statistics.regions.len() == REGIONS as usize
            && statistics.remaining == 0
            && world.resource::<PublishedColumns>().len() >= 113 * REGIONS as usize
    });
    let selected = app.world().resource::<WorldStatistics>().regions.first().map(|one| (one.dimension, one.region));
    let tabs = [
        None,
        Some(OverlayTab::World),
        Some(OverlayTab::Regions),
        Some(OverlayTab::Entities),
        Some(OverlayTab::Plots),
        Some(OverlayTab::Storage),
        Some(OverlayTab::Log),
    ];
    for tab in tabs {
        let tab_or_default = tab.unwrap_or_default();
        app.insert_resource(Overlay { visible: tab.is_some(), tab: tab_or_default, selected, ..default() });
        let mut times: Vec<_> = (0..FRAMES).map(|_| frame(&mut app)).skip(FRAMES / 4).collect();
        times.sort();
        let [median, worst] = [times.len() / 2, times.len() * 99 / 100].map(|at| times[at].as_secs_f64() * 1e3);
        let name = tab.map_or_else(|| "hidden".to_owned(), |tab| format!("{tab:?}").to_lowercase());
        report(&format!("I1 overlay, {name}"), format!("median {median:.2}, 99 % {worst:.2} ms a frame"), "under 1 ms");
    }
}

fn frame(app: &mut App) -> Duration {
    let time = app.world().resource::<Time<Real>>().elapsed_secs_f64();
    let mut input = app.world_mut().query::<&mut EguiInput>();
    if let Ok(mut input) = input.single_mut(app.world_mut()) {
        (input.0.screen_rect, input.0.time) = (Some(SCREEN), Some(time));
    }
    app.update();
    std::thread::sleep(Duration::from_millis(8));
    app.world().resource::<Passes>().last
}
