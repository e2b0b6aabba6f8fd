//! Storage for the masks of partial batches: packed lists of up to 4, 8, 16 or 32, and tables of 64.

use crate::space::bits;

/// A list of masks: its size class in the upper 3 bits, its number within the class below them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct List(u32);

const CLASS_SHIFT: u32 = 29;
/// The class of tables, which store each mask at the index of its bit instead of packed.
const TABLE: u32 = 4;

impl List {
    /// The empty list.
    pub const NONE: Self = Self(u32::MAX);

    #[inline]
    fn new(class: u32, number: u32) -> Self {
        Self(class << CLASS_SHIFT | number)
    }

    #[inline]
    fn class(self) -> u32 {
        self.0 >> CLASS_SHIFT
    }

    #[inline]
    fn number(self) -> u32 {
        self.0 & ((1 << CLASS_SHIFT) - 1)
    }

    /// The number of masks that fit.
    #[inline]
    fn room(self) -> u32 {
        if self == Self::NONE { 0 } else { 4 << self.class() }
    }

    #[inline]
    fn place(self, present: u64, index: u32) -> usize {
        if self.class() == TABLE { index as usize } else { rank(present, index) }
    }
}

/// The number of set bits below `index`.
#[inline]
fn rank(bits: u64, index: u32) -> usize {
    (bits & ((1 << index) - 1)).count_ones() as usize
}

/// All lists of a tree, by class. They are numbered and reused. A list does not know which masks it contains: its
/// owner stores one bit for each in `present`.
#[derive(Clone, Debug, Default)]
pub(super) struct Masks {
    pub lists: [Vec<u16>; 5],
    /// The numbers of unused lists.
    pub free: [Vec<u32>; 5],
}

impl Masks {
    #[inline]
    fn slice(&self, list: List) -> &[u16] {
        let (class, number) = (list.class(), list.number() as usize);
        self.lists.get(class as usize).map_or(&[], |lists| &lists[number << (class + 2)..][..4 << class])
    }

    #[inline]
    fn slice_mut(&mut self, list: List) -> &mut [u16] {
        let (class, number) = (list.class(), list.number() as usize);
        self.lists.get_mut(class as usize).map_or(&mut [], |lists| &mut lists[number << (class + 2)..][..4 << class])
    }

    /// The mask at a bit of `present`.
    #[inline]
    pub fn get(&self, list: List, present: u64, index: u32) -> u16 {
        self.slice(list)[list.place(present, index)]
    }

    /// The mask at a bit of `present`, for writing.
    #[inline]
    pub fn get_mut(&mut self, list: List, present: u64, index: u32) -> &mut u16 {
        &mut self.slice_mut(list)[list.place(present, index)]
    }

    /// All masks, in ascending order of their bits.
    pub fn iter(&self, list: List, present: u64) -> impl Iterator<Item = u16> {
        let slice = self.slice(list);
        bits(present)
            .enumerate()
            .map(move |(number, bit)| slice[if list.class() == TABLE { bit as usize } else { number }])
    }

    /// The total number of set bits of all masks.
    pub fn count_ones(&self, list: List, present: u64) -> u64 {
        if present == 0 {
            return 0;
        }
        let slice = self.slice(list);
        // A table has zeros at bits that are not present.
        let used = if list.class() == TABLE { slice } else { &slice[..present.count_ones() as usize] };
        used.iter().map(|mask| u64::from(mask.count_ones())).sum()
    }

    /// Adds a mask at a bit that is not in `present` yet.
    pub fn insert(&mut self, list: &mut List, present: u64, index: u32, mask: u16) {
        let count = present.count_ones();
        if count == list.room() {
            self.resize(list, present, count + 1);
        }
        if list.class() == TABLE {
            self.slice_mut(*list)[index as usize] = mask;
            return;
        }
        let place = rank(present, index);
        let slice = self.slice_mut(*list);
        slice.copy_within(place..count as usize, place + 1);
        slice[place] = mask;
    }

    /// Removes the mask at a bit of `present`.
    pub fn remove(&mut self, list: &mut List, present: u64, index: u32) {
        let count = present.count_ones();
        if count == 1 {
            self.free(*list);
            *list = List::NONE;
            return;
        }
        if list.class() == TABLE {
            self.slice_mut(*list)[index as usize] = 0;
        } else {
            let place = rank(present, index);
            self.slice_mut(*list).copy_within(place + 1..count as usize, place);
        }
        // A list shrinks late: otherwise lists with batches that come and go would be moved all the time.
        if list.class() > 0 && count <= list.room() / 2 {
            self.resize(list, present & !(1 << index), count - 1);
        }
    }

    /// Moves the masks to a list of the class for `count` of them.
    fn resize(&mut self, list: &mut List, present: u64, count: u32) {
        let class = count.div_ceil(4).next_power_of_two().trailing_zeros();
        let mut table = [0; 64];
        for (place, (bit, mask)) in bits(present).zip(self.iter(*list, present)).enumerate() {
            table[if class == TABLE { bit as usize } else { place }] = mask;
        }
        self.free(*list);
        let (lists, room) = (&mut self.lists[class as usize], 4 << class);
        let number = self.free[class as usize].pop().unwrap_or_else(|| {
            if lists.capacity() - lists.len() < room {
                // As in a slab: doubling would leave a quarter unused on average.
                lists.reserve_exact((lists.len() / room / 32).max(8) * room);
            }
            lists.resize(lists.len() + room, 0);
            (lists.len() / room - 1) as u32
        });
        *list = List::new(class, number);
        self.slice_mut(*list).copy_from_slice(&table[..room]);
    }

    /// Frees a list.
    pub fn free(&mut self, list: List) {
        let class = list.class() as usize;
        let (Some(free), Some(lists)) = (self.free.get_mut(class), self.lists.get_mut(class)) else { return };
        free.push(list.number());
        // Memory of an earlier peak is freed once no list is in use.
        if free.len() > 64 && free.len() << (class + 2) == lists.len() {
            (*free, *lists) = (Vec::new(), Vec::new());
        }
    }
}
