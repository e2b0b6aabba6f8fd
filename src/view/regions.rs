//! The main world's view of regions.

use super::WorldStatistics;
use crate::coordinator::messages::RegionStatistics;
use crate::region::RegionId;
use crate::space::{BlockPos, DimensionId};
use bevy::ecs::system::SystemParam;
use bevy::prelude::*;

/// The state of all regions as the coordinator published it last, four times a second.
///
/// Regions tick on while this is read, and sections beside a ticking region may belong to a transient region for the
/// moment. To reach the region that owns a place at that very time, send it a message or a closure.
///
/// ```
/// use bevy_terrane::prelude::*;
///
/// fn look(regions: Regions, dimensions: Res<Dimensions>) {
///     if let Some(here) = regions.at(dimensions.id("overworld"), BlockPos::new(0, 0, 0)) {
///         info!("{} has {} entities in {} columns", here.region, here.entities, here.columns);
///     }
///     let slow = regions.iter().filter(|region| region.ticks_per_second().is_some_and(|rate| rate < 19.5));
///     info!("{} of {} regions are slow", slow.count(), regions.iter().count());
/// }
/// # bevy::ecs::system::assert_is_system(look);
/// ```
#[derive(SystemParam)]
pub struct Regions<'w> {
    statistics: Res<'w, WorldStatistics>,
}

impl Regions<'_> {
    /// All regions, by dimension and id.
    pub fn iter(&self) -> impl Iterator<Item = &RegionStatistics> {
        self.statistics.regions.iter()
    }

    /// The regions of a dimension.
    pub fn of_dimension(&self, dimension: DimensionId) -> impl Iterator<Item = &RegionStatistics> {
        self.iter().filter(move |region| region.dimension == dimension)
    }

    /// The region with this id.
    pub fn get(&self, dimension: DimensionId, region: RegionId) -> Option<&RegionStatistics> {
        self.statistics.region(dimension, region)
    }

    /// The region that owns a block.
    pub fn at(&self, dimension: DimensionId, block: BlockPos) -> Option<&RegionStatistics> {
        self.statistics.region_at(dimension, block.column())
    }
}
