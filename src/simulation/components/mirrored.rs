//! Component types that the main world, and clients, see on the mirrors of entities.

use crate::bytes::{self, put_value};
use crate::simulation::components::mapping::BoxedComponent;
use bevy::ecs::archetype::{Archetype, ArchetypeId};
use bevy::ecs::change_detection::Tick;
use bevy::ecs::component::Mutable;
use bevy::prelude::*;
use rustc_hash::FxHashMap;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::TypeId;

/// Components of an entity by their numbers among the mirrored ones, in order of registration.
pub type MirroredValues = FxHashMap<usize, BoxedComponent>;
/// Changed components of an entity; `None` for one that the entity does not have any more.
pub type MirroredChanges = FxHashMap<usize, Option<BoxedComponent>>;

/// A component that says where its entity looks, to the left of north and up, in radians. Of such a component, clients are told the look
/// together with the place: the rest of a character's intent is soon over.
pub trait Look: Component {
    fn look(&self) -> [f32; 2];
    fn looking(look: [f32; 2]) -> Self;
}

/// The component types that are mirrored. They have numbers, in order of registration.
#[derive(Default)]
pub struct MirroredComponents {
    mirrors: Vec<MirrorFunctions>,
    look: Option<LookFunctions>,
}

/// The functions of the component that says where an entity looks.
struct LookFunctions {
    number: usize,
    look: fn(EntityRef) -> Option<[f32; 2]>,
    looking: fn([f32; 2]) -> BoxedComponent,
}

/// The functions of a mirrored component.
struct MirrorFunctions {
    type_id: TypeId,
    read: fn(EntityRef, Tick, Tick) -> Option<BoxedComponent>,
    copy: fn(EntityRef) -> Option<BoxedComponent>,
    copy_value: fn(&BoxedComponent) -> Option<BoxedComponent>,
    apply: fn(&mut EntityWorldMut, BoxedComponent),
    remove: fn(&mut EntityWorldMut),
    replicated: Option<Replicated>,
}

/// How clients are told of a mirrored component.
#[derive(Clone, Copy)]
struct Replicated {
    path: &'static str,
    /// `false` if only the client that acts for the entity is told.
    to_all: bool,
    encode: fn(EntityRef) -> Option<Vec<u8>>,
    encode_value: fn(&BoxedComponent) -> Option<Vec<u8>>,
    decode: fn(&[u8]) -> Result<BoxedComponent, String>,
}

impl MirroredComponents {
    /// Makes `T` readable on the mirror of the entity in the main world.
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
            copy: |entity| Some(Box::new(entity.get::<T>()?.clone())),
            copy_value: |value| Some(Box::new(value.downcast_ref::<T>()?.clone())),
            apply: |entity, component| {
                let Ok(component) = component.downcast::<T>() else { return };
                match entity.get_mut::<T>() {
                    Some(mut shown) => drop(shown.set_if_neq(*component)),
                    None => drop(entity.insert(*component)),
                }
            },
            remove: |entity| _ = entity.remove::<T>(),
            replicated: None,
        });
    }

    /// Makes `T` readable on the mirrors of clients too: of all clients that see the entity, or of the one that acts for it.
    pub fn replicate<T>(&mut self, to_all: bool)
    where
        T: Component<Mutability = Mutable> + Clone + PartialEq + Serialize + DeserializeOwned + TypePath,
    {
        self.mirror::<T>();
        let known = self.mirrors.iter_mut().find(|known| known.type_id == TypeId::of::<T>());
        let Some(functions) = known else { return };
        functions.replicated = Some(Replicated {
            path: T::type_path(),
            to_all: to_all || functions.replicated.is_some_and(|known| known.to_all),
            encode: |entity| Some(put_value(Vec::new(), entity.get::<T>()?)),
            encode_value: |value| Some(put_value(Vec::new(), value.downcast_ref::<T>()?)),
            decode: |bytes| Ok(Box::new(bytes::value::<T>(bytes)?)),
        });
    }

    /// Tells all clients where entities with a `T` look.
    pub fn replicate_look<T: Look + Component<Mutability = Mutable> + Clone + PartialEq>(&mut self) {
        self.mirror::<T>();
        self.look = self.number(TypeId::of::<T>()).map(|number| LookFunctions {
            number,
            look: |entity| Some(entity.get::<T>()?.look()),
            looking: |look| Box::new(T::looking(look)),
        });
    }

    /// Returns `true` if no component type is mirrored.
    pub fn is_empty(&self) -> bool {
        self.mirrors.is_empty()
    }

    /// Returns `true` if the entity has a mirrored component.
    pub fn is_on(&self, entity: EntityRef) -> bool {
        self.mirrors.iter().any(|mirror| entity.contains_type_id(mirror.type_id))
    }

    /// The mirrored components that changed since `last`, and those that the entity had in the archetype `before` and has no more. For an
    /// entity that was not mirrored before, these are all types.
    pub fn read(
        &self,
        world: &World,
        entity: EntityRef,
        before: Option<ArchetypeId>,
        (last, now): (Tick, Tick),
    ) -> MirroredChanges {
        let read =
            |(number, mirror): (usize, &MirrorFunctions)| Some((number, Some((mirror.read)(entity, last, now)?)));
        let mut changes: MirroredChanges = self.mirrors.iter().enumerate().filter_map(read).collect();
        let archetype = entity.archetype();
        if before != Some(archetype.id()) {
            let has = |archetype: &Archetype, type_id| {
                world.components().get_id(type_id).is_some_and(|id| archetype.contains(id))
            };
            let before = before.and_then(|id| world.archetypes().get(id));
            for (number, MirrorFunctions { type_id, .. }) in self.mirrors.iter().enumerate() {
                if !has(archetype, *type_id) && before.is_none_or(|before| has(before, *type_id)) {
                    changes.insert(number, None);
                }
            }
        }
        changes
    }

    /// The number of a mirrored component type.
    pub fn number(&self, type_id: TypeId) -> Option<usize> {
        self.mirrors.iter().position(|known| known.type_id == type_id)
    }

    /// Copies of the entity's mirrored components.
    pub fn copy(&self, entity: EntityRef) -> MirroredValues {
        let copy = |(number, mirror): (usize, &MirrorFunctions)| Some((number, (mirror.copy)(entity)?));
        self.mirrors.iter().enumerate().filter_map(copy).collect()
    }

    /// A copy of a value of the mirrored component `number`.
    pub fn copy_value(&self, number: usize, value: &BoxedComponent) -> Option<BoxedComponent> {
        (self.mirrors.get(number)?.copy_value)(value)
    }

    /// Sets or removes the mirrored component `number` on a mirror.
    pub fn apply(&self, entity: &mut EntityWorldMut, number: usize, component: Option<BoxedComponent>) {
        match (self.mirrors.get(number), component) {
            (Some(mirror), Some(component)) => (mirror.apply)(entity, component),
            (Some(mirror), None) => (mirror.remove)(entity),
            (None, _) => {}
        }
    }

    /// The components of an entity that the client which acts for it is told of, by their type paths.
    pub fn encode_for_owner(&self, entity: EntityRef) -> Vec<(&'static str, Vec<u8>)> {
        let replicated = self.mirrors.iter().filter_map(|mirror| mirror.replicated);
        replicated.filter_map(|replicated| Some((replicated.path, (replicated.encode)(entity)?))).collect()
    }

    fn for_all(&self) -> impl Iterator<Item = (usize, &MirrorFunctions, Replicated)> {
        let replicated = |(number, mirror): (usize, _)| {
            let mirror: &MirrorFunctions = mirror;
            Some((number, mirror, mirror.replicated.filter(|replicated| replicated.to_all)?))
        };
        self.mirrors.iter().enumerate().filter_map(replicated)
    }

    /// The type paths of the components that all clients are told of. Their places in this list are their numbers for clients.
    pub fn types_for_all(&self) -> impl Iterator<Item = &'static str> {
        self.for_all().map(|(.., replicated)| replicated.path)
    }

    /// Returns `true` if all clients are told of the entity.
    pub fn is_for_all(&self, entity: EntityRef) -> bool {
        self.look_for_all(entity).is_some()
            || self.for_all().any(|(_, mirror, _)| entity.contains_type_id(mirror.type_id))
    }

    /// Where the entity looks, if clients are told.
    pub fn look_for_all(&self, entity: EntityRef) -> Option<[f32; 2]> {
        (self.look.as_ref()?.look)(entity)
    }

    /// The component of an entity that looks there.
    pub fn looking(&self, look: [f32; 2]) -> Option<(usize, BoxedComponent)> {
        let functions = self.look.as_ref()?;
        Some((functions.number, (functions.looking)(look)))
    }

    /// The changes that all clients are told of, by their numbers for clients.
    pub fn encode_for_all(&self, changes: &MirroredChanges) -> Vec<(u16, Option<Vec<u8>>)> {
        let encode = |((number, _, replicated), of_clients): ((usize, _, Replicated), u16)| {
            let change = changes.get(&number)?;
            // Every value is of its type.
            Some((of_clients, change.as_ref().and_then(replicated.encode_value)))
        };
        self.for_all().zip(0..).filter_map(encode).collect()
    }

    /// A change of a component that a server has told of; `None` if the type is not registered here.
    ///
    /// # Errors
    /// Fails if the bytes are not a value of that type.
    pub fn decode_replicated(
        &self,
        path: &str,
        bytes: Option<&[u8]>,
    ) -> Result<Option<(usize, Option<BoxedComponent>)>, String> {
        let replicated = self.mirrors.iter().zip(0..).filter_map(|(mirror, number)| Some((mirror.replicated?, number)));
        let Some((replicated, number)) = replicated.into_iter().find(|(replicated, _)| replicated.path == path) else {
            return Ok(None);
        };
        let value = bytes.map(replicated.decode).transpose();
        value.map(|value| Some((number, value))).map_err(|error| format!("component {path}: {error}"))
    }
}
