//! What a region holds besides columns and entities, when regions merge and split.

use super::mapping::{Arrived, BoxedComponent, Mapping};
use crate::region::{RegionId, RegionPart};
use crate::space::{BlockPos, ColumnPos, SectionPos};
use bevy::ecs::component::Mutable;
use bevy::ecs::entity::EntityMapper;
use bevy::prelude::*;
use rustc_hash::FxHashSet;
use std::any::TypeId;

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

/// What can be done with one type of resource without knowing it.
#[derive(Clone, Copy)]
pub struct ResourceFunctions {
    pub type_id: TypeId,
    /// Takes out the whole of it, or what it gives to a share.
    take: fn(&mut World, Option<&RegionShare>) -> Option<BoxedComponent>,
    split: fn(&mut BoxedComponent, &RegionShare) -> Option<BoxedComponent>,
    settle: fn(&mut World, BoxedComponent, &mut Mapping),
}

impl ResourceFunctions {
    pub fn of<R: RegionResource>() -> Self {
        Self {
            type_id: TypeId::of::<R>(),
            take: |world, share| {
                let taken = match share {
                    Some(share) => world.get_resource_mut::<R>().map(|mut resource| resource.split(share)),
                    None => world.remove_resource::<R>(),
                };
                taken.map(|resource| Box::new(resource) as BoxedComponent)
            },
            split: |value, share| Some(Box::new(value.downcast_mut::<R>()?.split(share))),
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

/// A resource of a region, or what a split hands over of it, on its way.
pub struct ResourcePart {
    functions: ResourceFunctions,
    /// The move that its references to entities are part of.
    origin: u64,
    value: BoxedComponent,
}

impl ResourcePart {
    /// What it gives to the share.
    pub fn split(&mut self, share: &RegionShare) -> Option<Self> {
        let value = (self.functions.split)(&mut self.value, share)?;
        Some(Self { value, ..*self })
    }

    /// Makes it the world's own.
    pub fn settle(self, world: &mut World, arrived: &Arrived) {
        (self.functions.settle)(world, self.value, &mut Mapping { origin: self.origin, arrived });
    }
}

/// Takes these resources out of a world that ends, or what they give to a share.
pub fn take_resources(
    world: &mut World,
    resources: &[ResourceFunctions],
    origin: u64,
    share: Option<&RegionShare>,
) -> Vec<ResourcePart> {
    let take = |functions: &ResourceFunctions| {
        Some(ResourcePart { functions: *functions, origin, value: (functions.take)(world, share)? })
    };
    resources.iter().filter_map(take).collect()
}
