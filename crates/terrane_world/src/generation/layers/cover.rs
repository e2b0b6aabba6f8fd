//! [`GroundCover`].

use super::{GenerateLayer, LayerColumn};
use crate::block::BlockRegistry;
use crate::generation::digest::{Digest, GeneratorIdentity};
use crate::generation::generator::GenerateError;
use crate::generation::surface::{Surface, SurfaceRequest};
use std::ops::Range;

/// Replaces the surface of the ground between two heights by other blocks, such as snow on mountains or sand on a sea
/// floor. The ground does not get any higher.
#[derive(Clone, Debug)]
pub struct GroundCover {
    top: String,
    under: String,
    depth: u16,
    heights: Range<i64>,
    replaces: Vec<String>,
}

impl GroundCover {
    /// A surface of `top`, which must be solid, above three blocks of `under`, everywhere.
    pub fn new(top: impl Into<String>, under: impl Into<String>) -> Self {
        Self { top: top.into(), under: under.into(), depth: 3, heights: i64::MIN..i64::MAX, replaces: Vec::new() }
    }

    /// Sets the number of `under` blocks. Clamped to 0 ..= 256.
    #[must_use]
    pub fn with_depth(mut self, blocks: u16) -> Self {
        self.depth = blocks.min(256);
        self
    }

    /// Restricts the cover to surfaces within these heights.
    #[must_use]
    pub fn with_heights(mut self, heights: Range<i64>) -> Self {
        self.heights = heights;
        self
    }

    /// Restricts the cover to surfaces of these blocks. If empty, the default, any surface is covered.
    #[must_use]
    pub fn with_replaced<N: Into<String>>(mut self, blocks: impl IntoIterator<Item = N>) -> Self {
        self.replaces = blocks.into_iter().map(Into::into).collect();
        self
    }

    fn covers(&self, surface: Surface, blocks: &BlockRegistry) -> bool {
        let replaced =
            self.replaces.is_empty() || self.replaces.iter().any(|name| blocks.id(name) == Some(surface.block));
        replaced && self.heights.contains(&surface.y)
    }
}

impl GenerateLayer for GroundCover {
    fn identity(&self) -> GeneratorIdentity {
        let digest = Digest::new().text(&self.top).text(&self.under).number(self.depth.into()).heights(&self.heights);
        GeneratorIdentity::new("terrane:ground_cover", 1, digest.texts(&self.replaces).finish())
    }

    fn apply(&self, column: &mut LayerColumn<'_>) -> Result<(), GenerateError> {
        let (top, under) = (column.id(&self.top)?, column.id(&self.under)?);
        for (x, z) in column.places() {
            let Some(surface) = column.surface(x, z)?.filter(|surface| self.covers(*surface, column.blocks())) else {
                continue;
            };
            column.set_block(x, surface.y, z, top);
            for y in (1..=i64::from(self.depth)).map_while(|depth| surface.y.checked_sub(depth)) {
                // Hollow places stay hollow.
                if column.block(x, y, z).is_some_and(|block| column.blocks().block(block).is_solid()) {
                    column.set_block(x, y, z, under);
                }
            }
        }
        Ok(())
    }

    fn surface(&self, request: &SurfaceRequest<'_>, below: Option<Surface>) -> Result<Option<Surface>, GenerateError> {
        let block = request.block(&self.top)?;
        Ok(below.map(|below| if self.covers(below, request.blocks) { Surface { block, ..below } } else { below }))
    }
}
