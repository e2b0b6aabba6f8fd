//! The header of a world.

use serde::{Deserialize, Serialize};

/// The format of new worlds, and the newest one that can be opened. It is stored in the marker beside the database and
/// in the header inside it.
pub(crate) const FORMAT: u32 = 1;

/// The properties of the world as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub format: u32,
    pub created_at_seconds: u64,
    pub sessions: u64,
}
