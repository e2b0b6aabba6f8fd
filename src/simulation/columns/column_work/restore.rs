//! Restoring a column.

use super::capture::load;
use super::{standing, standing_in};
use crate::chunk::Chunk;
use crate::region::RegionId;
use crate::simulation::columns::block_ticks::BlockTicks;
use crate::simulation::columns::blocks::RegionColumns;
use crate::simulation::travel::components::Stored;
use crate::simulation::travel::stored_entities::spawn_stored;
use crate::simulation::world::RegionContents;
use crate::simulation::{ColumnError, EntityIndex, Position, RegionInfo};
use crate::snapshot::{BlockFilter, Snapshot, restored_chunk};
use crate::space::{BlockBox, ChunkPos, ColumnPos};
use crate::storage::EntityRecord;
use bevy::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use uuid::Uuid;

/// What is to be restored of a column: blocks with their layers and components.
#[derive(Clone, Debug)]
pub struct RestoreColumn {
    /// The column.
    pub column: ColumnPos,
    /// The box; its part in the column counts.
    pub area: BlockBox,
    /// What is to be there.
    pub snapshot: Arc<Snapshot>,
    /// Which blocks take part.
    pub filter: Arc<BlockFilter>,
    /// Whether the entities in the box go that are stored with their components, but for players.
    pub removes_entities: bool,
}

/// What was restored of a column.
#[derive(Debug)]
pub struct RestoredColumn {
    /// The heights of the chunks that were changed, in chunks, ascending.
    pub chunks: Vec<i64>,
    /// Who was removed, with all that hung on them.
    pub removed: Vec<Uuid>,
    /// The region, and its ticks before that one.
    pub tick: (RegionId, u64),
}

/// Entities that are to go from all columns of a region at once: whoever crossed into a column that was restored already.
#[derive(Clone, Debug)]
pub struct ClearEntities {
    /// The box; what the region has of it counts.
    pub area: BlockBox,
    /// Whose columns are cleared, of those it tells of.
    pub snapshot: Arc<Snapshot>,
}

/// Who has gone.
#[derive(Debug)]
pub struct ClearedEntities {
    /// The region's columns that the box reaches, ascending.
    pub columns: Vec<ColumnPos>,
    /// Who was removed, with all that hung on them.
    pub removed: Vec<Uuid>,
}

/// Entities that are to come into a column, and the word that it is restored.
#[derive(Clone, Debug)]
pub struct PlaceEntities {
    /// The column.
    pub column: ColumnPos,
    /// The box that was restored.
    pub area: BlockBox,
    /// Who comes.
    pub entities: Vec<EntityRecord>,
}

/// A column of the region was restored from a snapshot, blocks and entities: light and what else follows from its blocks is
/// to be made anew. It comes once a column, when the whole job has restored all blocks.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnRestored {
    /// The column.
    pub column: ColumnPos,
    /// The box that was restored.
    pub area: BlockBox,
}

pub(super) fn restore(world: &mut World, order: &RestoreColumn) -> Result<RestoredColumn, ColumnError> {
    let RestoreColumn { column, area, snapshot, filter, removes_entities } = order;
    load(world, *column, area)?;
    let RegionInfo { region, ticks, .. } = *world.resource::<RegionInfo>();
    let mut restored = RestoredColumn { chunks: Vec::new(), removed: Vec::new(), tick: (region, ticks) };
    let Some(wanted) = snapshot.column(*column) else { return Ok(restored) };
    let mut columns = world.resource_mut::<RegionColumns>();
    let known = columns.column(*column).ok_or(ColumnError::NotOwned(*column))?.clone();
    let heights = columns.chunk_heights();
    // Where there is nothing and nothing is wanted, nothing changes: a box may be as high as it likes.
    let now = known.chunks().map(|(y, _)| y);
    let either: BTreeSet<i64> = now.chain(wanted.chunks().map(|(y, _)| y)).collect();
    let mut changed = Vec::new();
    for y in either.into_iter().filter(|y| heights.contains(y)) {
        let Some(part) = area.part(column.chunk(y)).filter(|_| wanted.holds(y)) else { continue };
        if let Some(new) = restored_chunk(known.chunk(y), wanted.chunk(y), &part, filter, snapshot.parts()) {
            check_types(&columns, column.chunk(y), wanted.chunk(y))?;
            changed.push((y, new));
        }
    }
    for (y, new) in changed {
        columns.replace_chunk(column.chunk(y), new);
        restored.chunks.push(y);
    }
    // What was scheduled for blocks that are not there any more is not to happen to others.
    let mut ticks = world.resource_mut::<BlockTicks>();
    for y in restored.chunks.iter().filter(|_| snapshot.parts().blocks) {
        ticks.cancel_in(column.chunk(*y), |block| area.contains(block));
    }
    if *removes_entities {
        let found = standing_in(world, area, *column).into_iter();
        restored.removed = remove(world, found.filter(|(_, record)| snapshot.tells_of(record.id)));
    }
    Ok(restored)
}

/// A snapshot may have been put together by the game.
fn check_types(columns: &RegionColumns, at: ChunkPos, wanted: Option<&Arc<Chunk>>) -> Result<(), ColumnError> {
    let blocks = columns.block_types();
    match blocks.zip(wanted).and_then(|(blocks, wanted)| wanted.unregistered_block(blocks)) {
        Some((cell, id)) => Err(ColumnError::Unregistered { block: at.block(cell), id }),
        None => Ok(()),
    }
}

pub(super) fn clear(world: &mut World, order: &ClearEntities) -> ClearedEntities {
    let ClearEntities { area, snapshot } = order;
    let here = |position: &Position| area.contains(position.block) && snapshot.column(position.column()).is_some();
    let found = standing(world, here, |id| snapshot.tells_of(id));
    let removed = remove(world, found.into_iter());
    let owned = world.resource::<RegionColumns>().positions();
    ClearedEntities { columns: owned.iter().copied().filter(|column| area.reaches(*column)).collect(), removed }
}

/// Removes entities. Gives them and all that hung on them.
fn remove(world: &mut World, entities: impl Iterator<Item = (Entity, EntityRecord)>) -> Vec<Uuid> {
    let mut removed = Vec::new();
    for (entity, record) in entities {
        removed.push(record.id);
        removed.extend(record.children.iter().filter_map(|child| child.id));
        // A hook of another one may have despawned it.
        if world.entities().contains_spawned(entity) {
            world.despawn(entity);
        }
    }
    removed
}

pub(super) fn place_entities(world: &mut World, order: PlaceEntities) -> usize {
    let PlaceEntities { column, area, entities } = order;
    let components = world.resource::<RegionContents>().components.clone();
    let count = entities.len();
    for record in entities {
        let id = record.id;
        spawn_stored(world, &components, record);
        // It is not stored as it is now, wherever it was stored before.
        mark_unsaved(world, id);
    }
    world.write_message(ColumnRestored { column, area });
    count
}

fn mark_unsaved(world: &mut World, id: Uuid) {
    let entity = world.resource::<EntityIndex>().entity(id);
    if let Some(mut entity) = entity.and_then(|entity| world.get_entity_mut(entity).ok()) {
        entity.remove::<Stored>();
    }
}
