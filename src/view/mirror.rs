//! Mirrors of entities that live in regions.

use crate::simulation::Position;
use bevy::prelude::*;
use rustc_hash::FxHashMap;
use std::time::Duration;
use uuid::Uuid;

/// The image of an entity that lives in a region: one in the main world for each, read-only.
///
/// It has the mirrored components and the [`Position`] of the newest tick; writing to them changes nothing in the
/// region. A mirrored component that the entity lost stays on the mirror as it was last. It is there while its entity goes
/// from one region to another, and is gone when the entity is left to the store.
#[derive(Component, Clone, Copy, Debug, PartialEq)]
pub struct Mirror {
    /// The stable id of the entity.
    pub id: Uuid,
    /// Where it was at the update before, and the dimension's clock there.
    pub previous: (Position, Duration),
    /// Where it is, and the dimension's clock there.
    pub current: (Position, Duration),
}

/// Finds mirrors by their stable ids.
#[derive(Resource, Debug, Default)]
pub struct MirrorIndex {
    pub(super) entities: FxHashMap<Uuid, Entity>,
}

impl MirrorIndex {
    /// The mirror of the entity with this stable id.
    pub fn entity(&self, id: Uuid) -> Option<Entity> {
        self.entities.get(&id).copied()
    }

    /// How many mirrors there are.
    pub fn len(&self) -> usize {
        self.entities.len()
    }

    /// Whether there is no mirror.
    pub fn is_empty(&self) -> bool {
        self.entities.is_empty()
    }
}
