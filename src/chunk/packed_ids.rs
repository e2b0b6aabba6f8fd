use crate::space::CHUNK_VOLUME;

/// The most bits that a local id can need: a chunk has 2^12 cells.
pub(super) const MAX_BITS: u32 = 12;

/// One local id for each cell of a chunk.
pub(super) type LocalIds = [u16; CHUNK_VOLUME];

/// Local ids of 1 to 12 bits without gaps, least significant bit first: the block part of the chunk format.
///
/// Every 64 ids fill `bits` words exactly. One more word, always 0, lets any id be read from two words without a
/// branch.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct PackedIds {
    words: Box<[u64]>,
    bits: u32,
}

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
        Self { words: vec![0; CHUNK_VOLUME / 64 * bits as usize + 1].into(), bits }
    }

    pub fn pack(ids: &LocalIds, bits: u32) -> Self {
        let mut packed = Self::zeroed(bits);
        with_constant_bits!(bits, pack(ids, &mut packed.words));
        packed
    }

    pub fn unpack(&self) -> LocalIds {
        let mut ids = [0; CHUNK_VOLUME];
        with_constant_bits!(self.bits, unpack(&self.words, &mut ids));
        ids
    }

    /// Reads the words of the format; what is missing stays 0, what is too much is left alone.
    pub fn from_words(words: impl Iterator<Item = u64>, bits: u32) -> Self {
        let mut packed = Self::zeroed(bits);
        let length = packed.words().len();
        packed.words[..length].iter_mut().zip(words).for_each(|(to, from)| *to = from);
        packed
    }

    /// The words of the format.
    pub fn words(&self) -> &[u64] {
        &self.words[..self.words.len() - 1]
    }

    pub fn bits(&self) -> u32 {
        self.bits
    }

    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.words)
    }

    #[inline]
    pub fn id(&self, cell: usize) -> u16 {
        let (word, shift) = self.place(cell);
        let pair = &self.words[word..word + 2];
        let both = u128::from(pair[1]) << 64 | u128::from(pair[0]);
        ((both >> shift) as u64 & self.mask()) as u16
    }

    #[inline]
    pub fn set_id(&mut self, cell: usize, id: u16) {
        let (mask, id) = (self.mask(), u64::from(id));
        let (word, shift) = self.place(cell);
        self.words[word] = self.words[word] & !(mask << shift) | id << shift;
        if shift + self.bits > 64 {
            let shift = 64 - shift;
            self.words[word + 1] = self.words[word + 1] & !(mask >> shift) | id >> shift;
        }
    }

    #[inline]
    fn place(&self, cell: usize) -> (usize, u32) {
        let bit = cell * self.bits as usize;
        (bit / 64, bit as u32 % 64)
    }

    #[inline]
    fn mask(&self) -> u64 {
        (1 << self.bits) - 1
    }
}

/// Ids that are moved at once. Groups begin at a constant bit of their words, and 4 x 12 bits fit into a `u64`.
const GROUP: usize = 4;

fn pack<const BITS: usize>(ids: &LocalIds, words: &mut [u64]) {
    for (ids, words) in ids.as_chunks::<64>().0.iter().zip(words.as_chunks_mut::<BITS>().0) {
        for (index, ids) in ids.as_chunks::<GROUP>().0.iter().enumerate() {
            let [a, b, c, d] = ids.map(u64::from);
            let bits = a | b << BITS | c << (2 * BITS) | d << (3 * BITS);
            let (word, shift) = (index * GROUP * BITS / 64, index * GROUP * BITS % 64);
            words[word] |= bits << shift;
            if shift + GROUP * BITS > 64 {
                words[word + 1] = bits >> (64 - shift);
            }
        }
    }
}

fn unpack<const BITS: usize>(words: &[u64], ids: &mut LocalIds) {
    for (words, ids) in words.as_chunks::<BITS>().0.iter().zip(ids.as_chunks_mut::<64>().0) {
        for (index, ids) in ids.as_chunks_mut::<GROUP>().0.iter_mut().enumerate() {
            let (word, shift) = (index * GROUP * BITS / 64, index * GROUP * BITS % 64);
            let mut bits = words[word] >> shift;
            if shift + GROUP * BITS > 64 {
                bits |= words[word + 1] << (64 - shift);
            }
            *ids = [0, BITS, 2 * BITS, 3 * BITS].map(|shift| (bits >> shift & ((1 << BITS) - 1)) as u16);
        }
    }
}
