//! The snapshot itself, and how columns get into it.

#[cfg(test)]
mod tests;

use super::{SnapshotParts, entities};
use crate::block::BlockId;
use crate::chunk::{Chunk, Column};
use crate::entity::EntityRecord;
use crate::space::{BlockBox, BlockPos, ChunkPos, ColumnPos, HeightSet};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use uuid::Uuid;

/// What a box of blocks held, column by column, each as it was at the end of one tick of its region.
///
/// It shares whole chunks with the world, also where the box cuts through them: what lies outside of the box is not part of
/// it, and so is what its [`SnapshotParts`] leave out. Columns that were not added are missing, and so are chunk heights that
/// the world had not loaded: nothing is ever restored from what was not captured.
#[derive(Clone, Debug)]
pub struct Snapshot {
    #[doc(hidden)]
    pub area: BlockBox,
    pub(super) parts: SnapshotParts,
    pub(super) columns: BTreeMap<ColumnPos, ColumnSnapshot>,
    /// In which column everybody is, children included.
    pub(super) entities: FxHashMap<Uuid, ColumnPos>,
    /// Whom it tells of, there or not; `None` for everybody.
    pub(super) concerned: Option<Arc<BTreeSet<Uuid>>>,
}

/// One column of a [`Snapshot`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnSnapshot {
    pub(super) tick: u64,
    /// By height, without those that are air.
    pub(super) chunks: Vec<(i64, Arc<Chunk>)>,
    /// `None` for all.
    pub(super) heights: Option<HeightSet>,
    pub(super) entities: Vec<EntityRecord>,
}

impl Snapshot {
    /// A snapshot of a box whose columns are all missing still.
    pub fn new(area: BlockBox) -> Self {
        Self::of_parts(area, SnapshotParts::ALL)
    }

    /// Like [`new`](Self::new), and takes in no more than these parts.
    pub fn of_parts(area: BlockBox, parts: SnapshotParts) -> Self {
        Self { area, parts, columns: BTreeMap::new(), entities: FxHashMap::default(), concerned: None }
    }

    /// The box.
    pub const fn area(&self) -> &BlockBox {
        &self.area
    }

    /// What it holds of its box.
    pub const fn parts(&self) -> SnapshotParts {
        self.parts
    }

    /// Takes in a column as it is at the end of `tick`, with the entities that stand in it; what lies outside of the box is
    /// left out. Says whether the box reaches the column.
    ///
    /// What the snapshot has of the same column at the same chunk heights is replaced. An entity with a UUID that is there
    /// already, as one or as the child of one, since it crossed into another region between two ticks, is kept once: in the
    /// column of the later tick, and of two alike in the one that was added last.
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

    /// Puts in a column that another snapshot had, or a stored one. Says whether the box reaches it. What is there of the same
    /// column, and of the same entities, is replaced as by [`add_column`](Self::add_column).
    pub fn insert_column(&mut self, pos: ColumnPos, mut column: ColumnSnapshot) -> bool {
        if !self.area.reaches(pos) {
            return false;
        }
        let entities = std::mem::take(&mut column.entities);
        self.add_chunks(pos, column);
        entities.into_iter().for_each(|entity| self.add_entity(pos, entity));
        true
    }

    /// Takes a column out with its entities: it is missing from now on.
    pub fn remove_column(&mut self, column: ColumnPos) -> Option<ColumnSnapshot> {
        let removed = self.columns.remove(&column)?;
        for id in removed.entities.iter().flat_map(EntityRecord::ids) {
            self.entities.remove(&id);
        }
        Some(removed)
    }

    /// Puts an entity into a column that is there, as [`add_column`](Self::add_column) does.
    pub fn add_entity(&mut self, column: ColumnPos, mut entity: EntityRecord) {
        let Some(tick) = self.columns.get(&column).map(|column| column.tick) else { return };
        if !self.parts.entities || !self.area.contains(entity.block) {
            return;
        }
        let known: Vec<Uuid> = entity.ids().filter(|id| self.entities.contains_key(id)).collect();
        for id in known {
            // Gone already if it hung on another one that went.
            let Some(owner) = self.entities.get(&id).copied() else { continue };
            let Some(other) = self.columns.get_mut(&owner) else { continue };
            if other.tick <= tick {
                let gone = entities::remove_from(&mut other.entities, id);
                for id in gone {
                    self.entities.remove(&id);
                }
            } else if id == entity.id {
                return;
            } else {
                entities::remove_child(&mut entity, id);
            }
        }
        self.entities.extend(entity.ids().map(|id| (id, column)));
        if let Some(column) = self.columns.get_mut(&column) {
            column.entities.push(entity);
        }
    }

    /// Joins a column without entities with what is there of it.
    pub(super) fn add_chunks(&mut self, pos: ColumnPos, new: ColumnSnapshot) {
        match self.columns.get_mut(&pos) {
            None => drop(self.columns.insert(pos, new)),
            Some(known) => known.replace_heights(new),
        }
    }

    /// The block at a position; `None` outside of the box, where it is missing, and if blocks are left out.
    pub fn block(&self, position: BlockPos) -> Option<BlockId> {
        let chunk = position.chunk();
        (self.parts.blocks && self.area.contains(position) && self.holds(chunk))
            .then(|| self.chunk(chunk).map_or(BlockId::AIR, |chunk| chunk.block(position.in_chunk())))
    }

    /// The chunk at a position, with what it has outside of the box and besides the parts that are held; `None` if it is all
    /// air, or missing.
    pub fn chunk(&self, position: ChunkPos) -> Option<&Arc<Chunk>> {
        self.columns.get(&position.column())?.chunk(position.y)
    }

    /// Whether the box reaches the chunk, and it was captured.
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

    /// Whether every column is there, at all chunk heights of the box.
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

    /// Everybody in it, the children of entities too.
    #[doc(hidden)]
    pub fn entity_ids(&self) -> impl Iterator<Item = Uuid> {
        self.entities.keys().copied()
    }

    /// Whether it says of this entity if it is in the box: whom it does not tell of is left alone when it is restored. What a
    /// history gives tells of those who are to come or go.
    #[doc(hidden)]
    pub fn tells_of(&self, id: Uuid) -> bool {
        self.parts.entities && self.concerned.as_ref().is_none_or(|concerned| concerned.contains(&id))
    }

    /// The column in which the entity or the child with this UUID was caught.
    pub fn entity_column(&self, id: Uuid) -> Option<ColumnPos> {
        self.entities.get(&id).copied()
    }
}

impl ColumnSnapshot {
    /// The tick of its region at whose end it was captured.
    pub const fn tick(&self) -> u64 {
        self.tick
    }

    /// The chunks with their chunk heights, from the bottom up, without those that are all air.
    pub fn chunks(&self) -> impl DoubleEndedIterator<Item = (i64, &Arc<Chunk>)> + ExactSizeIterator {
        self.chunks.iter().map(|(y, chunk)| (*y, chunk))
    }

    /// The chunk at a chunk height; `None` if it is all air, or missing.
    pub fn chunk(&self, y: i64) -> Option<&Arc<Chunk>> {
        let place = self.chunks.binary_search_by_key(&y, |(y, _)| *y).ok()?;
        Some(&self.chunks[place].1)
    }

    /// The chunk heights that were captured; `None` for all of the box.
    pub const fn heights(&self) -> Option<&HeightSet> {
        self.heights.as_ref()
    }

    /// Whether the chunk height was captured, if the box reaches it.
    pub fn holds(&self, y: i64) -> bool {
        self.heights.as_ref().is_none_or(|heights| heights.contains(y))
    }

    /// The entities that stood in it, within the box.
    pub fn entities(&self) -> &[EntityRecord] {
        &self.entities
    }

    /// Takes over all heights that `new` has.
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

/// The chunk, or the equal one of these that is there if it is of one block: a large building is mostly made of few of them.
pub(super) fn shared(uniform: &mut FxHashMap<BlockId, Arc<Chunk>>, chunk: Chunk) -> Arc<Chunk> {
    match chunk.uniform_block() {
        Some(block) => uniform.entry(block).or_insert_with(|| Arc::new(chunk)).clone(),
        None => Arc::new(chunk),
    }
}

/// Whether there is nothing in it, as far as that can be told at once.
pub(super) fn is_air(chunk: &Chunk) -> bool {
    *chunk.palette() == [BlockId::AIR] && chunk.uniform_block().is_some()
}
