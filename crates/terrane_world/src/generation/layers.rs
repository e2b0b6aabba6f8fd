//! A generator made of steps: ground, and layers that change it one after the other.

mod caves;
mod cover;
mod layer_column;
#[cfg(test)]
mod tests;
mod veins;
mod water;

pub(in crate::generation) use layer_column::cut;

pub use caves::Caves;
pub use cover::GroundCover;
pub use layer_column::LayerColumn;
pub use veins::Veins;
pub use water::WaterFill;

use super::digest::{Digest, GeneratorIdentity};
use super::generator::{GenerateError, GenerateRequest, Generator};
use super::surface::{Surface, SurfaceAnswer, SurfaceRequest, SurfaceSource};
use super::terrain::COLUMN_AREA;
use crate::chunk::Column;
use std::cell::Cell;
use std::fmt;
use std::ops::Range;

/// One step of a generator: sees what the steps below it made, and changes it. See [`Layers`].
///
/// Like a [`Generator`] a layer is a pure function. The block that it puts at a place may follow from
///
/// * the place and the layer's own settings,
/// * the blocks of the same column at most [`vertical_reach`](Self::vertical_reach) above or below that place,
/// * the [`surface`](LayerColumn::surface) here and anywhere else,
///
/// and from nothing else: above all not from the [heights](LayerColumn::heights) that happen to be asked for.
///
/// ```
/// use terrane_world::generation::*;
///
/// /// Snow on all that is high.
/// struct SnowCaps;
///
/// impl GenerateLayer for SnowCaps {
///     fn identity(&self) -> GeneratorIdentity {
///         GeneratorIdentity::new("game:snow_caps", 1, 0)
///     }
///
///     fn apply(&self, column: &mut LayerColumn<'_>) -> Result<(), GenerateError> {
///         let snow = column.id("terrane:snow")?;
///         for (x, z) in column.places() {
///             if let Some(surface) = column.surface(x, z)? && surface.y > 30 {
///                 column.set_block(x, surface.y, z, snow);
///             }
///         }
///         Ok(())
///     }
/// }
///
/// let alps = Layers::new(Hills::seeded(7).with_amplitude(90.0)).with(SnowCaps);
/// # let mut blocks = terrane_world::block::BlockRegistry::new();
/// # blocks.register_basic_blocks();
/// # let column = terrane_world::space::ColumnPos::new(0, 0);
/// # alps.generate(&GenerateRequest { column, heights: -64..320, blocks: &blocks }).unwrap();
/// ```
pub trait GenerateLayer: Send + Sync + 'static {
    /// Name, version and a digest of the seed and all settings: a part of the generator's identity.
    fn identity(&self) -> GeneratorIdentity;

    /// The seed as the game gave it, for messages; `None` if there is none.
    fn own_seed(&self) -> Option<u64> {
        None
    }

    /// Changes a column.
    fn apply(&self, column: &mut LayerColumn<'_>) -> Result<(), GenerateError>;

    /// How many blocks above and below the block that it changes the layer looks at.
    fn vertical_reach(&self) -> u16 {
        0
    }

    /// What the layer makes of the surface below it: as it was, unless it says otherwise.
    ///
    /// A layer that raises, lowers, digs or covers the ground, or exchanges its highest block, answers so, and the
    /// layers above it stand on the right ground. Trees are no ground.
    fn surface(&self, request: &SurfaceRequest<'_>, below: Option<Surface>) -> Result<Option<Surface>, GenerateError> {
        let _ = request;
        Ok(below)
    }
}

/// A generator, and layers that change what it made, one after the other.
///
/// ```
/// use terrane_world::generation::*;
///
/// # fn main() -> Result<(), FeatureError> {
/// let forest = Placement::seeded(42).with_spacing(5).with_soil(["terrane:grass"]);
/// let overworld = Layers::new(Hills::seeded(42))
///     .with(Veins::seeded(42, "terrane:gravel").with_heights(-200..20))
///     .with(Caves::seeded(42))
///     .with(GroundCover::new("terrane:snow", "terrane:dirt").with_heights(35..i64::MAX))
///     .with(Features::new(forest).with(Tree::round(), 3)?.with(Tree::conifer(), 1)?);
/// # Ok(())
/// # }
/// ```
pub struct Layers {
    ground: SurfaceSource,
    layers: Vec<Box<dyn GenerateLayer>>,
}

impl Layers {
    /// A generator without layers.
    pub fn new(ground: impl Generator) -> Self {
        Self { ground: SurfaceSource::new(ground), layers: Vec::new() }
    }

    /// With one layer more, on top of all others.
    #[must_use]
    pub fn with(mut self, layer: impl GenerateLayer) -> Self {
        self.layers.push(Box::new(layer));
        self
    }

    /// The heights in which the surface is looked for if the generator below does not tell it. -512..1024 by default;
    /// the less, the faster.
    #[must_use]
    pub fn with_surface_search(mut self, heights: Range<i64>) -> Self {
        self.ground.search = heights;
        self
    }
}

impl Generator for Layers {
    fn identity(&self) -> GeneratorIdentity {
        let digest = self.ground.digest(Digest::new()).number(self.layers.len() as u64);
        let digest = self.layers.iter().fold(digest, |digest, layer| digest.identity(&layer.identity()));
        GeneratorIdentity::new("terrane:layers", 1, digest.finish())
    }

    /// Of the ground, or else of the first layer that has one.
    fn own_seed(&self) -> Option<u64> {
        self.ground.generator.own_seed().or_else(|| self.layers.iter().find_map(|layer| layer.own_seed()))
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        if request.heights.is_empty() {
            return Ok(Column::new(request.column));
        }
        // Every layer is right but for its reach within the edges of what it was given.
        let reach = self.layers.iter().fold(0i64, |sum, layer| sum.saturating_add(layer.vertical_reach().into()));
        let heights = request.heights.start.saturating_sub(reach)..request.heights.end.saturating_add(reach);
        let wide = GenerateRequest { heights: heights.clone(), ..request.clone() };
        let column = self.ground.generator.generate(&wide)?;
        let surfaces = Box::new([const { Cell::new(None) }; COLUMN_AREA]);
        let (blocks, ground) = (request.blocks, &self.ground);
        let mut changed = LayerColumn { column, heights, blocks, ground, surfaces, below: &[] };
        for (place, layer) in self.layers.iter().enumerate() {
            changed.below = &self.layers[..place];
            layer.apply(&mut changed)?;
        }
        let mut column = changed.column;
        cut(&mut column, &request.heights);
        Ok(column)
    }

    fn surface(&self, request: &SurfaceRequest<'_>) -> Result<SurfaceAnswer, GenerateError> {
        surface_of(self.ground.surface(request)?, &self.layers, request).map(SurfaceAnswer::Known)
    }
}

impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layers: Vec<_> = self.layers.iter().map(|layer| layer.identity().name).collect();
        f.debug_struct("Layers")
            .field("ground", &self.ground.generator.identity().name)
            .field("layers", &layers)
            .finish_non_exhaustive()
    }
}

/// What layers make of the surface of the ground.
fn surface_of(
    ground: Option<Surface>,
    layers: &[Box<dyn GenerateLayer>],
    request: &SurfaceRequest<'_>,
) -> Result<Option<Surface>, GenerateError> {
    layers.iter().try_fold(ground, |below, layer| layer.surface(request, below))
}
