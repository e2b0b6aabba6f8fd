//! Moves, turns and flips snapshots: [`Relocation`] is a move with a turn, [`BlockTurns`] the turned states of blocks.

#[cfg(test)]
mod tests;

use super::capture::{is_air, shared};
use super::{ColumnSnapshot, Snapshot, Turn};
use crate::block::{BlockId, BlockLayout, BlockName, BlockRegistry};
use crate::chunk::{Chunk, ChunkAssembly};
use crate::entity::EntityRecord;
use crate::snapshot::turned_state;
use crate::space::{BlockBox, BlockPos, ChunkPos, ColumnPos, HeightSet};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use thiserror::Error;

/// The error for content that cannot be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PlaceError {
    /// A block would be outside of the grid.
    #[error("block {0} would be outside the world")]
    OutOfRange(BlockPos),
    /// The blocks were looked up for another turn.
    #[error("the blocks are turned by {blocks:?}, and the snapshot by {snapshot:?}")]
    OtherTurn {
        /// The turn of the blocks.
        blocks: Turn,
        /// The turn of the snapshot.
        snapshot: Turn,
    },
}

impl Snapshot {
    /// The same snapshot at another place, turned and flipped, with its blocks, layers, block components and entities.
    ///
    /// A move by whole chunks without a turn shares all chunks with this snapshot. Otherwise a chunk of the result is
    /// missing if any part of it is missing here, and entities in missing columns are left out.
    ///
    /// Components of blocks and of entities are unchanged. A game can turn the direction in which entities look by
    /// adding them again: [`add_entity`](Self::add_entity) replaces them.
    pub fn placed(&self, relocation: &Relocation, turns: &BlockTurns) -> Result<Self, PlaceError> {
        if turns.turn() != relocation.turn {
            return Err(PlaceError::OtherTurn { blocks: turns.turn(), snapshot: relocation.turn });
        }
        let mut placed = Self::of_parts(relocation.area(&self.area)?, self.parts);
        placed.concerned = self.concerned.clone();
        match relocation.shift() {
            Some(shift) if shift.iter().all(|distance| distance & 15 == 0) => {
                placed.columns.extend(self.columns.iter().map(|(pos, column)| shifted(*pos, column, shift)));
            }
            _ => {
                let mut packer = Packer {
                    from: self,
                    relocation,
                    back: relocation.inverse(),
                    turns,
                    area: placed.area,
                    uniform: FxHashMap::default(),
                };
                for pos in packer.columns()? {
                    if let Some(column) = packer.column(pos)? {
                        placed.columns.insert(pos, column);
                    }
                }
            }
        }
        for entity in self.entities() {
            let entity = relocation.entity(entity)?;
            placed.add_entity(entity.column(), entity);
        }
        Ok(placed)
    }
}

/// A column that is moved by whole chunks, without its entities.
fn shifted(pos: ColumnPos, column: &ColumnSnapshot, shift: [i128; 3]) -> (ColumnPos, ColumnSnapshot) {
    // Positions in the box stay on the grid, and so do its chunks.
    let [x, y, z] = shift.map(|distance| (distance >> 4) as i64);
    let heights = column.heights.as_ref().map(|heights| {
        let mut shifted = HeightSet::new();
        heights.ranges().for_each(|range| shifted.insert(range.start + y..range.end + y));
        shifted
    });
    let chunks = column.chunks.iter().map(|(height, chunk)| (height + y, chunk.clone())).collect();
    (ColumnPos::new(pos.x + x, pos.z + z), ColumnSnapshot { tick: column.tick, chunks, heights, entities: Vec::new() })
}

struct Packer<'a> {
    from: &'a Snapshot,
    relocation: &'a Relocation,
    back: Relocation,
    turns: &'a BlockTurns,
    /// The destination of the box.
    area: BlockBox,
    /// Chunks of a single block, one for each block.
    uniform: FxHashMap<BlockId, Arc<Chunk>>,
}

impl Packer<'_> {
    /// The columns that receive captured content.
    fn columns(&self) -> Result<BTreeSet<ColumnPos>, PlaceError> {
        let mut columns = BTreeSet::new();
        for pos in self.from.columns.keys() {
            columns.extend(self.relocation.area(&of_column(*pos, &self.from.area))?.columns());
        }
        Ok(columns)
    }

    /// A column without its entities; `None` if a part of it is missing.
    fn column(&mut self, pos: ColumnPos) -> Result<Option<ColumnSnapshot>, PlaceError> {
        let sources = self.back.area(&of_column(pos, &self.area))?;
        let from = self.from;
        let sources: Option<Vec<_>> = sources.columns().map(|source| from.column(source)).collect();
        let Some(sources) = sources else { return Ok(None) };
        let held: Option<HeightSet> = sources
            .iter()
            .filter_map(|source| source.heights())
            .map(|heights| moved_heights(heights, &self.from.area, &self.area))
            .reduce(|both, heights| both.intersection(&heights));
        let mut heights = BTreeSet::new();
        for (y, _) in sources.iter().flat_map(|source| source.chunks()) {
            let blocks = BlockBox::of_chunk(ChunkPos::new(0, y, 0));
            let (low, high) = (blocks.min.y.max(self.from.area.min.y), blocks.max.y.min(self.from.area.max.y));
            let moved = |y: i64| (i128::from(y) - i128::from(self.from.area.min.y) + i128::from(self.area.min.y)) >> 4;
            heights.extend([moved(low) as i64, moved(high) as i64]);
        }
        let mut chunks = Vec::new();
        for y in heights.into_iter().filter(|y| held.as_ref().is_none_or(|held| held.contains(*y))) {
            chunks.extend(self.chunk(pos.chunk(y))?.map(|chunk| (y, chunk)));
        }
        chunks.shrink_to_fit();
        let tick = sources.iter().map(|source| source.tick).max().unwrap_or(0);
        Ok(Some(ColumnSnapshot { tick, chunks, heights: held, entities: Vec::new() }))
    }

    /// A chunk; `None` if it is all air.
    fn chunk(&mut self, pos: ChunkPos) -> Result<Option<Arc<Chunk>>, PlaceError> {
        let blocks = self.back.area(&BlockBox::of_chunk(pos).intersection(&self.area))?;
        let Some((min, max)) = blocks.chunks() else { return Ok(None) };
        let from = self.from;
        let rows = (min.x..=max.x).flat_map(|x| (min.y..=max.y).map(move |y| (x, y)));
        let places = rows.flat_map(|(x, y)| (min.z..=max.z).map(move |z| ChunkPos::new(x, y, z)));
        let sources: Vec<(ChunkPos, Option<&Arc<Chunk>>)> = places.map(|source| (source, from.chunk(source))).collect();
        if let Some(block) = self.only_block(&sources) {
            return Ok((block != BlockId::AIR).then(|| shared(&mut self.uniform, Chunk::uniform(block))));
        }
        let mut assembly = ChunkAssembly::default();
        for (source, chunk) in &sources {
            if let (Some(chunk), Some(part)) = (chunk, blocks.part(*source)) {
                assembly.copy_part(chunk, &part, self.cell_map(*source, pos), |block| self.turns.block(block));
            }
        }
        let chunk = assembly.finish();
        Ok((!is_air(&chunk)).then(|| Arc::new(chunk)))
    }

    /// The block that fills all sources.
    fn only_block(&self, sources: &[(ChunkPos, Option<&Arc<Chunk>>)]) -> Option<BlockId> {
        let block = |chunk: &Option<&Arc<Chunk>>| match chunk {
            Some(chunk) => chunk.uniform_block().map(|block| self.turns.block(block)),
            None => Some(BlockId::AIR),
        };
        let first = block(&sources.first()?.1)?;
        sources[1..].iter().all(|(_, chunk)| block(chunk) == Some(first)).then_some(first)
    }

    /// Maps cells of one chunk to cells of another.
    fn cell_map(&self, from: ChunkPos, to: ChunkPos) -> impl Fn([usize; 3]) -> usize + use<> {
        let stride = |[x, z]: [i128; 2]| (x * 256 + z) as i32;
        let (arrived, min) = (self.relocation.exact(from.min_block()), to.min_block());
        let distance = |arrived: i128, min: i64| (arrived - i128::from(min)) as i32;
        let [x, y, z] = [distance(arrived[0], min.x), distance(arrived[1], min.y), distance(arrived[2], min.z)];
        let turn = self.relocation.turn;
        let (origin, strides) = (x * 256 + y * 16 + z, [stride(turn.vector(1, 0)), 16, stride(turn.vector(0, 1))]);
        move |position| {
            let [x, y, z] = position.map(|coordinate| coordinate as i32);
            (origin + x * strides[0] + y * strides[1] + z * strides[2]) as usize
        }
    }
}

/// The part of a box in a column, from its lowest to its highest block.
fn of_column(pos: ColumnPos, area: &BlockBox) -> BlockBox {
    let chunk = BlockBox::of_chunk(pos.chunk(0));
    let all_heights = BlockBox {
        min: BlockPos::new(chunk.min.x, i64::MIN, chunk.min.z),
        max: BlockPos::new(chunk.max.x, i64::MAX, chunk.max.z),
    };
    all_heights.intersection(area)
}

/// The complete chunk heights of the box `to` after moving these heights of the box `from` to it.
fn moved_heights(heights: &HeightSet, from: &BlockBox, to: &BlockBox) -> HeightSet {
    let mut moved = HeightSet::new();
    let arrived = |y: i128| y - i128::from(from.min.y) + i128::from(to.min.y);
    let (bottom, top) = (i128::from(to.min.y), i128::from(to.max.y));
    for range in heights.ranges() {
        // Heights outside of the box are not needed to fill a chunk.
        let low = arrived(i128::from(range.start) << 4).max(bottom);
        let high = arrived((i128::from(range.end) << 4) - 1).min(top);
        let first = if low == bottom { low >> 4 } else { (low + 15) >> 4 };
        let end = if high == top { (high >> 4) + 1 } else { (high + 1) >> 4 };
        if low <= high {
            moved.insert(first as i64..end as i64);
        }
    }
    moved
}

/// The turned state of each block of a registry: looked up once, then by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockTurns {
    turn: Turn,
    /// By id. Blocks beyond the list are unchanged.
    blocks: Vec<BlockId>,
}

impl BlockTurns {
    /// Looks up the [`turned_state`] of all blocks of the registry. A block stays unchanged if that state is not
    /// registered or has other components.
    pub fn new(registry: &BlockRegistry, turn: Turn) -> Self {
        Self::of_states(registry, turn, turned_state)
    }

    /// Like [`new`](Self::new), but with a function of the game's own.
    pub fn of_states(registry: &BlockRegistry, turn: Turn, turned: impl Fn(&BlockName, Turn) -> BlockName) -> Self {
        let mut turns = Self { turn, ..Self::default() };
        if turn.is_none() {
            return turns;
        }
        let names = registry.names().map(|name| BlockName::parse(name.to_owned()));
        for (block, name) in (0..).map(BlockId::new).zip(names) {
            turns.blocks.push(block);
            let Ok(name) = name else { continue };
            let has_same_components = |other: &BlockId| registry.components(*other) == registry.components(block);
            if let Some(other) = registry.id(turned(&name, turn).as_str()).filter(has_same_components) {
                turns.blocks[block.index() as usize] = other;
            }
        }
        turns
    }

    /// The turn of the blocks.
    pub const fn turn(&self) -> Turn {
        self.turn
    }

    /// The turned state of the block.
    #[inline]
    pub fn block(&self, block: BlockId) -> BlockId {
        self.blocks.get(block.index() as usize).copied().unwrap_or(block)
    }
}

#[cfg(test)]
mod turn_tests {
    use super::*;
    use crate::block::{BlockComponent, BlockShape, BlockStates, BlockType, ShapeBox};
    use proptest::prelude::*;

    const QUARTER: Turn = Turn::quarters(1);

    #[test]
    fn blocks_become_the_registered_states() {
        let mut registry = BlockRegistry::new();
        let stairs = BlockStates::new(BlockType::new("game:stairs"))
            .with_property("facing", ["north", "east", "south", "west"])
            .with_property("wet", ["false", "true"]);
        let stairs = registry.register_states(stairs).unwrap();
        let turns = BlockTurns::new(&registry, QUARTER);
        assert_eq!(
            stairs.iter().map(|block| turns.block(*block)).collect::<Vec<_>>(),
            [&stairs[2..], &stairs[..2]].concat()
        );
        assert_eq!(turns.block(BlockId::AIR), BlockId::AIR);
        assert_eq!(turns.block(BlockId::new(900)), BlockId::new(900));
    }

    #[test]
    fn a_block_stays_as_it_is_if_its_turned_state_is_not_there_or_has_other_components() {
        let mut registry = BlockRegistry::new();
        registry.register_component(BlockComponent::fixed::<u32>("game:power")).unwrap();
        let north = registry.register(BlockType::new("game:lamp[facing=north]")).unwrap();
        let engine = registry.register(BlockType::new("game:engine[axis=x]").with_component("game:power")).unwrap();
        registry.register(BlockType::new("game:engine[axis=z]")).unwrap();
        let turns = BlockTurns::new(&registry, QUARTER);
        assert_eq!((turns.block(north), turns.block(engine)), (north, engine));
    }

    #[test]
    fn a_game_turns_its_blocks_by_its_own_rules() {
        let mut registry = BlockRegistry::new();
        let pipes = BlockStates::new(BlockType::new("game:pipe")).with_property("end", ["north", "east"]);
        let pipes = registry.register_states(pipes).unwrap();
        let turned = |_: &BlockName, _: Turn| BlockName::parse("game:pipe[end=east]").unwrap();
        assert_eq!(BlockTurns::of_states(&registry, QUARTER, turned).block(pipes[0]), pipes[1]);
        assert_eq!(BlockTurns::new(&registry, QUARTER).block(pipes[0]), pipes[0]);
    }

    /// Blocks with this shape that face four ways, lie or hang, and have their hinge on either side.
    fn turned_blocks(shape: BlockShape) -> BlockRegistry {
        let mut registry = BlockRegistry::new();
        let states = BlockStates::new(BlockType::new("game:block").with_shape(shape))
            .with_property("facing", ["north", "east", "south", "west"])
            .with_property("half", ["bottom", "top"])
            .with_property("hinge", ["left", "right"])
            .with_property("wet", ["false", "true"]);
        registry.register_states(states).unwrap();
        registry
    }

    proptest! {
        /// Promise, blocks: The states of a block type turn its shape, and turn it upside down.
        /// Promise, snapshots: A turned block has the turned shape.
        #[test]
        fn a_turned_block_has_the_turned_shape(
            corners in prop::collection::vec(prop::array::uniform3((0_u8..16, 0_u8..16)), 1..4),
            turn in prop::sample::select(Turn::all().collect::<Vec<_>>()), is_stairs in any::<bool>(),
        ) {
            let part = |corners: [(u8, u8); 3]| {
                ShapeBox::new(corners.map(|(a, b)| a.min(b)), corners.map(|(a, b)| a.max(b) + 1))
            };
            let any = BlockShape::from_boxes(corners.into_iter().map(part)).unwrap();
            let registry = turned_blocks(if is_stairs { BlockShape::stairs() } else { any });
            let turns = BlockTurns::new(&registry, turn);
            for block in (0..registry.len() as u32).map(BlockId::new) {
                let turned = registry.block(turns.block(block)).shape();
                prop_assert_eq!(turned, &registry.block(block).shape().turned(turn));
            }
        }
    }
}

/// A move of content, turned about the block `from`, which goes to the block `to`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Relocation {
    /// The turn.
    pub turn: Turn,
    /// The block to turn about.
    pub from: BlockPos,
    /// The destination of that block.
    pub to: BlockPos,
}

impl Relocation {
    /// The inverse move.
    pub const fn inverse(&self) -> Self {
        Self { turn: self.turn.inverse(), from: self.to, to: self.from }
    }

    /// The destination of a block, even beyond the edges of the grid.
    pub(super) fn exact(&self, block: BlockPos) -> [i128; 3] {
        let distance = |from: i64, to: i64| i128::from(to) - i128::from(from);
        let [x, z] = self.turn.vector(distance(self.from.x, block.x), distance(self.from.z, block.z));
        [i128::from(self.to.x) + x, i128::from(self.to.y) + distance(self.from.y, block.y), i128::from(self.to.z) + z]
    }

    /// The offset of the move, if it does not turn.
    pub(super) fn shift(&self) -> Option<[i128; 3]> {
        self.turn.is_none().then(|| self.exact(BlockPos::new(0, 0, 0)))
    }

    /// The destination of a block.
    pub fn block(&self, block: BlockPos) -> Result<BlockPos, PlaceError> {
        let [x, y, z] = self.exact(block).map(i64::try_from);
        match (x, y, z) {
            (Ok(x), Ok(y), Ok(z)) => Ok(BlockPos::new(x, y, z)),
            _ => Err(PlaceError::OutOfRange(block)),
        }
    }

    /// The destination of a box. An empty box stays empty.
    pub fn area(&self, area: &BlockBox) -> Result<BlockBox, PlaceError> {
        if area.is_empty() {
            return Ok(*area);
        }
        Ok(BlockBox::new(self.block(area.min)?, self.block(area.max)?))
    }

    /// The destination of a position within a block. It stays within its block.
    pub fn place(&self, block: BlockPos, offset: [f32; 3]) -> Result<(BlockPos, [f32; 3]), PlaceError> {
        Ok((self.block(block)?, self.turn.offset(offset)))
    }

    /// The entity at its destination, with its children in the same dimension. Components with a direction are not turned.
    pub fn entity(&self, entity: &EntityRecord) -> Result<EntityRecord, PlaceError> {
        let (block, offset) = self.place(entity.block, entity.offset)?;
        let mut moved = EntityRecord { block, offset, ..entity.clone() };
        for child in &mut moved.children {
            if let Some((dimension, block, offset)) = &mut child.place
                && *dimension == entity.dimension
            {
                (*block, *offset) = self.place(*block, *offset)?;
            }
        }
        Ok(moved)
    }
}

#[cfg(test)]
mod relocation_tests {
    use super::*;
    use crate::snapshot::tests::{child, entity};
    use crate::space::DimensionId;
    use proptest::prelude::*;

    fn positions() -> impl Strategy<Value = BlockPos> {
        let coordinate = || prop_oneof![-40..40_i64, any::<i64>(), Just(i64::MIN), Just(i64::MAX)];
        (coordinate(), coordinate(), coordinate()).prop_map(|(x, y, z)| BlockPos::new(x, y, z))
    }

    #[test]
    fn nothing_leaves_the_grid() {
        let low = BlockPos::new(i64::MIN, 0, 0);
        let flip = |from| Relocation { turn: Turn::FLIP_X, from, to: from };
        assert_eq!(flip(BlockPos::default()).block(low), Err(PlaceError::OutOfRange(low)));
        assert_eq!(flip(BlockPos::default()).block(low.offset(1, 0, 0)), Ok(BlockPos::new(i64::MAX, 0, 0)));
        assert_eq!(flip(low).block(low), Ok(low));
        assert!(flip(BlockPos::default()).area(&BlockBox::ALL).is_err());
        assert_eq!(Relocation::default().area(&BlockBox::ALL), Ok(BlockBox::ALL));
    }

    #[test]
    fn children_with_a_place_of_their_own_go_along() {
        let mut rider = entity(1, BlockPos::new(2, 0, 0));
        rider.offset = [0.25, 0.0, 0.5];
        rider.children = vec![child(2, None); 3];
        rider.children[1].place = Some((rider.dimension, BlockPos::new(3, 1, 0), [0.25, 0.0, 0.5]));
        rider.children[2].place = Some((DimensionId(9), BlockPos::new(3, 1, 0), [0.25, 0.0, 0.5]));
        let quarter = Relocation { turn: Turn::quarters(1), ..Relocation::default() };
        let moved = quarter.entity(&rider).unwrap();
        assert_eq!((moved.block, moved.offset), (BlockPos::new(0, 0, 2), [0.5, 0.0, 0.25]));
        assert_eq!(moved.children[0], rider.children[0]);
        assert_eq!(moved.children[1].place, Some((rider.dimension, BlockPos::new(0, 1, 3), [0.5, 0.0, 0.25])));
        assert_eq!(moved.children[2], rider.children[2]);
    }

    proptest! {
        #[test]
        fn a_relocation_has_an_inverse(
            turn in prop::sample::select(Turn::all().collect::<Vec<_>>()), from in positions(), to in positions(),
            block in positions(), other in positions(),
        ) {
            let relocation = Relocation { turn, from, to };
            prop_assert_eq!(relocation.block(from), Ok(to));
            if let Ok(arrived) = relocation.block(block) {
                prop_assert_eq!(relocation.inverse().block(arrived), Ok(block));
                if let Ok(area) = relocation.area(&BlockBox::new(block, other)) {
                    prop_assert!(area.contains(arrived));
                    prop_assert_eq!(relocation.inverse().area(&area), Ok(BlockBox::new(block, other)));
                }
            }
        }
    }
}
