//! What blocks do to light: [`LightTable`] by type, and [`ChunkOptics`] by cell.

use super::cells::{Cells, TOP_ROW, WORDS, Words};
use super::levels::{Planes, planes_of, set};
use super::{Channel, MAX_LEVEL};
use crate::block::{BlockId, BlockRegistry, BlockType};
use crate::chunk::Chunk;
use crate::space::{CHUNK_VOLUME, Face, FaceSet, bits, cell_position};

/// What the block types of a registry do to light: a dense table by block id, made once the registry is complete.
///
/// Ids that the registry has not issued are opaque and dark, like the placeholders of types that the game has removed.
#[derive(Clone, Debug)]
pub struct LightTable(Box<[Optics]>);

/// What a block does to light.
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

/// What the blocks of a chunk do to light.
pub(super) struct ChunkOptics {
    /// Cells through which full sky light falls without loss.
    pub free: Words,
    /// Cells that take 1 from light that enters, with the free ones.
    pub open: Words,
    /// Cells that take more than 1 from light that enters, by how much they take.
    pub dense: Vec<(u8, Words)>,
    /// Cells that shine, by their level.
    lights: Vec<(u8, Words)>,
    /// Cells whose face is closed, by face; `None` if no such cell can be entered.
    closed: Option<Box<[Words; 6]>>,
}

/// The special kinds of blocks in a chunk that have a bit of their own. The cells of further kinds are visited one by one.
const KINDS: usize = 5;
const FREE: u8 = 1;
const OPEN: u8 = 2;
const FIRST_KIND: u8 = 4;
const FURTHER: u8 = 1 << 7;

impl ChunkOptics {
    /// Takes about a microsecond, and less for a chunk of one kind of block.
    pub fn new(table: &LightTable, chunk: Option<&Chunk>) -> Self {
        let palette = palette(chunk);
        let mut kinds: Vec<Optics> = Vec::new();
        // One byte for each place of the palette, and one bit for each kind of place.
        let mut codes = [0; CHUNK_VOLUME];
        for (code, block) in codes.iter_mut().zip(palette) {
            let optics = table.optics(*block);
            *code = match optics.attenuation {
                0 => FREE | OPEN,
                1 => OPEN,
                _ => 0,
            };
            if optics.light > 0 || optics.closed != FaceSet::NONE || (2..MAX_LEVEL).contains(&optics.attenuation) {
                let known = kinds.iter().position(|kind| *kind == optics);
                let kind = known.unwrap_or(kinds.len());
                match kind < KINDS {
                    true if known.is_none() => kinds.push(optics),
                    _ => {}
                }
                *code |= if kind < KINDS { FIRST_KIND << kind } else { FURTHER };
            }
        }
        // Usually each open cell is free too.
        let has_thin = codes[..palette.len()].iter().any(|code| code & (FREE | OPEN) == OPEN);
        let codes_in_use = codes[..palette.len()].iter().fold(0, |all, code| all | code);
        let all_alike = codes[..palette.len()].iter().all(|code| *code == codes[0]);
        let places = if all_alike { None } else { chunk.and_then(Chunk::palette_places) };
        let codes = places.map(|places| {
            let mut cells = [0; CHUNK_VOLUME];
            cells.iter_mut().zip(&places).for_each(|(cell, place)| *cell = codes[usize::from(*place) % CHUNK_VOLUME]);
            cells
        });
        let cells = |bit: u8| match &codes {
            _ if codes_in_use & bit == 0 => [0; WORDS],
            Some(codes) => cells_with(codes, bit),
            None => [u64::MAX; WORDS],
        };
        let free = cells(FREE);
        let open = if has_thin { cells(OPEN) } else { free };
        let mut optics = Self { free, open, dense: Vec::new(), lights: Vec::new(), closed: None };
        for (kind, bit) in kinds.iter().zip((0..).map(|kind| FIRST_KIND << kind)) {
            optics.insert(*kind, &cells(bit));
        }
        if let (Some(chunk), true) = (chunk, codes_in_use & FURTHER != 0) {
            optics.insert_further(table, chunk, &cells(FURTHER));
        }
        optics
    }

    /// Adds blocks of more than [`KINDS`] kinds, one by one.
    #[cold]
    fn insert_further(&mut self, table: &LightTable, chunk: &Chunk, cells: &Words) {
        for (word, bit) in cells.iter().enumerate().flat_map(|(word, cells)| bits(*cells).map(move |bit| (word, bit))) {
            let mut cell = [0; WORDS];
            cell[word] = 1 << bit;
            let position = cell_position(word * 64 + bit as usize);
            self.insert(table.optics(chunk.block(position)), &cell);
        }
    }

    fn insert(&mut self, optics: Optics, cells: &Words) {
        if (2..MAX_LEVEL).contains(&optics.attenuation) {
            insert_by(&mut self.dense, optics.attenuation, cells);
        }
        if optics.light > 0 {
            insert_by(&mut self.lights, optics.light, cells);
        }
        if optics.closed != FaceSet::NONE {
            let closed = self.closed.get_or_insert_with(|| Box::new([[0; WORDS]; 6]));
            optics.closed.iter().for_each(|face| join(&mut closed[face as usize], cells));
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

fn insert_by(list: &mut Vec<(u8, Words)>, key: u8, cells: &Words) {
    match list.iter_mut().find(|(known, _)| *known == key) {
        Some((_, known)) => join(known, cells),
        None => list.push((key, *cells)),
    }
}

fn join(known: &mut Words, cells: &Words) {
    known.iter_mut().zip(cells).for_each(|(known, cells)| *known |= cells);
}

/// The cells whose code has this bit.
fn cells_with(codes: &[u8; CHUNK_VOLUME], bit: u8) -> Words {
    let shift = bit.trailing_zeros();
    let mut cells = [0; WORDS];
    for (word, codes) in cells.iter_mut().zip(codes.as_chunks::<8>().0.as_chunks::<8>().0) {
        for (byte, codes) in codes.iter().enumerate() {
            let flags = u64::from_le_bytes(*codes) >> shift & 0x0101_0101_0101_0101;
            // Collects the lowest bits of the eight bytes in the highest byte.
            *word |= (flags.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * byte);
        }
    }
    cells
}
