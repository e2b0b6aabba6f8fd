//! Information about a region for its systems.

use super::bodies::floor::Floor;
use crate::region::RegionId;
use crate::space::DimensionId;
use bevy::prelude::*;
use std::ops::Range;

/// Information about the region in which a system runs.
#[derive(Resource, Clone, Debug, Default, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Resource, Clone, Default)]
pub struct RegionInfo {
    /// The region. After a merge it is the region that absorbed the other.
    pub region: RegionId,
    /// The dimension that the region is a part of.
    pub dimension: DimensionId,
    /// The dimension's heights, in blocks.
    pub heights: Range<i64>,
    /// The dimension's floor.
    pub floor: Floor,
    /// The number of columns along the side of a section, as a power of two.
    pub section_shift: u32,
    /// The number of ticks that this region world has run.
    pub ticks: u64,
}
