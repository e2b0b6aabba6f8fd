//! Component types that travel, with one set of functions for each.

pub mod followers;
pub mod mapping;
pub mod mirrored;
pub mod relationships;
pub mod resources;
pub mod stored_entities;
pub mod unregistered;

use crate::block::Schema;
use crate::simulation::actions::Actor;
use crate::simulation::components::mapping::{Ages, BoxedComponent, ChangeClock, Mapping, NEW};
use crate::simulation::components::mirrored::MirroredComponents;
use crate::simulation::components::relationships::RelationshipFunctions;
use crate::simulation::components::resources::{RegionResource, TakeResource, take_resource};
use crate::simulation::components::stored_entities::{SavedComponent, SavedType};
use crate::simulation::entities::StableId;
use crate::simulation::paths::PathTo;
use crate::simulation::player::{LoggedOut, Player};
use crate::simulation::position::{Position, Viewer};
use crate::simulation::template_error::RegionTemplateError;
use crate::storage::FORMER_PLAYER_COMPONENT;
use bevy::ecs::bundle::{BundleScratch, BundleWriter};
use bevy::ecs::component::{ComponentId, Components, ComponentsRegistrator};
use bevy::ecs::entity_disabling::Disabled;
use bevy::ecs::relationship::{Relationship, RelationshipAccessor};
use bevy::platform::collections::HashSet;
use bevy::prelude::*;
use std::any::{TypeId, type_name};

/// A component that was removed from an entity, with its type's number among the registered ones.
pub type TakenComponent = (usize, Ages, BoxedComponent);

/// Stored components of types that the game no longer registers. They are kept and saved unchanged.
#[derive(Component)]
pub struct UnclaimedComponents(pub Vec<(String, Vec<u8>)>);

/// Marks entities that the store contains as of the last save.
#[derive(Component, Default)]
pub struct Stored {
    /// The hash of the last record that was handed out.
    pub content: u64,
    /// The hash of the entity's structure in this world at that time; `None` in another world.
    pub structure: Option<u64>,
}

/// Type-erased functions of one component type. Bevy has no function that moves an entity between worlds.
struct ComponentFunctions {
    type_id: TypeId,
    take: fn(&mut EntityWorldMut, ChangeClock) -> Option<(Ages, BoxedComponent)>,
    /// # Safety
    /// As for [`BundleWriter::push_component`]: everything pushed until the write belongs to the world of the registrator.
    push: unsafe fn(&mut BundleWriter, &mut ComponentsRegistrator, BoxedComponent, &mut Mapping),
    saved: Option<SavedType>,
}

/// The component types that travel between region worlds, are saved, or are mirrored, and the relationships and resources
/// that travel.
///
/// Filled by `register_region_component`, `register_saved_component`, `mirror_region_component`,
/// `register_region_relationship`, `register_region_resource` and `leave_region_component_behind` on the app.
#[derive(Default)]
pub struct RegionComponents {
    functions: Vec<ComponentFunctions>,
    pub mirrored: MirroredComponents,
    pub relationships: Vec<RelationshipFunctions>,
    pub resources: Vec<TakeResource>,
    left_behind: HashSet<String>,
    mistake: Option<RegionTemplateError>,
}

impl RegionComponents {
    /// This crate's own travelling components, and those of Bevy that are useful in a world without a renderer.
    pub fn with_builtin() -> Self {
        let mut components = Self::default();
        components.register::<StableId>();
        components.register::<Position>();
        components.register::<UnclaimedComponents>();
        components.register::<Stored>();
        components.register::<Viewer>();
        components.register::<LoggedOut>();
        components.register::<Actor>();
        components.register::<PathTo>();
        components.register_saved_with::<Player>(Schema::default().formerly(FORMER_PLAYER_COMPONENT));
        components.register::<Name>();
        components.register::<Disabled>();
        components.register::<Transform>();
        components.register::<GlobalTransform>();
        components.register::<TransformTreeChanged>();
        components.register_relationship::<ChildOf>();
        components
    }

    /// Makes `T` travel with entities that move to another region.
    pub fn register<T: Component>(&mut self) {
        if T::relationship_accessor().is_some() {
            self.mistake.get_or_insert(RegionTemplateError::Relationship(type_name::<T>()));
            return;
        }
        if self.functions.iter().any(|known| known.type_id == TypeId::of::<T>()) {
            return;
        }
        self.functions.push(ComponentFunctions {
            type_id: TypeId::of::<T>(),
            take: |entity, clock| {
                let ages = clock.ages(entity.get_change_ticks::<T>()?);
                Some((ages, Box::new(entity.take::<T>()?)))
            },
            push: |writer, registrator, component, mapping| {
                if let Ok(mut component) = component.downcast::<T>() {
                    T::map_entities(&mut component, mapping);
                    // SAFETY: the caller's promise.
                    unsafe { writer.push_component(registrator, *component) };
                }
            },
            saved: None,
        });
    }

    /// Keeps relationships of this type between entities that move together.
    pub fn register_relationship<R: Relationship>(&mut self) {
        let functions = RelationshipFunctions::of::<R>();
        if !self.relationships.iter().any(|known| known.type_id == functions.type_id) {
            self.relationships.push(functions);
        }
    }

    /// Makes regions keep their `R` when they merge and split.
    pub fn register_resource<R: RegionResource>(&mut self) {
        let (type_id, take) = take_resource::<R>();
        if !self.resources.iter().any(|(known, _)| *known == type_id) {
            self.resources.push((type_id, take));
        }
    }

    /// Declares that the component type with this full path stays behind, without an error, when its entity moves.
    pub fn leave_behind(&mut self, type_path: impl Into<String>) {
        self.left_behind.insert(type_path.into());
    }

    /// Returns the first mistake in the registrations, if any.
    pub fn check(&self) -> Result<(), RegionTemplateError> {
        self.mistake.clone().map_or(Ok(()), Err)
    }

    /// Returns `true` if the component is registered or declared to stay behind. One without a Rust type can only stay behind.
    pub fn knows(&self, id: ComponentId, components: &Components) -> bool {
        let Some(info) = components.get_info(id) else { return true };
        let known = |type_id: TypeId| {
            self.functions.iter().any(|known| known.type_id == type_id)
                || self.relationships.iter().any(|known| known.type_id == type_id || known.target_type_id == type_id)
        };
        info.type_id().is_some_and(known) || self.left_behind.contains(&info.name().to_string())
    }

    /// Makes `T` travel with entities and saves it with them, under its type path. The schema has the version of the stored
    /// form, the migrations from older versions, and earlier type paths.
    pub fn register_saved_with<T: SavedComponent>(&mut self, schema: Schema) {
        self.register::<T>();
        let saved_type = SavedType::of::<T>(schema);
        let is_other = |known: &&ComponentFunctions| known.type_id != TypeId::of::<T>();
        let mut others = self.functions.iter().filter(is_other).filter_map(|known| known.saved.as_ref());
        if others.any(|other| other.path == saved_type.path) {
            self.mistake.get_or_insert(RegionTemplateError::SavedTwice(saved_type.path));
            return;
        }
        let known = self.functions.iter_mut().find(|known| known.type_id == TypeId::of::<T>());
        if let Some(functions) = known {
            functions.saved = Some(saved_type);
        }
    }

    /// Removes and returns all registered components of the entity.
    pub fn take_all(&self, entity: &mut EntityWorldMut, clock: ChangeClock) -> Vec<TakenComponent> {
        let take = |(number, known): (usize, &ComponentFunctions)| {
            // A hook of an earlier component may have despawned it.
            let (ages, value) = (!entity.is_despawned()).then(|| (known.take)(entity, clock))??;
            Some((number, ages, value))
        };
        self.functions.iter().enumerate().filter_map(take).collect()
    }

    /// A value of a registered type for a new entity.
    pub fn value<T: Component>(&self, value: T) -> Option<TakenComponent> {
        let number = self.functions.iter().position(|known| known.type_id == TypeId::of::<T>())?;
        Some((number, NEW, Box::new(value)))
    }

    /// Inserts components from a removed or stored entity into an entity of this world, all at once: hooks and observers see it
    /// complete, and its required components are not inserted first. Takes half as long as inserting them one by one.
    pub fn insert_all(
        &self,
        world: &mut World,
        (entity, taken): (Entity, Vec<TakenComponent>),
        scratch: &mut BundleScratch,
        mapping: &mut Mapping,
        clock: ChangeClock,
    ) {
        if !world.entities().contains_spawned(entity) {
            return;
        }
        let mut writer = scratch.writer();
        let mut aged = Vec::with_capacity(taken.len());
        let mut registrator = world.components_registrator();
        for (number, ages, value) in taken {
            if let Some(known) = self.functions.get(number) {
                // SAFETY: `scratch.writer()` began an empty bundle, and up to the write below there is only `world`.
                unsafe { (known.push)(&mut writer, &mut registrator, value, mapping) };
                // New components already have the right change ticks.
                aged.extend((ages != NEW).then_some((known.type_id, ages)));
            }
        }
        if let Ok(mut entity) = world.get_entity_mut(entity) {
            // SAFETY: the entity is of `world`, as is every component that was pushed since the bundle began.
            unsafe { writer.write(&mut entity) };
        }
        let Ok(mut entity) = world.get_entity_mut(entity) else { return };
        for (type_id, ages) in aged {
            // For immutable components, Bevy only sets the ticks on insertion.
            if let Some(id) = entity.world().components().get_valid_id(type_id)
                && let Ok(mut component) = entity.get_mut_by_id(id)
            {
                clock.apply(ages, &mut component);
            }
        }
    }

    /// The component types whose changes make the record of an entity out of date.
    pub fn recorded_types(&self) -> impl Iterator<Item = TypeId> {
        self.functions.iter().filter(|known| known.saved.is_some()).map(|known| known.type_id)
    }

    /// The new type list of the world: its current types and those that the game saves. Fails if the world has values that the
    /// game cannot read.
    pub fn entity_types(&self, stored: &[String]) -> Result<Vec<String>, RegionTemplateError> {
        let mut types = stored.to_vec();
        for saved_type in self.saved() {
            stored.iter().try_for_each(|stored| saved_type.check(stored))?;
            if !types.contains(&saved_type.name) {
                types.push(saved_type.name.clone());
            }
        }
        Ok(types)
    }

    fn saved(&self) -> impl Iterator<Item = &SavedType> {
        self.functions.iter().filter_map(|known| known.saved.as_ref())
    }

    /// The saved components of the entity, by their stored names.
    pub fn encode(&self, entity: EntityRef) -> Vec<(String, Vec<u8>)> {
        let encode = |saved: &SavedType| match (saved.encode)(entity)? {
            Ok(bytes) => Some((saved.name.clone(), bytes)),
            Err(error) => {
                error!("component {} of {} cannot be saved: {error}", saved.path, entity.id());
                None
            }
        };
        self.saved().filter_map(encode).collect()
    }

    /// Decodes a stored component. The error names it.
    pub fn decode(&self, name: &str, bytes: &[u8]) -> Result<TakenComponent, String> {
        let (path, version) = stored_entities::split(name);
        let saved =
            || self.functions.iter().zip(0..).filter_map(|(known, number)| Some((number, known.saved.as_ref()?)));
        let exact = saved().find(|(_, saved)| saved.path == path);
        let Some((number, saved)) = exact.or_else(|| saved().find(|(_, saved)| saved.is_called(path))) else {
            return Err(format!(
                "component {name} is not registered: call register_saved_component for it, or name it in \
                 `Schema::formerly` of the component that it has become"
            ));
        };
        let bytes = saved.schema.upgrade(version, bytes);
        let bytes = bytes.map_err(|reason| format!("component {name}: {reason}"))?;
        let value = (saved.decode)(&bytes).map_err(|error| format!("component {name}: {error}"))?;
        Ok((number, NEW, value))
    }
}

/// Removes components of unregistered relationships that would despawn other entities together with this one.
pub fn release_linked(entity: &mut EntityWorldMut) {
    let links = |id: &ComponentId| {
        let accessor = entity.world().components().get_info(*id).and_then(|info| info.relationship_accessor());
        matches!(accessor, Some(RelationshipAccessor::RelationshipTarget { linked_spawn: true, .. }))
    };
    let linked: Vec<_> = entity.archetype().components().iter().copied().filter(links).collect();
    if !linked.is_empty() {
        entity.remove_by_ids(&linked);
    }
}
