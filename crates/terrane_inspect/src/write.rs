//! Changes of components.

use crate::InspectError;
use crate::value::reflection;
use bevy::ecs::reflect::AppTypeRegistry;
use bevy::prelude::*;
use bevy_terrane::simulation::{Player, Position, RegionColumns, RegionInfo, StableId};

/// Changes a component as a system of the game would.
pub fn write(mut entity: EntityWorldMut, component: &str, value: &dyn PartialReflect) -> Result<(), InspectError> {
    let missing = || InspectError::NoComponent(component.to_owned());
    let refused = |reason| InspectError::Refused { component: component.to_owned(), reason };
    if let Some(reason) = forbidden(component) {
        return Err(refused(reason));
    }
    let types = entity.world().resource::<AppTypeRegistry>().clone();
    let types = types.read();
    let known = reflection(&types, component).ok_or_else(missing)?;
    let of = types.get_with_type_path(component).ok_or_else(missing)?.type_id();
    let is_mutable = entity.world().components().get_valid_id(of).and_then(|id| {
        let info = entity.world().components().get_info(id)?;
        Some(info.mutable())
    });
    if !is_mutable.ok_or_else(missing)? {
        return Err(refused("it is immutable: it can only be replaced, with its hooks"));
    }
    let wrong = |reason: String| InspectError::WrongValue { component: component.to_owned(), reason };
    let copied = |value: &dyn PartialReflect| value.reflect_clone().map_err(|error| wrong(error.to_string()));
    let now = known.reflect(&entity).ok_or_else(missing)?;
    // A value of the type replaces the whole, and a dynamic value that fits only in part changes nothing.
    let changed = if value.try_as_reflect().is_some_and(|value| value.as_any().type_id() == of) {
        copied(value)?
    } else {
        let mut changed = copied(now.as_partial_reflect())?;
        changed.try_apply(value).map_err(|error| wrong(error.to_string()))?;
        changed
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
