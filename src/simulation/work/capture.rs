//! Capturing a column.

use crate::simulation::columns::blocks::RegionColumns;
use crate::simulation::columns::column_source::ColumnError;
use crate::simulation::columns::column_work::ColumnAnswer;
use crate::simulation::components::RegionComponents;
use crate::simulation::info::RegionInfo;
use crate::simulation::work::{load, standing_in};
use crate::space::{BlockBox, ColumnPos};
use bevy::prelude::*;

pub(in crate::simulation) fn capture(
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
