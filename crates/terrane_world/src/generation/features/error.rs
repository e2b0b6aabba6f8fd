//! What can be wrong with a layer of features.

use super::FeatureReach;
use thiserror::Error;

/// Why a feature cannot be placed. See [`Features::with`](super::Features::with).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FeatureError {
    /// It reaches farther than a feature may.
    #[error(
        "the feature \"{feature}\" reaches {} blocks to the side, {} up and {} down, at most {}, {} and {} are allowed: \
         make it smaller, or of several features",
        reach.horizontal, reach.up, reach.down, limit.horizontal, limit.up, limit.down
    )]
    ReachTooLarge {
        /// The feature's name.
        feature: String,
        /// How far it reaches.
        reach: FeatureReach,
        /// How far it may.
        limit: FeatureReach,
    },
    /// So many could reach into one column that generating it would take too long.
    #[error(
        "the feature \"{feature}\" reaches {} blocks to the side at a spacing of {spacing}: {origins} origins had to be \
         looked at for every column, at most {limit} are allowed; give it a larger spacing",
        reach.horizontal
    )]
    TooCrowded {
        /// The feature's name.
        feature: String,
        /// How far it reaches.
        reach: FeatureReach,
        /// The placement's spacing, in blocks.
        spacing: u32,
        /// Origins that had to be looked at for every column.
        origins: u64,
        /// Origins that may be looked at.
        limit: u64,
    },
}
