//! The errors of a stored world, each with the place where it happened.

use super::{Family, Tier};
use crate::space::{BatchPos, ChunkPos, ColumnPos, DimensionId, GeneratorIdentity, TilePos};
use crate::work::FileError;
use std::fmt;
use std::path::{Path, PathBuf};
use thiserror::Error;
use uuid::Uuid;

/// A failed operation of a store.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StoreError {
    /// The backend failed.
    #[error("cannot {operation} {} of the world {}: {reason}", family.map_or("the data", Family::name), path.display())]
    Backend {
        /// The operation that failed: open, read, scan, write, sync, measure, compact, back up or restore.
        operation: &'static str,
        /// The family; `None` if several are affected.
        family: Option<Family>,
        /// The path of the store.
        path: PathBuf,
        /// The backend's message.
        reason: String,
    },
    /// A stored value differs from the one that was written, or has an unknown format.
    #[error("{what} in the world {} cannot be used: {reason}", path.display())]
    Corrupt {
        /// The damaged value.
        what: StoredItem,
        /// The path of the store.
        path: PathBuf,
        /// A description of the damage.
        reason: String,
    },
    /// A stored value is whole, but the game's migration of one of its components refuses it. Another version of the
    /// game may be able to read it, so it must not be overwritten.
    #[error("{what} in the world {} cannot be migrated: {reason}", path.display())]
    Unmigrated {
        /// The refused value.
        what: StoredItem,
        /// The path of the store.
        path: PathBuf,
        /// The migration's message and the component.
        reason: String,
    },
    /// The backend found that its data on disk differs from the data it wrote. Other keys may still be readable.
    #[error("{family} of the world {} is damaged: {reason}", path.display())]
    Damaged {
        /// The damaged family.
        family: Family,
        /// The path of the store.
        path: PathBuf,
        /// The backend's message, with the file and offset if known.
        reason: String,
    },
    /// A file of the store is missing or damaged. Opening the store would lose data.
    #[error("{} is damaged: {reason}", path.display())]
    DamagedFile {
        /// The file, or the store's folder if the file is unknown.
        path: PathBuf,
        /// A description of the damage.
        reason: String,
    },
    /// The batch was not written because a stored value differs from the one that the batch
    /// [requires](super::WriteBatch::require).
    #[error(
        "nothing was written to the world {}: another writer changed key {key:02x?} of {family} meanwhile", path.display()
    )]
    PreconditionFailed {
        /// The family of the key.
        family: Family,
        /// The key.
        key: Vec<u8>,
        /// The path of the store.
        path: PathBuf,
    },
    /// The world has since been opened elsewhere, and the newer session owns it. This session can no longer save.
    #[error("session {session} of the world {} has ended: it was opened again elsewhere; close it here", path.display())]
    Superseded {
        /// The session that has ended.
        session: u64,
        /// The path of the store.
        path: PathBuf,
    },
    /// No dimension has this name, or the dimension is being removed.
    #[error("the world {} has no dimension {name:?}", path.display())]
    UnknownDimension {
        /// The name.
        name: String,
        /// The path of the store.
        path: PathBuf,
    },
    /// The dimension was created from another origin.
    #[error("the dimension {name:?} was made by {stored}, but {wanted} is wanted; give it another name")]
    OriginMismatch {
        /// The dimension's name.
        name: String,
        /// The origin that is stored.
        stored: Box<GeneratorIdentity>,
        /// The origin that was requested.
        wanted: Box<GeneratorIdentity>,
    },
    /// The dimension is being removed.
    #[error(
        "the dimension {name:?} is being removed; call remove_dimension again to finish that, then the name is free"
    )]
    BeingRemoved {
        /// The dimension's name.
        name: String,
    },
    /// The graph of the dimension's stored columns is lost.
    #[error(
        "the graph of stored columns of {dimension} in the world {} is lost: open it with its game once, or salvage it",
        path.display()
    )]
    LostGraph {
        /// The dimension.
        dimension: DimensionId,
        /// The path of the store.
        path: PathBuf,
    },
    /// The world was opened only to be [read](super::Access::Read) or [maintained](super::Access::Maintain).
    #[error("the world {} was not opened to be changed", path.display())]
    NotWritable {
        /// The path of the store.
        path: PathBuf,
    },
    /// The store is read-only since its disk failed. It is reopened as soon as possible.
    #[error("the world {} is read-only since its store failed, it is tried again: {reason}", path.display())]
    ReadOnly {
        /// The path of the store.
        path: PathBuf,
        /// The failure.
        reason: String,
    },
    /// The folder of the open world was deleted, moved or replaced. Data saved elsewhere would be lost.
    #[error(
        "the folder {} was deleted or moved, or another one has taken its place; saving goes on when it is there again",
        path.display()
    )]
    FolderLost {
        /// The folder.
        path: PathBuf,
    },
}

impl StoreError {
    /// Returns `true` if stored data is damaged or missing, as opposed to a failure of the store itself.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Corrupt { .. } | Self::Damaged { .. } | Self::DamagedFile { .. })
    }

    /// Returns `true` if the store itself fails. The failure may be temporary: the same call may succeed a moment later.
    #[doc(hidden)]
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Backend { .. } | Self::ReadOnly { .. } | Self::FolderLost { .. })
    }

    /// An error of a backend. The store's folder is removed from file names in the message, since the error has its own path.
    pub(super) fn backend(
        operation: &'static str,
        family: Option<Family>,
        path: &Path,
        reason: impl Into<String>,
    ) -> Self {
        Self::Backend { operation, family, path: path.to_path_buf(), reason: without_folder(&reason.into(), path) }
    }
}

/// A world could not be opened. Stored data is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WorldOpenError {
    /// The path is a file instead of a folder.
    #[error("{} is a file, not a folder; choose another place for the world", path.display())]
    NotAFolder {
        /// The file.
        path: PathBuf,
    },
    /// The folder holds other files and no world.
    #[error("{} holds {found:?} but no world; choose an empty folder or one that does not exist yet", path.display())]
    NotAWorld {
        /// The folder.
        path: PathBuf,
        /// The name of one of these files.
        found: String,
    },
    /// The folder holds no world.
    #[error("there is no world in {}", path.display())]
    NoWorld {
        /// The path of the folder.
        path: PathBuf,
    },
    /// A world already exists where a new one should be created.
    #[error("{} is a world already; choose an empty folder or one that does not exist yet", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// The file system refuses access.
    #[error("{0}; make sure that this user may write there and that the disk is neither full nor read-only")]
    Inaccessible(#[from] FileError),
    /// Another process, or this one, has the world open.
    #[error(
        "{} is locked by {}; close the world there first", path.display(),
        process.map_or("another process".into(), |number| format!("process {number}"))
    )]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The id of the process, if it could be read.
        process: Option<u32>,
    },
    /// The world was made by a newer version of this crate.
    #[error(
        "the world {} has format {found}, and only formats up to {supported} are known; open it with a newer version",
        path.display()
    )]
    NewerFormat {
        /// The world's folder.
        path: PathBuf,
        /// The world's format.
        found: u32,
        /// The newest format that can be opened.
        supported: u32,
    },
    /// The marker file names no valid format.
    #[error(
        "{} is damaged: {reason}; restore it from a backup, or all of the world with `terrane salvage`", path.display()
    )]
    MarkerDamaged {
        /// The marker file.
        path: PathBuf,
        /// A description of the damage.
        reason: String,
    },
    /// The database of the world is missing.
    #[error("{} is missing, but the world is marked as complete; restore it from a backup", path.display())]
    DatabaseMissing {
        /// The database's folder.
        path: PathBuf,
    },
    /// The database cannot be used.
    #[error(
        "{source}; if the disk is sound, restore the world from a backup, or what can be read of it with `terrane salvage`"
    )]
    Database {
        /// The world's folder.
        path: PathBuf,
        /// The error of the database.
        source: StoreError,
    },
    /// This build has no backend for worlds on disk.
    #[error(
        "cannot open the world {}: this build keeps worlds in memory only; enable the feature `rocksdb`",
        path.display()
    )]
    NoBackend {
        /// The world's folder.
        path: PathBuf,
    },
}

impl WorldOpenError {
    /// Returns `true` if a part of the world is damaged or missing.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::MarkerDamaged { .. } | Self::DatabaseMissing { .. } => true,
            Self::Database { source, .. } => source.is_damage(),
            _ => false,
        }
    }
}

/// Removes `folder` from the paths in `text`.
pub(super) fn without_folder(text: &str, folder: &Path) -> String {
    match folder.to_str() {
        Some(folder) if !folder.is_empty() => text.replace(&format!("{}/", folder.trim_end_matches('/')), ""),
        _ => text.to_owned(),
    }
}

/// A stored value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StoredItem {
    /// A chunk.
    Chunk(DimensionId, ChunkPos),
    /// All chunks under one key of a tier. The position is that of the first chunk that the key has room for.
    Cluster(Tier, DimensionId, ChunkPos),
    /// The record of an entity.
    Entity(Uuid),
    /// The scheduled block ticks of a chunk.
    BlockTicks(DimensionId, ChunkPos),
    /// A tile of the stored graph, by its x and z in steps of 32 columns.
    Tile(DimensionId, TilePos),
    /// The summary of a column.
    Summary(DimensionId, ColumnPos),
    /// The opacity map of a batch.
    Opacity(DimensionId, BatchPos),
    /// A pre-generation, by its number in the dimension.
    Pregeneration(DimensionId, u64),
    /// A kept object of an export, by its key.
    Object(DimensionId, String),
    /// The progress of an import, by its number.
    Import(DimensionId, u32),
    /// The world's header.
    Header,
    /// The record of the dimension with this name.
    Dimension(String),
    /// The number of the dimension that was created last.
    LastDimension,
    /// The world's play time.
    PlayTime,
    /// The clock of a dimension.
    Clock(DimensionId),
    /// The seed that the game gave to a dimension's generator.
    OwnSeed(DimensionId),
    /// A list of the registry, by its key.
    Registry(String),
    /// A key of unknown form.
    Key(Family, Vec<u8>),
}

impl fmt::Display for StoredItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chunk(dimension, pos) => write!(f, "chunk {pos} of {dimension}"),
            Self::Cluster(tier, dimension, first) => {
                write!(f, "the {tier} cluster from chunk {first} on of {dimension}")
            }
            Self::BlockTicks(dimension, pos) => write!(f, "the block ticks of chunk {pos} of {dimension}"),
            Self::Entity(id) => write!(f, "entity {id}"),
            Self::Tile(dimension, tile) => write!(f, "graph tile {tile} of {dimension}"),
            Self::Summary(dimension, column) => write!(f, "the summary of column {column} of {dimension}"),
            Self::Opacity(dimension, batch) => write!(f, "the opacity of batch {batch} of {dimension}"),
            Self::Pregeneration(dimension, number) => write!(f, "pre-generation {number} of {dimension}"),
            Self::Object(dimension, key) => write!(f, "the object {key:?} of {dimension}"),
            Self::Import(dimension, number) => write!(f, "how far the import {number:08x} into {dimension} is"),
            Self::Header => f.write_str("the header"),
            Self::Dimension(name) => write!(f, "the record of the dimension {name:?}"),
            Self::LastDimension => f.write_str("the number of the last dimension"),
            Self::PlayTime => f.write_str("the play time"),
            Self::Clock(dimension) => write!(f, "the clock of {dimension}"),
            Self::OwnSeed(dimension) => write!(f, "the seed of {dimension}"),
            Self::Registry(key) => write!(f, "the registry's list {key:?}"),
            Self::Key(family, key) => write!(f, "key {key:02x?} of {family}"),
        }
    }
}
