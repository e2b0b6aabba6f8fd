//! How entities and columns get from one region world into another, and out of the store.

use super::block_ticks::BlockTicks;
use super::blocks::RegionColumns;
use super::components::{Stored, UnclaimedComponents};
use super::entities::{EntityIndex, Migration, StableId};
use super::mail::Part;
use super::post::{Post, Waiting};
use super::receive::take_in;
use super::world::RegionState;
use super::{Inbox, Letter, LoadedColumn, Position, RegionComponents, RegionWorld, Traveller, Viewer};
use crate::chunk::Column;
use crate::region::RegionId;
use crate::space::{ColumnPos, SectionPos};
use crate::storage::EntityRecord;
use bevy::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::mem;
use uuid::Uuid;

/// Moves everything from `other` into `world`.
pub(super) fn absorb(world: &mut World, mut other: RegionWorld) {
    let source = other.app.world_mut();
    let columns = mem::take(&mut *source.resource_mut::<RegionColumns>());
    let waiting = mem::take(&mut *source.resource_mut::<Waiting>());
    let roots = roots(source, |_| true);
    let travellers = depart_all(source, roots);
    let mut despawned = mem::take(&mut source.resource_mut::<EntityIndex>().despawned);
    despawned.extend(mem::take(&mut source.resource_mut::<RegionState>().despawned));
    world.resource_mut::<RegionState>().despawned.extend(despawned);
    world.resource_mut::<RegionColumns>().append(columns);
    let ticks = mem::take(&mut *source.resource_mut::<BlockTicks>());
    world.resource_mut::<BlockTicks>().append(ticks);
    arrive_all(world, travellers);
    world.resource_mut::<Waiting>().append(waiting);
    let sent = source.resource_mut::<Post>().take();
    world.resource_mut::<Post>().append(sent);
}

/// Hands over what lies in the parts' sections. Everything unsaved was handed out before.
pub(super) fn split(world: &mut World, parts: &[Part], shift: u32) -> Vec<(RegionId, Inbox)> {
    let split_off = |part: &Part| {
        let sections: FxHashSet<SectionPos> = part.sections.iter().copied().collect();
        let wanted = |column: ColumnPos| sections.contains(&column.section(shift));
        let leaving = roots(world, |position| wanted(position.column()));
        let travellers = depart_all(world, leaving);
        let mut owned = world.resource_mut::<RegionColumns>();
        owned.sections.retain(|section| !sections.contains(section));
        let columns: Vec<_> = owned.split_off(wanted).collect();
        let mut ticks = world.resource_mut::<BlockTicks>();
        let loaded = |column: Column| LoadedColumn { block_ticks: ticks.take_column(column.pos()), ..column.into() };
        let columns = columns.into_iter().map(loaded).collect();
        let RegionState { clock, period, .. } = *world.resource::<RegionState>();
        let leaves = |letter: &Letter| letter.column().is_some_and(|(_, column)| wanted(column));
        let letters = world.resource_mut::<Waiting>().take_out(clock, period, leaves);
        (part.region, Inbox { travellers, columns, letters, ..Inbox::default() })
    };
    parts.iter().map(split_off).collect()
}

/// The entities that travel by themselves, sorted by their stable ids: those with a position and no parent.
pub(super) fn roots(world: &mut World, wanted: impl Fn(&Position) -> bool) -> Vec<Entity> {
    let mut query = world.query_filtered::<(Entity, &StableId, &Position), Without<ChildOf>>();
    let mut found: Vec<_> =
        query.iter(world).filter(|(.., position)| wanted(position)).map(|(entity, id, _)| (*id, entity)).collect();
    found.sort_unstable();
    found.into_iter().map(|(_, entity)| entity).collect()
}

/// The entity and all below it.
pub(super) fn family(world: &World, entity: Entity) -> Vec<Entity> {
    let mut found = vec![entity];
    let mut next = 0;
    while let Some(entity) = found.get(next) {
        found.extend(world.get::<Children>(*entity).into_iter().flatten());
        next += 1;
    }
    found
}

/// Takes entities with all below them out of the world.
pub(super) fn depart_all(world: &mut World, entities: Vec<Entity>) -> Vec<Traveller> {
    if entities.is_empty() {
        return Vec::new();
    }
    world.insert_resource(Migration);
    let components = world.resource::<RegionState>().components.clone();
    let mut travellers: Vec<_> = entities.into_iter().filter_map(|entity| depart(world, &components, entity)).collect();
    world.remove_resource::<Migration>();
    take_letters_along(world, &mut travellers);
    travellers
}

/// What waits for an entity goes where it goes.
fn take_letters_along(world: &mut World, travellers: &mut [Traveller]) {
    let RegionState { clock, period, .. } = *world.resource::<RegionState>();
    let mut waiting = world.resource_mut::<Waiting>();
    if waiting.is_empty() {
        return;
    }
    let roots: FxHashMap<Uuid, usize> =
        travellers.iter().enumerate().flat_map(|(root, it)| it.ids().into_iter().map(move |id| (id, root))).collect();
    let root = |letter: &Letter| letter.entity().and_then(|id| roots.get(&id).copied());
    for letter in waiting.take_out(clock, period, |letter| root(letter).is_some()) {
        if let Some(traveller) = root(&letter).and_then(|root| travellers.get_mut(root)) {
            traveller.letters.push(letter);
        }
    }
}

fn depart(world: &mut World, components: &RegionComponents, entity: Entity) -> Option<Traveller> {
    let record = record(world, components, entity);
    let position = world.get::<Position>(entity).copied();
    let id = world.get::<StableId>(entity).map_or(Uuid::nil(), |id| id.0);
    let mut viewers: Vec<_> = world.get::<Viewer>(entity).map(|viewer| (id, viewer.radius)).into_iter().collect();
    let children: Vec<Entity> = world.get::<Children>(entity).into_iter().flatten().copied().collect();
    let children: Vec<_> = children.into_iter().filter_map(|child| depart(world, components, child)).collect();
    viewers.extend(children.iter().flat_map(|child| &child.viewers));
    let mut left_behind = Vec::new();
    let mut leaving = world.get_entity_mut(entity).ok()?;
    let taken = components.take_all(&mut leaving, |name| left_behind.push(name));
    leaving.despawn();
    let mut state = world.resource_mut::<RegionState>();
    state.mirrored.remove(&id);
    state.viewers.remove(&id);
    for name in left_behind {
        if state.left_behind.insert(name.clone()) {
            warn!("component {name} was lost as its entity moved between regions: register_region_component for it");
        }
    }
    let has_position = position.is_some();
    let position = position.unwrap_or_default();
    Some(Traveller { id, position, has_position, viewers, record, letters: Vec::new(), components: taken, children })
}

/// Puts entities with all below them into the world.
pub(super) fn arrive_all(world: &mut World, travellers: Vec<Traveller>) {
    if travellers.is_empty() {
        return;
    }
    world.insert_resource(Migration);
    let components = world.resource::<RegionState>().components.clone();
    let mut letters = Vec::new();
    for mut traveller in travellers {
        letters.append(&mut traveller.letters);
        world.resource_mut::<RegionState>().viewers.extend(traveller.viewers.iter().map(|(id, _)| *id));
        arrive(world, &components, traveller, None);
    }
    world.remove_resource::<Migration>();
    take_in(world, letters);
}

fn arrive(world: &mut World, components: &RegionComponents, traveller: Traveller, parent: Option<Entity>) {
    let mut entity = world.spawn_empty();
    if traveller.has_position {
        entity.insert((StableId(traveller.id), traveller.position));
    } else if !traveller.id.is_nil() {
        entity.insert(StableId(traveller.id));
    }
    components.insert_all(&mut entity, traveller.components);
    if let Some(parent) = parent {
        entity.insert(ChildOf(parent));
    }
    let entity = entity.id();
    for child in traveller.children {
        arrive(world, components, child, Some(entity));
    }
}

/// The entity as it is stored, if any of its components is. What hangs on a parent is not stored.
pub(super) fn record(world: &World, components: &RegionComponents, entity: Entity) -> Option<EntityRecord> {
    let entity = world.get_entity(entity).ok().filter(|entity| !entity.contains::<ChildOf>())?;
    let (id, position) = (entity.get::<StableId>()?, entity.get::<Position>()?);
    let mut saved = components.encode(entity);
    if let Some(unclaimed) = entity.get::<UnclaimedComponents>() {
        saved.extend(unclaimed.0.iter().cloned());
    }
    (!saved.is_empty()).then(|| EntityRecord {
        id: id.0,
        dimension: position.dimension,
        block: position.block,
        offset: position.offset.to_array(),
        viewer_radius: entity.get::<Viewer>().map(|viewer| viewer.radius),
        components: saved,
    })
}

/// Spawns an entity as it is stored.
pub(super) fn spawn_stored(world: &mut World, components: &RegionComponents, record: EntityRecord) {
    if world.resource::<EntityIndex>().entity(record.id).is_some() {
        return;
    }
    let position =
        Position { dimension: record.dimension, block: record.block, offset: Vec3::from_array(record.offset) };
    let mut entity = world.spawn((StableId(record.id), position, Stored));
    if let Some(radius) = record.viewer_radius {
        entity.insert(Viewer::new().with_radius(radius));
    }
    let mut unclaimed = Vec::new();
    for (name, bytes) in record.components {
        if let Err(reason) = components.decode(&mut entity, &name, &bytes) {
            error!("entity {} in {}: {reason}; the stored value is kept", record.id, record.block.column());
            unclaimed.push((name, bytes));
        }
    }
    if !unclaimed.is_empty() {
        entity.insert(UnclaimedComponents(unclaimed));
    }
}
