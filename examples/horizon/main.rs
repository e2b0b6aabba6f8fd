//! Terrain to the horizon: 12 columns around the camera are loaded, 128 are visible.
//!
//! Run it with `cargo run --example horizon`; add `-- --help` for the options.
//!
//! | file | what it shows |
//! |---|---|
//! | `main.rs` | a `FarView` beside a `Viewer` that generates as far, and the plugin that draws it |
//! | `land.rs` | a height map |
//! | `visit.rs` | a run without a window, until everything is loaded |
//! | `arguments.rs` | the command line |
//!
//! Files shared with other examples, in `../shared`:
//!
//! | file | what it shows |
//! |---|---|
//! | `start.rs` | Bevy with or without a window |
//! | `watch.rs` | pictures of a run without a window, once nothing changes any more |
//! | `fault.rs` | the map of a real place |
//! | `tell.rs` | the common arguments, error messages and figures |

mod arguments;
#[path = "../shared/fault.rs"]
mod fault;
mod land;
#[path = "../shared/start.rs"]
mod start;
#[path = "../shared/tell.rs"]
mod tell;
mod visit;
#[path = "../shared/watch.rs"]
mod watch;

use arguments::Arguments;
use bevy_terrane::generation::Heightmap;
use bevy_terrane::prelude::*;
use bevy_terrane::view::FarView;
use std::error::Error;
use std::process::ExitCode;
use terrane_dev::{FlyCamera, PicturePlugin, SkyPlugin, haze};
use terrane_render::{ChunkRenderPlugin, FarRenderPlugin};

/// The folder for the world and the pictures.
const FOLDER: &str = "target/examples/horizon";

fn main() -> ExitCode {
    start::main(|arguments| Ok(build(arguments)?.run()))
}

fn build(arguments: Arguments) -> Result<App, Box<dyn Error>> {
    let land = land::land()?;
    let mut app = App::new();
    app.add_plugins(TerranePlugin::at(&arguments.world));
    start::check_world(&mut app, &arguments.world)?;
    start::add_bevy(&mut app, "To the horizon", &arguments.run)?;
    app.add_plugins((ChunkRenderPlugin::default(), FarRenderPlugin, SkyPlugin { shadows: 1_500.0 }));
    if arguments.run.is_headless() {
        let folder = arguments.pictures.clone();
        let pictures = PicturePlugin { folder, size: UVec2::new(1_600, 900), shows_land: true };
        app.add_plugins(pictures).add_systems(Update, visit::visit);
    }
    app.world_mut().spawn(Dimension::new(DIMENSION, land.clone()).with_height(fault::heights(&land)));
    app.insert_resource(Land(land)).insert_resource(arguments).add_systems(Startup, spawn_camera);
    app.add_systems(Last, visit::print_at_end.run_if(start::at_end));
    Ok(app)
}

/// The name of the dimension.
const DIMENSION: &str = "horizon";

#[derive(Resource)]
struct Land(Heightmap);

/// Spawns the camera. Chunks are loaded around it, and summaries are received beyond.
fn spawn_camera(mut commands: Commands, dimensions: Res<Dimensions>, arguments: Res<Arguments>, land: Res<Land>) {
    let reach = arguments.far_radius as f32 * 16.0;
    commands.spawn((
        haze(reach * 0.3..reach * 0.99),
        place(&arguments, &land.0),
        FlyCamera { speed: 60.0 },
        // All visible land is generated and stored, but only the middle of it is loaded.
        Viewer::in_dimension(dimensions.id(DIMENSION))
            .with_radius(arguments.radius)
            .with_generation_radius(arguments.far_radius),
        FarView::new()
            .with_radius(arguments.far_radius)
            .with_detail_radius(arguments.detail)
            .with_bytes_per_second(arguments.bytes_per_second),
    ));
}

/// The camera position from the arguments.
fn place(arguments: &Arguments, land: &Heightmap) -> Transform {
    let [x, above, z] = arguments.from[..] else { unreachable!("three numbers") };
    let [east, down] = arguments.look[..] else { unreachable!("two numbers") };
    let turn = Quat::from_euler(EulerRot::YXZ, -east.to_radians(), -down.to_radians(), 0.0);
    Transform::from_xyz(x, land.height_at(x as i64, z as i64) as f32 + above, z).with_rotation(turn)
}
