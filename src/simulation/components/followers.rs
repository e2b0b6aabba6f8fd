//! The followers of an entity and their positions.

use crate::simulation::components::RegionComponents;
use crate::simulation::entities::StableId;
use crate::simulation::position::Position;
use bevy::platform::collections::HashSet;
use bevy::prelude::*;

/// The entities that travel by themselves, sorted by their stable ids: those with a position that do not follow
/// another entity with a position. Includes disabled entities.
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

/// The entities that this entity follows wherever they go.
fn carriers<'a>(components: &'a RegionComponents, entity: EntityRef<'a>) -> impl Iterator<Item = Entity> + 'a {
    let linked = components.relationships.iter().filter(|relationship| relationship.linked);
    linked.filter_map(move |relationship| (relationship.target)(entity))
}

/// The entity and all entities that it follows, nearest first.
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

/// Returns `true` if the entity follows an entity with a position.
fn hangs_on_a_place(world: &World, components: &RegionComponents, entity: EntityRef) -> bool {
    if carriers(components, entity).next().is_none() {
        return false;
    }
    let path = climb(world, components, entity);
    let above = path.get(1..).unwrap_or_default();
    // In a circle no entity is on top: each member may take the others along.
    let circle = above.iter().any(|above| carriers(components, *above).any(|carrier| carrier == entity.id()));
    !circle && above.iter().any(|above| above.contains::<Position>())
}

/// The position of the entity: its own, or else that of the entity that it follows.
pub fn place(world: &World, components: &RegionComponents, entity: Entity) -> Option<Position> {
    let path = climb(world, components, world.get_entity(entity).ok()?);
    path.into_iter().find_map(|entity| entity.get::<Position>().copied())
}

/// The entity and all its followers, each after the one that it follows, without those already in `taken`.
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
