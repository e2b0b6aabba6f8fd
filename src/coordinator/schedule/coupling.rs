//! Regions that tick together by wish.

use crate::coordinator::dimension::DimensionBook;
use crate::coordinator::messages::clocks::Coupling;
use crate::region::RegionId;
use crate::space::{BlockPos, DimensionId};
use bevy::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Adds, changes or removes a coupling of the main world.
pub(crate) fn couple(In((entity, coupling)): In<(Entity, Option<Coupling>)>, mut couplings: ResMut<Couplings>) {
    match coupling {
        Some(coupling) => drop(couplings.places.insert(entity, coupling)),
        None => drop(couplings.places.remove(&entity)),
    }
}

/// Regions that tick together.
pub type Group = BTreeSet<(DimensionId, RegionId)>;

/// All couplings, by their entity in the main world.
#[derive(Resource, Default)]
pub struct Couplings {
    pub places: BTreeMap<Entity, Coupling>,
}

impl Couplings {
    /// The regions that are coupled with this one, directly or through others, including itself.
    pub fn group(&self, dimensions: &DimensionBook, dimension: DimensionId, region: RegionId) -> Group {
        let group = Group::from([(dimension, region)]);
        if self.places.is_empty() { group } else { join(group, &mut self.pairs(dimensions)) }
    }

    /// All coupled regions, in groups.
    pub fn groups(&self, dimensions: &DimensionBook) -> Vec<Group> {
        let mut pairs = self.pairs(dimensions);
        pairs.retain(|[one, other]| one != other);
        let mut groups = Vec::new();
        while let Some(pair) = pairs.pop() {
            groups.push(join(Group::from(pair), &mut pairs));
        }
        groups
    }

    /// The regions at both ends of each coupling.
    fn pairs(&self, dimensions: &DimensionBook) -> Vec<[(DimensionId, RegionId); 2]> {
        let at = |(id, block): (DimensionId, BlockPos)| {
            Some((id, dimensions.open.get(&id)?.regions.regionizer.region_at(block.column())?))
        };
        self.places.values().filter_map(|coupling| Some([at(coupling.ends[0])?, at(coupling.ends[1])?])).collect()
    }
}

/// Adds all pairs that are connected with the group.
fn join(mut group: Group, pairs: &mut Vec<[(DimensionId, RegionId); 2]>) -> Group {
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
