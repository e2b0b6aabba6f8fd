//! Terrain to the horizon: 12 columns around the camera are loaded, 128 are seen.
//!
//! `cargo run --example horizon` runs it, with `-- --help` it lists what it can do.
//!
//! | file | what it shows |
//! |---|---|
//! | `main.rs` | a `FarView` beside a `Viewer` that generates as far, and what draws it |
//! | `land.rs` | a height map |
//! | `visit.rs` | a run without a window, until all is there |
//! | `arguments.rs` | the command line |
//!
//! What it has in common with other examples lies beside it, in `../shared`:
//!
//! | file | what it shows |
//! |---|---|
//! | `start.rs` | Bevy with a window, or without one |
//! | `picture.rs`, `watch.rs` | pictures of a run without a window, when all has come to rest |
//! | `sky.rs` | light, sky, and haze that hides the end of the land |
//! | `fly.rs` | a camera that flies |
//! | `fault.rs` | the map of a real place |
//! | `tell.rs` | the arguments that all examples have, errors and figures told |

mod arguments;
#[path = "../shared/fault.rs"]
mod fault;
#[path = "../shared/fly.rs"]
mod fly;
mod land;
#[path = "../shared/picture.rs"]
mod picture;
#[path = "../shared/sky.rs"]
mod sky;
#[path = "../shared/start.rs"]
mod start;
#[path = "../shared/tell.rs"]
mod tell;
mod visit;
#[path = "../shared/watch.rs"]
mod watch;

use arguments::Arguments;
use bevy_terrane::prelude::*;
use picture::PicturePlugin;
use std::error::Error;
use std::process::ExitCode;

/// Where the world and the pictures go.
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
    app.add_plugins((ChunkRenderPlugin::default(), FarRenderPlugin, sky::SkyPlugin { shadows: 1_500.0 }));
    if arguments.run.is_headless() {
        let folder = arguments.pictures.clone();
        let pictures = PicturePlugin { folder, size: UVec2::new(1_600, 900), shows_land: true };
        app.add_plugins(pictures).add_systems(Update, visit::visit);
    } else {
        app.add_systems(Update, (fly::fly, fly::turn));
    }
    app.world_mut().spawn(Dimension::new("horizon", land.clone()).with_height(fault::heights(&land)));
    app.insert_resource(Land(land)).insert_resource(arguments).add_systems(Startup, spawn_camera);
    app.add_systems(Last, visit::print_at_end.run_if(start::at_end));
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
    let reach = arguments.far_radius as f32 * 16.0;
    commands.spawn((
        sky::camera(reach * 0.3..reach * 0.99),
        place(&arguments, &land.0),
        fly::Flying { speed: 60.0 },
        // What is to be seen must be there: it is generated and stored, and only the middle of it is loaded.
        Viewer::in_dimension(*dimension).with_radius(arguments.radius).with_generation_radius(arguments.far_radius),
        FarView::new()
            .with_radius(arguments.far_radius)
            .with_detail_radius(arguments.detail)
            .with_bytes_per_second(arguments.bytes_per_second),
    ));
}

/// The place that the user chose.
fn place(arguments: &Arguments, land: &Heightmap) -> Transform {
    let [x, above, z] = arguments.from[..] else { unreachable!("three numbers") };
    let [east, down] = arguments.look[..] else { unreachable!("two numbers") };
    let turn = Quat::from_euler(EulerRot::YXZ, -east.to_radians(), -down.to_radians(), 0.0);
    Transform::from_xyz(x, land.height_at(x as i64, z as i64) as f32 + above, z).with_rotation(turn)
}
