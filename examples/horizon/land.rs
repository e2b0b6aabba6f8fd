//! The land: a height map, and the blocks of the ground.

use crate::fault;
use bevy_terrane::generation::{HeightBand, Heightmap, HeightmapError};
use bevy_terrane::prelude::*;

/// The whole map is as wide as the far view. A sample is 74 m by 93 m.
const BLOCKS_PER_SAMPLE: [f32; 2] = [8.0, 10.0];
/// Twice the natural height.
const BLOCKS_PER_METRE: f32 = 0.22;

pub fn land() -> Result<Heightmap, HeightmapError> {
    fault::land(&fault::file())?
        .with_blocks_per_sample(BLOCKS_PER_SAMPLE)?
        .with_blocks_per_unit(BLOCKS_PER_METRE)?
        .with_bands([
            HeightBand::new(320.0, "terrane:sand", "terrane:sand"),
            HeightBand::new(640.0, "terrane:grass", "terrane:dirt"),
            HeightBand::new(840.0, "terrane:leaves", "terrane:dirt"),
            HeightBand::new(f32::INFINITY, "terrane:gravel", "terrane:stone"),
        ])?
        .with_transition(90.0)?
        .with_cliffs(1.5, "terrane:stone")
}
