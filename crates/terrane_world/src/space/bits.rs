//! Bits of masks.

/// The positions of the set bits, ascending.
#[inline]
pub fn bits(mut mask: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (bit < 64).then_some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_bit_is_listed_once_ascending() {
        assert_eq!(bits(0).count(), 0);
        assert_eq!(bits(1 << 63 | 0b1011).collect::<Vec<_>>(), [0, 1, 3, 63]);
        assert!(bits(u64::MAX).eq(0..64));
    }
}
