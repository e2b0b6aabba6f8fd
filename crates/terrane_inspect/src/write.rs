//! Changes of components.

use crate::InspectError;
use crate::value::reflection;
use bevy::ecs::reflect::AppTypeRegistry;
use bevy::prelude::*;
use bevy::reflect::ReflectRef;
use bevy_terrane::simulation::{Player, Position, RegionColumns, RegionInfo, StableId};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Changes a component as a system of the game would.
pub fn write(mut entity: EntityWorldMut, component: &str, value: Box<dyn PartialReflect>) -> Result<(), InspectError> {
    let missing = || InspectError::NoComponent(component.to_owned());
    let refused = |reason| InspectError::Refused { component: component.to_owned(), reason };
    if let Some(reason) = forbidden(component) {
        return Err(refused(reason));
    }
    let types = entity.world().resource::<AppTypeRegistry>().clone();
    let types = types.read();
    let known = reflection(&types, component).ok_or_else(missing)?;
    let of = types.get_with_type_path(component).ok_or_else(missing)?.type_id();
    let components = entity.world().components();
    let info = components.get_valid_id(of).and_then(|id| components.get_info(id)).ok_or_else(missing)?;
    if info.relationship_accessor().is_some() {
        return Err(refused("relationships are changed with commands"));
    }
    if !info.mutable() {
        return Err(refused("it is immutable: it can only be replaced, with its hooks"));
    }
    let wrong = |reason: String| InspectError::WrongValue { component: component.to_owned(), reason };
    let now = known.reflect(&entity).ok_or_else(missing)?;
    // A value of the type replaces the whole. A dynamic value is applied to a copy: if it fits only in part, nothing changes.
    let changed = match value.try_into_reflect() {
        Ok(value) if value.as_any().type_id() == of => value,
        Ok(value) => applied(now, value.as_partial_reflect(), component)?,
        Err(value) => applied(now, &*value, component)?,
    };
    if let Some(to) = changed.downcast_ref::<Position>() {
        let world = entity.world();
        let is_here = world.resource::<RegionInfo>().dimension == to.dimension
            && world.resource::<RegionColumns>().is_owned(to.column());
        if !is_here {
            return Err(refused("the place is outside of the region's ground"));
        }
        if !to.offset.is_finite() {
            return Err(wrong("the offset must be finite".to_owned()));
        }
    }
    let mut now = known.reflect_mut(&mut entity).ok_or_else(missing)?;
    now.set(changed).map_err(|_| wrong("it is of another type".to_owned()))
}

/// A copy of the present value with the changes of a dynamic one.
fn applied(now: &dyn Reflect, value: &dyn PartialReflect, component: &str) -> Result<Box<dyn Reflect>, InspectError> {
    let wrong = |reason: String| InspectError::WrongValue { component: component.to_owned(), reason };
    if let (ReflectRef::Struct(now), ReflectRef::Struct(value)) = (now.reflect_ref(), value.reflect_ref()) {
        let unknown =
            (0..value.field_len()).filter_map(|field| value.name_at(field)).find(|name| now.field(name).is_none());
        if let Some(name) = unknown {
            return Err(wrong(format!("it has no field {name}")));
        }
    }
    let mut changed = now.reflect_clone().map_err(|_| InspectError::Refused {
        component: component.to_owned(),
        reason: "its present value cannot be copied",
    })?;
    // Lists, maps and sets panic if an element does not fit.
    match catch_unwind(AssertUnwindSafe(|| changed.try_apply(value))) {
        Ok(Ok(())) => Ok(changed),
        Ok(Err(error)) => Err(wrong(error.to_string())),
        Err(_) => Err(wrong("an element of a list, map or set is of another type".to_owned())),
    }
}

/// Why a component of this type must not be changed.
fn forbidden(component: &str) -> Option<&'static str> {
    let reasons = [
        (StableId::type_path(), "the stable id is what the entity is stored under"),
        (ChildOf::type_path(), "the hierarchy is changed with commands"),
        (Children::type_path(), "the hierarchy is changed with commands"),
        (Player::type_path(), "the player is stored under this name"),
    ];
    reasons.into_iter().find(|(path, _)| *path == component).map(|(_, reason)| reason)
}
