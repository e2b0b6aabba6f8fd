//! The stored form of entities, and their saved components by stored name.

use crate::block::Schema;
use crate::simulation::components::mapping::{Arrived, BoxedComponent, ChangeClock, Mapping};
use crate::simulation::components::{RegionComponents, Stored, TakenComponent, UnclaimedComponents};
use crate::simulation::entities::{EntityIndex, StableId};
use crate::simulation::position::{Position, Viewer};
use crate::simulation::template_error::RegionTemplateError;
use crate::storage::{ChildRecord, EntityRecord};
use bevy::ecs::bundle::BundleScratch;
use bevy::platform::collections::HashSet;
use bevy::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::type_name;
use std::hash::{DefaultHasher, Hash, Hasher};
use uuid::Uuid;

/// The record of the entity with its children; `None` if none of their components is saved. A child is stored only with its
/// parent.
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

/// The entity and all its descendants, each after its parent and with the parent's index in the list.
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

/// All descendants of the entity that are saved themselves or have a saved descendant.
fn children(world: &World, components: &RegionComponents, root: EntityRef) -> Vec<ChildRecord> {
    if !root.contains::<Children>() {
        return Vec::new();
    }
    let family = family(world, root);
    let mut found: Vec<_> = family.iter().skip(1).map(|(_, child)| child_record(components, *child)).collect();
    // Index 0 is the root, whose value is unused.
    let mut wanted = vec![false; family.len()];
    for (place, (parent, _)) in family.iter().enumerate().skip(1).rev() {
        wanted[place] |= !found[place - 1].components.is_empty();
        wanted[*parent] |= wanted[place];
    }
    // The indices after the others are left out.
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

/// Spawns a stored entity with its children.
pub fn spawn_stored(world: &mut World, components: &RegionComponents, record: EntityRecord) {
    if world.resource::<EntityIndex>().entity(record.id).is_some() {
        return;
    }
    let stored = components.value(Stored { content: content(&record), structure: None });
    let EntityRecord { id, dimension, block, offset, viewer, components: saved, children } = record;
    let describe = format!("entity {id} in {}", block.column());
    let place = Some((dimension, block, offset));
    let root = ChildRecord { parent: None, id: Some(id), place, viewer, components: saved };
    let values_of_root = values(components, &describe, root).into_iter().chain(stored).collect();
    let root = spawn(world, components, Some(id), values_of_root);
    let mut spawned: Vec<Option<Entity>> = Vec::with_capacity(children.len());
    for child in children {
        let parent = match child.parent {
            None => Some(root),
            Some(place) => spawned.get(place as usize).copied().flatten(),
        };
        let taken = child.id.is_some_and(|id| world.resource::<EntityIndex>().entity(id).is_some());
        // A child that has become independent in the meantime has a newer record of its own.
        let Some(parent) = parent.filter(|_| !taken) else {
            spawned.push(None);
            continue;
        };
        let child = spawn(world, components, child.id, values(components, &describe, child));
        // A hook may have despawned either of them.
        if world.entities().contains_spawned(parent)
            && let Ok(mut entity) = world.get_entity_mut(child)
        {
            entity.insert(ChildOf(parent));
        }
        spawned.push(Some(child));
    }
}

/// The components of one entity of a record, without its stable id. Unreadable components are kept as they are.
fn values(components: &RegionComponents, describe: &str, record: ChildRecord) -> Vec<TakenComponent> {
    let ChildRecord { place, viewer, components: saved, .. } = record;
    let position = |(dimension, block, offset)| Position { dimension, block, offset: Vec3::from_array(offset) };
    let own = [
        place.and_then(|place| components.value(position(place))),
        viewer.and_then(|viewer| components.value(Viewer::from(viewer))),
    ];
    let mut values: Vec<TakenComponent> = own.into_iter().flatten().collect();
    let mut unclaimed = Vec::new();
    for (name, bytes) in saved {
        match components.decode(&name, &bytes) {
            Ok(value) => {
                // If a type was renamed and has two values, the later one counts.
                values.retain(|(number, ..)| *number != value.0);
                values.push(value);
            }
            Err(reason) => {
                error!("{describe}: {reason}; the stored value is kept");
                unclaimed.push((name, bytes));
            }
        }
    }
    if !unclaimed.is_empty() {
        values.extend(components.value(UnclaimedComponents(unclaimed)));
    }
    values
}

/// Spawns an entity. The stable id comes first, so that hooks and observers of the other components find the entity by it.
/// References in stored values do not lead to any entity any more.
fn spawn(world: &mut World, components: &RegionComponents, id: Option<Uuid>, values: Vec<TakenComponent>) -> Entity {
    let entity = match id {
        Some(id) => world.spawn(StableId(id)).id(),
        None => world.spawn_empty().id(),
    };
    let (mut scratch, arrived) = (BundleScratch::default(), Arrived::default());
    let mut mapping = Mapping { origin: 0, arrived: &arrived };
    let clock = ChangeClock { began: None, now: world.change_tick() };
    components.insert_all(world, (entity, values), &mut scratch, &mut mapping, clock);
    entity
}

/// A hash of the whole stored form of an entity.
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

/// A component that can be written to the store and read again, under its `TypePath`.
///
/// By default that path contains the path of the type's module. `#[type_path = "my_game"]` sets a path that survives renaming the
/// module. If the path has changed anyway, declare the old one with [`Schema::formerly`].
///
/// ```
/// use bevy::prelude::*;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Component, Serialize, Deserialize, TypePath)]
/// #[type_path = "my_game"]
/// struct Sheep {
///     hunger: u32,
/// }
/// assert_eq!(Sheep::type_path(), "my_game::Sheep");
/// ```
pub trait SavedComponent: Component + Serialize + DeserializeOwned + TypePath {}
impl<T: Component + Serialize + DeserializeOwned + TypePath> SavedComponent for T {}

/// A component type that the game saves.
pub struct SavedType {
    /// The type's path in Bevy.
    pub path: &'static str,
    /// The compiler's name of the type, which was the stored name in early worlds.
    compiler_name: &'static str,
    pub schema: Schema,
    /// The name under which new values are stored.
    pub name: String,
    pub encode: fn(EntityRef) -> Option<Result<Vec<u8>, postcard::Error>>,
    pub decode: fn(&[u8]) -> Result<BoxedComponent, postcard::Error>,
}

impl SavedType {
    pub fn of<T: SavedComponent>(schema: Schema) -> Self {
        // Version 0 has the plain name from before there were versions.
        let (path, compiler_name) = (T::type_path(), type_name::<T>());
        let name = match schema.version() {
            0 => path.to_owned(),
            version => format!("{path}@{version}"),
        };
        Self {
            path,
            compiler_name,
            schema,
            name,
            encode: |entity| entity.get::<T>().map(postcard::to_allocvec),
            decode: |bytes| Ok(Box::new(postcard::from_bytes::<T>(bytes)?)),
        }
    }

    /// Returns `true` if values of the type are or were stored under this path.
    pub fn is_called(&self, path: &str) -> bool {
        [self.path, self.compiler_name].into_iter().chain(self.schema.former_names()).any(|name| name == path)
    }

    /// Checks that all values under this stored name can be read, if they are of this type at all.
    pub fn check(&self, stored_name: &str) -> Result<(), RegionTemplateError> {
        let (path, stored) = split(stored_name);
        if !self.is_called(path) || self.schema.can_read(stored) {
            return Ok(());
        }
        Err(RegionTemplateError::SavedVersion { path: path.into(), stored, declared: self.schema.version() })
    }
}

/// The path and the version in the name of a stored component.
pub fn split(stored_name: &str) -> (&str, u32) {
    let parts = stored_name.rsplit_once('@');
    parts.and_then(|(path, version)| Some((path, version.parse().ok()?))).unwrap_or((stored_name, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Component, Serialize, Deserialize, TypePath)]
    #[type_path = "game"]
    struct Mob;

    const COMPILER_NAME: &str = "bevy_terrane::simulation::components::stored_entities::tests::Mob";

    #[test]
    fn a_version_is_part_of_the_name_unless_it_is_zero() {
        let name = |version| SavedType::of::<Mob>(Schema::new(version)).name;
        assert_eq!((split(&name(0)), split(&name(12))), (("game::Mob", 0), ("game::Mob", 12)));
        assert_eq!(name(0), "game::Mob");
        for odd in ["game::Mob<'@'>", "game::Mob@", "game::Mob@-1", "game::Mob@99999999999", ""] {
            assert_eq!(split(odd), (odd, 0));
        }
    }

    #[test]
    fn a_stored_type_of_an_unknown_version_is_named() {
        let schema = Schema::new(2).with_migration(1, |old| Ok(old.to_vec())).formerly("game::Beast");
        let mob = SavedType::of::<Mob>(schema);
        for fine in ["game::Mob@2", "game::Mob@1", "game::Beast@1", &format!("{COMPILER_NAME}@1"), "game::Other@7"] {
            assert_eq!(mob.check(fine), Ok(()));
        }
        for old in ["game::Beast", COMPILER_NAME] {
            let refusal = RegionTemplateError::SavedVersion { path: old.into(), stored: 0, declared: 2 };
            assert_eq!(mob.check(old), Err(refusal));
        }
    }
}
