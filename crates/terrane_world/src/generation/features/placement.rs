//! [`Placement`].

use super::FeatureRandom;
use crate::block::BlockId;
use crate::generation::digest::{Digest, scramble};
use crate::generation::generator::GenerateError;
use crate::generation::layers::LayerColumn;
use crate::generation::noise::set_within;
use crate::generation::surface::Surface;
use crate::generation::terrain::first_block;
use crate::space::{CHUNK_SIZE, ColumnPos};
use std::ops::Range;

/// Where features stand: scattered by a seed, never too close to each other, on suitable ground.
///
/// The world, seen from above, is divided into squares as wide as the spacing. Each square has one candidate at a
/// random place. Of candidates closer to each other than the spacing, the one with the highest random number stays.
/// The result looks natural, and only depends on the neighbouring squares.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    pub(super) seed: u64,
    pub(super) spacing: u32,
    chance: f32,
    soil: Vec<String>,
    heights: Range<i64>,
    covered: bool,
}

/// A place where a feature may stand, if the ground is suitable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub x: i64,
    pub z: i64,
    /// The random number of this place. The highest one stays.
    rank: u64,
}

impl Origin {
    /// A random number that selects the kind of feature.
    pub fn choice(&self) -> u64 {
        scramble(self.rank ^ 1)
    }

    pub fn random(&self) -> FeatureRandom {
        FeatureRandom::new(scramble(self.rank ^ 2))
    }
}

impl Placement {
    /// Places from this seed, at least eight blocks apart, wherever there is dry ground.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, spacing: 8, chance: 1.0, soil: Vec::new(), heights: i64::MIN..i64::MAX, covered: false }
    }

    /// Sets the minimum distance between origins, along x or along z, in blocks. Clamped to 1 ..= 65,536.
    #[must_use]
    pub fn with_spacing(mut self, blocks: u32) -> Self {
        self.spacing = blocks.clamp(1, 65_536);
        self
    }

    /// Sets the fraction of candidates that are used, from none (0) to all (1, the default). NaN is ignored.
    #[must_use]
    pub fn with_chance(mut self, chance: f32) -> Self {
        set_within(&mut self.chance, chance, 0.0..=1.0);
        self
    }

    /// Restricts features to surfaces of these blocks. If empty, the default, any surface is suitable.
    #[must_use]
    pub fn with_soil<N: Into<String>>(mut self, blocks: impl IntoIterator<Item = N>) -> Self {
        self.soil = blocks.into_iter().map(Into::into).collect();
        self
    }

    /// Restricts features to surfaces within these heights.
    #[must_use]
    pub fn with_heights(mut self, heights: Range<i64>) -> Self {
        self.heights = heights;
        self
    }

    /// Sets whether ground covered by something, such as water, is suitable. By default it is not.
    #[must_use]
    pub fn with_covered(mut self, covered: bool) -> Self {
        self.covered = covered;
        self
    }

    pub(super) fn digest(&self, digest: Digest) -> Digest {
        let digest = digest.number(self.seed).number(self.spacing.into()).number(self.chance.to_bits().into());
        digest.texts(&self.soil).heights(&self.heights).number(self.covered.into())
    }

    /// The number of candidates to check for one column.
    pub(super) fn origins_looked_at(&self, reach: u32) -> u64 {
        let blocks = CHUNK_SIZE as u64 + 2 * u64::from(reach);
        // One square is cut at either end, and one more beyond it may contain a neighbour.
        let squares = blocks.div_ceil(self.spacing.into()) + 3;
        squares * squares
    }

    pub(super) fn is_suitable(&self, surface: Surface, column: &LayerColumn<'_>) -> Result<bool, GenerateError> {
        if !self.heights.contains(&surface.y) || (surface.covered_to.is_some() && !self.covered) {
            return Ok(false);
        }
        let soil = self.soil.iter().map(|name| column.id(name)).collect::<Result<Vec<BlockId>, _>>()?;
        Ok(soil.is_empty() || soil.contains(&surface.block))
    }

    /// All origins at most `reach` blocks from a column. All columns see the same order.
    pub(super) fn origins_near(&self, column: ColumnPos, reach: u32) -> Vec<Origin> {
        let (x, z) = (self.blocks_near(column.x, reach), self.blocks_near(column.z, reach));
        let (squares_x, squares_z) = (self.squares(&x), self.squares(&z));
        let width = (squares_x.end - squares_x.start) as usize;
        let candidates: Vec<Option<Origin>> = squares_z
            .flat_map(|square_z| squares_x.clone().map(move |square_x| (square_x, square_z)))
            .map(|(square_x, square_z)| self.candidate(square_x, square_z))
            .collect();
        let is_near = |origin: &Origin| x.contains(&origin.x.into()) && z.contains(&origin.z.into());
        let stays = |at: usize, origin: &Origin| {
            let neighbours =
                [-1, 0, 1].into_iter().flat_map(|down| [-1, 0, 1].map(|right| down * width as isize + right));
            let mut others = neighbours.filter_map(|step| candidates.get(at.checked_add_signed(step)?)?.as_ref());
            others.all(|other| other.rank <= origin.rank || !self.is_too_near(other, origin))
        };
        let mut origins: Vec<Origin> = (candidates.iter().enumerate())
            .filter_map(|(at, candidate)| Some((at, (*candidate)?)))
            .filter(|(at, origin)| is_near(origin) && stays(*at, origin))
            .map(|(_, origin)| origin)
            .collect();
        origins.sort_unstable_by_key(|origin| (origin.z, origin.x));
        origins
    }

    /// The blocks on one axis whose origins may reach a column. `i128`, because at the edge of the world they lie beyond it.
    fn blocks_near(&self, column: i64, reach: u32) -> Range<i128> {
        let first = i128::from(first_block(column));
        first - i128::from(reach)..first + CHUNK_SIZE as i128 + i128::from(reach)
    }

    /// The squares of these blocks, and one more on either side.
    fn squares(&self, blocks: &Range<i128>) -> Range<i128> {
        let spacing = i128::from(self.spacing);
        blocks.start.div_euclid(spacing) - 1..(blocks.end - 1).div_euclid(spacing) + 2
    }

    fn candidate(&self, square_x: i128, square_z: i128) -> Option<Origin> {
        let rank = scramble(scramble(scramble(self.seed) ^ square_x as u64) ^ square_z as u64);
        let mut random = FeatureRandom::new(rank);
        if random.unit() >= self.chance {
            return None;
        }
        let mut within = |square: i128| square * i128::from(self.spacing) + i128::from(random.below(self.spacing));
        let (x, z) = (within(square_x), within(square_z));
        Some(Origin { x: i64::try_from(x).ok()?, z: i64::try_from(z).ok()?, rank })
    }

    fn is_too_near(&self, a: &Origin, b: &Origin) -> bool {
        a.x.abs_diff(b.x).max(a.z.abs_diff(b.z)) < self.spacing.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Columns see the same origins at the same places.
        #[test]
        fn columns_agree_on_origins_and_none_are_too_near(
            seed in any::<u64>(),
            spacing in 1u32..40,
            chance in 0.3f32..1.0,
            reach in 0u32..40,
            column in (any::<i64>(), any::<i64>()),
        ) {
            let placement = Placement::seeded(seed).with_spacing(spacing).with_chance(chance);
            let column = ColumnPos::new(column.0 >> 4, column.1 >> 4);
            let near = placement.origins_near(column, reach);
            let wide = placement.origins_near(column, reach + 30);
            let (x, z) = (placement.blocks_near(column.x, reach), placement.blocks_near(column.z, reach));
            let inside = |origin: &&Origin| x.contains(&origin.x.into()) && z.contains(&origin.z.into());
            prop_assert_eq!(&near, &wide.iter().filter(inside).copied().collect::<Vec<_>>());
            for (at, origin) in wide.iter().enumerate() {
                prop_assert!(wide[..at].iter().all(|other| !placement.is_too_near(origin, other)));
            }
        }
    }

    #[test]
    fn origins_are_many_and_only_as_many_as_announced() {
        for (spacing, reach) in [(1, 0), (3, 20), (8, 3), (16, 64), (40, 5)] {
            let placement = Placement::seeded(1).with_spacing(spacing);
            let mut found = 0;
            for x in -4..4 {
                let origins = placement.origins_near(ColumnPos::new(x, 9), reach).len();
                assert!(origins as u64 <= placement.origins_looked_at(reach));
                let (x, z) = (placement.blocks_near(x, reach), placement.blocks_near(9, reach));
                let squares = |blocks| placement.squares(&blocks).count() as u64;
                assert!(squares(x) * squares(z) <= placement.origins_looked_at(reach));
                found += origins;
            }
            assert!(found > 0, "nothing at a spacing of {spacing}");
        }
        assert!(Placement::seeded(1).with_chance(0.0).origins_near(ColumnPos::new(0, 0), 50).is_empty());
    }
}
