//! The hand: aims at a block, digs and places.

use super::bag::{self, BLOCKS, Bag, Chosen};
use super::{chests, land, player::Eyes};
use bevy_terrane::chunk::RayHit;
use bevy_terrane::prelude::*;

const REACH: f64 = 6.0;

/// The block that the hand reaches.
#[derive(Resource, Default)]
pub struct Aim(pub Option<RayHit>);

pub fn build(app: &mut App) {
    app.init_resource::<Aim>().add_systems(Update, (aim, (dig, place).run_if(chests::are_closed), undo).chain());
}

fn aim(
    eyes: Single<(&Eyes, &Transform)>,
    own: Query<&Position, With<OwnBody>>,
    (blocks, types): (PublishedBlocks, Res<BlockTypes>),
    mut aim: ResMut<Aim>,
) {
    let water = |block: BlockId| types.block(block).name().starts_with("terrane:water");
    aim.0 = own.single().ok().and_then(|feet| {
        let mut eye = *feet;
        eye.translate(eyes.1.translation);
        blocks.cast_ray(eye, eyes.1.forward(), REACH, |block| block != BlockId::AIR && !water(block))
    });
}

/// The left button digs the block into the bag. A chest must be empty.
fn dig(
    mouse: Res<ButtonInput<MouseButton>>,
    aim: Res<Aim>,
    own: Single<&OwnBody>,
    (blocks, types, dimensions): (PublishedBlocks, Res<BlockTypes>, Res<Dimensions>),
    mut edits: MessageWriter<SetBlock>,
    mut commands: Commands,
) {
    let Some(hit) = aim.0.filter(|_| mouse.just_pressed(MouseButton::Left)) else { return };
    let dimension = dimensions.id(land::NAME);
    let Some(block) = blocks.block(dimension, hit.block) else { return };
    if chests::items(&blocks, &types, dimension, hit.block).is_some_and(|items| items != default()) {
        return;
    }
    edits.write(SetBlock { dimension, position: hit.block, block: BlockId::AIR });
    if let Some(kind) = bag::kind(&types, block) {
        bag::give(&mut commands, &own, kind, 1);
    }
}

/// The right button places the chosen block, where nobody stands.
fn place(
    mouse: Res<ButtonInput<MouseButton>>,
    (aim, chosen): (Res<Aim>, Res<Chosen>),
    own: Single<(&OwnBody, &Position)>,
    bags: Query<&Bag, With<Player>>,
    (types, dimensions): (Res<BlockTypes>, Res<Dimensions>),
    mut edits: MessageWriter<SetBlock>,
    mut commands: Commands,
) {
    let Some(hit) = aim.0.filter(|_| mouse.just_pressed(MouseButton::Right)) else { return };
    let (position, kind, feet) = (hit.before(), chosen.0, own.1.block);
    let (Some(block), Ok(bag)) = (types.id(BLOCKS[kind]), bags.single()) else { return };
    if bag.0[kind] > 0 && position != feet && position != feet.offset(0, 1, 0) {
        edits.write(SetBlock { dimension: dimensions.id(land::NAME), position, block });
        bag::give(&mut commands, own.0, kind, -1);
    }
}

/// What was refused goes back: a block that was placed into the bag, one that was dug out of it.
fn undo(
    mut refused: MessageReader<BlockRefused>,
    (blocks, types): (PublishedBlocks, Res<BlockTypes>),
    own: Single<&OwnBody>,
    mut commands: Commands,
) {
    for BlockRefused { request, .. } in refused.read() {
        let (block, number) = match request.block {
            BlockId::AIR => (blocks.block(request.dimension, request.position), -1),
            placed => (Some(placed), 1),
        };
        if let Some(kind) = block.and_then(|block| bag::kind(&types, block)) {
            bag::give(&mut commands, &own, kind, number);
        }
    }
}
