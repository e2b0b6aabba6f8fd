//! What a region holds besides columns and entities, when regions merge and split.

use super::arrival::{Arrived, Mapping};
use crate::region::{RegionId, RegionPart};
use crate::simulation::{Inbox, RegionComponents};
use crate::space::{BlockPos, ColumnPos, SectionPos};
use bevy::ecs::component::Mutable;
use bevy::ecs::entity::EntityMapper;
use bevy::prelude::*;
use rustc_hash::FxHashSet;
use std::any::{Any, TypeId, type_name};

/// A resource of region worlds that is joined when regions merge and divided when they split.
///
/// It is registered with `register_region_resource`.
///
/// What the region plugins insert into every new region world is merged like any other value, so it should be empty.
pub trait RegionResource: Resource + Component<Mutability = Mutable> + Sized {
    /// Takes in the value of a region that merged into this one, or a part that a split handed to this one.
    fn merge(&mut self, other: Self);

    /// Gives away what belongs to the part of the region that becomes another region.
    fn split(&mut self, part: &RegionShare) -> Self;

    /// Maps the references to entities in the value that arrives. One to an entity that did not move along becomes
    /// `Entity::PLACEHOLDER`.
    fn map_references<M: EntityMapper>(&mut self, mapper: &mut M) {
        Self::map_entities(self, mapper);
    }
}

/// The part of a splitting region that becomes a region of its own, or a part of another one.
#[derive(Clone, Debug)]
pub struct RegionShare {
    region: RegionId,
    sections: FxHashSet<SectionPos>,
    section_shift: u32,
}

impl RegionShare {
    /// The share that is this part; `section_shift` is columns to a section, as a power of two.
    pub(crate) fn new(part: &RegionPart, section_shift: u32) -> Self {
        Self { region: part.id, sections: part.sections.iter().copied().collect(), section_shift }
    }

    /// The region that takes over.
    pub fn region(&self) -> RegionId {
        self.region
    }

    /// Whether the column goes.
    pub fn contains(&self, column: ColumnPos) -> bool {
        self.sections.contains(&column.section(self.section_shift))
    }

    /// Whether the block's column goes.
    pub fn contains_block(&self, block: BlockPos) -> bool {
        self.contains(block.column())
    }
}

type BoxedResource = Box<dyn Any + Send + Sync>;

/// What can be done with one type of resource without knowing it.
#[derive(Clone, Copy)]
pub(in crate::simulation) struct ResourceFunctions {
    pub type_id: TypeId,
    name: &'static str,
    take: fn(&mut World) -> Option<BoxedResource>,
    split: fn(&mut World, &RegionShare) -> Option<BoxedResource>,
    split_value: fn(&mut BoxedResource, &RegionShare) -> Option<BoxedResource>,
    settle: fn(&mut World, BoxedResource, &mut Mapping),
}

impl ResourceFunctions {
    pub fn of<R: RegionResource>() -> Self {
        Self {
            type_id: TypeId::of::<R>(),
            name: type_name::<R>(),
            take: |world| world.remove_resource::<R>().map(|resource| Box::new(resource) as BoxedResource),
            split: |world, share| {
                let mut resource = world.get_resource_mut::<R>()?;
                Some(Box::new(resource.split(share)))
            },
            split_value: |value, share| Some(Box::new(value.downcast_mut::<R>()?.split(share))),
            settle: |world, value, mapping| {
                let Ok(mut value) = value.downcast::<R>() else { return };
                value.map_references(mapping);
                match world.get_resource_mut::<R>() {
                    Some(mut resource) => resource.merge(*value),
                    None => world.insert_resource(*value),
                }
            },
        }
    }
}

/// The part of a region's resource that a split hands over, on its way.
pub struct ResourcePart {
    functions: ResourceFunctions,
    /// The move that its references to entities are part of.
    origin: u64,
    value: BoxedResource,
}

impl std::fmt::Debug for ResourcePart {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("ResourcePart").field(&self.functions.name).finish()
    }
}

impl ResourcePart {
    pub(in crate::simulation) fn settle(self, world: &mut World, arrived: &Arrived) {
        (self.functions.settle)(world, self.value, &mut arrived.mapping(self.origin));
    }
}

impl Inbox {
    /// Divides the resources that wait: for a region that splits before it ever ticked.
    pub fn split_resources(&mut self, share: &RegionShare) -> Vec<ResourcePart> {
        let split = |part: &mut ResourcePart| {
            let value = (part.functions.split_value)(&mut part.value, share)?;
            Some(ResourcePart { value, ..*part })
        };
        self.resources.iter_mut().filter_map(split).collect()
    }
}

/// What the registered resources of the world give to the share.
pub(in crate::simulation) fn split_resources(
    world: &mut World,
    components: &RegionComponents,
    share: &RegionShare,
    origin: u64,
) -> Vec<ResourcePart> {
    let split = |functions: &ResourceFunctions| {
        Some(ResourcePart { functions: *functions, origin, value: (functions.split)(world, share)? })
    };
    components.resources.iter().filter_map(split).collect()
}

/// Takes the registered resources out of a world that ends.
pub(in crate::simulation) fn take_resources(
    world: &mut World,
    components: &RegionComponents,
    origin: u64,
) -> Vec<ResourcePart> {
    let take = |functions: &ResourceFunctions| {
        Some(ResourcePart { functions: *functions, origin, value: (functions.take)(world)? })
    };
    components.resources.iter().filter_map(take).collect()
}

/// Crates whose resources belong to a world and not to what is in it.
const NOT_OF_THE_GAME: &[&str] = &[
    "bevy_app",
    "bevy_asset",
    "bevy_camera",
    "bevy_diagnostic",
    "bevy_ecs",
    "bevy_input",
    "bevy_log",
    "bevy_math",
    "bevy_mesh",
    "bevy_platform",
    "bevy_reflect",
    "bevy_state",
    "bevy_tasks",
    "bevy_terrane",
    "bevy_time",
    "bevy_transform",
    "bevy_utils",
];

/// Names the resources of the game that stay with the world they are in, each once for the whole app.
pub(in crate::simulation) fn report_unregistered(world: &World, components: &RegionComponents) {
    let name = |id| {
        let info = world.components().get_info(id)?;
        let known = components.resources.iter().any(|known| Some(known.type_id) == info.type_id());
        let name = info.name().to_string();
        let of_the_game = !NOT_OF_THE_GAME.contains(&name.split("::").next()?);
        (of_the_game && !known).then_some(name)
    };
    let mut names: Vec<_> = world.resource_entities().iter().filter_map(|(id, _)| name(id)).collect();
    names.sort_unstable();
    let mut reported = components.reported_resources.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for name in names {
        if !reported.contains(&name) {
            info!(
                "resource {name} stays with the larger region when regions merge or split: register_region_resource \
                 joins and divides it"
            );
            reported.insert(name);
        }
    }
}
