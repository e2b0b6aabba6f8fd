//! What a game system sees of a region's ground: [`RegionBlocks`], and the columns below it.

use crate::block::{BlockId, BlockLayout, BlockRegistry};
use crate::chunk::{BlockValueError, Chunk, Column};
use crate::region::RegionId;
use crate::simulation::{BlockTicks, ColumnError, FetchedColumn, RegionHome};
use crate::space::{BlockPos, ChunkPos, ColumnPos, HeightSet, SectionPos};
use crate::storage::LoadedColumn;
use bevy::ecs::system::SystemParam;
use bevy::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::mem;
use std::ops::{Deref, DerefMut, Range};
use std::sync::{Arc, Mutex, PoisonError};

/// Why a region could not read or change a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockAccessError {
    /// The column is not in this region: it belongs to another one, or is not loaded.
    #[error("block {0} lies in column {column}, which this region does not own or has not loaded", column = .0.column())]
    OutsideRegion(BlockPos),
    /// In strict mode: the column is another region's.
    #[error("block {block} lies in column {column}, which {owner} owns", column = .block.column())]
    OwnedByOther {
        /// The block asked for.
        block: BlockPos,
        /// The region that owns its column.
        owner: RegionId,
    },
    /// The dimension is sparse, and the column is here, but not at this height.
    #[error("block {0} lies at a height of its column that is not loaded")]
    UnloadedHeight(BlockPos),
    /// Too many edits wait already for the region that owns the block, since it does not tick: it is paused or hung, or the
    /// store is so far behind that the world waits for it.
    #[error("block {0} is not changed: too many edits wait for its region, which does not tick")]
    TooManyEdits(BlockPos),
    /// No type is registered under the id that was to be set. It would become what the game registers next.
    #[error("block {block} is not set to {id}: no type is registered under that id, take ids from `BlockTypes`")]
    Unregistered {
        /// The block that was to be set.
        block: BlockPos,
        /// The id.
        id: BlockId,
    },
    /// The dimension ends below or above.
    #[error("block {block} lies outside the dimension's height range {low}..{high}")]
    OutsideHeights {
        /// The block asked for.
        block: BlockPos,
        /// The lowest y of the dimension.
        low: i64,
        /// The first y above the dimension.
        high: i64,
    },
    /// The cell does not have that many layers, or the component does not fit.
    #[error("block {block}: {source}")]
    Value {
        /// The block asked for.
        block: BlockPos,
        /// What is wrong with the layer or the component.
        source: BlockValueError,
    },
}

/// The columns that a region owns. Systems read and write them through [`RegionBlocks`].
#[derive(Resource, Default)]
pub struct RegionColumns {
    columns: FxHashMap<ColumnPos, Column>,
    /// Sorted, so that whoever walks over the columns does so in the same order on every machine.
    positions: Vec<ColumnPos>,
    heights: Range<i64>,
    /// The sections that are the region's own, with columns or without.
    pub(crate) sections: FxHashSet<SectionPos>,
    /// Where a column comes from that a system asks for within the tick.
    home: Option<Arc<RegionHome>>,
    pub(crate) ticks: BlockTicks,
    pub(crate) fetched: Vec<FetchedColumn>,
    /// Whether an entity may be outside of the region though it has not moved since the last look.
    pub(crate) look_everywhere: bool,
    /// Fetched columns whose entities and scheduled ticks have not come yet.
    pub(crate) awaiting: FxHashSet<ColumnPos>,
    /// In strict mode the accesses outside of the region in this tick. A system may read blocks through a shared reference.
    violations: Mutex<Vec<BlockAccessError>>,
    pub(crate) changed: FxHashSet<ChunkPos>,
    pub(crate) unsaved: FxHashSet<ChunkPos>,
}

/// Which columns there are.
impl RegionColumns {
    /// The world becomes that of a region in this dimension.
    pub(crate) fn settle(&mut self, home: &Arc<RegionHome>) {
        self.heights = home.ground.heights.clone();
        self.home = Some(home.clone());
        self.look_everywhere = true;
    }

    fn section(&self, column: ColumnPos) -> SectionPos {
        column.section(self.home.as_ref().map_or(0, |home| home.section_shift))
    }

    /// Whether the column lies in a section that is this region's own. It may not be loaded.
    pub fn is_owned(&self, column: ColumnPos) -> bool {
        self.sections.contains(&self.section(column))
    }

    /// Loads or generates the column of a block in an owned section on this thread, if it is not here; in a sparse
    /// dimension, the part of it around the block. Its blocks can be read and changed at once; entities that are stored
    /// in it come with a later tick. What nobody holds is given up again after a while.
    pub fn load(&mut self, block: BlockPos) -> Result<&Column, ColumnError> {
        let column = block.column();
        let not_owned = ColumnError::NotOwned(column);
        match self.columns.get(&column) {
            Some(known) if known.is_loaded(block.chunk().y) || !self.heights.contains(&block.y) => {}
            known => {
                let is_new = known.is_none();
                let known = known.and_then(Column::loaded).cloned().unwrap_or_default();
                let home = self.home.clone().filter(|_| self.is_owned(column)).ok_or(not_owned)?;
                let mut fetched = home.ground.fetch(block, &known)?;
                self.take_in(fetched.loaded.column.clone());
                self.ticks.take_in(mem::take(&mut fetched.loaded.block_ticks));
                if is_new {
                    self.awaiting.insert(column);
                }
                self.fetched.push(fetched);
            }
        }
        self.columns.get(&column).ok_or(ColumnError::NotOwned(column))
    }

    /// The columns' positions, sorted.
    pub fn positions(&self) -> &[ColumnPos] {
        &self.positions
    }

    /// A column of this region.
    pub fn column(&self, position: ColumnPos) -> Option<&Column> {
        self.columns.get(&position)
    }

    /// Whether the column is loaded in this region.
    pub fn contains(&self, position: ColumnPos) -> bool {
        self.columns.contains_key(&position)
    }

    /// Takes in a column, or the part of it that is not here. Gives the heights of that part if the column was here.
    pub(crate) fn take_in(&mut self, column: Column) -> Option<HeightSet> {
        let position = column.pos();
        if let Some(known) = self.columns.get_mut(&position) {
            return Some(known.extend(&column));
        }
        self.columns.insert(position, column);
        if let Err(place) = self.positions.binary_search(&position) {
            self.positions.insert(place, position);
        }
        None
    }

    /// Lets go of a part of a column.
    pub(crate) fn cut(&mut self, column: ColumnPos, heights: &HeightSet) -> Option<Column> {
        Some(self.columns.get_mut(&column)?.cut(heights))
    }

    pub(crate) fn append(&mut self, other: Self) {
        self.columns.extend(other.columns);
        self.positions.extend(other.positions);
        self.positions.sort_unstable();
        self.ticks.append(other.ticks);
        self.changed.extend(other.changed);
        self.unsaved.extend(other.unsaved);
        self.sections.extend(other.sections);
        self.fetched.extend(other.fetched);
        self.awaiting.extend(other.awaiting);
    }

    /// Takes out the columns that `wanted` names with their scheduled ticks, sorted.
    pub(crate) fn split_off(&mut self, wanted: impl Fn(ColumnPos) -> bool) -> Vec<LoadedColumn> {
        let (taken, kept) = self.positions.drain(..).partition::<Vec<_>, _>(|&position| wanted(position));
        self.positions = kept;
        self.look_everywhere |= !taken.is_empty();
        let columns = taken.into_iter().filter_map(|position| self.columns.remove(&position));
        let loaded = |column: Column| {
            let block_ticks = self.ticks.take_chunks(|chunk| chunk.column() == column.pos());
            LoadedColumn { block_ticks, ..column.into() }
        };
        columns.map(loaded).collect()
    }

    /// The dimension's heights, in chunks.
    pub(crate) fn chunk_heights(&self) -> Range<i64> {
        self.home.as_ref().map_or(0..0, |home| home.ground.chunk_heights.clone())
    }

    /// The block types of the world.
    pub(crate) fn block_types(&self) -> Option<&BlockRegistry> {
        self.home.as_ref().map(|home| &*home.ground.blocks)
    }

    /// The accesses outside of the region since the last call, in strict mode.
    pub(crate) fn take_violations(&mut self) -> Vec<BlockAccessError> {
        mem::take(self.violations.get_mut().unwrap_or_else(PoisonError::into_inner))
    }

    fn outside(&self, block: BlockPos) -> BlockAccessError {
        let owners = self.home.as_ref().and_then(|home| home.owners.as_ref());
        let Some(owners) = owners.filter(|_| !self.is_owned(block.column())) else {
            return BlockAccessError::OutsideRegion(block);
        };
        let owners = owners.read().unwrap_or_else(PoisonError::into_inner);
        let error = match owners.get(&self.section(block.column())) {
            Some(&owner) => BlockAccessError::OwnedByOther { block, owner },
            None => BlockAccessError::OutsideRegion(block),
        };
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).push(error);
        error
    }
}

/// Blocks.
impl RegionColumns {
    fn check_height(&self, position: BlockPos) -> Result<(), BlockAccessError> {
        let Range { start: low, end: high } = self.heights;
        match self.heights.contains(&position.y) {
            true => Ok(()),
            false => Err(BlockAccessError::OutsideHeights { block: position, low, high }),
        }
    }

    /// Whether there can be a block at `position`, and its column is here.
    pub(crate) fn check(&self, position: BlockPos) -> Result<(), BlockAccessError> {
        self.check_height(position)?;
        match self.columns.get(&position.column()) {
            Some(column) if column.is_loaded(position.chunk().y) => Ok(()),
            Some(_) => Err(BlockAccessError::UnloadedHeight(position)),
            None => Err(self.outside(position)),
        }
    }

    /// Whether a type is registered under the id.
    pub(crate) fn check_type(&self, block: BlockPos, id: BlockId) -> Result<(), BlockAccessError> {
        match self.block_types().is_none_or(|blocks| blocks.contains(id)) {
            true => Ok(()),
            false => Err(BlockAccessError::Unregistered { block, id }),
        }
    }

    /// The block at `position`. Above and below the dimension's heights there is air.
    pub fn block(&self, position: BlockPos) -> Result<BlockId, BlockAccessError> {
        match self.columns.get(&position.column()) {
            Some(column) if column.is_loaded(position.chunk().y) || !self.heights.contains(&position.y) => {
                Ok(column.block(position))
            }
            Some(_) => Err(BlockAccessError::UnloadedHeight(position)),
            None => Err(self.outside(position)),
        }
    }

    /// Puts `block` at `position` and gives the block that was there. It has the components of its type, zeroes or of no
    /// bytes.
    pub fn set_block(&mut self, position: BlockPos, block: BlockId) -> Result<BlockId, BlockAccessError> {
        self.check_height(position)?;
        self.check_type(position, block)?;
        let Some(column) = self.columns.get_mut(&position.column()) else { return Err(self.outside(position)) };
        if !column.is_loaded(position.chunk().y) {
            return Err(BlockAccessError::UnloadedHeight(position));
        }
        let before = column.block(position);
        if before != block {
            match self.home.as_ref().map(|home| &*home.ground.blocks) {
                Some(blocks) if !blocks.components(block).is_empty() => {
                    // There is always a layer 0.
                    let _ = column.chunk_mut(position.chunk().y).place_block(blocks, position.in_chunk(), 0, block);
                }
                _ => drop(column.set_block(position, block)),
            }
            self.note_change(position.chunk());
        }
        Ok(before)
    }

    /// The highest block at `x`, `z` that is not air.
    pub fn surface(&self, x: i64, z: i64) -> Option<BlockPos> {
        let place = BlockPos::new(x, 0, z);
        let [in_x, _, in_z] = place.in_chunk();
        let y = self.columns.get(&place.column())?.surface(in_x, in_z)?;
        Some(BlockPos::new(x, y, z))
    }

    pub(crate) fn chunk(&self, position: ChunkPos) -> Arc<Chunk> {
        self.columns.get(&position.column()).and_then(|column| column.chunk(position.y).cloned()).unwrap_or_default()
    }

    /// Reads the chunk of a block; `None` where a loaded column has nothing but air.
    pub(crate) fn read<'a, R>(
        &'a self,
        position: BlockPos,
        read: impl FnOnce(Option<&'a Chunk>, [usize; 3]) -> R,
    ) -> Result<R, BlockAccessError> {
        self.check(position)?;
        let chunk = self.columns.get(&position.column()).and_then(|column| column.chunk(position.chunk().y));
        Ok(read(chunk.map(|chunk| &**chunk), position.in_chunk()))
    }

    /// Changes the chunk of a block.
    pub(crate) fn edit<R>(
        &mut self,
        position: BlockPos,
        edit: impl FnOnce(&mut Chunk, &BlockRegistry, [usize; 3]) -> Result<R, BlockAccessError>,
    ) -> Result<R, BlockAccessError> {
        self.check(position)?;
        let outside = BlockAccessError::OutsideRegion(position);
        let column = self.columns.get_mut(&position.column()).ok_or(outside)?;
        let home = self.home.as_ref().ok_or(outside)?;
        let edited = edit(column.chunk_mut(position.chunk().y), &home.ground.blocks, position.in_chunk())?;
        self.note_change(position.chunk());
        Ok(edited)
    }

    /// Puts a chunk in the place of one of a column that is here.
    pub(crate) fn replace_chunk(&mut self, position: ChunkPos, chunk: Arc<Chunk>) {
        if let Some(column) = self.columns.get_mut(&position.column()) {
            column.set_chunk(position.y, chunk);
            self.note_change(position);
        }
    }

    fn note_change(&mut self, chunk: ChunkPos) {
        self.changed.insert(chunk);
        self.unsaved.insert(chunk);
    }
}

/// Scheduled ticks of blocks.
impl RegionColumns {
    /// The scheduled ticks of the region's blocks, to be read.
    pub fn ticks(&self) -> &BlockTicks {
        &self.ticks
    }

    /// Schedules a [`BlockTick`](crate::simulation::BlockTick) of `kind` for a block of this region, so many ticks after this one.
    /// If one of that kind waits there already, it stays as it is. Says whether it was scheduled.
    pub fn schedule_tick(
        &mut self,
        position: BlockPos,
        kind: impl Into<Arc<str>>,
        delay: u64,
    ) -> Result<bool, BlockAccessError> {
        self.check(position)?;
        Ok(self.ticks.schedule(position, kind.into(), delay))
    }

    /// Takes back a scheduled tick. Says whether there was one.
    pub fn cancel_tick(&mut self, position: BlockPos, kind: &str) -> bool {
        self.ticks.cancel(position, kind)
    }
}

/// Reads and writes the blocks of the region that the system runs in, and their scheduled ticks: all that [`RegionColumns`]
/// can do.
///
/// A system with a `Res` or a `ResMut` of [`RegionColumns`] beside it panics (Bevy's B0002).
///
/// ```
/// use bevy_terrane::prelude::*;
///
/// fn dig(mut blocks: RegionBlocks, miners: Query<&Position>) -> Result {
///     for position in &miners {
///         blocks.set_block(position.block.offset(0, -1, 0), BlockId::AIR)?;
///     }
///     Ok(())
/// }
/// # App::new().add_systems(RegionTick, dig);
/// ```
#[derive(SystemParam)]
pub struct RegionBlocks<'w> {
    #[system_param(
        validation_message = "there are no RegionBlocks here: they are for systems of regions, which are added \
        within add_region_plugins; the main world reads blocks by PublishedBlocks and sets them by SetBlock messages"
    )]
    columns: ResMut<'w, RegionColumns>,
}

impl Deref for RegionBlocks<'_> {
    type Target = RegionColumns;

    #[inline]
    fn deref(&self) -> &RegionColumns {
        &self.columns
    }
}

impl DerefMut for RegionBlocks<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut RegionColumns {
        // Whether anything changed is noted per chunk; the whole resource does not count as changed.
        self.columns.bypass_change_detection()
    }
}

impl RegionBlocks<'_> {
    /// Puts `block` at `position` and gives the block that was there. It has the components of its type, zeroes or of no
    /// bytes.
    #[inline]
    pub fn set_block(&mut self, position: BlockPos, block: BlockId) -> Result<BlockId, BlockAccessError> {
        // A method of its own, so that `blocks.set_block(here, blocks.block(there)?)` compiles.
        self.deref_mut().set_block(position, block)
    }

    /// Whether the block lies in a section that is this region's own. Its column may not be loaded.
    pub fn is_owned(&self, position: BlockPos) -> bool {
        self.columns.is_owned(position.column())
    }

    /// Whether this region owns the block's column and has it loaded, at the block's height.
    pub fn contains(&self, position: BlockPos) -> bool {
        self.columns.column(position.column()).is_some_and(|column| column.is_loaded(position.chunk().y))
    }

    /// The positions of the region's columns, sorted.
    pub fn columns(&self) -> &[ColumnPos] {
        self.columns.positions()
    }
}
