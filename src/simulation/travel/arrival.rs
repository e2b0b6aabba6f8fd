//! The arrival of entities in a region world.

use crate::simulation::columns::blocks::RegionColumns;
use crate::simulation::components::RegionComponents;
use crate::simulation::components::followers::followers;
use crate::simulation::components::mapping::{Arrived, ChangeClock, Mapping};
use crate::simulation::components::relationships::insert_relationships;
use crate::simulation::entities::{EntityIndex, EntityMoved, Moving, remove_family};
use crate::simulation::inbox_outbox::{Passenger, Traveller};
use crate::simulation::world::RegionContents;
use bevy::ecs::bundle::BundleScratch;
use bevy::platform::collections::HashSet;
use bevy::prelude::*;
use std::mem;
use uuid::Uuid;

/// Inserts entities with all their followers into the world: first the empty entities, then their components, then their
/// relationships. `EntityMoved` is triggered when all are complete.
pub fn arrive_all(world: &mut World, contents: &mut RegionContents, mut travellers: Vec<Traveller>) -> Arrived {
    let mut arrived = Arrived::default();
    if travellers.is_empty() {
        return arrived;
    }
    // Letters come first: a hook of the game may panic, and letters must not be lost then.
    let letters = travellers.iter_mut().flat_map(|traveller| mem::take(&mut traveller.letters));
    contents.letters.receive(letters);
    // Positions keep their change ticks, so a search by change tick would miss them.
    world.resource_mut::<RegionColumns>().look_everywhere = true;
    contents.viewers.expected.extend(travellers.iter().flat_map(|traveller| &traveller.viewers).map(|(id, _)| *id));
    contents.unfinished.arrived.extend(travellers.iter().flat_map(|traveller| &traveller.ids));
    let mut moved = Vec::with_capacity(travellers.len());
    let mut passengers = Vec::new();
    world.insert_resource(Moving);
    for Traveller { id, ids, origin, cause, followers, .. } in travellers {
        ids.into_iter().for_each(|id| remove_older(world, &contents.components, id));
        let mut root = None;
        for passenger in followers {
            let entity = world.spawn_empty().id();
            arrived.insert((origin, passenger.entity), entity);
            root.get_or_insert(entity);
            passengers.push((origin, entity, passenger));
        }
        moved.extend(root.map(|entity| EntityMoved { entity, id, cause }));
    }
    furnish(world, contents, passengers, &arrived);
    world.remove_resource::<Moving>();

    for moved in moved {
        // An earlier observer may have despawned it.
        if world.entities().contains_spawned(moved.entity) {
            world.trigger(moved);
        }
    }
    arrived
}

/// Removes an entity that was loaded from the store before its newer version arrived.
fn remove_older(world: &mut World, components: &RegionComponents, id: Uuid) {
    if let Some(older) = world.resource::<EntityIndex>().entity(id) {
        let followers = followers(world, components, older, &mut HashSet::new());
        remove_family(world, older, followers);
    }
}

/// Inserts the components of the spawned entities. Each passenger comes with the origin of its traveller.
fn furnish(world: &mut World, contents: &RegionContents, passengers: Vec<(u64, Entity, Passenger)>, arrived: &Arrived) {
    let (components, began) = (&contents.components, contents.ticks.seen);
    let mut scratch = BundleScratch::default();
    let mut related = Vec::with_capacity(passengers.len());
    for (origin, entity, passenger) in passengers {
        let mut mapping = Mapping { origin, arrived };
        let clock = ChangeClock { began, now: world.change_tick() };
        components.insert_all(world, (entity, passenger.components), &mut scratch, &mut mapping, clock);
        related.push((entity, passenger.relationships, mapping));
    }
    let clock = ChangeClock { began, now: world.change_tick() };
    insert_relationships(world, &components.relationships, related, clock);
}
