//! Errors of registering block types, of reading stored lists of types, and of converting values.

use crate::block::{BlockComponentError, BlockId, BlockNameError};
use thiserror::Error;

/// The error for a block type that cannot be registered, a stored list of blocks that cannot be used, or a block that
/// cannot be converted to its current type.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BlockRegistryError {
    /// A name is invalid.
    #[error("block {id}: {name:?} is not a valid block name: {source}")]
    InvalidName {
        /// The id that the block would have.
        id: BlockId,
        /// The name as given.
        name: String,
        /// The fault in the name.
        source: BlockNameError,
    },
    /// The name of a tag is invalid.
    #[error("{name:?}: its tag {tag:?} is not `namespace:path` of a-z, 0-9, `_`, `-`, `.` and `/`")]
    InvalidTag {
        /// The block's name.
        name: String,
        /// The tag as given.
        tag: String,
    },
    /// A type shines too brightly.
    #[error("{name:?}: its light is {level}, and must be 0 to 15")]
    InvalidLight {
        /// The block's name.
        name: String,
        /// The level as given.
        level: u8,
    },
    /// A type takes too much light.
    #[error("{name:?}: its attenuation of light is {attenuation}, and must be 0 to 15")]
    InvalidAttenuation {
        /// The block's name.
        name: String,
        /// The attenuation as given.
        attenuation: u8,
    },
    /// The collision height of a type is more than two blocks.
    #[error("{name:?}: its collision height is {height} sixteenths, and must be 0 to 32")]
    InvalidCollisionHeight {
        /// The block's name.
        name: String,
        /// The height as given.
        height: u8,
    },
    /// The game registered two types under one name, or a type under a former name of another.
    #[error("{name:?} is already registered, as block {id}")]
    AlreadyRegistered {
        /// The id of the type that was registered first.
        id: BlockId,
        /// The name that both types share.
        name: String,
    },
    /// The game registered a block before one of its components.
    #[error(
        "{name:?}: its component {component:?} is not registered; register components before the blocks that have them"
    )]
    UnknownComponent {
        /// The block's name.
        name: String,
        /// The component's name.
        component: String,
    },
    /// A stored list of blocks is damaged or was not written by this crate.
    #[error("block {id}: {what}")]
    Stored {
        /// The place in the list.
        id: BlockId,
        /// The expected and the found content.
        what: String,
    },
    /// All ids are in use.
    #[error("there is no id left for {name:?}")]
    Full {
        /// The name of the rejected type.
        name: String,
    },
    /// The states of a type cannot be listed.
    #[error("{block}: {what}")]
    States {
        /// The type's name.
        block: String,
        /// The fault in its name or properties.
        what: String,
    },
    /// The number of values differs from the number of the block's components.
    #[error("block {block} has {expected} components, found {found} values")]
    Count {
        /// The block.
        block: BlockId,
        /// The number of its components.
        expected: usize,
        /// The number of values.
        found: usize,
    },
    /// The value of a block's component cannot be converted to the type's current component.
    #[error("block {block}: {source}")]
    Value {
        /// The block.
        block: BlockId,
        /// The value's component, and the reason.
        source: BlockComponentError,
    },
    /// The game runs already, and its list of blocks is complete.
    #[error("{name:?} was registered while the app runs: register it while the app is built, before App::run")]
    TooLate {
        /// The name of the block or block component.
        name: String,
    },
    /// A component cannot be registered, or a stored list of components cannot be used.
    #[error(transparent)]
    Component(#[from] BlockComponentError),
}

impl BlockRegistryError {
    /// Returns `true` if the game cannot read the world's data, so the world must not be opened.
    #[doc(hidden)]
    pub fn is_schema_mismatch(&self) -> bool {
        matches!(self, Self::Component(error) if error.is_schema_mismatch())
    }
}
