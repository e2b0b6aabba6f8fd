//! Reports components that would be lost on a journey, before the first journey.

use crate::simulation::components::RegionComponents;
use crate::simulation::components::followers::place;
use crate::simulation::position::Position;
use crate::simulation::template_error::RegionTemplateError;
use bevy::ecs::archetype::{Archetype, ArchetypeEntity, ArchetypeGeneration, ArchetypeId};
use bevy::ecs::component::ComponentId;
use bevy::ecs::observer::ObservedBy;
use bevy::platform::collections::HashSet;
use bevy::prelude::*;
use std::any::TypeId;

/// The archetypes that have been checked already.
#[derive(Debug)]
pub struct SeenArchetypes {
    generation: ArchetypeGeneration,
    /// Archetypes with unknown components in which no entity that can travel has been seen yet.
    suspects: Vec<ArchetypeId>,
    reported: HashSet<ComponentId>,
}

impl Default for SeenArchetypes {
    fn default() -> Self {
        Self { generation: ArchetypeGeneration::initial(), suspects: Vec::new(), reported: HashSet::new() }
    }
}

impl SeenArchetypes {
    /// Checks new archetypes, and the few older ones that may still matter. Returns the components that would be lost, each only
    /// once.
    pub fn look(&mut self, world: &World, components: &RegionComponents) -> Option<RegionTemplateError> {
        let archetypes = world.archetypes();
        let new = archetypes[self.generation..].iter().map(Archetype::id);
        let candidates: Vec<_> = self.suspects.drain(..).chain(new).collect();
        self.generation = archetypes.generation();
        let mut lost = Vec::new();
        for id in candidates {
            let Some(archetype) = archetypes.get(id).filter(|it| could_travel(world, components, it)) else { continue };
            let mut unknown = unknown_components(world, components, archetype);
            unknown.retain(|component| !self.reported.contains(component));
            if unknown.is_empty() {
                continue;
            }
            match can_travel(world, components, archetype) {
                true => {
                    self.reported.extend(&unknown);
                    lost.extend(unknown);
                }
                false => self.suspects.push(id),
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
        (!components.is_empty()).then_some(RegionTemplateError::UnregisteredComponents(components))
    }
}

fn unknown_components(world: &World, components: &RegionComponents, archetype: &Archetype) -> Vec<ComponentId> {
    let unknown = |id: &ComponentId| !components.knows(*id, world.components());
    archetype.components().iter().copied().filter(unknown).collect()
}

/// Returns `true` if an entity of the archetype can travel: by a position, or by following another entity.
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
