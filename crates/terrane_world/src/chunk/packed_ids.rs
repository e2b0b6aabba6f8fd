//! Local ids of a chunk's cells, packed into as few bits as its palette allows.

use crate::space::CHUNK_VOLUME;

/// The maximum number of bits of a local id: a chunk has 2^12 cells.
pub(super) const MAX_BITS: u32 = 12;

pub(super) type LocalIds = [u16; CHUNK_VOLUME];

/// The number of bytes that all local ids take per bit of an id.
const BYTES_PER_BIT: usize = CHUNK_VOLUME / 8;
/// Zero bytes after the last id, so that any id can be read with one read of four bytes from its first byte.
const PADDING: usize = size_of::<u32>() - 1;
/// This many ids fill whole 64-bit words: as many words as an id has bits.
const BLOCK: usize = 64;
/// Ids that are moved at once. Groups begin at a constant bit of their block, and 4 x 12 bits fit into a `u64`.
const GROUP: usize = 4;

/// Local ids of 1 to 12 bits without gaps, least significant bit first: the block part of the chunk format.
///
/// The number of bits of an id follows from the length.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct PackedIds(Box<[u8]>);

/// Calls a function that is generic over the number of bits, so that its shifts are constants.
macro_rules! with_constant_bits {
    ($bits:expr, $function:ident($($argument:expr),*)) => {
        match $bits {
            1 => $function::<1>($($argument),*),
            2 => $function::<2>($($argument),*),
            3 => $function::<3>($($argument),*),
            4 => $function::<4>($($argument),*),
            5 => $function::<5>($($argument),*),
            6 => $function::<6>($($argument),*),
            7 => $function::<7>($($argument),*),
            8 => $function::<8>($($argument),*),
            9 => $function::<9>($($argument),*),
            10 => $function::<10>($($argument),*),
            11 => $function::<11>($($argument),*),
            _ => $function::<12>($($argument),*),
        }
    };
}

impl PackedIds {
    /// All cells have the local id 0.
    pub fn zeroed(bits: u32) -> Self {
        debug_assert!((1..=MAX_BITS).contains(&bits));
        Self(vec![0; BYTES_PER_BIT * bits as usize + PADDING].into())
    }

    pub fn pack(ids: &LocalIds, bits: u32) -> Self {
        let mut packed = Self::zeroed(bits);
        with_constant_bits!(bits, pack(ids, &mut packed.0));
        packed
    }

    pub fn unpack(&self) -> LocalIds {
        let mut ids = [0; CHUNK_VOLUME];
        unpack_into(self.bytes(), self.bits(), &mut ids);
        ids
    }

    /// Like [`unpack`](Self::unpack), without a copy.
    pub fn unpack_boxed(&self) -> Box<LocalIds> {
        let mut ids = Box::new([0; CHUNK_VOLUME]);
        unpack_into(self.bytes(), self.bits(), &mut ids);
        ids
    }

    /// The ids of 64 cells, from cell `64 * block` on.
    pub fn unpack_block(&self, block: usize) -> [u16; BLOCK] {
        let mut ids = [0; BLOCK];
        with_constant_bits!(self.bits(), unpack_block(self.bytes(), block, &mut ids));
        ids
    }

    /// Copies the block part of the format.
    ///
    /// # Panics
    /// If the length does not match 1 to 12 bits per id.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        assert!(
            bytes.len().is_multiple_of(BYTES_PER_BIT)
                && (1..=MAX_BITS as usize).contains(&(bytes.len() / BYTES_PER_BIT))
        );
        let mut padded = Vec::with_capacity(bytes.len() + PADDING);
        padded.extend_from_slice(bytes);
        padded.extend_from_slice(&[0; PADDING]);
        Self(padded.into())
    }

    /// The block part of the format.
    pub fn bytes(&self) -> &[u8] {
        &self.0[..self.0.len() - PADDING]
    }

    #[inline]
    pub fn bits(&self) -> u32 {
        (self.0.len() / BYTES_PER_BIT) as u32
    }

    pub fn heap_bytes(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub fn id(&self, cell: usize) -> u16 {
        let (byte, shift) = self.place(cell);
        match self.0.get(byte..byte + size_of::<u32>()) {
            Some(&[a, b, c, d]) => (u32::from_le_bytes([a, b, c, d]) >> shift & self.mask()) as u16,
            _ => 0,
        }
    }

    #[inline]
    pub fn set_id(&mut self, cell: usize, id: u16) {
        let (mask, (byte, shift)) = (self.mask(), self.place(cell));
        // Written at once: the next read would otherwise have to gather four single bytes.
        if let Some(bytes) = self.0.get_mut(byte..).and_then(|bytes| bytes.first_chunk_mut()) {
            let word = u32::from_le_bytes(*bytes);
            *bytes = (word & !(mask << shift) | u32::from(id) << shift).to_le_bytes();
        }
    }

    /// The byte in which an id begins, and the bit within that byte.
    #[inline]
    fn place(&self, cell: usize) -> (usize, u32) {
        // The masks prove to the compiler that nothing overflows.
        let bit = (cell as u32 & (CHUNK_VOLUME as u32 - 1)) * (self.bits() & 15);
        ((bit / 8) as usize, bit % 8)
    }

    #[inline]
    fn mask(&self) -> u32 {
        !(u32::MAX << (self.bits() & 15))
    }
}

/// Unpacks the block part of the format, which has 1 to 12 bits per id.
pub(super) fn unpack_into(bytes: &[u8], bits: u32, ids: &mut LocalIds) {
    with_constant_bits!(bits, unpack(bytes, ids));
}

/// Returns `true` if all ids in the block part of the format are below `limit`.
pub(super) fn all_below(bytes: &[u8], bits: u32, limit: u32) -> bool {
    limit >= 1 << bits || with_constant_bits!(bits, are_below(bytes, limit))
}

fn pack<const BITS: usize>(ids: &LocalIds, bytes: &mut [u8]) {
    let blocks = bytes.as_chunks_mut::<8>().0.as_chunks_mut::<BITS>().0;
    for (ids, bytes) in ids.as_chunks::<BLOCK>().0.iter().zip(blocks) {
        let mut words = [0; BITS];
        for (index, ids) in ids.as_chunks::<GROUP>().0.iter().enumerate() {
            let [a, b, c, d] = ids.map(u64::from);
            let bits = a | b << BITS | c << (2 * BITS) | d << (3 * BITS);
            let (word, shift) = (index * GROUP * BITS / 64, index * GROUP * BITS % 64);
            words[word] |= bits << shift;
            if shift + GROUP * BITS > 64 {
                words[word + 1] = bits >> (64 - shift);
            }
        }
        *bytes = words.map(u64::to_le_bytes);
    }
}

fn unpack<const BITS: usize>(bytes: &[u8], ids: &mut LocalIds) {
    for (bytes, ids) in bytes.as_chunks::<8>().0.as_chunks::<BITS>().0.iter().zip(ids.as_chunks_mut::<BLOCK>().0) {
        unpack_words(bytes, ids);
    }
}

fn unpack_block<const BITS: usize>(bytes: &[u8], block: usize, ids: &mut [u16; BLOCK]) {
    if let Some(bytes) = bytes.as_chunks::<8>().0.as_chunks::<BITS>().0.get(block) {
        unpack_words(bytes, ids);
    }
}

#[inline]
fn unpack_words<const BITS: usize>(bytes: &[[u8; 8]; BITS], ids: &mut [u16; BLOCK]) {
    let words = bytes.map(u64::from_le_bytes);
    for (index, ids) in ids.as_chunks_mut::<GROUP>().0.iter_mut().enumerate() {
        let bits = group(&words, index);
        *ids = [0, BITS, 2 * BITS, 3 * BITS].map(|shift| (bits >> shift & ((1 << BITS) - 1)) as u16);
    }
}

/// Compares the ids of a block at once, as one long number: without every other id there is room for a carry above each.
fn are_below<const BITS: usize>(bytes: &[u8], limit: u32) -> bool {
    let missing_to_carry = (1 << BITS) - u64::from(limit);
    let (mut even_ids, mut missing_to_even) = ([0; BITS], [0; BITS]);
    for id in (0..BLOCK).step_by(2) {
        put_bits(&mut even_ids, id * BITS, (1 << BITS) - 1);
        put_bits(&mut missing_to_even, id * BITS, missing_to_carry);
    }
    let (mut missing_to_odd, mut carried) = ([0; BITS], 0);
    (1..BLOCK).step_by(2).for_each(|id| put_bits(&mut missing_to_odd, id * BITS, missing_to_carry));
    for bytes in bytes.as_chunks::<8>().0.as_chunks::<BITS>().0 {
        let (mut even_carry, mut odd_carry) = (false, false);
        for word in 0..BITS {
            let ids = u64::from_le_bytes(bytes[word]);
            let (even, odd);
            (even, even_carry) = (ids & even_ids[word]).carrying_add(missing_to_even[word], even_carry);
            (odd, odd_carry) = (ids & !even_ids[word]).carrying_add(missing_to_odd[word], odd_carry);
            carried |= even & !even_ids[word] | odd & even_ids[word];
        }
        carried |= u64::from(odd_carry);
    }
    carried == 0
}

/// Sets bits of a long number that are zero so far.
fn put_bits<const WORDS: usize>(words: &mut [u64; WORDS], at: usize, bits: u64) {
    let (word, shift) = (at / 64, at % 64);
    words[word] |= bits << shift;
    if let (Some(next), Some(high)) = (words.get_mut(word + 1), bits.checked_shr(64 - shift as u32)) {
        *next |= high;
    }
}

/// The bits of the ids of a group, from the lowest bit on. Higher bits are unspecified.
#[inline]
fn group<const BITS: usize>(words: &[u64; BITS], index: usize) -> u64 {
    let (word, shift) = (index * GROUP * BITS / 64, index * GROUP * BITS % 64);
    let low = words[word] >> shift;
    if shift + GROUP * BITS > 64 { low | words[word + 1] << (64 - shift) } else { low }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_every_width_come_back_as_they_were() {
        for bits in 1..=MAX_BITS {
            let ids: LocalIds = std::array::from_fn(|cell| (cell as u16).wrapping_mul(40_503) >> (16 - bits));
            let packed = PackedIds::pack(&ids, bits);
            let mut set = PackedIds::zeroed(bits);
            for (cell, id) in ids.iter().enumerate().rev() {
                set.set_id(cell, !*id & set.mask() as u16);
                set.set_id(cell, *id);
                assert_eq!(packed.id(cell), *id, "{bits} bits");
            }
            assert!(packed == set && packed.unpack() == ids && packed.bits() == bits);
            assert!(PackedIds::from_bytes(packed.bytes()) == packed);
            assert!((0..64).all(|block| packed.unpack_block(block) == ids[block * 64..][..64]));
        }
    }

    #[test]
    fn an_id_that_is_too_large_is_noticed_wherever_it_is() {
        for bits in 1..=MAX_BITS {
            // Palettes have more ids than one bit less could name.
            let limits = 1 << (bits - 1)..1_u16 << bits;
            for (cell, limit) in (0..CHUNK_VOLUME).step_by(61).zip(limits.cycle()) {
                let mut packed = PackedIds::pack(&[limit - 1; CHUNK_VOLUME], bits);
                assert!(all_below(packed.bytes(), bits, limit.into()));
                packed.set_id(cell, limit);
                assert!(!all_below(packed.bytes(), bits, limit.into()) && all_below(packed.bytes(), bits, 1 << bits));
            }
        }
    }
}
