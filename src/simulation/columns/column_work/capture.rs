//! Capturing a column.

use super::standing_in;
use crate::chunk::Column;
use crate::simulation::columns::blocks::RegionColumns;
use crate::simulation::{ColumnError, RegionInfo};
use crate::space::{BlockBox, ColumnPos};
use crate::storage::EntityRecord;
use bevy::prelude::*;

/// Of a sparse dimension no more is loaded for a column.
const MAX_HEIGHTS: u64 = 1_024;

/// What is to be captured of a column.
#[derive(Clone, Debug)]
pub struct CaptureColumn {
    /// The column.
    pub column: ColumnPos,
    /// The box; its part in the column counts.
    pub area: BlockBox,
    /// Whether entities are to be captured too.
    pub entities: bool,
}

/// What was captured of a column, as it was at the end of a tick.
#[derive(Debug)]
pub struct CapturedColumn {
    /// Ticks of the region before that one.
    pub tick: u64,
    /// Its blocks, which it shares with the world.
    pub blocks: Column,
    /// The entities in the box, but for players.
    pub entities: Vec<EntityRecord>,
}

pub(super) fn capture(world: &mut World, order: &CaptureColumn) -> Result<CapturedColumn, ColumnError> {
    load(world, order.column, &order.area)?;
    let columns = world.resource::<RegionColumns>();
    let blocks = columns.column(order.column).ok_or(ColumnError::NotOwned(order.column))?.clone();
    let entities = if order.entities { standing_in(world, &order.area, order.column) } else { Vec::new() };
    Ok(CapturedColumn {
        tick: world.resource::<RegionInfo>().ticks,
        blocks,
        entities: entities.into_iter().map(|(_, record)| record).collect(),
    })
}

/// In a sparse dimension the letter has brought only the ground around it.
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
    for y in low..=high {
        if !columns.column(column).is_some_and(|known| known.is_loaded(y)) {
            columns.load(column.chunk(y).min_block())?;
        }
    }
    Ok(())
}
