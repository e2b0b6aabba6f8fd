//! [`Layers`]: a generator in steps, with layers that change its ground one after the other.

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

use super::COLUMN_AREA;
use super::digest::{Digest, GeneratorIdentity};
use super::generator::{GenerateError, GenerateRequest, Generator};
use super::surface::{Surface, SurfaceAnswer, SurfaceRequest, SurfaceSource};
use crate::chunk::Column;
use std::cell::Cell;
use std::fmt;
use std::ops::Range;

/// One step of a generator, which changes the result of the steps below it. See [`Layers`].
///
/// Like a [`Generator`], a layer is a pure function. The block that it sets at a place may depend on
///
/// * the place and the layer's own settings,
/// * the blocks of the same column at most [`vertical_reach`](Self::vertical_reach) above or below that place,
/// * the [`surface`](LayerColumn::surface) at this and any other place,
///
/// and on nothing else, especially not on the [heights](LayerColumn::heights) that are requested.
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
    /// The name, the version and a digest of the seed and all settings: a part of the generator's identity.
    fn identity(&self) -> GeneratorIdentity;

    /// The seed that the game gave, for messages; `None` if there is none.
    fn own_seed(&self) -> Option<u64> {
        None
    }

    /// Changes a column.
    fn apply(&self, column: &mut LayerColumn<'_>) -> Result<(), GenerateError>;

    /// The distance in blocks that the layer looks above and below the block that it changes.
    fn vertical_reach(&self) -> u16 {
        0
    }

    /// The surface after this layer, given the surface below it. By default it is unchanged.
    ///
    /// A layer that raises, lowers, digs or covers the ground, or replaces its highest block, must return the new
    /// surface, so that the layers above stand on the right ground. Trees are not ground.
    fn surface(&self, request: &SurfaceRequest<'_>, below: Option<Surface>) -> Result<Option<Surface>, GenerateError> {
        let _ = request;
        Ok(below)
    }
}

/// A generator, and layers that change its ground one after the other.
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

    /// Adds a layer on top of all others.
    #[must_use]
    pub fn with(mut self, layer: impl GenerateLayer) -> Self {
        self.layers.push(Box::new(layer));
        self
    }

    /// Sets the heights in which to search the surface if the generator below cannot compute it. -512..1024 by
    /// default; fewer heights are faster.
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

    /// The seed of the ground, or else of the first layer that has one.
    fn own_seed(&self) -> Option<u64> {
        self.ground.generator.own_seed().or_else(|| self.layers.iter().find_map(|layer| layer.own_seed()))
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        if request.heights.is_empty() {
            return Ok(Column::new(request.column));
        }
        // Every layer is correct except within its reach of the edges of its input.
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

/// The surface of the ground after all layers.
fn surface_of(
    ground: Option<Surface>,
    layers: &[Box<dyn GenerateLayer>],
    request: &SurfaceRequest<'_>,
) -> Result<Option<Surface>, GenerateError> {
    layers.iter().try_fold(ground, |below, layer| layer.surface(request, below))
}
