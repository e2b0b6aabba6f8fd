//! Terrain to the horizon: 12 columns around the camera are loaded, 128 are seen.
//!
//! `cargo run --example horizon --all-features` runs it, with `-- --help` it lists what it can do.
//!
//! | file | what it shows |
//! |---|---|
//! | `main.rs` | a `FarView` beside a `Viewer` that generates as far, and what draws it |
//! | `land.rs` | a height map |
//! | `scene.rs` | light, sky, and haze that hides the end of the land |
//! | `picture.rs` | a run without a window that leaves a picture |
//! | `arguments.rs` | the command line |

mod arguments;
mod land;
mod picture;
mod scene;

use arguments::Arguments;
use bevy::app::ScheduleRunnerPlugin;
use bevy::input::mouse::AccumulatedMouseMotion;
use bevy::log::{Level, LogPlugin};
use bevy::render::RenderPlugin;
use bevy::render::settings::{Backends, WgpuSettings};
use bevy::window::ExitCondition;
use bevy::winit::WinitPlugin;
use bevy_terrane::prelude::*;
use std::error::Error;
use std::time::Duration;

fn main() -> AppExit {
    match build(Arguments::parse_for_this_machine()) {
        Ok(mut app) => app.run(),
        Err(error) => {
            eprintln!("error: {error}");
            AppExit::error()
        }
    }
}

fn build(arguments: Arguments) -> Result<App, Box<dyn Error>> {
    let (ground, heights) = land::land()?;
    let mut app = App::new();
    app.add_plugins(TerranePlugin::at(&arguments.world));
    if let Some(failure) = app.world().get_resource::<WorldFailure>() {
        return Err(failure.to_string().into());
    }
    add_bevy(&mut app, arguments.headless);
    app.add_plugins((ChunkRenderPlugin::default(), FarRenderPlugin::default(), scene::ScenePlugin));
    match arguments.headless {
        true => app.add_plugins(picture::PicturePlugin),
        false => app.add_systems(Update, (fly, turn)),
    };
    app.world_mut().spawn(Dimension::new(land::NAME, ground.clone()).with_height(heights));
    app.insert_resource(Land(ground)).insert_resource(arguments).add_systems(Startup, spawn_camera);
    Ok(app)
}

#[derive(Resource)]
struct Land(Heightmap);

/// Around the camera chunks are loaded; beyond, it is told what they look like.
fn spawn_camera(
    mut commands: Commands,
    dimension: Single<Entity, With<Dimension>>,
    arguments: Res<Arguments>,
    land: Res<Land>,
) {
    commands.spawn((
        scene::camera(&arguments, &land.0),
        // What is to be seen must be there: it is generated and stored, and only the middle of it is loaded.
        Viewer::in_dimension(*dimension).with_radius(arguments.radius).with_generation_radius(arguments.far_radius),
        FarView::new()
            .with_radius(arguments.far_radius)
            .with_detail_radius(arguments.detail)
            .with_bytes_per_second(arguments.bytes_per_second),
    ));
}

/// Bevy's own plugins, with or without a window.
fn add_bevy(app: &mut App, headless: bool) {
    let filter = "error,wgpu_hal::vulkan::instance=off".to_owned();
    let log = LogPlugin { level: Level::ERROR, filter, ..default() };
    // A picture that is taken once must not miss what is still being compiled.
    let mut render = RenderPlugin { synchronous_pipeline_compilation: headless, ..default() };
    if !headless {
        let window = Window { title: "To the horizon".to_owned(), ..default() };
        app.add_plugins(
            DefaultPlugins.set(log).set(render).set(WindowPlugin { primary_window: Some(window), ..default() }),
        );
        return;
    }
    // OpenGL wants a display, and complains without one.
    let backends = Backends::from_env().or(Some(Backends::PRIMARY));
    render.render_creation = WgpuSettings { backends, ..default() }.into();
    let no_window = WindowPlugin { primary_window: None, exit_condition: ExitCondition::DontExit, ..default() };
    app.add_plugins(DefaultPlugins.set(log).set(render).set(no_window).disable::<WinitPlugin>())
        .add_plugins(ScheduleRunnerPlugin::run_loop(Duration::from_secs_f64(1.0 / 60.0)));
}

fn fly(time: Res<Time>, keys: Res<ButtonInput<KeyCode>>, mut camera: Single<&mut Transform, With<Camera3d>>) {
    let axis = |up: KeyCode, down: KeyCode| f32::from(i8::from(keys.pressed(up)) - i8::from(keys.pressed(down)));
    let direction = camera.forward() * axis(KeyCode::KeyW, KeyCode::KeyS)
        + camera.right() * axis(KeyCode::KeyD, KeyCode::KeyA)
        + Vec3::Y * axis(KeyCode::Space, KeyCode::ShiftLeft);
    let speed = if keys.pressed(KeyCode::ControlLeft) { 240.0 } else { 60.0 };
    camera.translation += direction.normalize_or_zero() * speed * time.delta_secs();
}

fn turn(
    mouse: Res<ButtonInput<MouseButton>>,
    motion: Res<AccumulatedMouseMotion>,
    mut camera: Single<&mut Transform, With<Camera3d>>,
) {
    if mouse.pressed(MouseButton::Right) {
        let (yaw, pitch, _) = camera.rotation.to_euler(EulerRot::YXZ);
        let pitch = (pitch - motion.delta.y * 0.003).clamp(-1.5, 1.5);
        camera.rotation = Quat::from_euler(EulerRot::YXZ, yaw - motion.delta.x * 0.003, pitch, 0.0);
    }
}
