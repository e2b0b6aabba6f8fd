//! Numbers and sizes of block components.

use super::BlockId;
use std::fmt;

/// The number of a block component in a world: in the order of registration, and with the highest bit set if its size
/// differs from block to block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockComponentId(u64);

impl BlockComponentId {
    /// Set in the number of a component whose size differs from block to block.
    pub(crate) const VARIABLE: u64 = 1 << 63;

    /// The component at this place of its world's list, with values of that size; `None` if the sizes differ.
    pub const fn at(place: usize, size: Option<u32>) -> Self {
        match size {
            Some(_) => Self(place as u64),
            None => Self(place as u64 | Self::VARIABLE),
        }
    }

    /// The component with this number.
    #[inline]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number, the highest bit included.
    #[inline]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The place in its world's list.
    #[inline]
    pub const fn place(self) -> u64 {
        self.0 & !Self::VARIABLE
    }

    /// Whether its size differs from block to block.
    #[inline]
    pub const fn is_variable(self) -> bool {
        self.0 & Self::VARIABLE != 0
    }
}

impl fmt::Display for BlockComponentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_variable() {
            true => write!(f, "{} (variable size)", self.place()),
            false => self.0.fmt(f),
        }
    }
}

/// How one component of a block is laid out in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockComponentLayout {
    /// Which component.
    pub id: BlockComponentId,
    /// The bytes of each; `None` if they differ from block to block.
    pub size: Option<u32>,
}

impl BlockComponentLayout {
    /// The value of a block that was given none: zeros, or no bytes if the sizes differ.
    pub fn unset(&self) -> Vec<u8> {
        vec![0; self.size.map_or(0, |size| size as usize)]
    }
}

/// Says which components a type of block has. A type always has the same ones, so that what a chunk holds follows from its
/// blocks.
pub trait BlockLayout {
    /// The components of a type of block, by ascending number; none for a type that is not known.
    fn components(&self, block: BlockId) -> &[BlockComponentLayout];

    /// One of the components of a type of block; `None` if the type does not have it.
    fn component_layout(&self, block: BlockId, id: BlockComponentId) -> Option<BlockComponentLayout> {
        self.components(block).iter().find(|layout| layout.id == id).copied()
    }
}

/// Every block has these components.
impl BlockLayout for Vec<BlockComponentLayout> {
    fn components(&self, _: BlockId) -> &[BlockComponentLayout] {
        self
    }
}

/// No block has components.
impl BlockLayout for () {
    fn components(&self, _: BlockId) -> &[BlockComponentLayout] {
        &[]
    }
}
