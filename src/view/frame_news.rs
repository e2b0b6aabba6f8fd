//! What a frame has brought and the clients of a server are to be told of.

use crate::chunk::Chunk;
use crate::coordinator::messages::DecidedEdit;
use crate::entity_sync::EntityPlace;
use crate::simulation::{DecidedAction, Position, RegionComponents};
use crate::space::{ChunkPos, DimensionId};
use bevy::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// What was applied in this frame and clients are to be told of.
#[derive(Resource, Default)]
pub(super) struct FrameNews {
    /// Decided edits and actions. The published columns include the decisions.
    pub edits: Vec<DecidedEdit>,
    pub actions: Vec<DecidedAction>,
    /// Chunks that regions have changed, as they were and as they are.
    pub chunks: Vec<ChangedChunk>,
    /// Changes of mirrors that clients may see.
    pub entities: Vec<EntityChange>,
    /// `true` if there are clients of a server, which are told of entities.
    pub has_clients: bool,
}

impl FrameNews {
    pub fn begin_frame(&mut self) {
        *self = Self { has_clients: self.has_clients, ..Self::default() };
    }
}

/// A chunk before and after a change.
pub(super) type ChangedChunk = (DimensionId, ChunkPos, Arc<Chunk>, Arc<Chunk>);

/// News of an entity that clients may see.
#[derive(Debug)]
pub(super) struct EntityChange {
    pub id: Uuid,
    /// Where it is, and the dimension's clock; `None` if it is gone.
    pub place: Option<(DimensionId, EntityPlace, Duration)>,
    /// Components by their numbers among those of all clients; `None` for one that it does not have any more.
    pub components: Vec<(u16, Option<Vec<u8>>)>,
}

impl EntityChange {
    /// Adds a later change.
    pub fn replace(&mut self, Self { place, components, .. }: Self) {
        self.place = place;
        self.components.retain(|(known, _)| !components.iter().any(|(number, _)| number == known));
        self.components.extend(components);
    }
}

/// A change of a mirror as clients are told of it; `None` if they are not.
pub(super) fn entity_change(
    components: &RegionComponents,
    entity: EntityRef,
    id: Uuid,
    current: Option<(Position, Duration)>,
    changes: Vec<(u16, Option<Vec<u8>>)>,
) -> Option<EntityChange> {
    let current = current.filter(|_| components.mirrored.is_for_all(entity));
    if current.is_none() && changes.is_empty() {
        return None;
    }
    let place = current.map(|(Position { dimension, block, offset }, clock)| {
        let look = components.mirrored.look_for_all(entity);
        (dimension, EntityPlace { block, offset: offset.to_array(), look }, clock)
    });
    Some(EntityChange { id, place, components: changes })
}
