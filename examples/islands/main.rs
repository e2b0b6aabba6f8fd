//! Islands: a small game. Walk, dig, build, fill chests, and watch sheep find their way. Its rules are in `game`, and what a person sees
//! is in `view`.

use bevy_terrane::prelude::*;
use terrane_dev::{DevPlugins, SkyPlugin};
use terrane_overlay::OverlayPlugin;
use terrane_render::ChunkRenderPlugin;

mod game;
mod view;

fn main() -> Result<AppExit> {
    let dev = DevPlugins { crosshair: false, ..DevPlugins::new("islands") };
    let mut app = App::new();
    app.add_plugins((dev, SkyPlugin::default()))
        .add_plugins((
            TerranePlugin { basic_blocks: false, ..TerranePlugin::at("target/examples/islands/world") },
            OverlayPlugin,
        ))
        .add_plugins(ChunkRenderPlugin::default());
    game::build(&mut app)?;
    view::build(&mut app);
    Ok(app.run())
}
