//! [`BatchColumns`]: the columns of a claim.

use crate::space::{BatchPos, ColumnPos};
use std::fmt;
use std::ops::BitAnd;

/// Columns of one batch in order of their distance from a centre: a small value that can be copied, and an iterator.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BatchColumns {
    batch: BatchPos,
    /// The bits of the columns, 4 binary digits each, the first in the lowest digits.
    order: u64,
    len: u8,
}

impl BatchColumns {
    /// The columns of the mask, nearest first, then by z, then by x.
    pub(super) fn nearest_first(batch: BatchPos, mask: u16, center: ColumnPos) -> Self {
        let first = batch.column(0);
        let (x, z) = (i128::from(first.x) - i128::from(center.x), i128::from(first.z) - i128::from(center.z));
        // Relative to the batch's first column, at (x, z), column (i, j) is farther by 2xi + i^2 + 2zj + j^2. Unlike
        // the squares themselves, this cannot overflow. A column's bit orders by z, then x.
        const NEAR: i128 = 1 << 40;
        if (-NEAR..NEAR).contains(&x) && (-NEAR..NEAR).contains(&z) {
            let (x, z) = (x as i64, z as i64);
            return Self::ordered(batch, mask, |i, j, bit| (i * (2 * x + i) + j * (2 * z + j)) << 4 | bit);
        }
        Self::ordered(batch, mask, |i, j, bit| {
            let (i, j) = (i128::from(i), i128::from(j));
            (i * (2 * x + i) + j * (2 * z + j)) << 4 | i128::from(bit)
        })
    }

    /// Orders columns by a key. `key` gets a column's x and z in the batch and its bit, which must be the lowest 4
    /// digits of the key.
    #[inline]
    fn ordered<K>(batch: BatchPos, mask: u16, key: impl Fn(i64, i64, i64) -> K) -> Self
    where
        K: Copy + Default + Ord + From<u8> + TryInto<u64> + BitAnd<Output = K>,
    {
        let mut keys = [K::default(); 16];
        let mut len = 0;
        for bit in 0..16i64 {
            if mask >> bit & 1 == 1 {
                keys[len] = key(bit & 3, bit >> 2, bit);
                len += 1;
            }
        }
        keys[..len].sort_unstable();
        let digits = keys[..len].iter().rev();
        let order = digits.fold(0, |order, key| order << 4 | (*key & K::from(15)).try_into().unwrap_or(0));
        Self { batch, order, len: len as u8 }
    }

    /// The number of remaining columns.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns `true` if no columns remain.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The next column.
    #[inline]
    pub fn first(&self) -> Option<ColumnPos> {
        { *self }.next()
    }

    /// The batch.
    #[inline]
    pub const fn batch(&self) -> BatchPos {
        self.batch
    }

    /// The remaining columns as a mask of the batch: bit x + 4 * z.
    #[inline]
    pub fn mask(&self) -> u16 {
        (0..u32::from(self.len)).fold(0, |mask, place| mask | 1 << (self.order >> (4 * place) & 15))
    }
}

impl Iterator for BatchColumns {
    type Item = ColumnPos;

    #[inline]
    fn next(&mut self) -> Option<ColumnPos> {
        self.len = self.len.checked_sub(1)?;
        let bit = self.order & 15;
        self.order >>= 4;
        Some(self.batch.column(bit as u32))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len(), Some(self.len()))
    }
}

impl ExactSizeIterator for BatchColumns {}

impl fmt::Debug for BatchColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}
