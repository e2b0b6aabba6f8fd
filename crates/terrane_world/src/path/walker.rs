//! [`Walker`]: what moves along a path.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The size and the abilities of a walker. Lengths are in blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Walker {
    /// The width along x and z, up to 16. A walker takes as many cells as its width needs, and at least one.
    pub width: f32,
    /// The height, up to 64.
    pub height: f32,
    /// The highest step that costs nothing extra.
    pub step: f32,
    /// The highest jump. It needs room above its top, and the walker comes down from there.
    pub jump: f32,
    /// The deepest fall onto ground. A walker that swims falls into liquids from any height.
    pub fall: f32,
    /// The factor of the cost of moving in liquids. Without one, the walker keeps out of them.
    pub swim: Option<f32>,
    /// Whether the walker climbs blocks with the tag [`CLIMBABLE`](crate::block::tags::CLIMBABLE).
    pub climb: bool,
    /// Factors of the cost of blocks, by tag or by the name of the type. They are at least 1. An infinite factor closes a block, so
    /// that the walker neither touches it nor stands on it. The highest factor of a block counts.
    pub costs: Vec<(Cow<'static, str>, f32)>,
}

impl Default for Walker {
    /// As big as a person: 0.6 wide and 1.8 high.
    fn default() -> Self {
        Self {
            width: 0.6,
            height: 1.8,
            step: 0.6,
            jump: 1.0,
            fall: 3.0,
            swim: Some(2.0),
            climb: true,
            costs: Vec::new(),
        }
    }
}

impl Walker {
    /// The same walker with this width and height.
    pub const fn with_size(mut self, width: f32, height: f32) -> Self {
        (self.width, self.height) = (width, height);
        self
    }

    /// The same walker with a factor of the cost of blocks, by tag or by the name of the type.
    pub fn with_cost(mut self, blocks: impl Into<Cow<'static, str>>, factor: f32) -> Self {
        self.costs.push((blocks.into(), factor));
        self
    }
}
