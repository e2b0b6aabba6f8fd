//! What can be wrong with block types that are registered, or with the stored list of them.

use crate::block::{BlockComponentError, BlockId, BlockNameError, BlockStatesError};
use thiserror::Error;

/// Why a type of block cannot be registered, or a stored list of blocks cannot be used.
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
    /// A stored list does not begin with `terrane:air`.
    #[error("block 0 must be \"terrane:air\" without components, found {found:?}")]
    FirstIsNotAir {
        /// The first name of the list, if it has any.
        found: Option<String>,
    },
    /// A stored list has one name twice with the same components.
    #[error("blocks {first} and {second} are both named {name:?}, and have the same components")]
    DuplicateName {
        /// The first place of the name.
        first: BlockId,
        /// The second place of the name.
        second: BlockId,
        /// The name of both.
        name: String,
    },
    /// A stored name is not in its canonical form.
    #[error("block {id}: the properties of {name:?} are not in order")]
    NotCanonical {
        /// The block's place.
        id: BlockId,
        /// Its name.
        name: String,
    },
    /// A stored block has a component that is in no list.
    #[error("block {id}: {name:?} has a component {number:#x} that the list of components does not have")]
    NoSuchComponent {
        /// The block's place.
        id: BlockId,
        /// Its name.
        name: String,
        /// The component's number.
        number: u64,
    },
    /// The components of a stored block do not ascend.
    #[error("block {id}: the components of {name:?} are not in order")]
    ComponentOrder {
        /// The block's place.
        id: BlockId,
        /// Its name.
        name: String,
    },
    /// Every id is taken.
    #[error("there is no id left for {name:?}")]
    Full {
        /// The name of the type that found no place.
        name: String,
    },
    /// The states of a type cannot be listed.
    #[error(transparent)]
    States(#[from] BlockStatesError),
    /// A component cannot be registered, or a stored list of components cannot be used.
    #[error(transparent)]
    Component(#[from] BlockComponentError),
}

impl BlockRegistryError {
    /// Whether the game cannot read what the world holds, so that it must not be opened.
    pub(crate) fn is_schema_mismatch(&self) -> bool {
        matches!(self, Self::Component(error) if error.is_schema_mismatch())
    }
}

/// The values of a block's components cannot become those that its type has now.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BlockUpgradeError {
    /// There are more or fewer values than the block has components.
    #[error("block {block} has {expected} components, found {found} values")]
    Count {
        /// The block.
        block: BlockId,
        /// The number of its components.
        expected: usize,
        /// The number of values.
        found: usize,
    },
    /// One value cannot be used.
    #[error("block {block}: {source}")]
    Component {
        /// The block.
        block: BlockId,
        /// Which, and why not.
        source: BlockComponentError,
    },
}
