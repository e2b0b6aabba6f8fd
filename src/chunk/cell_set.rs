//! Sets of cells of a chunk.

use crate::space::{CHUNK_VOLUME, bits};

/// Up to so many cells are kept as a list, which is shorter than a bitmap and searched as fast.
const FEW: usize = 32;
const WORDS: usize = CHUNK_VOLUME / 64;

/// Some of the cells of a chunk. Tells in constant time how many of them come before any cell.
///
/// Equal sets have the same representation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CellSet {
    /// In ascending order.
    Few(Vec<u16>),
    Many(Box<Bitmap>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bitmap {
    words: [u64; WORDS],
    /// The number of cells in the words before each.
    before: [u16; WORDS],
}

impl CellSet {
    pub const fn new() -> Self {
        Self::Few(Vec::new())
    }

    /// The cells must ascend.
    pub fn from_ascending(cells: &[u16]) -> Self {
        debug_assert!(cells.is_sorted_by(|a, b| a < b));
        if cells.len() <= FEW { Self::Few(cells.to_vec()) } else { Self::Many(Box::new(Bitmap::from_ascending(cells))) }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Few(cells) => cells.len(),
            Self::Many(bitmap) => bitmap.len(),
        }
    }

    /// How many of the cells come before this one: `Ok` if it is one of them, `Err` if not.
    #[inline]
    pub fn rank(&self, cell: usize) -> Result<usize, usize> {
        match self {
            Self::Few(cells) => cells.binary_search(&(cell as u16)),
            Self::Many(bitmap) => bitmap.rank(cell),
        }
    }

    /// Adds a cell that is not there yet.
    pub fn insert(&mut self, cell: usize) {
        match self {
            Self::Few(cells) => {
                let rank = cells.partition_point(|other| usize::from(*other) < cell);
                cells.insert(rank, cell as u16);
                if cells.len() > FEW {
                    *self = Self::from_ascending(cells);
                }
            }
            Self::Many(bitmap) => bitmap.insert(cell),
        }
    }

    /// Takes out a cell that is there.
    pub fn remove(&mut self, cell: usize) {
        match self {
            Self::Few(cells) => cells.retain(|other| usize::from(*other) != cell),
            Self::Many(bitmap) => {
                bitmap.remove(cell);
                if bitmap.len() <= FEW {
                    *self = Self::Few(bitmap.iter().map(|cell| cell as u16).collect());
                }
            }
        }
    }

    /// The cells in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        let (few, many) = match self {
            Self::Few(cells) => (Some(cells), None),
            Self::Many(bitmap) => (None, Some(bitmap)),
        };
        let few = few.into_iter().flatten().map(|cell| usize::from(*cell));
        few.chain(many.into_iter().flat_map(|bitmap| bitmap.iter()))
    }

    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Few(cells) => cells.capacity() * size_of::<u16>(),
            Self::Many(_) => size_of::<Bitmap>(),
        }
    }
}

impl Bitmap {
    fn from_ascending(cells: &[u16]) -> Self {
        let mut bitmap = Self { words: [0; WORDS], before: [0; WORDS] };
        for cell in cells {
            bitmap.words[usize::from(cell / 64)] |= 1 << (cell % 64);
        }
        let mut before = 0;
        for (word, place) in bitmap.words.iter().zip(&mut bitmap.before) {
            *place = before;
            before += word.count_ones() as u16;
        }
        bitmap
    }

    fn len(&self) -> usize {
        usize::from(self.before[WORDS - 1]) + self.words[WORDS - 1].count_ones() as usize
    }

    fn rank(&self, cell: usize) -> Result<usize, usize> {
        let (word, bit) = (self.words[cell / 64], 1 << (cell % 64));
        let rank = usize::from(self.before[cell / 64]) + (word & (bit - 1)).count_ones() as usize;
        if word & bit == 0 { Err(rank) } else { Ok(rank) }
    }

    fn insert(&mut self, cell: usize) {
        self.words[cell / 64] |= 1 << (cell % 64);
        self.before[cell / 64 + 1..].iter_mut().for_each(|before| *before += 1);
    }

    fn remove(&mut self, cell: usize) {
        self.words[cell / 64] &= !(1 << (cell % 64));
        self.before[cell / 64 + 1..].iter_mut().for_each(|before| *before -= 1);
    }

    fn iter(&self) -> impl Iterator<Item = usize> {
        let words = self.words.iter().enumerate();
        words.flat_map(|(index, word)| bits(*word).map(move |bit| index * 64 + bit as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_cell_set_is_a_sorted_set(cells in prop::collection::vec(0..CHUNK_VOLUME, 0..200), drain: bool) {
            let (mut set, mut model) = (CellSet::new(), BTreeSet::new());
            let drained = if drain { cells.clone() } else { Vec::new() };
            for cell in cells.into_iter().chain(drained) {
                if model.insert(cell) {
                    set.insert(cell);
                } else {
                    model.remove(&cell);
                    set.remove(cell);
                }
                prop_assert_eq!(set.len(), model.len());
            }
            let ascending: Vec<u16> = model.iter().map(|cell| *cell as u16).collect();
            prop_assert!(set.iter().eq(model.iter().copied()));
            prop_assert_eq!(&set, &CellSet::from_ascending(&ascending));
            for cell in 0..CHUNK_VOLUME {
                prop_assert_eq!(set.rank(cell), ascending.binary_search(&(cell as u16)));
            }
        }
    }
}
