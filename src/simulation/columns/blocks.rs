//! The ground of a region as a game system sees it: [`RegionBlocks`], and the columns below it.

use super::light::RegionLight;
use super::notices::Notices;
use crate::block::{BlockId, BlockLayout, BlockRegistry};
use crate::chunk::{BlockValueError, Chunk, Column, RayHit, cast_ray};
use crate::light::{ColumnLight, Light};
use crate::region::RegionId;
use crate::simulation::columns::column_source::GroundTypes;
use crate::simulation::{BlockTicks, ColumnError, ColumnSource, FetchedColumn, Position, TimeOfDay};
use crate::space::{BlockPos, ChunkPos, ColumnPos, HeightSet, SectionPos};
use crate::storage::LoadedColumn;
use bevy::ecs::system::SystemParam;
use bevy::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::mem;
use std::ops::{Deref, DerefMut, Range};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// If so many blocks of a column have changed at once, and one for each four of its chunks, its light is computed from scratch. That
/// takes 5 us for a chunk, and working off a changed block takes some 30 us.
const MANY_BLOCKS: usize = 8;

/// The reason why a region could not read or change a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockAccessError {
    /// The column is not in this region: another region owns it, or it is not loaded.
    #[error("block {0} lies in column {column}, which this region does not own or has not loaded", column = .0.column())]
    OutsideRegion(BlockPos),
    /// In strict mode: another region owns the column.
    #[error("block {block} lies in column {column}, which {owner} owns", column = .block.column())]
    OwnedByOther {
        /// The requested block.
        block: BlockPos,
        /// The region that owns its column.
        owner: RegionId,
    },
    /// The dimension is sparse, and the column is loaded, but not at this height.
    #[error("block {0} lies at a height of its column that is not loaded")]
    UnloadedHeight(BlockPos),
    /// Too many edits are waiting for the region that owns the block, because it does not tick: it is paused, it hangs, or the
    /// world waits for a store that is far behind.
    #[error("block {0} is not changed: too many edits wait for its region, which does not tick")]
    TooManyEdits(BlockPos),
    /// The server does not take edits, refuses this one, or has not answered.
    #[error("the server does not change block {0}")]
    RefusedByServer(BlockPos),
    /// The id to be set has no registered type. It could later be assigned to another type that the game registers.
    #[error("block {block} is not set to {id}: no type is registered under that id, take ids from `BlockTypes`")]
    Unregistered {
        /// The block that was to be set.
        block: BlockPos,
        /// The id.
        id: BlockId,
    },
    /// The position lies below or above the dimension.
    #[error("block {block} lies outside the dimension's height range {low}..{high}")]
    OutsideHeights {
        /// The requested block.
        block: BlockPos,
        /// The lowest y of the dimension.
        low: i64,
        /// The first y above the dimension.
        high: i64,
    },
    /// The cell does not have that many layers, or the component does not fit.
    #[error("block {block}: {source}")]
    Value {
        /// The requested block.
        block: BlockPos,
        /// The problem with the layer or the component.
        source: BlockValueError,
    },
}

/// The columns that a region owns. Systems read and write them through [`RegionBlocks`].
#[derive(Resource, Default, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(from_reflect = false)]
#[reflect(Component, Default)]
pub struct RegionColumns {
    #[reflect(ignore)]
    columns: FxHashMap<ColumnPos, Column>,
    /// Sorted, so that iteration visits the columns in the same order on every machine.
    #[reflect(ignore)]
    positions: Vec<ColumnPos>,
    #[reflect(ignore)]
    heights: Range<i64>,
    /// The sections that the region owns, with or without columns.
    #[reflect(ignore)]
    pub(crate) sections: FxHashSet<SectionPos>,
    /// The source of columns that a system requests during the tick.
    #[reflect(ignore)]
    ground: Option<Arc<ColumnSource>>,
    #[reflect(ignore)]
    pub(crate) ticks: BlockTicks,
    #[reflect(ignore)]
    pub(crate) fetched: Vec<FetchedColumn>,
    /// `true` if an entity may be outside of the region although it has not moved since the last look.
    #[reflect(ignore)]
    pub(crate) look_everywhere: bool,
    /// Fetched columns whose entities and scheduled ticks have not arrived yet.
    #[reflect(ignore)]
    pub(crate) awaiting: FxHashSet<ColumnPos>,
    /// In strict mode, the accesses outside of the region in this tick. Behind a mutex because systems may read blocks through a
    /// shared reference.
    #[reflect(ignore)]
    violations: Mutex<Vec<BlockAccessError>>,
    #[reflect(ignore)]
    pub(crate) changed: FxHashSet<ChunkPos>,
    #[reflect(ignore)]
    pub(crate) unsaved: FxHashSet<ChunkPos>,
    /// New columns that the game's systems have not been told of.
    #[reflect(ignore)]
    pub(crate) new: BTreeSet<ColumnPos>,
    /// Columns that they were told of since everything unsaved was last handed out.
    #[reflect(ignore)]
    pub(crate) told: BTreeSet<ColumnPos>,
    #[reflect(ignore)]
    light: RegionLight,
    #[reflect(ignore)]
    pub(crate) time_of_day: Option<TimeOfDay>,
    #[reflect(ignore)]
    pub(super) notices: Notices,
    /// Chunks that may get random ticks, and possibly some that are gone.
    #[reflect(ignore)]
    pub(super) random_chunks: BTreeSet<ChunkPos>,
}

/// Columns.
impl RegionColumns {
    /// Assigns the columns to a region in this dimension.
    pub(crate) fn settle(&mut self, ground: &Arc<ColumnSource>) {
        self.heights = ground.heights.clone();
        self.ground = Some(ground.clone());
        self.look_everywhere = true;
    }

    fn section(&self, column: ColumnPos) -> SectionPos {
        column.section(self.ground.as_ref().map_or(0, |ground| ground.section_shift))
    }

    /// Returns `true` if the column lies in a section that this region owns. It may not be loaded.
    pub fn is_owned(&self, column: ColumnPos) -> bool {
        self.sections.contains(&self.section(column))
    }

    /// Loads or generates the column of a block in an owned section on this thread, if it is not loaded. In a sparse dimension,
    /// this loads only the part around the block. The blocks can be read and edited at once; stored entities follow in a later
    /// tick. A column without a viewer is evicted again after a while.
    pub fn load(&mut self, block: BlockPos) -> Result<&Column, ColumnError> {
        let column = block.column();
        let not_owned = ColumnError::NotOwned(column);
        match self.columns.get(&column) {
            Some(known) if known.is_loaded(block.chunk().y) || !self.heights.contains(&block.y) => {}
            known => {
                let is_new = known.is_none();
                let known = known.and_then(Column::loaded).cloned().unwrap_or_default();
                let ground = self.ground.clone().filter(|_| self.is_owned(column)).ok_or(not_owned)?;
                let mut fetched = ground.fetch(block, &known)?;
                self.insert(fetched.loaded.column.clone(), None);
                self.ticks.insert(mem::take(&mut fetched.loaded.block_ticks));
                if is_new {
                    self.awaiting.insert(column);
                }
                self.fetched.push(fetched);
            }
        }
        self.columns.get(&column).ok_or(ColumnError::NotOwned(column))
    }

    /// The positions of the region's columns, sorted.
    pub fn columns(&self) -> &[ColumnPos] {
        &self.positions
    }

    /// A column of this region.
    pub fn column(&self, position: ColumnPos) -> Option<&Column> {
        self.columns.get(&position)
    }

    /// The chunks with changes that the region has not handed out to a save yet, in no order.
    pub fn unsaved_chunks(&self) -> impl Iterator<Item = ChunkPos> {
        self.unsaved.iter().copied()
    }

    /// Returns `true` if the column is loaded in this region.
    pub fn contains(&self, position: ColumnPos) -> bool {
        self.columns.contains_key(&position)
    }

    /// Returns `true` if several servers share the world.
    pub(crate) fn is_of_shared_world(&self) -> bool {
        self.ground.as_ref().is_some_and(|ground| ground.open_plots.is_some())
    }

    /// Returns `true` if the position is not on this region's ground.
    pub(crate) fn is_outside(&self, position: &Position) -> bool {
        self.ground.as_ref().is_some_and(|ground| ground.dimension != position.dimension)
            || !self.contains(position.column())
    }

    /// Inserts a column, or the part of it that is missing. Returns the heights of that part if the column was loaded before.
    pub(crate) fn insert(&mut self, column: Column, light: Option<ColumnLight>) -> Option<HeightSet> {
        let position = column.pos();
        self.find_random_chunks(&column);
        if let Some(ground) = &self.ground {
            self.light.insert(&column, || light.or_else(|| ground.light_of(&column)));
        }
        if let Some(known) = self.columns.get_mut(&position) {
            return Some(known.extend(&column));
        }
        self.columns.insert(position, column);
        if let Err(place) = self.positions.binary_search(&position) {
            self.positions.insert(place, position);
        }
        None
    }

    /// Removes and returns a part of a column.
    pub(crate) fn cut(&mut self, column: ColumnPos, heights: &HeightSet) -> Option<Column> {
        let cut = self.columns.get_mut(&column)?.cut(heights);
        self.light.cut(column, heights);
        Some(cut)
    }

    /// Works off changes of light within its share of a period, or all of them. Returns the light to publish.
    pub(crate) fn advance_light(&mut self, period: Option<Duration>) -> Vec<ColumnLight> {
        let Some(rules) = self.ground.as_ref().and_then(|ground| ground.light.as_ref()) else { return Vec::new() };
        let steps = period.map_or(usize::MAX, |period| rules.steps(period));
        self.light.advance(&rules.table, &self.columns, steps)
    }

    /// Returns `true` if the light will be up to date soon.
    pub(crate) fn awaits_light(&self) -> bool {
        self.light.is_awaited()
    }

    /// Takes over the light of columns that come from another region.
    pub(crate) fn receive_light(&mut self, light: RegionLight) {
        self.light.append(light);
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
        self.new.extend(other.new);
        self.told.extend(other.told);
        self.light.append(other.light);
        self.notices.append(other.notices);
        self.random_chunks.extend(other.random_chunks);
    }

    /// Removes and returns the columns for which `wanted` returns `true` with their scheduled ticks, sorted, and their light.
    pub(crate) fn split_off(&mut self, wanted: impl Fn(ColumnPos) -> bool) -> (Vec<LoadedColumn>, RegionLight) {
        let light = self.light.split_off(&wanted);
        let (taken, kept) = self.positions.drain(..).partition::<Vec<_>, _>(|&position| wanted(position));
        self.positions = kept;
        self.look_everywhere |= !taken.is_empty();
        let columns = taken.into_iter().filter_map(|position| self.columns.remove(&position));
        let loaded = |column: Column| {
            let block_ticks = self.ticks.take_chunks(|chunk| chunk.column() == column.pos());
            let is_new = self.new.remove(&column.pos());
            LoadedColumn { block_ticks, is_new, ..column.into() }
        };
        (columns.map(loaded).collect(), light)
    }

    /// The dimension's heights, in chunks.
    pub(crate) fn chunk_heights(&self) -> Range<i64> {
        self.ground.as_ref().map_or(0..0, |ground| ground.chunk_heights.clone())
    }

    pub(super) fn ground_types(&self) -> Option<&GroundTypes> {
        self.ground.as_ref().map(|ground| &ground.types)
    }

    pub(crate) fn block_types(&self) -> Option<&BlockRegistry> {
        self.ground.as_ref().map(|ground| &*ground.blocks)
    }

    /// Takes the accesses outside of the region since the last call, in strict mode.
    pub(crate) fn take_violations(&mut self) -> Vec<BlockAccessError> {
        mem::take(self.violations.get_mut().unwrap_or_else(PoisonError::into_inner))
    }

    fn outside(&self, block: BlockPos) -> BlockAccessError {
        let owners = self.ground.as_ref().and_then(|ground| ground.owners.as_ref());
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

    /// Checks that `position` is inside the dimension and its column is loaded here.
    pub(crate) fn check(&self, position: BlockPos) -> Result<(), BlockAccessError> {
        self.check_height(position)?;
        match self.columns.get(&position.column()) {
            Some(column) if column.is_loaded(position.chunk().y) => Ok(()),
            Some(_) => Err(BlockAccessError::UnloadedHeight(position)),
            None => Err(self.outside(position)),
        }
    }

    /// Checks that a type is registered under the id.
    pub(crate) fn check_type(&self, block: BlockPos, id: BlockId) -> Result<(), BlockAccessError> {
        match self.block_types().is_none_or(|blocks| blocks.contains(id)) {
            true => Ok(()),
            false => Err(BlockAccessError::Unregistered { block, id }),
        }
    }

    /// The block at `position`. Above and below the dimension's heights everything is air.
    pub fn block(&self, position: BlockPos) -> Result<BlockId, BlockAccessError> {
        match self.columns.get(&position.column()) {
            Some(column) if column.is_loaded(position.chunk().y) || !self.heights.contains(&position.y) => {
                Ok(column.block(position))
            }
            Some(_) => Err(BlockAccessError::UnloadedHeight(position)),
            None => Err(self.outside(position)),
        }
    }

    /// The block at `position`; `None` if it is not loaded in this region. In contrast to [`block`](Self::block), this is
    /// no error in strict mode.
    pub fn known_block(&self, position: BlockPos) -> Option<BlockId> {
        let column = self.columns.get(&position.column())?;
        let is_known = column.is_loaded(position.chunk().y) || !self.heights.contains(&position.y);
        is_known.then(|| column.block(position))
    }

    /// The blocks of a cell, from layer 0 up; `None` if it is not loaded in this region.
    pub(crate) fn known_blocks(&self, position: BlockPos) -> Option<impl Iterator<Item = BlockId> + '_> {
        let column = self.columns.get(&position.column())?;
        let height = position.chunk().y;
        let is_known = column.is_loaded(height) || !self.heights.contains(&position.y);
        let chunk = column.chunk(height);
        is_known.then(|| chunk.into_iter().flat_map(move |chunk| chunk.blocks_at(position.in_chunk())))
    }

    /// The chunk at `position`, for reading many blocks: `None` if it is not loaded in this region, and `Some(None)` if it is air.
    pub fn loaded_chunk(&self, position: ChunkPos) -> Option<Option<&Chunk>> {
        let column = self.columns.get(&position.column())?;
        let is_known = column.is_loaded(position.y) || !self.chunk_heights().contains(&position.y);
        is_known.then(|| column.chunk(position.y).map(|chunk| &**chunk))
    }

    /// Sets the block at `position` and returns the block that was there. The components of the new block, if its type has any,
    /// are all zero or, if of variable size, empty.
    pub fn set_block(&mut self, position: BlockPos, block: BlockId) -> Result<BlockId, BlockAccessError> {
        self.check_height(position)?;
        self.check_type(position, block)?;
        let Some(column) = self.columns.get_mut(&position.column()) else { return Err(self.outside(position)) };
        if !column.is_loaded(position.chunk().y) {
            return Err(BlockAccessError::UnloadedHeight(position));
        }
        let before = column.block(position);
        if before != block {
            match self.ground.as_ref().map(|ground| &*ground.blocks) {
                Some(blocks) if !blocks.components(block).is_empty() => {
                    // Layer 0 always exists.
                    let _ = column.chunk_mut(position.chunk().y).place_block(blocks, position.in_chunk(), 0, block);
                }
                _ => drop(column.set_block(position, block)),
            }
            if let Some(rules) = self.ground.as_ref().and_then(|ground| ground.light.as_ref()) {
                self.light.block_changed(&rules.table, position, before, block);
            }
            self.note_change(position.chunk());
            self.note_block(position);
        }
        Ok(before)
    }

    /// The light at `position` at the end of the last tick. Opaque blocks are dark inside: ask for the block in front. If the
    /// world has [no light](crate::plugin::TerranePlugin::light), everything is under the open sky.
    ///
    /// ```
    /// use bevy_terrane::prelude::*;
    ///
    /// fn is_dark(blocks: &RegionBlocks, place: BlockPos) -> bool {
    ///     blocks.light(place).is_ok_and(|light| light.now < 8)
    /// }
    /// ```
    pub fn light(&self, position: BlockPos) -> Result<Light, BlockAccessError> {
        self.check(position)?;
        Ok(Light::new(self.light.levels(position).unwrap_or(Light::OPEN_SKY), self.daylight()))
    }

    /// The time of day at this tick; `None` if the dimension has no [`TimeOfDay`].
    pub fn time_of_day(&self) -> Option<TimeOfDay> {
        self.time_of_day
    }

    /// The daylight, from 0 at night to 1 by day.
    fn daylight(&self) -> f32 {
        self.time_of_day.map_or(1.0, |time| time.daylight())
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

    /// Reads the chunk of a block; `None` if a loaded column has only air there.
    pub(crate) fn read<'a, R>(
        &'a self,
        position: BlockPos,
        read: impl FnOnce(Option<&'a Chunk>, [usize; 3]) -> R,
    ) -> Result<R, BlockAccessError> {
        self.check(position)?;
        let chunk = self.columns.get(&position.column()).and_then(|column| column.chunk(position.chunk().y));
        Ok(read(chunk.map(|chunk| &**chunk), position.in_chunk()))
    }

    /// Edits the chunk of a block.
    pub(crate) fn edit<R>(
        &mut self,
        position: BlockPos,
        edit: impl FnOnce(&mut Chunk, &BlockRegistry, [usize; 3]) -> Result<R, BlockAccessError>,
    ) -> Result<R, BlockAccessError> {
        self.check(position)?;
        let outside = BlockAccessError::OutsideRegion(position);
        let column = self.columns.get_mut(&position.column()).ok_or(outside)?;
        let ground = self.ground.as_ref().ok_or(outside)?;
        let before = column.block(position);
        let edited = edit(column.chunk_mut(position.chunk().y), &ground.blocks, position.in_chunk())?;
        if let Some(rules) = &ground.light {
            self.light.block_changed(&rules.table, position, before, column.block(position));
        }
        self.note_change(position.chunk());
        Ok(edited)
    }

    /// Replaces chunks of a loaded column.
    pub(crate) fn replace_chunks(&mut self, position: ColumnPos, chunks: Vec<(i64, Arc<Chunk>)>) {
        let Some(column) = self.columns.get_mut(&position) else { return };
        let rules = self.ground.as_ref().and_then(|ground| ground.light.as_ref());
        let many = MANY_BLOCKS.max(column.chunks().len() / 4);
        let mut differing = 0;
        let heights: Vec<i64> = chunks.iter().map(|(y, _)| *y).collect();
        for (y, chunk) in chunks {
            let old = column.set_chunk(y, chunk.clone());
            if let Some(rules) = rules.filter(|_| differing < many) {
                differing += self.light.chunk_changed(&rules.table, position.chunk(y), old.as_deref(), Some(&chunk));
            }
        }
        if differing >= many
            && let Some(light) = self.ground.as_ref().and_then(|ground| ground.light_of(column))
        {
            self.light.replace(light);
        }
        for y in heights {
            self.note_change(position.chunk(y));
            self.find_random_chunk(position.chunk(y));
        }
    }

    fn note_change(&mut self, chunk: ChunkPos) {
        self.changed.insert(chunk);
        self.unsaved.insert(chunk);
    }

    /// Announces a changed block to the ground around it.
    pub(super) fn note_block(&mut self, block: BlockPos) {
        self.notice_change(block);
        self.find_random_block(block);
    }
}

/// Scheduled ticks of blocks.
impl RegionColumns {
    /// The scheduled ticks of the region's blocks, for reading.
    pub fn ticks(&self) -> &BlockTicks {
        &self.ticks
    }

    /// Schedules a [`BlockTick`](crate::simulation::BlockTick) of `kind` for a block of this region, `delay` ticks from
    /// now. A waiting tick of the same kind is left unchanged. Returns `true` if the tick was scheduled.
    pub fn schedule_tick(
        &mut self,
        position: BlockPos,
        kind: impl Into<Arc<str>>,
        delay: u64,
    ) -> Result<bool, BlockAccessError> {
        self.check(position)?;
        Ok(self.ticks.schedule(position, kind.into(), delay))
    }

    /// Cancels a scheduled tick. Returns `true` if there was one.
    pub fn cancel_tick(&mut self, position: BlockPos, kind: &str) -> bool {
        self.ticks.cancel(position, kind)
    }
}

/// Reads and edits the blocks of the system's region, and their scheduled ticks. It dereferences to [`RegionColumns`].
///
/// A system that also has a `Res` or `ResMut` of [`RegionColumns`] panics (Bevy's B0002).
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
        // Changes are tracked per chunk, so the resource as a whole is not marked as changed.
        self.columns.bypass_change_detection()
    }
}

impl RegionBlocks<'_> {
    /// Sets the block at `position` and returns the block that was there. The components of the new block, if its type has any,
    /// are all zero or, if of variable size, empty.
    #[inline]
    pub fn set_block(&mut self, position: BlockPos, block: BlockId) -> Result<BlockId, BlockAccessError> {
        // A separate method, so that `blocks.set_block(here, blocks.block(there)?)` compiles.
        self.deref_mut().set_block(position, block)
    }

    /// The first wanted block whose [shape](crate::block::BlockShape::boxes) a ray hits, up to `reach` blocks away, from any block
    /// position with the same accuracy. The ray passes over blocks that the region does not have. The dimension of `from` is ignored. See
    /// [`cast_ray`](crate::chunk::cast_ray).
    pub fn cast_ray(
        &self,
        from: Position,
        direction: impl Into<Vec3>,
        reach: f64,
        is_wanted: impl Fn(BlockId) -> bool,
    ) -> Option<RayHit> {
        let types = &self.columns.ground.as_ref()?.blocks;
        let chunk = |pos: ChunkPos| Some(&**self.columns.column(pos.column())?.chunk(pos.y)?);
        cast_ray(from.ray(direction.into()), reach, types, chunk, is_wanted)
    }

    /// Returns `true` if the block lies in a section that this region owns. Its column may not be loaded.
    pub fn is_owned(&self, position: BlockPos) -> bool {
        self.columns.is_owned(position.column())
    }

    /// Returns `true` if this region owns the block's column and has it loaded at the block's height.
    pub fn contains(&self, position: BlockPos) -> bool {
        self.columns.column(position.column()).is_some_and(|column| column.is_loaded(position.chunk().y))
    }
}
