//! The departure of entities from a region world.

use crate::simulation::columns::blocks::RegionColumns;
use crate::simulation::components::followers::followers;
use crate::simulation::components::mapping::ChangeClock;
use crate::simulation::components::relationships::take_relationships;
use crate::simulation::components::stored_entities::record;
use crate::simulation::components::{Stored, TakenComponent, release_linked};
use crate::simulation::entities::{MoveCause, Moving, StableId, forget};
use crate::simulation::inbox_outbox::{Passenger, Traveller};
use crate::simulation::letters::letter::Letter;
use crate::simulation::world::RegionContents;
use crate::simulation::{Position, Viewer};
use bevy::platform::collections::HashSet;
use bevy::prelude::*;
use rustc_hash::FxHashMap;
use uuid::Uuid;

/// Takes entities and all their followers out of the world. References among them survive.
pub fn depart_all(
    world: &mut World,
    contents: &mut RegionContents,
    roots: Vec<Entity>,
    cause: MoveCause,
) -> Vec<Traveller> {
    if roots.is_empty() {
        return Vec::new();
    }
    let clock = ChangeClock { began: contents.ticks.began, now: world.change_tick() };
    let goes_far = world.resource::<RegionColumns>().is_of_shared_world();
    // Components are removed once all leaving entities are known.
    let passenger = |entity| Passenger { entity, components: Vec::new(), relationships: Vec::new() };
    let mut taken = HashSet::new();
    let mut travellers = Vec::with_capacity(roots.len());
    let mut leaving = Vec::new();
    for root in roots {
        let followers = followers(world, &contents.components, root, &mut taken);
        // The first member of a circle took the others along.
        let Some(position) = world.get::<Position>(root).copied().filter(|_| !followers.is_empty()) else { continue };
        let recorded = match cause {
            // On another server they begin from their records, all of them.
            MoveCause::Crossing if goes_far => &followers[..],
            MoveCause::Crossing => &followers[..1],
            // Only a crossing takes time, so only a crossing entity needs records.
            MoveCause::Merge | MoveCause::Split => &[],
        };
        let id = |entity: Entity| world.get::<StableId>(entity).map(|id| id.0);
        let viewer = |entity: &Entity| Some((id(*entity)?, world.get::<Viewer>(*entity)?.radii()));
        let place = |entity: &Entity| world.get::<Position>(*entity).map(|place| (place.dimension, place.column()));
        travellers.push(Traveller {
            id: id(root).unwrap_or_default(),
            position,
            viewers: followers.iter().filter_map(viewer).collect(),
            records: recorded.iter().filter_map(|it| record(world, &contents.components, *it)).collect(),
            stored_with: None,
            stored_in: followers.iter().filter_map(place).collect(),
            letters: Vec::new(),
            ids: followers.iter().filter_map(|entity| id(*entity)).collect(),
            origin: contents.number,
            cause,
            followers: followers.iter().map(|entity| passenger(*entity)).collect(),
        });
        leaving.extend(followers);
    }

    world.insert_resource(Moving);
    let mut relationships = take_relationships(world, &contents.components.relationships, &leaving, clock).into_iter();
    for passenger in travellers.iter_mut().flat_map(|traveller| &mut traveller.followers) {
        passenger.relationships = relationships.next().unwrap_or_default();
        passenger.components = take_out(world, contents, passenger.entity, clock);
    }
    world.remove_resource::<Moving>();
    // Only now: if a hook panics, salvaging still needs these viewers.
    for (viewer, _) in travellers.iter().flat_map(|traveller| &traveller.viewers) {
        contents.viewers.expected.remove(viewer);
    }
    take_letters_along(contents, &mut travellers);
    travellers
}

/// Moves the letters that wait for an entity along with it.
fn take_letters_along(contents: &mut RegionContents, travellers: &mut [Traveller]) {
    if contents.letters.is_empty() {
        return;
    }
    let roots: FxHashMap<Uuid, usize> =
        travellers.iter().enumerate().flat_map(|(root, it)| it.ids.iter().map(move |id| (*id, root))).collect();
    let root = |letter: &Letter| letter.entity().and_then(|id| roots.get(&id).copied());
    for letter in contents.letters.take(|letter| root(letter).is_some()) {
        if let Some(traveller) = root(&letter).and_then(|root| travellers.get_mut(root)) {
            traveller.letters.push(letter);
        }
    }
}

fn take_out(
    world: &mut World,
    contents: &mut RegionContents,
    entity: Entity,
    clock: ChangeClock,
) -> Vec<TakenComponent> {
    if let Some(StableId(id)) = world.get::<StableId>(entity) {
        contents.mirrored.remove(id);
    }
    forget(world, entity);
    let Ok(mut leaving) = world.get_entity_mut(entity) else { return Vec::new() };
    if let Some(mut stored) = leaving.get_mut::<Stored>() {
        stored.structure = None;
    }
    let taken = contents.components.take_all(&mut leaving, clock);
    // A hook may have despawned it.
    if let Ok(mut leaving) = world.get_entity_mut(entity) {
        release_linked(&mut leaving);
        leaving.despawn();
    }
    taken
}
