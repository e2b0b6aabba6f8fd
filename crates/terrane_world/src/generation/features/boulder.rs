//! [`Boulder`].

use super::{Feature, FeatureCanvas, FeatureReach};
use crate::generation::digest::{Digest, GeneratorIdentity};
use crate::generation::generator::GenerateError;
use std::ops::RangeInclusive;

/// A round stone, slightly sunk into the ground.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boulder {
    block: String,
    radius: RangeInclusive<u8>,
}

impl Boulder {
    /// Boulders of stone with these radii in blocks, clamped to 1 ..= 32.
    pub fn new(radius: RangeInclusive<u8>) -> Self {
        let smallest = (*radius.start()).clamp(1, 32);
        Self { block: "terrane:stone".to_owned(), radius: smallest..=(*radius.end()).clamp(smallest, 32) }
    }

    /// Sets the block.
    #[must_use]
    pub fn with_block(mut self, block: impl Into<String>) -> Self {
        self.block = block.into();
        self
    }
}

impl Default for Boulder {
    fn default() -> Self {
        Self::new(1..=3)
    }
}

impl Feature for Boulder {
    fn identity(&self) -> GeneratorIdentity {
        let digest = Digest::new().bytes(&[*self.radius.start(), *self.radius.end()]).text(&self.block);
        GeneratorIdentity::new("terrane:boulder", 1, digest.finish())
    }

    fn reach(&self) -> FeatureReach {
        let radius = u32::from(*self.radius.end());
        FeatureReach { horizontal: radius, up: radius + radius / 3, down: radius + radius / 3 }
    }

    fn draw(&self, canvas: &mut FeatureCanvas<'_, '_>) -> Result<(), GenerateError> {
        let stone = canvas.id(&self.block)?;
        let radii = 1 + u32::from(self.radius.end() - self.radius.start());
        let radius = i64::from(*self.radius.start()) + i64::from(canvas.random().below(radii));
        // The centre lies between a third below and a third above the surface.
        let third = radius / 3;
        let middle = i64::from(canvas.random().below(2 * third as u32 + 1)) - third;
        // The extra half block makes small boulders round.
        let limit = radius * radius + radius / 2;
        for (x, z) in (-radius..=radius).flat_map(|x| (-radius..=radius).map(move |z| (x, z))) {
            for y in (-radius..=radius).filter(|y| x * x + y * y + z * z <= limit) {
                canvas.set([x, middle + y, z], stone);
            }
        }
        Ok(())
    }
}
