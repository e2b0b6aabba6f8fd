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

pub mod leaving;
pub mod players;
mod round;
pub mod tend;

pub use leaving::leave_plots;
pub use tend::{Servers, drain_server, send_astray, tend};
