//! An arena that explosions tear down while bots run through it, and that is restored, round after round.
//!
//! `cargo run --example arena --all-features` runs it, with `-- --help` it lists what it can do.
//!
//! | file | what it shows |
//! |---|---|
//! | `rounds.rs` | an arena: created, reverted, and what came of it |
//! | `fight.rs` | bots in a region, and closures that run where the explosions are |
//! | `coliseum.rs` | a generator of one's own, and blocks |
//! | `scene.rs` | light, camera, and bodies for what regions mirror |
//! | `arguments.rs` | the command line |
//! | `../shared/start.rs` | a window, or none |
//! | `../shared/picture.rs` | pictures of a run without a window |

mod arguments;
mod coliseum;
mod fight;
#[path = "../shared/picture.rs"]
mod picture;
mod rounds;
mod scene;
#[path = "../shared/start.rs"]
mod start;

use arguments::Arguments;
use bevy_terrane::prelude::*;
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
    let mut app = App::new();
    app.add_plugins(TerranePlugin::at(&arguments.world));
    if let Some(failure) = app.world().get_resource::<WorldFailure>() {
        return Err(failure.to_string().into());
    }
    coliseum::register(&mut app)?;
    start::add_bevy(&mut app, "Arena", arguments.headless);
    app.add_plugins((ChunkRenderPlugin::default(), scene::ScenePlugin, fight::FightPlugin, rounds::RoundsPlugin));
    match arguments.headless {
        true => {
            app.add_plugins(picture::PicturePlugin { folder: arguments.pictures.clone(), size: UVec2::new(1_280, 720) })
        }
        false => app.add_systems(Update, scene::circle),
    };
    app.world_mut().spawn(Dimension::new(coliseum::DIMENSION, coliseum::Coliseum).with_height(-16..64));
    app.insert_resource(arguments);
    Ok(app)
}
