//! The servers of a shared world.

use crate::storage::servers::Plot;
use bevy::prelude::*;
use std::sync::Arc;

/// Asks this server to give all of its ground to another server, and to take no more: for an update, or before it is stopped.
/// A [`ServerDrained`](crate::view::ServerDrained) answers it.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainServer {
    /// The incarnation that gets the ground.
    pub to: u64,
}

/// A server of a shared world, as this one knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Reflect)]
#[type_path = "bevy_terrane"]
pub struct ServerStatistics {
    /// The number of its incarnation.
    pub incarnation: u64,
    /// The address that it gave when it joined.
    pub address: Vec<u8>,
    /// `true` for this server.
    pub is_this: bool,
    /// The plots that it owns in the dimensions that are open here, each 32 x 32 columns.
    #[reflect(ignore)]
    pub plots: Arc<[Plot]>,
}
