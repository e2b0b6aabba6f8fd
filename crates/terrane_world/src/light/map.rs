//! [`LightMap`]: the light of all columns of a region.

use super::cells::{border, step};
use super::levels::{below, equal, lit, planes_of};
use super::optics::ChunkOptics;
use super::pending::Pending;
use super::{Channel, ChunkLight, ColumnLight, LightLevels, LightTable, MAX_LEVEL};
use crate::block::BlockId;
use crate::chunk::{Chunk, Column};
use crate::space::{BlockPos, CHUNK_VOLUME, ChunkPos, ColumnPos, Face, HeightSet, bits, cell_index};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::mem;

/// No slot.
pub(super) const NONE: u32 = u32::MAX;

/// The faces towards the neighboring columns.
pub(super) const SIDES: [Face; 4] = [Face::West, Face::East, Face::North, Face::South];

/// The light of columns that border on each other, up to date with their blocks once [`advance`](Self::advance) has
/// nothing left to do.
///
/// The map does not keep the blocks. Announce every change: [`insert`](Self::insert) and [`remove`](Self::remove) for
/// columns and [`block_changed`](Self::block_changed) for blocks. Announcements are cheap and their order does not matter.
///
/// ```
/// # use terrane_world::{block::*, chunk::Column, light::*, space::*};
/// let mut blocks = BlockRegistry::new();
/// let torch = blocks.register(BlockType::new("game:torch").with_shape(BlockShape::torch()).with_light(14))?;
/// let table = LightTable::new(&blocks);
///
/// let mut column = Column::new(ColumnPos::new(0, 0));
/// let mut light = LightMap::new();
/// light.insert(ColumnLight::new(&table, &column, &HeightSet::from(-4..20), 20));
/// let place = BlockPos::new(8, 70, 8);
/// let old = column.set_block(place, torch);
/// light.block_changed(&table, place, old, torch);
/// while !light.advance(&table, &column, 1_000) {}
///
/// assert_eq!(light.levels(place), Some([15, 14]));
/// assert_eq!(light.levels(place.offset(3, 0, 0)), Some([15, 11]));
/// # Ok::<(), BlockRegistryError>(())
/// ```
#[derive(Default)]
pub struct LightMap {
    /// One for each chunk. Chunks refer to each other by their place here.
    pub(super) slots: Vec<Slot>,
    /// Slots without a chunk.
    pub(super) free: Vec<u32>,
    pub(super) columns: FxHashMap<ColumnPos, LitColumn>,
    /// Slots that may have work left, each once.
    pub(super) active: Vec<u32>,
    /// Slots whose light has changed, each once.
    pub(super) changed: Vec<u32>,
}

pub(super) struct LitColumn {
    pub open_from: i64,
    pub slots: BTreeMap<i64, u32>,
}

/// The light of one chunk and the work that is left in it.
pub(super) struct Slot {
    pub pos: ChunkPos,
    pub light: ChunkLight,
    /// The slots of the chunks at the faces.
    pub neighbors: [u32; 6],
    /// There is no chunk above, but the open sky.
    pub is_below_sky: bool,
    pub is_active: bool,
    pub is_changed: bool,
    /// Inserted just now, with light that is up to date with the others.
    pub is_new: bool,
    pub pending: [Option<Box<Pending>>; 2],
    /// Present while the light advances.
    pub optics: Option<Box<ChunkOptics>>,
}

impl Slot {
    pub fn new(pos: ChunkPos, light: ChunkLight, is_below_sky: bool) -> Self {
        Self {
            pos,
            light,
            neighbors: [NONE; 6],
            is_below_sky,
            is_active: false,
            is_changed: false,
            is_new: false,
            pending: [None, None],
            optics: None,
        }
    }

    pub fn pending_mut(&mut self, channel: Channel) -> &mut Pending {
        self.pending[channel as usize].get_or_insert_default()
    }

    /// Lets the cells at a face fall to what they have without the chunk beyond it, which may have lit them. Returns `true`
    /// if there are such cells.
    pub fn distrust(&mut self, face: Face) -> bool {
        let (words, cells) = border(face);
        let mut has_any = false;
        for channel in Channel::ALL {
            for word in bits(words).map(|word| word as usize) {
                let planes = self.light.channel(channel).word(word);
                let doubtful = match channel {
                    // Their base may have changed too.
                    Channel::Sky if face == Face::Top && self.is_below_sky => cells,
                    // Full sky light only comes from above.
                    Channel::Sky if face != Face::Top => cells & lit(&planes) & !equal(&planes, MAX_LEVEL),
                    _ => cells & lit(&planes),
                };
                if doubtful != 0 {
                    self.pending_mut(channel).edited.insert(word, doubtful);
                    has_any = true;
                }
            }
        }
        has_any
    }
}

impl LightMap {
    /// A map without columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the light of a column, or of further heights of a column that is there. Heights that are there already stay
    /// as they are, and the new ones get the light that comes from these. The open sky is that of the column that came first.
    ///
    /// Light flows between the new chunks and their neighbors in the next [`advance`](Self::advance). The blocks must be those
    /// that the light was computed from, or the changes must be [announced](Self::block_changed) afterwards.
    pub fn insert(&mut self, light: ColumnLight) {
        let ColumnLight { pos, open_from, chunks, is_alone } = light;
        let is_alone = self.column_entry(pos, open_from).open_from == open_from && is_alone;
        let heights = chunks.len();
        let new: Vec<u32> =
            chunks.into_iter().filter_map(|(y, light)| self.insert_chunk(pos.chunk(y), light)).collect();
        // The light of chunks that were there already may differ from the light that the new ones got from them.
        let is_alone = is_alone && new.len() == heights;
        new.iter().for_each(|slot| self.slots[*slot as usize].is_new = true);
        for &slot in &new {
            for face in Face::ALL {
                self.link(slot, face, is_alone);
            }
        }
        new.iter().for_each(|slot| self.slots[*slot as usize].is_new = false);
    }

    /// Removes a column. Its light leaves the other columns in the next [`advance`](Self::advance).
    pub fn remove(&mut self, pos: ColumnPos) {
        let heights = |column: &LitColumn| column.slots.keys().copied().collect();
        if let Some(heights) = self.columns.get(&pos).map(heights) {
            self.remove_heights(pos, &heights);
        }
    }

    /// Removes these chunk heights of a column, as [`remove`](Self::remove) does.
    pub fn remove_heights(&mut self, pos: ColumnPos, heights: &HeightSet) {
        let Some(column) = self.columns.get_mut(&pos) else { return };
        let open_from = column.open_from;
        let mut removed = Vec::new();
        for range in heights.ranges() {
            removed.extend(column.slots.extract_if(range, |_, _| true).map(|(_, slot)| slot));
        }
        if column.slots.is_empty() {
            self.columns.remove(&pos);
        }
        let is_listed = removed.iter().any(|slot| {
            let slot = &self.slots[*slot as usize];
            slot.is_active || slot.is_changed
        });
        removed.iter().for_each(|slot| self.remove_chunk(*slot, open_from, &removed));
        if is_listed {
            for list in [&mut self.active, &mut self.changed] {
                list.retain(|slot| !removed.contains(slot));
            }
        }
        self.free.append(&mut removed);
        self.compact();
    }

    /// Announces that a block has changed from one type to another. Ignored if the map does not have the chunk, or if both
    /// types do the same to light.
    #[inline]
    pub fn block_changed(&mut self, table: &LightTable, pos: BlockPos, old: BlockId, new: BlockId) {
        if let Some(slot) = self.slot(pos.chunk()) {
            self.edit(table, slot, cell_index(pos.in_chunk()), old, new);
        }
    }

    /// Returns `true` if the types do not do the same to light.
    fn edit(&mut self, table: &LightTable, slot: u32, cell: usize, old: BlockId, new: BlockId) -> bool {
        let mut is_edited = false;
        for channel in Channel::ALL.into_iter().filter(|channel| table.differ(*channel, old, new)) {
            self.slots[slot as usize].pending_mut(channel).edited.insert(cell / 64, 1 << (cell % 64));
            self.activate(slot);
            is_edited = true;
        }
        is_edited
    }

    /// Replaces the light of a column with light that was computed from scratch, after many of its blocks have changed. Light flows
    /// between the column and its neighbors in the next [`advance`](Self::advance). The new light is not a
    /// [change](Self::drain_changed). For a few blocks, [`chunk_changed`](Self::chunk_changed) costs less.
    pub fn replace(&mut self, light: ColumnLight) {
        let Some(column) = self.columns.get(&light.pos) else { return self.insert(light) };
        let is_same_place = column.slots.keys().eq(light.chunks.iter().map(|(y, _)| y));
        if !is_same_place || column.open_from != light.open_from || !light.is_alone {
            self.remove(light.pos);
            return self.insert(light);
        }
        let slots: Vec<u32> = column.slots.values().copied().collect();
        for (slot, (_, light)) in slots.iter().zip(light.chunks) {
            let slot = &mut self.slots[*slot as usize];
            // Work that was left in the column is for blocks of before.
            (slot.light, slot.pending) = (light, [None, None]);
        }
        for slot in slots {
            for face in SIDES {
                let other = self.slots[slot as usize].neighbors[face as usize];
                if other == NONE {
                    continue;
                }
                if self.slots[other as usize].distrust(face.opposite()) {
                    self.activate(other);
                }
                self.meet(slot, face, other);
            }
        }
    }

    /// Announces that a chunk was replaced; `None` stands for air. Returns the number of blocks that do something else to light
    /// now; only these cost time. Ignored if the map does not have the chunk.
    pub fn chunk_changed(
        &mut self,
        table: &LightTable,
        pos: ChunkPos,
        old: Option<&Chunk>,
        new: Option<&Chunk>,
    ) -> usize {
        let Some(slot) = self.slot(pos) else { return 0 };
        let [mut before, mut after] = [[BlockId::AIR; CHUNK_VOLUME]; 2];
        for (chunk, blocks) in [(old, &mut before), (new, &mut after)] {
            if let Some(chunk) = chunk {
                chunk.copy_into(blocks);
            }
        }
        let differing = (0..CHUNK_VOLUME).filter(|cell| before[*cell] != after[*cell]);
        differing.filter(|cell| self.edit(table, slot, *cell, before[*cell], after[*cell])).count()
    }

    /// Returns `true` if the map has any chunk of the column.
    pub fn contains(&self, pos: ColumnPos) -> bool {
        self.columns.contains_key(&pos)
    }

    /// Returns `true` if the light is up to date with all announced changes.
    pub fn is_settled(&self) -> bool {
        self.active.is_empty()
    }

    /// The columns with chunks whose light is not up to date yet, some of them more than once. Light may still flow from these
    /// into the columns around them.
    pub fn unsettled_columns(&self) -> impl Iterator<Item = ColumnPos> {
        self.active.iter().map(|slot| self.slots[*slot as usize].pos.column())
    }

    /// The light of a chunk; `None` if the map does not have the chunk.
    pub fn chunk(&self, pos: ChunkPos) -> Option<&ChunkLight> {
        Some(&self.slots[self.slot(pos)? as usize].light)
    }

    /// The light of a column, with that of its neighbors; `None` if the map does not have the column.
    pub fn column(&self, pos: ColumnPos) -> Option<ColumnLight> {
        let LitColumn { open_from, slots } = self.columns.get(&pos)?;
        let chunks = slots.iter().map(|(y, slot)| (*y, self.slots[*slot as usize].light.clone())).collect();
        Some(ColumnLight { pos, open_from: *open_from, chunks, is_alone: false })
    }

    /// The levels of sky light and of block light at a position; `None` if the map does not have the chunk.
    pub fn levels(&self, pos: BlockPos) -> Option<[u8; 2]> {
        Some(self.chunk(pos.chunk())?.levels(pos.in_chunk()))
    }

    /// The chunks whose light has changed since the last call, each once, with their light. Inserted light is not a
    /// change.
    pub fn drain_changed(&mut self) -> impl Iterator<Item = (ChunkPos, ChunkLight)> {
        let slots = &mut self.slots;
        self.changed.drain(..).map(|slot| {
            let slot = &mut slots[slot as usize];
            slot.is_changed = false;
            (slot.pos, slot.light.clone())
        })
    }

    /// The heap memory in bytes, including the light that is shared with clones. The size of the maps is an estimate.
    pub fn heap_bytes(&self) -> usize {
        let entry = size_of::<(i64, u32)>();
        let slot = |slot: &Slot| {
            entry + slot.light.heap_bytes() + slot.pending.iter().flatten().count() * size_of::<Pending>()
        };
        self.slots.capacity() * size_of::<Slot>()
            + self.columns.capacity() * size_of::<(ColumnPos, LitColumn)>()
            + self.slots.iter().map(slot).sum::<usize>()
    }

    /// Adds a column without light, except where nothing is between it and the open sky. The rest is left to
    /// [`advance`](Self::advance).
    pub(super) fn insert_dark(&mut self, table: &LightTable, column: &Column, heights: &HeightSet, open_from: i64) {
        self.column_entry(column.pos(), open_from);
        for y in heights.iter().rev() {
            let (pos, blocks) = (column.pos().chunk(y), column.chunk(y).map(AsRef::as_ref));
            let Some(slot) = self.insert_chunk(pos, ChunkLight::default()) else { continue };
            let above = beyond(pos, Face::Top).and_then(|above| self.slot(above)).unwrap_or(NONE);
            self.connect(slot, Face::Top, above);
            let is_below_light = match self.slots.get(above as usize) {
                Some(above) => above.light.sky.uniform_level() == Some(MAX_LEVEL),
                None => self.slots[slot as usize].is_below_sky,
            };
            if is_below_light && table.is_clear(blocks) {
                self.slots[slot as usize].light.sky = LightLevels::uniform(MAX_LEVEL);
            } else if is_below_light {
                self.start_sky(slot);
            }
            if table.shines(blocks) {
                let mut optics = ChunkOptics::new(table, blocks);
                optics.learn(u64::MAX, table, blocks);
                self.slots[slot as usize].pending_mut(Channel::Block).edited = optics.shining();
                self.activate(slot);
            }
        }
    }

    /// Lets the sky, or the lit chunk above, shine into a chunk.
    fn start_sky(&mut self, slot: u32) {
        let above = self.slots[slot as usize].neighbors[Face::Top as usize];
        let (face, lit) = if above == NONE { (Face::Top, slot) } else { (Face::Bottom, above) };
        let (words, cells) = border(face);
        let pending = self.slots[lit as usize].pending_mut(Channel::Sky);
        for word in bits(words).map(|word| word as usize) {
            match above {
                NONE => pending.edited.insert(word, cells),
                _ => pending.rise(word, cells, &planes_of(MAX_LEVEL)),
            }
        }
        self.activate(lit);
    }

    /// Removes all chunks and returns their light by chunk height.
    pub(super) fn take_chunks(&mut self) -> Vec<(i64, ChunkLight)> {
        let mut chunks: Vec<_> = self.slots.drain(..).map(|slot| (slot.pos.y, slot.light)).collect();
        chunks.sort_unstable_by_key(|(y, _)| *y);
        chunks
    }

    /// The column at a position, created if it is not there.
    pub(super) fn column_entry(&mut self, pos: ColumnPos, open_from: i64) -> &mut LitColumn {
        self.columns.entry(pos).or_insert(LitColumn { open_from, slots: BTreeMap::new() })
    }

    /// The slot of a new chunk, with no neighbor; `None` if the chunk is there already.
    pub(super) fn insert_chunk(&mut self, pos: ChunkPos, light: ChunkLight) -> Option<u32> {
        let column = self.columns.get_mut(&pos.column())?;
        if column.slots.contains_key(&pos.y) {
            return None;
        }
        let slot = Slot::new(pos, light, pos.y.saturating_add(1) >= column.open_from);
        let index = self.free.pop().unwrap_or(self.slots.len() as u32);
        column.slots.insert(pos.y, index);
        match self.slots.get_mut(index as usize) {
            Some(free) => *free = slot,
            None => self.slots.push(slot),
        }
        Some(index)
    }

    /// Makes two chunks neighbors.
    pub(super) fn connect(&mut self, slot: u32, face: Face, other: u32) {
        if other == NONE {
            return;
        }
        self.slots[slot as usize].neighbors[face as usize] = other;
        self.slots[other as usize].neighbors[face.opposite() as usize] = slot;
        match face {
            Face::Top => self.slots[slot as usize].is_below_sky = false,
            Face::Bottom => self.slots[other as usize].is_below_sky = false,
            _ => {}
        }
    }

    /// Connects a new chunk with its neighbor at a face, so that light flows between them.
    fn link(&mut self, slot: u32, face: Face, is_alone: bool) {
        let beyond = beyond(self.slots[slot as usize].pos, face);
        let other = beyond.and_then(|pos| self.slot(pos)).unwrap_or(NONE);
        let was_below_sky = self.slots.get(other as usize).is_some_and(|other| other.is_below_sky);
        let is_covered = face == Face::Top && other != NONE && self.slots[slot as usize].is_below_sky;
        self.connect(slot, face, other);
        if self.slots.get(other as usize).is_some_and(|other| other.is_new) {
            return;
        }
        if (!is_alone || is_covered) && self.slots[slot as usize].distrust(face) {
            self.activate(slot);
        }
        if other != NONE {
            if face == Face::Bottom && was_below_sky && self.slots[other as usize].distrust(Face::Top) {
                self.activate(other);
            }
            self.meet(slot, face, other);
        }
    }

    /// Lets the brighter cells at the border between two chunks rise.
    pub(super) fn meet(&mut self, slot: u32, face: Face, other: u32) {
        for channel in Channel::ALL {
            let level = |slot: u32| self.slots[slot as usize].light.channel(channel).uniform_level();
            if level(slot).is_some() && level(slot) == level(other) {
                continue;
            }
            let (words, cells) = border(face);
            for word in bits(words).map(|word| word as usize) {
                let own = self.slots[slot as usize].light.channel(channel).word(word);
                // The same cells as seen from the other side: the planes of one word go to one word.
                let (mut there, mut moved) = (word, [0; 4]);
                for (plane, moved) in own.iter().zip(&mut moved) {
                    step(face, word, plane & cells, |_, _| {}, |word, bits| (there, *moved) = (word, bits));
                }
                let mut cells_there = 0;
                step(face, word, cells, |_, _| {}, |_, bits| cells_there = bits);
                let others = self.slots[other as usize].light.channel(channel).word(there);
                let darker = below(&moved, &others) & cells_there;
                let brighter = below(&others, &moved) & cells_there;
                self.wake(other, channel, there, darker);
                let mut back = 0;
                step(face.opposite(), there, brighter, |_, _| {}, |_, bits| back = bits);
                self.wake(slot, channel, word, back);
            }
        }
    }

    fn wake(&mut self, slot: u32, channel: Channel, word: usize, cells: u64) {
        if cells != 0 {
            let woken = &mut self.slots[slot as usize];
            let now = woken.light.channel(channel).word(word);
            woken.pending_mut(channel).rise(word, cells & lit(&now), &now);
            self.activate(slot);
        }
    }

    /// Takes a chunk out of its slot and away from its neighbors, except from those that are `removed` too.
    fn remove_chunk(&mut self, slot: u32, open_from: i64, removed: &[u32]) {
        let free = Slot::new(self.slots[slot as usize].pos, ChunkLight::default(), false);
        let old = mem::replace(&mut self.slots[slot as usize], free);
        for (face, other) in Face::ALL.into_iter().zip(old.neighbors) {
            if other == NONE || removed.contains(&other) {
                continue;
            }
            let neighbor = &mut self.slots[other as usize];
            neighbor.neighbors[face.opposite() as usize] = NONE;
            neighbor.is_below_sky |= face == Face::Bottom && old.pos.y >= open_from;
            if neighbor.distrust(face.opposite()) {
                self.activate(other);
            }
        }
    }

    #[inline]
    pub(super) fn activate(&mut self, slot: u32) {
        let is_active = &mut self.slots[slot as usize].is_active;
        if !*is_active {
            *is_active = true;
            self.active.push(slot);
        }
    }

    #[inline]
    pub(super) fn slot(&self, pos: ChunkPos) -> Option<u32> {
        self.columns.get(&pos.column())?.slots.get(&pos.y).copied()
    }
}

/// The chunk beyond a face; `None` beyond the edge of `i64`.
pub(super) fn beyond(pos: ChunkPos, face: Face) -> Option<ChunkPos> {
    let [x, y, z] = face.normal();
    Some(ChunkPos::new(pos.x.checked_add(x)?, pos.y.checked_add(y)?, pos.z.checked_add(z)?))
}
