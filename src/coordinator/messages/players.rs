//! How players enter and leave the world.

use crate::coordinator::messages::faults::WorkError;
use crate::simulation::Undeliverable;
use crate::space::{BlockPos, DimensionId};
use bevy::prelude::*;
use thiserror::Error;

/// The maximum length of a name in bytes.
pub const LONGEST_NAME: usize = 255;

/// Brings a player into the world, where it was when it left. [`PlayerLoggedIn`](crate::view::PlayerLoggedIn) or
/// [`LogInRefused`](crate::view::LogInRefused) answers it.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct LogIn {
    /// Its name: 1 to 255 bytes.
    pub name: String,
    /// The dimension and the first block of a player whose name is new, or whose dimension was removed; `None` refuses such a
    /// player. The game equips a new player's entity once it has arrived.
    pub first_place: Option<(DimensionId, BlockPos)>,
}

/// Saves a player and takes it out of the world. [`PlayerLoggedOut`](crate::view::PlayerLoggedOut) answers it. Nothing happens
/// if the player is not in the world. A player that is still coming in is cancelled, or leaves once it has arrived.
///
/// This is the message of the main world. A system of a region inserts [`LoggedOut`](crate::simulation::LoggedOut) instead.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct LogOut {
    /// Its name.
    pub name: String,
}

/// The reason why a player cannot enter the world.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LogInError {
    /// The name is new, and there is no first place for a new player.
    #[error("there is no player of this name, and no first place for a new one")]
    UnknownName,
    /// The name is empty or too long.
    #[error("a name has 1 to {LONGEST_NAME} bytes, but this one has {0}")]
    InvalidName(usize),
    /// The player is in the world or on its way into it.
    #[error("the player is already in the world")]
    AlreadyThere,
    /// The dimension of the player, or of its first place, is not open.
    #[error("the player is in {0}, which is not open")]
    DimensionNotOpen(DimensionId),
    /// The player, or the ground where it is to appear, is on another server of a shared world: it must log in there.
    #[error("the player is on server {server}")]
    Elsewhere {
        /// The incarnation of the other server.
        server: u64,
        /// The address that the other server gave when it joined.
        address: Vec<u8>,
    },
    /// The lookup failed: no thread was available, the store cannot be read, or the player's record is damaged.
    #[error(transparent)]
    Work(#[from] WorkError),
    /// The player did not arrive; its stored data is unchanged.
    #[error("the player did not arrive: {0}")]
    Lost(#[source] Undeliverable),
}
