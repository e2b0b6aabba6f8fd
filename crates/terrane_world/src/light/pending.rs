//! [`Pending`]: the work that a chunk has left in one channel.

use super::cells::{Cells, WORDS};
use super::levels::{ChunkPlanes, Planes, equal, levels_of, lit};
use crate::space::bits;

/// A phase of the work. See the [module](super).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Fall,
    Rise,
}

/// The work that a chunk has left in one channel.
pub(super) struct Pending {
    pub edited: Cells,
    pub rising: Cells,
    /// The levels that rising cells may have, one bit each.
    rising_levels: u16,
    /// The levels from which cells have fallen; 0 for cells that have not.
    fallen: ChunkPlanes,
    /// The words with fallen cells, one bit each.
    fallen_words: u64,
    /// The levels from which cells may have fallen, one bit each.
    fallen_levels: u16,
}

impl Default for Pending {
    fn default() -> Self {
        Self {
            edited: Cells::new(),
            rising: Cells::new(),
            rising_levels: 0,
            fallen: [[0; 4]; WORDS],
            fallen_words: 0,
            fallen_levels: 0,
        }
    }
}

impl Pending {
    pub const fn is_empty(&self) -> bool {
        self.edited.is_empty() && self.rising.is_empty() && self.fallen_words == 0
    }

    /// The levels at which there may be work, one bit each.
    pub const fn levels(&self, phase: Phase) -> u16 {
        match phase {
            Phase::Fall => self.fallen_levels,
            Phase::Rise => self.rising_levels,
        }
    }

    /// Adds cells with these levels.
    #[inline]
    pub fn rise(&mut self, word: usize, cells: u64, now: &Planes) {
        if cells != 0 {
            self.rising.insert(word, cells);
            self.rising_levels |= levels_of(now, cells);
        }
    }

    /// Adds cells that have fallen from these levels. Those that are pending already get at least the higher level.
    #[inline]
    pub fn fall(&mut self, word: usize, cells: u64, from: &Planes) {
        if cells != 0 {
            // The disjunction of two numbers is at least the larger one, and a level that is too high drops too many cells,
            // which is only a matter of time.
            let fallen = &mut self.fallen[word % WORDS];
            fallen.iter_mut().zip(from).for_each(|(fallen, from)| *fallen |= from & cells);
            self.fallen_levels |= levels_of(fallen, cells);
            self.fallen_words |= 1 << word;
            self.rising.remove(word, cells);
        }
    }

    /// Removes and returns the cells with work at this level. `now` is their present level.
    pub fn take(&mut self, phase: Phase, level: u8, now: impl Fn(usize) -> Planes) -> Cells {
        let mut taken = Cells::new();
        match phase {
            Phase::Fall => {
                for word in bits(self.fallen_words).map(|word| word as usize % WORDS) {
                    let planes = &mut self.fallen[word];
                    let cells = equal(planes, level);
                    taken.insert(word, cells);
                    planes.iter_mut().for_each(|plane| *plane &= !cells);
                    self.fallen_words &= !(u64::from(lit(planes) == 0) << word);
                }
                self.fallen_levels &= !(1 << level);
            }
            Phase::Rise => {
                for (word, cells) in self.rising.iter() {
                    taken.insert(word, cells & equal(&now(word), level));
                }
                taken.iter().for_each(|(word, cells)| self.rising.remove(word, cells));
                self.rising_levels &= !(1 << level);
            }
        }
        taken
    }
}
