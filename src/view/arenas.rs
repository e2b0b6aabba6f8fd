//! Arenas in the main world: an entity for each.

use crate::coordinator::messages::{Arena, ArenaStatus};
use bevy::prelude::*;

/// Applies the status of an arena; without a status the arena is gone.
pub(super) fn apply(world: &mut World, arena: Arena, status: Option<ArenaStatus>) {
    let mut known = world.query::<(Entity, &Arena)>();
    let known = known.iter(world).find(|(_, known)| known.name == arena.name).map(|(entity, _)| entity);
    match (known, status) {
        (Some(entity), Some(status)) => drop(world.entity_mut(entity).insert(status)),
        (None, Some(status)) => drop(world.spawn((arena, status))),
        (Some(entity), None) => drop(world.despawn(entity)),
        (None, None) => {}
    }
}
