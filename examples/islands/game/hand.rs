//! The hand: aims at a block, digs and places.

use super::bag::{self, BLOCKS, Bag, Chosen};
use super::{land, player::Eyes};
use bevy_terrane::chunk::RayHit;
use bevy_terrane::prelude::*;

const REACH: f64 = 6.0;

/// The block that the hand reaches.
#[derive(Resource, Default)]
pub struct Aim(pub Option<RayHit>);

/// A block that was dug or placed, in case that it is refused: its kind, and how many the bag got.
struct Done {
    position: BlockPos,
    kind: usize,
    number: i32,
}

#[derive(Resource, Default)]
struct Pending(Vec<Done>);

pub fn build(app: &mut App) {
    app.init_resource::<Aim>().init_resource::<Pending>().add_systems(Update, (aim, (dig, place), undo).chain());
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

/// The left button digs the block into the bag.
fn dig(
    mouse: Res<ButtonInput<MouseButton>>,
    aim: Res<Aim>,
    own: Single<&OwnBody>,
    (blocks, types, dimensions): (PublishedBlocks, Res<BlockTypes>, Res<Dimensions>),
    mut edits: MessageWriter<SetBlock>,
    mut pending: ResMut<Pending>,
    mut commands: Commands,
) {
    let Some(hit) = aim.0.filter(|_| mouse.just_pressed(MouseButton::Left)) else { return };
    let dimension = dimensions.id(land::NAME);
    let Some(block) = blocks.block(dimension, hit.block) else { return };
    edits.write(SetBlock { dimension, position: hit.block, block: BlockId::AIR });
    if let Some(kind) = BLOCKS.iter().position(|name| types.id(name) == Some(block)) {
        bag::give(&mut commands, &own, kind, 1);
        pending.0.push(Done { position: hit.block, kind, number: 1 });
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
    mut pending: ResMut<Pending>,
    mut commands: Commands,
) {
    let Some(hit) = aim.0.filter(|_| mouse.just_pressed(MouseButton::Right)) else { return };
    let (position, kind) = (hit.before(), chosen.0);
    let (Some(block), Ok(bag)) = (types.id(BLOCKS[kind]), bags.single()) else { return };
    let feet = own.1.block;
    if bag.0[kind] == 0 || position == feet || position == feet.offset(0, 1, 0) {
        return;
    }
    edits.write(SetBlock { dimension: dimensions.id(land::NAME), position, block });
    bag::give(&mut commands, own.0, kind, -1);
    pending.0.push(Done { position, kind, number: -1 });
}

/// What was refused goes back.
fn undo(
    mut refused: MessageReader<BlockRefused>,
    blocks: PublishedBlocks,
    dimensions: Res<Dimensions>,
    own: Query<&OwnBody>,
    mut pending: ResMut<Pending>,
    mut commands: Commands,
) {
    for refused in refused.read() {
        let done = pending.0.iter().position(|done| done.position == refused.request.position);
        if let (Some(done), Ok(own)) = (done.map(|done| pending.0.swap_remove(done)), own.single()) {
            bag::give(&mut commands, own, done.kind, -done.number);
        }
    }
    // Decided ones are shown as they are. An edit is predicted from the end of its frame on.
    let dimension = dimensions.id(land::NAME);
    if !pending.is_changed() {
        pending.bypass_change_detection().0.retain(|done| blocks.is_predicted(dimension, done.position));
    }
}
