//! The square of group V: 512 x 512 blocks around the viewer, y from -64 to 64, at 60 frames a second.

use bevy::asset::AssetPlugin;
use bevy::prelude::*;
use bevy_terrane::prelude::{Dimension, Hills, TerranePlugin, Viewer};
use bevy_terrane::testing::spawn_dimension;
use std::path::Path;
use std::time::{Duration, Instant};
use terrane_render::ChunkRenderPlugin;

/// The distance from the viewer to the sides of the square, in blocks.
pub const HALF: f32 = 256.0;
/// Half of the height of the ground, in blocks.
pub const HEIGHT: i64 = 64;
/// The radius in columns that includes the corners of the square and their neighbours, which the mesher needs.
const RADIUS: u32 = 25;
const FRAME: Duration = Duration::from_micros(16_667);
/// Without a mesh for this long, all meshes are done.
const QUIET: Duration = Duration::from_secs(2);

/// The time of the last mesh within the square.
pub struct Seen {
    pub after: Duration,
    pub meshes: usize,
}

/// An app without a window that has everything needed for meshes.
pub fn app() -> App {
    let mut app = App::new();
    app.add_plugins((MinimalPlugins, AssetPlugin::default(), TransformPlugin));
    app.init_asset::<Mesh>().init_asset::<StandardMaterial>().init_asset::<Image>();
    app
}

/// The ground in a world of bevy_terrane at this path, with a viewer in its middle.
pub fn terrane(path: &Path) -> App {
    let mut app = app();
    app.add_plugins((TerranePlugin::at(path), ChunkRenderPlugin::default()));
    let hills = Dimension::new("hills", Hills::seeded(42)).with_height(-HEIGHT..HEIGHT);
    let dimension = spawn_dimension(&mut app, hills);
    app.world_mut().spawn((Viewer::in_dimension(dimension).with_radius(RADIUS), Transform::default()));
    app
}

/// Runs an app from its start until everything within the square is meshed.
pub fn watch(app: &mut App) -> Seen {
    app.finish();
    app.cleanup();
    let mut meshes = app.world_mut().query_filtered::<&Transform, With<Mesh3d>>();
    let start = Instant::now();
    let mut seen = Seen { after: Duration::ZERO, meshes: 0 };
    while seen.meshes == 0 || start.elapsed() < seen.after + QUIET {
        assert!(start.elapsed() < Duration::from_secs(300), "the ground did not come");
        let began = Instant::now();
        app.update();
        // The corner of a mesh may be one block outside its chunk.
        let is_inside = |place: &&Transform| {
            let corner = place.translation + 1.0;
            corner.x >= -HALF && corner.x < HALF && corner.z >= -HALF && corner.z < HALF
        };
        let now = meshes.iter(app.world()).filter(is_inside).count();
        if now > seen.meshes {
            seen = Seen { after: start.elapsed(), meshes: now };
        }
        std::thread::sleep(FRAME.saturating_sub(began.elapsed()));
    }
    seen
}
