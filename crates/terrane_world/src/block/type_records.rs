//! The records that a world stores of its block types.

use serde::{Deserialize, Serialize};

/// The stored record of a block. The block's number is its place in the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockRecord {
    /// The name with its properties.
    pub name: String,
    /// The numbers of its components, ascending.
    pub components: Vec<u64>,
}

/// The stored record of a block component. With it, values stay readable after the game has removed the component. The
/// component's number is its place in the list, with the highest bit set if it has a variable size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockComponentRecord {
    /// The name.
    pub name: String,
    /// The version of its schema.
    pub version: u32,
    /// The size of each value in bytes; `None` for a variable size.
    pub size: Option<u32>,
}
