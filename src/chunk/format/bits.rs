//! Numbers of any width, packed.

/// Appends numbers of any width, least significant bit first.
pub(super) struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    pending: u64,
    length: u32,
}

impl<'a> BitWriter<'a> {
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, pending: 0, length: 0 }
    }

    /// Appends a number that fits into `bits`, which are 32 at most.
    pub fn write(&mut self, number: u64, bits: u32) {
        debug_assert!(bits <= 32 && number < 1 << bits);
        self.pending |= number << self.length;
        self.length += bits;
        while self.length >= 8 {
            self.out.push(self.pending as u8);
            self.pending >>= 8;
            self.length -= 8;
        }
    }

    /// Fills the last byte up.
    pub fn finish(self) {
        if self.length > 0 {
            self.out.push(self.pending as u8);
        }
    }
}

/// The number of up to 63 bits that begins at a bit; the caller has checked that it is there.
pub(super) fn bits_at(bytes: &[u8], bit: usize, bits: u32) -> u64 {
    let bytes = &bytes[bit / 8..(bit + bits as usize).div_ceil(8)];
    let value = bytes.iter().rev().fold(0, |value: u128, byte| value << 8 | u128::from(*byte));
    (value >> (bit % 8)) as u64 & ((1 << bits) - 1)
}
