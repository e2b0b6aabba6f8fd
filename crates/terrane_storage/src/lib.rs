#![doc = include_str!("../README.md")]

// Modules of other crates that this crate uses under `crate::`.
use terrane_objects::{bytes, work};
use terrane_world::{block, chunk, space};
#[cfg(test)]
use terrane_world::{entity, snapshot};

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
mod open_wait;
mod remove_dimension;
mod save_batch;
pub mod servers;
#[cfg(test)]
mod tests;
mod thread;
mod tiers;
mod walk;
mod world;

pub use backends::Family;
pub use backends::conformance;
pub use backends::memory::MemoryStore;
#[cfg(feature = "rocksdb")]
pub use backends::rocks::RocksStore;
pub use backends::store::{
    Backup, Durability, Entry, FamilySize, KeyValue, KeyValueStore, LostWrites, Read, WriteBatch,
};
pub use commit::CommitReport;
#[doc(hidden)]
pub use dimensions::DimensionNames;
pub use dimensions::StoredDimension;
pub use error::{StoreError, StoredItem, WorldOpenError};
pub use load::LoadedColumn;
pub use opacity::batch_opacity::BatchOpacity;
pub use open_wait::OpenWait;
pub use save_batch::{SaveBatch, StoredPregeneration, StoredTile};
pub use terrane_world::entity::{ChildRecord, EntityRecord, ViewerRecord};
#[doc(hidden)]
pub use terrane_world::entity::{FORMER_PLAYER_COMPONENT, player_component};
#[doc(hidden)]
pub use thread::{Commit, StorageThread};
pub use tiers::TierMoves;
pub use tiers::chunk_group::ChunkGroup;
#[doc(hidden)]
pub use tiers::heat::CoolingGroup;
pub use tiers::tier::{Tier, TierConfig};
pub use values::block_ticks::StoredBlockTick;
pub use values::crossings::PlotContents;
pub use values::pregenerations::PregenerationEntry;
pub use values::registry_lists::RegistryLists;
#[doc(hidden)]
pub use values::stored_chunks::StoredChunk;
pub use values::tile_history::TileHistory;
pub(crate) use values::tile_masks::mark_stored;
pub use world::{Access, StorageConfig, WorldStore};
