//! What can go wrong in looking after a world.

use crate::space::ColumnPos;
use crate::work::FileError;
use crate::{StoreError, WorldOpenError};
use std::path::PathBuf;
use terrane_objects::ObjectStoreError;
use thiserror::Error;

/// Why a world is not copied, salvaged or restored, a dimension not exported, an export not imported, or an object not kept
/// for one; or not wholly.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UpkeepError {
    /// A store fails, or something in it is damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A world, or the new one, cannot be opened or made.
    #[error(transparent)]
    Open(#[from] WorldOpenError),
    /// Nothing is copied into a store that has something in it.
    #[error("{} is not empty; nothing was copied into it", path.display())]
    NotEmpty {
        /// Where the store is.
        path: PathBuf,
    },
    /// It was told to stop, and nothing of it is left but a part of a world in a store that was empty.
    #[error("it was stopped")]
    Cancelled,
    /// A file of the export fails.
    #[error(transparent)]
    Objects(#[from] ObjectStoreError),
    /// The system says nothing of a file of the export, or does not remove it.
    #[error(transparent)]
    File(#[from] FileError),
    /// No world would take it in.
    #[error("{what} is more than an export can have")]
    TooLarge {
        /// What there is too much of.
        what: String,
    },
    /// There is a whole export already.
    #[error("{} is there already, and whole", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file holds something else than the beginning of this export.
    #[error(
        "{} is not the beginning of this export: it has another dimension, box or kind of objects, or the world was opened to \
         be played or was changed since; remove it, or choose another file", path.display()
    )]
    OtherExport {
        /// The file.
        path: PathBuf,
    },
    /// Something in a file is damaged, or missing. All that came into the world before stays.
    #[error("{}: {key:?} cannot be used: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The object.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The index of a file had to be made anew, and some of its blocks cannot be read: a game's own objects may have been in
    /// them, and nobody knows of which.
    #[error("{blocks} blocks of {} cannot be read: objects that were in them may be missing", path.display())]
    UnknownLoss {
        /// The file.
        path: PathBuf,
        /// How many blocks.
        blocks: u64,
    },
    /// The export was stopped, or its file cut short.
    #[error("{} is not whole: if its export was stopped, the same export finishes it", path.display())]
    Unfinished {
        /// The file.
        path: PathBuf,
    },
    /// There is ground already. If that is so before the import has begun, nothing was changed.
    #[error("{count} columns are there already, the first of them {first}")]
    Occupied {
        /// How many.
        count: u64,
        /// One of them.
        first: ColumnPos,
    },
    /// Parts of columns are to come to where nothing was generated yet. If that is so before the import has begun, nothing was
    /// changed.
    #[error(
        "{count} columns were never generated, the first of them {first}, and the export has only a part of their heights"
    )]
    Ungenerated {
        /// How many.
        count: u64,
        /// One of them.
        first: ColumnPos,
    },
    /// It would leave the grid.
    #[error("the column {column} cannot be moved so far")]
    OutOfRange {
        /// Where it is in the export.
        column: ColumnPos,
    },
    /// It was begun with other options: for ground that is there, or that was never generated.
    #[error("it was begun with other options: go on with those, or begin anew")]
    OtherOptions,
    /// The dimension's chunks are generated one by one, and the export's columns as a whole: all air of its box has to be stored.
    #[error("chunks of this dimension are generated one by one: it takes in boxes of at most {most} chunks in height")]
    TooHigh {
        /// Heights of chunks.
        most: u64,
    },
    /// A component of blocks has other sizes in the two worlds.
    #[error("the component {name:?} in version {version} has values of another size in this world")]
    Component {
        /// Its name.
        name: String,
        /// Its version.
        version: u32,
    },
    /// The key of an object that is to be kept is kept for the format, or cannot be one.
    #[error(
        "{key:?} is no key of a game's own: those have 1 to 512 bytes, a colon, and a place where there can be blocks if any"
    )]
    Key {
        /// The key.
        key: String,
    },
}

impl UpkeepError {
    /// Whether something in the files or in the world is not what was written.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Store(error) => error.is_damage(),
            Self::Open(error) => error.is_damage(),
            Self::Objects(error) => error.is_damage(),
            Self::Damaged { .. } | Self::UnknownLoss { .. } | Self::Unfinished { .. } => true,
            _ => false,
        }
    }

    /// Whether it is of an object or a file of the export, also of one that is not there, and not of the world.
    pub(super) fn is_of_files(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::UnknownLoss { .. } | Self::Objects(_))
    }
}
