#![doc = include_str!("../README.md")]

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
