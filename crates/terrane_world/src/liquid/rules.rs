//! The description of a liquid, and its block types.

use crate::block::{BlockShape, BlockStates, BlockType, tags};

/// The highest number of steps that a liquid flows to the side.
pub const MAX_STEPS: u8 = 7;

/// The property that distinguishes the states of a liquid.
pub(super) const LEVEL: &str = "level";
/// The level of a cell that falls.
pub(super) const FALLING: &str = "falling";

/// The states of a liquid, from the type of its source: the property `level` is `8` for a source, `7` to `1` for flowing cells with
/// that height in eighths, and `falling`. All get the tag [`NOTICES`](tags::NOTICES).
///
/// Worlds that already have the block without a level keep it as the source.
pub fn liquid_states(source: BlockType) -> BlockStates {
    BlockStates::new(source.with_tag(tags::NOTICES).with_shape(BlockShape::Liquid { level: 8 }))
        .with_property(LEVEL, ["8", "7", "6", "5", "4", "3", "2", "1", FALLING])
        .varied_by(|state| {
            let level = state.property(LEVEL).and_then(|level| level.parse().ok()).unwrap_or(8);
            state.with_shape(BlockShape::Liquid { level })
        })
}

/// Returns `true` if the block is a liquid that falls.
pub(crate) fn is_falling(block: &BlockType) -> bool {
    block.property(LEVEL) == Some(FALLING) && matches!(block.shape(), BlockShape::Liquid { .. })
}

/// The rules of one liquid, whose block types were made by [`liquid_states`]. By default it flows 7 steps to the side, one step in 5
/// ticks, and its sources do not renew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiquidRules {
    pub(super) block: String,
    pub(super) steps: u8,
    pub(super) delay: u64,
    pub(super) renews: bool,
    pub(super) meetings: Vec<(String, String)>,
}

impl LiquidRules {
    /// The rules of the liquid with this name, without properties.
    pub fn new(block: impl Into<String>) -> Self {
        Self { block: block.into(), steps: MAX_STEPS, delay: 5, renews: false, meetings: Vec::new() }
    }

    /// The same rules, but flowing this many steps to the side, 1 to [`MAX_STEPS`].
    pub fn with_steps(mut self, steps: u8) -> Self {
        self.steps = steps.clamp(1, MAX_STEPS);
        self
    }

    /// The same rules, but with this many ticks for each step, at least 2.
    pub fn with_delay(mut self, ticks: u64) -> Self {
        self.delay = ticks.max(2);
        self
    }

    /// The same rules, but two sources make a third one between them.
    pub fn renewing(mut self) -> Self {
        self.renews = true;
        self
    }

    /// The same rules, and a cell of this liquid becomes the block `becomes` if it touches a cell of the liquid `other` on any face.
    /// Without a meeting, liquids stop each other.
    pub fn with_meeting(mut self, other: impl Into<String>, becomes: impl Into<String>) -> Self {
        self.meetings.push((other.into(), becomes.into()));
        self
    }

    /// The height in eighths of a cell that is `step` steps away from its source, 1 to `steps`.
    pub(super) fn level(&self, step: u8) -> u8 {
        let left = 8 * (self.steps + 1 - step);
        left.div_ceil(self.steps + 1).clamp(1, 7)
    }
}
