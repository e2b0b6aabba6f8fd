//! The tools with which a feature draws itself: [`FeatureCanvas`], [`FeatureRandom`] and [`FeatureReach`]. Also [`FeatureError`].

use crate::block::{BlockId, BlockRegistry};
use crate::generation::digest::scramble;
use crate::generation::generator::GenerateError;
use crate::generation::layers::LayerColumn;
use crate::generation::surface::Surface;
use crate::space::BlockPos;
use thiserror::Error;

/// The maximum distances between the origin and a [`Feature`](super::Feature)'s blocks. The origin is the highest block of
/// the ground.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeatureReach {
    /// The distance along x and along z, to either side, in blocks.
    pub horizontal: u32,
    /// The distance upwards in blocks.
    pub up: u32,
    /// The distance downwards in blocks.
    pub down: u32,
}

impl FeatureReach {
    /// The maximum reach of a feature: four columns to each side.
    pub const LIMIT: Self = Self { horizontal: 64, up: 256, down: 256 };
}

/// The world around a [`Feature`](super::Feature)'s origin, for drawing on. Only blocks within the column that is
/// being generated are kept.
pub struct FeatureCanvas<'a, 'b> {
    column: &'a mut LayerColumn<'b>,
    origin: BlockPos,
    surface: Surface,
    reach: FeatureReach,
    random: FeatureRandom,
    /// The first block that was set beyond the feature's reach.
    pub(super) beyond_reach: Option<[i64; 3]>,
}

impl<'a, 'b> FeatureCanvas<'a, 'b> {
    pub(super) fn new(
        column: &'a mut LayerColumn<'b>,
        origin: BlockPos,
        surface: Surface,
        reach: FeatureReach,
        random: FeatureRandom,
    ) -> Self {
        Self { column, origin, surface, reach, random, beyond_reach: None }
    }

    /// The highest block of the ground, where the feature stands. Offsets are relative to it.
    pub fn origin(&self) -> BlockPos {
        self.origin
    }

    /// The surface at the origin.
    pub fn surface(&self) -> Surface {
        self.surface
    }

    /// The random numbers of the origin: the same ones whenever the feature is drawn there.
    pub fn random(&mut self) -> &mut FeatureRandom {
        &mut self.random
    }

    /// The blocks of the game.
    pub fn blocks(&self) -> &BlockRegistry {
        self.column.blocks()
    }

    /// The id of the block with this name. The error names the block if the game does not have it.
    pub fn id(&self, name: &str) -> Result<BlockId, GenerateError> {
        self.column.id(name)
    }

    /// Sets the block at this offset from the origin, along x, y and z.
    pub fn set(&mut self, offset: [i64; 3], block: BlockId) {
        self.replace(offset, |_| block);
    }

    /// Sets a block where there is only air.
    pub fn set_in_air(&mut self, offset: [i64; 3], block: BlockId) {
        self.replace(offset, |old| if old == BlockId::AIR { block } else { old });
    }

    /// Replaces the block at this offset from the origin by the result of the closure. The closure is not always
    /// called, so it must change nothing that the rest of the drawing depends on.
    pub fn replace(&mut self, offset: [i64; 3], block: impl FnOnce(BlockId) -> BlockId) {
        if !self.is_within_reach(offset) {
            self.beyond_reach.get_or_insert(offset);
            return;
        }
        // Blocks beyond the edge of the world are ignored.
        let [x, y, z] = offset;
        let BlockPos { x: origin_x, y: origin_y, z: origin_z } = self.origin;
        if let (Some(x), Some(y), Some(z)) = (origin_x.checked_add(x), origin_y.checked_add(y), origin_z.checked_add(z))
        {
            self.column.replace(x, y, z, block);
        }
    }

    fn is_within_reach(&self, [x, y, z]: [i64; 3]) -> bool {
        let horizontal = self.reach.horizontal.into();
        x.unsigned_abs() <= horizontal
            && z.unsigned_abs() <= horizontal
            && (-i64::from(self.reach.down)..=i64::from(self.reach.up)).contains(&y)
    }
}

/// Random numbers from a seed, the same on every machine (SplitMix64).
#[derive(Clone, Debug)]
pub struct FeatureRandom(u64);

impl FeatureRandom {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number, out of all 64-bit numbers.
    pub fn next_u64(&mut self) -> u64 {
        let number = scramble(self.0);
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        number
    }

    /// The next number below `limit`, with equal probabilities; 0 if the limit is 0.
    pub fn below(&mut self, limit: u32) -> u32 {
        ((u128::from(self.next_u64()) * u128::from(limit)) >> 64) as u32
    }

    /// The next number in 0 .. 1.
    pub fn unit(&mut self) -> f32 {
        (self.next_u64() >> 40) as f32 / (1u32 << 24) as f32
    }
}

/// The error for a feature that cannot be placed. See [`Features::with`](super::Features::with).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FeatureError {
    /// The feature's reach is too large.
    #[error(
        "the feature \"{feature}\" reaches {} blocks to the side, {} up and {} down, at most {}, {} and {} are allowed: \
         make it smaller, or of several features",
        reach.horizontal, reach.up, reach.down, limit.horizontal, limit.up, limit.down
    )]
    ReachTooLarge {
        /// The feature's name.
        feature: String,
        /// The feature's reach.
        reach: FeatureReach,
        /// The maximum reach.
        limit: FeatureReach,
    },
    /// Too many features could reach into one column, so generating it would take too long.
    #[error(
        "the feature \"{feature}\" reaches {} blocks to the side at a spacing of {spacing}: {origins} origins had to be \
         looked at for every column, at most {limit} are allowed; give it a larger spacing",
        reach.horizontal
    )]
    TooCrowded {
        /// The feature's name.
        feature: String,
        /// The feature's reach.
        reach: FeatureReach,
        /// The placement's spacing, in blocks.
        spacing: u32,
        /// The number of origins to check for every column.
        origins: u64,
        /// The maximum number of origins.
        limit: u64,
    },
}
