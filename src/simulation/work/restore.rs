//! Restoring a column.

use crate::chunk::Chunk;
use crate::simulation::columns::blocks::RegionColumns;
use crate::simulation::columns::column_source::ColumnError;
use crate::simulation::columns::column_work::{ColumnAnswer, ColumnRestored};
use crate::simulation::components::RegionComponents;
use crate::simulation::components::Stored;
use crate::simulation::components::stored_entities::spawn_stored;
use crate::simulation::entities::EntityIndex;
use crate::simulation::info::RegionInfo;
use crate::simulation::position::Position;
use crate::simulation::work::{load, reached, standing, standing_in};
use crate::snapshot::{BlockFilter, Snapshot, restored_chunk};
use crate::space::{BlockBox, ChunkPos, ColumnPos};
use crate::storage::EntityRecord;
use bevy::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use uuid::Uuid;

pub(in crate::simulation) fn restore(
    world: &mut World,
    components: &RegionComponents,
    column: ColumnPos,
    area: &BlockBox,
    snapshot: &Snapshot,
    filter: &BlockFilter,
    removes_entities: bool,
) -> Result<ColumnAnswer, ColumnError> {
    load(world, column, area)?;
    let chunks = restore_blocks(&mut world.resource_mut::<RegionColumns>(), column, area, snapshot, filter)?;
    let mut removed = Vec::new();
    if removes_entities && snapshot.column(column).is_some() {
        let found = standing_in(world, components, area, column).into_iter();
        removed = remove(world, found.filter(|(_, record)| snapshot.covers_entity(record.id)));
    }
    let RegionInfo { region, ticks, .. } = *world.resource::<RegionInfo>();
    Ok(ColumnAnswer::Restored { chunks, removed, tick: (region, ticks) })
}

/// Restores the blocks and returns the heights of the changed chunks.
fn restore_blocks(
    columns: &mut RegionColumns,
    column: ColumnPos,
    area: &BlockBox,
    snapshot: &Snapshot,
    filter: &BlockFilter,
) -> Result<Vec<i64>, ColumnError> {
    let Some(wanted) = snapshot.column(column) else { return Ok(Vec::new()) };
    let known = columns.column(column).ok_or(ColumnError::NotOwned(column))?.clone();
    let heights = columns.chunk_heights();
    // Chunks that are empty on both sides do not change, so a box may be arbitrarily high.
    let now = known.chunks().map(|(y, _)| y);
    let either: BTreeSet<i64> = now.chain(wanted.chunks().map(|(y, _)| y)).collect();
    let mut changed = Vec::new();
    for y in either.into_iter().filter(|y| heights.contains(y)) {
        let Some(part) = area.part(column.chunk(y)).filter(|_| wanted.holds(y)) else { continue };
        if let Some(new) = restored_chunk(known.chunk(y), wanted.chunk(y), &part, filter, snapshot.parts()) {
            check_types(columns, column.chunk(y), wanted.chunk(y))?;
            changed.push((y, new));
        }
    }
    let heights: Vec<i64> = changed.iter().map(|(y, _)| *y).collect();
    columns.replace_chunks(column, changed);
    // Ticks scheduled for replaced blocks must not hit the new ones.
    if snapshot.parts().blocks {
        heights.iter().for_each(|y| columns.ticks.cancel_in(column.chunk(*y), |block| area.contains(block)));
    }
    Ok(heights)
}

/// Checks the ids, because the game may have built the snapshot itself.
fn check_types(columns: &RegionColumns, at: ChunkPos, wanted: Option<&Arc<Chunk>>) -> Result<(), ColumnError> {
    let blocks = columns.block_types();
    match blocks.zip(wanted).and_then(|(blocks, wanted)| wanted.find_block(|block| !blocks.contains(block))) {
        Some((cell, id)) => Err(ColumnError::Unregistered { block: at.block(cell), id }),
        None => Ok(()),
    }
}

pub(in crate::simulation) fn clear(
    world: &mut World,
    components: &RegionComponents,
    area: &BlockBox,
    snapshot: &Snapshot,
) -> ColumnAnswer {
    let here = |position: &Position| area.contains(position.block) && snapshot.column(position.column()).is_some();
    let found = standing(world, components, here, |id| snapshot.covers_entity(id));
    let removed = remove(world, found.into_iter());
    ColumnAnswer::Cleared { columns: reached(world, area), removed }
}

/// Removes entities. Returns them and everything attached to them.
fn remove(world: &mut World, entities: impl Iterator<Item = (Entity, EntityRecord)>) -> Vec<Uuid> {
    let mut removed = Vec::new();
    for (entity, record) in entities {
        removed.push(record.id);
        removed.extend(record.children.iter().filter_map(|child| child.id));
        // A hook of another entity may have despawned it.
        if world.entities().contains_spawned(entity) {
            world.despawn(entity);
        }
    }
    removed
}

pub(in crate::simulation) fn place_entities(
    world: &mut World,
    components: &RegionComponents,
    column: ColumnPos,
    area: BlockBox,
    entities: Vec<EntityRecord>,
) -> ColumnAnswer {
    let count = entities.len();
    for record in entities {
        let id = record.id;
        spawn_stored(world, components, record);
        // The stored record is out of date, wherever it was stored before.
        let entity = world.resource::<EntityIndex>().entity(id);
        if let Some(mut entity) = entity.and_then(|entity| world.get_entity_mut(entity).ok()) {
            entity.remove::<Stored>();
        }
    }
    world.write_message(ColumnRestored { column, area });
    ColumnAnswer::Placed(count)
}
