//! [`Caves`].

use super::{GenerateLayer, LayerColumn};
use crate::block::BlockId;
use crate::generation::digest::{Digest, GeneratorIdentity};
use crate::generation::generator::GenerateError;
use crate::generation::noise::{noise_in_chunk, set_within, smooth_noise};
use crate::generation::terrain::first_block;
use crate::space::{CHUNK_SIZE, cell_position};
use std::ops::Range;

/// Winding tunnels where two noises are both near zero.
///
/// They stay below the surface, so that objects on it keep their ground.
#[derive(Clone, Debug)]
pub struct Caves {
    seed: u64,
    size: f32,
    width: f32,
    roof: u16,
    heights: Range<i64>,
}

impl Caves {
    /// Caves from this seed: tunnels about six blocks wide, with six blocks of ground above them.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, size: 64.0, width: 0.1, roof: 6, heights: i64::MIN..i64::MAX }
    }

    /// Sets the distance between bends in blocks. Clamped to 16 ..= 65,536; NaN is ignored.
    #[must_use]
    pub fn with_size(mut self, blocks: f32) -> Self {
        set_within(&mut self.size, blocks, 16.0..=65_536.0);
        self
    }

    /// Sets the width of tunnels as a fraction of their size. Clamped to 0 ..= 1; NaN is ignored.
    #[must_use]
    pub fn with_width(mut self, width: f32) -> Self {
        set_within(&mut self.width, width, 0.0..=1.0);
        self
    }

    /// Sets the number of blocks of ground above every cave.
    #[must_use]
    pub fn with_roof(mut self, blocks: u16) -> Self {
        self.roof = blocks;
        self
    }

    /// Restricts caves to these heights.
    #[must_use]
    pub fn with_heights(mut self, heights: Range<i64>) -> Self {
        self.heights = heights;
        self
    }
}

impl GenerateLayer for Caves {
    fn identity(&self) -> GeneratorIdentity {
        let digest = Digest::new().number(self.seed).number(self.size.to_bits().into());
        let digest = digest.number(self.width.to_bits().into()).number(self.roof.into()).heights(&self.heights);
        GeneratorIdentity::new("terrane:caves", 1, digest.finish())
    }

    fn own_seed(&self) -> Option<u64> {
        Some(self.seed)
    }

    fn apply(&self, column: &mut LayerColumn<'_>) -> Result<(), GenerateError> {
        let noises = [self.seed, !self.seed].map(|seed| smooth_noise(seed, 1.0 / self.size, 1));
        // The y of the highest block that may be dug out, by `x + 16 * z`; `None` where there is no ground.
        let mut highest = Vec::with_capacity(CHUNK_SIZE * CHUNK_SIZE);
        for (x, z) in column.places() {
            highest.push(column.surface(x, z)?.and_then(|surface| surface.y.checked_sub(1 + i64::from(self.roof))));
        }
        let top = highest.iter().flatten().max().copied();
        for (place, chunk) in column.chunks() {
            let low = place.y << 4;
            if top.is_none_or(|top| low > top) || low >= self.heights.end || low + 15 < self.heights.start {
                continue;
            }
            let values = noises.each_ref().map(|noise| noise_in_chunk(noise, place));
            let limit = self.width * self.width;
            let is_hollow = |cell: usize| values[0][cell] * values[0][cell] + values[1][cell] * values[1][cell] < limit;
            for cell in (0..values[0].len()).filter(|cell| is_hollow(*cell)) {
                let within = cell_position(cell);
                let y = low + within[1] as i64;
                let is_deep = highest[within[0] + CHUNK_SIZE * within[2]].is_some_and(|highest| y <= highest);
                if is_deep && self.heights.contains(&y) && column.blocks().block(chunk.block(within)).is_solid() {
                    let (x, z) = (first_block(place.x) + within[0] as i64, first_block(place.z) + within[2] as i64);
                    column.set_block(x, y, z, BlockId::AIR);
                }
            }
        }
        Ok(())
    }
}
