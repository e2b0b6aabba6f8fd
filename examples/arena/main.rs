//! An arena that explosions demolish while bots run through it, and that is restored, round after round.
//!
//! Run it with `cargo run --example arena`; add `-- --help` for the options.
//!
//! | file | what it shows |
//! |---|---|
//! | `rounds.rs` | an arena: creating and reverting it, and the results |
//! | `fight.rs` | bots in a region, and closures that run where the explosions are |
//! | `coliseum.rs` | a custom generator, and blocks |
//! | `scene.rs` | camera and viewer |
//! | `arguments.rs` | the command line |
//!
//! Files shared with other examples, in `../shared`:
//!
//! | file | what it shows |
//! |---|---|
//! | `start.rs` | Bevy with or without a window |
//! | `watch.rs` | pictures of a run without a window, once nothing changes any more |
//! | `bodies.rs` | bodies for mirrors |
//! | `tell.rs` | the common arguments, error messages and figures |

mod arguments;
#[path = "../shared/bodies.rs"]
mod bodies;
mod coliseum;
mod fight;
mod rounds;
mod scene;
#[path = "../shared/start.rs"]
mod start;
#[path = "../shared/tell.rs"]
mod tell;
#[path = "../shared/watch.rs"]
mod watch;

use arguments::Arguments;
use bevy_terrane::prelude::*;
use std::error::Error;
use std::process::ExitCode;
use terrane_dev::{PicturePlugin, SkyPlugin};
use terrane_render::ChunkRenderPlugin;

/// The folder for the world and the pictures.
const FOLDER: &str = "target/examples/arena";

fn main() -> ExitCode {
    start::main(|arguments| Ok(build(arguments)?.run()))
}

fn build(arguments: Arguments) -> Result<App, Box<dyn Error>> {
    let mut app = App::new();
    app.add_plugins(TerranePlugin::at(&arguments.world));
    start::check_world(&mut app, &arguments.world)?;
    coliseum::register(&mut app)?;
    start::add_bevy(&mut app, "Arena", &arguments.run)?;
    app.add_plugins((ChunkRenderPlugin::default(), SkyPlugin { shadows: 320.0 }))
        .add_plugins((fight::FightPlugin, bodies::PartsPlugin(scene::body), rounds::RoundsPlugin))
        .add_systems(Startup, scene::spawn_camera);
    if arguments.run.is_headless() {
        let folder = arguments.pictures.clone();
        app.add_plugins(PicturePlugin { folder, ..default() });
    } else {
        app.add_systems(Update, scene::circle);
    }
    app.world_mut().spawn(Dimension::new(coliseum::DIMENSION, coliseum::Coliseum).with_height(-16..64));
    app.insert_resource(arguments);
    Ok(app)
}
