//! Packed numbers of any bit width.

/// Appends numbers, each with its own number of bits (at most 32), least significant bit first. Each number must fit
/// into its bits. The last byte is padded with zeros.
pub(super) fn put_bits(out: &mut Vec<u8>, numbers: impl Iterator<Item = (u64, u32)>) {
    let (mut pending, mut length) = (0_u64, 0);
    for (number, bits) in numbers {
        debug_assert!(bits <= 32 && number < 1 << bits);
        pending |= number << length;
        length += bits;
        while length >= 8 {
            out.push(pending as u8);
            pending >>= 8;
            length -= 8;
        }
    }
    if length > 0 {
        out.push(pending as u8);
    }
}

/// The number of up to 63 bits that begins at `bit`. The caller has checked the length.
pub(super) fn bits_at(bytes: &[u8], bit: usize, bits: u32) -> u64 {
    let bytes = &bytes[bit / 8..(bit + bits as usize).div_ceil(8)];
    let value = bytes.iter().rev().fold(0, |value: u128, byte| value << 8 | u128::from(*byte));
    (value >> (bit % 8)) as u64 & ((1 << bits) - 1)
}
