//! What can go wrong with stored snapshots.

use crate::snapshot::schematic::SchematicError;
use crate::snapshot::translation::TranslationError;
use crate::space::ColumnPos;
use crate::work::FileError;
use std::path::PathBuf;
use thiserror::Error;

/// Why a snapshot cannot be stored or read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StoredSnapshotError {
    /// The disk does not do what is asked of it.
    #[error(transparent)]
    Io(#[from] FileError),
    /// There is something under the name that a new snapshot was to have.
    #[error("{} exists already", path.display())]
    AlreadyExists {
        /// The folder.
        path: PathBuf,
    },
    /// There is no snapshot.
    #[error("{} is no folder with an index.txt", path.display())]
    NotASnapshot {
        /// The folder.
        path: PathBuf,
    },
    /// It was written by a later version of this crate.
    #[error("{} has version {found}, but only version 1 is known", path.display())]
    Version {
        /// The index.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
    /// The index or the file of a column is missing, is not what was written, or says what cannot be.
    #[error("{}: {what}", path.display())]
    Damaged {
        /// The file. That of a column begins with the column's place.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The snapshot does not have the column.
    #[error("column {column} is not part of it")]
    NoSuchColumn {
        /// The column.
        column: ColumnPos,
    },
    /// The file of a column is no schematic that can be read, or what is in the column cannot be written as one.
    #[error("{}: {source}", path.display())]
    Schematic {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: SchematicError,
    },
    /// The registry and a column do not go together.
    #[error("column {column}: {source}")]
    Translation {
        /// The column.
        column: ColumnPos,
        /// Why not.
        source: TranslationError,
    },
    /// The caller wanted it no longer.
    #[error("it was cancelled")]
    Cancelled,
}
