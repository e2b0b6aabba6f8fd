//! The hand: aims at a block, digs and places.

use super::bag::{self, BLOCKS, Bag, Chosen};
use super::chests;
use bevy_terrane::chunk::RayHit;
use bevy_terrane::prelude::*;
use serde::{Deserialize, Serialize};
use terrane_dev::FirstPerson;

const REACH: f64 = 6.0;

/// The block that the hand reaches.
#[derive(Resource, Default)]
pub struct Aim(pub Option<RayHit>);

pub fn build(app: &mut App) {
    app.register_action::<Dig>()
        .register_action::<Place>()
        .init_resource::<Aim>()
        .add_systems(Update, (aim, use_hand.run_if(chests::are_closed)).chain());
}

fn aim(
    player: Query<(&FirstPerson, &Position, &Intent), With<OwnBody>>,
    (blocks, types): (PublishedBlocks, Res<BlockTypes>),
    mut aim: ResMut<Aim>,
) {
    aim.0 = player.single().ok().and_then(|(player, position, intent)| {
        let is_wanted = |block| block != BlockId::AIR && !is_water(&types, block);
        blocks.cast_ray(player.eyes(position), intent.rotation() * Vec3::NEG_Z, REACH, is_wanted)
    });
}

/// The left button digs the block into the bag, the right button places the chosen one where the player does not stand.
fn use_hand(
    mouse: Res<ButtonInput<MouseButton>>,
    (aim, chosen): (Res<Aim>, Res<Chosen>),
    own: Single<(&OwnBody, &Position)>,
    mut actions: Actions,
) {
    let (player, feet) = (own.0.id(), own.1.block);
    let Some(hit) = aim.0 else { return };
    if mouse.just_pressed(MouseButton::Left) {
        actions.act(player, Dig(hit.block));
    } else if mouse.just_pressed(MouseButton::Right) && ![feet, feet.offset(0, 1, 0)].contains(&hit.before()) {
        actions.act(player, Place(hit.before(), chosen.0));
    }
}

/// Digs a block into the bag.
#[derive(Serialize, Deserialize, TypePath)]
struct Dig(BlockPos);

impl Action for Dig {
    fn apply(&self, context: &mut ActionContext) -> Result<(), Refusal> {
        if chests::is_full(context, self.0)? {
            return Err(Refusal::because("the chest is full"));
        }
        let dug = context.set_block(self.0, BlockId::AIR)?;
        match bag::kind(context.types(), dug) {
            Some(kind) => Bag::add(&mut context.get_mut::<Bag>()?.0, kind, 1),
            None => Ok(()),
        }
    }
}

/// Places a block of this kind from the bag.
#[derive(Serialize, Deserialize, TypePath)]
struct Place(BlockPos, usize);

impl Action for Place {
    fn apply(&self, context: &mut ActionContext) -> Result<(), Refusal> {
        Bag::add(&mut context.get_mut::<Bag>()?.0, self.1, -1)?;
        let block = context.types().id(BLOCKS[self.1]).unwrap_or_default();
        let before = context.set_block(self.0, block)?;
        let is_free = before == BlockId::AIR || is_water(context.types(), before);
        is_free.then_some(()).ok_or(Refusal::because("there is a block"))
    }
}

fn is_water(types: &BlockRegistry, block: BlockId) -> bool {
    types.block(block).name().starts_with("terrane:water")
}
