//! Tells multiplayer clients of the entities around them.
//!
//! There is no transport: *messages* are bytes for a network that delivers them reliably and in order, and *packets* are bytes that may be
//! lost, repeated or overtaken.
//!
//! * [`EntityServer`] has all entities of a dimension that clients may see, and all of its clients. Entities, and the changes of their
//!   components, are sent in messages. Places are sent in packets.
//! * [`EntityClient`] has the entities around one client.
//!
//! A chunk is a *cell* of entities. The places in a cell are encoded once for all clients that see it at the same *rate*: 20, 10, 5 or
//! once in 20 ticks. They are relative to the cell, at a 256th of a block, and refer to nothing that was sent before. So a client needs no
//! state on the server except what it is owed, and a lost packet is replaced by the next one. Near cells have high rates, as far as a
//! client's limit of bytes allows.

mod client;
mod messages;
mod place;
mod server;
#[cfg(test)]
mod tests;

pub use client::{EntityClient, EntityNews};
pub use messages::EntityMessageError;
pub use place::EntityPlace;
pub use server::{EntityLimits, EntityServer, ForClient};

/// The kinds of a message about entities and of a packet of places: their second byte.
const MESSAGE: u8 = 4;
const PACKET: u8 = 5;

/// The rates at which a cell is sent: the ticks from one packet to the next.
const PERIODS: [u32; 4] = [1, 2, 4, 20];
