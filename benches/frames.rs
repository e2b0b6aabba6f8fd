//! The workloads M5 to M7: frames of a wide view, and the meshes of a flight. `cargo bench --profile dev --all-features --bench frames`
//! prints each figure; an argument names the ones to run. M5 and M6 need a graphics adapter; a software driver is enough.

#[path = "shared/choose.rs"]
mod choose;
#[path = "shared/report.rs"]
mod report;

use bevy::asset::AssetPlugin;
use bevy::camera::RenderTarget;
use bevy::core_pipeline::core_3d::{Opaque3d, Transparent3d};
use bevy::log::LogPlugin;
use bevy::mesh::MeshTag;
use bevy::prelude::*;
use bevy::render::RenderApp;
use bevy::render::RenderPlugin;
use bevy::render::pipelined_rendering::PipelinedRenderingPlugin;
use bevy::render::render_phase::{ViewBinnedRenderPhases, ViewSortedRenderPhases};
use bevy::render::render_resource::{PollType, TextureFormat};
use bevy::render::renderer::RenderDevice;
use bevy::render::settings::{Backends, WgpuSettings};
use bevy::window::ExitCondition;
use bevy::winit::WinitPlugin;
use bevy_terrane::generation::{GenerateError, GenerateRequest, GeneratorIdentity};
use bevy_terrane::prelude::*;
use bevy_terrane::space::cell_position;
use bevy_terrane::testing::{headless, spawn_dimension, start};
use bevy_terrane::view::WorldStatistics;
use report::report;
use std::time::{Duration, Instant};
use terrane_render::{ChunkMesh, ChunkMeshProgress, ChunkRenderPlugin};

const FRAMES: usize = 150;
const RADIUS: u32 = 32;
const FRAME: Duration = Duration::from_micros(16_667);

fn main() {
    choose::run(&[("M5", small_and_large), ("M6", entities), ("M7", flight)]);
}

/// The parts of a frame, in milliseconds.
#[derive(Clone, Copy, Default)]
struct Parts {
    /// The main world's schedule.
    main: f64,
    /// The extraction of the main world for the renderer.
    extract: f64,
    /// The renderer's own schedule.
    render: f64,
    /// Until the adapter has drawn it.
    draw: f64,
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// Draws a frame, one part after the other.
fn frame(app: &mut App) -> Parts {
    let apps = app.sub_apps_mut();
    let began = Instant::now();
    apps.main.run_default_schedule();
    let mut parts = Parts { main: milliseconds(began), ..default() };
    for app in apps.sub_apps.values_mut() {
        let began = Instant::now();
        app.extract(apps.main.world_mut());
        parts.extract += milliseconds(began);
        let began = Instant::now();
        app.update();
        parts.render += milliseconds(began);
    }
    let began = Instant::now();
    let device = apps.main.world().resource::<RenderDevice>();
    device.poll(PollType::wait_indefinitely()).expect("the adapter draws");
    parts.draw = milliseconds(began);
    apps.main.world_mut().clear_trackers();
    parts
}

fn is_complete(world: &World) -> bool {
    let statistics = world.resource::<WorldStatistics>();
    let progress = world.resource::<ChunkMeshProgress>();
    statistics.columns > 1_000 && statistics.remaining == 0 && progress.is_done() && progress.meshes > 0
}

/// Hills whose water is replaced by sand.
struct Opaque(Hills);

impl Generator for Opaque {
    fn identity(&self) -> GeneratorIdentity {
        self.0.identity()
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        let made = self.0.generate(request)?;
        let mut column = made.clone();
        let (water, sand) = (request.block("terrane:water")?, request.block("terrane:sand")?);
        for (y, chunk) in made.chunks().filter(|(_, chunk)| chunk.palette().contains(&water)) {
            for (cell, _) in chunk.blocks().enumerate().filter(|(_, block)| *block == water) {
                column.set_block(made.pos().chunk(y).block(cell_position(cell)), sand);
            }
        }
        Ok(column)
    }
}

/// An app that draws hills, all around to the radius, into an image of this size.
fn hills(size: UVec2) -> App {
    let backends = Backends::from_env().or(Some(Backends::PRIMARY));
    let render = RenderPlugin {
        synchronous_pipeline_compilation: true,
        render_creation: WgpuSettings { backends, ..default() }.into(),
        ..default()
    };
    let window = WindowPlugin { primary_window: None, exit_condition: ExitCondition::DontExit, ..default() };
    let mut app = App::new();
    let plugins = DefaultPlugins.build().set(render).set(window);
    app.add_plugins(plugins.disable::<WinitPlugin>().disable::<PipelinedRenderingPlugin>().disable::<LogPlugin>());
    app.add_plugins((TerranePlugin::in_memory(), ChunkRenderPlugin::default()));
    let ground = Dimension::new("hills", Opaque(Hills::seeded(42))).with_height(-64..64);
    let dimension = spawn_dimension(&mut app, ground);
    let target = Image::new_target_texture(size.x, size.y, TextureFormat::Rgba8UnormSrgb, None);
    let target = app.world_mut().resource_mut::<Assets<Image>>().add(target);
    let place = Transform::from_xyz(0.0, 70.0, 0.0).looking_to(Vec3::new(1.0, -0.25, 0.4), Vec3::Y);
    let camera = (Camera3d::default(), Msaa::Off, RenderTarget::from(target), place);
    let far = Projection::from(PerspectiveProjection { far: 2_000.0, ..default() });
    app.world_mut().spawn((camera, far, Viewer::in_dimension(dimension).with_radius(RADIUS)));
    let sun = Transform::default().looking_to(Vec3::new(-1.0, -2.0, -0.5), Vec3::Y);
    app.world_mut().spawn((DirectionalLight::default(), sun));
    start(&mut app);
    let began = Instant::now();
    while !is_complete(app.world()) {
        frame(&mut app);
        assert!(began.elapsed() < Duration::from_secs(300), "the hills did not come");
    }
    (0..10).for_each(|_| _ = frame(&mut app));
    app
}

fn measure(app: &mut App) -> Vec<Parts> {
    (0..FRAMES).map(|_| frame(app)).collect()
}

fn median(parts: &[Parts], of: impl Fn(&Parts) -> f64) -> f64 {
    let mut times: Vec<f64> = parts.iter().map(of).collect();
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

/// M5: frames of an opaque scene, small so that a software driver does not measure itself, and large.
fn small_and_large() {
    for size in [UVec2::new(64, 64), UVec2::new(1_280, 720)] {
        let parts = measure(&mut hills(size));
        let [render, draw] = [median(&parts, |parts| parts.render), median(&parts, |parts| parts.draw)];
        let all = median(&parts, |parts| parts.main + parts.extract + parts.render + parts.draw);
        let ours = format!("{all:.2} ms a frame; renderer {render:.2}, adapter {draw:.2}");
        report(&format!("M5 {} x {} pixels", size.x, size.y), ours, "1.0 x of the version before");
    }
}

/// M6: what is drawn at a radius of 32 columns, and the main thread's time.
fn entities() {
    let mut app = hills(UVec2::new(64, 64));
    let parts = measure(&mut app);
    let world = app.world_mut();
    let all = world.query_filtered::<(), With<ChunkMesh>>().iter(world).count();
    let mut visible = world.query_filtered::<&ViewVisibility, With<ChunkMesh>>();
    let visible = visible.iter(world).filter(|visibility| visibility.get()).count();
    let render = app.sub_app(RenderApp).world();
    let mut calls = 0;
    for phase in render.resource::<ViewBinnedRenderPhases<Opaque3d>>().values() {
        calls += phase.multidrawable_meshes.len() + phase.batchable_meshes.len() + phase.unbatchable_meshes.len();
    }
    let blended: usize =
        render.resource::<ViewSortedRenderPhases<Transparent3d>>().values().map(|phase| phase.items.len()).sum();
    let ours = format!("{all} entities, {visible} in view; {calls} draw calls, {blended} blended");
    report("M6 at radius 32", ours, "");
    let ours =
        format!("main {:.2} ms, extraction {:.2} ms", median(&parts, |it| it.main), median(&parts, |it| it.extract));
    report("M6 main thread", ours, "");
}

/// Counts the meshes that are shown for the first time, and all.
#[derive(Resource, Default)]
struct Meshes {
    first: usize,
    all: usize,
}

fn count(mut meshes: ResMut<Meshes>, shown: Query<Ref<ChunkMesh>, Changed<MeshTag>>) {
    meshes.all += shown.iter().count();
    meshes.first += shown.iter().filter(|mesh| mesh.is_added()).count();
}

/// M7: the meshes that are made for each column that arrives, while a viewer flies.
fn flight() {
    const SPEED: f32 = 40.0;
    let mut app = headless(TerranePlugin::in_memory());
    app.add_plugins((AssetPlugin::default(), ChunkRenderPlugin::default()));
    app.init_asset::<Mesh>().init_asset::<StandardMaterial>().init_asset::<Image>();
    app.init_resource::<Meshes>().add_systems(Last, count);
    let ground = Dimension::new("hills", Hills::seeded(42)).with_height(-64..64);
    let dimension = spawn_dimension(&mut app, ground);
    let viewer = app.world_mut().spawn((Viewer::in_dimension(dimension).with_radius(12), Transform::default())).id();
    start(&mut app);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) {
        let at = Instant::now();
        if let Some(mut place) = app.world_mut().get_mut::<Transform>(viewer) {
            place.translation.x += SPEED * FRAME.as_secs_f32();
        }
        app.update();
        std::thread::sleep(FRAME.saturating_sub(at.elapsed()));
    }
    let Meshes { first, all } = *app.world().resource::<Meshes>();
    let ours = format!("{:.3} for each that is seen first ({all} / {first})", all as f64 / first as f64);
    report("M7 meshes of a flight", ours, "1.3");
}
