//! Terrain to the horizon: 12 columns around the camera are loaded, 128 are seen.
//!
//! `cargo run --example horizon --all-features` runs it, with `-- --help` it lists what it can do.
//!
//! | file | what it shows |
//! |---|---|
//! | `main.rs` | a `FarView` beside a `Viewer` that generates as far, and what draws it |
//! | `land.rs` | a height map |
//! | `scene.rs` | light, sky, and haze that hides the end of the land |
//! | `visit.rs` | a run without a window, until all is there |
//! | `arguments.rs` | the command line |
//! | `../shared/start.rs` | a window, or none |
//! | `../shared/picture.rs` | pictures of a run without a window |

mod arguments;
mod land;
#[path = "../shared/picture.rs"]
mod picture;
mod scene;
#[path = "../shared/start.rs"]
mod start;
mod visit;

use arguments::Arguments;
use bevy::input::mouse::AccumulatedMouseMotion;
use bevy_terrane::prelude::*;
use picture::PicturePlugin;
use std::error::Error;

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
    start::add_bevy(&mut app, "To the horizon", arguments.headless);
    app.add_plugins((ChunkRenderPlugin::default(), FarRenderPlugin, scene::ScenePlugin));
    match arguments.headless {
        true => {
            let pictures = PicturePlugin { folder: arguments.pictures.clone(), size: UVec2::new(1_600, 900) };
            app.add_plugins((pictures, visit::VisitPlugin))
        }
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
