//! [`Veins`].

use super::{GenerateLayer, LayerColumn};
use crate::generation::digest::{Digest, GeneratorIdentity};
use crate::generation::generator::GenerateError;
use crate::generation::noise::{noise_in_chunk, set_within, smooth_noise};
use crate::generation::terrain::first_block;
use crate::space::cell_position;
use std::ops::Range;

/// Veins of another block in the rock, such as ore or gravel, where a noise is high.
#[derive(Clone, Debug)]
pub struct Veins {
    seed: u64,
    block: String,
    replaces: Vec<String>,
    size: f32,
    richness: f32,
    heights: Range<i64>,
}

impl Veins {
    /// Veins of this block in `terrane:stone`, about 16 blocks apart, everywhere.
    pub fn seeded(seed: u64, block: impl Into<String>) -> Self {
        let replaces = vec!["terrane:stone".to_owned()];
        Self { seed, block: block.into(), replaces, size: 16.0, richness: 0.25, heights: i64::MIN..i64::MAX }
    }

    /// Sets the blocks that veins replace.
    #[must_use]
    pub fn with_replaced<N: Into<String>>(mut self, blocks: impl IntoIterator<Item = N>) -> Self {
        self.replaces = blocks.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the distance between veins in blocks. Clamped to 8 ..= 65,536; NaN is ignored.
    #[must_use]
    pub fn with_size(mut self, blocks: f32) -> Self {
        set_within(&mut self.size, blocks, 8.0..=65_536.0);
        self
    }

    /// Sets the amount: 0 is none, 1 about half of the rock. NaN is ignored.
    #[must_use]
    pub fn with_richness(mut self, richness: f32) -> Self {
        set_within(&mut self.richness, richness, 0.0..=1.0);
        self
    }

    /// Restricts veins to these heights.
    #[must_use]
    pub fn with_heights(mut self, heights: Range<i64>) -> Self {
        self.heights = heights;
        self
    }
}

impl GenerateLayer for Veins {
    fn identity(&self) -> GeneratorIdentity {
        let digest = Digest::new().number(self.seed).text(&self.block).texts(&self.replaces);
        let digest = digest.number(self.size.to_bits().into()).number(self.richness.to_bits().into());
        GeneratorIdentity::new("terrane:veins", 1, digest.heights(&self.heights).finish())
    }

    fn own_seed(&self) -> Option<u64> {
        Some(self.seed)
    }

    fn apply(&self, column: &mut LayerColumn<'_>) -> Result<(), GenerateError> {
        let ore = column.id(&self.block)?;
        let replaced = self.replaces.iter().map(|name| column.id(name)).collect::<Result<Vec<_>, _>>()?;
        let noise = smooth_noise(self.seed, 1.0 / self.size, 1);
        for (place, chunk) in column.chunks() {
            let low = place.y << 4;
            let outside = low >= self.heights.end || low + 15 < self.heights.start;
            if outside || !chunk.palette().iter().any(|block| replaced.contains(block)) {
                continue;
            }
            let values = noise_in_chunk(&noise, place);
            for (cell, _) in values.iter().enumerate().filter(|(_, value)| **value > 1.0 - self.richness) {
                let within = cell_position(cell);
                let y = low + within[1] as i64;
                if self.heights.contains(&y) && replaced.contains(&chunk.block(within)) {
                    let (x, z) = (first_block(place.x) + within[0] as i64, first_block(place.z) + within[2] as i64);
                    column.set_block(x, y, z, ore);
                }
            }
        }
        Ok(())
    }
}
