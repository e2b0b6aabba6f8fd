//! Islands: a small game. Walk, dig, build, fill chests, and watch sheep find their way. Its rules are in `game`, and what a person sees
//! is in `view`. F3 shows the regions, and G the borders of regions and what is in them.

use bevy_terrane::prelude::*;
use terrane_dev::{DevPlugins, SkyPlugin};
use terrane_gizmos::{BodyGizmos, PathGizmos, RegionGizmos, TerraneGizmosPlugin, UnsavedGizmos};
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
        .add_plugins((ChunkRenderPlugin::default(), TerraneGizmosPlugin))
        .add_systems(Update, toggle_gizmos);
    game::build(&mut app)?;
    view::build(&mut app);
    Ok(app.run())
}

/// G shows and hides borders of regions, boxes of bodies, paths and unsaved chunks.
fn toggle_gizmos(keys: Res<ButtonInput<KeyCode>>, mut gizmos: ResMut<GizmoConfigStore>) {
    if keys.just_pressed(KeyCode::KeyG) {
        gizmos.config_mut::<RegionGizmos>().0.enabled ^= true;
        gizmos.config_mut::<BodyGizmos>().0.enabled ^= true;
        gizmos.config_mut::<PathGizmos>().0.enabled ^= true;
        gizmos.config_mut::<UnsavedGizmos>().0.enabled ^= true;
    }
}
