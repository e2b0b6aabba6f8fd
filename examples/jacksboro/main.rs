//! The demo: real terrain, a camera, and bots that ride over it.
//!
//! `cargo xtask demo` runs it, `cargo xtask demo --help` lists what it can do. It is a small game in a dozen files, in
//! an order to read them in:
//!
//! | file | what it shows |
//! |---|---|
//! | `main.rs` | how the plugins come together |
//! | `palette.rs` | block types of one's own |
//! | `landscape.rs` | a height map, and a generator around a generator |
//! | `bots.rs`, `grass.rs` | game logic: ordinary systems in the regions' `RegionTick` |
//! | `landmarks.rs` | edits from the main world, saved entities, mirrors of them |
//! | `window.rs` | a camera as a viewer, reading published blocks |
//! | `scene.rs`, `view.rs` | light, sky, and bodies for mirrored entities |
//! | `progress.rs`, `summary.rs` | the statistics of the simulation |
//! | `headless.rs` | a run without a window that leaves pictures |
//! | `rehearsal.rs` | orders to regions: halt, restart, pause |
//! | `arguments.rs`, `failure.rs` | the command line, and what can go wrong |

mod arguments;
mod bots;
mod failure;
mod grass;
mod headless;
mod landmarks;
mod landscape;
mod palette;
mod progress;
mod rehearsal;
mod scene;
mod summary;
mod view;
mod window;

use arguments::Arguments;
use bevy::app::ScheduleRunnerPlugin;
use bevy::log::{Level, LogPlugin};
use bevy::render::RenderPlugin;
use bevy::render::settings::{Backends, WgpuSettings};
use bevy::window::ExitCondition;
use bevy::winit::WinitPlugin;
use bevy_terrane::overlay::OverlayPlugin;
use bevy_terrane::prelude::*;
use bevy_terrane::render::ChunkRenderPlugin;
use std::time::Duration;

fn main() -> AppExit {
    let arguments = Arguments::parse_for_this_machine();
    match build(arguments) {
        Ok(mut app) => app.run(),
        Err(error) => {
            failure::report(error);
            AppExit::error()
        }
    }
}

fn build(arguments: Arguments) -> Result<App, String> {
    // Read before the world is opened: a wrong map leaves no trace.
    let ground = landscape::heightmap(&arguments).map_err(|error| error.to_string())?;
    let mut app = App::new();

    app.add_plugins(TerranePlugin::at(&arguments.world).with_regionizer(RegionizerConfig {
        // Bots make small regions: what they leave behind is removed soon, so that regions split within seconds.
        recalculation_section_count: 16,
        max_dead_section_percent: 0.05,
        ..default()
    }));
    if let Some(failure) = app.world().get_resource::<WorldFailure>() {
        return Err(failure.to_string());
    }
    palette::register(&mut app).map_err(|error| error.to_string())?;

    add_bevy(&mut app, arguments.headless)?;
    app.add_plugins((ChunkRenderPlugin::default(), OverlayPlugin::default()))
        .add_plugins((bots::BotPlugin, landmarks::LandmarkPlugin, scene::ScenePlugin))
        .add_plugins((progress::ProgressPlugin, summary::SummaryPlugin, failure::FailurePlugin))
        .add_region_plugins(|region| {
            region.init_resource::<palette::Palette>().add_systems(RegionTick, grass::spread_grass);
        })
        .add_systems(PreStartup, |mut commands: Commands| commands.init_resource::<palette::Palette>());
    if arguments.headless {
        app.add_plugins(headless::HeadlessPlugin);
    } else {
        app.add_plugins(window::FlyPlugin);
    }

    let heights = landscape::heights(&ground);
    app.insert_resource(view::Viewpoints::new(&ground, arguments.radius));
    let woods = landscape::woods(ground, arguments.seed).map_err(|error| error.to_string())?;
    app.world_mut().spawn(Dimension::new("jacksboro", woods).with_height(heights));
    app.insert_resource(arguments);
    Ok(app)
}

/// Bevy's own plugins, with or without a window.
fn add_bevy(app: &mut App, headless: bool) -> Result<(), String> {
    let log = LogPlugin {
        level: Level::ERROR,
        // The demo says in its own words what is said there.
        filter: "error,bevy_terrane::coordinator::collect=off,wgpu_hal::vulkan::instance=off,\
                 bevy_render::view::window::screenshot=off"
            .to_owned(),
        ..default()
    };
    // A picture that is taken once must not miss what is still being compiled.
    let mut render = RenderPlugin { synchronous_pipeline_compilation: headless, ..default() };
    if headless {
        // OpenGL wants a display, and complains without one.
        let backends = Backends::from_env().or(Some(Backends::PRIMARY));
        render.render_creation = WgpuSettings { backends, ..default() }.into();
    }
    let plugins = DefaultPlugins.set(log).set(render);
    failure::catch(|| {
        if headless {
            let no_window = WindowPlugin { primary_window: None, exit_condition: ExitCondition::DontExit, ..default() };
            app.add_plugins(plugins.set(no_window).disable::<WinitPlugin>())
                .add_plugins(ScheduleRunnerPlugin::run_loop(Duration::from_secs_f64(1.0 / 60.0)));
        } else {
            let window = Window { title: "Jacksboro fault - F3 shows the regions".to_owned(), ..default() };
            app.add_plugins(plugins.set(WindowPlugin { primary_window: Some(window), ..default() }));
        }
    })
    .map_err(|reason| match (headless, reason.starts_with("Failed to build event loop")) {
        (false, true) => {
            let display = std::env::var("DISPLAY").unwrap_or_default();
            format!("no window can be opened: no X11 display answers (DISPLAY={display:?}); run with --headless")
        }
        _ => format!("nothing can be drawn: {reason}; Mesa's software driver, lavapipe, is enough for this demo"),
    })
}
