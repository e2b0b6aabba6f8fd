//! The header of a world.

use serde::{Deserialize, Serialize};

/// The format of the worlds that are made, and the newest one that can be opened. It stands in the marker beside the
/// database and in the header inside it.
pub(crate) const FORMAT: u32 = 1;

/// What is known of the world as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub format: u32,
    pub created_at_seconds: u64,
    pub sessions: u64,
}
