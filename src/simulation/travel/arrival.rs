//! How entities get into a region world.

use super::departure::{self, Passenger};
use super::entities::{EntityIndex, EntityMoved, Migration, forget};
use super::relationships::insert_relationships;
use super::ticks::ChangeClock;
use crate::simulation::Traveller;
use crate::simulation::columns::blocks::RegionColumns;
use crate::simulation::receive::take_in;
use crate::simulation::world::RegionState;
use bevy::ecs::bundle::BundleScratch;
use bevy::ecs::entity::EntityMapper;
use bevy::platform::collections::HashSet;
use bevy::prelude::*;
use rustc_hash::FxHashMap;
use std::mem;

/// Who the entities that arrived together are now. Those that left together have one origin.
#[derive(Default)]
pub(in crate::simulation) struct Arrived(FxHashMap<(u64, Entity), Entity>);

impl Arrived {
    pub fn mapping(&self, origin: u64) -> Mapping<'_> {
        Mapping { origin, arrived: self }
    }
}

/// Turns references from the world of one departure into references of this world.
#[derive(Clone, Copy)]
pub(in crate::simulation) struct Mapping<'a> {
    origin: u64,
    arrived: &'a Arrived,
}

impl Mapping<'_> {
    pub fn arrived(&self, left: Entity) -> Option<Entity> {
        self.arrived.0.get(&(self.origin, left)).copied()
    }
}

impl EntityMapper for Mapping<'_> {
    /// Who did not come along is nobody here.
    fn get_mapped(&mut self, source: Entity) -> Entity {
        self.arrived(source).unwrap_or(Entity::PLACEHOLDER)
    }

    fn set_mapped(&mut self, _source: Entity, _target: Entity) {}
}

/// Puts entities with all that follow them into the world: first everyone's place, then the components, then the
/// relationships, and when all are whole, everyone is told.
pub(in crate::simulation) fn arrive_all(world: &mut World, mut travellers: Vec<Traveller>) -> Arrived {
    let mut arrived = Arrived::default();
    if travellers.is_empty() {
        return arrived;
    }
    // First of all: a hook of the game may panic, and letters are not lost with that.
    let letters = travellers.iter_mut().flat_map(|traveller| mem::take(&mut traveller.letters)).collect();
    take_in(world, letters);
    // Their positions come with the change ticks that they had.
    world.resource_mut::<RegionColumns>().look_everywhere = true;
    let mut state = world.resource_mut::<RegionState>();
    state.viewers.extend(travellers.iter().flat_map(|traveller| &traveller.viewers).map(|(id, _)| *id));
    let (components, began) = (state.components.clone(), state.seen);
    let mut moved = Vec::with_capacity(travellers.len());
    let mut passengers = Vec::new();
    world.insert_resource(Migration);
    for Traveller { id, ids, origin, cause, family, .. } in travellers {
        // What the store said of it came first, and is older.
        for known in ids {
            if let Some(older) = world.resource::<EntityIndex>().entity(known) {
                for entity in departure::family(world, &components, older, &mut HashSet::new()) {
                    forget(world, entity);
                }
                world.despawn(older);
            }
        }
        let mut root = None;
        for Passenger { entity: left, components, relationships } in family {
            let entity = world.spawn_empty().id();
            arrived.0.insert((origin, left), entity);
            root.get_or_insert(entity);
            passengers.push((origin, entity, components, relationships));
        }
        moved.extend(root.map(|entity| EntityMoved { entity, id, cause }));
    }

    let mut scratch = BundleScratch::default();
    let mut related = Vec::with_capacity(passengers.len());
    for (origin, entity, taken, relationships) in passengers {
        let mut mapping = arrived.mapping(origin);
        let clock = ChangeClock { began, now: world.change_tick() };
        components.insert_all(world, (entity, taken), &mut scratch, &mut mapping, clock);
        related.push((entity, relationships, mapping));
    }
    let clock = ChangeClock { began, now: world.change_tick() };
    insert_relationships(world, &components.relationships, related, clock);
    world.remove_resource::<Migration>();

    for moved in moved {
        // Who was told before may have despawned it.
        if world.entities().contains_spawned(moved.entity) {
            world.trigger(moved);
        }
    }
    arrived
}
