//! Numbers and sizes of block components.

use super::BlockId;
use std::fmt;

/// The number of a block component in a world: in the order of registration, and with the highest bit set if its size
/// differs from block to block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentId(u64);

impl ComponentId {
    /// Set in the number of a component whose size differs from block to block.
    pub const VARIABLE: u64 = 1 << 63;

    /// The component with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number, the highest bit included.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Whether its size differs from block to block.
    pub const fn is_variable(self) -> bool {
        self.0 & Self::VARIABLE != 0
    }
}

impl fmt::Display for ComponentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_variable() {
            true => write!(f, "{} (variable size)", self.0 & !Self::VARIABLE),
            false => self.0.fmt(f),
        }
    }
}

/// How one component of a block is laid out in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ComponentLayout {
    /// Which component.
    pub id: ComponentId,
    /// The bytes of each; `None` if they differ from block to block.
    pub size: Option<u32>,
}

/// Says which components a type of block has. A type always has the same ones, so that what a chunk holds follows from its
/// blocks.
pub trait BlockLayout {
    /// The components of a type of block, by ascending number; none for a type that is not known.
    fn components(&self, block: BlockId) -> &[ComponentLayout];
}
