//! [`cast_ray`]: the first block whose shape a ray hits.

#[cfg(test)]
mod tests;

use super::Chunk;
use crate::block::{BlockId, BlockRegistry, BlockShape};
use crate::space::{BlockPos, BlockRay, ChunkPos, Face, RayCell};

/// The place at which a ray hits a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RayHit {
    /// The position of the block.
    pub block: BlockPos,
    /// The block's [layer](Chunk::block_at) in its cell.
    pub layer: u8,
    /// The face of the shape's [box](BlockShape::boxes) that the ray hits; `None` if it begins in the box.
    pub face: Option<Face>,
    /// The point of the hit, in blocks from the block's lowest corner: 0 to 1 on each axis.
    pub point: [f64; 3],
    /// The distance from the start of the ray to that point, in blocks.
    pub distance: f64,
}

impl RayHit {
    /// The block in front of the face, where a game places a new block. If the ray begins in the block, the block itself.
    pub fn before(&self) -> BlockPos {
        let [x, y, z] = self.face.map_or([0; 3], Face::normal);
        self.block.offset(x, y, z)
    }
}

/// The first block along a ray that `is_wanted` accepts and whose [shape](BlockShape::boxes) the ray hits, up to `reach` blocks
/// away. Air has no shape, so no ray hits it.
///
/// `chunk` returns the chunks; where there is none, the ray passes. Chunks without a wanted block in their
/// [palette](Chunk::palette) cost one step, others about 10 ns for each cell on the way. Points and distances are exact to about 15
/// digits at any block position.
pub fn cast_ray<'a>(
    mut ray: BlockRay,
    reach: f64,
    types: &BlockRegistry,
    chunk: impl Fn(ChunkPos) -> Option<&'a Chunk>,
    is_wanted: impl Fn(BlockId) -> bool,
) -> Option<RayHit> {
    while let Some(cell) = ray.peek().filter(|cell| cell.distance <= reach) {
        let pos = cell.block.chunk();
        let found = chunk(pos).and_then(|here| Some((here, Wanted::of(here, &is_wanted)?)));
        let Some((here, wanted)) = found else {
            ray.leave_chunk();
            continue;
        };
        while ray.find_in_chunk(|cell| wanted.contains(here, cell, &is_wanted)) {
            let cell = ray.peek().filter(|cell| cell.distance <= reach)?;
            let hit = hit_in(here, &ray, cell, types, &chunk, &is_wanted);
            if let Some(hit) = hit.filter(|hit| hit.distance <= reach) {
                return Some(hit);
            }
            ray.next();
            if ray.peek()?.block.chunk() != pos {
                break;
            }
        }
    }
    None
}

/// The cells of a chunk that a ray looks at.
enum Wanted {
    /// Those whose place in the palette has a bit here.
    Places(u64),
    /// All that have a wanted block in layer 0.
    Blocks,
    /// All, since there are other layers.
    All,
}

impl Wanted {
    /// `None` if the chunk certainly has no wanted block.
    fn of(chunk: &Chunk, is_wanted: &impl Fn(BlockId) -> bool) -> Option<Self> {
        let palette = chunk.palette();
        if chunk.has_layers() {
            return Some(Self::All);
        }
        if palette.len() > 64 {
            return palette.iter().any(|block| is_wanted(*block)).then_some(Self::Blocks);
        }
        let places =
            (0..).zip(palette).filter(|(_, block)| is_wanted(**block)).fold(0, |places, (at, _)| places | 1 << at);
        (places != 0).then_some(Self::Places(places))
    }

    #[inline]
    fn contains(&self, chunk: &Chunk, cell: usize, is_wanted: &impl Fn(BlockId) -> bool) -> bool {
        match self {
            Self::Places(places) => places >> (chunk.palette_place(cell) % 64) & 1 == 1,
            Self::Blocks => is_wanted(chunk.content.block(cell)),
            Self::All => true,
        }
    }
}

/// The nearest hit of the layers of a cell.
#[inline]
fn hit_in<'a>(
    here: &Chunk,
    ray: &BlockRay,
    cell: RayCell,
    types: &BlockRegistry,
    chunk: &impl Fn(ChunkPos) -> Option<&'a Chunk>,
    is_wanted: &impl Fn(BlockId) -> bool,
) -> Option<RayHit> {
    let place = cell.block.in_chunk();
    let hit = |layer: u8, block: BlockId| {
        let shape = types.block(block).shape();
        let (face, distance) = match shape {
            BlockShape::Cube => (cell.face, cell.distance),
            _ => {
                let joins = shape.joined_sides(|side| {
                    let [x, y, z] = side.normal();
                    let beside = cell.block.offset(x, y, z);
                    Some(types.block(chunk(beside.chunk())?.block(beside.in_chunk())).shape())
                });
                let boxes =
                    shape.boxes(joins).map(|part| [part.min, part.max].map(|at| at.map(|at| f64::from(at) / 16.0)));
                boxes.filter_map(|part| ray.enters(cell.block, part)).min_by(|one, other| one.1.total_cmp(&other.1))?
            }
        };
        let point = ray.point(cell.block, distance).map(|along| along.clamp(0.0, 1.0));
        Some(RayHit { block: cell.block, layer, face, point, distance })
    };
    let block = here.block(place);
    let first = if is_wanted(block) { hit(0, block) } else { None };
    if !here.has_layers() {
        return first;
    }
    let others = (1..=u8::MAX).map_while(|layer| Some((layer, here.block_at(place, layer)?)));
    let others = others.filter(|(_, block)| is_wanted(*block)).filter_map(|(layer, block)| hit(layer, block));
    first.into_iter().chain(others).min_by(|one, other| one.distance.total_cmp(&other.distance))
}
