//! [`Snapshot`], the methods that add columns to it, and the removal of entities by UUID.

#[cfg(test)]
mod tests;

use super::SnapshotParts;
use crate::block::BlockId;
use crate::chunk::{Chunk, Column};
use crate::entity::EntityRecord;
use crate::space::{BlockBox, BlockPos, ChunkPos, ColumnPos, HeightSet};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use uuid::Uuid;

/// A captured box of blocks, column by column, each as it was at the end of one tick of its region.
///
/// A snapshot shares whole chunks with the world, even where the box cuts through them. Blocks outside of the box are
/// not part of it, nor is anything that its [`SnapshotParts`] exclude. Columns that were not added are missing, and so
/// are chunk heights that were not loaded: only captured blocks are ever restored.
#[derive(Clone, Debug)]
pub struct Snapshot {
    #[doc(hidden)]
    pub area: BlockBox,
    pub(super) parts: SnapshotParts,
    pub(super) columns: BTreeMap<ColumnPos, ColumnSnapshot>,
    /// The column of each entity, including children.
    pub(super) entities: FxHashMap<Uuid, ColumnPos>,
    /// The entities that the snapshot covers, whether it contains them or not; `None` for all.
    pub(super) concerned: Option<Arc<BTreeSet<Uuid>>>,
}

/// One column of a [`Snapshot`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnSnapshot {
    pub(super) tick: u64,
    /// By height, without chunks of only air.
    pub(super) chunks: Vec<(i64, Arc<Chunk>)>,
    /// `None` for all heights.
    pub(super) heights: Option<HeightSet>,
    pub(super) entities: Vec<EntityRecord>,
}

impl Snapshot {
    /// A snapshot of a box, with all columns missing.
    pub fn new(area: BlockBox) -> Self {
        Self::of_parts(area, SnapshotParts::ALL)
    }

    /// Like [`new`](Self::new), but only captures these parts.
    pub fn of_parts(area: BlockBox, parts: SnapshotParts) -> Self {
        Self { area, parts, columns: BTreeMap::new(), entities: FxHashMap::default(), concerned: None }
    }

    /// The box.
    pub const fn area(&self) -> &BlockBox {
        &self.area
    }

    /// The parts that it captures.
    pub const fn parts(&self) -> SnapshotParts {
        self.parts
    }

    /// Adds a column as it is at the end of `tick`, with the entities in it. Content outside of the box is left out.
    /// Returns `true` if the box intersects the column.
    ///
    /// Replaces captured content of the same column at the same chunk heights. If an entity crosses into another
    /// region between two ticks, its UUID may already be in the snapshot, as an entity or as a child. It is kept once:
    /// in the column with the later tick, or in the last added column if the ticks are equal.
    pub fn add_column(&mut self, column: &Column, tick: u64, entities: Vec<EntityRecord>) -> bool {
        let pos = column.pos();
        let Some(heights) = self.area.chunk_heights().filter(|_| self.area.reaches(pos)) else { return false };
        let inside = column.chunks().skip_while(|(y, _)| y < heights.start()).take_while(|(y, _)| y <= heights.end());
        let inside = inside.filter(|_| self.parts.has_cells());
        let mut chunks = Vec::with_capacity(column.chunks().len());
        chunks.extend(inside.filter(|(_, chunk)| !is_air(chunk)).map(|(y, chunk)| (y, chunk.clone())));
        if chunks.len() < chunks.capacity() {
            chunks.shrink_to_fit();
        }
        let loaded = column.loaded().map(|loaded| {
            let mut loaded = loaded.clone();
            loaded.remove(i64::MIN..*heights.start());
            loaded.remove(heights.end() + 1..i64::MAX);
            loaded
        });
        self.insert_column(pos, ColumnSnapshot { tick, chunks, heights: loaded, entities })
    }

    /// Adds a column of another snapshot, or a stored one. Returns `true` if the box intersects it. Replaces content
    /// of the same column, and the same entities, like [`add_column`](Self::add_column).
    pub fn insert_column(&mut self, pos: ColumnPos, mut column: ColumnSnapshot) -> bool {
        if !self.area.reaches(pos) {
            return false;
        }
        let entities = std::mem::take(&mut column.entities);
        self.add_chunks(pos, column);
        entities.into_iter().for_each(|entity| self.add_entity(pos, entity));
        true
    }

    /// Removes and returns a column with its entities. It is missing afterwards.
    pub fn remove_column(&mut self, column: ColumnPos) -> Option<ColumnSnapshot> {
        let removed = self.columns.remove(&column)?;
        for id in removed.entities.iter().flat_map(EntityRecord::ids) {
            self.entities.remove(&id);
        }
        Some(removed)
    }

    /// Adds an entity to an existing column, like [`add_column`](Self::add_column).
    pub fn add_entity(&mut self, column: ColumnPos, mut entity: EntityRecord) {
        let Some(tick) = self.columns.get(&column).map(|column| column.tick) else { return };
        if !self.parts.entities || !self.area.contains(entity.block) {
            return;
        }
        let known: Vec<Uuid> = entity.ids().filter(|id| self.entities.contains_key(id)).collect();
        for id in known {
            // An entity that was a child of a removed one is already gone.
            let Some(owner) = self.entities.get(&id).copied() else { continue };
            let Some(other) = self.columns.get_mut(&owner) else { continue };
            if other.tick <= tick {
                let gone = remove_from(&mut other.entities, id);
                for id in gone {
                    self.entities.remove(&id);
                }
            } else if id == entity.id {
                return;
            } else {
                remove_child(&mut entity, id);
            }
        }
        self.entities.extend(entity.ids().map(|id| (id, column)));
        if let Some(column) = self.columns.get_mut(&column) {
            column.entities.push(entity);
        }
    }

    /// Merges a column without entities into the captured column.
    pub(super) fn add_chunks(&mut self, pos: ColumnPos, new: ColumnSnapshot) {
        match self.columns.get_mut(&pos) {
            None => drop(self.columns.insert(pos, new)),
            Some(known) => known.replace_heights(new),
        }
    }

    /// The block at a position; `None` if it is outside of the box or missing, or if blocks are excluded.
    pub fn block(&self, position: BlockPos) -> Option<BlockId> {
        let chunk = position.chunk();
        (self.parts.blocks && self.area.contains(position) && self.holds(chunk))
            .then(|| self.chunk(chunk).map_or(BlockId::AIR, |chunk| chunk.block(position.in_chunk())))
    }

    /// The chunk at a position, including its content outside of the box and of excluded parts; `None` if it is all
    /// air or missing.
    pub fn chunk(&self, position: ChunkPos) -> Option<&Arc<Chunk>> {
        self.columns.get(&position.column())?.chunk(position.y)
    }

    /// Returns `true` if the box intersects the chunk and it was captured.
    pub fn holds(&self, position: ChunkPos) -> bool {
        self.area.part(position).is_some()
            && self.columns.get(&position.column()).is_some_and(|column| column.holds(position.y))
    }

    /// The columns, ascending.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = (ColumnPos, &ColumnSnapshot)> {
        self.columns.iter().map(|(pos, column)| (*pos, column))
    }

    /// A column; `None` if it is missing.
    pub fn column(&self, position: ColumnPos) -> Option<&ColumnSnapshot> {
        self.columns.get(&position)
    }

    /// Returns `true` if every column was captured at all chunk heights of the box.
    pub fn is_complete(&self) -> bool {
        let all = self.area.height_set();
        let is_whole =
            |column: &ColumnSnapshot| column.heights.as_ref().is_none_or(|heights| heights.contains_all(&all));
        self.area.column_area().columns() == self.columns.len() as u128 && self.columns.values().all(is_whole)
    }

    /// All entities, column by column.
    pub fn entities(&self) -> impl Iterator<Item = &EntityRecord> {
        self.columns.values().flat_map(|column| &column.entities)
    }

    /// The UUIDs of all entities, including children.
    pub fn entity_ids(&self) -> impl Iterator<Item = Uuid> {
        self.entities.keys().copied()
    }

    /// Returns `true` if the snapshot covers this entity: a restore leaves other entities alone. A snapshot of an edit
    /// history covers the entities to add or remove.
    #[doc(hidden)]
    pub fn covers_entity(&self, id: Uuid) -> bool {
        self.parts.entities && self.concerned.as_ref().is_none_or(|concerned| concerned.contains(&id))
    }

    /// The column in which the entity or child with this UUID was captured.
    pub fn entity_column(&self, id: Uuid) -> Option<ColumnPos> {
        self.entities.get(&id).copied()
    }
}

impl ColumnSnapshot {
    /// The tick of its region at whose end the column was captured.
    pub const fn tick(&self) -> u64 {
        self.tick
    }

    /// The chunks with their chunk heights, in ascending order, without chunks of only air.
    pub fn chunks(&self) -> impl DoubleEndedIterator<Item = (i64, &Arc<Chunk>)> + ExactSizeIterator {
        self.chunks.iter().map(|(y, chunk)| (*y, chunk))
    }

    /// The chunk at a chunk height; `None` if it is all air or missing.
    pub fn chunk(&self, y: i64) -> Option<&Arc<Chunk>> {
        let place = self.chunks.binary_search_by_key(&y, |(y, _)| *y).ok()?;
        Some(&self.chunks[place].1)
    }

    /// The captured chunk heights; `None` if all of the box were captured.
    pub const fn heights(&self) -> Option<&HeightSet> {
        self.heights.as_ref()
    }

    /// Returns `true` if the chunk height was captured, provided that the box intersects it.
    pub fn holds(&self, y: i64) -> bool {
        self.heights.as_ref().is_none_or(|heights| heights.contains(y))
    }

    /// The captured entities of the column within the box.
    pub fn entities(&self) -> &[EntityRecord] {
        &self.entities
    }

    /// Replaces all heights that `new` has.
    fn replace_heights(&mut self, new: Self) {
        self.tick = self.tick.max(new.tick);
        self.chunks.retain(|(y, _)| !new.holds(*y));
        self.chunks.extend(new.chunks);
        self.chunks.sort_unstable_by_key(|(y, _)| *y);
        self.heights = match (self.heights.take(), new.heights) {
            (Some(mut known), Some(new)) => {
                known.insert_all(&new);
                Some(known)
            }
            _ => None,
        };
    }
}

/// Returns the chunk, or an equal one of `uniform` if it consists of one block: a large building mostly consists of a
/// few such chunks.
pub(super) fn shared(uniform: &mut FxHashMap<BlockId, Arc<Chunk>>, chunk: Chunk) -> Arc<Chunk> {
    match chunk.uniform_block() {
        Some(block) => uniform.entry(block).or_insert_with(|| Arc::new(chunk)).clone(),
        None => Arc::new(chunk),
    }
}

/// Returns `true` if the chunk is known to be empty by a fast check.
pub(super) fn is_air(chunk: &Chunk) -> bool {
    *chunk.palette() == [BlockId::AIR] && chunk.uniform_block().is_some()
}

/// Removes an entity, or a child of one, with all its descendants. Returns the removed UUIDs.
pub(super) fn remove_from(entities: &mut Vec<EntityRecord>, id: Uuid) -> Vec<Uuid> {
    if let Some(place) = entities.iter().position(|entity| entity.id == id) {
        return entities.remove(place).ids().collect();
    }
    entities.iter_mut().flat_map(|entity| remove_child(entity, id)).collect()
}

/// Removes a child with all its descendants. Returns the removed UUIDs.
pub(super) fn remove_child(entity: &mut EntityRecord, id: Uuid) -> Vec<Uuid> {
    let mut gone = Vec::new();
    // The new places by old place.
    let mut places: Vec<Option<u32>> = Vec::with_capacity(entity.children.len());
    let mut kept = 0;
    entity.children.retain_mut(|child| {
        let parent = child.parent.map(|parent| places.get(parent as usize).copied().flatten());
        let stays = child.id != Some(id) && parent != Some(None);
        places.push(stays.then_some(kept));
        if stays {
            child.parent = parent.flatten();
            kept += 1;
        } else {
            gone.extend(child.id);
        }
        stays
    });
    gone
}

#[cfg(test)]
mod entity_tests {
    use super::*;
    use crate::snapshot::tests::{child, entity};
    use crate::space::BlockPos;

    #[test]
    fn a_child_goes_with_all_below_it_and_the_others_keep_their_parents() {
        let id = Uuid::from_u128;
        let mut root = entity(0, BlockPos::default());
        root.children = vec![child(1, None), child(2, Some(0)), child(3, None), child(4, Some(1)), child(5, Some(2))];
        assert!(remove_child(&mut root, id(9)).is_empty());
        assert_eq!(remove_child(&mut root, id(1)), [id(1), id(2), id(4)]);
        assert_eq!(root.children, [child(3, None), child(5, Some(0))]);
        let mut all = vec![entity(7, BlockPos::default()), root];
        assert_eq!(remove_from(&mut all, id(5)), [id(5)]);
        assert_eq!(remove_from(&mut all, id(0)), [id(0), id(3)]);
        assert_eq!(all.len(), 1);
    }
}
