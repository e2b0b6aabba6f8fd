//! [`Entity`]: an entity of an [`EntityServer`](super::EntityServer).

use crate::entity_sync::messages::Event;
use crate::entity_sync::place::ShortPlace;
use crate::space::ChunkPos;
use std::collections::BTreeMap;
use uuid::Uuid;

/// An entity that clients may see.
#[derive(Debug)]
pub(super) struct Entity {
    pub id: Uuid,
    pub cell: ChunkPos,
    pub place: ShortPlace,
    /// The dimension's clock at that place, in milliseconds.
    pub millis: u64,
    /// The tick in which the place was new.
    pub moved: u32,
    pub components: BTreeMap<u16, Vec<u8>>,
}

impl Entity {
    /// The event that tells a client of the entity.
    pub fn appear(&self, net: u32) -> Event<'_> {
        let Self { id, cell, place, millis, .. } = *self;
        let components = self.components.iter().map(|(number, value)| (*number, value.as_slice())).collect();
        Event::Appear { net, id, cell, place, millis, components }
    }
}
