//! The names of the tags that the crate itself knows. A game gives them to its types with
//! [`BlockType::with_tag`](super::BlockType::with_tag).

/// The block hears of changes: of its own, and of those of its six neighbors.
pub const NOTICES: &str = "terrane:notices";
/// Some of these blocks, chosen at random, get a random tick.
pub const RANDOM_TICKS: &str = "terrane:random_ticks";
/// The block falls if nothing solid is below it. It also needs [`NOTICES`].
pub const FALLS: &str = "terrane:falls";
/// Bodies and walkers climb where such a block is, like a ladder.
pub const CLIMBABLE: &str = "terrane:climbable";
/// Liquids and falling blocks take the place of the block, such as a flower.
pub const WASHED_AWAY: &str = "terrane:washed_away";
/// Liquids flow into the place of the block and share it, such as that of a fence. They pass through the faces that its shape does
/// not close.
pub const POROUS: &str = "terrane:porous";
