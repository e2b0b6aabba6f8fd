//! Paths for walkers over the ground: A* within [`PATH_REACH`] blocks.
//!
//! A [`WalkTable`] holds what the block types mean to a [`Walker`], and [`WalkableGround`] joins it with chunks. A [`PathSearch`]
//! then looks for the cheapest [`Path`], in as many steps at a time as it is given.
//!
//! A walker takes whole cells, as many as its width needs, and whole sixteenths of a block in height. A *place* is its lowest cell
//! corner and the height of its feet. The boxes of a solid [shape](crate::block::BlockShape) count over the whole cell, layer by
//! layer, so a walker never squeezes past a half block, but it stands only on what is under its middle. They are as tall as the
//! [collision height](crate::block::BlockType::with_collision_height) of their type, also in the cell above. A ladder takes no room if the
//! walker fits beside it, and nothing passes through it.
//!
//! | move | to | condition | cost |
//! |---|---|---|---|
//! | walk | one of the eight neighbors, at the same height | a diagonal needs both corners free | 1, or 1.41 for a diagonal |
//! | step up | a floor up to [`Walker::step`] higher | room above the head. Stairs have two steps on their low side. | as a walk |
//! | jump | a floor up to [`Walker::jump`] higher | room above the head, also over the floor for the way down from the top of a jump | 0.5 more |
//! | leave | a floor up to 1 block higher, but no higher than the top of a ladder, or than [`BANK_HEIGHT`] over a liquid | the same, a floor as wide as its cell, and straight out of a liquid | 0.5 more if it is no step |
//! | fall | the first floor, ladder or liquid below a neighbor | up to [`Walker::fall`] blocks, and any height into a liquid | 0.2 more per block |
//! | swim, climb | the cell above or below | a liquid or ladder there | 1 per block |
//!
//! A walker swims where more than [`SWIMS_FROM`] of its height is in a liquid, and wades otherwise. What holds a wide walker is at the middle
//! of its feet. It falls through a liquid that hangs in the air, and past the lowest block of a ladder that does. Onto a floor under which
//! it fits, it does not step up, and jumps only if it gets 5/16 above it.
//!
//! The cost of a walk, a swim or a climb is multiplied by the factor of the block at the feet or under them, whichever is higher.
//! Ground that is not loaded is closed to walkers.

mod ground;
mod moves;
mod route;
mod search;
mod table;
#[cfg(test)]
mod tests;

pub use ground::WalkableGround;
pub use route::{Path, Waypoint};
pub use search::PathSearch;
pub use table::{WalkTable, Walker};

/// A search looks at places up to this many blocks from its start, on each axis.
pub const PATH_REACH: i64 = 64;

/// A walker swims if more than this share of its height is in a liquid.
pub const SWIMS_FROM: f32 = 0.4;

/// A swimmer gets over a bank that is up to this much higher than the liquid, in blocks.
pub const BANK_HEIGHT: f32 = 9.0 / 16.0;

/// Heights are in sixteenths of a block.
const LAYERS: i32 = 16;
/// The cost of a straight step. Costs are in hundredths of it.
const STRAIGHT: u32 = 100;
const DIAGONAL: u32 = 141;
const JUMP: u32 = 50;
/// The cost of falling one block.
const FALL: u32 = 20;

/// The place of a walker, relative to an origin: its lowest cells, and the height of its feet in sixteenths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Place {
    x: i32,
    z: i32,
    feet: i32,
}
