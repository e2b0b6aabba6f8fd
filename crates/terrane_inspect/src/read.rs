//! The answers of a region about its entities.

use crate::value::{Left, Value, reflection};
use crate::{BUDGET, InspectError};
use bevy::ecs::component::{ComponentId, ComponentInfo};
use bevy::ecs::reflect::AppTypeRegistry;
use bevy::prelude::*;
use bevy::reflect::TypeRegistry;
use bevy_terrane::region::RegionId;
use bevy_terrane::simulation::{Position, RegionInfo, StableId};
use bevy_terrane::space::{BlockPos, DimensionId};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Instant;
use uuid::Uuid;

/// The entities of a page, the kinds of entities of a list, and the characters of a name and of a kind.
const MOST_FOUND: usize = 256;
const MOST_KINDS: usize = 64;
const MOST_CHARACTERS: usize = 256;
const MOST_OF_KIND: usize = 64;
/// The number of entities after which the time is looked at.
const STEP: usize = 64;

/// Which entities are listed: those that match all of it. The default matches all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// A part of the `Name`; empty for all entities, also those without a name. Upper and lower case are the same.
    pub name: String,
    /// A part of the type path of one of its components, or of the type's name in Rust if it is not registered; empty for all.
    pub component: String,
    /// A place and the greatest distance from it along each axis, in blocks.
    pub near: Option<(BlockPos, u64)>,
}

/// Where the next page of a list begins. While entities appear, go or change their components between two pages, some may be missing
/// or come twice. In another region than that of the last page, a list begins anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    region: RegionId,
    archetype: usize,
    row: usize,
}

impl Cursor {
    /// The cursor as numbers, for a client that gives them back with its next question.
    pub fn to_numbers(self) -> [u64; 3] {
        [self.region.index(), self.archetype as u64, self.row as u64]
    }

    /// The cursor with these numbers. If no cursor has had them, a list begins anew, or at another entity.
    pub fn from_numbers([region, archetype, row]: [u64; 3]) -> Self {
        let place = |number| usize::try_from(number).unwrap_or(usize::MAX);
        Self { region: RegionId::new(region), archetype: place(archetype), row: place(row) }
    }
}

/// A page of a list of entities.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing {
    /// The region that has answered: the one that was asked, or the one that has its ground now.
    pub region: RegionId,
    /// Its dimension.
    pub dimension: DimensionId,
    /// The number of ticks that it has run.
    pub tick: u64,
    /// The kinds of entities in the region, the most frequent first, at most 64. On the first page only.
    pub archetypes: Vec<ArchetypeLook>,
    /// The entities that match the filter. There may be none, although a page follows.
    pub entities: Vec<Found>,
    /// Where the next page begins; `None` if this is the last one.
    pub next: Option<Cursor>,
}

/// One kind of entities: those with the same components.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchetypeLook {
    /// The names of the components, without their modules, sorted.
    pub components: Vec<String>,
    /// The number of entities with a stable id.
    pub entities: usize,
}

/// An entity in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Its stable id.
    pub id: Uuid,
    /// The first 256 characters of its name, if it has one.
    pub name: Option<String>,
    /// The names of the game's own components, without their modules, sorted, at most 64 characters. Components of crates whose names
    /// begin with `bevy` do not count.
    pub kind: Arc<str>,
    /// Its position, if it has one of its own.
    pub position: Option<Position>,
}

/// An entity with its components.
#[derive(Debug)]
pub struct EntityLook {
    /// Its stable id.
    pub id: Uuid,
    /// The first 256 characters of its name, if it has one.
    pub name: Option<String>,
    /// The region that it is in.
    pub region: RegionId,
    /// The dimension of that region.
    pub dimension: DimensionId,
    /// The number of ticks that the region has run.
    pub tick: u64,
    /// Its components, by type path.
    pub components: Vec<ComponentLook>,
}

/// A component.
#[derive(Debug)]
pub struct ComponentLook {
    /// Its type path.
    pub name: String,
    /// The bytes that it takes in its table, without what it points to.
    pub size: usize,
    /// `true` if the game's systems can change it in place.
    pub is_mutable: bool,
    /// Its value.
    pub value: Value,
}

/// Lists the entities of a region.
pub fn list(world: &World, filter: &Filter, after: Option<Cursor>) -> Listing {
    let began = Instant::now();
    let RegionInfo { region, dimension, ticks, .. } = *world.resource::<RegionInfo>();
    let after = after.filter(|after| after.region == region);
    let archetypes = if after.is_none() { kinds(world) } else { Vec::new() };
    let mut listing = Listing { region, dimension, tick: ticks, archetypes, entities: Vec::new(), next: None };
    let Some(id) = world.component_id::<StableId>() else { return listing };
    let Cursor { archetype: first, row, .. } = after.unwrap_or(Cursor { region, archetype: 0, row: 0 });
    let types = world.resource::<AppTypeRegistry>().read();
    let wanted = filter.name.to_lowercase();
    let mut looked = 0_usize;
    for (number, archetype) in world.archetypes().iter().enumerate().skip(first) {
        if !archetype.contains(id) {
            continue;
        }
        looked += 1;
        if number > first && looked > STEP && began.elapsed() > BUDGET {
            listing.next = Some(Cursor { region, archetype: number, row: 0 });
            return listing;
        }
        if !has_component(world, &types, archetype.components(), &filter.component) {
            continue;
        }
        let kind = kind_of(world, &types, archetype.components());
        let begin = if number == first { row } else { 0 };
        for (row, entity) in archetype.entities().iter().enumerate().skip(begin) {
            looked += 1;
            let is_late = looked.is_multiple_of(STEP) && began.elapsed() > BUDGET;
            if listing.entities.len() >= MOST_FOUND || is_late {
                listing.next = Some(Cursor { region, archetype: number, row });
                return listing;
            }
            let Ok(entity) = world.get_entity(entity.id()) else { continue };
            listing.entities.extend(found(&entity, &kind, filter, &wanted));
        }
    }
    listing
}

/// The entity, if it matches the filter.
fn found(entity: &EntityRef, kind: &Arc<str>, filter: &Filter, wanted: &str) -> Option<Found> {
    let (name, position) = (entity.get::<Name>(), entity.get::<Position>().copied());
    if !wanted.is_empty() && !name.is_some_and(|name| name.to_lowercase().contains(wanted)) {
        return None;
    }
    if let Some((place, reach)) = filter.near {
        let BlockPos { x, y, z } = position?.block;
        let distances = [x.abs_diff(place.x), y.abs_diff(place.y), z.abs_diff(place.z)];
        if distances.into_iter().any(|distance| distance > reach) {
            return None;
        }
    }
    Some(Found { id: entity.get::<StableId>()?.0, name: name.map(beginning), kind: kind.clone(), position })
}

fn beginning(name: &Name) -> String {
    name.chars().take(MOST_CHARACTERS).collect()
}

fn has_component(world: &World, types: &TypeRegistry, components: &[ComponentId], part: &str) -> bool {
    let infos = || components.iter().filter_map(|id| world.components().get_info(*id));
    part.is_empty() || infos().any(|info| path_of(types, info).contains(part))
}

/// The names of the components that the game defines.
fn kind_of(world: &World, types: &TypeRegistry, components: &[ComponentId]) -> Arc<str> {
    let infos = components.iter().filter_map(|id| world.components().get_info(*id));
    let own = infos.filter(|info| !path_of(types, info).starts_with("bevy"));
    let mut names: Vec<String> = own.map(|info| info.name().shortname().to_string()).collect();
    names.sort();
    names.join(", ").chars().take(MOST_OF_KIND).collect::<String>().into()
}

/// The component's type path, or the type's name in Rust if it is not registered.
fn path_of<'a>(types: &'a TypeRegistry, info: &ComponentInfo) -> Cow<'a, str> {
    match info.type_id().and_then(|of| types.get(of)) {
        Some(known) => known.type_info().type_path().into(),
        None => info.name().to_string().into(),
    }
}

/// The kinds of entities with a stable id.
fn kinds(world: &World) -> Vec<ArchetypeLook> {
    let Some(id) = world.component_id::<StableId>() else { return Vec::new() };
    let mut found: Vec<_> =
        world.archetypes().iter().filter(|archetype| archetype.contains(id) && !archetype.is_empty()).collect();
    found.sort_by_key(|archetype| Reverse(archetype.len()));
    found.truncate(MOST_KINDS);
    let look = |archetype: &bevy::ecs::archetype::Archetype| {
        let infos = archetype.components().iter().filter_map(|id| world.components().get_info(*id));
        let mut components: Vec<String> = infos.map(|info| info.name().shortname().to_string()).collect();
        components.sort();
        ArchetypeLook { components, entities: archetype.len() as usize }
    };
    found.into_iter().map(look).collect()
}

/// Reads an entity with its components.
pub fn look(entity: &EntityWorldMut) -> Result<EntityLook, InspectError> {
    let began = Instant::now();
    let world = entity.world();
    let RegionInfo { region, dimension, ticks, .. } = *world.resource::<RegionInfo>();
    let (id, name) = (entity.get::<StableId>().map_or_else(Uuid::nil, |id| id.0), entity.get::<Name>().map(beginning));
    let types = world.resource::<AppTypeRegistry>().read();
    let mut left = Left::default();
    let infos = entity.archetype().components().iter().filter_map(|id| world.components().get_info(*id));
    let mut components: Vec<_> = infos
        .map(|info| {
            let name = path_of(&types, info).into_owned();
            let known = reflection(&types, &name);
            let value = match known.as_ref().and_then(|known| known.reflect(entity)) {
                Some(_) if left.needs_time() && began.elapsed() > BUDGET => Value::NotRead,
                Some(value) => left.copy(value.as_partial_reflect()),
                None => Value::Unknown,
            };
            ComponentLook { name, size: info.layout().size(), is_mutable: info.mutable(), value }
        })
        .collect();
    components.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(EntityLook { id, name, region, dimension, tick: ticks, components })
}
