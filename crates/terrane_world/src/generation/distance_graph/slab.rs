//! Numbered slots that grow with little unused memory.

use std::ops::{Index, IndexMut};

/// Values by number. Numbers of removed values are reused.
#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    pub slots: Vec<T>,
    pub free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    #[inline]
    pub fn insert(&mut self, value: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self[number] = value;
            return number;
        }
        if self.slots.len() == self.slots.capacity() {
            // Doubling would leave a quarter unused on average. Large blocks grow by remapping, without a copy.
            self.slots.reserve_exact((self.slots.len() / 32).max(8));
        }
        self.slots.push(value);
        // Memory runs out long before the numbers do.
        (self.slots.len() - 1) as u32
    }

    /// Frees the number. The value stays in its slot until another value replaces it.
    #[inline]
    pub fn remove(&mut self, number: u32) {
        self.free.push(number);
        // Memory of an earlier peak is freed once all slots are free.
        if self.free.len() == self.slots.len() && self.slots.len() > 64 {
            *self = Self::default();
        }
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: u32) -> &T {
        &self.slots[number as usize]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.slots[number as usize]
    }
}
