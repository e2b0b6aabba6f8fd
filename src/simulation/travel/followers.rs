//! Who follows whom wherever it goes, and where that is.

use super::components::RegionComponents;
use super::entities::StableId;
use crate::simulation::Position;
use bevy::platform::collections::HashSet;
use bevy::prelude::*;

/// The entities that travel by themselves, sorted by their stable ids: those with a position that do not hang on
/// another one with a position. Disabled ones too.
pub fn roots(world: &World, components: &RegionComponents, wanted: impl Fn(&Position) -> bool) -> Vec<Entity> {
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
pub fn place(world: &World, components: &RegionComponents, entity: Entity) -> Option<Position> {
    let path = climb(world, components, world.get_entity(entity).ok()?);
    path.into_iter().find_map(|entity| entity.get::<Position>().copied())
}

/// The entity and all that follow it, each after the one that it follows; without those that are `taken` already.
pub fn followers(
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
