//! [`Features`]: objects on the ground, even across column borders.

mod boulder;
mod canvas;
mod placement;
#[cfg(test)]
pub(super) mod template_tests;
#[cfg(test)]
mod tests;
mod tree;

pub use boulder::Boulder;
pub use canvas::{FeatureCanvas, FeatureError, FeatureRandom, FeatureReach};
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

/// An object that is drawn around an origin on the ground, such as a tree, a boulder or a hut.
///
/// A feature is drawn again for each column that it may reach, and each time only the part within that column is kept.
/// It must therefore depend on nothing but its own settings and the canvas: the origin, the surface there, and the
/// random numbers of the origin.
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
    /// The name, the version and a digest of all settings: a part of the generator's identity.
    fn identity(&self) -> GeneratorIdentity;

    /// The maximum distances between the origin and the feature's blocks.
    fn reach(&self) -> FeatureReach;

    /// Draws the feature.
    fn draw(&self, canvas: &mut FeatureCanvas<'_, '_>) -> Result<(), GenerateError>;
}

/// The maximum number of origins that are checked for one column.
const MAX_ORIGINS: u64 = 4_096;

/// A layer of features, scattered by one [`Placement`].
///
/// The origins of features depend only on the seed and the place. A column is drawn by checking every origin whose
/// feature could reach it, in a fixed order. The result does not depend on the order or the threads in which columns
/// are generated, and a tree on a border is complete.
pub struct Features {
    placement: Placement,
    /// Each kind of feature with its weight and its reach.
    kinds: Vec<(Box<dyn Feature>, u32, FeatureReach)>,
    total_weight: u64,
}

impl Features {
    /// A layer without features.
    pub fn new(placement: Placement) -> Self {
        Self { placement, kinds: Vec::new(), total_weight: 0 }
    }

    /// Adds a kind of feature. Each kind gets a share of the origins in proportion to its weight.
    ///
    /// # Errors
    /// If the reach exceeds [`FeatureReach::LIMIT`], or if too many origins would have to be checked for every column.
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
