//! Work on a region's columns.

pub mod new_columns;
pub mod restore;
pub mod unsaved;

use crate::simulation::columns::blocks::RegionColumns;
use crate::simulation::columns::column_source::ColumnError;
use crate::simulation::columns::column_work::{ColumnAnswer, ColumnWork, OrderedWork};
use crate::simulation::components::RegionComponents;
use crate::simulation::components::followers::{followers, roots};
use crate::simulation::components::stored_entities::record;
use crate::simulation::entities::StableId;
use crate::simulation::info::RegionInfo;
use crate::simulation::position::Position;
use crate::simulation::world::RegionContents;
use crate::space::{BlockBox, ColumnPos};
use crate::storage::EntityRecord;
use bevy::platform::collections::HashSet;
use bevy::prelude::*;
use std::mem;
use std::time::Instant;
use uuid::Uuid;

/// Does the work that has arrived, within its budget.
pub fn work(world: &mut World, contents: &mut RegionContents) {
    if contents.unfinished.column_work.is_empty() {
        return;
    }
    // A restored column is announced.
    contents.schedules.note_messages();
    let orders = mem::take(&mut contents.unfinished.column_work);
    let began = Instant::now();
    let (_, period) = world.resource::<RegionColumns>().ticks.clock();
    let (mut changed, mut is_first) = (0, true);
    for OrderedWork { work, share, chunks: most, is_void, mut answer } in orders {
        if is_void.is_stopped() {
            continue;
        }
        let is_late = || share.is_some_and(|share| began.elapsed().as_secs_f64() >= period.as_secs_f64() * share);
        let is_of_column = !matches!(work, ColumnWork::Look { .. } | ColumnWork::Clear { .. });
        if is_of_column && !mem::take(&mut is_first) && (changed >= most || is_late()) {
            answer.result = ColumnAnswer::Postponed;
        } else {
            let work_began = Instant::now();
            answer.result = work_on(world, &contents.components, work).unwrap_or_else(ColumnAnswer::Failed);
            answer.took = work_began.elapsed();
        }
        if let ColumnAnswer::Restored { chunks, .. } = &answer.result {
            changed += chunks.len();
        }
        contents.outbox.worked.push(answer);
    }
}

fn work_on(world: &mut World, components: &RegionComponents, work: ColumnWork) -> Result<ColumnAnswer, ColumnError> {
    match work {
        ColumnWork::Capture { column, area, entities } => capture(world, components, column, &area, entities),
        ColumnWork::Restore { column, area, snapshot, filter, removes_entities } => {
            restore::restore(world, components, column, &area, &snapshot, &filter, removes_entities)
        }
        // A column is restored once its light is.
        ColumnWork::PlaceEntities { .. } if world.resource::<RegionColumns>().awaits_light() => {
            Ok(ColumnAnswer::Postponed)
        }
        ColumnWork::PlaceEntities { column, area, entities } => {
            Ok(restore::place_entities(world, components, column, area, entities))
        }
        ColumnWork::Clear { area, snapshot } => Ok(restore::clear(world, components, &area, &snapshot)),
        ColumnWork::Look { area, known } => {
            // Includes entities that have just walked out of the region: the coordinator has them only from the next tick on.
            let seen = standing(world, components, |at| area.contains(at.block), |id| !known.contains(&id));
            let entities = seen.into_iter().map(|(_, record)| record).collect();
            Ok(ColumnAnswer::Seen { columns: reached(world, &area), entities })
        }
    }
}

/// The columns of the region that the box intersects.
fn reached(world: &World, area: &BlockBox) -> Vec<ColumnPos> {
    let owned = world.resource::<RegionColumns>().columns();
    owned.iter().copied().filter(|column| area.reaches(*column)).collect()
}

/// The stored form of the entities inside a box in this column, without players, who log in and out on their own.
fn standing_in(
    world: &World,
    components: &RegionComponents,
    area: &BlockBox,
    column: ColumnPos,
) -> Vec<(Entity, EntityRecord)> {
    standing(world, components, |at| at.column() == column && area.contains(at.block), |_| true)
}

/// The stored form of the wanted entities here, without players.
fn standing(
    world: &World,
    components: &RegionComponents,
    here: impl Fn(&Position) -> bool,
    is_wanted: impl Fn(Uuid) -> bool,
) -> Vec<(Entity, EntityRecord)> {
    // Entities that have just moved to another dimension are still in this world.
    let dimension = world.resource::<RegionInfo>().dimension;
    let found = roots(world, components, |position| position.dimension == dimension && here(position)).into_iter();
    // A follower that is not a child is stored by itself and goes along.
    let mut taken = HashSet::new();
    let found = found.flat_map(|root| followers(world, components, root, &mut taken));
    let found = found.filter(|entity| world.get::<StableId>(*entity).is_some_and(|id| is_wanted(id.0)));
    let found = found.filter_map(|entity| Some((entity, record(world, components, entity)?)));
    found.filter(|(_, record)| record.player().is_none()).collect()
}

/// The maximum number of chunk heights loaded for a column of a sparse dimension.
const MAX_HEIGHTS: u64 = 1_024;

/// Loads the rest of the box in a sparse dimension, where the letter has loaded only the ground around it.
fn load(world: &mut World, column: ColumnPos, area: &BlockBox) -> Result<(), ColumnError> {
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

/// Captures a column.
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
