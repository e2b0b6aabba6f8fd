//! From chunks to the file's order of cells, one layer of chunks at a time.

use super::plan::Plan;
use crate::block::BlockId;
use crate::bytes::put_number;
use crate::chunk::Chunk;
use crate::snapshot::schematic::ChunkGrid;
use crate::snapshot::schematic::filler::{Cells, FileCells};
use crate::space::{CHUNK_SIZE, CHUNK_VOLUME};

/// One layer of chunks.
#[derive(Default)]
pub(super) struct Slab {
    chunks: Vec<Cells>,
    unused: Vec<Box<FileCells>>,
    /// Of the box, and which layer of chunks.
    size: [u32; 3],
    y: u32,
}

impl Slab {
    /// Takes a layer of chunks, of a box of this size.
    pub fn open(&mut self, plan: &Plan, cells: &ChunkGrid, y: u32, size: [u32; 3]) {
        let [along_x, along_z] = [size[0], size[2]].map(|side| side.div_ceil(CHUNK_SIZE as u32) as usize);
        (self.size, self.y) = (size, y);
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

    /// Bytes of all packed cells beyond one each.
    pub fn more_bytes(&self) -> u64 {
        let along_x = self.size[0].div_ceil(CHUNK_SIZE as u32) as usize;
        let of_chunk = |(place, chunk): (usize, &Cells)| {
            let at = [place % along_x, self.y as usize, place / along_x];
            let reach = std::array::from_fn(|axis| (self.size[axis] as usize - at[axis] * CHUNK_SIZE).min(CHUNK_SIZE));
            more_bytes(chunk, reach)
        };
        self.chunks.iter().enumerate().map(of_chunk).sum()
    }

    /// Packs one row.
    pub fn pack_row(&self, y: usize, z: usize, is_single: bool, into: &mut Vec<u8>) {
        let along_x = self.size[0].div_ceil(CHUNK_SIZE as u32) as usize;
        let first = z / CHUNK_SIZE * along_x;
        let row = (y % CHUNK_SIZE * CHUNK_SIZE + z % CHUNK_SIZE) * CHUNK_SIZE;
        let mut left = self.size[0] as usize;
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

/// Bytes of a chunk's packed cells beyond one each.
fn more_bytes(chunk: &Cells, [reach_x, reach_y, reach_z]: [usize; 3]) -> u64 {
    let more = |number: u16| u64::from(number >= 1 << 7) + u64::from(number >= 1 << 14);
    match chunk {
        Cells::Uniform(number) => more(*number) * (reach_x * reach_y * reach_z) as u64,
        Cells::Mixed(cells) => {
            let rows = cells.as_chunks::<CHUNK_SIZE>().0.iter().enumerate();
            let rows = rows.filter(|(index, _)| index / CHUNK_SIZE < reach_y && index % CHUNK_SIZE < reach_z);
            rows.flat_map(|(_, row)| &row[..reach_x]).map(|number| more(*number)).sum()
        }
    }
}
