//! Numbers of any width, packed.

/// Appends numbers with so many bits each, least significant bit first. A number fits into its bits, which are 32 at most.
/// The last byte is filled up with zeros.
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

/// The number of up to 63 bits that begins at a bit; the caller has checked that it is there.
pub(super) fn bits_at(bytes: &[u8], bit: usize, bits: u32) -> u64 {
    let bytes = &bytes[bit / 8..(bit + bits as usize).div_ceil(8)];
    let value = bytes.iter().rev().fold(0, |value: u128, byte| value << 8 | u128::from(*byte));
    (value >> (bit % 8)) as u64 & ((1 << bits) - 1)
}
