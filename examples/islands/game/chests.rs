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
    app.add_region_plugins(|region| _ = region.add_observer(keep_full_chests));
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
fn keep_full_chests(mut attempt: On<ActionAttempt>, blocks: RegionBlocks, types: Res<BlockTypes>) -> Result {
    let component = types.component(ITEMS).ok_or("no items")?;
    let items = |at: BlockPos| blocks.component_as::<Items>(at, 0, component).ok().flatten();
    if attempt.blocks.iter().any(|changed| items(changed.position).is_some_and(|items| items != Items::default())) {
        attempt.refuse(Refusal::because("the chest is full"));
    }
    Ok(())
}

/// Moves one block of a kind from the player's bag into a chest, or out of it.
#[derive(Clone, Copy, Serialize, Deserialize, TypePath)]
pub struct Transfer {
    pub chest: BlockPos,
    pub kind: usize,
    pub into_chest: bool,
}

impl Action for Transfer {
    fn apply(&self, context: &mut ActionContext) -> Result<(), Refusal> {
        context.block(self.chest).map(drop)
    }

    fn effects(&self, done: &ActionDone, region: &mut World) {
        // Only the region knows what is in a chest.
        let moved: Result<Result, _> = region.run_system_cached_with(transfer, (done.actor, *self));
        if !matches!(moved, Ok(Ok(()))) {
            info!("nothing was moved: {moved:?}");
        }
    }
}

fn transfer(
    In((player, Transfer { chest, kind, into_chest })): In<(Entity, Transfer)>,
    mut blocks: RegionBlocks,
    types: Res<BlockTypes>,
    mut bags: Query<&mut Bag>,
) -> Result {
    let (component, mut bag) = (types.component(ITEMS).ok_or("no items")?, bags.get_mut(player)?);
    let Some(mut items) = blocks.component_as::<Items>(chest, 0, component)? else { return Ok(()) };
    let (number, mut left) = (if into_chest { 1 } else { -1 }, bag.0);
    Bag::add(&mut left, kind, -number).and_then(|()| Bag::add(&mut items, kind, number))?;
    blocks.set_component_as(chest, 0, component, &items)?;
    bag.0 = left;
    Ok(())
}
