//! [`Tree`].

use super::{Feature, FeatureCanvas, FeatureReach};
use crate::block::BlockId;
use crate::generation::digest::{Digest, GeneratorIdentity};
use crate::generation::generator::GenerateError;
use std::ops::RangeInclusive;

/// A trunk with a crown of leaves. Leaves only replace air, so trees that touch each other stay whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    shape: TreeShape,
    trunk: RangeInclusive<u8>,
    crown: u8,
    wood: String,
    leaves: String,
}

/// The shape of a [`Tree`]'s crown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeShape {
    /// A ball around the end of the trunk.
    Round,
    /// A cone around the trunk, in tiers, from its third block up.
    Conifer,
    /// A flat roof on the trunk.
    Umbrella,
}

impl Tree {
    /// A tree with trunks of these lengths and a crown that reaches this far from the trunk to either side, in blocks.
    ///
    /// Trunks are clamped to 1 ..= 64 blocks, crowns to 0 ..= 16.
    pub fn new(shape: TreeShape, trunk: RangeInclusive<u8>, crown: u8) -> Self {
        let shortest = (*trunk.start()).clamp(1, 64);
        let trunk = shortest..=(*trunk.end()).clamp(shortest, 64);
        let [wood, leaves] = ["terrane:wood", "terrane:leaves"].map(str::to_owned);
        Self { shape, trunk, crown: crown.min(16), wood, leaves }
    }

    /// A broad-leaved tree, four to six blocks high, with a crown of two blocks to either side.
    pub fn round() -> Self {
        Self::new(TreeShape::Round, 4..=6, 2)
    }

    /// A conifer, six to nine blocks high.
    pub fn conifer() -> Self {
        Self::new(TreeShape::Conifer, 6..=9, 2)
    }

    /// An umbrella tree of the savannah.
    pub fn umbrella() -> Self {
        Self::new(TreeShape::Umbrella, 5..=7, 3)
    }

    /// Replaces `terrane:wood` and `terrane:leaves` by other blocks.
    #[must_use]
    pub fn with_blocks(mut self, wood: impl Into<String>, leaves: impl Into<String>) -> Self {
        self.wood = wood.into();
        self.leaves = leaves.into();
        self
    }

    /// The number of blocks by which the leaves rise above the trunk.
    fn above_trunk(&self) -> i64 {
        match self.shape {
            TreeShape::Round => self.crown.into(),
            TreeShape::Conifer | TreeShape::Umbrella => 1,
        }
    }

    /// Returns `true` if there are leaves at this distance from the trunk along x and z, at a height above the ground.
    fn has_leaves(&self, trunk: i64, [x, y, z]: [i64; 3]) -> bool {
        let crown = i64::from(self.crown);
        let up = y - trunk;
        let distance_squared = x * x + z * z;
        match self.shape {
            TreeShape::Round => distance_squared <= crown * crown + 1 - up * up,
            TreeShape::Conifer if y < 3 => false,
            TreeShape::Conifer => {
                // Wide and narrow tiers alternate, growing wider from the tip downwards.
                let below = trunk + 1 - y;
                let wide = (crown * below + trunk - 2) / (trunk - 1).max(1);
                let radius = if below % 2 == 0 { wide } else { (wide - 1).max(i64::from(below > 1)) };
                x.abs() + z.abs() <= radius.min(crown)
            }
            TreeShape::Umbrella if up == 0 => distance_squared <= crown * crown + 1,
            TreeShape::Umbrella if up == 1 => distance_squared <= (crown - 1).max(0).pow(2),
            TreeShape::Umbrella => false,
        }
    }
}

impl Feature for Tree {
    fn identity(&self) -> GeneratorIdentity {
        let shape = match self.shape {
            TreeShape::Round => 0,
            TreeShape::Conifer => 1,
            TreeShape::Umbrella => 2,
        };
        let numbers = [shape, *self.trunk.start(), *self.trunk.end(), self.crown];
        let digest = Digest::new().bytes(&numbers).text(&self.wood).text(&self.leaves);
        GeneratorIdentity::new("terrane:tree", 1, digest.finish())
    }

    fn reach(&self) -> FeatureReach {
        let up = u32::from(*self.trunk.end()) + self.above_trunk() as u32;
        FeatureReach { horizontal: self.crown.into(), up, down: 0 }
    }

    fn draw(&self, canvas: &mut FeatureCanvas<'_, '_>) -> Result<(), GenerateError> {
        let (wood, leaves) = (canvas.id(&self.wood)?, canvas.id(&self.leaves)?);
        let lengths = 1 + u32::from(self.trunk.end() - self.trunk.start());
        let trunk = i64::from(*self.trunk.start()) + i64::from(canvas.random().below(lengths));
        // Leaves of other trees give way to the trunk; all other blocks stay.
        let give_way = |old: BlockId| if old == BlockId::AIR || old == leaves { wood } else { old };
        let crown = i64::from(self.crown);
        for y in 1..=trunk + self.above_trunk() {
            for (x, z) in (-crown..=crown).flat_map(|x| (-crown..=crown).map(move |z| (x, z))) {
                if self.has_leaves(trunk, [x, y, z]) {
                    canvas.set_in_air([x, y, z], leaves);
                }
            }
        }
        for y in 1..=trunk {
            canvas.replace([0, y, 0], give_way);
        }
        Ok(())
    }
}
