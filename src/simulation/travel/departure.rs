//! How entities get out of a region world.

use super::components::{Stored, TakenComponent, release_linked};
use super::entities::{MoveCause, Moving, StableId, forget};
use super::relationships::{TakenRelationships, take_relationships};
use super::stored_entities::record;
use super::ticks::ChangeClock;
use crate::simulation::world::RegionContents;
use crate::simulation::{Letter, Position, RegionComponents, Traveller, Viewer};
use bevy::platform::collections::HashSet;
use bevy::prelude::*;
use rustc_hash::FxHashMap;
use uuid::Uuid;

/// One entity of a traveller, between two worlds.
pub(in crate::simulation) struct Passenger {
    /// Who it was in the world that it left.
    pub entity: Entity,
    pub components: Vec<TakenComponent>,
    pub relationships: TakenRelationships,
}

impl Passenger {
    /// One of whom nothing has been taken yet.
    fn new(entity: Entity) -> Self {
        Self { entity, components: Vec::new(), relationships: TakenRelationships::default() }
    }
}

/// The entities that travel by themselves, sorted by their stable ids: those with a position that do not hang on
/// another one with a position. Disabled ones too.
pub(in crate::simulation) fn roots(
    world: &World,
    components: &RegionComponents,
    wanted: impl Fn(&Position) -> bool,
) -> Vec<Entity> {
    let ids = world.components();
    let (Some(position), Some(stable)) = (ids.component_id::<Position>(), ids.component_id::<StableId>()) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for archetype in world.archetypes().iter().filter(|it| it.contains(position) && it.contains(stable)) {
        for entity in archetype.entities() {
            let Ok(entity) = world.get_entity(entity.id()) else { continue };
            if entity.get::<Position>().is_some_and(&wanted)
                && let Some(id) = entity.get::<StableId>()
                && !hangs_on_a_place(world, components, entity)
            {
                found.push((*id, entity.id()));
            }
        }
    }
    found.sort_unstable();
    found.into_iter().map(|(_, entity)| entity).collect()
}

/// What the entity follows wherever it goes.
fn carriers<'a>(components: &'a RegionComponents, entity: EntityRef<'a>) -> impl Iterator<Item = Entity> + 'a {
    let linked = components.relationships.iter().filter(|relationship| relationship.linked);
    linked.filter_map(move |relationship| (relationship.target)(entity))
}

/// The entity and all that it hangs on, nearest first.
fn climb<'w>(world: &'w World, components: &'w RegionComponents, entity: EntityRef<'w>) -> Vec<EntityRef<'w>> {
    let mut path = vec![entity];
    let mut known = HashSet::from([entity.id()]);
    let mut next = 0;
    while let Some(entity) = path.get(next).copied() {
        next += 1;
        let further = carriers(components, entity).filter(|carrier| known.insert(*carrier));
        path.extend(further.filter_map(|carrier| world.get_entity(carrier).ok()));
    }
    path
}

/// Whether something with a position takes the entity along.
fn hangs_on_a_place(world: &World, components: &RegionComponents, entity: EntityRef) -> bool {
    if carriers(components, entity).next().is_none() {
        return false;
    }
    let path = climb(world, components, entity);
    let above = path.get(1..).unwrap_or_default();
    // In a circle nobody is above: each member may take the others along.
    let circle = above.iter().any(|above| carriers(components, *above).any(|carrier| carrier == entity.id()));
    !circle && above.iter().any(|above| above.contains::<Position>())
}

/// Where the entity is: where it stands itself, or else what it hangs on.
pub(in crate::simulation) fn place(world: &World, components: &RegionComponents, entity: Entity) -> Option<Position> {
    let path = climb(world, components, world.get_entity(entity).ok()?);
    path.into_iter().find_map(|entity| entity.get::<Position>().copied())
}

/// The entity and all that follow it, each after the one that it follows; without those that are `taken` already.
pub(in crate::simulation) fn followers(
    world: &World,
    components: &RegionComponents,
    root: Entity,
    taken: &mut HashSet<Entity>,
) -> Vec<Entity> {
    if !taken.insert(root) {
        return Vec::new();
    }
    let mut found = vec![root];
    let mut next = 0;
    while let Some(entity) = found.get(next).copied() {
        next += 1;
        let Ok(entity) = world.get_entity(entity) else { continue };
        for relationship in components.relationships.iter().filter(|relationship| relationship.linked) {
            let followers = (relationship.sources)(entity).unwrap_or_default();
            found.extend(followers.into_iter().filter(|follower| taken.insert(*follower)));
        }
    }
    found
}

/// Takes entities with all that follow them out of the world. References among them survive.
pub(in crate::simulation) fn depart_all(world: &mut World, roots: Vec<Entity>, cause: MoveCause) -> Vec<Traveller> {
    if roots.is_empty() {
        return Vec::new();
    }
    let contents = world.resource::<RegionContents>();
    let (components, origin) = (contents.components.clone(), contents.number);
    let clock = ChangeClock { began: contents.began, now: world.change_tick() };
    let mut taken = HashSet::new();
    let mut travellers = Vec::with_capacity(roots.len());
    let mut leaving = Vec::new();
    for root in roots {
        let followers = followers(world, &components, root, &mut taken);
        // In a circle, the first one took the others along.
        let Some(position) = world.get::<Position>(root).copied().filter(|_| !followers.is_empty()) else { continue };
        let id = |entity: Entity| world.get::<StableId>(entity).map(|id| id.0);
        let viewer = |entity: &Entity| Some((id(*entity)?, world.get::<Viewer>(*entity)?.radii()));
        let place = |entity: &Entity| world.get::<Position>(*entity).map(|place| (place.dimension, place.column()));
        travellers.push(Traveller {
            id: id(root).unwrap_or_default(),
            position,
            viewers: followers.iter().filter_map(viewer).collect(),
            // Only between two regions it is on its way for a while.
            record: (cause == MoveCause::Crossing).then(|| record(world, &components, root)).flatten(),
            stored_in: followers.iter().filter_map(place).collect(),
            letters: Vec::new(),
            ids: followers.iter().filter_map(|entity| id(*entity)).collect(),
            origin,
            cause,
            followers: followers.iter().map(|entity| Passenger::new(*entity)).collect(),
        });
        leaving.extend(followers);
    }

    world.insert_resource(Moving);
    let mut relationships = take_relationships(world, &components.relationships, &leaving, clock).into_iter();
    for passenger in travellers.iter_mut().flat_map(|traveller| &mut traveller.followers) {
        passenger.relationships = relationships.next().unwrap_or_default();
        passenger.components = take_out(world, &components, passenger.entity, clock);
    }
    world.remove_resource::<Moving>();
    take_letters_along(world, &mut travellers);
    travellers
}

/// What waits for an entity goes where it goes.
fn take_letters_along(world: &mut World, travellers: &mut [Traveller]) {
    let mut contents = world.resource_mut::<RegionContents>();
    if contents.waiting.is_empty() {
        return;
    }
    let roots: FxHashMap<Uuid, usize> =
        travellers.iter().enumerate().flat_map(|(root, it)| it.ids.iter().map(move |id| (*id, root))).collect();
    let root = |letter: &Letter| letter.entity().and_then(|id| roots.get(&id).copied());
    for letter in contents.take_waiting(|letter| root(letter).is_some()) {
        if let Some(traveller) = root(&letter).and_then(|root| travellers.get_mut(root)) {
            traveller.letters.push(letter);
        }
    }
}

fn take_out(
    world: &mut World,
    components: &RegionComponents,
    entity: Entity,
    clock: ChangeClock,
) -> Vec<TakenComponent> {
    let id = world.get::<StableId>(entity).map_or(Uuid::nil(), |id| id.0);
    let mut contents = world.resource_mut::<RegionContents>();
    contents.mirrored.remove(&id);
    contents.viewers.remove(&id);
    forget(world, entity);
    let Ok(mut leaving) = world.get_entity_mut(entity) else { return Vec::new() };
    if let Some(mut stored) = leaving.get_mut::<Stored>() {
        stored.structure = None;
    }
    let taken = components.take_all(&mut leaving, clock);
    // A hook may have despawned it.
    if let Ok(mut leaving) = world.get_entity_mut(entity) {
        release_linked(&mut leaving);
        leaving.despawn();
    }
    taken
}
