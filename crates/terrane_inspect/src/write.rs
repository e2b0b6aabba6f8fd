//! Changes of entities.

use crate::InspectError;
use crate::value::{is_endless, reflection};
use bevy::ecs::reflect::AppTypeRegistry;
use bevy::prelude::*;
use bevy::reflect::{ReflectFromReflect, ReflectRef, TypeRegistry};
use bevy_terrane::simulation::{Player, Position, RegionColumns, RegionInfo, StableId, is_region_component};
use std::any::TypeId;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A change that is known to fit.
struct Change {
    known: ReflectComponent,
    value: Box<dyn Reflect>,
    is_new: bool,
}

/// Changes a component as a system of the game would.
pub fn write(mut entity: EntityWorldMut, component: &str, value: Box<dyn PartialReflect>) -> Result<(), InspectError> {
    let change = check(&mut entity, component, value, false)?;
    make(&mut entity, change);
    Ok(())
}

/// Changes components, and inserts those that the entity does not have: all or none.
pub fn insert(
    mut entity: EntityWorldMut,
    components: Vec<(String, Box<dyn PartialReflect>)>,
) -> Result<(), InspectError> {
    let checked = components.into_iter().map(|(component, value)| check(&mut entity, &component, value, true));
    let changes: Vec<Change> = checked.collect::<Result<_, _>>()?;
    changes.into_iter().for_each(|change| make(&mut entity, change));
    Ok(())
}

/// Despawns the entity and its children. A player is never a child.
pub fn despawn(entity: EntityWorldMut) -> Result<(), InspectError> {
    if entity.contains::<Player>() {
        return Err(InspectError::Player(entity.get::<StableId>().map_or_else(uuid::Uuid::nil, |id| id.0)));
    }
    entity.despawn();
    Ok(())
}

/// Checks a change of a component or, if `inserts`, also of one that the entity does not have.
fn check(
    entity: &mut EntityWorldMut,
    component: &str,
    value: Box<dyn PartialReflect>,
    inserts: bool,
) -> Result<Change, InspectError> {
    let missing = || InspectError::NoComponent(component.to_owned());
    let refused = |reason| InspectError::Refused { component: component.to_owned(), reason };
    let wrong = |reason: String| InspectError::WrongValue { component: component.to_owned(), reason };
    if let Some(reason) = forbidden(component) {
        return Err(refused(reason));
    }
    let types = entity.world().resource::<AppTypeRegistry>().clone();
    let types = types.read();
    let known = reflection(&types, component).ok_or_else(missing)?;
    let of = types.get_with_type_path(component).ok_or_else(missing)?.type_id();
    if inserts {
        entity.world_scope(|world| known.register_component(world));
    }
    let components = entity.world().components();
    let id = components.get_valid_id(of).ok_or_else(missing)?;
    let info = components.get_info(id).ok_or_else(missing)?;
    if info.relationship_accessor().is_some() {
        return Err(refused("relationships are changed with commands"));
    }
    let now = known.reflect(&*entity);
    if now.is_none() && !is_region_component(entity.world(), id) {
        return Err(refused("it is not registered for regions, as with register_region_component"));
    }
    if now.is_some() && !info.mutable() {
        return Err(refused("it is immutable: it can only be replaced, with its hooks"));
    }
    if now.is_some_and(|now| is_endless(now.as_partial_reflect())) {
        return Err(refused("its present value is too large, or nested too deep"));
    }
    if is_endless(&*value) {
        return Err(wrong("it is too large, or nested too deep".to_owned()));
    }
    // A value of the type replaces the whole. A dynamic value is applied to a copy: if it fits only in part, nothing changes.
    let value = match value.try_into_reflect() {
        Ok(value) if value.as_any().type_id() == of => Ok(value),
        Ok(value) => Err(value.into_partial_reflect()),
        Err(value) => Err(value),
    };
    let value = match (value, now) {
        (Ok(value), Some(_)) => value,
        (Ok(value), None) if inserts => value,
        (Err(value), Some(now)) => {
            let copy = now.reflect_clone().map_err(|_| refused("its present value cannot be copied"))?;
            applied(copy, &*value).map_err(wrong)?
        }
        (Err(value), None) if inserts => made(&types, of, &*value).map_err(wrong)?,
        (_, None) => return Err(missing()),
    };
    if let Some(to) = value.downcast_ref::<Position>() {
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
    let is_new = now.is_none();
    if is_new && !can_be_made(&types, of, &*value) {
        return Err(refused("reflection cannot make it: its type has neither FromReflect nor #[reflect(Default)]"));
    }
    Ok(Change { known, value, is_new })
}

fn make(entity: &mut EntityWorldMut, Change { known, value, is_new }: Change) {
    // A hook of an earlier change may have despawned it.
    if entity.is_despawned() {
        return;
    }
    if is_new {
        let types = entity.world().resource::<AppTypeRegistry>().clone();
        known.insert(entity, value.as_partial_reflect(), &types.read());
    } else if let Some(mut now) = known.reflect_mut(entity) {
        // It is of the same type.
        let _ = now.set(value);
    }
}

/// A new component from a dynamic value that has all of its fields or, if its type has a default, some.
fn made(types: &TypeRegistry, of: TypeId, value: &dyn PartialReflect) -> Result<Box<dyn Reflect>, String> {
    let whole = types.get_type_data::<ReflectFromReflect>(of).and_then(|make| make.from_reflect(value));
    if let Some(whole) = whole {
        check_fields(&*whole, value)?;
        return Ok(whole);
    }
    match types.get_type_data::<ReflectDefault>(of) {
        Some(make) => applied(make.default(), value),
        None => Err("a field is missing or of another type, and the type has no #[reflect(Default)]".to_owned()),
    }
}

/// Returns `true` if an insertion by reflection, which makes the component once more, can do so. Otherwise it panics.
fn can_be_made(types: &TypeRegistry, of: TypeId, value: &dyn Reflect) -> bool {
    let again = types.get_type_data::<ReflectFromReflect>(of);
    again.is_some_and(|make| make.from_reflect(value.as_partial_reflect()).is_some())
        || types.get_type_data::<ReflectDefault>(of).is_some()
}

/// A copy of the present value, or a default, with the changes of a dynamic one.
fn applied(mut changed: Box<dyn Reflect>, value: &dyn PartialReflect) -> Result<Box<dyn Reflect>, String> {
    check_fields(&*changed, value)?;
    // Lists, maps and sets panic if an element does not fit.
    match catch_unwind(AssertUnwindSafe(|| changed.try_apply(value))) {
        Ok(Ok(())) => Ok(changed),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("an element of a list, map or set is of another type".to_owned()),
    }
}

/// Checks that the component has all fields of the dynamic value.
fn check_fields(known: &dyn Reflect, value: &dyn PartialReflect) -> Result<(), String> {
    if let (ReflectRef::Struct(known), ReflectRef::Struct(value)) = (known.reflect_ref(), value.reflect_ref()) {
        let mut names = (0..value.field_len()).filter_map(|field| value.name_at(field));
        if let Some(name) = names.find(|name| known.field(name).is_none()) {
            return Err(format!("it has no field {name}"));
        }
    }
    Ok(())
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
