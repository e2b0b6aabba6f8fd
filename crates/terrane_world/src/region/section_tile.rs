//! Tiles: squares of 8 x 8 sections with one bit each, the storage of a regionizer.
//!
//! Bit `x + 8 * z` of a mask is the section at (x, z) within its tile.

use crate::space::{ColumnPos, SectionPos, bits};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The bits of the westernmost sections of all rows. Multiplying by a row repeats that row.
const EVERY_ROW: u64 = 0x0101_0101_0101_0101;

/// The position of a tile: its sections' coordinates >> 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SectionTilePos {
    pub x: i64,
    pub z: i64,
}

impl SectionTilePos {
    /// The tile that contains this section, and the section's bit.
    #[inline]
    pub fn of(section: SectionPos) -> (Self, u32) {
        (Self { x: section.x >> 3, z: section.z >> 3 }, (section.x & 7 | (section.z & 7) << 3) as u32)
    }

    /// The section at this bit.
    #[inline]
    pub fn section(self, bit: u32) -> SectionPos {
        SectionPos::new((self.x << 3) + i64::from(bit & 7), (self.z << 3) + i64::from(bit >> 3))
    }

    /// Calls `with` with the sections of a mask. Optimized away completely if `with` does nothing.
    #[inline]
    pub fn with_sections(self, mask: u64, with: impl FnOnce(&[SectionPos])) {
        let mut sections = [SectionPos::new(0, 0); 64];
        for (section, bit) in sections.iter_mut().zip(bits(mask)) {
            *section = self.section(bit);
        }
        with(sections.get(..mask.count_ones() as usize).unwrap_or_default());
    }
}

/// The sections within a radius of a section, clipped to the sections that can hold columns.
#[derive(Clone, Copy)]
pub(super) struct Window {
    min: SectionPos,
    max: SectionPos,
}

impl Window {
    #[inline]
    pub fn around(center: SectionPos, radius: u32, section_shift: u32) -> Self {
        let (first, last) = (i64::MIN >> section_shift, i64::MAX >> section_shift);
        let low = |center: i64| center.saturating_sub(radius.into()).max(first);
        let high = |center: i64| center.saturating_add(radius.into()).min(last);
        Self {
            min: SectionPos::new(low(center.x), low(center.z)),
            max: SectionPos::new(high(center.x), high(center.z)),
        }
    }

    /// The x and z ranges of the tiles that intersect this window.
    #[inline]
    pub fn tiles(self) -> (Range<i64>, Range<i64>) {
        ((self.min.x >> 3)..(self.max.x >> 3) + 1, (self.min.z >> 3)..(self.max.z >> 3) + 1)
    }

    /// The sections of a tile that lie in this window. The tile must be near the window.
    #[inline]
    pub fn mask(self, tile: SectionTilePos) -> u64 {
        let (west, north) = (tile.x << 3, tile.z << 3);
        let (x0, x1) = ((self.min.x - west).max(0), (self.max.x - west).min(7));
        let (z0, z1) = ((self.min.z - north).max(0), (self.max.z - north).min(7));
        if x0 > x1 || z0 > z1 {
            return 0;
        }
        let row = 0xff >> (7 - (x1 - x0)) << x0;
        (row * EVERY_ROW) & (u64::MAX >> (8 * (7 - (z1 - z0))) << (8 * z0))
    }
}

/// The sections of a tile that belong to one region.
#[derive(Clone, Copy)]
pub(super) struct Part {
    /// The owner's slot.
    pub region: u32,
    /// The tile's place in its owner's list of tiles.
    pub index: u32,
    pub mask: u64,
}

const NO_PART: Part = Part { region: u32::MAX, index: 0, mask: 0 };

pub(super) struct SectionTile {
    pub pos: SectionTilePos,
    /// The sections that exist. 0 in a free tile.
    pub exists: u64,
    /// The sections with columns.
    pub nonempty: u64,
    /// The sections without columns and without a non-empty section within the creation radius.
    pub dead: u64,
    /// Stored inline, because nearly all tiles have a single owner.
    first: Part,
    more: Vec<Part>,
    /// One bit for each column, section by section; empty until the first column.
    columns: Box<[u64]>,
}

impl SectionTile {
    fn new(pos: SectionTilePos) -> Self {
        Self { pos, exists: 0, nonempty: 0, dead: 0, first: NO_PART, more: Vec::new(), columns: Box::default() }
    }

    #[inline]
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        std::iter::once(&self.first).chain(&self.more).filter(|part| part.mask != 0)
    }

    /// The slot of the region that owns the section at `bit`.
    #[inline]
    pub fn owner(&self, bit: u32) -> Option<u32> {
        if self.first.mask >> bit & 1 == 1 {
            return Some(self.first.region);
        }
        self.more.iter().find(|part| part.mask >> bit & 1 == 1).map(|part| part.region)
    }

    #[inline]
    pub fn part(&self, region: u32) -> Option<&Part> {
        self.parts().find(|part| part.region == region)
    }

    #[inline]
    pub fn part_mut(&mut self, region: u32) -> Option<&mut Part> {
        std::iter::once(&mut self.first).chain(&mut self.more).find(|part| part.region == region)
    }

    /// The sections of this region.
    #[inline]
    pub fn mask_of(&self, region: u32) -> u64 {
        self.part(region).map_or(0, |part| part.mask)
    }

    /// Assigns unowned sections to `region`. Returns `true` if they are its first in this tile; the caller then makes
    /// this tile the `index`th of its tiles.
    #[inline]
    pub fn claim(&mut self, region: u32, mask: u64, index: u32) -> bool {
        if let Some(part) = self.part_mut(region) {
            part.mask |= mask;
            return false;
        }
        let part = Part { region, index, mask };
        if self.first.mask == 0 {
            self.first = part;
        } else {
            self.more.push(part);
        }
        true
    }

    /// Removes these sections from `region`. If they were its last in this tile, returns the tile's place among the
    /// region's tiles.
    pub fn disown(&mut self, region: u32, mask: u64) -> Option<u32> {
        let part = self.part_mut(region)?;
        part.mask &= !mask;
        let Part { index, mask: 0, .. } = *part else { return None };
        if self.first.region == region {
            self.first = self.more.pop().unwrap_or(NO_PART);
        } else {
            self.more.retain(|part| part.region != region);
        }
        Some(index)
    }

    /// Returns `false` if the column already existed.
    #[inline]
    pub fn add_column(&mut self, column: ColumnPos, section_shift: u32) -> bool {
        let (word, bit) = column_bit(column, section_shift);
        match self.columns.get_mut(word) {
            Some(bits) => {
                let added = *bits & bit == 0;
                *bits |= bit;
                added
            }
            None => self.add_very_first_column(word, bit, section_shift),
        }
    }

    #[cold]
    fn add_very_first_column(&mut self, word: usize, bit: u64, section_shift: u32) -> bool {
        self.columns = vec![0; 1 << (2 * section_shift)].into();
        self.columns[word] = bit;
        true
    }

    /// Removes a column from its section at `section_bit`. Returns `true` if the section is now empty; `None` if the
    /// column did not exist.
    #[inline]
    pub fn remove_column(&mut self, column: ColumnPos, section_bit: u32, section_shift: u32) -> Option<bool> {
        let (word, bit) = column_bit(column, section_shift);
        let bits = self.columns.get_mut(word).filter(|bits| **bits & bit != 0)?;
        *bits &= !bit;
        // A word holds several small sections, or a part of a large one.
        let columns = 1 << (2 * section_shift);
        let of_section = u64::MAX >> 64u32.saturating_sub(columns) << (section_bit * columns % 64);
        Some(*bits & of_section == 0 && (columns <= 64 || self.section_is_empty(section_bit, section_shift)))
    }

    /// The bits of a section's columns: words of 64, or one partial word.
    #[inline]
    fn section_words(&self, bit: u32, section_shift: u32) -> impl Iterator<Item = u64> {
        let columns = 1usize << (2 * section_shift);
        let first = bit as usize * columns;
        let keep = if columns < 64 { (1 << columns) - 1 } else { u64::MAX };
        let words = self.columns.get(first / 64..first / 64 + columns.div_ceil(64)).unwrap_or_default();
        words.iter().map(move |word| word >> (first % 64) & keep)
    }

    #[inline]
    pub fn section_is_empty(&self, bit: u32, section_shift: u32) -> bool {
        self.section_words(bit, section_shift).all(|word| word == 0)
    }

    /// The columns of these sections.
    pub fn columns(&self, mask: u64, section_shift: u32) -> impl Iterator<Item = ColumnPos> {
        let edge = (1u32 << section_shift) - 1;
        bits(mask & self.nonempty).flat_map(move |section_bit| {
            let section = self.pos.section(section_bit);
            self.section_words(section_bit, section_shift).zip(0u32..).flat_map(move |(word, number)| {
                bits(word).map(move |bit| {
                    let place = number * 64 + bit;
                    ColumnPos::new(
                        (section.x << section_shift) + i64::from(place & edge),
                        (section.z << section_shift) + i64::from(place >> section_shift),
                    )
                })
            })
        })
    }
}

/// The word of a column in its tile, and the bit in that word.
#[inline]
fn column_bit(column: ColumnPos, section_shift: u32) -> (usize, u64) {
    let (_, section) = SectionTilePos::of(column.section(section_shift));
    let edge = (1 << section_shift) - 1;
    let place = (column.x & edge) | (column.z & edge) << section_shift;
    let bit = (section as usize) << (2 * section_shift) | place as usize;
    (bit / 64, 1 << (bit % 64))
}

/// All tiles, by position and by number. Numbers of removed tiles are reused.
#[derive(Default)]
pub(super) struct SectionTiles {
    numbers: FxHashMap<SectionTilePos, u32>,
    pub(super) tiles: Vec<SectionTile>,
    free: Vec<u32>,
    /// The tile of the last change, since the next change is usually in it too; no valid number if that tile was removed.
    recent: u32,
}

impl SectionTiles {
    #[inline]
    pub fn number(&self, pos: SectionTilePos) -> Option<u32> {
        self.numbers.get(&pos).copied()
    }

    /// Like [`Self::number`], but faster for the last requested tile.
    #[inline]
    pub fn number_cached(&mut self, pos: SectionTilePos) -> Option<u32> {
        if self.tiles.get(self.recent as usize).is_none_or(|tile| tile.pos != pos) {
            return self.number_of_another(pos);
        }
        Some(self.recent)
    }

    #[inline(never)]
    fn number_of_another(&mut self, pos: SectionTilePos) -> Option<u32> {
        self.recent = self.number(pos)?;
        Some(self.recent)
    }

    #[inline]
    pub fn at(&self, pos: SectionTilePos) -> Option<&SectionTile> {
        self.number(pos).map(|number| self.tile(number))
    }

    #[inline]
    pub fn tile(&self, number: u32) -> &SectionTile {
        &self.tiles[number as usize]
    }

    #[inline]
    pub fn tile_mut(&mut self, number: u32) -> &mut SectionTile {
        &mut self.tiles[number as usize]
    }

    /// Adds a tile where there is none. The caller must give it a section.
    pub fn insert(&mut self, pos: SectionTilePos) -> u32 {
        let tile = SectionTile::new(pos);
        // Memory runs out long before the numbers do.
        let number = self.free.pop().unwrap_or(self.tiles.len() as u32);
        match self.tiles.get_mut(number as usize) {
            Some(free) => *free = tile,
            None => self.tiles.push(tile),
        }
        self.numbers.insert(pos, number);
        number
    }

    /// Removes a tile without sections.
    pub fn remove(&mut self, number: u32) {
        let pos = self.tile(number).pos;
        self.numbers.remove(&pos);
        if self.recent == number {
            self.recent = u32::MAX;
        }
        *self.tile_mut(number) = SectionTile::new(pos);
        self.free.push(number);
    }

    /// Calls `visit` with each tile within `radius` of `center`, which has just become empty, and with the sections of
    /// the tile within the radius that have become dead: they exist, and have no non-empty section within the radius.
    /// None of them was dead before, because the centre was not empty.
    pub fn visit_newly_dead(
        &mut self,
        center: SectionPos,
        radius: u32,
        section_shift: u32,
        mut visit: impl FnMut(&mut SectionTile, u64),
    ) {
        let window = Window::around(center, radius, section_shift);
        let (window_x, window_z) = window.tiles();
        for z in window_z {
            for x in window_x.clone() {
                let pos = SectionTilePos { x, z };
                let Some(number) = self.number(pos) else { continue };
                let dying = self.without_nonempty_near(number, window.mask(pos), radius);
                if dying != 0 {
                    visit(self.tile_mut(number), dying);
                }
            }
        }
    }

    /// The sections of a tile in `mask` that have no non-empty section within `radius`.
    fn without_nonempty_near(&self, number: u32, mask: u64, radius: u32) -> u64 {
        let tile = self.tile(number);
        let mut dying = mask & tile.exists & !reach(tile.nonempty, radius, 0, 0);
        if dying == 0 {
            return 0;
        }
        // Only sections at a side of the tile can be within the radius of sections beyond it.
        let west = dying & reach_along_x(u64::MAX, radius, 1) != 0;
        let east = dying & reach_along_x(u64::MAX, radius, -1) != 0;
        let north = dying.trailing_zeros() < 8 * radius;
        let south = dying.leading_zeros() < 8 * radius;
        for z in -i64::from(north)..=i64::from(south) {
            for x in -i64::from(west)..=i64::from(east) {
                let there = SectionTilePos { x: tile.pos.x + x, z: tile.pos.z + z };
                if (x, z) != (0, 0)
                    && let Some(there) = self.at(there)
                {
                    dying &= !reach(there.nonempty, radius, -x, -z);
                }
            }
        }
        dying
    }
}

/// The sections within `radius` (at most 8) of the sections of a mask, in the tile at this offset from the mask's own
/// tile: -1 to 1 on each axis.
#[inline]
pub(super) fn reach(mask: u64, radius: u32, x: i64, z: i64) -> u64 {
    reach_along_z(reach_along_x(mask, radius, x), radius, z)
}

/// [`reach`] along x only.
#[inline]
pub(super) fn reach_along_x(mask: u64, radius: u32, x: i64) -> u64 {
    let low = |columns: u32| (0xff >> (8 - columns)) * EVERY_ROW;
    let high = |columns: u32| (0xff << (8 - columns) & 0xff) * EVERY_ROW;
    let distances = 1..=radius;
    // Bits that a shift moves into another row are masked out.
    match x {
        0 => distances.fold(mask, |reached, distance| {
            reached | mask << distance & !low(distance) | mask >> distance & !high(distance)
        }),
        1 => distances.fold(0, |reached, distance| reached | mask >> (8 - distance) & low(distance)),
        _ => distances.fold(0, |reached, distance| reached | mask << (8 - distance) & high(distance)),
    }
}

/// [`reach`] along z only.
#[inline]
pub(super) fn reach_along_z(mask: u64, radius: u32, z: i64) -> u64 {
    let distances = 1..=radius;
    match z {
        0 => distances
            .take_while(|&distance| distance < 8)
            .fold(mask, |reached, distance| reached | mask << (8 * distance) | mask >> (8 * distance)),
        1 => distances.fold(0, |reached, distance| reached | mask >> (8 * (8 - distance))),
        _ => distances.fold(0, |reached, distance| reached | mask << (8 * (8 - distance))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn touched(window: Window) -> impl Iterator<Item = SectionTilePos> {
        let (x, z) = window.tiles();
        z.flat_map(move |z| x.clone().map(move |x| SectionTilePos { x, z }))
    }

    proptest! {
        #[test]
        fn reach_covers_the_sections_within_the_radius(mask: u64, sparse: u64, radius in 1u32..=8) {
            let mask = mask & sparse & sparse.rotate_left(17);
            let home = SectionTilePos { x: 3, z: -1 };
            for (x, z) in (-1..=1).flat_map(|z| (-1..=1).map(move |x| (x, z))) {
                let expected = (0..64).filter(|&bit| {
                    let there = SectionTilePos { x: home.x + x, z: home.z + z }.section(bit);
                    bits(mask).any(|from| {
                        let from = home.section(from);
                        from.x.abs_diff(there.x).max(from.z.abs_diff(there.z)) <= radius.into()
                    })
                });
                prop_assert_eq!(reach(mask, radius, x, z), expected.fold(0, |all, bit| all | 1 << bit), "at {} {}", x, z);
            }
        }

        #[test]
        fn windows_cover_the_sections_within_the_radius(x in -9i64..9, z in -9i64..9, radius in 0u32..=16) {
            let window = Window::around(SectionPos::new(x, z), radius, 0);
            let mut found = Vec::new();
            for tile in touched(window) {
                prop_assert_ne!(window.mask(tile), 0);
                found.extend(bits(window.mask(tile)).map(|bit| tile.section(bit)));
            }
            let radius = i64::from(radius);
            let mut expected: Vec<_> = (x - radius..=x + radius)
                .flat_map(|x| (z - radius..=z + radius).map(move |z| SectionPos::new(x, z)))
                .collect();
            found.sort();
            expected.sort();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn numbers_of_removed_tiles_are_used_again() {
        let mut tiles = SectionTiles::default();
        for x in 0..100 {
            let pos = SectionTilePos { x, z: -x };
            let number = tiles.insert(pos);
            assert_eq!((number, tiles.number(pos)), (0, Some(0)));
            assert_eq!(tiles.number_cached(pos), Some(0));
            tiles.remove(number);
            assert_eq!((tiles.number(pos), tiles.number_cached(pos)), (None, None));
        }
    }

    #[test]
    fn windows_end_where_columns_end() {
        let corner = SectionPos::new(i64::MAX >> 2, i64::MIN >> 2);
        let window = Window::around(corner, 2, 2);
        let sections: u32 = touched(window).map(|tile| window.mask(tile).count_ones()).sum();
        assert_eq!(sections, 9);
    }
}
