//! The effects of blocks on light: [`LightTable`] has them by type, [`ChunkOptics`] by cell.

use super::cells::{Cells, TOP_ROW, WORDS, Words};
use super::levels::{Planes, planes_of, set};
use super::{Channel, MAX_LEVEL};
use crate::block::{BlockId, BlockRegistry, BlockType};
use crate::chunk::Chunk;
use crate::space::{Face, FaceSet, bits, cell_position};

/// The effects of a registry's block types on light: a dense table by block id, made once the registry is complete.
///
/// Ids that the registry has not issued are opaque and dark, like the placeholders of types that the game has removed.
#[derive(Clone, Debug)]
pub struct LightTable(Box<[Optics]>);

/// The effect of a block on light.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Optics {
    /// Taken from light that enters, besides the 1 of each step. 15 if none can enter.
    attenuation: u8,
    light: u8,
    /// Faces through which light does not pass. None if no light can enter, because then there is none to pass.
    closed: FaceSet,
}

impl Optics {
    const CLEAR: Self = Self { attenuation: 0, light: 0, closed: FaceSet::NONE };
    const OPAQUE: Self = Self { attenuation: MAX_LEVEL, ..Self::CLEAR };

    fn of(block: &BlockType) -> Self {
        let (attenuation, closed) = (block.attenuation(), block.closed_faces());
        if attenuation >= MAX_LEVEL || closed == FaceSet::ALL {
            return Self { light: block.light(), ..Self::OPAQUE };
        }
        Self { attenuation, light: block.light(), closed }
    }
}

impl LightTable {
    /// The table of these block types.
    pub fn new(blocks: &BlockRegistry) -> Self {
        Self((0..blocks.len() as u32).map(|id| Optics::of(blocks.block(BlockId::new(id)))).collect())
    }

    #[inline]
    fn optics(&self, block: BlockId) -> Optics {
        self.0.get(block.index() as usize).copied().unwrap_or(Optics::OPAQUE)
    }

    /// Returns `true` if a block of another type can change this light.
    pub(super) fn differ(&self, channel: Channel, old: BlockId, new: BlockId) -> bool {
        let (old, new) = (self.optics(old), self.optics(new));
        old.attenuation != new.attenuation
            || old.closed != new.closed
            || channel == Channel::Block && old.light != new.light
    }

    /// Returns `true` if light passes through all blocks of the chunk without loss, and none of them shines.
    pub(super) fn is_clear(&self, chunk: Option<&Chunk>) -> bool {
        palette(chunk).iter().all(|block| self.optics(*block) == Optics::CLEAR)
    }

    /// Returns `true` if a block of the chunk may shine.
    pub(super) fn shines(&self, chunk: Option<&Chunk>) -> bool {
        palette(chunk).iter().any(|block| self.optics(*block).light > 0)
    }
}

/// The blocks of a chunk; a missing chunk is air.
fn palette(chunk: Option<&Chunk>) -> &[BlockId] {
    chunk.map_or(&[BlockId::AIR], Chunk::palette)
}

/// The effects of a chunk's blocks on light. A word is only there once it was [learned](Self::learn).
pub(super) struct ChunkOptics {
    /// Cells through which full sky light falls without loss.
    pub free: Words,
    /// Cells that take 1 from light that enters, with the free ones.
    pub open: Words,
    /// Cells that take more than 1 from light that enters, by how much they take.
    pub dense: Vec<(u8, Words)>,
    /// Cells that shine, by their level.
    lights: Vec<(u8, Words)>,
    /// Cells whose face is closed, by face; `None` if no block that light can enter has closed faces.
    closed: Option<Box<[Words; 6]>>,
    /// The learned words, one bit each.
    learned: u64,
    /// The facts to learn about the cells of each palette entry: [`FREE`], [`OPEN`] and the kinds, a bit each.
    codes: Vec<u8>,
    /// All bits of all codes.
    used_codes: u8,
    /// All cells have the same code, whatever their place.
    is_alike: bool,
    kinds: Vec<Optics>,
}

/// The special kinds of blocks in a chunk that have a bit of their own. The cells of further kinds are visited one by one.
const KINDS: usize = 5;
/// Palettes up to this length are looked up without a check.
const SMALL: usize = 256;
const FREE: u8 = 1;
const OPEN: u8 = 2;
const FIRST_KIND: u8 = 4;
const FURTHER: u8 = 1 << 7;

impl ChunkOptics {
    pub fn new(table: &LightTable, chunk: Option<&Chunk>) -> Self {
        let (free, open) = ([0; WORDS], [0; WORDS]);
        let (dense, lights, kinds) = (Vec::new(), Vec::new(), Vec::new());
        let (codes, used_codes) = (Vec::new(), 0);
        let (closed, learned, is_alike) = (None, 0, false);
        let mut optics = Self { free, open, dense, lights, closed, learned, codes, used_codes, is_alike, kinds };
        optics.codes = palette(chunk).iter().map(|block| optics.code(table.optics(*block))).collect();
        optics.used_codes = optics.codes.iter().fold(0, |all, code| all | code);
        let is_same = |code: &u8| *code == optics.used_codes;
        optics.is_alike = optics.codes.iter().all(is_same) && optics.used_codes & FURTHER == 0;
        if optics.codes.len() < SMALL {
            optics.codes.resize(SMALL, 0);
        }
        optics
    }

    /// The code of one kind of block.
    fn code(&mut self, optics: Optics) -> u8 {
        if optics.closed != FaceSet::NONE && self.closed.is_none() {
            self.closed = Some(Box::new([[0; WORDS]; 6]));
        }
        let code = match optics.attenuation {
            0 => FREE | OPEN,
            1 => OPEN,
            _ => 0,
        };
        let is_dense = (2..MAX_LEVEL).contains(&optics.attenuation);
        if !is_dense && optics.light == 0 && optics.closed == FaceSet::NONE {
            return code;
        }
        let kind = self.kinds.iter().position(|kind| *kind == optics).unwrap_or(self.kinds.len());
        if kind >= KINDS {
            return code | FURTHER;
        }
        if kind == self.kinds.len() {
            self.kinds.push(optics);
        }
        code | FIRST_KIND << kind
    }

    /// Learns these words of the chunk, one bit each. Takes about 50 ns for each word that is new.
    pub fn learn(&mut self, words: u64, table: &LightTable, chunk: Option<&Chunk>) {
        for word in bits(words & !self.learned).map(|word| word as usize) {
            let mixed = if self.is_alike { None } else { chunk };
            let Some(places) = mixed.and_then(|chunk| chunk.palette_places(word)) else {
                let code = self.used_codes;
                self.insert_word(word, |bit| if code & bit == 0 { 0 } else { u64::MAX });
                continue;
            };
            let codes = match <&[u8; SMALL]>::try_from(self.codes.as_slice()) {
                Ok(codes) => places.map(|place| codes[usize::from(place) % SMALL]),
                Err(_) => places.map(|place| self.codes.get(usize::from(place)).copied().unwrap_or(0)),
            };
            self.insert_word(word, |bit| cells_with(&codes, bit));
            if let (Some(chunk), true) = (chunk, self.used_codes & FURTHER != 0) {
                for cell in bits(cells_with(&codes, FURTHER)) {
                    let block = chunk.block(cell_position(word * 64 + cell as usize));
                    self.insert(table.optics(block), word, 1 << cell);
                }
            }
        }
        self.learned |= words;
    }

    /// Returns `true` if all these words are learned.
    #[inline]
    pub const fn knows(&self, words: u64) -> bool {
        words & !self.learned == 0
    }

    fn insert_word(&mut self, word: usize, cells: impl Fn(u8) -> u64) {
        let used = |bit: u8| self.used_codes & bit != 0;
        self.free[word] = if used(FREE) { cells(FREE) } else { 0 };
        self.open[word] = if used(OPEN) { cells(OPEN) } else { 0 };
        for kind in 0..self.kinds.len() {
            let cells = cells(FIRST_KIND << kind);
            if cells != 0 {
                self.insert(self.kinds[kind], word, cells);
            }
        }
    }

    fn insert(&mut self, optics: Optics, word: usize, cells: u64) {
        if (2..MAX_LEVEL).contains(&optics.attenuation) {
            insert_by(&mut self.dense, optics.attenuation, word, cells);
        }
        if optics.light > 0 {
            insert_by(&mut self.lights, optics.light, word, cells);
        }
        if let Some(closed) = &mut self.closed {
            optics.closed.iter().for_each(|face| closed[face as usize][word] |= cells);
        }
    }

    /// Returns `true` if any cell has closed faces that matter.
    #[inline]
    pub fn has_closed_faces(&self) -> bool {
        self.closed.is_some()
    }

    /// The cells of a word that light cannot enter through a face.
    #[inline]
    pub fn closed_to_entry(&self, face: Face, word: usize) -> u64 {
        self.closed.as_ref().map_or(0, |closed| closed[face as usize][word % WORDS])
    }

    /// The cells of a word that light cannot leave through a face. The light of a block that shines leaves through all of
    /// its faces.
    #[inline]
    pub fn closed_to_exit(&self, channel: Channel, face: Face, word: usize) -> u64 {
        let closed = self.closed_to_entry(face, word);
        if closed == 0 || channel == Channel::Sky {
            return closed;
        }
        self.lights.iter().fold(closed, |closed, (_, cells)| closed & !cells[word % WORDS])
    }

    /// The levels that the cells of a word have without any neighbor in the map: from their own light, and from the open
    /// sky above the chunk.
    pub fn base(&self, channel: Channel, is_below_sky: bool, word: usize) -> Planes {
        let mut base = planes_of(0);
        if channel == Channel::Block {
            for (level, cells) in &self.lights {
                set(&mut base, cells[word % WORDS], *level);
            }
        } else if is_below_sky && word % 4 == 3 {
            let enters = TOP_ROW & !self.closed_to_entry(Face::Top, word);
            set(&mut base, self.open[word] & enters, MAX_LEVEL - 1);
            set(&mut base, self.free[word] & enters, MAX_LEVEL);
            for (cost, cells) in &self.dense {
                set(&mut base, cells[word] & enters, MAX_LEVEL - cost);
            }
        }
        base
    }

    /// All cells that shine.
    pub fn shining(&self) -> Cells {
        let mut shining = Cells::new();
        for (_, cells) in &self.lights {
            cells.iter().enumerate().for_each(|(word, cells)| shining.insert(word, *cells));
        }
        shining
    }
}

fn insert_by(list: &mut Vec<(u8, Words)>, key: u8, word: usize, cells: u64) {
    match list.iter_mut().find(|(known, _)| *known == key) {
        Some((_, known)) => known[word] |= cells,
        None => {
            let mut words = [0; WORDS];
            words[word] = cells;
            list.push((key, words));
        }
    }
}

/// The cells whose code has this bit.
#[inline]
fn cells_with(codes: &[u8; 64], bit: u8) -> u64 {
    let shift = bit.trailing_zeros();
    let mut cells = 0;
    for (byte, codes) in codes.as_chunks::<8>().0.iter().enumerate() {
        let flags = u64::from_le_bytes(*codes) >> shift & 0x0101_0101_0101_0101;
        // Collects the lowest bits of the eight bytes in the highest byte.
        cells |= (flags.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * byte);
    }
    cells
}
