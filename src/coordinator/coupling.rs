//! Regions that tick together on purpose.

use super::dimension::Dimensions;
use crate::region::RegionId;
use crate::space::{BlockPos, DimensionId};
use bevy::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Couples the regions at two places, as the two ends of a portal: spawn it in the main world, despawn it to let go.
///
/// The regions keep their worlds, and tick one after the other on the same thread, lowest dimension and region first.
/// What the first sends to the second is there within the same pair of ticks. They may lie in different dimensions; if
/// one ticks less often than the other, they tick together whenever both are due.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coupling {
    /// The two places, each with its dimension's entity.
    pub ends: [(Entity, BlockPos); 2],
}

/// All couplings, by their entity in the main world.
#[derive(Resource, Default)]
pub(super) struct Couplings {
    pub places: BTreeMap<Entity, Coupling>,
}

impl Couplings {
    /// The regions that are coupled with this one, directly or through others, itself included.
    pub fn group(
        &self,
        dimensions: &Dimensions,
        dimension: DimensionId,
        region: RegionId,
    ) -> BTreeSet<(DimensionId, RegionId)> {
        let mut group = BTreeSet::from([(dimension, region)]);
        if self.places.is_empty() {
            return group;
        }
        let at = |(entity, block): (Entity, BlockPos)| {
            let id = *dimensions.by_entity.get(&entity)?;
            Some((id, dimensions.open.get(&id)?.regionizer.region_at(block.column())?))
        };
        let mut pairs: Vec<_> =
            self.places.values().filter_map(|coupling| Some([at(coupling.ends[0])?, at(coupling.ends[1])?])).collect();
        loop {
            let before = pairs.len();
            pairs.retain(|[one, other]| {
                let joins = group.contains(one) || group.contains(other);
                if joins {
                    group.extend([*one, *other]);
                }
                !joins
            });
            if pairs.len() == before {
                return group;
            }
        }
    }
}
