//! The land: a height map of a real place, the Jacksboro fault in Tennessee.

use bevy_terrane::generation::{HeightBand, HeightmapError};
use bevy_terrane::prelude::*;
use std::ops::Range;
use std::path::Path;

/// The name of the dimension in the world.
pub const NAME: &str = "horizon";

/// The whole map is as wide as the far view: a sample is 74 m by 93 m.
const BLOCKS_PER_SAMPLE: [f32; 2] = [8.0, 10.0];
/// Twice as high as in nature.
const BLOCKS_PER_METRE: f32 = 0.22;
/// The level of the lake, in metres: y = 0 in the world.
const LAKE: f32 = 314.0;

/// The land, and its heights from below the lowest place to above the highest.
pub fn land() -> Result<(Heightmap, Range<i64>), HeightmapError> {
    let asset = Path::new("assets/jacksboro_fault_dem.png");
    let in_project = Path::new(env!("CARGO_MANIFEST_DIR")).join(asset);
    let land = Heightmap::open(if in_project.exists() { &in_project } else { asset })?
        .with_blocks_per_sample(BLOCKS_PER_SAMPLE)?
        .with_blocks_per_unit(BLOCKS_PER_METRE)?
        .with_sea_level(LAKE)?
        .with_water(LAKE, "terrane:water")?
        .with_bands([
            HeightBand::new(320.0, "terrane:sand", "terrane:sand"),
            HeightBand::new(640.0, "terrane:grass", "terrane:dirt"),
            HeightBand::new(840.0, "terrane:leaves", "terrane:dirt"),
            HeightBand::new(f32::INFINITY, "terrane:gravel", "terrane:stone"),
        ])?
        .with_transition(90.0)?
        .with_cliffs(1.5, "terrane:stone")?;
    let surface = land.surface_heights();
    let heights = surface.start() - 20..surface.end() + 20;
    Ok((land, heights))
}
