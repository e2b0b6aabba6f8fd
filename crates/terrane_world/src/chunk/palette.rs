//! Palettes: the block kinds of a chunk.

use crate::block::BlockId;
use rustc_hash::FxHashMap;

/// Palettes grow by this many places, so that a search takes whole vectors.
const GROUP: usize = 8;
/// This many places are searched without stopping early.
const SEARCHED: usize = 8 * GROUP;

/// Distinct blocks, each with a place.
#[derive(Clone)]
pub(super) struct Palette {
    /// Places beyond `length` repeat the first block. A search finds the lowest place and so needs no end.
    groups: Box<[[BlockId; GROUP]]>,
    length: u32,
}

impl Palette {
    /// A palette without blocks.
    pub fn new() -> Self {
        Self { groups: Box::new([]), length: 0 }
    }

    pub fn as_slice(&self) -> &[BlockId] {
        &self.groups.as_flattened()[..self.len()]
    }

    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// The block at a valid place.
    #[inline]
    pub fn block(&self, place: u16) -> BlockId {
        self.groups.as_flattened()[usize::from(place)]
    }

    /// The place of a block.
    #[inline]
    pub fn find(&self, block: BlockId) -> Option<u16> {
        let parts = self.groups.as_flattened().chunks(SEARCHED);
        let places = parts.map(|blocks| find_in(blocks, block));
        places.zip((0..).step_by(SEARCHED)).find_map(|(place, first): (_, u16)| Some(first + place?))
    }

    /// Adds a new block and returns its place.
    pub fn push(&mut self, block: BlockId) -> u16 {
        let place = self.len();
        if place.is_multiple_of(GROUP) {
            let filler = self.groups.first().map_or(block, |group| group[0]);
            let mut groups = std::mem::take(&mut self.groups).into_vec();
            groups.reserve_exact(1);
            groups.push([filler; GROUP]);
            self.groups = groups.into();
        }
        self.groups.as_flattened_mut()[place] = block;
        self.length += 1;
        place as u16
    }

    /// Replaces a block that no longer occurs.
    pub fn replace(&mut self, place: u16, block: BlockId) {
        let filler = if place == 0 { self.len() } else { usize::MAX };
        let entries = self.groups.as_flattened_mut();
        entries[usize::from(place)] = block;
        entries.iter_mut().skip(filler).for_each(|entry| *entry = block);
    }

    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.groups)
    }
}

impl FromIterator<BlockId> for Palette {
    /// The blocks must be distinct.
    fn from_iter<I: IntoIterator<Item = BlockId>>(blocks: I) -> Self {
        let mut blocks = blocks.into_iter().peekable();
        let first = blocks.peek().copied().unwrap_or_default();
        let mut groups = Vec::with_capacity(blocks.size_hint().0.div_ceil(GROUP));
        let mut length = 0;
        while blocks.peek().is_some() {
            groups.push(std::array::from_fn(|_| {
                let block = blocks.next();
                length += u32::from(block.is_some());
                block.unwrap_or(first)
            }));
        }
        Self { groups: groups.into(), length }
    }
}

impl PartialEq for Palette {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Palette {}

/// The lowest place of a block in a slice in which only the first block may repeat.
#[inline]
fn find_in(blocks: &[BlockId], block: BlockId) -> Option<u16> {
    // Without an early exit, which would be hard to predict; vectorized because the length is not known.
    const NONE: u32 = u32::MAX;
    let (mut found, mut place) = (NONE, 0_u32);
    for entry in blocks {
        found &= if *entry == block { place } else { NONE };
        place = place.wrapping_add(1);
    }
    (found != NONE).then_some(found as u16)
}

/// Collects a palette in the order of first appearance, and finds places in it quickly.
pub(super) struct PaletteBuilder {
    palette: Palette,
    /// For each remainder of a block's number, a block with this remainder and its place. In unused entries the
    /// remainder is another, so that they match no block.
    recent: [(BlockId, u16); Self::RECENT],
    /// All places, once searching the palette would take longer; empty until then.
    places: FxHashMap<BlockId, u16>,
}

impl PaletteBuilder {
    const RECENT: usize = 64;
    const LARGEST_SEARCHED: usize = 32;

    pub fn new() -> Self {
        Palette::new().into()
    }

    /// The place of a block. A new block is added.
    #[inline]
    pub fn place(&mut self, block: BlockId) -> u16 {
        self.recent_place(block).unwrap_or_else(|| self.find_or_add(block))
    }

    /// The place of a block that was searched lately.
    #[inline]
    pub fn recent_place(&self, block: BlockId) -> Option<u16> {
        let (recent, place) = self.recent[block.index() as usize % Self::RECENT];
        (recent == block).then_some(place)
    }

    /// [`place`](Self::place) for any block.
    #[inline(never)]
    pub fn find_or_add(&mut self, block: BlockId) -> u16 {
        let found = if self.palette.len() <= Self::LARGEST_SEARCHED {
            self.palette.find(block)
        } else {
            if self.places.is_empty() {
                self.places = self.palette.as_slice().iter().copied().zip(0..).collect();
            }
            self.places.get(&block).copied()
        };
        let place = found.unwrap_or_else(|| {
            // An assembly temporarily has the blocks of several chunks.
            debug_assert!(self.palette.len() < usize::from(u16::MAX));
            let place = self.palette.push(block);
            if !self.places.is_empty() {
                self.places.insert(block, place);
            }
            place
        });
        self.recent[block.index() as usize % Self::RECENT] = (block, place);
        place
    }

    /// The block at a valid place.
    #[inline]
    pub fn block(&self, place: u16) -> BlockId {
        // Without a panic, so that it costs nothing where the result is not used.
        self.palette.groups.as_flattened().get(usize::from(place)).copied().unwrap_or_default()
    }

    pub fn len(&self) -> usize {
        self.palette.len()
    }

    pub fn as_slice(&self) -> &[BlockId] {
        self.palette.as_slice()
    }

    pub fn build(self) -> Palette {
        self.palette
    }
}

impl From<Palette> for PaletteBuilder {
    fn from(palette: Palette) -> Self {
        let recent = std::array::from_fn(|remainder| (BlockId::new(remainder as u32 + 1), 0));
        Self { palette, recent, places: FxHashMap::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_found_at_its_place() {
        let blocks = |length: u32| (0..length).map(|place| BlockId::new(place.wrapping_mul(2_654_435_769)));
        let mut pushed = Palette::new();
        for length in 1..100 {
            let collected: Palette = blocks(length).collect();
            pushed.push(blocks(length).next_back().unwrap());
            assert!(pushed == collected);
            assert_eq!(pushed.heap_bytes(), collected.heap_bytes());
            for (place, block) in blocks(length).enumerate() {
                assert_eq!((pushed.find(block), collected.find(block)), (Some(place as u16), Some(place as u16)));
                assert_eq!(pushed.block(place as u16), block);
            }
            assert_eq!(pushed.find(BlockId::new(7)), None);
        }
        assert_eq!(Palette::new().find(BlockId::AIR), None);
    }

    #[test]
    fn a_replaced_block_is_not_found_any_more() {
        for place in [0, 3, 16] {
            let mut palette: Palette = (1..=17).map(BlockId::new).collect();
            palette.replace(place, BlockId::new(99));
            assert_eq!(palette.find(BlockId::new(u32::from(place) + 1)), None);
            assert_eq!(palette.find(BlockId::new(99)), Some(place));
            assert_eq!(palette.len(), 17);
        }
    }
}
