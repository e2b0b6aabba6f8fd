//! Component types that travel: one set of functions for each.

use super::entities::StableId;
use super::mapping::{BoxedComponent, Mapping};
use super::relationships::RelationshipFunctions;
use super::resources::{RegionResource, TakeResource, take_resource};
use super::saved_type::{self, SavedComponent, SavedType};
use super::ticks::{Ages, ChangeClock, NEW};
use crate::block::Schema;
use crate::simulation::template_error::RegionTemplateError;
use crate::simulation::{LoggedOut, Player, Position, Viewer};
use crate::storage::FORMER_PLAYER_COMPONENT;
use bevy::ecs::bundle::{BundleScratch, BundleWriter};
use bevy::ecs::change_detection::Tick;
use bevy::ecs::component::{ComponentId, Components, ComponentsRegistrator, Mutable};
use bevy::ecs::entity_disabling::Disabled;
use bevy::ecs::relationship::{Relationship, RelationshipAccessor};
use bevy::platform::collections::HashSet;
use bevy::prelude::*;
use rustc_hash::FxHashMap;
use std::any::{TypeId, type_name};

/// A component that was taken off an entity, behind its place among the registered ones.
pub type TakenComponent = (usize, Ages, BoxedComponent);

/// Stored components of types that the game no longer registers: kept, and written back unchanged.
#[derive(Component)]
pub struct UnclaimedComponents(pub Vec<(String, Vec<u8>)>);

/// On entities that the store has, as of the last save.
#[derive(Component, Default)]
pub struct Stored {
    /// The hash of the record that was handed out last.
    pub content: u64,
    /// What the entity and all below it were made of then, in this world; `None` in another one.
    pub structure: Option<u64>,
}

/// What can be done with one component type without knowing it: no call of Bevy moves an entity between worlds.
struct ComponentFunctions {
    type_id: TypeId,
    take: fn(&mut EntityWorldMut, ChangeClock) -> Option<(Ages, BoxedComponent)>,
    /// # Safety
    /// As of [`BundleWriter::push_component`]: all that is pushed until the write is of the world of the registrator.
    push: unsafe fn(&mut BundleWriter, &mut ComponentsRegistrator, BoxedComponent, &mut Mapping),
    saved: Option<SavedType>,
}

/// Mirrored components have numbers of their own: their order of registration.
struct MirrorFunctions {
    type_id: TypeId,
    read: fn(EntityRef, Tick, Tick) -> Option<BoxedComponent>,
    apply: fn(&mut EntityWorldMut, BoxedComponent),
}

/// The component types that travel between region worlds, those that are saved, and those that are mirrored; the
/// relationships and resources that travel.
///
/// Filled by `register_region_component`, `register_saved_component`, `mirror_region_component`,
/// `register_region_relationship`, `register_region_resource` and `leave_region_component_behind` on the app.
#[derive(Default)]
pub struct RegionComponents {
    functions: Vec<ComponentFunctions>,
    mirrors: Vec<MirrorFunctions>,
    pub relationships: Vec<RelationshipFunctions>,
    pub resources: Vec<TakeResource>,
    left_behind: HashSet<String>,
    mistake: Option<RegionTemplateError>,
}

impl RegionComponents {
    /// The crate's own components that travel, and Bevy's that mean something in a world without a renderer.
    pub fn with_builtin() -> Self {
        let mut components = Self::default();
        components.register::<StableId>();
        components.register::<Position>();
        components.register::<UnclaimedComponents>();
        components.register::<Stored>();
        components.register::<Viewer>();
        components.register::<LoggedOut>();
        components.register_saved_with::<Player>(Schema::default().formerly(FORMER_PLAYER_COMPONENT));
        components.register::<Name>();
        components.register::<Disabled>();
        components.register::<Transform>();
        components.register::<GlobalTransform>();
        components.register::<TransformTreeChanged>();
        #[cfg(feature = "render")]
        components.register_visibility();
        components.register_relationship::<ChildOf>();
        components
    }

    #[cfg(feature = "render")]
    fn register_visibility(&mut self) {
        use bevy::camera::{primitives, visibility};
        self.register::<Visibility>();
        self.register::<InheritedVisibility>();
        self.register::<ViewVisibility>();
        self.register::<visibility::VisibilityClass>();
        self.register::<visibility::VisibilityRange>();
        self.register::<visibility::RenderLayers>();
        self.register::<visibility::NoFrustumCulling>();
        self.register::<visibility::NoAutoAabb>();
        self.register::<primitives::Aabb>();
    }

    /// Entities take their `T` along when they move to another region.
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

    /// Relationships of this type stay between entities that move together.
    pub fn register_relationship<R: Relationship>(&mut self) {
        let functions = RelationshipFunctions::of::<R>();
        if !self.relationships.iter().any(|known| known.type_id == functions.type_id) {
            self.relationships.push(functions);
        }
    }

    /// Regions take their `R` along when they merge and split.
    pub fn register_resource<R: RegionResource>(&mut self) {
        let (type_id, take) = take_resource::<R>();
        if !self.resources.iter().any(|(known, _)| *known == type_id) {
            self.resources.push((type_id, take));
        }
    }

    /// Entities leave their component of the type with this full path behind when they move, and nobody complains.
    pub fn leave_behind(&mut self, type_path: impl Into<String>) {
        self.left_behind.insert(type_path.into());
    }

    /// What was registered in a way that cannot work, if anything was.
    pub fn check(&self) -> Result<(), RegionTemplateError> {
        self.mistake.clone().map_or(Ok(()), Err)
    }

    /// Whether it is known what becomes of the component on a journey. What is no Rust type cannot be known.
    pub fn knows(&self, id: ComponentId, components: &Components) -> bool {
        let Some(info) = components.get_info(id) else { return true };
        let known = |type_id: TypeId| {
            self.functions.iter().any(|known| known.type_id == type_id)
                || self.relationships.iter().any(|known| known.type_id == type_id || known.target_type_id == type_id)
        };
        info.type_id().is_some_and(known) || self.left_behind.contains(&info.name().to_string())
    }

    /// Entities take their `T` along, and it is stored with them, under its type path. The schema has the version of its
    /// stored form, migrations from older ones, and the paths that it had before.
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

    /// `T` can be read on the mirror of the entity in the main world.
    pub fn mirror<T: Component<Mutability = Mutable> + Clone + PartialEq>(&mut self) {
        if self.mirrors.iter().any(|known| known.type_id == TypeId::of::<T>()) {
            return;
        }
        self.mirrors.push(MirrorFunctions {
            type_id: TypeId::of::<T>(),
            read: |entity, last, now| {
                let ticks = entity.get_change_ticks::<T>()?;
                let component = entity.get::<T>()?;
                ticks.is_changed(last, now).then(|| Box::new(component.clone()) as BoxedComponent)
            },
            apply: |entity, component| {
                let Ok(component) = component.downcast::<T>() else { return };
                match entity.get_mut::<T>() {
                    Some(mut shown) => drop(shown.set_if_neq(*component)),
                    None => drop(entity.insert(*component)),
                }
            },
        });
    }

    /// Whether any component is mirrored.
    pub fn mirrors_anything(&self) -> bool {
        !self.mirrors.is_empty()
    }

    /// Whether some component of the entity is mirrored.
    pub fn is_mirrored(&self, entity: EntityRef) -> bool {
        self.mirrors.iter().any(|mirror| entity.contains_type_id(mirror.type_id))
    }

    /// The mirrored components that changed since `last`, with their numbers.
    pub fn read_mirrored(&self, entity: EntityRef, last: Tick, now: Tick) -> FxHashMap<usize, BoxedComponent> {
        let read = |(number, mirror): (usize, &MirrorFunctions)| Some((number, (mirror.read)(entity, last, now)?));
        self.mirrors.iter().enumerate().filter_map(read).collect()
    }

    /// Puts the value of the mirrored component `number` on a mirror.
    pub fn apply_mirrored(&self, entity: &mut EntityWorldMut, number: usize, component: BoxedComponent) {
        if let Some(mirror) = self.mirrors.get(number) {
            (mirror.apply)(entity, component);
        }
    }

    /// Takes every registered component off the entity.
    pub fn take_all(&self, entity: &mut EntityWorldMut, clock: ChangeClock) -> Vec<TakenComponent> {
        let take = |(number, known): (usize, &ComponentFunctions)| {
            // A hook of the one before may have despawned it.
            let (ages, value) = (!entity.is_despawned()).then(|| (known.take)(entity, clock))??;
            Some((number, ages, value))
        };
        self.functions.iter().enumerate().filter_map(take).collect()
    }

    /// A value of a registered type, for an entity that is new.
    pub fn value<T: Component>(&self, value: T) -> Option<TakenComponent> {
        let number = self.functions.iter().position(|known| known.type_id == TypeId::of::<T>())?;
        Some((number, NEW, Box::new(value)))
    }

    /// Puts what was taken off an entity, or stored of it, on one of this world, all at once: hooks and observers see it
    /// whole, and what it requires is not made first. Half of the time that one component after the other takes.
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
                // What is new needs no more than the insertion.
                aged.extend((ages != NEW).then_some((known.type_id, ages)));
            }
        }
        if let Ok(mut entity) = world.get_entity_mut(entity) {
            // SAFETY: the entity is of `world`, as is every component that was pushed since the bundle began.
            unsafe { writer.write(&mut entity) };
        }
        let Ok(mut entity) = world.get_entity_mut(entity) else { return };
        for (type_id, ages) in aged {
            // Of a component that cannot change, Bevy sets the ticks only on insertion.
            if let Some(id) = entity.world().components().get_valid_id(type_id)
                && let Ok(mut component) = entity.get_mut_by_id(id)
            {
                clock.apply(ages, &mut component);
            }
        }
    }

    /// The types of the components whose change makes another record of an entity.
    pub fn recorded_types(&self) -> impl Iterator<Item = TypeId> {
        self.functions.iter().filter(|known| known.saved.is_some()).map(|known| known.type_id)
    }

    /// What the world's list of types becomes: those that it has and those that the game saves. An error if the world has
    /// values that the game cannot read.
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

    /// The saved components of the entity, by the name under which they are stored.
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

    /// A stored component. The error names it.
    pub fn decode(&self, name: &str, bytes: &[u8]) -> Result<TakenComponent, String> {
        let (path, version) = saved_type::split(name);
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

/// Takes off what would take others along as the entity is despawned: those of a relationship that nobody registered.
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
