//! Components that would be lost on a journey are told of before the first one.

use super::departure::place;
use crate::simulation::world::RegionContents;
use crate::simulation::{Position, RegionComponents};
use bevy::ecs::archetype::{Archetype, ArchetypeEntity, ArchetypeGeneration, ArchetypeId};
use bevy::ecs::component::ComponentId;
use bevy::ecs::observer::ObservedBy;
use bevy::platform::collections::HashSet;
use bevy::prelude::*;
use std::any::TypeId;

/// Components are on entities that can travel, and nobody said what becomes of them on a journey.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} would be lost as soon as its entity moves to another region: call register_region_component or \
     register_saved_component for it (register_region_relationship, if it is a relationship), or \
     leave_region_component_behind with this path if it is to stay behind",
    .components.join(", ")
)]
pub struct UnregisteredComponents {
    /// The full paths of their types.
    pub components: Vec<String>,
}

/// What was looked at already.
#[derive(Debug)]
pub(in crate::simulation) struct SeenArchetypes {
    generation: ArchetypeGeneration,
    /// Those with unknown components, as long as no entity that can travel was seen in them.
    suspects: Vec<ArchetypeId>,
    reported: HashSet<ComponentId>,
}

impl Default for SeenArchetypes {
    fn default() -> Self {
        Self { generation: ArchetypeGeneration::initial(), suspects: Vec::new(), reported: HashSet::new() }
    }
}

/// Looks at archetypes that are new, and at the few from before that may matter one day.
pub(in crate::simulation) fn check_components(world: &mut World) -> Result {
    let mut contents = world.resource_mut::<RegionContents>();
    let components = contents.components.clone();
    let mut seen = std::mem::take(&mut contents.seen_archetypes);
    let archetypes = world.archetypes();
    let new = archetypes[seen.generation..].iter().map(Archetype::id);
    let candidates: Vec<_> = seen.suspects.drain(..).chain(new).collect();
    seen.generation = archetypes.generation();
    let mut lost = Vec::new();
    for id in candidates {
        let Some(archetype) = archetypes.get(id) else { continue };
        if !could_travel(world, &components, archetype) {
            continue;
        }
        let mut unknown = unknown_components(world, &components, archetype);
        unknown.retain(|component| !seen.reported.contains(component));
        if unknown.is_empty() {
            continue;
        }
        match can_travel(world, &components, archetype) {
            true => {
                seen.reported.extend(&unknown);
                lost.extend(unknown);
            }
            false => seen.suspects.push(id),
        }
    }
    let observed = world.components().component_id::<ObservedBy>();
    if let Some(place) = lost.iter().position(|id| Some(*id) == observed) {
        lost.swap_remove(place);
        warn!(
            "observers of an entity stay behind when it moves: observe it again when EntityMoved is triggered for it"
        );
    }
    let name = |id| world.components().get_info(id).map(|info| info.name().to_string());
    let mut components: Vec<_> = lost.into_iter().filter_map(name).collect();
    components.sort_unstable();
    world.resource_mut::<RegionContents>().seen_archetypes = seen;
    match components.is_empty() {
        true => Ok(()),
        false => Err(UnregisteredComponents { components }.into()),
    }
}

fn unknown_components(world: &World, components: &RegionComponents, archetype: &Archetype) -> Vec<ComponentId> {
    let unknown = |id: &ComponentId| !components.knows(*id, world.components());
    archetype.components().iter().copied().filter(unknown).collect()
}

/// Whether its components allow for it: a position, or something that it hangs on.
fn could_travel(world: &World, components: &RegionComponents, archetype: &Archetype) -> bool {
    let linked = components.relationships.iter().filter(|relationship| relationship.linked);
    let types = linked.map(|relationship| relationship.type_id).chain([TypeId::of::<Position>()]);
    types.filter_map(|it| world.components().get_valid_id(it)).any(|id| archetype.contains(id))
}

fn can_travel(world: &World, components: &RegionComponents, archetype: &Archetype) -> bool {
    let position = world.components().component_id::<Position>();
    if position.is_some_and(|position| archetype.contains(position)) {
        return !archetype.is_empty();
    }
    let mut entities = archetype.entities().iter().map(ArchetypeEntity::id);
    entities.any(|entity| place(world, components, entity).is_some())
}
