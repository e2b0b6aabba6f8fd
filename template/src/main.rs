//! The program: a window, the world on disk, and the game.

use bevy_terrane::prelude::*;
use my_game::{RulesPlugin, menu, player};
use terrane_dev::{DevPlugins, SkyPlugin};
use terrane_overlay::OverlayPlugin;
use terrane_render::ChunkRenderPlugin;

fn main() -> AppExit {
    App::new()
        .add_plugins((DevPlugins::new("my_game"), SkyPlugin::default()))
        .add_plugins((TerranePlugin::at("world"), ChunkRenderPlugin::default(), OverlayPlugin))
        .add_plugins((RulesPlugin, player::PlayerPlugin, menu::MenuPlugin))
        .run()
}
