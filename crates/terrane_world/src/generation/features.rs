//! Things that stand on the ground, also across the borders of columns.

mod boulder;
mod canvas;
mod error;
mod placement;
#[cfg(test)]
pub(super) mod template_tests;
#[cfg(test)]
mod tests;
mod tree;

pub use boulder::Boulder;
pub use canvas::{FeatureCanvas, FeatureRandom};
pub use error::FeatureError;
pub use placement::Placement;
pub use tree::{Tree, TreeShape};

use super::digest::{Digest, GeneratorIdentity};
use super::generator::GenerateError;
use super::layers::{GenerateLayer, LayerColumn};
use super::surface::Surface;
use super::terrain::first_block;
use crate::space::{BlockPos, CHUNK_SIZE};
use placement::Origin;
use std::fmt;

/// Something that is drawn into the world around an origin on the ground: a tree, a boulder, a hut.
///
/// A feature is drawn once for each column that it may reach, by whoever generates that column, and each time only
/// what falls into that column is kept. So it may follow from nothing but its own settings and what the canvas tells:
/// its origin, the surface there, random numbers that belong to the origin.
///
/// ```
/// use terrane_world::generation::*;
///
/// /// A pole of up to nine blocks.
/// struct Totem;
///
/// impl Feature for Totem {
///     fn identity(&self) -> GeneratorIdentity {
///         GeneratorIdentity::new("game:totem", 1, 0)
///     }
///
///     fn reach(&self) -> FeatureReach {
///         FeatureReach { horizontal: 0, up: 9, down: 0 }
///     }
///
///     fn draw(&self, canvas: &mut FeatureCanvas<'_, '_>) -> Result<(), GenerateError> {
///         let wood = canvas.id("terrane:wood")?;
///         let height = 3 + i64::from(canvas.random().below(7));
///         (1..=height).for_each(|y| canvas.set([0, y, 0], wood));
///         Ok(())
///     }
/// }
///
/// # fn main() -> Result<(), FeatureError> {
/// let holy_land = Layers::new(Hills::seeded(3))
///     .with(Features::new(Placement::seeded(3).with_spacing(40)).with(Totem, 1)?);
/// # Ok(())
/// # }
/// ```
pub trait Feature: Send + Sync + 'static {
    /// Name, version and a digest of all settings: a part of the generator's identity.
    fn identity(&self) -> GeneratorIdentity;

    /// How far from its origin it sets blocks, at most.
    fn reach(&self) -> FeatureReach;

    /// Draws it.
    fn draw(&self, canvas: &mut FeatureCanvas<'_, '_>) -> Result<(), GenerateError>;
}

/// How far from its origin a [`Feature`] sets blocks, at most. The origin is the highest block of the ground.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeatureReach {
    /// Blocks along x and along z, to either side.
    pub horizontal: u32,
    /// Blocks above the origin.
    pub up: u32,
    /// Blocks below the origin.
    pub down: u32,
}

impl FeatureReach {
    /// The farthest that a feature may go: four columns to each side.
    pub const LIMIT: Self = Self { horizontal: 64, up: 256, down: 256 };
}

/// Origins that may be looked at for one column.
const MAX_ORIGINS: u64 = 4_096;

/// A layer of features, all scattered by one [`Placement`].
///
/// Where features stand follows from the seed and the place alone. A column is drawn by looking at every origin that
/// could reach into it and drawing what does, in the order of the origins: so it does not matter in which order, or on
/// which threads, columns are generated, and a tree on a border is whole.
pub struct Features {
    placement: Placement,
    /// Each kind of feature, and its weight.
    /// Each with its weight and how far it reaches.
    kinds: Vec<(Box<dyn Feature>, u32, FeatureReach)>,
    total_weight: u64,
}

impl Features {
    /// A layer that has no features yet.
    pub fn new(placement: Placement) -> Self {
        Self { placement, kinds: Vec::new(), total_weight: 0 }
    }

    /// With one kind of feature more. Of several kinds each gets a share of the origins that is proportional to its
    /// weight.
    ///
    /// # Errors
    /// If it reaches farther than [`FeatureReach::LIMIT`], or so far that too many origins had to be looked at for
    /// every column.
    pub fn with(mut self, feature: impl Feature, weight: u32) -> Result<Self, FeatureError> {
        let (reach, name) = (feature.reach(), feature.identity().name);
        let limit = FeatureReach::LIMIT;
        if reach.horizontal > limit.horizontal || reach.up > limit.up || reach.down > limit.down {
            return Err(FeatureError::ReachTooLarge { feature: name, reach, limit });
        }
        let origins = self.placement.origins_looked_at(reach.horizontal);
        if origins > MAX_ORIGINS {
            let spacing = self.placement.spacing;
            return Err(FeatureError::TooCrowded { feature: name, reach, spacing, origins, limit: MAX_ORIGINS });
        }
        self.total_weight += u64::from(weight);
        self.kinds.push((Box::new(feature), weight, reach));
        Ok(self)
    }

    /// The feature that stands at an origin.
    fn feature(&self, origin: &Origin) -> Option<(&dyn Feature, FeatureReach)> {
        let mut rest = origin.choice().checked_rem(self.total_weight)?;
        let chosen = self.kinds.iter().find(|(_, weight, _)| {
            let chosen = rest < u64::from(*weight);
            rest = rest.saturating_sub((*weight).into());
            chosen
        });
        chosen.map(|(feature, _, reach)| (&**feature, *reach))
    }

    fn draw(&self, column: &mut LayerColumn<'_>, origin: &Origin) -> Result<(), GenerateError> {
        let Some((feature, reach)) = self.feature(origin) else { return Ok(()) };
        if !reaches_column(origin, reach, column) {
            return Ok(());
        }
        let Some(surface) = column.surface(origin.x, origin.z)? else { return Ok(()) };
        if !reaches_heights(surface, reach, column) || !self.placement.is_suitable(surface, column)? {
            return Ok(());
        }
        let place = BlockPos::new(origin.x, surface.y, origin.z);
        let mut canvas = FeatureCanvas::new(column, place, surface, reach, origin.random());
        feature.draw(&mut canvas)?;
        match canvas.beyond_reach {
            None => Ok(()),
            Some(offset) => Err(GenerateError::BeyondReach { feature: feature.identity().name, origin: place, offset }),
        }
    }
}

fn reaches_column(origin: &Origin, reach: FeatureReach, column: &LayerColumn<'_>) -> bool {
    let reach = i128::from(reach.horizontal);
    let touches = |origin: i64, column: i64| {
        let first = i128::from(first_block(column));
        (first - reach..first + CHUNK_SIZE as i128 + reach).contains(&origin.into())
    };
    touches(origin.x, column.pos().x) && touches(origin.z, column.pos().z)
}

fn reaches_heights(surface: Surface, reach: FeatureReach, column: &LayerColumn<'_>) -> bool {
    let heights = column.heights();
    surface.y.saturating_add(reach.up.into()) >= heights.start
        && surface.y.saturating_sub(reach.down.into()) < heights.end
}

impl GenerateLayer for Features {
    fn identity(&self) -> GeneratorIdentity {
        let digest = self.kinds.iter().fold(self.placement.digest(Digest::new()), |digest, (feature, weight, _)| {
            digest.identity(&feature.identity()).number((*weight).into())
        });
        GeneratorIdentity::new("terrane:features", 1, digest.finish())
    }

    fn own_seed(&self) -> Option<u64> {
        Some(self.placement.seed)
    }

    fn apply(&self, column: &mut LayerColumn<'_>) -> Result<(), GenerateError> {
        let reach = self.kinds.iter().map(|(_, _, reach)| reach.horizontal).max().unwrap_or(0);
        for origin in self.placement.origins_near(column.pos(), reach) {
            self.draw(column, &origin)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.kinds.iter().map(|(feature, weight, _)| (feature.identity().name, weight)).collect();
        f.debug_struct("Features").field("placement", &self.placement).field("kinds", &kinds).finish()
    }
}
