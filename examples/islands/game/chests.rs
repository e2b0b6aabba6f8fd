//! Chests: blocks with items.

use super::bag::{BLOCKS, Bag, Items};
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

/// E opens the chest in front of the player, and closes it.
fn open(
    keys: Res<ButtonInput<KeyCode>>,
    aim: Res<Aim>,
    (blocks, types, dimensions): (PublishedBlocks, Res<BlockTypes>, Res<Dimensions>),
    mut open: ResMut<OpenChest>,
) {
    if keys.just_pressed(KeyCode::KeyE) {
        let is_chest = |at: &BlockPos| blocks.block(dimensions.id(land::NAME), *at) == types.id(CHEST);
        open.0 = match open.0 {
            None => aim.0.map(|hit| hit.block).filter(is_chest),
            Some(_) => None,
        };
    }
}

/// The items in a chest, as the main world sees them.
pub fn items(blocks: &PublishedBlocks, types: &BlockTypes, dimension: DimensionId, chest: BlockPos) -> Option<Items> {
    let chunk = blocks.column(dimension, chest.column())?.chunk(chest.chunk().y)?;
    chunk.component_as(chest.in_chunk(), 0, types.component(ITEMS)?).ok()?
}

/// Moves one block of a kind from the player's bag into a chest, or out of it. Both change in the same tick, or neither does.
pub fn transfer(commands: &mut Commands, player: StableId, chest: BlockPos, kind: usize, into_chest: bool) {
    let give = move |mut player: EntityWorldMut| {
        let id = player.id();
        player.world_scope(|region| {
            let moved = region.run_system_cached_with(transfer_here, (id, chest, kind, into_chest));
            if let Err(error) = moved {
                warn!("{error}");
            }
        });
    };
    commands.run_on_region_entity(player.0, 0, give, |_, lost| warn!("nothing is moved: {lost}"));
}

fn transfer_here(
    In((player, chest, kind, into_chest)): In<(Entity, BlockPos, usize, bool)>,
    mut blocks: RegionBlocks,
    types: Res<BlockTypes>,
    mut bags: Query<&mut Bag>,
) {
    let Some(component) = types.component(ITEMS) else { return };
    let (Ok(Some(mut items)), Ok(mut bag)) = (blocks.component_as::<Items>(chest, 0, component), bags.get_mut(player))
    else {
        return;
    };
    let number = if into_chest { 1 } else { -1 };
    let mut left = bag.0;
    let fits = kind < BLOCKS.len() && Bag::add(&mut left, kind, -number) && Bag::add(&mut items, kind, number);
    if fits && blocks.set_component_as(chest, 0, component, &items).is_ok() {
        bag.0 = left;
    }
}
