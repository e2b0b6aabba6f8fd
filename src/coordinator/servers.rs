//! This server's share of a world that several servers share: the plots that it owns, and what crosses to others.
//!
//! All questions to the database go in *rounds*, one at a time, beside the coordinator: a heartbeat, the plots to acquire,
//! to release and to hand over, and what has arrived. The answer of a round changes the states of plots:
//!
//! | | unknown | wanted | own | leaving |
//! |---|---|---|---|---|
//! | a viewer, a letter or a player needs it | wanted | | | |
//! | a round acquires it, or another server hands it over | own | own | | |
//! | nothing needs it any more | | unknown | leaving, after a while | |
//! | a join or a drain gives it to another server | | | leaving | |
//! | everything on it is stored, and a round gives it up | | | | unknown |
//! | a round cannot hand it over | | | | own |
//!
//! Ground is loaded, generated and fetched only on own plots. A plot that leaves still belongs to this server until all of it
//! is stored. If no heartbeat is confirmed in time, regions do not tick; if this server was ended, the app ends.

mod leaving;
mod plots;
mod received;
mod round;
mod tend;

use crate::storage::servers::Plot;
use bevy::prelude::*;
pub use leaving::leave_plots;
pub use plots::Plots;
pub use received::Received;
use std::sync::Arc;
pub use tend::{DrainServer, Servers, drain_server, receive, send_astray, tend};

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
