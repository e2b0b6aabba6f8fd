//! Capturing a column.

use super::standing_in;
use crate::simulation::columns::blocks::RegionColumns;
use crate::simulation::columns::column_work::ColumnAnswer;
use crate::simulation::{ColumnError, RegionComponents, RegionInfo};
use crate::space::{BlockBox, ColumnPos};
use bevy::prelude::*;

/// The maximum number of chunk heights loaded for a column of a sparse dimension.
const MAX_HEIGHTS: u64 = 1_024;

pub(super) fn capture(
    world: &mut World,
    components: &RegionComponents,
    column: ColumnPos,
    area: &BlockBox,
    with_entities: bool,
) -> Result<ColumnAnswer, ColumnError> {
    load(world, column, area)?;
    let columns = world.resource::<RegionColumns>();
    let blocks = columns.column(column).ok_or(ColumnError::NotOwned(column))?.clone();
    let entities = if with_entities { standing_in(world, components, area, column) } else { Vec::new() };
    Ok(ColumnAnswer::Captured {
        tick: world.resource::<RegionInfo>().ticks,
        blocks,
        entities: entities.into_iter().map(|(_, record)| record).collect(),
    })
}

/// Loads the rest of the box in a sparse dimension, where the letter has loaded only the ground around it.
pub(super) fn load(world: &mut World, column: ColumnPos, area: &BlockBox) -> Result<(), ColumnError> {
    let mut columns = world.resource_mut::<RegionColumns>();
    if columns.column(column).is_some_and(|known| known.loaded().is_none()) {
        return Ok(());
    }
    let Some(wanted) = area.chunk_heights() else { return Ok(()) };
    let heights = columns.chunk_heights();
    let (low, high) = (heights.start.max(*wanted.start()), heights.end.saturating_sub(1).min(*wanted.end()));
    if low <= high && low.abs_diff(high) >= MAX_HEIGHTS {
        return Err(ColumnError::TooManyHeights { column, limit: MAX_HEIGHTS });
    }
    // Loaded heights are skipped.
    (low..=high).try_for_each(|y| columns.load(column.chunk(y).min_block()).map(drop))
}
