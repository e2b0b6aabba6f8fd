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
//! | `picture.rs` | a run without a window that leaves pictures |
//! | `arguments.rs` | the command line |

mod arguments;
mod coliseum;
mod fight;
mod picture;
mod rounds;
mod scene;

use arguments::Arguments;
use bevy::app::ScheduleRunnerPlugin;
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
    let mut app = App::new();
    app.add_plugins(TerranePlugin::at(&arguments.world));
    if let Some(failure) = app.world().get_resource::<WorldFailure>() {
        return Err(failure.to_string().into());
    }
    coliseum::register(&mut app)?;
    add_bevy(&mut app, arguments.headless);
    app.add_plugins((ChunkRenderPlugin::default(), scene::ScenePlugin, fight::FightPlugin, rounds::RoundsPlugin));
    match arguments.headless {
        true => app.add_plugins(picture::PicturePlugin),
        false => app.add_systems(Update, scene::circle),
    };
    app.world_mut().spawn(Dimension::new(coliseum::DIMENSION, coliseum::Coliseum).with_height(-16..64));
    app.insert_resource(arguments);
    Ok(app)
}

/// Bevy's own plugins, with or without a window.
fn add_bevy(app: &mut App, headless: bool) {
    let filter = "error,wgpu_hal::vulkan::instance=off".to_owned();
    let log = LogPlugin { level: Level::ERROR, filter, ..default() };
    // A picture that is taken once must not miss what is still being compiled.
    let mut render = RenderPlugin { synchronous_pipeline_compilation: headless, ..default() };
    if !headless {
        let window = Window { title: "Arena".to_owned(), ..default() };
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
