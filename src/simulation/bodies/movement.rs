//! The system that moves the bodies of a region.

use crate::body::BodyMover;
use crate::simulation::bodies::character::{CharacterController, Intent};
use crate::simulation::bodies::floor::reach;
use crate::simulation::bodies::steering::{SteeredBody, Steering};
use crate::simulation::bodies::{BlockBody, BodyState, BodyTypes, BodyVelocity, Grounded};
use crate::simulation::columns::blocks::RegionBlocks;
use crate::simulation::info::RegionInfo;
use crate::simulation::position::Position;
use crate::space::ChunkPos;
use bevy::prelude::*;

type Character = (&'static CharacterController, &'static mut Intent, Option<&'static mut Steering>);

/// Moves the bodies of a region.
pub(crate) fn move_bodies(
    time: Res<Time>,
    info: Res<RegionInfo>,
    blocks: RegionBlocks,
    types: Res<BodyTypes>,
    mut bodies: Query<(Entity, &mut Position, &BlockBody, &mut BodyVelocity, &mut Grounded, Option<Character>)>,
    mut commands: Commands,
) {
    let (seconds, floor) = (time.delta_secs_f64(), info.floor);
    let chunk = |pos: ChunkPos| blocks.loaded_chunk(pos);
    let mut mover = BodyMover::new(&types, &chunk).with_floor(floor.height);
    for (entity, mut position, body, mut velocity, mut grounded, character) in &mut bodies {
        let mut state = BodyState { position: *position, velocity: *velocity, grounded: *grounded };
        match character {
            None => state.advance(body, None, &mut mover, seconds),
            Some((controller, intent, None)) => {
                state.advance(body, Some((controller, &intent)), &mut mover, seconds);
            }
            Some((controller, mut intent, Some(mut steering))) => {
                for next in steering.take_due() {
                    intent.set_if_neq(next);
                    state.advance(body, Some((controller, &intent)), &mut mover, seconds);
                }
                let (body, character) = (*body, *controller);
                let (number, step) = (steering.number(), seconds);
                let known = SteeredBody { number, intent: *intent, state, body, character, step, floor: floor.height };
                steering.set_state(known);
            }
        }
        if floor.is_reached_at(&state.position) {
            let is_new = !floor.is_reached_at(&position);
            commands.queue(move |world: &mut World| reach(world, entity, &floor, is_new));
        }
        position.set_if_neq(state.position);
        velocity.set_if_neq(state.velocity);
        grounded.set_if_neq(state.grounded);
    }
}
