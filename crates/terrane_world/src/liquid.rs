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
mod rules;
mod table;
#[cfg(test)]
mod tests;

pub use flow::{Flow, SEARCH};
pub(crate) use rules::is_falling;
pub use rules::{LiquidRules, MAX_STEPS, liquid_states};
pub use table::{LiquidCell, LiquidError, Liquids};
