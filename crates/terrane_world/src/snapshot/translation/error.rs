//! What stands between a snapshot and a schematic.

use crate::block::{BlockComponentError, BlockRegistryError};
use crate::chunk::BlockValueError;
use crate::snapshot::PlaceError;
use thiserror::Error;

/// Why a snapshot cannot become a schematic, or a schematic a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TranslationError {
    /// There is more than fits.
    #[error("expected {limit} {what} or less, found {found}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much there may be.
        limit: u64,
        /// How much there is, as far as it is known.
        found: u64,
    },
    /// A block or a block component has a number that the registry or the schematic does not have.
    #[error("{what} {number} occurs, but is not in the {list}")]
    Unlisted {
        /// A block or a component.
        what: &'static str,
        /// Its number.
        number: u64,
        /// The registry, or the schematic's list.
        list: &'static str,
    },
    /// A state is not known, and there is no block to stand for it.
    #[error(
        "\"{state}\" is not in the registry, and neither is the block that stands for such states: call \
         register_schematic_blocks"
    )]
    NoPlaceholder {
        /// The state.
        state: String,
    },
    /// It would leave the grid.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A value of a component does not become one of the registry's.
    #[error(transparent)]
    Value(#[from] BlockComponentError),
    /// A block does not become what its type is now.
    #[error(transparent)]
    Upgrade(#[from] BlockRegistryError),
    /// A component of a block does not fit to it.
    #[error(transparent)]
    Component(#[from] BlockValueError),
}
