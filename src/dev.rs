//! Helpers for the first days of a game, and for examples: Bevy's plugins for a window or for a machine without a display, a
//! flying camera, a player in first person, a sky, and pictures. A finished game replaces them one by one.
//!
//! ```no_run
//! use bevy_terrane::dev::{DevPlugins, FlyCamera, SkyPlugin};
//! use bevy_terrane::prelude::*;
//!
//! fn main() -> AppExit {
//!     App::new()
//!         .add_plugins((DevPlugins::new("my_game"), SkyPlugin::default()))
//!         .add_plugins((TerranePlugin::default(), ChunkRenderPlugin::default()))
//!         .add_systems(Startup, |mut commands: Commands, dimensions: Res<Dimensions>| {
//!             commands.spawn(Dimension::new("overworld", Hills::seeded(42)));
//!             let viewer = Viewer::in_dimension(dimensions.id("overworld"));
//!             commands.spawn((FlyCamera::default(), viewer, Transform::from_xyz(0.0, 90.0, 0.0)));
//!         })
//!         .run()
//! }
//! ```

mod first_person;
mod fly_camera;
mod picture;
mod plugins;
mod sky;

pub use first_person::{FirstPerson, FirstPersonPlugin};
pub use fly_camera::{FlyCamera, FlySystems};
pub use picture::{PicturePlugin, Pictures};
pub use plugins::{DevPlugins, has_display};
pub use sky::{SkyPlugin, haze};
