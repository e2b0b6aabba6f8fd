//! Assembles chunks from cells of other chunks.

use super::edit::UnpackedBlocks;
use super::extras::{self, Extras, PlacedValue, Slot, Value};
use super::packed_ids::LocalIds;
use super::{Chunk, Content, Mixed, cell};
use crate::block::{BlockComponentId, BlockComponentLayout, BlockId};
use crate::space::{CHUNK_SIZE, CHUNK_VOLUME, ChunkPart, cell_position};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Assembles a chunk from cells of other chunks, with their layers and components. Unfilled cells are air. No cell may
/// be filled twice.
pub struct ChunkAssembly<'a> {
    blocks: UnpackedBlocks,
    layers: Vec<(Slot, BlockId)>,
    values: Vec<PlacedValue<'a>>,
}

/// A set of cells of a chunk, one bit each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CellMask([u64; CHUNK_VOLUME / 64]);

impl Default for ChunkAssembly<'_> {
    fn default() -> Self {
        Self { blocks: UnpackedBlocks::uniform(BlockId::AIR), layers: Vec::new(), values: Vec::new() }
    }
}

impl<'a> ChunkAssembly<'a> {
    /// Copies cells of `source`. `to` gives the destination of a cell, or `None` to skip it; `block` converts its blocks.
    pub fn copy(&mut self, source: &'a Chunk, to: impl Fn(usize) -> Option<usize>, block: impl Fn(BlockId) -> BlockId) {
        self.copy_blocks(source, &to, &block);
        let moved = |slot: Slot| Some(Slot::new(to(slot.cell.into())?, slot.layer));
        self.layers.extend(source.layers().iter().filter_map(|(slot, known)| Some((moved(*slot)?, block(*known)))));
        let values = source.values().filter_map(|(layout, slot, value)| Some((layout, moved(slot)?, value)));
        self.values.extend(values);
    }

    /// Copies the cells of a part of `source`. `to` gives the destination of a cell, `block` converts its blocks.
    pub fn copy_part(
        &mut self,
        source: &'a Chunk,
        part: &ChunkPart,
        to: impl Fn([usize; 3]) -> usize,
        block: impl Fn(BlockId) -> BlockId,
    ) {
        let places = self.places_of(source, &block);
        let [xs, ys, zs] = part.ranges();
        for (x, y) in xs.flat_map(|x| ys.clone().map(move |y| (x, y))) {
            for z in zs.clone() {
                self.blocks.ids[to([x, y, z])] = places[cell([x, y, z])];
            }
        }
        let moved = |slot: Slot| {
            let position = cell_position(slot.cell.into());
            part.contains(position).then(|| Slot::new(to(position), slot.layer))
        };
        self.layers.extend(source.layers().iter().filter_map(|(slot, known)| Some((moved(*slot)?, block(*known)))));
        let values = source.values().filter_map(|(layout, slot, value)| Some((layout, moved(slot)?, value)));
        self.values.extend(values);
    }

    /// Like [`copy`](Self::copy), but only layer 0, without components.
    pub fn copy_blocks(
        &mut self,
        source: &Chunk,
        to: impl Fn(usize) -> Option<usize>,
        block: impl Fn(BlockId) -> BlockId,
    ) {
        for (cell, place) in self.places_of(source, block).into_iter().enumerate() {
            if let Some(to) = to(cell) {
                self.blocks.ids[to] = place;
            }
        }
    }

    /// Copies all cells of `source` with other numbers for its blocks and components. Drops a block's component if its
    /// new number is `None` for that position and layer.
    pub fn copy_renamed(
        &mut self,
        source: &'a Chunk,
        block: impl Fn(BlockId) -> BlockId,
        mut component: impl FnMut([usize; 3], u8, BlockComponentId) -> Option<BlockComponentId>,
    ) {
        *self.blocks.ids = self.places_of(source, &block);
        self.layers.extend(source.layers().iter().map(|(slot, known)| (*slot, block(*known))));
        self.values.extend(source.values().filter_map(|(layout, slot, value)| {
            let id = component(cell_position(slot.cell.into()), slot.layer, layout.id)?;
            Some((BlockComponentLayout { id, ..layout }, slot, value))
        }));
    }

    /// Replaces the block that was copied into a cell.
    pub fn set_block(&mut self, position: [usize; 3], block: BlockId) {
        self.blocks.ids[cell(position)] = self.blocks.place(block);
    }

    /// Adds a block to a cell, in a layer above those that the cell has.
    pub fn push_layer(&mut self, position: [usize; 3], layer: u8, block: BlockId) {
        self.layers.push((Slot::new(cell(position), layer), block));
    }

    /// Adds a component of variable size to a cell's block of layer 0, which must not have it yet.
    pub fn push_value(&mut self, position: [usize; 3], id: BlockComponentId, value: &'a Arc<[u8]>) {
        let layout = BlockComponentLayout { id, size: None };
        self.values.push((layout, Slot::new(cell(position), 0), Value::Shared(value)));
    }

    /// Adds blocks above layer 0. All layers of a cell are added together.
    pub(super) fn add_layers<'b>(&mut self, blocks: impl Iterator<Item = &'b (Slot, BlockId)>) {
        self.layers.extend(blocks.copied());
    }

    /// Returns the chunk in canonical form, which is the same for all equal chunks.
    pub fn finish(mut self) -> Chunk {
        let content = self.blocks.pack();
        self.layers.sort_unstable_by_key(|(slot, _)| *slot);
        let extras = Extras { layers: self.layers, components: extras::arrays(self.values) };
        Chunk { content, extras: (!extras.is_empty()).then(|| Box::new(extras)) }
    }

    /// For each cell of `source`, the index of its block in this palette.
    fn places_of(&mut self, source: &Chunk, block: impl Fn(BlockId) -> BlockId) -> LocalIds {
        match &source.content {
            Content::Uniform(only) => [self.blocks.palette.place(block(*only)); CHUNK_VOLUME],
            Content::Mixed(mixed) => {
                let palette = mixed.palette.as_slice().iter();
                let table: Vec<u16> = palette.map(|known| self.blocks.palette.place(block(*known))).collect();
                let mut places = mixed.ids.unpack();
                places.iter_mut().for_each(|place| *place = table[usize::from(*place)]);
                places
            }
        }
    }
}

impl Chunk {
    /// Renumbers the blocks in place. Returns `false`, without a change, if the chunk has layers or components, or if
    /// two blocks would become one.
    #[doc(hidden)]
    pub fn rename_blocks(&mut self, block: impl Fn(BlockId) -> BlockId) -> bool {
        if self.extras.is_some() {
            return false;
        }
        match &mut self.content {
            Content::Uniform(only) => *only = block(*only),
            Content::Mixed(Mixed { palette, .. }) => {
                let renamed: Vec<BlockId> = palette.as_slice().iter().map(|known| block(*known)).collect();
                let mut seen = FxHashSet::with_capacity_and_hasher(renamed.len(), Default::default());
                if !renamed.iter().all(|block| seen.insert(*block)) {
                    return false;
                }
                *palette = renamed.into_iter().collect();
            }
        }
        true
    }
}

impl CellMask {
    pub const NONE: Self = Self([0; CHUNK_VOLUME / 64]);

    /// All cells of a part.
    pub fn of_part(part: &ChunkPart) -> Self {
        let mut words = [0; CHUNK_VOLUME / 64];
        let [xs, ys, zs] = part.ranges();
        let row = (u32::MAX >> (32 - zs.len())) << zs.start;
        for (x, y) in xs.flat_map(|x| ys.clone().map(move |y| (x, y))) {
            words[x * 4 + y / 4] |= u64::from(row) << (y % 4 * CHUNK_SIZE);
        }
        Self(words)
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    pub fn is_whole(&self) -> bool {
        self.0.iter().all(|word| *word == u64::MAX)
    }

    #[inline]
    pub fn contains(&self, cell: usize) -> bool {
        self.0[cell / 64] >> (cell % 64) & 1 == 1
    }

    /// Keeps the cells for whose block in layer 0 of `chunk` `is_wanted` is true.
    pub fn keep_blocks(&mut self, chunk: &Chunk, is_wanted: impl Fn(BlockId) -> bool) {
        let wanted: Vec<bool> = chunk.palette().iter().map(|block| is_wanted(*block)).collect();
        if wanted.iter().all(|is| *is) {
            return;
        }
        match &chunk.content {
            Content::Uniform(_) => self.0.fill(0),
            Content::Mixed(_) if wanted.iter().all(|is| !is) => self.0.fill(0),
            Content::Mixed(mixed) => {
                let ids = mixed.ids.unpack();
                for (word, ids) in self.0.iter_mut().zip(ids.chunks_exact(64)) {
                    let bits = ids.iter().rev().fold(0, |bits, id| bits << 1 | u64::from(wanted[usize::from(*id)]));
                    *word &= bits;
                }
            }
        }
    }
}
