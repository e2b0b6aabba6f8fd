//! Blocks that fall: an entity while they fall, and a block again where they land.

use super::{GroundSystems, order_systems};
use crate::block::{BlockId, BlockLayout, BlockRegistry, BlockSet, BlockShape, tags};
use crate::simulation::block_types::BlockTypes;
use crate::simulation::entities::StableId;
use crate::simulation::schedules::RegionTick;
use crate::simulation::{BlockChanged, Position, RegionBlocks, RegionColumns, RegionInfo};
use crate::space::BlockPos;
use bevy::prelude::*;
use serde::{Deserialize, Serialize};

/// The speed that a falling block gains in a tick, in blocks per tick.
const GRAVITY: f32 = 0.04;
/// The highest speed, in blocks per tick.
const TOP_SPEED: f32 = 2.0;
/// The most blocks that fall in a region at a time. Others wait in their place.
const MOST_FLYING: usize = 4_096;
/// A block that lands in a cell that was taken in the meantime goes up to the next free cell, at most so far.
const MOST_UP: i64 = 16;

/// A block that falls. It is saved, crosses regions and has a mirror. It waits while the ground below it is not loaded.
///
/// Where it lands, it becomes a block again, in place of air, a liquid, or what is [washed away](tags::WASHED_AWAY).
#[derive(Component, Clone, Debug, Default, PartialEq, Serialize, Deserialize, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Component, Default, Clone)]
#[require(Position)]
pub struct FallingBlock {
    /// The name of the block, with its properties. Names are the same in every world, and ids are not.
    pub block: String,
    /// The speed downwards, in blocks per tick.
    pub speed: f32,
}

/// A falling block found no place to land, or its type is not registered, and is gone. A game may drop an item there.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct BlockDropped {
    /// The place.
    pub at: BlockPos,
    /// The name of the block.
    pub block: String,
}

/// The types that fall, and those through which they fall.
#[derive(Resource)]
struct FallTypes {
    falling: BlockSet,
    passed: BlockSet,
}

impl FallTypes {
    fn new(blocks: &BlockRegistry) -> Self {
        let ids = || (0..blocks.len() as u32).map(BlockId::new);
        let is_passed = |id: &BlockId| {
            let is_liquid = matches!(blocks.block(*id).shape(), BlockShape::Liquid { .. });
            *id == BlockId::AIR || is_liquid || blocks.has_tag(*id, tags::WASHED_AWAY)
        };
        // An entity has no place for the values of block components.
        let has_values = |id: &BlockId| !blocks.components(*id).is_empty();
        let falls = |id: &BlockId| blocks.has_tag(*id, tags::FALLS) && !has_values(id) && !is_passed(id);
        Self { falling: ids().filter(falls).collect(), passed: ids().filter(is_passed).collect() }
    }
}

/// What is below a falling block.
enum Below {
    Open,
    Ground,
    NotLoaded,
}

impl FallTypes {
    fn below(&self, columns: &RegionColumns, info: &RegionInfo, at: BlockPos) -> (BlockPos, Below) {
        let below = at.offset(0, -1, 0);
        let is_bottom = !info.heights.contains(&below.y) && below.y < info.heights.end || below == at;
        match self.passes(columns, below) {
            _ if is_bottom => (below, Below::Ground),
            Some(true) => (below, Below::Open),
            Some(false) => (below, Below::Ground),
            None => (below, Below::NotLoaded),
        }
    }

    /// Returns `true` if blocks fall through all layers of a cell; `None` if it is not loaded.
    fn passes(&self, columns: &RegionColumns, cell: BlockPos) -> Option<bool> {
        columns.known_blocks(cell).map(|mut blocks| blocks.all(|block| self.passed.contains(block)))
    }
}

/// Adds falling blocks to a region.
pub(crate) fn add_falling_blocks(region: &mut SubApp) {
    order_systems(region);
    let types = FallTypes::new(region.world().resource::<BlockTypes>());
    region
        .insert_resource(types)
        .add_message::<BlockDropped>()
        .add_systems(RegionTick, (fall, begin_to_fall).chain().in_set(GroundSystems::Fall));
}

/// Blocks that fall and have nothing solid below them become entities.
fn begin_to_fall(
    mut changed: MessageReader<BlockChanged>,
    types: Res<FallTypes>,
    names: Res<BlockTypes>,
    info: Res<RegionInfo>,
    mut blocks: RegionBlocks,
    falling: Query<(), With<FallingBlock>>,
    mut commands: Commands,
) {
    let mut flying = falling.iter().len();
    for BlockChanged { block } in changed.read() {
        let Some(id) = blocks.known_block(*block).filter(|id| types.falling.contains(*id)) else { continue };
        match types.below(&blocks, &info, *block).1 {
            Below::Open => {
                if flying >= MOST_FLYING {
                    blocks.notice_later(*block);
                } else if blocks.remove_block(*block, 0).is_ok() {
                    flying += 1;
                    let falling = FallingBlock { block: names.block(id).name().to_owned(), speed: 0.0 };
                    commands.spawn((falling, Position::new(info.dimension, *block)));
                }
            }
            Below::Ground => {}
            Below::NotLoaded => blocks.notice_later(*block),
        }
    }
}

fn fall(
    types: Res<FallTypes>,
    names: Res<BlockTypes>,
    info: Res<RegionInfo>,
    mut blocks: RegionBlocks,
    mut falling: Query<(Entity, &StableId, &mut Position, &mut FallingBlock)>,
    mut dropped: MessageWriter<BlockDropped>,
    mut commands: Commands,
) {
    // From below, so that the lower of two blocks lies first. The order of entities differs between runs.
    let mut order: Vec<_> = falling.iter().map(|(entity, id, place, _)| (place_of(place), id.0, entity)).collect();
    order.sort_unstable_by(|a, b| a.0.0.cmp(&b.0.0).then(a.0.1.total_cmp(&b.0.1)).then(a.1.cmp(&b.1)));
    for (.., entity) in order {
        let Ok((_, _, mut place, mut block)) = falling.get_mut(entity) else { continue };
        match step(&types, &blocks, &info, &mut place, &mut block) {
            Step::Falls => {}
            Step::Waits => block.speed = 0.0,
            Step::Lands => {
                match land(&types, &mut blocks, &info, &names, place.block, &block.block) {
                    Landing::Lies => {}
                    // Its cell is not loaded.
                    Landing::Waits => {
                        block.speed = 0.0;
                        continue;
                    }
                    Landing::Dropped => {
                        dropped.write(BlockDropped { at: place.block, block: block.block.clone() });
                    }
                }
                commands.entity(entity).despawn();
            }
        }
    }
}

/// The place by which falling blocks are sorted.
fn place_of(place: &Position) -> ((i64, i64, i64), f32) {
    ((place.block.y, place.block.x, place.block.z), place.offset.y)
}

enum Step {
    Falls,
    Waits,
    Lands,
}

/// Moves a falling block by one tick, cell by cell.
fn step(
    types: &FallTypes,
    columns: &RegionColumns,
    info: &RegionInfo,
    place: &mut Position,
    block: &mut FallingBlock,
) -> Step {
    if !block.speed.is_finite() || !place.offset.y.is_finite() {
        (block.speed, place.offset.y) = (0.0, 0.0);
    }
    block.speed = (block.speed + GRAVITY).clamp(GRAVITY, TOP_SPEED);
    let mut left = block.speed;
    while left > place.offset.y {
        let (below, found) = types.below(columns, info, place.block);
        match found {
            Below::Open => {
                left -= place.offset.y;
                place.block = below;
                place.offset.y = 1.0;
            }
            Below::Ground => {
                place.offset.y = 0.0;
                return Step::Lands;
            }
            Below::NotLoaded => {
                place.offset.y = 0.0;
                return Step::Waits;
            }
        }
    }
    // An offset of 1.0 would lie in the next cell.
    place.offset.y = (place.offset.y - left).clamp(0.0, 1.0 - f32::EPSILON);
    Step::Falls
}

enum Landing {
    Lies,
    Waits,
    Dropped,
}

/// Sets the block in the first free cell from `at` upwards.
fn land(
    types: &FallTypes,
    blocks: &mut RegionBlocks,
    info: &RegionInfo,
    names: &BlockTypes,
    at: BlockPos,
    name: &str,
) -> Landing {
    let Some(id) = names.0.id(name) else { return Landing::Dropped };
    for cell in (0..=MOST_UP).map(|up| at.offset(0, up, 0)).filter(|cell| info.heights.contains(&cell.y)) {
        match types.passes(blocks, cell) {
            Some(true) => {
                // What is in the other layers gives way too.
                while matches!(blocks.layer_count(cell), Ok(2..)) && blocks.remove_block(cell, 1).is_ok() {}
                return if blocks.set_block(cell, id).is_ok() { Landing::Lies } else { Landing::Dropped };
            }
            Some(false) => {}
            None => return Landing::Waits,
        }
    }
    Landing::Dropped
}
