use super::{Position, StableId, Viewer};
use bevy::ecs::change_detection::Tick;
use bevy::ecs::component::ComponentId;
use bevy::platform::collections::HashSet;
use bevy::prelude::*;
use serde::{Serialize, de::DeserializeOwned};
use std::any::{Any, TypeId, type_name};

/// A component's value on its way from one world to another.
pub(super) type BoxedComponent = Box<dyn Any + Send>;

/// A component that can be written to the store and read again.
pub trait SavedComponent: Component + Serialize + DeserializeOwned {}
impl<T: Component + Serialize + DeserializeOwned> SavedComponent for T {}

/// A component that can be shown, read-only, in the main world.
pub trait Mirrored: Component<Mutability = bevy::ecs::component::Mutable> + Clone + PartialEq {}
impl<T: Component<Mutability = bevy::ecs::component::Mutable> + Clone + PartialEq> Mirrored for T {}

/// Stored components of types that the game no longer registers: kept, and written back unchanged.
#[derive(Component)]
pub(super) struct UnclaimedComponents(pub Vec<(String, Vec<u8>)>);

/// On entities that the store has, as of the last save.
#[derive(Component)]
pub(super) struct Stored;

/// What can be done with one component type without knowing it: no call of Bevy moves an entity between worlds.
struct ComponentFunctions {
    type_id: TypeId,
    name: &'static str,
    take: fn(&mut EntityWorldMut) -> Option<BoxedComponent>,
    insert: fn(&mut EntityWorldMut, BoxedComponent),
    saved: Option<SavedFunctions>,
}

struct SavedFunctions {
    encode: fn(EntityRef) -> Option<Result<Vec<u8>, postcard::Error>>,
    decode: fn(&mut EntityWorldMut, &[u8]) -> Result<(), postcard::Error>,
}

/// Mirrored components have numbers of their own: their order of registration.
struct MirrorFunctions {
    type_id: TypeId,
    read: fn(EntityRef, Tick, Tick) -> Option<BoxedComponent>,
    has: fn(EntityRef) -> bool,
    apply: fn(&mut EntityWorldMut, BoxedComponent),
}

/// The component types that travel between region worlds, those that are saved, and those that are mirrored.
///
/// Filled by `register_region_component`, `register_saved_component` and `mirror_region_component` on the app.
#[derive(Default)]
pub struct RegionComponents {
    functions: Vec<ComponentFunctions>,
    mirrors: Vec<MirrorFunctions>,
}

impl RegionComponents {
    /// The crate's own components that travel, and Bevy's that mean something in a world without a renderer.
    pub fn with_builtin() -> Self {
        let mut components = Self::default();
        components.register::<UnclaimedComponents>();
        components.register::<Stored>();
        components.register::<Viewer>();
        components.register::<Name>();
        components.register::<Transform>();
        components.register::<GlobalTransform>();
        components
    }

    /// Entities take their `T` along when they move to another region.
    pub fn register<T: Component>(&mut self) {
        if self.functions.iter().any(|known| known.type_id == TypeId::of::<T>()) {
            return;
        }
        self.functions.push(ComponentFunctions {
            type_id: TypeId::of::<T>(),
            name: type_name::<T>(),
            take: |entity| entity.take::<T>().map(|component| Box::new(component) as BoxedComponent),
            insert: |entity, component| {
                if let Ok(component) = component.downcast::<T>() {
                    entity.insert(*component);
                }
            },
            saved: None,
        });
    }

    /// Entities take their `T` along, and it is stored with them. The name in the store is the type's path.
    pub fn register_saved<T: SavedComponent>(&mut self) {
        self.register::<T>();
        let known = self.functions.iter_mut().find(|known| known.type_id == TypeId::of::<T>());
        let Some(functions) = known else { return };
        functions.saved = Some(SavedFunctions {
            encode: |entity| entity.get::<T>().map(postcard::to_allocvec),
            decode: |entity, bytes| {
                entity.insert(postcard::from_bytes::<T>(bytes)?);
                Ok(())
            },
        });
    }

    /// `T` can be read on the mirror of the entity in the main world.
    pub fn mirror<T: Mirrored>(&mut self) {
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
            has: |entity| entity.contains::<T>(),
            apply: |entity, component| {
                let Ok(component) = component.downcast::<T>() else { return };
                match entity.get_mut::<T>() {
                    Some(mut shown) => drop(shown.set_if_neq(*component)),
                    None => drop(entity.insert(*component)),
                }
            },
        });
    }

    /// Whether some component of the entity is mirrored.
    pub(super) fn is_mirrored(&self, entity: EntityRef) -> bool {
        self.mirrors.iter().any(|mirror| (mirror.has)(entity))
    }

    /// The mirrored components that changed since `last`, with their numbers.
    pub(super) fn read_mirrored(&self, entity: EntityRef, last: Tick, now: Tick) -> Vec<(usize, BoxedComponent)> {
        let read = |(number, mirror): (usize, &MirrorFunctions)| Some((number, (mirror.read)(entity, last, now)?));
        self.mirrors.iter().enumerate().filter_map(read).collect()
    }

    /// Puts the value of the mirrored component `number` on a mirror.
    pub fn apply_mirrored(&self, entity: &mut EntityWorldMut, number: usize, component: Box<dyn Any + Send>) {
        if let Some(mirror) = self.mirrors.get(number) {
            (mirror.apply)(entity, component);
        }
    }

    /// Takes every registered component off the entity; `left_behind` learns of components that cannot travel.
    pub(super) fn take_all(
        &self,
        entity: &mut EntityWorldMut,
        mut left_behind: impl FnMut(String),
    ) -> Vec<(usize, BoxedComponent)> {
        let taken = self.functions.iter().enumerate();
        let taken = taken.filter_map(|(number, known)| Some((number, (known.take)(entity)?))).collect();
        let own: HashSet<_> =
            [TypeId::of::<Position>(), TypeId::of::<StableId>(), TypeId::of::<ChildOf>(), TypeId::of::<Children>()]
                .into();
        let rest: Vec<ComponentId> = entity.archetype().components().to_vec();
        for component in rest {
            if let Some(info) = entity.world().components().get_info(component)
                && info.type_id().is_none_or(|type_id| !own.contains(&type_id))
            {
                left_behind(info.name().to_string());
            }
        }
        taken
    }

    pub(super) fn insert_all(&self, entity: &mut EntityWorldMut, components: Vec<(usize, BoxedComponent)>) {
        for (number, component) in components {
            if let Some(known) = self.functions.get(number) {
                (known.insert)(entity, component);
            }
        }
    }

    /// The saved components of the entity, by name.
    pub(super) fn encode(&self, entity: EntityRef) -> Vec<(String, Vec<u8>)> {
        let encode = |known: &ComponentFunctions| match (known.saved.as_ref()?.encode)(entity)? {
            Ok(bytes) => Some((known.name.to_owned(), bytes)),
            Err(error) => {
                error!("component {} of {} cannot be saved: {error}", known.name, entity.id());
                None
            }
        };
        self.functions.iter().filter_map(encode).collect()
    }

    /// Puts a stored component on the entity. The error names the component.
    pub(super) fn decode(&self, entity: &mut EntityWorldMut, name: &str, bytes: &[u8]) -> Result<(), String> {
        let saved = self.functions.iter().find(|known| known.name == name).and_then(|known| known.saved.as_ref());
        match saved {
            Some(saved) => (saved.decode)(entity, bytes).map_err(|error| format!("component {name}: {error}")),
            None => Err(format!("component {name} is not registered: call register_saved_component for it")),
        }
    }
}
