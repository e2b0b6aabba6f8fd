//! [`FeatureError`].

use super::FeatureReach;
use thiserror::Error;

/// The error for a feature that cannot be placed. See [`Features::with`](super::Features::with).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FeatureError {
    /// The feature's reach is too large.
    #[error(
        "the feature \"{feature}\" reaches {} blocks to the side, {} up and {} down, at most {}, {} and {} are allowed: \
         make it smaller, or of several features",
        reach.horizontal, reach.up, reach.down, limit.horizontal, limit.up, limit.down
    )]
    ReachTooLarge {
        /// The feature's name.
        feature: String,
        /// The feature's reach.
        reach: FeatureReach,
        /// The maximum reach.
        limit: FeatureReach,
    },
    /// Too many features could reach into one column, so generating it would take too long.
    #[error(
        "the feature \"{feature}\" reaches {} blocks to the side at a spacing of {spacing}: {origins} origins had to be \
         looked at for every column, at most {limit} are allowed; give it a larger spacing",
        reach.horizontal
    )]
    TooCrowded {
        /// The feature's name.
        feature: String,
        /// The feature's reach.
        reach: FeatureReach,
        /// The placement's spacing, in blocks.
        spacing: u32,
        /// The number of origins to check for every column.
        origins: u64,
        /// The maximum number of origins.
        limit: u64,
    },
}
