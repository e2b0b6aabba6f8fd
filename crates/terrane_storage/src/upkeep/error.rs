//! The errors of upkeep.

use crate::space::ColumnPos;
use crate::work::FileError;
use crate::{StoreError, WorldOpenError};
use std::path::PathBuf;
use terrane_objects::ObjectStoreError;
use thiserror::Error;

/// A copy, salvage, restore, export or import that failed or is incomplete, or an object that cannot be kept for exports.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UpkeepError {
    /// The store fails or holds damaged data.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The source or target world cannot be opened or created.
    #[error(transparent)]
    Open(#[from] WorldOpenError),
    /// The target store is not empty. Nothing was copied.
    #[error("{} is not empty; nothing was copied into it", path.display())]
    NotEmpty {
        /// The path of the store.
        path: PathBuf,
    },
    /// The operation was stopped. At most a part of a world is left, in a store that was empty.
    #[error("it was stopped")]
    Cancelled,
    /// A file of the export cannot be read or written.
    #[error(transparent)]
    Objects(#[from] ObjectStoreError),
    /// The system cannot inspect or remove a file of the export.
    #[error(transparent)]
    File(#[from] FileError),
    /// The export would exceed a limit, so that no world could import it.
    #[error("{what} is more than an export can hold")]
    TooLarge {
        /// The part that is too large.
        what: String,
    },
    /// A complete export already exists.
    #[error("{} already exists and is complete", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file holds something other than the beginning of this export.
    #[error(
        "{} is not the beginning of this export: it has another dimension, box or kind of objects, or the world was opened to \
         be played or was changed since; remove it, or choose another file", path.display()
    )]
    OtherExport {
        /// The file.
        path: PathBuf,
    },
    /// A part of a file is damaged or missing. Everything that was imported before stays.
    #[error("{}: {key:?} cannot be used: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The key of the object.
        key: String,
        /// A description of the damage.
        reason: String,
    },
    /// The index of a file had to be rebuilt, and some of its blocks cannot be read. They may have held kept objects,
    /// of unknown keys.
    #[error("{blocks} blocks of {} cannot be read: objects that were in them may be missing", path.display())]
    UnknownLoss {
        /// The file.
        path: PathBuf,
        /// The number of unreadable blocks.
        blocks: u64,
    },
    /// The export was interrupted, or its file is truncated.
    #[error("{} is incomplete: if its export was stopped, run the same export again to finish it", path.display())]
    Unfinished {
        /// The file.
        path: PathBuf,
    },
    /// The target area already has columns. If they are found before the import begins, the world is unchanged.
    #[error("{count} columns already exist, the first of them {first}")]
    Occupied {
        /// The number of columns.
        count: u64,
        /// The first of them.
        first: ColumnPos,
    },
    /// The export has only a part of the height of columns that were never generated in the target. If that is found
    /// before the import begins, the world is unchanged.
    #[error(
        "{count} columns were never generated, the first of them {first}, and the export has only a part of their heights"
    )]
    Ungenerated {
        /// The number of columns.
        count: u64,
        /// The first of them.
        first: ColumnPos,
    },
    /// The column would be moved out of the grid.
    #[error("column {column} cannot be moved that far")]
    OutOfRange {
        /// The column's position in the export.
        column: ColumnPos,
    },
    /// The import was begun with other options for existing or ungenerated ground.
    #[error("it was started with other options: continue with those, or start again")]
    OtherOptions,
    /// The dimension generates chunks one by one, and the export has whole columns: all air of its box would have to be
    /// stored.
    #[error(
        "chunks of this dimension are generated one by one: it can import boxes of at most {most} chunks in height"
    )]
    TooHigh {
        /// The maximum height, in chunks.
        most: u64,
    },
    /// A block component has values of different sizes in the two worlds.
    #[error("the component {name:?} in version {version} has values of another size in this world")]
    Component {
        /// Its name.
        name: String,
        /// Its version.
        version: u32,
    },
    /// The key is reserved for the format or is invalid, so the object cannot be kept.
    #[error(
        "{key:?} is not a key of a game: such keys have 1 to 512 bytes and a colon, and a place, if any, within the world"
    )]
    Key {
        /// The key.
        key: String,
    },
}

impl UpkeepError {
    /// Returns `true` if the files or the world are damaged.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Store(error) => error.is_damage(),
            Self::Open(error) => error.is_damage(),
            Self::Objects(error) => error.is_damage(),
            Self::Damaged { .. } | Self::UnknownLoss { .. } | Self::Unfinished { .. } => true,
            _ => false,
        }
    }

    /// Returns `true` if the error concerns an object or file of the export, even a missing one, and not the world.
    pub(super) fn is_of_files(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::UnknownLoss { .. } | Self::Objects(_))
    }
}
