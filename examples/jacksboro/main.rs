//! The demo: real terrain, a camera, and bots that ride over it.
//!
//! Run it with `cargo xtask demo`; add `--help` for the options. It is a small game in a dozen files, listed in
//! reading order:
//!
//! | file | what it shows |
//! |---|---|
//! | `main.rs` | combining the plugins |
//! | `palette.rs` | custom block types |
//! | `landscape.rs` | a height map, and a generator around a generator |
//! | `bots.rs`, `grass.rs` | game logic: ordinary systems in the regions' `RegionTick` |
//! | `landmarks.rs` | edits from the main world, saved entities, mirrors of them |
//! | `window.rs`, `view.rs` | a camera as a viewer, reading published blocks |
//! | `status.rs`, `summary.rs` | the statistics of the simulation |
//! | `headless.rs` | a run without a window that leaves pictures |
//! | `rehearsal.rs` | orders to regions: halt, restart, pause |
//! | `arguments.rs`, `failure.rs` | the command line, and error messages |
//!
//! Files shared with other examples, in `../shared`:
//!
//! | file | what it shows |
//! |---|---|
//! | `start.rs` | Bevy with or without a window |
//! | `bodies.rs` | bodies for mirrors |
//! | `fault.rs` | the map of a real place |
//! | `tell.rs`, `progress.rs` | the common arguments, error messages and figures, and progress |

mod arguments;
#[path = "../shared/bodies.rs"]
mod bodies;
mod bots;
mod failure;
#[path = "../shared/fault.rs"]
mod fault;
mod grass;
mod headless;
mod landmarks;
mod landscape;
mod palette;
#[path = "../shared/progress.rs"]
mod progress;
mod rehearsal;
#[path = "../shared/start.rs"]
mod start;
mod status;
mod summary;
#[path = "../shared/tell.rs"]
mod tell;
mod view;
mod window;

use arguments::Arguments;
use bevy_terrane::prelude::*;
use bevy_terrane::region::RegionizerConfig;
use palette::Palette;
use std::error::Error;
use std::process::ExitCode;
use terrane_dev::SkyPlugin;
use terrane_overlay::OverlayPlugin;
use terrane_render::ChunkRenderPlugin;

/// The folder for the world and the pictures.
const FOLDER: &str = "target/examples/jacksboro";

fn main() -> ExitCode {
    start::main(|arguments| Ok(build(arguments)?.run()))
}

fn build(mut arguments: Arguments) -> Result<App, Box<dyn Error>> {
    // Read before the world is opened, so that a wrong map leaves no trace.
    let ground = landscape::heightmap(&arguments)?;
    let mut app = App::new();

    app.add_plugins(TerranePlugin {
        regionizer: RegionizerConfig {
            // Bots create small regions. Dead sections are removed early, so that regions split within seconds.
            recalculation_section_count: 16,
            max_dead_section_percent: 0.05,
            ..default()
        },
        storage: arguments.storage()?,
        ..default()
    });
    start::check_world(&mut app, &arguments.world)?;
    palette::register(&mut app)?;

    if arguments.run.is_headless() {
        arguments.run.seconds.get_or_insert(headless::SECONDS);
    }
    start::add_bevy(&mut app, "Jacksboro fault - F3 shows the regions", &arguments.run)?;
    app.add_plugins((ChunkRenderPlugin::default(), OverlayPlugin, SkyPlugin { shadows: 600.0 }))
        .add_plugins((bots::BotPlugin, bodies::PartsPlugin(bots::body), landmarks::LandmarkPlugin))
        .add_plugins((status::StatusPlugin, summary::SummaryPlugin, failure::FailurePlugin))
        .add_region_plugins(|region| {
            region.init_resource::<Palette>().add_systems(RegionTick, grass::spread_grass);
        })
        .add_systems(PreStartup, |mut commands: Commands| commands.init_resource::<Palette>());
    match arguments.run.is_headless() {
        true => app.add_plugins(headless::HeadlessPlugin(arguments.pictures.clone())),
        false => app.add_plugins(window::HandsPlugin),
    };

    let heights = fault::heights(&ground);
    app.insert_resource(view::Viewpoints::new(&ground, arguments.radius));
    let woods = landscape::woods(ground, arguments.seed)?;
    app.world_mut().spawn(Dimension::new(view::DIMENSION, woods).with_height(heights));
    app.insert_resource(arguments);
    Ok(app)
}
