//! The kinds of stored values, and their encodings.

pub(super) mod block_ticks;
pub(super) mod blocks;
pub(super) mod clocks;
pub(super) mod crossings;
pub(super) mod header;
pub(super) mod histories;
pub(super) mod known_blocks;
pub(super) mod players;
pub(super) mod plot_contents;
pub(super) mod pregenerations;
pub(super) use crate::bytes::record;
pub(super) mod registry_lists;
pub(super) mod stored_chunks;
pub(super) mod stored_graph;
pub(super) mod summaries;
pub(super) mod tile_history;
pub(super) mod tile_masks;
