//! [`EntityClient`]: the entities around one client.

use super::PERIODS;
use super::messages::{EntityMessageError, Event, read_message, read_packet};
use super::place::EntityPlace;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::time::Duration;
use uuid::Uuid;

/// The most entities that a client keeps.
const MAX_ENTITIES: usize = 1 << 16;
/// The most component types of a server.
const MAX_TYPES: usize = 1 << 12;

/// News of an entity.
#[derive(Clone, Debug, PartialEq)]
pub enum EntityNews {
    /// The entity has come into sight, or the server has begun anew. It has these components and no others: the names of their types, and
    /// their values.
    Appeared {
        /// The stable id.
        id: Uuid,
        /// Where it is.
        place: EntityPlace,
        /// The dimension's clock at that place.
        clock: Duration,
        /// The components.
        components: Vec<(String, Vec<u8>)>,
    },
    /// The entity has moved.
    Moved {
        /// The stable id.
        id: Uuid,
        /// Where it is.
        place: EntityPlace,
        /// The dimension's clock at that place.
        clock: Duration,
        /// The number of ticks after which its next place comes, if it goes on.
        period: u32,
    },
    /// Components of the entity have changed; `None` for one that it does not have any more.
    Changed {
        /// The stable id.
        id: Uuid,
        /// The components.
        components: Vec<(String, Option<Vec<u8>>)>,
    },
    /// The entity is gone, or out of sight.
    Left(Uuid),
}

/// The entities around one client. They stay when the connection is lost, until a server has told which are there. See the
/// [module](super).
#[derive(Debug, Default)]
pub struct EntityClient {
    types: Vec<String>,
    /// The ids of entities by their numbers, and the times of their places.
    entities: FxHashMap<u32, (Uuid, Duration)>,
    /// The entities from before a server began anew that it has not told of since.
    stale: FxHashSet<Uuid>,
    news: VecDeque<EntityNews>,
}

impl EntityClient {
    /// Takes in a message or a packet. Returns `false` if it is not about entities.
    ///
    /// # Errors
    /// Fails if the message is invalid. The news before the invalid part count.
    pub fn receive(&mut self, message: &[u8]) -> Result<bool, EntityMessageError> {
        if let Some(events) = read_message(message) {
            events?.into_iter().try_for_each(|event| self.take(event))?;
            // After a reset, the rest of its message has all that are there.
            self.news.extend(self.stale.drain().map(EntityNews::Left));
            return Ok(true);
        }
        let Self { entities, news, .. } = self;
        let read = read_packet(message, |net, cell, rate, place, clock| {
            // Its message may be on its way, or it may be the client's own.
            let Some((id, known)) = entities.get_mut(&net).filter(|(_, known)| *known < clock) else { return };
            *known = clock;
            let period = PERIODS.get(usize::from(rate)).copied().unwrap_or(1);
            news.push_back(EntityNews::Moved { id: *id, place: place.in_cell(cell), clock, period });
        });
        read.transpose().map(|read| read.is_some())
    }

    /// Notes that the connection is lost. Packets count only once the next server has told which entities are there: it gives them numbers
    /// of its own.
    pub fn disconnected(&mut self) {
        self.stale.extend(self.entities.drain().map(|(_, (id, _))| id));
    }

    fn take(&mut self, event: Event<'_>) -> Result<(), EntityMessageError> {
        match event {
            Event::Reset { types } => {
                if types.len() > MAX_TYPES {
                    return Err(EntityMessageError::TooMany { what: "component types", limit: MAX_TYPES });
                }
                self.disconnected();
                self.types = types.into_iter().map(str::to_owned).collect();
            }
            Event::Appear { net, id, cell, place, millis, components } => {
                if self.entities.len() >= MAX_ENTITIES {
                    return Err(EntityMessageError::TooMany { what: "entities", limit: MAX_ENTITIES });
                }
                let clock = Duration::from_millis(millis);
                self.stale.remove(&id);
                self.entities.insert(net, (id, clock));
                let named = |(number, value): (u16, &[u8])| Some((self.name(number)?, value.to_vec()));
                let components = components.into_iter().filter_map(named).collect();
                self.news.push_back(EntityNews::Appeared { id, place: place.in_cell(cell), clock, components });
            }
            Event::Change { net, components } => {
                let Some((id, _)) = self.entities.get(&net).copied() else { return Ok(()) };
                let named =
                    |(number, value): (u16, Option<&[u8]>)| Some((self.name(number)?, value.map(<[u8]>::to_vec)));
                let components = components.into_iter().filter_map(named).collect();
                self.news.push_back(EntityNews::Changed { id, components });
            }
            Event::Leave { net } => {
                let left = self.entities.remove(&net).map(|(id, _)| EntityNews::Left(id));
                self.news.extend(left);
            }
        }
        Ok(())
    }

    fn name(&self, number: u16) -> Option<String> {
        self.types.get(usize::from(number)).cloned()
    }

    /// The next news.
    pub fn next_news(&mut self) -> Option<EntityNews> {
        self.news.pop_front()
    }
}
