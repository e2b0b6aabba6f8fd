//! Chunks of blocks, columns of chunks, their [binary format](mod@format), and what they look like from afar.

mod column;
pub mod format;
mod packed_ids;
mod summary;
#[cfg(test)]
mod tests;

pub use column::Column;
pub use summary::{ColumnSummary, Detail, SummaryCell, SummaryError};

use crate::block::BlockId;
use crate::space::{CHUNK_SIZE, CHUNK_VOLUME};
use packed_ids::{LocalIds, MAX_BITS, PackedIds};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::fmt;

/// 16 x 16 x 16 blocks: a palette of the blocks that occur, and for each cell its place in the palette, in as few bits
/// as the palette allows.
///
/// A chunk made uniform or [compacted](Self::compact) to one block owns no heap memory. Two chunks are equal if they
/// hold the same blocks, whatever their palettes.
///
/// ```
/// # use bevy_terrane::{block::BlockId, chunk::Chunk};
/// let (stone, dirt) = (BlockId::new(1), BlockId::new(2));
/// let mut chunk = Chunk::from_fn(|[_, y, _]| if y < 8 { stone } else { BlockId::AIR });
/// assert_eq!(chunk.set_block([3, 7, 5], dirt), stone);
/// assert_eq!(chunk.block([3, 7, 5]), dirt);
/// ```
#[derive(Clone)]
pub struct Chunk(Content);

#[derive(Clone, PartialEq, Eq)]
enum Content {
    Uniform(BlockId),
    Mixed(Mixed),
}

/// The palette holds no block twice, and every local id is a place in it.
#[derive(Clone, PartialEq, Eq)]
struct Mixed {
    palette: Vec<BlockId>,
    ids: PackedIds,
    /// Known to be canonical: every palette entry occurs, in the order of first appearance, with as few bits as that
    /// needs, and there are at least two.
    is_canonical: bool,
}

impl Chunk {
    /// A chunk of nothing but this block.
    pub const fn uniform(block: BlockId) -> Self {
        Self(Content::Uniform(block))
    }

    /// Asks for every block, in the order of [`blocks`](Self::blocks).
    pub fn from_fn(mut block: impl FnMut([usize; 3]) -> BlockId) -> Self {
        let mut ids = [0; CHUNK_VOLUME];
        let mut palette = PaletteBuilder::default();
        for (cell, id) in ids.iter_mut().enumerate() {
            *id = palette.place(block(coordinates(cell)));
        }
        Self::from_canonical(palette.blocks, &ids)
    }

    /// The block at x, y, z.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    #[inline]
    pub fn block(&self, position: [usize; 3]) -> BlockId {
        let cell = cell(position);
        match &self.0 {
            Content::Uniform(block) => *block,
            Content::Mixed(mixed) => mixed.block(cell),
        }
    }

    /// Replaces the block at x, y, z and returns the old one.
    ///
    /// The palette keeps blocks that no longer occur, see [`compact`](Self::compact).
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    #[inline]
    pub fn set_block(&mut self, position: [usize; 3], block: BlockId) -> BlockId {
        let cell = cell(position);
        match &mut self.0 {
            Content::Uniform(old) => {
                let old = *old;
                if old != block {
                    let mut ids = PackedIds::zeroed(1);
                    ids.set_id(cell, 1);
                    self.0 = Content::Mixed(Mixed { palette: vec![old, block], ids, is_canonical: false });
                }
                old
            }
            Content::Mixed(mixed) => mixed.set_block(cell, block),
        }
    }

    /// The block that fills the whole chunk, if there is one.
    pub fn uniform_block(&self) -> Option<BlockId> {
        match &self.0 {
            Content::Uniform(block) => Some(*block),
            Content::Mixed(mixed) if mixed.is_canonical => None,
            Content::Mixed(mixed) => {
                let first = mixed.ids.id(0);
                // Edits more often leave many blocks than one, so this stops early.
                (1..CHUNK_VOLUME).all(|cell| mixed.ids.id(cell) == first).then(|| mixed.palette[usize::from(first)])
            }
        }
    }

    /// All blocks, x slowest, then y, then z. [`copy_into`](Self::copy_into) is faster.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = BlockId> {
        (0..CHUNK_VOLUME).map(|cell| match &self.0 {
            Content::Uniform(block) => *block,
            Content::Mixed(mixed) => mixed.block(cell),
        })
    }

    /// Writes all blocks, in the order of [`blocks`](Self::blocks).
    pub fn copy_into(&self, blocks: &mut [BlockId; CHUNK_VOLUME]) {
        match &self.0 {
            Content::Uniform(block) => blocks.fill(*block),
            Content::Mixed(mixed) => {
                for (block, id) in blocks.iter_mut().zip(mixed.ids.unpack()) {
                    *block = mixed.palette[usize::from(id)];
                }
            }
        }
    }

    /// Every block that occurs, once each, and possibly some that no longer do.
    pub fn palette(&self) -> &[BlockId] {
        match &self.0 {
            Content::Uniform(block) => std::slice::from_ref(block),
            Content::Mixed(mixed) => &mixed.palette,
        }
    }

    /// Forgets the blocks that no longer occur and gives back the memory that they took.
    pub fn compact(&mut self) {
        if let Cow::Owned(compact) = self.canonical() {
            *self = compact;
        }
    }

    /// Bytes on the heap that this chunk owns.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Content::Uniform(_) => 0,
            Content::Mixed(mixed) => mixed.palette.capacity() * size_of::<BlockId>() + mixed.ids.heap_bytes(),
        }
    }

    /// The same blocks in the one representation that all equal chunks share.
    fn canonical(&self) -> Cow<'_, Self> {
        let Content::Mixed(mixed) = &self.0 else { return Cow::Borrowed(self) };
        if mixed.is_canonical {
            return Cow::Borrowed(self);
        }
        let mut ids = mixed.ids.unpack();
        let mut palette = Vec::with_capacity(mixed.palette.len());
        renumber(&mut ids, mixed.palette.len(), |id| palette.push(mixed.palette[usize::from(id)]));
        Cow::Owned(Self::from_canonical(palette, &ids))
    }

    /// `palette` is in the order of first appearance in `ids` and has no other entries.
    fn from_canonical(mut palette: Vec<BlockId>, ids: &LocalIds) -> Self {
        if let [block] = palette[..] {
            return Self::uniform(block);
        }
        palette.shrink_to_fit();
        let ids = PackedIds::pack(ids, bits_for(palette.len()));
        Self(Content::Mixed(Mixed { palette, ids, is_canonical: true }))
    }
}

impl Mixed {
    #[inline]
    fn block(&self, cell: usize) -> BlockId {
        self.palette[usize::from(self.ids.id(cell))]
    }

    #[inline]
    fn set_block(&mut self, cell: usize, block: BlockId) -> BlockId {
        let old_id = self.ids.id(cell);
        let old = self.palette[usize::from(old_id)];
        if old != block {
            self.is_canonical = false;
            match find(&self.palette, block) {
                Some(id) => self.ids.set_id(cell, id as u16),
                None => self.set_new_block(cell, block),
            }
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
            // No two cells are alike, so this entry is of this cell alone.
            self.palette[usize::from(self.ids.id(cell))] = block;
        } else {
            self.ids.set_id(cell, self.palette.len() as u16);
            self.palette.push(block);
        }
    }

    /// Drops the palette entries that do not occur, keeping the bits, if at most `limit` do occur.
    ///
    /// The limit sees to it that many blocks can be added before the next time, which pays for this one.
    fn drop_unused(&mut self, limit: usize) -> bool {
        let mut ids = self.ids.unpack();
        let mut palette = Vec::with_capacity(limit);
        let mut used = 0;
        renumber(&mut ids, self.palette.len(), |id| {
            used += 1;
            if used <= limit {
                palette.push(self.palette[usize::from(id)]);
            }
        });
        if used > limit {
            return false;
        }
        self.palette = palette;
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
        self.canonical().0 == other.canonical().0
    }
}

impl Eq for Chunk {}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Content::Uniform(block) => f.debug_tuple("Uniform").field(block).finish(),
            Content::Mixed(mixed) => {
                f.debug_struct("Mixed").field("palette", &mixed.palette).field("bits", &mixed.ids.bits()).finish()
            }
        }
    }
}

/// Collects a palette in the order of first appearance.
#[derive(Default)]
struct PaletteBuilder {
    blocks: Vec<BlockId>,
    /// Filled once looking through `blocks` would take longer.
    places: FxHashMap<BlockId, u16>,
    last: Option<(BlockId, u16)>,
}

impl PaletteBuilder {
    const LARGEST_SEARCHED: usize = 32;

    #[inline]
    fn place(&mut self, block: BlockId) -> u16 {
        match self.last {
            Some((last, place)) if last == block => place,
            _ => {
                let place = self.find_or_add(block);
                self.last = Some((block, place));
                place
            }
        }
    }

    fn find_or_add(&mut self, block: BlockId) -> u16 {
        let length = self.blocks.len();
        let found = if length <= Self::LARGEST_SEARCHED {
            find(&self.blocks, block).map(|place| place as u16)
        } else {
            self.places.get(&block).copied()
        };
        found.unwrap_or_else(|| {
            self.blocks.push(block);
            if length == Self::LARGEST_SEARCHED {
                self.places = self.blocks.iter().copied().zip(0..).collect();
            } else if length > Self::LARGEST_SEARCHED {
                self.places.insert(block, length as u16);
            }
            length as u16
        })
    }
}

/// Gives each id the next free number when it first appears, and reports it then.
fn renumber(ids: &mut LocalIds, palette_length: usize, mut first_seen: impl FnMut(u16)) {
    const UNSEEN: u16 = u16::MAX;
    let mut numbers = [UNSEEN; CHUNK_VOLUME];
    let numbers = &mut numbers[..palette_length];
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

/// The place of a block in a palette.
#[inline]
fn find(palette: &[BlockId], block: BlockId) -> Option<usize> {
    // Comparing a group without stopping early is a few vector instructions.
    let (groups, _) = palette.as_chunks::<16>();
    let group = groups.iter().position(|group| group.iter().fold(false, |hit, entry| hit | (*entry == block)));
    let start = group.unwrap_or(groups.len()) * 16;
    palette[start..].iter().position(|entry| *entry == block).map(|place| start + place)
}

/// The bits of a local id into a palette of this length: the logarithm to base 2, rounded up.
fn bits_for(palette_length: usize) -> u32 {
    usize::BITS - palette_length.saturating_sub(1).leading_zeros()
}

#[inline]
fn cell([x, y, z]: [usize; 3]) -> usize {
    assert!((x | y | z) < CHUNK_SIZE, "[{x}, {y}, {z}] is outside of a chunk");
    (x * CHUNK_SIZE + y) * CHUNK_SIZE + z
}

#[inline]
fn coordinates(cell: usize) -> [usize; 3] {
    [cell / CHUNK_SIZE / CHUNK_SIZE, cell / CHUNK_SIZE % CHUNK_SIZE, cell % CHUNK_SIZE]
}
