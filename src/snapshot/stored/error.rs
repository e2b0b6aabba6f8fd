//! What can go wrong with stored snapshots.

use crate::snapshot::schematic::{SchematicError, SchematicWriteError};
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
    #[error("{path} exists already")]
    AlreadyExists {
        /// The folder.
        path: PathBuf,
    },
    /// The path does not end with a name.
    #[error("{path} names no folder that can be made")]
    NoName {
        /// The path.
        path: PathBuf,
    },
    /// There is no snapshot.
    #[error("{path} is no folder with an index.txt")]
    NotASnapshot {
        /// The folder.
        path: PathBuf,
    },
    /// It was written by a later version of this crate.
    #[error("{path} has version {found}, but only version 1 is known")]
    Version {
        /// The index.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
    /// The index is not what was written.
    #[error("{path}: its checksum is {found:08x}, but {stored:08x} was stored with it")]
    IndexChecksum {
        /// The index.
        path: PathBuf,
        /// The checksum in it.
        stored: u32,
        /// The checksum of what is there now.
        found: u32,
    },
    /// The index says what cannot be.
    #[error("{path}: line {line}: expected {expected}")]
    Index {
        /// The index.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What should be there.
        expected: &'static str,
    },
    /// The snapshot does not have the column.
    #[error("column {column} is not part of it")]
    NoSuchColumn {
        /// The column.
        column: ColumnPos,
    },
    /// The file of a column is not there.
    #[error("column {column}: {path} is missing")]
    FileMissing {
        /// The column.
        column: ColumnPos,
        /// Its file.
        path: PathBuf,
    },
    /// The file of a column is too long or too short.
    #[error("column {column}: {path} should have {expected} bytes, found {found}")]
    FileLength {
        /// The column.
        column: ColumnPos,
        /// Its file.
        path: PathBuf,
        /// Bytes that were written.
        expected: u64,
        /// Bytes that are there, as far as they were counted.
        found: u64,
    },
    /// The file of a column is not what was written.
    #[error("column {column}: {path}: its checksum is {found:08x}, but {stored:08x} was stored in the index")]
    FileChecksum {
        /// The column.
        column: ColumnPos,
        /// Its file.
        path: PathBuf,
        /// The checksum in the index.
        stored: u32,
        /// The checksum of what is there now.
        found: u32,
    },
    /// The file of a column is no schematic.
    #[error("column {column}: {path}: {source}")]
    Schematic {
        /// The column.
        column: ColumnPos,
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        source: SchematicError,
    },
    /// The schematic of a column is another one than the index says.
    #[error("column {column}: {path}: {what}")]
    Content {
        /// The column.
        column: ColumnPos,
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A column cannot be written as a schematic.
    #[error("column {column}: {source}")]
    Write {
        /// The column.
        column: ColumnPos,
        /// Why not.
        source: SchematicWriteError,
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
