//! Numbers and sizes of block components.

use super::BlockId;
use std::fmt;

/// The number of a block component in a world: its place in the order of registration, with the highest bit set if the
/// component has a variable size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockComponentId(u64);

impl BlockComponentId {
    /// The bit that marks a component of variable size.
    pub(crate) const VARIABLE: u64 = 1 << 63;

    /// The component at this place of its world's list, with values of this size; `None` for a variable size.
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

    /// The number, including the highest bit.
    #[inline]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The component's place in its world's list.
    #[inline]
    pub const fn place(self) -> u64 {
        self.0 & !Self::VARIABLE
    }

    /// Returns `true` if the component has a variable size.
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

/// How a chunk lays out one component of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockComponentLayout {
    /// The component.
    pub id: BlockComponentId,
    /// The size of each value in bytes; `None` for a variable size.
    pub size: Option<u32>,
}

impl BlockComponentLayout {
    /// The value of a block that has not been set: zeros, or no bytes for a variable size.
    pub fn unset(&self) -> Vec<u8> {
        vec![0; self.size.map_or(0, |size| size as usize)]
    }
}

/// Provides the components of block types. A type always has the same components, so a chunk's blocks determine which
/// component values it holds.
pub trait BlockLayout {
    /// The components of a block type, by ascending number; none for an unknown type.
    fn components(&self, block: BlockId) -> &[BlockComponentLayout];

    /// One component of a block type; `None` if the type does not have it.
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
