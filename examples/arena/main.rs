//! An arena that explosions tear down while bots run through it, and that is restored, round after round.
//!
//! `cargo run --example arena` runs it, with `-- --help` it lists what it can do.
//!
//! | file | what it shows |
//! |---|---|
//! | `rounds.rs` | an arena: created, reverted, and what came of it |
//! | `fight.rs` | bots in a region, and closures that run where the explosions are |
//! | `coliseum.rs` | a generator of one's own, and blocks |
//! | `scene.rs` | camera and viewer |
//! | `arguments.rs` | the command line |
//!
//! What it has in common with other examples lies beside it, in `../shared`:
//!
//! | file | what it shows |
//! |---|---|
//! | `start.rs` | Bevy with a window, or without one |
//! | `picture.rs`, `watch.rs` | pictures of a run without a window, when all has come to rest |
//! | `sky.rs` | light and sky |
//! | `bodies.rs` | bodies for what regions mirror |
//! | `tell.rs` | the arguments that all examples have, errors and figures told |

mod arguments;
#[path = "../shared/bodies.rs"]
mod bodies;
mod coliseum;
mod fight;
#[path = "../shared/picture.rs"]
mod picture;
mod rounds;
mod scene;
#[path = "../shared/sky.rs"]
mod sky;
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

/// Where the world and the pictures go.
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
    app.add_plugins((ChunkRenderPlugin::default(), sky::SkyPlugin { shadows: 320.0 }))
        .add_plugins((fight::FightPlugin, bodies::BodyPlugin(scene::body), rounds::RoundsPlugin))
        .add_systems(Startup, scene::spawn_camera);
    if arguments.run.is_headless() {
        let folder = arguments.pictures.clone();
        app.add_plugins(picture::PicturePlugin { folder, size: UVec2::new(1_280, 720), shows_land: true });
    } else {
        app.add_systems(Update, scene::circle);
    }
    app.world_mut().spawn(Dimension::new(coliseum::DIMENSION, coliseum::Coliseum).with_height(-16..64));
    app.insert_resource(arguments);
    Ok(app)
}
