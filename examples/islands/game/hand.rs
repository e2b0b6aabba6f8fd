//! The hand: aims at a block, digs and places.

use super::bag::{self, BLOCKS, Bag, Chosen};
use super::chests;
use bevy_terrane::chunk::RayHit;
use bevy_terrane::prelude::*;
use terrane_dev::FirstPerson;

const REACH: f64 = 6.0;

/// The block that the hand reaches.
#[derive(Resource, Default)]
pub struct Aim(pub Option<RayHit>);

pub fn build(app: &mut App) {
    app.init_resource::<Aim>().add_systems(Update, (aim, use_hand.run_if(chests::are_closed)).chain());
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
    mut commands: Commands,
) {
    let (digs, places) = (mouse.just_pressed(MouseButton::Left), mouse.just_pressed(MouseButton::Right));
    let Some(hit) = aim.0.filter(|_| digs || places) else { return };
    let (position, placed, feet) = match digs {
        true => (hit.block, None, None),
        false => (hit.before(), Some(chosen.0), Some(own.1.block)),
    };
    if feet.is_none_or(|feet| position != feet && position != feet.offset(0, 1, 0)) {
        bag::with_region(&mut commands, StableId(own.0.id()), change, (position, placed));
    }
}

/// Block and bag change in the same tick, or neither does.
fn change(
    In((player, (position, placed))): In<(Entity, (BlockPos, Option<usize>))>,
    mut blocks: RegionBlocks,
    types: Res<BlockTypes>,
    mut bags: Query<&mut Bag>,
) -> Result {
    let (before, mut bag) = (blocks.block(position)?, bags.get_mut(player)?);
    let mut items = bag.0;
    let (kind, number, after) = match placed {
        Some(kind) => (Some(kind), -1, types.id(BLOCKS[kind]).unwrap_or_default()),
        None => (bag::kind(&types, before), 1, BlockId::AIR),
    };
    let is_free = before == BlockId::AIR || is_water(&types, before);
    let fits = kind.is_none_or(|kind| Bag::add(&mut items, kind, number));
    if fits && is_free == placed.is_some() && chests::is_empty(&blocks, &types, position)? {
        blocks.set_block(position, after)?;
        bag.0 = items;
    }
    Ok(())
}

fn is_water(types: &BlockTypes, block: BlockId) -> bool {
    types.block(block).name().starts_with("terrane:water")
}
