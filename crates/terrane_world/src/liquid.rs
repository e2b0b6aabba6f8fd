//! Liquids that spread and dry: plain rules over cells.
//!
//! [`liquid_states`] makes the block types of a liquid, [`LiquidRules`] describe it, and [`Liquids::flow`] tells what happens at one
//! cell. It only reads blocks; the caller makes the changes, and looks again at each liquid cell that was changed or
//! has a changed neighbor.
//!
//! The state of a cell follows from its neighbors:
//!
//! | the cell | becomes |
//! |---|---|
//! | is a source | stays a source |
//! | has the liquid above it | falling |
//! | is beside a cell of the liquid that flows into it | one step further from the source than that cell |
//! | is flowing, and none of these | dry |
//!
//! * A cell of air, or of what is [washed away](crate::block::tags::WASHED_AWAY), is *open*. So is a cell of
//!   [porous](crate::block::tags::POROUS) blocks, with which the liquid shares the cell, in a layer of its own. A liquid passes through
//!   open cells that are dry, and through its own flowing cells.
//! * Nothing passes through a face that a solid block on either side [closes](crate::block::BlockShape::closed_faces): the bottom of a
//!   slab, the bottom and one side of stairs, no face of a fence, all faces of a cube.
//! * A source can share its cell with any block, in any layer, and flows out through the faces that are not closed. Flowing liquid dries
//!   where the other blocks are not porous.
//! * A cell flows to its sides only if the cell below stops it: solid ground, or a source. It flows towards the nearest drop, which
//!   is the nearest place from which the liquid can fall, at most [`SEARCH`] steps away. Without one, it flows to all sides.
//! * A cell that falls has the step 0, like a source.
//! * If the liquid renews, a cell with sources at two or more sides, and below it a cell that stops it, becomes a source.
//! * A cell that touches another liquid may become a block, such as stone: see [`LiquidRules::with_meeting`]. A cell with other blocks
//!   never does.
//!
//! Where the liquid flows depends only on the sources and on the blocks that stop it, and not on what flows already. So a flood over
//! given ground always ends in the same state, in whatever order the cells are looked at (unless liquids meet). After a
//! change of the ground, a cell that is not beside it keeps its direction until it is looked at again.
//!
//! Near ground that is not loaded, the outcome may be unknown. A cell then waits, unless it can only dry: a flowing cell stays wet
//! if it is beside or below such ground, or if it may come from a cell that is nearer to the source.

mod flow;
mod table;
#[cfg(test)]
mod tests;

pub use flow::{Flow, SEARCH};
pub use table::{LiquidCell, LiquidError, Liquids};

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
