//! What the game says of a dimension, and why that cannot be had.

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
    /// Its name: the store knows it by this.
    pub name: String,
    /// Its heights, in blocks.
    pub heights: Range<i64>,
    /// What makes its ground.
    pub generator: Arc<dyn Generator>,
    /// How its time passes; `None` for the coordinator's own rate.
    pub clock: Option<DimensionClock>,
    /// How its ground is generated; `None` for the coordinator's own settings.
    pub generation: Option<DimensionGeneration>,
}

/// Why a dimension could not be opened.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DimensionError {
    /// It has no heights.
    #[error("dimension {name:?} has the height range {low}..{high}: it must hold at least one block")]
    Heights {
        /// The dimension.
        name: String,
        /// Its lowest y.
        low: i64,
        /// The first y above it.
        high: i64,
    },
    /// There is one of that name already.
    #[error("dimension {name:?} is open already: give each Dimension a name of its own")]
    AlreadyOpen {
        /// The dimension.
        name: String,
    },
    /// The regionizer's settings are wrong.
    #[error(transparent)]
    Regionizer(#[from] RegionizerConfigError),
    /// It was made by something else.
    #[error("the dimension {name:?} was made by {stored}, but {wanted} is wanted; give it another name")]
    MadeOtherwise {
        /// The dimension.
        name: String,
        /// What it was made by.
        stored: String,
        /// What it should be made by now.
        wanted: String,
    },
    /// The store does not know it as it is now, or cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store cannot be read.
    #[error("dimension {name:?}: {source}")]
    Read {
        /// The dimension.
        name: String,
        /// What the store said.
        source: StoreError,
    },
    /// One of its name had to be erased before, and could not be.
    #[error("dimension {name:?} is not opened, since one of that name could not be removed before: {source}")]
    NotRemoved {
        /// The dimension.
        name: String,
        /// Why.
        source: WorkError,
    },
    /// What the store says of its stored columns is lost or damaged, and could not be made anew.
    #[error("dimension {name:?}: the graph of its stored columns is lost and cannot be made anew: {source}")]
    NotRebuilt {
        /// The dimension.
        name: String,
        /// Why.
        source: WorkError,
    },
    /// What the store says of its stored columns was made anew just now, and cannot be read again.
    #[error("dimension {name:?}: the graph of its stored columns was made anew and is damaged again")]
    DamagedAgain {
        /// The dimension.
        name: String,
    },
}
