//! Chests: blocks with items.

use super::bag::{Bag, Items};
use super::{hand::Aim, land};
use bevy_terrane::prelude::*;
use serde::{Deserialize, Serialize};

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
    app.register_action::<Transfer>().init_resource::<OpenChest>().add_systems(Update, open);
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

/// A chest with items cannot be dug.
pub fn is_full(context: &mut ActionContext, position: BlockPos) -> Result<bool, Refusal> {
    Ok(context.component_as::<Items>(position, ITEMS)?.is_some_and(|items| items != Items::default()))
}

/// Moves one block of a kind from the player's bag into a chest, or out of it.
#[derive(Serialize, Deserialize, TypePath)]
pub struct Transfer {
    pub chest: BlockPos,
    pub kind: usize,
    pub into_chest: bool,
}

impl Action for Transfer {
    fn apply(&self, context: &mut ActionContext) -> Result<(), Refusal> {
        let items = context.component_as::<Items>(self.chest, ITEMS)?;
        let mut items = items.ok_or(Refusal::because("there is no chest"))?;
        let number = if self.into_chest { 1 } else { -1 };
        Bag::add(&mut context.get_mut::<Bag>()?.0, self.kind, -number)?;
        Bag::add(&mut items, self.kind, number)?;
        context.set_component_as(self.chest, ITEMS, &items)
    }
}
