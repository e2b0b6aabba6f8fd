//! References between entities, from one world to another.

use bevy::ecs::entity::EntityMapper;
use bevy::prelude::*;
use rustc_hash::FxHashMap;
use std::any::Any;

/// A component whose type is forgotten, on its way from one world to another.
pub type BoxedComponent = Box<dyn Any + Send + Sync>;

/// Who the entities that arrived together are now. Those that left together have one origin.
pub type Arrived = FxHashMap<(u64, Entity), Entity>;

/// Turns references from the world of one departure into references of this world.
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
    /// Who did not come along is nobody here.
    fn get_mapped(&mut self, source: Entity) -> Entity {
        self.arrived(source).unwrap_or(Entity::PLACEHOLDER)
    }

    fn set_mapped(&mut self, _source: Entity, _target: Entity) {}
}
