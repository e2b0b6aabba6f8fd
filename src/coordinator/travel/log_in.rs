//! How players come into the world and leave it.

use crate::coordinator::threads::work_error::WorkError;
use crate::simulation::Undeliverable;
use crate::space::{BlockPos, DimensionId};
use bevy::prelude::*;
use thiserror::Error;

/// Names are at most so long, in bytes.
pub const LONGEST_NAME: usize = 255;

/// Brings a player into the world, where it was when it left. [`PlayerLoggedIn`](crate::view::PlayerLoggedIn) or
/// [`LogInRefused`](crate::view::LogInRefused) answers.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct LogIn {
    /// Its name: 1 to 255 bytes.
    pub name: String,
    /// The dimension's entity and the block where it begins if nobody of this name has been in the world, or if the
    /// dimension where it left is removed; `None` if such a one is to be refused. What a new player has the game gives
    /// to its entity when it is there.
    pub first_place: Option<(Entity, BlockPos)>,
}

/// Has a player saved and taken out of the world: [`PlayerLoggedOut`](crate::view::PlayerLoggedOut) answers. If no player of this
/// name is in the world, nothing happens; one who is on the way is not waited for any more, or leaves when it is there.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct LogOut {
    /// Its name.
    pub name: String,
}

/// Why a player cannot come into the world.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LogInError {
    /// Nobody of this name has been in the world, and it was not said where a new player begins.
    #[error("no player of this name is known, and no place is given for a new one")]
    UnknownName,
    /// The name is empty or too long.
    #[error("a name has 1 to {LONGEST_NAME} bytes, and this one {0}")]
    InvalidName(usize),
    /// The player is in the world, or on its way into it.
    #[error("the player is in the world already")]
    AlreadyThere,
    /// The dimension that the player is in is not open.
    #[error("the player is in {0}, which is not open")]
    DimensionNotOpen(DimensionId),
    /// The place for a new player is in no open dimension.
    #[error("{0} is no open dimension")]
    NotADimension(Entity),
    /// Nobody could look for the player, the store cannot be read, or the player's record is damaged.
    #[error(transparent)]
    Work(#[from] WorkError),
    /// The player did not arrive; what is stored of it is as it was.
    #[error("the player did not arrive: {0}")]
    Lost(#[source] Undeliverable),
}
