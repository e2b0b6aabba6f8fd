//! [`Filler`]: converts cells in file order to chunks.

use super::SchematicError;
use super::grid::{CHUNK_BYTES, ChunkGrid};
use super::nbt::Budget;
use crate::block::BlockId;
use crate::chunk::Chunk;
use crate::space::{CHUNK_SIZE, CHUNK_VOLUME, ChunkPos, cell_index};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Only numbers up to this allow the fast way to build a chunk.
const FAST: u16 = CHUNK_VOLUME as u16;

/// The cells of a chunk in file order: x fastest, then z, then y.
pub(super) type FileCells = [u16; CHUNK_VOLUME];

/// Builds chunks from cells in file order, one layer of chunks at a time. A chunk whose cells are all equal needs no
/// memory for them.
pub(super) struct Filler<'a> {
    grid: ChunkGrid,
    budget: &'a Budget,
    /// The chunks of this layer, x fastest, up to the last one with a cell so far.
    slab: Vec<Cells>,
    unused: Vec<Box<FileCells>>,
    /// Shared chunks of a single block, by the block and the chunk's extent in the box.
    alike: FxHashMap<(u16, [u8; 3]), Arc<Chunk>>,
    /// The position of the next cell.
    at: [u32; 3],
    filled: u64,
}

/// The cells of a chunk, or the single value of all of them.
pub(super) enum Cells {
    Uniform(u16),
    Mixed(Box<FileCells>),
}

impl<'a> Filler<'a> {
    pub fn new(size: [u32; 3], budget: &'a Budget) -> Self {
        let (slab, unused) = (Vec::new(), Vec::new());
        let alike = FxHashMap::default();
        Self { grid: ChunkGrid::new(size), budget, slab, unused, alike, at: [0; 3], filled: 0 }
    }

    /// The total number of cells.
    pub fn volume(&self) -> u64 {
        self.grid.volume()
    }

    /// The number of cells read so far, up to the first one that did not fit into memory.
    pub fn filled(&self) -> u64 {
        self.filled
    }

    /// Adds the next cells, at most as many as remain. An error has no place yet.
    pub fn push(&mut self, mut cells: &[u16]) -> Result<(), SchematicError> {
        let [width, height, length] = self.grid.size();
        if [width, length] == [CHUNK_SIZE as u32; 2] {
            return self.push_column(cells);
        }
        while !cells.is_empty() {
            let (row, rest) = cells.split_at(cells.len().min((width - self.at[0]) as usize));
            self.push_row(row)?;
            cells = rest;
            self.filled += row.len() as u64;
            self.at[0] += row.len() as u32;
            if self.at[0] < width {
                continue;
            }
            (self.at[0], self.at[2]) = (0, self.at[2] + 1);
            if self.at[2] == length {
                (self.at[1], self.at[2]) = (self.at[1] + 1, 0);
                if self.at[1].is_multiple_of(CHUNK_SIZE as u32) || self.at[1] == height {
                    self.close_slab()?;
                }
            }
        }
        Ok(())
    }

    /// Adds cells of a single column of chunks, where the file has the same order as memory.
    fn push_column(&mut self, mut cells: &[u16]) -> Result<(), SchematicError> {
        let height = self.grid.size()[1] as usize;
        while !cells.is_empty() {
            let place = self.filled as usize % CHUNK_VOLUME;
            let (piece, rest) = cells.split_at(cells.len().min(CHUNK_VOLUME - place));
            self.put(0, place, piece)?;
            cells = rest;
            self.filled += piece.len() as u64;
            let filled = self.filled as usize;
            let [x, y, z] = [filled % CHUNK_SIZE, filled / CHUNK_SIZE / CHUNK_SIZE, filled / CHUNK_SIZE % CHUNK_SIZE];
            self.at = [x, y, z].map(|at| at as u32);
            if filled.is_multiple_of(CHUNK_VOLUME) || y == height {
                self.close_slab()?;
            }
        }
        Ok(())
    }

    fn push_row(&mut self, mut cells: &[u16]) -> Result<(), SchematicError> {
        let [mut x, y, z] = self.at.map(|at| at as usize);
        let first = z / CHUNK_SIZE * self.grid.chunks_along()[0] as usize;
        let row = (y % CHUNK_SIZE * CHUNK_SIZE + z % CHUNK_SIZE) * CHUNK_SIZE;
        while !cells.is_empty() {
            let (piece, rest) = cells.split_at(cells.len().min(CHUNK_SIZE - x % CHUNK_SIZE));
            let place = first + x / CHUNK_SIZE;
            self.put(place, row + x % CHUNK_SIZE, piece)?;
            x += piece.len();
            cells = rest;
        }
        Ok(())
    }

    /// Writes cells into a chunk of this layer, starting at `place`.
    #[inline]
    fn put(&mut self, chunk: usize, place: usize, piece: &[u16]) -> Result<(), SchematicError> {
        if chunk == self.slab.len() {
            if chunk == self.slab.capacity() {
                self.budget.take(chunk.max(4) * size_of::<Cells>())?;
            }
            self.slab.push(Cells::Uniform(piece[0]));
        }
        match &mut self.slab[chunk] {
            Cells::Uniform(block) if is_all(piece, *block) => {}
            Cells::Uniform(block) => {
                let block = *block;
                let mut mixed = self.mixed(block)?;
                mixed[place..][..piece.len()].copy_from_slice(piece);
                self.slab[chunk] = Cells::Mixed(mixed);
            }
            Cells::Mixed(mixed) => match (<&[u16; CHUNK_SIZE]>::try_from(piece), mixed[place..].first_chunk_mut()) {
                (Ok(piece), Some(cells)) => *cells = *piece,
                _ => mixed[place..][..piece.len()].copy_from_slice(piece),
            },
        }
        Ok(())
    }

    fn mixed(&mut self, block: u16) -> Result<Box<FileCells>, SchematicError> {
        if let Some(mut cells) = self.unused.pop() {
            cells.fill(block);
            return Ok(cells);
        }
        self.budget.take(size_of::<FileCells>())?;
        let cells = vec![block; CHUNK_VOLUME].into_boxed_slice();
        Ok(cells.try_into().unwrap_or_else(|_| Box::new([block; CHUNK_VOLUME])))
    }

    /// Builds the chunks of a complete layer.
    fn close_slab(&mut self) -> Result<(), SchematicError> {
        let [along_x, _, _] = self.grid.chunks_along();
        let y = (self.at[1] - 1) / CHUNK_SIZE as u32;
        let mut slab = std::mem::take(&mut self.slab);
        for (place, cells) in slab.drain(..).enumerate() {
            let chunk = [place as u32 % along_x, y, place as u32 / along_x];
            self.close(chunk, self.grid.reach(chunk), cells).inspect_err(|_| self.leave_out(chunk))?;
        }
        self.slab = slab;
        Ok(())
    }

    /// Builds a chunk from the cells within its extent.
    fn close(&mut self, at: [u32; 3], reach: [u8; 3], cells: Cells) -> Result<(), SchematicError> {
        let (chunk, own_bytes) = match cells {
            Cells::Uniform(0) => return Ok(()),
            Cells::Uniform(block) => match self.alike.get(&(block, reach)) {
                Some(chunk) => (chunk.clone(), 0),
                None => {
                    let chunk = Arc::new(uniform(block, reach));
                    self.budget.take(chunk.heap_bytes() + 2 * CHUNK_BYTES)?;
                    self.alike.insert((block, reach), chunk.clone());
                    (chunk, 0)
                }
            },
            Cells::Mixed(cells) => {
                let chunk = Arc::new(chunk(&cells, reach));
                self.unused.push(cells);
                let own_bytes = chunk.heap_bytes();
                (chunk, own_bytes)
            }
        };
        self.budget.take(own_bytes + CHUNK_BYTES)?;
        let [x, y, z] = at.map(i64::from);
        self.grid.set_chunk(ChunkPos::new(x, y, z), chunk);
        Ok(())
    }

    /// Stops counting cells at the first one of this chunk.
    fn leave_out(&mut self, at: [u32; 3]) {
        let [x, y, z] = at.map(|at| u64::from(at) * CHUNK_SIZE as u64);
        let [width, _, length] = self.grid.size().map(u64::from);
        self.filled = self.filled.min((y * length + z) * width + x);
    }

    /// Returns all cells that were read and fit into memory, with number 0 elsewhere, and the number of cells up to
    /// the first missing one.
    pub fn finish(mut self) -> (ChunkGrid, u64) {
        let unused = std::mem::take(&mut self.unused);
        self.budget.give_back(unused.len() * size_of::<FileCells>());
        drop(unused);
        let [along_x, _, _] = self.grid.chunks_along();
        let y = self.at[1] / CHUNK_SIZE as u32;
        let mut slab = std::mem::take(&mut self.slab);
        // Mixed chunks first: they usually free more memory than they take.
        for is_any in [false, true] {
            let cells = slab.iter_mut().enumerate();
            for (place, cells) in cells.filter(|(_, cells)| is_any || matches!(cells, Cells::Mixed(_))) {
                let chunk = [place as u32 % along_x, y, place as u32 / along_x];
                let cells = std::mem::replace(cells, Cells::Uniform(0));
                if self.close_begun(chunk, cells).is_err() {
                    self.leave_out(chunk);
                    break;
                }
            }
        }
        self.budget.give_back(slab.capacity() * size_of::<Cells>());
        (self.grid, self.filled)
    }

    /// Builds a chunk of an incomplete layer, and frees its cells.
    fn close_begun(&mut self, at: [u32; 3], cells: Cells) -> Result<(), SchematicError> {
        let [first_x, first_y, first_z] = at.map(|at| at * CHUNK_SIZE as u32);
        let [x, y, z] = self.at;
        let mut reach = self.grid.reach(at);
        let is_cut = (first_z..first_z + u32::from(reach[2])).contains(&z);
        reach[1] = (y - first_y) as u8 + u8::from(z >= first_z);
        if reach[1] == 0 || matches!(cells, Cells::Uniform(0)) {
            return Ok(());
        }
        let cells = if is_cut {
            let mut cut = match cells {
                Cells::Mixed(cells) => cells,
                Cells::Uniform(block) => self.mixed(block)?,
            };
            let row = (y - first_y) as usize * CHUNK_SIZE + (z - first_z) as usize;
            let in_row = (x.saturating_sub(first_x) as usize).min(CHUNK_SIZE);
            cut[row * CHUNK_SIZE + in_row..].fill(0);
            Cells::Mixed(cut)
        } else {
            cells
        };
        if matches!(cells, Cells::Mixed(_)) {
            // They are freed as soon as the chunk is built.
            self.budget.give_back(size_of::<FileCells>());
        }
        let closed = self.close(at, reach, cells);
        self.unused.clear();
        closed
    }
}

#[inline]
fn is_all(piece: &[u16], block: u16) -> bool {
    match <[u16; CHUNK_SIZE]>::try_from(piece) {
        Ok(piece) => {
            // Compares four cells at a time.
            let alike = u64::from(block) * 0x0001_0001_0001_0001;
            let words: [u64; CHUNK_SIZE / 4] = bytemuck::cast(piece);
            words.iter().fold(0, |different, word| different | (word ^ alike)) == 0
        }
        Err(_) => piece.iter().all(|cell| *cell == block),
    }
}

/// A chunk of one block within its extent, and air beyond.
fn uniform(block: u16, reach: [u8; 3]) -> Chunk {
    if reach == [CHUNK_SIZE as u8; 3] {
        return Chunk::uniform(BlockId::new(block.into()));
    }
    chunk(&[block; CHUNK_VOLUME], reach)
}

fn chunk(cells: &FileCells, reach: [u8; 3]) -> Chunk {
    let [reach_x, reach_y, reach_z] = reach.map(usize::from);
    let mut numbers = [0; CHUNK_VOLUME];
    for (index, cells) in cells.as_chunks::<CHUNK_SIZE>().0.iter().enumerate() {
        let (y, z) = (index / CHUNK_SIZE, index % CHUNK_SIZE);
        if y < reach_y && z < reach_z {
            for (x, cell) in cells.iter().enumerate().take(reach_x) {
                numbers[x << 8 | index] = *cell;
            }
        }
        debug_assert_eq!(index, y << 4 | z);
    }
    if numbers.iter().fold(0, |most, number| most.max(*number)) < FAST {
        return Chunk::from_numbers(&mut numbers);
    }
    Chunk::from_fn(|position| BlockId::new(numbers[cell_index(position)].into()))
}
