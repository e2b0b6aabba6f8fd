//! Worlds that outlive the process: keys, values, atomic commits and the thread that makes them.
//!
//! [`WorldStore`] is a world's storage. It sits on a [`KeyValueStore`], in memory or on disk, and knows what is kept
//! there and how: chunks by dimension and Morton order, their scheduled block ticks by column, entities by UUID, the
//! saved pieces of the distance graph, pre-generations, what columns look like from afar, which blocks are opaque, the
//! lists of blocks and other types, the names of dimensions. A [`SaveBatch`] collects what is to be saved and is committed
//! as a whole or not at all; a `StorageThread` does so beside the simulation.
//!
//! ```text
//! SaveBatch -> StorageThread -> WorldStore::commit -> KeyValueStore::write
//! loading and region threads  <-  WorldStore::load_batch, load_part  <-  KeyValueStore::scan
//! ```

mod backends;
pub mod envelope;
pub mod keys;
pub mod upkeep;
mod values;

mod commit;
mod damage;
mod dimensions;
mod error;
#[cfg(feature = "rocksdb")]
mod folder;
mod load;
mod opacity;
mod remove_dimension;
mod save_batch;
#[cfg(test)]
mod tests;
mod thread;
mod tiers;
mod walk;
mod world;

pub use backends::conformance;
pub use backends::memory::MemoryStore;
#[cfg(feature = "rocksdb")]
pub use backends::rocks::RocksStore;
pub use backends::store::{Backup, Durability, Entry, Family, FamilySize, KeyValue, KeyValueStore, WriteBatch};
pub use commit::CommitReport;
pub use dimensions::StoredDimension;
pub use error::{StoreError, StoredItem, WorldOpenError};
pub use load::LoadedColumn;
pub use opacity::batch_opacity::BatchOpacity;
pub use save_batch::{SaveBatch, StoredTile};
pub(crate) use thread::{Commit, StorageThread};
pub use tiers::TierMoves;
pub use tiers::chunk_group::ChunkGroup;
pub(crate) use tiers::heat::CoolingGroup;
pub use tiers::tier::{Tier, TierConfig};
pub use values::block_ticks::StoredBlockTick;
pub use values::entity_record::{ChildRecord, EntityRecord, ViewerRecord};
pub(crate) use values::players::{FORMER_PLAYER_COMPONENT, player_component};
pub use values::pregenerations::{PregenerationEntry, StoredPregeneration};
pub use values::registry_lists::RegistryLists;
pub(crate) use values::stored_chunks::StoredChunk;
pub(crate) use values::stored_graph::mark_stored;
pub use world::{Access, StorageConfig, WorldStore};
