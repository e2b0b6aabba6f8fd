//! [`StoredSnapshotError`].

use crate::snapshot::schematic::SchematicError;
use crate::snapshot::translation::TranslationError;
use crate::space::ColumnPos;
use crate::work::FileError;
use std::path::PathBuf;
use thiserror::Error;

/// The error for a snapshot that cannot be stored or read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StoredSnapshotError {
    /// A disk operation failed.
    #[error(transparent)]
    Io(#[from] FileError),
    /// The name of the new snapshot already exists.
    #[error("{} exists already", path.display())]
    AlreadyExists {
        /// The folder.
        path: PathBuf,
    },
    /// The folder does not contain a snapshot.
    #[error("{} is not a folder with an index.txt", path.display())]
    NotASnapshot {
        /// The folder.
        path: PathBuf,
    },
    /// A later version of this crate wrote the snapshot.
    #[error("{} has version {found}, but only version 1 is known", path.display())]
    Version {
        /// The index.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
    /// The index or the file of a column is missing, damaged or invalid.
    #[error("{}: {what}", path.display())]
    Damaged {
        /// The file's path. The name of a column's file begins with the column's position.
        path: PathBuf,
        /// The fault.
        what: String,
    },
    /// The snapshot does not have the column.
    #[error("column {column} is not part of it")]
    NoSuchColumn {
        /// The column.
        column: ColumnPos,
    },
    /// The file of a column is not a readable schematic, or the column cannot be written as one.
    #[error("{}: {source}", path.display())]
    Schematic {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: SchematicError,
    },
    /// The registry and a column do not match.
    #[error("column {column}: {source}")]
    Translation {
        /// The column.
        column: ColumnPos,
        /// The reason.
        source: TranslationError,
    },
    /// The caller cancelled the operation.
    #[error("it was cancelled")]
    Cancelled,
}
