//! Converts chunks to cells in file order, one layer of chunks at a time.

use crate::block::BlockId;
use crate::bytes::put_number;
use crate::chunk::Chunk;
use crate::snapshot::schematic::filler::{Cells, FileCells};
use crate::snapshot::schematic::write::Plan;
use crate::snapshot::schematic::{ChunkGrid, Result, SchematicError};
use crate::space::{CHUNK_SIZE, CHUNK_VOLUME};
use crate::work::{Progress, Tell};
use std::ops::ControlFlow;

/// The number of packed cells that are collected before they are passed on.
const BATCH: usize = 1 << 16;
/// A palette with at most this many entries needs one byte per cell.
const SINGLE: usize = 128;

/// Packs the cells of a box of this size, and passes them on with the number of cells packed so far. Cells with a
/// height of one layer are repeated as often as the size requires.
pub(super) fn pack(
    plan: &Plan,
    cells: &ChunkGrid,
    size: [u32; 3],
    mut pass_on: impl FnMut(&[u8], u64) -> Result<()>,
) -> Result<()> {
    let [width, height, length] = size;
    let is_flat = cells.size()[1] == 1;
    let is_single = plan.palette.len() <= SINGLE;
    let (mut slab, mut packed, mut done) = (Slab::default(), Vec::with_capacity(BATCH + 4 * width as usize), 0);
    for y in 0..height as usize {
        let layer = if is_flat { 0 } else { y };
        if y.is_multiple_of(CHUNK_SIZE) {
            slab.open(plan, cells, (layer / CHUNK_SIZE) as u32, size);
        }
        for z in 0..length as usize {
            slab.pack_row(layer, z, is_single, &mut packed);
            done += u64::from(width);
            if packed.len() >= BATCH {
                pass_on(&packed, done)?;
                packed.clear();
            }
        }
    }
    pass_on(&packed, done)
}

/// The length in bytes of all cells as [`pack`] packs them. Reports a progress of 0.
pub(super) fn packed_length(plan: &Plan, cells: &ChunkGrid, size: [u32; 3], progress: Tell<'_>) -> Result<u64> {
    let volume = ChunkGrid::new(size).volume();
    if plan.palette.len() <= SINGLE {
        return Ok(volume);
    }
    let [width, height, length] = size;
    let (layers, repeats) = if cells.size()[1] == 1 { (height.min(1), height) } else { (height, 1) };
    let (mut slab, mut more) = (Slab::default(), 0);
    for (index, (position, chunk)) in cells.chunks().enumerate() {
        if index.is_multiple_of(BATCH / CHUNK_VOLUME) {
            tell(progress, 0, volume)?;
        }
        let first = [position.x, position.y, position.z].map(|at| at as usize * CHUNK_SIZE);
        let sides = [width, layers, length].map(|side| side as usize);
        let reach: [usize; 3] = std::array::from_fn(|axis| sides[axis].saturating_sub(first[axis]).min(CHUNK_SIZE));
        let [reach_x, reach_y, reach_z] = reach;
        match chunk.uniform_block() {
            Some(block) => more += more_bytes(block.index() as u16) * (reach_x * reach_y * reach_z) as u64,
            None if reach.contains(&0) => {}
            None => {
                let cells = slab.mixed(plan, chunk);
                let rows = cells.as_chunks::<CHUNK_SIZE>().0.iter().enumerate();
                let rows = rows.filter(|(index, _)| index / CHUNK_SIZE < reach_y && index % CHUNK_SIZE < reach_z);
                more += rows.flat_map(|(_, row)| &row[..reach_x]).map(|number| more_bytes(*number)).sum::<u64>();
                slab.unused.push(cells);
            }
        }
    }
    Ok(volume + more * u64::from(repeats))
}

/// The number of bytes of a packed number beyond the first.
fn more_bytes(number: u16) -> u64 {
    u64::from(number >= 1 << 7) + u64::from(number >= 1 << 14)
}

#[derive(Default)]
struct Slab {
    chunks: Vec<Cells>,
    unused: Vec<Box<FileCells>>,
    /// The width of the box along x in blocks.
    width: u32,
}

impl Slab {
    /// Loads a layer of chunks of a box of this size.
    fn open(&mut self, plan: &Plan, cells: &ChunkGrid, y: u32, size: [u32; 3]) {
        let [along_x, along_z] = [size[0], size[2]].map(|side| side.div_ceil(CHUNK_SIZE as u32) as usize);
        self.width = size[0];
        for chunk in self.chunks.drain(..) {
            if let Cells::Mixed(cells) = chunk {
                self.unused.push(cells);
            }
        }
        self.chunks.resize_with(along_x * along_z, || Cells::Uniform(0));
        for ([x, z], chunk) in cells.layer(y) {
            let place = x as usize + z as usize * along_x;
            if (x as usize) < along_x && place < self.chunks.len() {
                self.chunks[place] = match chunk.uniform_block() {
                    Some(block) => Cells::Uniform(block.index() as u16),
                    None => Cells::Mixed(self.mixed(plan, chunk)),
                };
            }
        }
    }

    fn mixed(&mut self, plan: &Plan, chunk: &Chunk) -> Box<FileCells> {
        let mut blocks = [BlockId::AIR; CHUNK_VOLUME];
        chunk.copy_into(&mut blocks);
        let mut cells = self.unused.pop().unwrap_or_else(|| Box::new([0; CHUNK_VOLUME]));
        for (index, cells) in cells.as_chunks_mut::<CHUNK_SIZE>().0.iter_mut().enumerate() {
            for (x, cell) in cells.iter_mut().enumerate() {
                *cell = blocks[x << 8 | index].index() as u16;
            }
        }
        for (at, _, _) in chunk.layered_blocks().filter(|(_, layer, _)| *layer == 1) {
            if let Some(wet) = plan.wet_block(chunk, at) {
                let [x, y, z] = at;
                cells[y << 8 | z << 4 | x] = wet;
            }
        }
        cells
    }

    fn pack_row(&self, y: usize, z: usize, is_single: bool, into: &mut Vec<u8>) {
        let along_x = self.width.div_ceil(CHUNK_SIZE as u32) as usize;
        let first = z / CHUNK_SIZE * along_x;
        let row = (y % CHUNK_SIZE * CHUNK_SIZE + z % CHUNK_SIZE) * CHUNK_SIZE;
        let mut left = self.width as usize;
        for chunk in &self.chunks[first..first + along_x] {
            let count = left.min(CHUNK_SIZE);
            left -= count;
            match chunk {
                Cells::Uniform(number) if is_single => into.resize(into.len() + count, *number as u8),
                Cells::Uniform(number) => (0..count).for_each(|_| put_number(into, (*number).into())),
                Cells::Mixed(cells) if is_single => {
                    into.extend(cells[row..row + count].iter().map(|number| *number as u8))
                }
                Cells::Mixed(cells) => {
                    cells[row..row + count].iter().for_each(|number| put_number(into, (*number).into()))
                }
            }
        }
    }
}

pub fn tell(progress: Tell<'_>, done: u64, volume: u64) -> Result<()> {
    match progress(&Progress::of(done, volume)) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(SchematicError::Cancelled),
    }
}
