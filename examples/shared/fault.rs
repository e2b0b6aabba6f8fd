//! The height map that comes with the project: a real place, around the Jacksboro fault in Tennessee.

use bevy_terrane::generation::{Heightmap, HeightmapError};
use bevy_terrane::prelude::*;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The survey's level of Norris Lake, in metres. It becomes y = 0 in the world.
const LAKE: f32 = 314.0;

/// The map's file, independent of the current directory.
pub fn file() -> PathBuf {
    let asset = Path::new("assets/jacksboro_fault_dem.png");
    let in_project = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|folder| folder.join(asset));
    in_project.into_iter().find(|file| file.exists()).unwrap_or_else(|| asset.to_owned())
}

/// The height map in metres, with the lake.
pub fn land(file: &Path) -> Result<Heightmap, HeightmapError> {
    Heightmap::open(file)?.with_sea_level(LAKE)?.with_water(LAKE, "terrane:water")
}

/// The range from below the lowest place to above the highest trees.
pub fn heights(land: &Heightmap) -> Range<i64> {
    let surface = land.surface_heights();
    surface.start() - 20..surface.end() + 20
}
