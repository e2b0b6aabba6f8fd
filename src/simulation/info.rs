//! Where a region is.

use super::task_progress::TaskProgress;
use crate::region::RegionId;
use crate::space::DimensionId;
use bevy::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// What a system can know about the region that it runs in.
#[derive(Resource, Clone, Debug, Default)]
pub struct RegionInfo {
    /// The region. After a merge it is the one that took over.
    pub region: RegionId,
    /// The dimension that the region is a part of.
    pub dimension: DimensionId,
    /// The dimension's heights, in blocks.
    pub heights: Range<i64>,
    /// Columns to a section, as a power of two.
    pub section_shift: u32,
    /// How many ticks this region world has run.
    pub ticks: u64,
    /// Where it is told which schedule runs.
    pub(super) progress: Arc<TaskProgress>,
}
