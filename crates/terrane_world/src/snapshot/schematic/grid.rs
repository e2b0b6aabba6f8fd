//! [`ChunkGrid`]: the blocks of a schematic as chunks.

use crate::block::BlockId;
use crate::chunk::Chunk;
use crate::space::{CHUNK_SIZE, ChunkPos};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The memory of a chunk besides its heap: its place in the grid and its reference counts.
pub(super) const CHUNK_BYTES: usize = 64 + size_of::<Chunk>();

/// The blocks of a box as chunks, by position within the box, from 0 at its minimum corner. A missing chunk is air,
/// and so are the cells of a chunk beyond the box.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChunkGrid {
    size: [u32; 3],
    /// By y, z, x, as in files.
    chunks: BTreeMap<[u32; 3], Arc<Chunk>>,
}

impl ChunkGrid {
    /// A grid of air. `size` is in blocks along x, y, z. Takes no memory for it.
    pub const fn new(size: [u32; 3]) -> Self {
        Self { size, chunks: BTreeMap::new() }
    }

    /// The size in blocks along x, y, z.
    pub fn size(&self) -> [u32; 3] {
        self.size
    }

    /// The number of blocks.
    pub fn volume(&self) -> u64 {
        self.size.iter().fold(1, |volume: u64, side| volume.saturating_mul((*side).into()))
    }

    /// The number of chunks along x, y, z.
    pub fn chunks_along(&self) -> [u32; 3] {
        self.size.map(|side| side.div_ceil(CHUNK_SIZE as u32))
    }

    /// The chunk at a position within the box; `None` if it is all air or outside of the box.
    pub fn chunk(&self, pos: ChunkPos) -> Option<&Arc<Chunk>> {
        self.chunks.get(&self.key(pos)?)
    }

    /// All chunks that are not air, x fastest, then z, then y.
    pub fn chunks(&self) -> impl Iterator<Item = (ChunkPos, &Arc<Chunk>)> {
        self.chunks.iter().map(|([y, z, x], chunk)| (ChunkPos::new((*x).into(), (*y).into(), (*z).into()), chunk))
    }

    /// All chunks that are not air, x fastest, then z, then y.
    pub fn into_chunks(self) -> impl Iterator<Item = (ChunkPos, Arc<Chunk>)> {
        self.chunks.into_iter().map(|([y, z, x], chunk)| (ChunkPos::new(x.into(), y.into(), z.into()), chunk))
    }

    /// Sets a chunk. Its cells beyond the box should be air; they are not written. Returns `false` if the position is
    /// outside of the box.
    pub fn set_chunk(&mut self, pos: ChunkPos, chunk: Arc<Chunk>) -> bool {
        let Some(key) = self.key(pos) else { return false };
        match chunk.uniform_block() {
            Some(BlockId::AIR) => drop(self.chunks.remove(&key)),
            _ => drop(self.chunks.insert(key, chunk)),
        }
        true
    }

    /// The block of layer 0 at x, y, z; air outside of the box.
    pub fn block(&self, [x, y, z]: [u32; 3]) -> BlockId {
        let size = CHUNK_SIZE as u32;
        let chunk = self.chunks.get(&[y / size, z / size, x / size]);
        chunk.map_or(BlockId::AIR, |chunk| chunk.block([x % size, y % size, z % size].map(|at| at as usize)))
    }

    /// The size in bytes of the chunk at x, y, z within the box; 0 if it is shared.
    pub(super) fn own_bytes(&self, [x, y, z]: [u32; 3]) -> usize {
        let chunk = self.chunks.get(&[y, z, x]).filter(|chunk| Arc::strong_count(chunk) == 1);
        chunk.map_or(0, |chunk| CHUNK_BYTES + chunk.heap_bytes())
    }

    fn key(&self, pos: ChunkPos) -> Option<[u32; 3]> {
        let [along_x, along_y, along_z] = self.chunks_along();
        let within = |at: i64, along: u32| u32::try_from(at).ok().filter(|at| *at < along);
        Some([within(pos.y, along_y)?, within(pos.z, along_z)?, within(pos.x, along_x)?])
    }

    /// The extent in blocks of a chunk within the box, along x, y, z: 16 except at the border.
    pub(super) fn reach(&self, chunk: [u32; 3]) -> [u8; 3] {
        let size = CHUNK_SIZE as u32;
        std::array::from_fn(|axis| (self.size[axis] - chunk[axis] * size).min(size) as u8)
    }

    /// The chunks of one layer of chunks that are not air, with their x and z.
    pub(super) fn layer(&self, y: u32) -> impl Iterator<Item = ([u32; 2], &Arc<Chunk>)> {
        self.chunks.range([y, 0, 0]..=[y, u32::MAX, u32::MAX]).map(|([_, z, x], chunk)| ([*x, *z], chunk))
    }

    /// The chunk at x, y, z within the box, for writing; created as air if missing.
    pub(super) fn chunk_mut(&mut self, [x, y, z]: [u32; 3]) -> &mut Chunk {
        Arc::make_mut(self.chunks.entry([y, z, x]).or_default())
    }
}
