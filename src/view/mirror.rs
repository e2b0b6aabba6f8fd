//! Mirrors of entities that live in regions.

use crate::simulation::{Position, RegionComponents};
use bevy::prelude::*;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// The image of an entity that lives in a region. The main world has one for each such entity, and it is read-only.
///
/// It has the mirrored components and the [`Position`] of the newest tick; writing to them changes nothing in the
/// region. If the entity loses a mirrored component, so does the mirror. The mirror stays while its entity
/// crosses from one region to another, and is despawned when the entity is unloaded.
///
/// A game that draws an entity inserts a `Transform` beside its mirror. `ChunkRenderPlugin` then moves it smoothly between the ticks.
#[derive(Component, Clone, Copy, Debug, PartialEq, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Component, Clone)]
pub struct Mirror {
    /// The stable id of the entity.
    pub id: Uuid,
    /// The position at the previous update, and the dimension's clock at that time.
    pub previous: (Position, Duration),
    /// The present position, and the dimension's clock at that time.
    pub current: (Position, Duration),
}

/// The functions of the mirrored components.
#[derive(Resource, Clone)]
pub(crate) struct Components(pub Arc<RegionComponents>);

/// Finds mirrors by their stable ids.
#[derive(Resource, Clone, Debug, Default, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(opaque)]
#[reflect(Resource, Clone, Default)]
pub struct MirrorIndex {
    pub(super) entities: FxHashMap<Uuid, Entity>,
}

impl MirrorIndex {
    /// The mirror of the entity with this stable id.
    pub fn entity(&self, id: Uuid) -> Option<Entity> {
        self.entities.get(&id).copied()
    }

    /// The number of mirrors.
    pub fn len(&self) -> usize {
        self.entities.len()
    }

    /// Returns `true` if there is no mirror.
    pub fn is_empty(&self) -> bool {
        self.entities.is_empty()
    }
}
