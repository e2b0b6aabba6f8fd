//! [`Mask`]: chooses between two generators.

use super::digest::{Digest, GeneratorIdentity};
use super::noise::{fold, set_within, smooth_noise};
use fastnoise_lite::FastNoiseLite;

/// Chooses between two generators, place by place. See [`Select`](super::Select).
///
/// Like a generator, a mask is a pure function of the place and of its own settings.
pub trait Mask: Send + Sync + 'static {
    /// The name, the version and a digest of the seed and all settings: a part of the generator's identity.
    fn identity(&self) -> GeneratorIdentity;

    /// The share of the second generator at a place: 0 is only the first generator, 1 only the second.
    fn weight(&self, x: i64, z: i64) -> f32;
}

/// A mask from smooth noise: patches of one generator in the other.
#[derive(Clone, Debug, PartialEq)]
pub struct NoiseMask {
    seed: u64,
    size: f32,
    share: f32,
    transition: f32,
}

impl NoiseMask {
    /// Patches about 512 blocks wide, half of the world each, with a transition of about a quarter of that width.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, size: 512.0, share: 0.5, transition: 0.25 }
    }

    /// Sets the distance between patches in blocks. Clamped to 16 ..= 1,000,000; NaN is ignored.
    #[must_use]
    pub fn with_size(mut self, blocks: f32) -> Self {
        set_within(&mut self.size, blocks, 16.0..=1_000_000.0);
        self
    }

    /// Sets the approximate fraction of the world that the second generator gets. Clamped to 0 ..= 1; NaN is ignored.
    #[must_use]
    pub fn with_share(mut self, share: f32) -> Self {
        set_within(&mut self.share, share, 0.0..=1.0);
        self
    }

    /// Sets the width of the transition, approximately as a fraction of the size of a patch. 0 is a sharp line.
    /// Clamped to 0 ..= 1; NaN is ignored.
    #[must_use]
    pub fn with_transition(mut self, part: f32) -> Self {
        set_within(&mut self.transition, part, 0.0..=1.0);
        self
    }

    fn noise(&self) -> FastNoiseLite {
        smooth_noise(self.seed, 1.0 / self.size, 2)
    }
}

impl Mask for NoiseMask {
    fn identity(&self) -> GeneratorIdentity {
        let settings = [self.size, self.share, self.transition];
        let digest = Digest::new().number(self.seed);
        let digest = settings.iter().fold(digest, |digest, setting| digest.number(setting.to_bits().into()));
        GeneratorIdentity::new("terrane:noise_mask", 1, digest.finish())
    }

    fn weight(&self, x: i64, z: i64) -> f32 {
        // A share of 0 or 1 leaves no transition on either side.
        let span = 1.0 + self.transition;
        let above = self.noise().get_noise_2d(fold(x), fold(z)) + span * (2.0 * self.share - 1.0);
        if self.transition == 0.0 {
            return if above > 0.0 { 1.0 } else { 0.0 };
        }
        let part = (above / (2.0 * self.transition) + 0.5).clamp(0.0, 1.0);
        part * part * (3.0 - 2.0 * part)
    }
}
