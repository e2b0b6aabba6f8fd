//! A constant feature for tests.

use super::{Feature, FeatureCanvas, FeatureReach};
use crate::generation::digest::{Digest, GeneratorIdentity};
use crate::generation::generator::GenerateError;

/// Blocks by their offset from the highest block of the ground, along x, y and z; `terrane:air` clears.
pub(in crate::generation) struct Template {
    pub name: &'static str,
    pub blocks: Vec<([i64; 3], &'static str)>,
}

impl Feature for Template {
    fn identity(&self) -> GeneratorIdentity {
        let digest = self.blocks.iter().fold(Digest::new(), |digest, (offset, block)| {
            offset.iter().fold(digest, |digest, along| digest.number(*along as u64)).text(block)
        });
        GeneratorIdentity::new(self.name, 1, digest.finish())
    }

    fn reach(&self) -> FeatureReach {
        let farthest = |distance: &dyn Fn([i64; 3]) -> i64| {
            self.blocks.iter().map(|(offset, _)| distance(*offset)).max().unwrap_or(0) as u32
        };
        FeatureReach {
            horizontal: farthest(&|[x, _, z]| x.abs().max(z.abs())),
            up: farthest(&|[_, y, _]| y.max(0)),
            down: farthest(&|[_, y, _]| -y.min(0)),
        }
    }

    fn draw(&self, canvas: &mut FeatureCanvas<'_, '_>) -> Result<(), GenerateError> {
        for (offset, block) in &self.blocks {
            let block = canvas.id(block)?;
            canvas.set(*offset, block);
        }
        Ok(())
    }
}
