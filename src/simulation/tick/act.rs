//! Does the actions of entities.

use crate::simulation::actions::{
    Acting, ActionAttempt, ActionContext, ActionDone, ActionOrder, Actor, Ground, Outcome, Refusal, Values,
};
use crate::simulation::block_types::BlockTypes;
use crate::simulation::columns::blocks::RegionColumns;
use crate::simulation::components::RegionComponents;
use crate::simulation::info::RegionInfo;
use crate::simulation::position::Position;
use crate::space::{ChunkPos, DimensionId};
use bevy::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;

/// Does an action of an entity. Its number is used up first, so it never happens twice.
pub fn act(
    world: &mut World,
    components: &RegionComponents,
    per_second: f32,
    entity: Entity,
    order: &ActionOrder,
) -> Result<(DimensionId, Vec<ChunkPos>), Refusal> {
    let now = world.resource::<Time>().elapsed();
    let mut actor = world.get_mut::<Actor>(entity).ok_or(Refusal::NotAnActor)?;
    // An action of the server for the entity of a client has no number.
    if order.session > 0 && !actor.use_up(order.session, order.number) {
        return Err(Refusal::Repeated);
    }
    if !actor.has_time(now, per_second) {
        return Err(Refusal::TooMany);
    }
    let outcome = try_out(world, components, entity, now, order)?;
    let mut attempt = ActionAttempt::new(entity, outcome.blocks, order.action.clone());
    world.trigger_ref(&mut attempt);
    if let Some(refusal) = attempt.refusal.take() {
        return Err(refusal);
    }
    // An observer may have despawned it.
    world.get_entity(entity).map_err(|_| Refusal::NotHere)?;
    let done = ActionDone { actor: entity, blocks: attempt.into_blocks() };
    let mut columns = world.resource_mut::<RegionColumns>();
    // The blocks are loaded and their types registered, and what observers changed is overwritten. So none of these fails.
    for changed in &done.blocks {
        columns.set_block(changed.position, changed.after).map_err(|_| Refusal::NotLoaded(changed.position))?;
    }
    for (position, component, value) in &outcome.of_blocks {
        columns.set_component(*position, 0, *component, value).map_err(|_| Refusal::NotLoaded(*position))?;
    }
    let Ok(mut actor) = world.get_entity_mut(entity) else { return Err(Refusal::NotHere) };
    for (number, component) in outcome.components {
        components.mirrored.apply(&mut actor, number, Some(component));
    }
    order.action.effects(&done, world);
    world.flush();
    let chunks: BTreeSet<ChunkPos> = done.blocks.iter().map(|changed| changed.position.chunk()).collect();
    Ok((world.resource::<RegionInfo>().dimension, chunks.into_iter().collect()))
}

/// Finds out what an action would change.
fn try_out(
    world: &World,
    components: &RegionComponents,
    entity: Entity,
    elapsed: Duration,
    order: &ActionOrder,
) -> Result<Outcome, Refusal> {
    let values = world.get_entity(entity).map_err(|_| Refusal::NotHere)?;
    let position = *values.get::<Position>().ok_or(Refusal::NotHere)?;
    let columns = world.resource::<RegionColumns>();
    let heights = world.resource::<RegionInfo>().heights.clone();
    let ground = Ground {
        block: &|block| columns.known_block(block).filter(|_| heights.contains(&block.y)),
        component: &|block, component| columns.component(block, 0, component).ok()?.map(<[u8]>::to_vec),
    };
    let types = &world.resource::<BlockTypes>().0;
    let acting = Acting { actor: order.actor, position, elapsed, values: Values::Entity(values) };
    let number = |type_id| components.mirrored.number(type_id);
    ActionContext::new(acting, types, &number, ground).run(&*order.action).0
}
