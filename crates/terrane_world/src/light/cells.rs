//! Sets of the cells of a chunk, one bit each, and the steps from cells to their neighbors.
//!
//! A word has 64 cells: four rows of 16. The order is that of [`cell_index`](crate::space::cell_index), so word
//! `4 * x + y / 4` has the cells of `y / 4 * 4 ..` at x, and bit `16 * (y % 4) + z` is one of them.

use crate::space::{Face, bits};

/// Words in a chunk.
pub(super) const WORDS: usize = 64;
/// One bit for each cell of a chunk.
pub(super) type Words = [u64; WORDS];

/// The cells with z = 0.
const NORTH_END: u64 = 0x0001_0001_0001_0001;
/// The cells with z = 15.
const SOUTH_END: u64 = NORTH_END << 15;
/// The bits of one row.
pub(super) const ROW: u64 = 0xFFFF;
/// The highest row of a word.
pub(super) const TOP_ROW: u64 = ROW << 48;

/// A set of cells.
#[derive(Clone)]
pub(super) struct Cells {
    words: Words,
    /// One bit for each word that is not zero.
    used: u64,
}

impl Cells {
    pub const fn new() -> Self {
        Self { words: [0; WORDS], used: 0 }
    }

    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.used == 0
    }

    #[inline]
    pub fn word(&self, word: usize) -> u64 {
        self.words[word % WORDS]
    }

    #[inline]
    pub fn insert(&mut self, word: usize, cells: u64) {
        let word = word % WORDS;
        self.words[word] |= cells;
        self.used |= u64::from(cells != 0) << word;
    }

    #[inline]
    pub fn remove(&mut self, word: usize, cells: u64) {
        let word = word % WORDS;
        self.words[word] &= !cells;
        self.used &= !(u64::from(self.words[word] == 0) << word);
    }

    #[inline]
    pub fn clear(&mut self) {
        for word in bits(self.used) {
            self.words[word as usize] = 0;
        }
        self.used = 0;
    }

    /// The words that are not zero, with their places.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        bits(self.used).map(|word| (word as usize % WORDS, self.words[word as usize % WORDS]))
    }

    /// The places of the words that are not zero, one bit each.
    #[inline]
    pub const fn used(&self) -> u64 {
        self.used
    }
}

/// Moves all cells one step in every direction within the chunk.
#[inline]
pub(super) fn step_all(cells: &Cells, inside: &mut Cells) {
    for (word, cells) in cells.iter() {
        let in_word = (cells & !NORTH_END) >> 1 | (cells & !SOUTH_END) << 1 | cells >> 16 | cells << 16;
        inside.insert(word, in_word);
        if word >= 4 {
            inside.insert(word - 4, cells);
        }
        if word < 60 {
            inside.insert(word + 4, cells);
        }
        if word & 3 != 0 {
            inside.insert(word - 1, cells << 48);
        }
        if word % 4 < 3 {
            inside.insert(word + 1, cells >> 48);
        }
    }
}

/// Moves the cells at a face one step through it, into the next chunk.
#[inline]
pub(super) fn step_out(face: Face, cells: &Cells, closed: impl Fn(usize) -> u64, outside: &mut Cells) {
    let (words, at_face) = border(face);
    for word in bits(words & cells.used).map(|word| word as usize % WORDS) {
        let leaving = cells.words[word] & at_face & !closed(word);
        if leaving != 0 {
            step(face, word, leaving, |_, _| {}, |word, cells| outside.insert(word, cells));
        }
    }
}

/// Adds to the places of some words those above and below them.
pub(super) const fn upright(words: u64) -> u64 {
    const EACH_X: u64 = 0x1111_1111_1111_1111;
    let columns = (words | words >> 1 | words >> 2 | words >> 3) & EACH_X;
    columns * 0xF
}

/// The places of the words with cells at a face of the chunk, and which cells of these words are there.
pub(super) const fn border(face: Face) -> (u64, u64) {
    /// Word 0 of each x.
    const EACH_X: u64 = 0x1111_1111_1111_1111;
    match face {
        Face::West => (0xF, u64::MAX),
        Face::East => (0xF << 60, u64::MAX),
        Face::Bottom => (EACH_X, ROW),
        Face::Top => (EACH_X << 3, TOP_ROW),
        Face::North => (u64::MAX, NORTH_END),
        Face::South => (u64::MAX, SOUTH_END),
    }
}

/// Moves cells of a word one step through a face. Calls `inside` with the words of the same chunk and `outside` with those
/// of the chunk beyond the face.
#[inline(always)]
pub(super) fn step(
    face: Face,
    word: usize,
    cells: u64,
    mut inside: impl FnMut(usize, u64),
    mut outside: impl FnMut(usize, u64),
) {
    match face {
        Face::West if word >= 4 => inside(word - 4, cells),
        Face::West => outside(word + 60, cells),
        Face::East if word < 60 => inside(word + 4, cells),
        Face::East => outside(word - 60, cells),
        Face::North => {
            inside(word, (cells & !NORTH_END) >> 1);
            outside(word, (cells & NORTH_END) << 15);
        }
        Face::South => {
            inside(word, (cells & !SOUTH_END) << 1);
            outside(word, (cells & SOUTH_END) >> 15);
        }
        Face::Bottom => {
            inside(word, cells >> 16);
            if word & 3 != 0 { inside(word - 1, cells << 48) } else { outside(word + 3, cells << 48) }
        }
        Face::Top => {
            inside(word, cells << 16);
            if word % 4 < 3 { inside(word + 1, cells >> 48) } else { outside(word - 3, cells >> 48) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::{CHUNK_VOLUME, cell_index, cell_position};

    #[test]
    fn a_step_leads_to_the_neighbor_in_the_same_chunk_or_the_next() {
        for (cell, face) in (0..CHUNK_VOLUME).flat_map(|cell| Face::ALL.map(|face| (cell, face))) {
            let mut neighbor = cell_position(cell).map(|at| at as i64);
            neighbor[face.axis()] += face.normal()[face.axis()];
            let is_outside = !(0..16).contains(&neighbor[face.axis()]);
            let expected = cell_index(neighbor.map(|at| (at & 15) as usize));
            let (mut inside, mut outside) = (Vec::new(), Vec::new());
            let into = |list: &mut Vec<usize>, word: usize, cells: u64| {
                list.extend(bits(cells).map(|bit| word * 64 + bit as usize));
            };
            step(
                face,
                cell / 64,
                1 << (cell % 64),
                |word, cells| into(&mut inside, word, cells),
                |word, cells| into(&mut outside, word, cells),
            );
            let (words, cells) = border(face);
            let is_at_border = words >> (cell / 64) & 1 == 1 && cells >> (cell % 64) & 1 == 1;
            assert_eq!(is_at_border, is_outside);
            let mut cells = Cells::new();
            cells.insert(cell / 64, 1 << (cell % 64));
            let mut next = Cells::new();
            step_out(face, &cells, |_| 0, &mut next);
            assert!(next.iter().eq(outside.iter().map(|cell| (cell / 64, 1 << (cell % 64)))));
            let mut all = Cells::new();
            step_all(&cells, &mut all);
            assert!(inside.iter().all(|cell| all.word(cell / 64) >> (cell % 64) & 1 == 1));
            assert!(!all.is_empty() && all.iter().map(|(_, cells)| cells.count_ones()).sum::<u32>() <= 6);
            if is_outside {
                assert_eq!((inside, outside), (vec![], vec![expected]));
            } else {
                assert_eq!((inside, outside), (vec![expected], vec![]));
            }
        }
    }

    #[test]
    fn upright_words_are_those_of_the_same_x() {
        assert!((0..64).all(|word| upright(1 << word) == 0xF << (word / 4 * 4)));
        assert_eq!(upright(1 << 63 | 1 << 5), 0xF << 60 | 0xF << 4);
    }

    #[test]
    fn a_set_has_the_cells_that_were_inserted_and_not_removed() {
        let mut cells = Cells::new();
        cells.insert(3, 0b101);
        cells.insert(63, 1 << 63);
        cells.insert(7, 0);
        assert!(cells.iter().eq([(3, 0b101), (63, 1 << 63)]));
        cells.remove(3, 0b001);
        assert_eq!((cells.word(3), cells.used()), (0b100, 1 << 3 | 1 << 63));
        cells.remove(3, 0b100);
        assert_eq!(cells.used(), 1 << 63);
        cells.clear();
        assert!(cells.is_empty() && cells.word(63) == 0);
    }
}
