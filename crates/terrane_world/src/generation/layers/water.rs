//! [`WaterFill`].

use super::{GenerateLayer, LayerColumn};
use crate::block::BlockId;
use crate::generation::COLUMN_AREA;
use crate::generation::digest::{Digest, GeneratorIdentity};
use crate::generation::generator::GenerateError;
use crate::generation::surface::{Surface, SurfaceRequest};
use crate::generation::terrain::{chunk_heights, put_uniform};
use std::ops::RangeInclusive;

/// Fills open space above the ground up to a height, with water or another block. Caves stay dry, and there is no sea
/// where there is no ground.
#[derive(Clone, Debug)]
pub struct WaterFill {
    level: i64,
    block: String,
}

impl WaterFill {
    /// A sea of water below this y.
    pub fn new(level: i64) -> Self {
        Self { level, block: "terrane:water".to_owned() }
    }

    /// Sets another liquid.
    #[must_use]
    pub fn with_block(mut self, block: impl Into<String>) -> Self {
        self.block = block.into();
        self
    }
}

/// Fills open space above the ground at these heights.
fn fill(column: &mut LayerColumn<'_>, ground: &[i64], heights: RangeInclusive<i64>, water: BlockId) {
    for ((x, z), ground) in column.places().zip(ground) {
        for y in heights.clone().filter(|y| y > ground) {
            column.replace(x, y, z, |old| if old == BlockId::AIR { water } else { old });
        }
    }
}

impl GenerateLayer for WaterFill {
    fn identity(&self) -> GeneratorIdentity {
        let digest = Digest::new().number(self.level as u64).text(&self.block);
        GeneratorIdentity::new("terrane:water_fill", 1, digest.finish())
    }

    fn apply(&self, column: &mut LayerColumn<'_>) -> Result<(), GenerateError> {
        let water = column.id(&self.block)?;
        // The y of the ground by `x + 16 * z`. Places without ground are not filled.
        let mut ground = Vec::with_capacity(COLUMN_AREA);
        for (x, z) in column.places() {
            ground.push(column.surface(x, z)?.map_or(i64::MAX, |surface| surface.y));
        }
        let (lowest, highest) = ground.iter().fold((i64::MAX, i64::MIN), |(low, high), y| (low.min(*y), high.max(*y)));
        let heights = column.heights();
        let (bottom, top) =
            (lowest.saturating_add(1).max(heights.start), self.level.min(heights.end).saturating_sub(1));
        let mut shared = None;
        for y in chunk_heights(column.pos(), bottom, top)? {
            let (low, high) = (y << 4, (y << 4) + 15);
            match column.column.chunk(y) {
                None if low > highest && low >= heights.start && high <= top => {
                    put_uniform(&mut column.column, y, water, &mut shared);
                }
                _ => fill(column, &ground, low.max(heights.start)..=high.min(top), water),
            }
        }
        Ok(())
    }

    fn surface(&self, request: &SurfaceRequest<'_>, below: Option<Surface>) -> Result<Option<Surface>, GenerateError> {
        let water = request.block(&self.block)?;
        let Some(top) = self.level.checked_sub(1) else { return Ok(below) };
        Ok(below.map(|below| match below.covered_to {
            _ if top <= below.y || water == BlockId::AIR => below,
            // Ice may lie on water.
            _ if request.blocks.block(water).is_solid() && below.covered_to.is_none_or(|covered| covered < top) => {
                Surface { y: top, block: water, covered_to: None }
            }
            covered => Surface { covered_to: Some(covered.map_or(top, |covered| covered.max(top))), ..below },
        }))
    }
}
