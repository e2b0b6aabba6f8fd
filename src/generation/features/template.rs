//! A feature that is always the same.

use super::{Feature, FeatureCanvas, FeatureError, FeatureReach};
use crate::generation::digest::Digest;
use crate::generation::generator::{GenerateError, GeneratorIdentity};

/// Blocks that a template may have.
const MAX_BLOCKS: usize = 32_768;

/// A fixed set of blocks, such as a hut: the same wherever it stands.
///
/// ```
/// # use bevy_terrane::generation::{FeatureError, FeatureTemplate};
/// # fn main() -> Result<(), FeatureError> {
/// // A wall of wood, five blocks wide and three high, on the ground.
/// let wall = (-2..=2).flat_map(|x| (1..=3).map(move |y| ([x, y, 0], "terrane:wood")));
/// let fence = FeatureTemplate::new("game:wall", wall)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureTemplate {
    name: String,
    /// Every block that occurs, once.
    palette: Vec<String>,
    /// Offset along x, y and z, and place in the palette.
    blocks: Vec<([i64; 3], usize)>,
}

impl FeatureTemplate {
    /// These blocks, (offset from the highest block of the ground along x, y and z, name), set in this order whatever
    /// was there before. `terrane:air` clears.
    ///
    /// # Errors
    /// If they are more than 32,768.
    pub fn new<N: Into<String>>(
        name: impl Into<String>,
        blocks: impl IntoIterator<Item = ([i64; 3], N)>,
    ) -> Result<Self, FeatureError> {
        let mut template = Self { name: name.into(), palette: Vec::new(), blocks: Vec::new() };
        for (offset, block) in blocks {
            template.push(offset, block.into());
        }
        match template.blocks.len() {
            0..=MAX_BLOCKS => Ok(template),
            blocks => Err(FeatureError::TooManyBlocks { feature: template.name, blocks, limit: MAX_BLOCKS }),
        }
    }

    fn push(&mut self, offset: [i64; 3], block: String) {
        let known = self.palette.iter().position(|known| *known == block);
        let place = known.unwrap_or_else(|| {
            self.palette.push(block);
            self.palette.len() - 1
        });
        self.blocks.push((offset, place));
    }
}

impl Feature for FeatureTemplate {
    fn identity(&self) -> GeneratorIdentity {
        let digest = self.blocks.iter().fold(Digest::new().texts(&self.palette), |digest, (offset, place)| {
            offset.iter().fold(digest, |digest, along| digest.number(*along as u64)).number(*place as u64)
        });
        GeneratorIdentity::new(self.name.clone(), 1, digest.finish())
    }

    fn reach(&self) -> FeatureReach {
        let farthest = |distance: &dyn Fn([i64; 3]) -> u64| {
            let farthest = self.blocks.iter().map(|(offset, _)| distance(*offset)).max().unwrap_or(0);
            u32::try_from(farthest).unwrap_or(u32::MAX)
        };
        FeatureReach {
            horizontal: farthest(&|[x, _, z]| x.unsigned_abs().max(z.unsigned_abs())),
            up: farthest(&|[_, y, _]| y.max(0).unsigned_abs()),
            down: farthest(&|[_, y, _]| y.min(0).unsigned_abs()),
        }
    }

    fn draw(&self, canvas: &mut FeatureCanvas<'_, '_>) -> Result<(), GenerateError> {
        let palette = self.palette.iter().map(|name| canvas.id(name)).collect::<Result<Vec<_>, _>>()?;
        self.blocks.iter().for_each(|(offset, place)| canvas.set(*offset, palette[*place]));
        Ok(())
    }
}
