//! Types of blocks: their names, their properties and the stable numbers that chunks hold.
//!
//! A [`BlockRegistry`] gives every [`BlockType`] a [`BlockId`]. A world stores the registry's names in the order of
//! their ids, so a number keeps its meaning when the game later adds, removes or reorders its types.

mod block_type;
mod component_layout;
mod registry;

pub use block_type::BlockType;
pub use component_layout::{BlockLayout, ComponentId, ComponentLayout};
pub use registry::{BlockRegistry, BlockRegistryError};

use serde::{Deserialize, Serialize};
use std::fmt;

/// The number of a type of block in a [`BlockRegistry`]: its place in the order of registration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BlockId(u32);

impl BlockId {
    /// `terrane:air`, the first block of every registry.
    pub const AIR: Self = Self(0);

    /// The id with this number.
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// The number: the place in the registry.
    pub const fn index(self) -> u32 {
        self.0
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
