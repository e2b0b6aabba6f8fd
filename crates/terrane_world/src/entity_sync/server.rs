//! [`EntityServer`]: the entities of a dimension and the clients that see them.

mod cells;
mod client;
mod entity;

use super::messages::PacketWriter;
use super::place::{EntityPlace, ShortPlace};
use crate::space::ChunkPos;
use cells::Cells;
use client::Client;
use entity::Entity;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::time::Duration;
use uuid::Uuid;

/// The limits of a client's view of entities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityLimits {
    /// The radius within which the client sees entities, in chunks, also up and down.
    pub radius: u32,
    /// The number of bytes about entities that the client gets per second. Messages are sent in any case, and places wait for them, up to
    /// half a second.
    pub bytes_per_second: u32,
}

impl Default for EntityLimits {
    /// A radius of 6 chunks, 12 KiB per second.
    fn default() -> Self {
        Self { radius: 6, bytes_per_second: 12 << 10 }
    }
}

/// The message and the packets of a tick for a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForClient {
    /// The client.
    pub client: u64,
    /// A message, to be delivered reliably and in order.
    pub message: Option<Vec<u8>>,
    /// Packets of about 1,100 bytes, which may be lost.
    pub packets: Vec<Vec<u8>>,
}

/// The entities of a dimension that clients may see, and the clients. See the [module](super).
#[derive(Debug, Default)]
pub struct EntityServer {
    types: Vec<String>,
    /// Counts the calls of [`tick`](Self::tick).
    tick: u32,
    last: u32,
    numbers: FxHashMap<Uuid, u32>,
    entities: FxHashMap<u32, Entity>,
    cells: Cells,
    clients: BTreeMap<u64, Client>,
}

impl EntityServer {
    /// No entities and no clients. These are the names of the component types, in the order of their numbers.
    pub fn new(types: Vec<String>) -> Self {
        Self { types, ..Self::default() }
    }

    /// The number of entities.
    pub fn len(&self) -> usize {
        self.entities.len()
    }

    /// Returns `true` if there are no entities.
    pub fn is_empty(&self) -> bool {
        self.entities.is_empty()
    }

    /// Reports where an entity is, by the dimension's clock, and its changed components; `None` for one that it does not have any more. A
    /// new entity has all of its components.
    pub fn put(&mut self, id: Uuid, place: EntityPlace, clock: Duration, changes: Vec<(u16, Option<Vec<u8>>)>) {
        let (cell, short, millis) = (place.cell(), place.short(), clock.as_millis() as u64);
        let net = match self.numbers.get(&id) {
            Some(net) => *net,
            None => return self.appear(id, (cell, short, millis), changes),
        };
        let Some(entity) = self.entities.get_mut(&net) else { return };
        let before = entity.cell;
        if (entity.cell, entity.place) != (cell, short) {
            (entity.cell, entity.place, entity.moved) = (cell, short, self.tick);
            entity.millis = millis;
        }
        let mut changed = 0_u64;
        for (number, value) in changes {
            let is_news = match value {
                Some(value) => entity.components.insert(number, value.clone()).as_ref() != Some(&value),
                None => entity.components.remove(&number).is_some(),
            };
            changed |= u64::from(is_news) << number.min(63);
        }
        let mut is_new_cell = false;
        if before != cell {
            self.cells.remove(before, net);
            is_new_cell = self.cells.insert(cell, net);
        }
        if before == cell && changed == 0 {
            return;
        }
        for client in self.clients.values_mut() {
            // A cell with only the client's own entity counts too: others may come into it.
            if is_new_cell && client.has_in_sight(cell) {
                client.add_cell(cell);
            }
            match (client.sees(before, id), client.sees(cell, id)) {
                (false, true) => client.tell(&entity.appear(net)),
                (true, false) => client.leave(net),
                (true, true) if changed != 0 => client.owe(net, changed),
                _ => {}
            }
        }
    }

    fn appear(
        &mut self,
        id: Uuid,
        (cell, place, millis): (ChunkPos, ShortPlace, u64),
        changes: Vec<(u16, Option<Vec<u8>>)>,
    ) {
        let net = self.unused_number();
        let components = changes.into_iter().filter_map(|(number, value)| Some((number, value?))).collect();
        let entity = Entity { id, cell, place, millis, moved: self.tick, components };
        let is_new_cell = self.cells.insert(cell, net);
        for client in self.clients.values_mut().filter(|client| client.has_in_sight(cell)) {
            if is_new_cell {
                client.add_cell(cell);
            }
            if client.sees(cell, id) {
                client.tell(&entity.appear(net));
            }
        }
        self.numbers.insert(id, net);
        self.entities.insert(net, entity);
    }

    fn unused_number(&mut self) -> u32 {
        // Numbers begin anew after four billion entities.
        loop {
            self.last = self.last.wrapping_add(1);
            if !self.entities.contains_key(&self.last) {
                return self.last;
            }
        }
    }

    /// Reports that an entity is gone. Returns its components; `None` if it was not there.
    pub fn remove(&mut self, id: Uuid) -> Option<BTreeMap<u16, Vec<u8>>> {
        let net = self.numbers.remove(&id)?;
        let Entity { cell, components, .. } = self.entities.remove(&net)?;
        self.cells.remove(cell, net);
        self.clients.values_mut().filter(|client| client.sees(cell, id)).for_each(|client| client.leave(net));
        Some(components)
    }

    /// Adds a client, or changes its limits. It sees nothing before it [looks](Self::look) somewhere.
    pub fn connect(&mut self, client: u64, limits: EntityLimits) {
        match self.clients.get_mut(&client) {
            Some(known) if known.limits == limits => {}
            _ => _ = self.clients.insert(client, Client::new(limits)),
        }
    }

    /// Removes a client.
    pub fn disconnect(&mut self, client: u64) {
        self.clients.remove(&client);
    }

    /// Lets a client see the entities around this cell, except for its own one.
    pub fn look(&mut self, client: u64, center: ChunkPos, own: Option<Uuid>) {
        let Some(client) = self.clients.get_mut(&client) else { return };
        if client.center == Some(center) && client.own == own {
            return;
        }
        let before = (client.center, client.own);
        let mut around = self.cells.around(center, client.limits.radius);
        around.extend(before.0.into_iter().flat_map(|center| self.cells.around(center, client.limits.radius)));
        around.sort_unstable();
        around.dedup();
        for cell in around {
            for net in self.cells.members(cell) {
                let Some(entity) = self.entities.get(net) else { continue };
                let saw = client.sees(cell, entity.id);
                (client.center, client.own) = (Some(center), own);
                match (saw, client.sees(cell, entity.id)) {
                    (false, true) => client.tell(&entity.appear(*net)),
                    (true, false) => client.leave(*net),
                    _ => {}
                }
                (client.center, client.own) = before;
            }
        }
        (client.center, client.own) = (Some(center), own);
        client.is_planned = false;
    }

    /// Notes whether a client takes in messages, and whether it takes in packets. Its messages wait while it does not, up to half a MiB;
    /// after that, it starts anew. The places that it misses are sent once it takes in packets again.
    pub fn set_reading(&mut self, client: u64, messages: bool, packets: bool) {
        if let Some(client) = self.clients.get_mut(&client) {
            (client.is_reading, client.takes_packets) = (messages, packets);
        }
    }

    /// Ends a tick: call this up to 20 times per second, with the time since any fixed moment, and the dimension's clock. Returns what there is for
    /// clients.
    pub fn tick(&mut self, now: Duration, clock: Duration) -> Vec<ForClient> {
        self.tick = self.tick.wrapping_add(1);
        let Self { types, tick, entities, cells, clients, .. } = self;
        cells.begin_tick(*tick);
        let millis = clock.as_millis() as u64;
        let mut all = Vec::new();
        for (key, client) in clients {
            let Some(center) = client.center.filter(|_| client.is_reading) else {
                client.miss();
                continue;
            };
            if client.is_lost {
                client.begin(types);
                for cell in cells.around(center, client.limits.radius) {
                    let members = cells.members(cell).iter().filter_map(|net| Some((net, entities.get(net)?)));
                    let own = client.own;
                    let seen = members.filter(|(_, entity)| own != Some(entity.id));
                    seen.for_each(|(net, entity)| client.tell(&entity.appear(*net)));
                }
            }
            client.pay(*tick, entities);
            let message = client.take_message();
            let mut packets = PacketWriter::new(millis);
            if client.begin_packets(now, message.as_ref().map_or(0, Vec::len)) {
                client.plan(*key as u32, *tick, cells, entities);
                client.send_places(*tick, cells, entities, &mut packets);
            }
            let packets = packets.finish();
            if message.is_some() || !packets.is_empty() {
                all.push(ForClient { client: *key, message, packets });
            }
        }
        all
    }

    /// The number of times that the places of a cell were encoded. It does not grow with the number of clients.
    pub fn encodings(&self) -> u64 {
        self.cells.encodings
    }
}
