//! Chests: blocks with items.

use super::bag::{self, Bag, Items};
use super::{hand::Aim, land};
use bevy_terrane::prelude::*;

pub const CHEST: &str = "islands:chest";
/// The items of a chest: as many of each kind as a bag has.
const ITEMS: &str = "islands:items";

/// The chest that is open.
#[derive(Resource, Default)]
pub struct OpenChest(pub Option<BlockPos>);

pub fn build(app: &mut App) -> Result {
    // The component before the block that has it.
    app.register_block_component(BlockComponent::fixed::<Items>(ITEMS))?;
    app.register_block(BlockType::new(CHEST).with_color([160, 112, 54]).with_component(ITEMS))?;
    app.init_resource::<OpenChest>().add_systems(Update, open);
    Ok(())
}

/// The run condition of what the mouse does outside of a chest.
pub fn are_closed(open: Res<OpenChest>) -> bool {
    open.0.is_none()
}

/// E opens the chest in front of the player, and closes it. A chest that is gone is closed too.
fn open(
    keys: Res<ButtonInput<KeyCode>>,
    aim: Res<Aim>,
    (blocks, types, dimensions): (PublishedBlocks, Res<BlockTypes>, Res<Dimensions>),
    mut open: ResMut<OpenChest>,
) {
    let is_chest = |at: &BlockPos| blocks.block(dimensions.id(land::NAME), *at) == types.id(CHEST);
    if keys.just_pressed(KeyCode::KeyE) || open.0.is_some_and(|chest| !is_chest(&chest)) {
        let aimed = aim.0.map(|hit| hit.block).filter(is_chest);
        open.0 = if open.0.is_none() { aimed } else { None };
    }
}

/// The items in a chest, as the main world sees them.
pub fn items(blocks: &PublishedBlocks, types: &BlockTypes, dimension: DimensionId, chest: BlockPos) -> Option<Items> {
    let chunk = blocks.column(dimension, chest.column())?.chunk(chest.chunk().y)?;
    chunk.component_as(chest.in_chunk(), 0, types.component(ITEMS)?).ok()?
}

/// Returns `true` if there is no chest here, or one without items.
pub fn is_empty(blocks: &RegionBlocks, types: &BlockTypes, position: BlockPos) -> Result<bool> {
    let Some(component) = types.component(ITEMS) else { return Ok(true) };
    Ok(blocks.component_as::<Items>(position, 0, component)?.is_none_or(|items| items == Items::default()))
}

/// Moves one block of a kind from the player's bag into a chest, or out of it.
pub fn transfer(commands: &mut Commands, player: &Mirror, chest: BlockPos, kind: usize, into_chest: bool) {
    bag::with_region(commands, StableId(player.id), transfer_here, (chest, kind, into_chest));
}

/// Both change in the same tick, or neither does.
fn transfer_here(
    In((player, (chest, kind, into_chest))): In<(Entity, (BlockPos, usize, bool))>,
    mut blocks: RegionBlocks,
    types: Res<BlockTypes>,
    mut bags: Query<&mut Bag>,
) -> Result {
    let (component, mut bag) = (types.component(ITEMS).ok_or("no items")?, bags.get_mut(player)?);
    let Some(mut items) = blocks.component_as::<Items>(chest, 0, component)? else { return Ok(()) };
    let (number, mut left) = (if into_chest { 1 } else { -1 }, bag.0);
    if Bag::add(&mut left, kind, -number) && Bag::add(&mut items, kind, number) {
        blocks.set_component_as(chest, 0, component, &items)?;
        bag.0 = left;
    }
    Ok(())
}
