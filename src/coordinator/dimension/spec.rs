//! The game's description of a dimension, and the errors of opening it.

use crate::coordinator::clocks::clock::DimensionClock;
use crate::coordinator::streaming::generation_control::DimensionGeneration;
use crate::coordinator::threads::work_error::WorkError;
use crate::generation::Generator;
use crate::region::RegionizerConfigError;
use crate::storage::StoreError;
use bevy::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// A dimension as the game asked for it.
#[derive(Clone)]
pub struct DimensionSpec {
    /// Its entity in the main world.
    pub entity: Entity,
    /// Its name in the store.
    pub name: String,
    /// Its heights, in blocks.
    pub heights: Range<i64>,
    /// The generator of its ground.
    pub generator: Arc<dyn Generator>,
    /// Its clock; `None` for the coordinator's default.
    pub clock: Option<DimensionClock>,
    /// How its ground is generated; `None` for the coordinator's default.
    pub generation: Option<DimensionGeneration>,
}

/// The reason why a dimension could not be opened.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DimensionError {
    /// The height range is empty.
    #[error("dimension {name:?} has the height range {low}..{high}: it must hold at least one block")]
    Heights {
        /// The dimension.
        name: String,
        /// Its lowest y.
        low: i64,
        /// The first y above it.
        high: i64,
    },
    /// A dimension of this name is already open.
    #[error("dimension {name:?} is open already: give each Dimension a name of its own")]
    AlreadyOpen {
        /// The dimension.
        name: String,
    },
    /// The regionizer's settings are invalid.
    #[error(transparent)]
    Regionizer(#[from] RegionizerConfigError),
    /// The dimension was made by another generator.
    #[error("the dimension {name:?} was made by {stored}, but {wanted} is wanted; give it another name")]
    MadeOtherwise {
        /// The dimension.
        name: String,
        /// The generator that made it.
        stored: String,
        /// The generator that the game wants now.
        wanted: String,
    },
    /// The stored dimension does not match, or the store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store cannot be read.
    #[error("dimension {name:?}: {source}")]
    Read {
        /// The dimension.
        name: String,
        /// The store's error.
        source: StoreError,
    },
    /// A removed dimension of the same name could not be erased first.
    #[error("dimension {name:?} is not opened, since one of that name could not be removed before: {source}")]
    NotRemoved {
        /// The dimension.
        name: String,
        /// The reason.
        source: WorkError,
    },
    /// The stored graph is lost or damaged, and could not be rebuilt.
    #[error("dimension {name:?}: the graph of its stored columns is lost and cannot be made anew: {source}")]
    NotRebuilt {
        /// The dimension.
        name: String,
        /// The reason.
        source: WorkError,
    },
    /// The stored graph was just rebuilt and cannot be read again.
    #[error("dimension {name:?}: the graph of its stored columns was made anew and is damaged again")]
    DamagedAgain {
        /// The dimension.
        name: String,
    },
}
