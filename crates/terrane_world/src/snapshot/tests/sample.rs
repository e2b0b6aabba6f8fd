//! Blocks of a small world, and the content of a snapshot as a plain map: for the tests of snapshots here and in
//! `terrane_storage`.

use crate::block::{BLOCK_ENTITY, BlockComponent, BlockComponentId, BlockId, BlockRegistry, BlockStates, BlockType};
use crate::chunk::Chunk;
use crate::entity::EntityRecord;
use crate::snapshot::Snapshot;
use crate::space::{BlockBox, BlockPos, DimensionId};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use uuid::Uuid;

/// The blocks of a cell by layer, each with its components.
pub type Cell = Vec<(BlockId, Vec<(BlockComponentId, Vec<u8>)>)>;

/// Air, stone and water, chests with components that face four ways, an engine of which only one state exists, a fence
/// that can hold water, a sign that has block entities, and the placeholder.
pub static BLOCKS: LazyLock<BlockRegistry> = LazyLock::new(|| {
    let mut blocks = BlockRegistry::new();
    blocks.register_component(BlockComponent::fixed::<u32>("game:heat")).unwrap();
    blocks.register_component(BlockComponent::variable("game:items")).unwrap();
    blocks.register(BlockType::new("game:stone")).unwrap();
    blocks.register(BlockType::new("game:water")).unwrap();
    let chest = BlockType::new("game:chest").with_component("game:heat").with_component("game:items");
    let chest = BlockStates::new(chest)
        .with_property("facing", ["north", "east", "south", "west"])
        .with_property("type", ["single", "left", "right"]);
    blocks.register_states(chest).unwrap();
    blocks.register(BlockType::new("game:engine[axis=x]")).unwrap();
    blocks.register(BlockType::new("terrane:water")).unwrap();
    blocks.register(BlockType::new("game:fence[waterlogged=false]")).unwrap();
    blocks.register_schematic_blocks();
    blocks.register(BlockType::new("game:sign").with_component(BLOCK_ENTITY)).unwrap();
    blocks
});

pub fn cell_of(chunk: Option<&Chunk>, position: [usize; 3]) -> Cell {
    let Some(chunk) = chunk else { return vec![(BlockId::AIR, Vec::new())] };
    let components =
        |layer| chunk.components(position, layer).map(|(id, value)| (id, value.to_vec())).collect::<Vec<_>>();
    (0..).map_while(|layer| Some((chunk.block_at(position, layer)?, components(layer)))).collect()
}

pub fn positions_of(area: &BlockBox) -> impl Iterator<Item = BlockPos> {
    let area = *area;
    let rows = (area.min.x..=area.max.x).flat_map(move |x| (area.min.y..=area.max.y).map(move |y| (x, y)));
    rows.flat_map(move |(x, y)| (area.min.z..=area.max.z).map(move |z| BlockPos::new(x, y, z)))
}

/// All captured blocks.
pub fn cells(snapshot: &Snapshot) -> BTreeMap<BlockPos, Cell> {
    let held = positions_of(snapshot.area()).filter(|pos| snapshot.block(*pos).is_some());
    held.map(|pos| (pos, cell_of(snapshot.chunk(pos.chunk()).map(|chunk| &**chunk), pos.in_chunk()))).collect()
}

pub fn entity(id: u128, block: BlockPos) -> EntityRecord {
    EntityRecord {
        id: Uuid::from_u128(id),
        dimension: DimensionId(1),
        block,
        offset: [0.5; 3],
        viewer: None,
        components: Vec::new(),
        children: Vec::new(),
    }
}
