//! Chunks that are put together out of cells of others.

use super::component_arrays::{Components, PlacedValue, Value};
use super::extras::Extras;
use super::layer_lists::Layers;
use super::packed_ids::LocalIds;
use super::palette::PaletteBuilder;
use super::{Chunk, Content, Mixed, cell, renumber};
use crate::block::{BlockComponentId, BlockId};
use crate::space::{CHUNK_SIZE, CHUNK_VOLUME, ChunkPart, cell_position};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Puts a chunk together out of cells of others, with their layers and components. Cells that nobody fills are air.
///
/// Each cell is filled once.
pub(crate) struct ChunkAssembly<'a> {
    places: LocalIds,
    palette: PaletteBuilder,
    layers: Vec<(u16, u8, BlockId)>,
    values: Vec<PlacedValue<'a>>,
}

/// Where the cells of a chunk go in another one: cell x, y, z to the sum of `origin` and each coordinate times its stride.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellMap {
    pub origin: i32,
    pub strides: [i32; 3],
}

/// Some cells of a chunk, a bit each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CellMask([u64; CHUNK_VOLUME / 64]);

impl<'a> ChunkAssembly<'a> {
    pub fn new() -> Self {
        let mut palette = PaletteBuilder::new();
        let air = palette.place(BlockId::AIR);
        Self { places: [air; CHUNK_VOLUME], palette, layers: Vec::new(), values: Vec::new() }
    }

    /// Fills cells with those of a part of `source`, whose blocks become what `block` says. All cells must arrive in the
    /// chunk.
    pub fn copy_part(&mut self, source: &'a Chunk, part: &ChunkPart, to: CellMap, block: impl Fn(BlockId) -> BlockId) {
        let places = self.places_of(source, &block);
        let [xs, ys, zs] = part.ranges();
        for x in xs {
            for y in ys.clone() {
                let row = &places[(x << 8 | y << 4)..][..CHUNK_SIZE];
                let mut cell = to.cell([x, y, zs.start]) as i32;
                for place in &row[zs.clone()] {
                    // All arrive within the chunk; the mask tells the compiler so, after the last one too.
                    self.places[cell as usize & (CHUNK_VOLUME - 1)] = *place;
                    cell += to.strides[2];
                }
            }
        }
        let arrives = |cell| part.contains(cell_position(cell)).then(|| to.cell(cell_position(cell)) as u16);
        self.copy_extras(source, arrives, block, |_, _, component| Some(component));
    }

    /// Fills all cells with those of `source`, with other numbers for its blocks and components. A component of a block at a
    /// position and a layer that gets none is left out.
    pub fn copy_renamed(
        &mut self,
        source: &'a Chunk,
        block: impl Fn(BlockId) -> BlockId,
        component: impl FnMut([usize; 3], u8, BlockComponentId) -> Option<BlockComponentId>,
    ) {
        self.places = self.places_of(source, &block);
        self.copy_extras(source, |cell| Some(cell as u16), block, component);
    }

    /// Puts another block into a cell in place of what was copied there.
    pub fn set_block(&mut self, position: [usize; 3], block: BlockId) {
        self.places[cell(position)] = self.palette.place(block);
    }

    /// Adds a block to a cell, in the layer above those that it has.
    pub fn push_layer(&mut self, position: [usize; 3], layer: u8, block: BlockId) {
        self.layers.push((cell(position) as u16, layer, block));
    }

    /// Adds a component of variable size to the block of layer 0 of a cell, which does not have it yet.
    pub fn push_value(&mut self, position: [usize; 3], id: BlockComponentId, value: &'a Arc<[u8]>) {
        self.values.push(PlacedValue { id, layer: 0, cell: cell(position) as u16, value: Value::Variable(value) });
    }

    /// Fills the cells of the mask with the same ones of `source`.
    pub fn copy_cells(&mut self, source: &'a Chunk, cells: &CellMask) {
        self.copy_blocks(source, cells);
        let arrives = |cell| cells.contains(cell).then_some(cell as u16);
        self.copy_extras(source, arrives, |block| block, |_, _, component| Some(component));
    }

    /// Like [`copy_cells`](Self::copy_cells), layer 0 alone, without components.
    pub fn copy_blocks(&mut self, source: &Chunk, cells: &CellMask) {
        let places = self.places_of(source, |block| block);
        for (cell, (place, source)) in self.places.iter_mut().zip(places).enumerate() {
            *place = if cells.contains(cell) { source } else { *place };
        }
    }

    /// Adds blocks above layer 0, by cell and layer: all layers of a cell together.
    pub fn add_layers(&mut self, blocks: impl Iterator<Item = (usize, u8, BlockId)>) {
        self.layers.extend(blocks.map(|(cell, layer, block)| (cell as u16, layer, block)));
    }

    /// Adds components of blocks that are there.
    pub(super) fn add_values(&mut self, values: impl Iterator<Item = PlacedValue<'a>>) {
        self.values.extend(values);
    }

    /// The chunk, in the one representation that all equal chunks share.
    pub fn finish(mut self) -> Chunk {
        let provisional = self.palette.build();
        let mut palette = Vec::with_capacity(provisional.len().min(CHUNK_VOLUME));
        renumber(&mut self.places, provisional.len(), |place| palette.push(provisional.block(place)));
        let content = Content::from_canonical(palette.into_iter().collect(), &self.places);
        self.layers.sort_unstable_by_key(|(cell, layer, _)| (*cell, *layer));
        let extras = Extras {
            layers: Layers::from_ascending(self.layers.into_iter().map(|(cell, _, block)| (cell, block))),
            components: Components::from_values(self.values),
        };
        Chunk { content, extras: (!extras.is_empty()).then(|| Box::new(extras)) }
    }

    /// For each cell of `source` the place of its block in the palette here.
    fn places_of(&mut self, source: &Chunk, block: impl Fn(BlockId) -> BlockId) -> LocalIds {
        match &source.content {
            Content::Uniform(only) => [self.palette.place(block(*only)); CHUNK_VOLUME],
            Content::Mixed(mixed) => {
                let palette = mixed.palette.as_slice().iter();
                let table: Vec<u16> = palette.map(|known| self.palette.place(block(*known))).collect();
                let mut places = mixed.ids.unpack();
                places.iter_mut().for_each(|place| *place = table[usize::from(*place)]);
                places
            }
        }
    }

    fn copy_extras(
        &mut self,
        source: &'a Chunk,
        arrives: impl Fn(usize) -> Option<u16>,
        block: impl Fn(BlockId) -> BlockId,
        mut component: impl FnMut([usize; 3], u8, BlockComponentId) -> Option<BlockComponentId>,
    ) {
        let Some(extras) = &source.extras else { return };
        let layers = extras.layers.iter();
        self.layers.extend(layers.filter_map(|(cell, layer, found)| Some((arrives(cell)?, layer, block(found)))));
        let values = extras.components.values();
        let moved = |value: PlacedValue<'a>| {
            let cell = arrives(value.cell.into())?;
            let id = component(cell_position(value.cell.into()), value.layer, value.id)?;
            Some(PlacedValue { cell, id, ..value })
        };
        self.values.extend(values.filter_map(moved));
    }
}

impl Chunk {
    /// Gives its blocks other numbers, in place. `false`, and nothing changes, if it has layers or components, or two blocks
    /// would become one.
    pub(crate) fn rename_blocks(&mut self, block: impl Fn(BlockId) -> BlockId) -> bool {
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

impl CellMap {
    #[inline]
    fn cell(&self, position: [usize; 3]) -> usize {
        let [x, y, z] = position.map(|coordinate| coordinate as i32);
        let cell = self.origin + x * self.strides[0] + y * self.strides[1] + z * self.strides[2];
        debug_assert!((0..CHUNK_VOLUME as i32).contains(&cell), "{position:?} leaves the chunk by {self:?}");
        cell as usize & (CHUNK_VOLUME - 1)
    }
}

impl CellMask {
    /// All cells.
    pub const WHOLE: Self = Self([u64::MAX; CHUNK_VOLUME / 64]);

    /// The cells of a part.
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

    /// All other cells.
    pub fn inverted(&self) -> Self {
        Self(self.0.map(|word| !word))
    }

    /// Keeps the cells whose block in layer 0 of `chunk` is wanted.
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
