//! Snapshots: captured parts of a world, which can be restored in place or elsewhere.
//!
//! A [`Snapshot`] shares the chunks of the captured world, so until the world changes it costs one pointer per chunk.
//! It is a plain value: the caller captures it column by column, and restores it chunk by chunk.
//!
//! | step | with |
//! |---|---|
//! | capture | [`Snapshot::add_column`] |
//! | move, turn, flip | [`Snapshot::placed`] by a [`Relocation`]; [`BlockTurns`] turns the block states |
//! | set the order of restoring chunks | [`RestoreSequence`] |
//! | restore | [`Snapshot::restored_chunks`], for the blocks of a [`BlockFilter`] |
//! | undo and redo | [`EditHistory`] |
//! | read and write files of other programs | [`schematic`], [`Snapshot::to_schematic`], [`Snapshot::from_schematic`] |
//! | store on disk | [`StoredSnapshot`] |
//!
//! ```
//! use terrane_world::block::BlockId;
//! use terrane_world::chunk::Column;
//! use terrane_world::snapshot::{BlockFilter, Snapshot};
//! use terrane_world::space::{BlockBox, BlockPos, ColumnPos};
//!
//! let mut column = Column::new(ColumnPos::new(0, 0));
//! column.set_block(BlockPos::new(5, 64, 5), BlockId::new(1));
//! let mut arena = Snapshot::new(BlockBox::new(BlockPos::new(0, 60, 0), BlockPos::new(9, 90, 9)));
//! arena.add_column(&column, 100, Vec::new());
//!
//! column.set_block(BlockPos::new(5, 64, 5), BlockId::AIR);
//! let restored: Vec<_> = arena.restored_chunks(&column, &BlockFilter::default()).collect();
//! for (y, chunk) in restored {
//!     column.set_chunk(y, chunk);
//! }
//! assert_eq!(column.block(BlockPos::new(5, 64, 5)), BlockId::new(1));
//! ```

mod capture;
mod history;
mod placed;
mod restore;
pub mod schematic;
mod stored;
#[cfg(test)]
mod tests;
pub mod translation;

pub use crate::block::turned_state;
pub use crate::space::Turn;
pub use capture::{ColumnSnapshot, Snapshot};
pub use history::{EditHistory, Recorded};
pub use placed::{BlockTurns, PlaceError, Relocation};
#[doc(hidden)]
pub use restore::restored_chunk;
pub use restore::{BlockChoice, BlockFilter, RestoreSequence, SnapshotParts};
pub use stored::{StoreOptions, StoredSnapshot, StoredSnapshotError};
