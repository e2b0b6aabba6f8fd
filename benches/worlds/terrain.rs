//! terrain42 as chunks.

// Each user needs only a part.
#![allow(dead_code)]

// A copy of the project's shared workload, unchanged so that figures stay comparable.
#[allow(missing_docs, clippy::all)]
pub mod terrain42;

use std::array;
pub use terrain42::{NAMES, generate};
use terrane_world::block::{BlockId, BlockRegistry, BlockType};
use terrane_world::chunk::Chunk;
use terrane_world::snapshot::schematic::Schematic;
use terrane_world::space::ChunkPos;

/// Chunks along an edge.
pub const EDGE: i64 = terrain42::W as i64 / 16;

/// The index of a block in the generated blocks.
pub fn index([x, y, z]: [usize; 3]) -> usize {
    x + z * terrain42::W + y * terrain42::W * terrain42::L
}

/// One chunk of the generated blocks.
pub fn chunk(blocks: &[u8], chunk: ChunkPos) -> Chunk {
    let corner = [chunk.x, chunk.y, chunk.z].map(|at| at as usize * 16);
    Chunk::from_fn(|cell| {
        let at = array::from_fn(|axis| corner[axis] + cell[axis]);
        BlockId::new(blocks[index(at)].into())
    })
}

/// The block types of terrain42.
pub fn registry() -> BlockRegistry {
    let mut registry = BlockRegistry::new();
    for name in &NAMES[1..] {
        registry.register(BlockType::new(*name)).expect("each has a name of its own");
    }
    registry
}

/// The whole of terrain42 as a schematic.
pub fn schematic() -> Schematic {
    let blocks = generate();
    let mut schematic = Schematic::new([terrain42::W, terrain42::H, terrain42::L].map(|size| size as u32));
    schematic.palette = NAMES.map(str::to_owned).to_vec();
    for (x, y, z) in (0..EDGE).flat_map(|x| (0..EDGE).flat_map(move |y| (0..EDGE).map(move |z| (x, y, z)))) {
        let at = ChunkPos::new(x, y, z);
        schematic.blocks.set_chunk(at, chunk(&blocks, at).into());
    }
    schematic
}
