//! Entities as they are stored: out of a region world, and back.

use super::components::{RegionComponents, Stored, UnclaimedComponents};
use super::entities::{EntityIndex, StableId};
use crate::simulation::{Position, Viewer};
use crate::storage::{ChildRecord, EntityRecord};
use bevy::platform::collections::HashSet;
use bevy::prelude::*;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The entity with its children as it is stored, if any of their components is. What hangs on a parent is stored with
/// the parent only.
pub fn record(world: &World, components: &RegionComponents, entity: Entity) -> Option<EntityRecord> {
    let entity = world.get_entity(entity).ok().filter(|entity| !entity.contains::<ChildOf>())?;
    let (id, position) = (entity.get::<StableId>()?, entity.get::<Position>()?);
    let saved = saved_components(components, entity);
    let children = children(world, components, entity);
    (!saved.is_empty() || !children.is_empty()).then(|| EntityRecord {
        id: id.0,
        dimension: position.dimension,
        block: position.block,
        offset: position.offset.to_array(),
        viewer: entity.get::<Viewer>().map(Viewer::record),
        components: saved,
        children,
    })
}

fn saved_components(components: &RegionComponents, entity: EntityRef) -> Vec<(String, Vec<u8>)> {
    let mut saved = components.encode(entity);
    if let Some(unclaimed) = entity.get::<UnclaimedComponents>() {
        saved.extend(unclaimed.0.iter().cloned());
    }
    saved
}

/// The entity and all below it, each with its parent's place in the list and after that.
pub fn family<'w>(world: &'w World, root: EntityRef<'w>) -> Vec<(usize, EntityRef<'w>)> {
    let mut seen = HashSet::from([root.id()]);
    let mut found = vec![(0, root)];
    let mut place = 0;
    while let Some((_, entity)) = found.get(place).copied() {
        let children = entity.get::<Children>().into_iter().flatten();
        let children = children.filter_map(|child| world.get_entity(*child).ok());
        found.extend(children.filter(|child| seen.insert(child.id())).map(|child| (place, child)));
        place += 1;
    }
    found
}

/// All below the entity that is saved, or has something below it that is.
fn children(world: &World, components: &RegionComponents, root: EntityRef) -> Vec<ChildRecord> {
    if !root.contains::<Children>() {
        return Vec::new();
    }
    let family = family(world, root);
    let mut found: Vec<_> = family.iter().skip(1).map(|(_, child)| child_record(components, *child)).collect();
    // Of the root too, which says nothing.
    let mut wanted = vec![false; family.len()];
    for (place, (parent, _)) in family.iter().enumerate().skip(1).rev() {
        wanted[place] |= !found[place - 1].components.is_empty();
        wanted[*parent] |= wanted[place];
    }
    // The places once the others are left out.
    let mut places = vec![None; family.len()];
    for (kept, place) in (1..family.len()).filter(|place| wanted[*place]).enumerate() {
        places[place] = u32::try_from(kept).ok();
        found[place - 1].parent = places[family[place].0];
    }
    found.into_iter().zip(wanted.into_iter().skip(1)).filter(|(_, wanted)| *wanted).map(|(child, _)| child).collect()
}

fn child_record(components: &RegionComponents, child: EntityRef) -> ChildRecord {
    let position = child.get::<Position>();
    ChildRecord {
        parent: None,
        id: child.get::<StableId>().map(|id| id.0),
        place: position.map(|position| (position.dimension, position.block, position.offset.to_array())),
        viewer: child.get::<Viewer>().map(Viewer::record),
        components: saved_components(components, child),
    }
}

/// Spawns an entity with its children as it is stored.
pub fn spawn_stored(world: &mut World, components: &RegionComponents, record: EntityRecord) {
    if world.resource::<EntityIndex>().entity(record.id).is_some() {
        return;
    }
    let content = content(&record);
    let viewer = record.viewer.map(Viewer::from);
    let EntityRecord { id, dimension, block, offset, components: saved, children, .. } = record;
    let position = Position { dimension, block, offset: Vec3::from_array(offset) };
    let root = world.spawn((StableId(id), position, Stored { content, structure: None })).id();
    let describe = format!("entity {id} in {}", block.column());
    restore(world, components, (root, &describe), viewer, saved);
    let mut spawned: Vec<Option<Entity>> = Vec::with_capacity(children.len());
    for child in children {
        let parent = match child.parent {
            None => Some(root),
            Some(place) => spawned.get(place as usize).copied().flatten(),
        };
        let taken = child.id.is_some_and(|id| world.resource::<EntityIndex>().entity(id).is_some());
        // Who has become independent meanwhile has a newer record of its own.
        let Some(parent) = parent.filter(|_| !taken) else {
            spawned.push(None);
            continue;
        };
        spawned.push(Some(spawn_child(world, components, (parent, &describe), child)));
    }
}

fn spawn_child(
    world: &mut World,
    components: &RegionComponents,
    (parent, describe): (Entity, &str),
    child: ChildRecord,
) -> Entity {
    let mut entity = world.spawn_empty();
    if let Some(id) = child.id {
        entity.insert(StableId(id));
    }
    if let Some((dimension, block, offset)) = child.place {
        entity.insert(Position { dimension, block, offset: Vec3::from_array(offset) });
    }
    let entity = entity.id();
    let viewer = child.viewer.map(Viewer::from);
    restore(world, components, (entity, describe), viewer, child.components);
    // A hook may have despawned either.
    if world.entities().contains_spawned(parent)
        && let Ok(mut entity) = world.get_entity_mut(entity)
    {
        entity.insert(ChildOf(parent));
    }
    entity
}

fn restore(
    world: &mut World,
    components: &RegionComponents,
    (entity, describe): (Entity, &str),
    viewer: Option<Viewer>,
    saved: Vec<(String, Vec<u8>)>,
) {
    let Ok(mut entity) = world.get_entity_mut(entity) else { return };
    if let Some(viewer) = viewer {
        entity.insert(viewer);
    }
    let mut unclaimed = Vec::new();
    for (name, bytes) in saved {
        if entity.is_despawned() {
            return;
        }
        if let Err(reason) = components.decode(&mut entity, &name, &bytes) {
            error!("{describe}: {reason}; the stored value is kept");
            unclaimed.push((name, bytes));
        }
    }
    if !unclaimed.is_empty() && !entity.is_despawned() {
        entity.insert(UnclaimedComponents(unclaimed));
    }
}

/// A hash of all that is stored of an entity.
pub fn content(record: &EntityRecord) -> u64 {
    let EntityRecord { id, dimension, block, offset, viewer, components, children } = record;
    let mut hasher = DefaultHasher::new();
    (id, dimension, block, offset.map(f32::to_bits), viewer, components).hash(&mut hasher);
    for child in children {
        let place = child.place.map(|(dimension, block, offset)| (dimension, block, offset.map(f32::to_bits)));
        (child.parent, child.id, place, child.viewer, &child.components).hash(&mut hasher);
    }
    hasher.finish()
}
