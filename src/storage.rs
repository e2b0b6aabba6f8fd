//! Worlds that outlive the process: keys, values, atomic commits and the thread that makes them.
//!
//! [`WorldStore`] is a world's storage. It sits on a [`KeyValueStore`], in memory or on disk, and knows what is kept
//! there and how: chunks by dimension and Morton order, their scheduled block ticks by column, entities by UUID, the
//! saved pieces of the distance graph, pre-generations, what columns look like from afar, which blocks are opaque, the
//! lists of blocks and other types, the names of dimensions. A [`SaveBatch`] collects what is to be saved and is committed
//! as a whole or not at all; [`StorageThread`] does so beside the simulation.
//!
//! ```text
//! SaveBatch -> StorageThread -> WorldStore::commit -> KeyValueStore::write
//! generation pool  <-  WorldStore::load_batch  <-  KeyValueStore::scan
//! ```

pub mod conformance;
pub mod envelope;
pub mod keys;
pub mod upkeep;

mod block_ticks;
mod blocks;
mod chunk_group;
mod cluster;
mod commit;
mod compression;
mod damage;
mod entity_record;
mod error;
#[cfg(any(feature = "rocksdb", test))]
mod folder;
mod heat;
mod load;
mod memory;
mod opacity;
mod opacity_tile;
mod players;
mod pregenerations;
mod promotion;
mod record;
mod registry_lists;
mod remove_dimension;
#[cfg(feature = "rocksdb")]
mod rocks;
mod save_batch;
mod store;
mod stored_chunks;
mod summaries;
mod thread;
mod tier;
mod tiers;
mod tiles;
mod unwritten_opacity;
mod walk;
mod world;

#[cfg(test)]
mod test_store;

pub use block_ticks::StoredBlockTick;
pub use chunk_group::ChunkGroup;
pub use cluster::{ClusterError, PartError};
pub use commit::CommitReport;
pub use damage::SetAside;
pub use entity_record::{ChildRecord, EntityRecord, ViewerRecord};
pub use error::{Operation, StoreError, StoredItem};
pub use heat::{CoolingCursor, CoolingGroup};
pub use load::StoredColumn;
pub use memory::MemoryStore;
pub use opacity_tile::{OpacityError, OpacityTile, TILE_SIZE};
pub use players::player_component;
pub use pregenerations::{PregenerationEntry, StoredPregeneration};
pub use registry_lists::RegistryLists;
pub use remove_dimension::{RemoveDimensionError, RemovedDimension, StoredDimension};
#[cfg(feature = "rocksdb")]
pub use rocks::RocksStore;
pub use save_batch::{SaveBatch, StoredTile};
pub use store::{
    Backup, Change, Durability, Family, FamilySize, KeyValue, KeyValueStore, PageLimit, Precondition, WriteBatch,
};
pub use stored_chunks::StoredChunk;
pub use thread::{Commit, CommitError, FailedCommit, StorageThread, SubmitError};
pub use tier::{Promotion, Tier, TierSettings};
pub use tiers::TierMoves;
pub(crate) use tiles::mark_stored;
pub use walk::{UnreadableRange, WalkProgress};
pub use world::{Access, DimensionOrigin, StorageConfig, StoredDimensionError, WorldOpenError, WorldStore};
