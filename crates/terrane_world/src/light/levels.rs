//! [`LightLevels`]: one level of light, 0 to 15, for each cell of a chunk.

use super::MAX_LEVEL;
use super::cells::WORDS;
use crate::space::{CHUNK_SIZE, CHUNK_VOLUME, cell_index, cell_position};
use std::array;
use std::fmt;
use std::sync::Arc;

/// The levels of 64 cells, bit by bit: the lowest bits of all levels first.
pub(super) type Planes = [u64; 4];
/// The levels of a chunk.
pub(super) type ChunkPlanes = [Planes; WORDS];

/// The levels of light of a chunk's cells, 0 to 15. Equal levels everywhere take no memory beside the value itself; any
/// others take up to 2,048 bytes, which clones share.
#[derive(Clone)]
pub struct LightLevels(Levels);

#[derive(Clone)]
enum Levels {
    /// The same level everywhere.
    Uniform(u8),
    Packed(Arc<Packed>),
    /// While they change.
    Planes(Arc<ChunkPlanes>),
}

impl Default for LightLevels {
    /// Dark everywhere.
    fn default() -> Self {
        Self::uniform(0)
    }
}

/// Most words in a chunk with light are uniform: only the others are stored.
struct Packed {
    /// For each word, the level of all its cells, or 16 + a place in `mixed`.
    entries: [u8; WORDS],
    mixed: Box<[Planes]>,
}

impl Packed {
    /// The most words worth packing.
    const MAX_MIXED: usize = 56;

    fn new(planes: &ChunkPlanes) -> Self {
        let mut mixed = Vec::new();
        let entries = array::from_fn(|word| {
            let first = planes[word].map(|plane| (plane & 1) as u8);
            let level = first[0] | first[1] << 1 | first[2] << 2 | first[3] << 3;
            if planes[word] == planes_of(level) {
                return level;
            }
            mixed.push(planes[word]);
            MAX_LEVEL + mixed.len() as u8
        });
        Self { entries, mixed: mixed.into() }
    }

    #[inline]
    fn word(&self, word: usize) -> Planes {
        let entry = self.entries[word % WORDS];
        let place = usize::from(entry).checked_sub(usize::from(MAX_LEVEL) + 1);
        place.and_then(|place| self.mixed.get(place).copied()).unwrap_or_else(|| planes_of(entry))
    }
}

impl LightLevels {
    /// The same level everywhere. Levels above 15 count as 15.
    pub const fn uniform(level: u8) -> Self {
        Self(Levels::Uniform(if level > MAX_LEVEL { MAX_LEVEL } else { level }))
    }

    /// The levels that `level` returns for each x, y, z. Levels above 15 count as 15.
    pub fn from_fn(mut level: impl FnMut([usize; 3]) -> u8) -> Self {
        let mut planes = [[0; 4]; WORDS];
        for cell in 0..CHUNK_VOLUME {
            set(&mut planes[cell / 64], 1 << (cell % 64), level(cell_position(cell)).min(MAX_LEVEL));
        }
        let mut levels = Self(Levels::Planes(Arc::new(planes)));
        levels.compact();
        levels
    }

    /// The level of all cells, if they were found to be the same.
    pub const fn uniform_level(&self) -> Option<u8> {
        if let Levels::Uniform(level) = self.0 { Some(level) } else { None }
    }

    /// The level at x, y, z.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    #[inline]
    pub fn level(&self, [x, y, z]: [usize; 3]) -> u8 {
        assert!((x | y | z) < CHUNK_SIZE, "[{x}, {y}, {z}] is outside of a chunk");
        let cell = cell_index([x, y, z]);
        let planes = self.word(cell / 64);
        (0..4).map(|plane| (planes[plane] >> (cell % 64) & 1) << plane).sum::<u64>() as u8
    }

    /// The levels of the 16 cells at x and y, four bits each: z = 0 in the lowest. The fastest way to read many.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    #[inline]
    pub fn row(&self, x: usize, y: usize) -> u64 {
        assert!((x | y) < CHUNK_SIZE, "[{x}, {y}] is outside of a chunk");
        let planes = self.word(x * 4 + y / 4).map(|plane| spread(plane >> (y % 4 * 16)));
        planes[0] | planes[1] << 1 | planes[2] << 2 | planes[3] << 3
    }

    /// Writes all levels, one byte each, in the order of [`Chunk::blocks`](crate::chunk::Chunk::blocks).
    pub fn copy_into(&self, levels: &mut [u8; CHUNK_VOLUME]) {
        for (row, levels) in levels.as_chunks_mut::<CHUNK_SIZE>().0.iter_mut().enumerate() {
            let nibbles = self.row(row / CHUNK_SIZE, row % CHUNK_SIZE);
            *levels = array::from_fn(|z| (nibbles >> (4 * z) & 15) as u8);
        }
    }

    /// The heap memory in bytes, including memory that is shared with clones.
    pub fn heap_bytes(&self) -> usize {
        let counters = 2 * size_of::<usize>();
        match &self.0 {
            Levels::Uniform(_) => 0,
            Levels::Packed(packed) => size_of::<Packed>() + size_of_val(&*packed.mixed) + counters,
            Levels::Planes(_) => size_of::<ChunkPlanes>() + counters,
        }
    }

    #[inline]
    pub(super) fn word(&self, word: usize) -> Planes {
        match &self.0 {
            Levels::Uniform(level) => planes_of(*level),
            Levels::Packed(packed) => packed.word(word),
            Levels::Planes(planes) => planes[word % WORDS],
        }
    }

    /// All levels, for writing. Shared levels are copied.
    pub(super) fn planes_mut(&mut self) -> &mut ChunkPlanes {
        if !matches!(self.0, Levels::Planes(_)) {
            self.0 = Levels::Planes(Arc::new(array::from_fn(|word| self.word(word))));
        }
        match &mut self.0 {
            Levels::Planes(planes) => Arc::make_mut(planes),
            Levels::Uniform(_) | Levels::Packed(_) => unreachable!("they are planes now"),
        }
    }

    /// Frees memory that the levels do not need once they no longer change.
    pub(super) fn compact(&mut self) {
        let Levels::Planes(planes) = &self.0 else { return };
        let packed = Packed::new(planes);
        let first = packed.entries[0];
        if packed.mixed.is_empty() && packed.entries == [first; WORDS] {
            *self = Self::uniform(first);
        } else if packed.mixed.len() <= Packed::MAX_MIXED {
            self.0 = Levels::Packed(Arc::new(packed));
        }
    }
}

impl PartialEq for LightLevels {
    fn eq(&self, other: &Self) -> bool {
        let is_shared = match (&self.0, &other.0) {
            (Levels::Uniform(level), Levels::Uniform(others)) => return level == others,
            (Levels::Packed(packed), Levels::Packed(others)) => Arc::ptr_eq(packed, others),
            (Levels::Planes(planes), Levels::Planes(others)) => Arc::ptr_eq(planes, others),
            _ => false,
        };
        is_shared || (0..WORDS).all(|word| self.word(word) == other.word(word))
    }
}

impl Eq for LightLevels {}

impl fmt::Debug for LightLevels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.uniform_level() {
            Some(level) => f.debug_tuple("Uniform").field(&level).finish(),
            None => f.debug_tuple("Mixed").finish_non_exhaustive(),
        }
    }
}

/// 64 cells of one level.
#[inline]
pub(super) const fn planes_of(level: u8) -> Planes {
    let level = level as u64;
    [
        (level & 1).wrapping_neg(),
        (level >> 1 & 1).wrapping_neg(),
        (level >> 2 & 1).wrapping_neg(),
        (level >> 3 & 1).wrapping_neg(),
    ]
}

/// The cells that have this level.
#[inline]
pub(super) fn equal(planes: &Planes, level: u8) -> u64 {
    let wanted = planes_of(level);
    !((planes[0] ^ wanted[0]) | (planes[1] ^ wanted[1]) | (planes[2] ^ wanted[2]) | (planes[3] ^ wanted[3]))
}

/// The cells whose levels differ.
#[inline]
pub(super) fn differing(planes: &Planes, other: &Planes) -> u64 {
    planes.iter().zip(other).fold(0, |cells, (own, other)| cells | (own ^ other))
}

/// The cells with any light.
#[inline]
pub(super) fn lit(planes: &Planes) -> u64 {
    planes[0] | planes[1] | planes[2] | planes[3]
}

/// The levels that some of the cells have, one bit each.
#[inline]
pub(super) fn levels_of(planes: &Planes, cells: u64) -> u16 {
    let mut levels = 0;
    let mut rest = cells;
    while rest != 0 {
        let cell = rest.trailing_zeros();
        let level = (0..4).map(|plane| (planes[plane] >> cell & 1) << plane).sum::<u64>() as u8;
        levels |= 1 << level;
        rest &= !equal(planes, level);
    }
    levels
}

/// The cells with lower levels than the same cells of `other`.
#[inline]
pub(super) fn below(planes: &Planes, other: &Planes) -> u64 {
    let mut below = 0;
    // The highest bit in which two levels differ decides, so it is compared last.
    for (own, other) in planes.iter().zip(other) {
        below = (!own & other) | (!(own ^ other) & below);
    }
    below
}

/// Gives a level to some of the cells.
#[inline]
pub(super) fn set(planes: &mut Planes, cells: u64, level: u8) {
    replace(planes, cells, &planes_of(level));
}

/// Gives the levels of `new` to some of the cells.
#[inline]
pub(super) fn replace(planes: &mut Planes, cells: u64, new: &Planes) {
    for (plane, new) in planes.iter_mut().zip(new) {
        *plane = (*plane & !cells) | (new & cells);
    }
}

/// Moves the lowest 16 bits apart: each to the lowest bit of four.
#[inline]
fn spread(bits: u64) -> u64 {
    let bits = bits & 0xFFFF;
    let bits = (bits | bits << 24) & 0x0000_00FF_0000_00FF;
    let bits = (bits | bits << 12) & 0x000F_000F_000F_000F;
    let bits = (bits | bits << 6) & 0x0303_0303_0303_0303;
    (bits | bits << 3) & 0x1111_1111_1111_1111
}

#[cfg(test)]
mod tests {
    use super::super::ChunkLight;
    use super::*;

    /// Levels that look random.
    fn mixed() -> ([u8; CHUNK_VOLUME], LightLevels) {
        let levels: [u8; CHUNK_VOLUME] = array::from_fn(|cell| ((cell as u32).wrapping_mul(2_654_435_769) >> 28) as u8);
        (levels, LightLevels::from_fn(|place| levels[cell_index(place)]))
    }

    #[test]
    fn levels_are_the_same_however_they_are_read() {
        let (levels, light) = mixed();
        let mut bytes = [0; CHUNK_VOLUME];
        light.copy_into(&mut bytes);
        assert_eq!(bytes, levels);
        for (cell, level) in levels.iter().enumerate() {
            let [x, y, z] = cell_position(cell);
            assert_eq!(light.level([x, y, z]), *level);
            assert_eq!((light.row(x, y) >> (4 * z) & 15) as u8, *level);
        }
        // A few words of light in darkness are packed.
        let mut dark = LightLevels::default();
        for word in [0, 17, 63] {
            dark.planes_mut()[word] = light.word(word);
        }
        let (unpacked, bytes) = (dark.clone(), dark.heap_bytes());
        dark.compact();
        assert!(dark == unpacked && dark.heap_bytes() < bytes / 8);
        assert_eq!(dark.planes_mut()[17], light.word(17));
        assert_eq!(dark, unpacked);
    }

    /// Promise, light: Light that is the same in a whole chunk takes no memory of its own.
    #[test]
    fn equal_levels_take_no_memory_and_equal_the_same_levels_that_do() {
        for level in 0..16 {
            let uniform = LightLevels::uniform(level);
            let mut written = uniform.clone();
            let planes = written.planes_mut();
            set(&mut planes[9], 1 << 33, level ^ 1);
            assert!(written != uniform && written.heap_bytes() > 2_000);
            set(&mut written.planes_mut()[9], 1 << 33, level);
            assert!(written == uniform && written.uniform_level().is_none());
            written.compact();
            assert_eq!((written.uniform_level(), written.heap_bytes()), (Some(level), 0));
        }
    }

    #[test]
    fn a_clone_keeps_its_levels_when_the_original_is_written() {
        let (levels, mut light) = mixed();
        let before = light.clone();
        set(&mut light.planes_mut()[0], 1, levels[0] ^ 15);
        assert_eq!((before.level([0; 3]), light.level([0; 3])), (levels[0], levels[0] ^ 15));
    }

    #[test]
    fn the_box_around_differing_cells_is_that_of_a_walk_over_all_cells() {
        let (_, levels) = mixed();
        let before = ChunkLight { sky: levels.clone(), block: LightLevels::uniform(3) };
        assert_eq!(before.differing_cells(&before.clone()), None);
        for edits in [&[[3, 14, 0]][..], &[[0, 0, 15], [9, 5, 2]], &[[15; 3], [15, 2, 15], [7, 2, 4]]] {
            let mut after = before.clone();
            for (number, [x, y, z]) in edits.iter().enumerate() {
                let channel = if number % 2 == 0 { &mut after.sky } else { &mut after.block };
                let (level, cell) = (channel.level([*x, *y, *z]), cell_index([*x, *y, *z]));
                set(&mut channel.planes_mut()[cell / 64], 1 << (cell % 64), level ^ 5);
            }
            let range = |axis: usize| {
                let all = || edits.iter().map(|cell| cell[axis]);
                all().min().unwrap()..=all().max().unwrap()
            };
            assert_eq!(before.differing_cells(&after), Some([0, 1, 2].map(range)), "{edits:?}");
            assert_eq!(after.differing_cells(&before), before.differing_cells(&after));
        }
        assert_eq!(ChunkLight::open_sky().differing_cells(&ChunkLight::default()), Some([0, 1, 2].map(|_| 0..=15)));
    }

    #[test]
    fn cells_are_compared_as_their_levels_are() {
        let (levels, light) = mixed();
        for (word, levels) in levels.chunks_exact(64).enumerate() {
            let planes = light.word(word);
            for level in 0..16 {
                let cells = |is: fn(u8, u8) -> bool| {
                    (0..64).filter(|cell| is(levels[*cell], level)).map(|cell| 1 << cell).sum::<u64>()
                };
                assert_eq!(equal(&planes, level), cells(|own, level| own == level));
                assert_eq!(below(&planes, &planes_of(level)), cells(|own, level| own < level));
            }
            assert_eq!(lit(&planes), !equal(&planes, 0));
            let found = levels_of(&planes, u64::MAX >> 50);
            assert_eq!(found, levels[..14].iter().fold(0, |all, level| all | 1 << level));
        }
    }
}
