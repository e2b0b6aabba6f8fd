//! [`TranslationError`].

use crate::block::{BlockComponentError, BlockRegistryError};
use crate::chunk::BlockValueError;
use crate::snapshot::PlaceError;
use thiserror::Error;

/// The error for a snapshot or a schematic that cannot be translated to the other form.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TranslationError {
    /// A limit is exceeded.
    #[error("expected {limit} {what} or less, found {found}")]
    TooLarge {
        /// The unit that is counted.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// The number that was found, as far as it is known.
        found: u64,
    },
    /// A block or a block component has a number that the registry or the schematic does not have.
    #[error("{what} {number} occurs, but is not in the {list}")]
    Unlisted {
        /// The kind of number: a block or a component.
        what: &'static str,
        /// Its number.
        number: u64,
        /// The list that lacks it: the registry, or the schematic's list.
        list: &'static str,
    },
    /// A state is unknown, and the registry has no placeholder block.
    #[error(
        "\"{state}\" is not in the registry, and neither is the block that stands for such states: call \
         register_schematic_blocks"
    )]
    NoPlaceholder {
        /// The state.
        state: String,
    },
    /// A block would be outside of the grid.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A value of a component cannot be converted to the registry's version.
    #[error(transparent)]
    Value(#[from] BlockComponentError),
    /// A block cannot be converted to its current type.
    #[error(transparent)]
    Upgrade(#[from] BlockRegistryError),
    /// A component does not fit its block.
    #[error(transparent)]
    Component(#[from] BlockValueError),
}
