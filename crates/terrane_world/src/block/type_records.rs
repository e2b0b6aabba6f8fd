//! What a world stores of its block types.

use serde::{Deserialize, Serialize};

/// What a world stores of a block: the block's number is the place in the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockRecord {
    /// The name with its properties.
    pub name: String,
    /// The numbers of its components, ascending.
    pub components: Vec<u64>,
}

/// What a world stores of a block component, so that values can be read whose component the game has dropped. Its number
/// is the place in the list, with the highest bit set if it has no fixed size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockComponentRecord {
    /// The name.
    pub name: String,
    /// The version of its schema.
    pub version: u32,
    /// The bytes of each value; `None` if they differ from block to block.
    pub size: Option<u32>,
}
