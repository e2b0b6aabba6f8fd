//! The kinds of stored values and their encodings, and the header of a world.

pub(super) mod block_ticks;
pub(super) mod blocks;
pub(super) mod clocks;
pub(super) mod crossings;
pub(super) mod histories;
pub(super) mod players;
pub(super) mod pregenerations;
pub(super) mod registry_lists;
pub(super) mod stored_chunks;
pub(super) mod stored_graph;
pub(super) mod summaries;
pub(super) mod tile_history;
pub(super) mod tile_masks;

pub(super) use crate::bytes::record;

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
