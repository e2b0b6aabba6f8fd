//! What can be wrong with block types that are registered, with the stored list of them, and with their values.

use crate::block::{BlockComponentError, BlockId, BlockNameError};
use thiserror::Error;

/// Why a type of block cannot be registered, a stored list of blocks cannot be used, or a block cannot become what its type
/// is now.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BlockRegistryError {
    /// A name is not one.
    #[error("block {id}: {name:?} is no name of a block: {source}")]
    InvalidName {
        /// The id that the block would have.
        id: BlockId,
        /// The name as given.
        name: String,
        /// What is wrong with it.
        source: BlockNameError,
    },
    /// The name of a tag is not one.
    #[error("{name:?}: its tag {tag:?} is not `namespace:path` of a-z, 0-9, `_`, `-`, `.` and `/`")]
    InvalidTag {
        /// The block's name.
        name: String,
        /// The tag as given.
        tag: String,
    },
    /// The game registered two types under one name, or one under what another was called before.
    #[error("{name:?} is already registered, as block {id}")]
    AlreadyRegistered {
        /// The id of the type registered first.
        id: BlockId,
        /// The name of both.
        name: String,
    },
    /// The game has not registered a component of the block before the block.
    #[error(
        "{name:?}: its component {component:?} is not registered; register components before the blocks that have them"
    )]
    UnknownComponent {
        /// The block's name.
        name: String,
        /// The component's name.
        component: String,
    },
    /// A stored list of blocks is not what this crate writes.
    #[error("block {id}: {what}")]
    Stored {
        /// The place in the list.
        id: BlockId,
        /// What was expected there, and what was found.
        what: String,
    },
    /// Every id is taken.
    #[error("there is no id left for {name:?}")]
    Full {
        /// The name of the type that found no place.
        name: String,
    },
    /// The states of a type cannot be listed.
    #[error("{block}: {what}")]
    States {
        /// The type's name.
        block: String,
        /// What is wrong with its name or its properties.
        what: String,
    },
    /// There are more or fewer values than a block has components.
    #[error("block {block} has {expected} components, found {found} values")]
    Count {
        /// The block.
        block: BlockId,
        /// The number of its components.
        expected: usize,
        /// The number of values.
        found: usize,
    },
    /// The value of a component of a block cannot become one that its type has now.
    #[error("block {block}: {source}")]
    Value {
        /// The block.
        block: BlockId,
        /// Which, and why not.
        source: BlockComponentError,
    },
    /// A component cannot be registered, or a stored list of components cannot be used.
    #[error(transparent)]
    Component(#[from] BlockComponentError),
}

impl BlockRegistryError {
    /// Whether the game cannot read what the world holds, so that it must not be opened.
    #[doc(hidden)]
    pub fn is_schema_mismatch(&self) -> bool {
        matches!(self, Self::Component(error) if error.is_schema_mismatch())
    }
}
