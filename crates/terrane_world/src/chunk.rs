//! Chunks of blocks, columns of chunks, their [binary format](mod@format), and their summaries for distant views.

mod assembly;
mod block_components;
mod block_layers;
mod cast_ray;
mod cell_parts;
mod column;
mod edit;
mod extras;
pub mod format;
mod packed_ids;
mod palette;
mod predictions;
mod summary;
#[cfg(test)]
mod tests;
mod upgrade;

pub(crate) use assembly::CellMask;
#[doc(hidden)]
pub use assembly::ChunkAssembly;
pub use block_components::BlockValueError;
pub use cast_ray::{RayHit, cast_ray};
pub use column::Column;
pub use edit::ChunkEdit;
#[doc(hidden)]
pub use predictions::{BlockChange, Predictions};
pub use summary::{ColumnSummary, Detail, SummaryCell};
#[doc(hidden)]
pub use upgrade::Renumbering;

use crate::block::BlockId;
use crate::space::{CHUNK_SIZE, CHUNK_VOLUME, cell_index, cell_position};
use extras::{Extras, Slot};
use packed_ids::{LocalIds, MAX_BITS, PackedIds};
use palette::{Palette, PaletteBuilder};
use std::borrow::Cow;
use std::fmt;

/// 16 x 16 x 16 blocks: a palette of the blocks that occur, and for each cell an index into the palette in as few bits
/// as possible. A cell can also have further [layers](Self::set_block_at), and a block can have
/// [components](Self::set_component).
///
/// A chunk that was created uniform or was [compacted](Self::compact) to one block owns no heap memory. Chunks are
/// equal if they have the same blocks, layers and components, even if their palettes differ.
///
/// ```
/// # use terrane_world::{block::BlockId, chunk::Chunk};
/// let (stone, dirt) = (BlockId::new(1), BlockId::new(2));
/// let mut chunk = Chunk::from_fn(|[_, y, _]| if y < 8 { stone } else { BlockId::AIR });
/// assert_eq!(chunk.set_block([3, 7, 5], dirt), stone);
/// assert_eq!(chunk.block([3, 7, 5]), dirt);
/// ```
#[derive(Clone)]
pub struct Chunk {
    content: Content,
    /// `None` if there are none, so that ordinary chunks stay small.
    extras: Option<Box<Extras>>,
}

/// The blocks of layer 0.
#[derive(Clone)]
enum Content {
    Uniform(BlockId),
    Mixed(Mixed),
}

/// The palette holds no block twice, and every local id is an index into it.
#[derive(Clone)]
struct Mixed {
    palette: Palette,
    ids: PackedIds,
    /// Known to be canonical: every one of at least two palette entries occurs, in the order of first appearance, and
    /// the ids have as few bits as possible.
    is_canonical: bool,
}

impl Chunk {
    /// A chunk filled with this block.
    pub const fn uniform(block: BlockId) -> Self {
        Self { content: Content::Uniform(block), extras: None }
    }

    /// Calls `block` for every cell, in the order of [`blocks`](Self::blocks).
    pub fn from_fn(mut block: impl FnMut([usize; 3]) -> BlockId) -> Self {
        let mut ids = [0; CHUNK_VOLUME];
        let mut palette = PaletteBuilder::new();
        for (cell, id) in ids.iter_mut().enumerate() {
            *id = palette.place(block(cell_position(cell)));
        }
        Self { content: Content::from_canonical(palette.build(), &ids), extras: None }
    }

    /// A chunk of the blocks with these numbers, in the order of [`blocks`](Self::blocks). All numbers must be below
    /// 4,096. Faster than [`from_fn`](Self::from_fn); overwrites `numbers`.
    pub(crate) fn from_numbers(numbers: &mut [u16; CHUNK_VOLUME]) -> Self {
        let mut palette = Vec::new();
        renumber(numbers, CHUNK_VOLUME, |number| palette.push(BlockId::new(number.into())));
        Self { content: Content::from_canonical(palette.into_iter().collect(), numbers), extras: None }
    }

    /// The block at x, y, z.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    #[inline]
    pub fn block(&self, position: [usize; 3]) -> BlockId {
        self.content.block(cell(position))
    }

    /// Replaces the block at x, y, z and returns the old one. If the type changes, the old block's components are removed.
    ///
    /// The palette keeps blocks that no longer occur; see [`compact`](Self::compact). [`edit`](Self::edit) is faster for
    /// many blocks.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    #[inline]
    pub fn set_block(&mut self, position: [usize; 3], block: BlockId) -> BlockId {
        let cell = cell(position);
        let old = self.content.set_block(cell, block);
        if self.extras.is_some() {
            self.drop_components_if(old != block, Slot::new(cell, 0));
        }
        old
    }

    /// The block that fills the whole chunk; `None` if there are other blocks, layers or components.
    pub fn uniform_block(&self) -> Option<BlockId> {
        if self.extras.is_some() {
            return None;
        }
        match &self.content {
            Content::Uniform(block) => Some(*block),
            Content::Mixed(mixed) => mixed.uniform_block(),
        }
    }

    /// For each block column, by x and z, the heights at which `is_wanted` is true for the block of layer 0: one bit
    /// per height, the lowest first.
    #[doc(hidden)]
    pub fn heights_of(&self, is_wanted: impl Fn(BlockId) -> bool) -> [[u16; CHUNK_SIZE]; CHUNK_SIZE] {
        let all = |is: bool| [[if is { u16::MAX } else { 0 }; CHUNK_SIZE]; CHUNK_SIZE];
        let mixed = match &self.content {
            Content::Uniform(block) => return all(is_wanted(*block)),
            Content::Mixed(mixed) => mixed,
        };
        let wanted: Vec<u16> = mixed.palette.as_slice().iter().map(|block| is_wanted(*block).into()).collect();
        if let Some(first) = wanted.first()
            && wanted.iter().all(|other| other == first)
        {
            return all(*first == 1);
        }
        let mut heights = all(false);
        for (row, ids) in mixed.ids.unpack().chunks_exact(CHUNK_SIZE).enumerate() {
            let (x, y) = (row / CHUNK_SIZE, row % CHUNK_SIZE);
            for (heights, id) in heights[x].iter_mut().zip(ids) {
                *heights |= wanted[usize::from(*id)] << y;
            }
        }
        heights
    }

    /// For the 64 cells from cell `64 * word` on, in the order of [`blocks`](Self::blocks), the place of the block in the
    /// [palette](Self::palette); `None` if the chunk was created uniform, so that all places are 0.
    pub(crate) fn palette_places(&self, word: usize) -> Option<[u16; 64]> {
        match &self.content {
            Content::Uniform(_) => None,
            Content::Mixed(mixed) => Some(mixed.ids.unpack_block(word)),
        }
    }

    /// The place of a cell's block in the palette.
    #[inline]
    fn palette_place(&self, cell: usize) -> u32 {
        match &self.content {
            Content::Uniform(_) => 0,
            Content::Mixed(mixed) => u32::from(mixed.ids.id(cell)),
        }
    }

    /// All blocks of layer 0, x slowest, then y, then z. [`copy_into`](Self::copy_into) is faster.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = BlockId> {
        (0..CHUNK_VOLUME).map(|cell| self.content.block(cell))
    }

    /// Writes all blocks of layer 0, in the order of [`blocks`](Self::blocks).
    pub fn copy_into(&self, blocks: &mut [BlockId; CHUNK_VOLUME]) {
        match &self.content {
            Content::Uniform(block) => blocks.fill(*block),
            Content::Mixed(mixed) => {
                for (block, id) in blocks.iter_mut().zip(mixed.ids.unpack()) {
                    *block = mixed.palette.block(id);
                }
            }
        }
    }

    /// Every block that occurs in layer 0, once each, and possibly some blocks that no longer occur.
    pub fn palette(&self) -> &[BlockId] {
        self.content.palette()
    }

    /// Removes unused blocks from the palette and frees their memory.
    pub fn compact(&mut self) {
        if let Cow::Owned(compact) = self.content.canonical() {
            self.content = compact;
        }
    }

    /// The heap memory of this chunk in bytes.
    pub fn heap_bytes(&self) -> usize {
        let content = match &self.content {
            Content::Uniform(_) => 0,
            Content::Mixed(mixed) => mixed.palette.heap_bytes() + mixed.ids.heap_bytes(),
        };
        content + self.extras.as_ref().map_or(0, |extras| extras.heap_bytes())
    }
}

impl Content {
    #[inline]
    fn block(&self, cell: usize) -> BlockId {
        match self {
            Self::Uniform(block) => *block,
            Self::Mixed(mixed) => mixed.palette.block(mixed.ids.id(cell)),
        }
    }

    #[inline]
    fn set_block(&mut self, cell: usize, block: BlockId) -> BlockId {
        match self {
            Self::Uniform(old) => {
                let old = *old;
                if old != block {
                    let mut ids = PackedIds::zeroed(1);
                    ids.set_id(cell, 1);
                    *self =
                        Self::Mixed(Mixed { palette: [old, block].into_iter().collect(), ids, is_canonical: false });
                }
                old
            }
            Self::Mixed(mixed) => mixed.set_block(cell, block),
        }
    }

    fn palette(&self) -> &[BlockId] {
        match self {
            Self::Uniform(block) => std::slice::from_ref(block),
            Self::Mixed(mixed) => mixed.palette.as_slice(),
        }
    }

    /// The same blocks in canonical form, which is the same for all equal chunks.
    fn canonical(&self) -> Cow<'_, Self> {
        let Self::Mixed(mixed) = self else { return Cow::Borrowed(self) };
        if mixed.is_canonical {
            return Cow::Borrowed(self);
        }
        let mut ids = mixed.ids.unpack();
        let mut palette = Vec::with_capacity(mixed.palette.len());
        renumber(&mut ids, mixed.palette.len(), |id| palette.push(mixed.palette.block(id)));
        Cow::Owned(Self::from_canonical(palette.into_iter().collect(), &ids))
    }

    /// `palette` must be in the order of first appearance in `ids` and have no other entries.
    fn from_canonical(palette: Palette, ids: &LocalIds) -> Self {
        if let [block] = palette.as_slice() {
            return Self::Uniform(*block);
        }
        let ids = PackedIds::pack(ids, bits_for(palette.len()));
        Self::Mixed(Mixed { palette, ids, is_canonical: true })
    }
}

impl Mixed {
    fn uniform_block(&self) -> Option<BlockId> {
        if self.is_canonical {
            return None;
        }
        let first = self.ids.id(0);
        // Edits usually leave several different blocks, so this usually stops early.
        (1..CHUNK_VOLUME).all(|cell| self.ids.id(cell) == first).then(|| self.palette.block(first))
    }

    fn holds_same(&self, other: &Self) -> bool {
        let (own, others) = (self.palette.as_slice(), other.palette.as_slice());
        if self.is_canonical && other.is_canonical {
            return own == others && self.ids == other.ids;
        }
        // A palette holds no block twice, so equal palettes leave the comparison to the ids. This is the case after
        // most edits.
        let common = own.len().min(others.len());
        if own[..common] == others[..common] {
            return if self.ids.bits() == other.ids.bits() {
                self.ids == other.ids
            } else {
                self.ids.unpack() == other.ids.unpack()
            };
        }
        const NOWHERE: u16 = u16::MAX;
        let places: Vec<u16> = own.iter().map(|block| other.palette.find(*block).unwrap_or(NOWHERE)).collect();
        let mut pairs = self.ids.unpack().into_iter().zip(other.ids.unpack());
        pairs.all(|(id, other)| places[usize::from(id)] == other)
    }

    #[inline]
    fn set_block(&mut self, cell: usize, block: BlockId) -> BlockId {
        let old = self.palette.block(self.ids.id(cell));
        // Writing a block that is already there costs less than a mispredicted branch.
        self.is_canonical &= old == block;
        match self.palette.find(block) {
            Some(id) => self.ids.set_id(cell, id),
            None => self.set_new_block(cell, block),
        }
        old
    }

    /// Sets a block that the palette does not have.
    #[cold]
    fn set_new_block(&mut self, cell: usize, block: BlockId) {
        let (capacity, bits) = (1 << self.ids.bits(), self.ids.bits());
        if self.palette.len() == capacity {
            if bits == MAX_BITS {
                self.drop_unused(capacity);
            } else if bits < 4 || !self.drop_unused(capacity / 2) {
                self.ids = PackedIds::pack(&self.ids.unpack(), bits + 1);
            }
        }
        if self.palette.len() == CHUNK_VOLUME {
            // All cells differ, so no other cell uses this entry.
            self.palette.replace(self.ids.id(cell), block);
        } else {
            self.ids.set_id(cell, self.palette.push(block));
        }
    }

    /// Removes unused palette entries, keeping the number of bits, if at most `limit` entries are used. The limit
    /// leaves room for many new blocks before the next call, which amortizes the cost.
    fn drop_unused(&mut self, limit: usize) -> bool {
        let mut ids = self.ids.unpack();
        let mut palette = Vec::with_capacity(limit);
        let mut used = 0;
        renumber(&mut ids, self.palette.len(), |id| {
            used += 1;
            if used <= limit {
                palette.push(self.palette.block(id));
            }
        });
        if used > limit {
            return false;
        }
        self.palette = palette.into_iter().collect();
        self.ids = PackedIds::pack(&ids, self.ids.bits());
        true
    }
}

impl Default for Chunk {
    /// Air.
    fn default() -> Self {
        Self::uniform(BlockId::AIR)
    }
}

impl PartialEq for Chunk {
    fn eq(&self, other: &Self) -> bool {
        let is_same_content = match (&self.content, &other.content) {
            (Content::Mixed(own), Content::Mixed(others)) => own.holds_same(others),
            (Content::Uniform(own), Content::Uniform(others)) => own == others,
            (Content::Uniform(block), Content::Mixed(mixed)) | (Content::Mixed(mixed), Content::Uniform(block)) => {
                mixed.uniform_block() == Some(*block)
            }
        };
        is_same_content && self.extras == other.extras
    }
}

impl Eq for Chunk {}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.content, &self.extras) {
            (Content::Uniform(block), None) => f.debug_tuple("Uniform").field(block).finish(),
            (content, extras) => {
                let mut chunk = f.debug_struct("Chunk");
                chunk.field("palette", &content.palette());
                if let Some(extras) = extras {
                    chunk.field("extras", extras);
                }
                chunk.finish()
            }
        }
    }
}

/// Gives each id the next free number at its first appearance, and reports the id then.
fn renumber(ids: &mut LocalIds, palette_length: usize, mut first_seen: impl FnMut(u16)) {
    const UNSEEN: u16 = u16::MAX;
    let mut few = [UNSEEN; CHUNK_VOLUME];
    let mut many = Vec::new();
    let numbers = match few.get_mut(..palette_length) {
        Some(numbers) => numbers,
        None => {
            many.resize(palette_length, UNSEEN);
            &mut many
        }
    };
    let mut next = 0;
    for id in ids {
        let number = &mut numbers[usize::from(*id)];
        if *number == UNSEEN {
            *number = next;
            next += 1;
            first_seen(*id);
        }
        *id = *number;
    }
}

/// The number of bits of a local id for a palette of this length: the logarithm to base 2, rounded up.
fn bits_for(palette_length: usize) -> u32 {
    usize::BITS - palette_length.saturating_sub(1).leading_zeros()
}

#[inline]
#[doc(hidden)]
pub fn cell(position: [usize; 3]) -> usize {
    let [x, y, z] = position;
    if (x | y | z) >= CHUNK_SIZE {
        outside(x, y, z);
    }
    // This changes nothing, but saves the bounds checks of arrays with an element for each cell.
    cell_index(position) % CHUNK_VOLUME
}

/// Separate from [`cell`], so that the coordinates stay in registers there.
#[cold]
#[inline(never)]
fn outside(x: usize, y: usize, z: usize) -> ! {
    panic!("[{x}, {y}, {z}] is outside of a chunk");
}
