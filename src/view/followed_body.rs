//! The bodies that entities of the main world follow.

use super::{Mirror, OwnBody};
use crate::simulation::Position;
use bevy::ecs::system::SystemParam;
use bevy::prelude::*;
use std::iter;

/// Finds the body that an entity follows: the [`OwnBody`] or the [`Mirror`] that the entity itself is, or the nearest of its parents.
/// An entity that follows a body is in the body's dimension, also after a portal.
#[derive(SystemParam)]
pub(crate) struct FollowedBodies<'w, 's> {
    bodies: Query<'w, 's, (&'static Position, Option<&'static OwnBody>), Or<(With<OwnBody>, With<Mirror>)>>,
    parents: Query<'w, 's, &'static ChildOf>,
}

impl FollowedBodies<'_, '_> {
    /// Where the body is; `None` if the entity follows none, or if its region has not told of it yet.
    pub fn position(&self, entity: Entity) -> Option<Position> {
        let mut with_parents = iter::once(entity).chain(self.parents.iter_ancestors(entity));
        let (position, own) = with_parents.find_map(|entity| self.bodies.get(entity).ok())?;
        own.is_none_or(|own| own.state().is_some()).then_some(*position)
    }

    /// Returns `true` if the entity follows a body, known or not.
    pub fn is_follower(&self, entity: Entity) -> bool {
        iter::once(entity).chain(self.parents.iter_ancestors(entity)).any(|entity| self.bodies.contains(entity))
    }
}
