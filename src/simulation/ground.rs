//! Ground that lives, in regions: liquids, falling blocks and growth. Their plugins are in
//! [`plugin`](crate::plugin).

mod falling;
mod growth;
mod liquids;

pub(crate) use falling::add_falling_blocks;
pub use falling::{BlockDropped, FallingBlock};
pub use growth::GrowthRule;
pub(crate) use growth::add_growth;
pub(crate) use liquids::add_liquids;

use crate::liquid::LiquidError;
use crate::simulation::schedules::RegionTick;
use bevy::prelude::*;

/// The systems of ground that lives, in [`RegionTick`], in this order.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroundSystems {
    /// Blocks begin to fall, fall, and lie again.
    Fall,
    /// Liquids spread and dry.
    Flow,
    /// Blocks grow and spread.
    Grow,
}

/// The reason why the rules of ground that lives do not fit the registered blocks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroundError {
    /// The rules of a liquid.
    #[error(transparent)]
    Liquid(#[from] LiquidError),
    /// No block has the name that a rule of growth gives.
    #[error("growth: there is no block {name:?}{}", nearest.as_ref().map(|near| format!("; is {near:?} meant?")).unwrap_or_default())]
    UnknownBlock {
        /// The unknown name.
        name: String,
        /// The most similar name of a block.
        nearest: Option<String>,
    },
}

/// An error of a plugin while a region world is built.
#[derive(Resource)]
pub(super) struct GroundFault(pub GroundError);

/// The systems that mutate the ground run in a fixed order, also in parallel.
fn order_systems(region: &mut SubApp) {
    region.configure_sets(RegionTick, (GroundSystems::Fall, GroundSystems::Flow, GroundSystems::Grow).chain());
}
