//! Mapping entity references between worlds.

use bevy::ecs::entity::EntityMapper;
use bevy::prelude::*;
use rustc_hash::FxHashMap;
use std::any::Any;

/// A type-erased component on its way from one world to another.
pub type BoxedComponent = Box<dyn Any + Send + Sync>;

/// The new ids of entities that arrived together. Entities that left together have the same origin.
pub type Arrived = FxHashMap<(u64, Entity), Entity>;

/// Maps references from the departure's world to references of this world.
#[derive(Clone, Copy)]
pub struct Mapping<'a> {
    pub origin: u64,
    pub arrived: &'a Arrived,
}

impl Mapping<'_> {
    pub fn arrived(&self, left: Entity) -> Option<Entity> {
        self.arrived.get(&(self.origin, left)).copied()
    }
}

impl EntityMapper for Mapping<'_> {
    /// Entities that did not move along become the placeholder.
    fn get_mapped(&mut self, source: Entity) -> Entity {
        self.arrived(source).unwrap_or(Entity::PLACEHOLDER)
    }

    fn set_mapped(&mut self, _source: Entity, _target: Entity) {}
}
