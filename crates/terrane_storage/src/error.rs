//! What can go wrong with a world and what is stored in it, and where.

use super::{Family, Tier};
use crate::space::{BatchPos, ChunkPos, ColumnPos, DimensionId, GeneratorIdentity, TilePos};
use crate::work::FileError;
use std::fmt;
use std::path::{Path, PathBuf};
use thiserror::Error;
use uuid::Uuid;

/// A store could not do what it was asked to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StoreError {
    /// The backend failed.
    #[error("cannot {operation} {} of the world {}: {reason}", family.map_or("the data", Family::name), path.display())]
    Backend {
        /// What was tried: to open, read, scan, write, sync, measure, compact, back up or restore.
        operation: &'static str,
        /// On which family; `None` if on more than one.
        family: Option<Family>,
        /// Where the store is.
        path: PathBuf,
        /// What the backend said.
        reason: String,
    },
    /// A stored value is not what was written, or not in a format that is known.
    #[error("{what} in the world {} cannot be used: {reason}", path.display())]
    Corrupt {
        /// Which value.
        what: StoredItem,
        /// Where the store is.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A stored value is whole, but the game's migration of one of its components refuses it. Another version of the game may
    /// read it, so nothing may take its place.
    #[error("{what} in the world {} cannot be migrated: {reason}", path.display())]
    Unmigrated {
        /// Which value.
        what: StoredItem,
        /// Where the store is.
        path: PathBuf,
        /// What the migration said, and of which component.
        reason: String,
    },
    /// The backend found that what it has on disk is not what it wrote. Other keys may be readable.
    #[error("{family} of the world {} is damaged: {reason}", path.display())]
    Damaged {
        /// In which family.
        family: Family,
        /// Where the store is.
        path: PathBuf,
        /// What the backend said, with the file and the place in it if it knows them.
        reason: String,
    },
    /// A file of the store is missing, or is not what was written. To open it would lose what is stored.
    #[error("{} is damaged: {reason}", path.display())]
    DamagedFile {
        /// The file, or the store's folder if it is not known which.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A batch was not written, because something else is stored than what it [requires](super::WriteBatch::require).
    #[error(
        "nothing was written to the world {}: another writer changed key {key:02x?} of {family} meanwhile", path.display()
    )]
    PreconditionFailed {
        /// In which family.
        family: Family,
        /// Under which key.
        key: Vec<u8>,
        /// Where the store is.
        path: PathBuf,
    },
    /// Somebody else has opened the world since, and it is theirs. What is not saved here cannot be saved any more.
    #[error("session {session} of the world {} has ended: it was opened again elsewhere; close it here", path.display())]
    Superseded {
        /// The session that has ended.
        session: u64,
        /// Where the store is.
        path: PathBuf,
    },
    /// There is no dimension of this name, or it is being removed.
    #[error("the world {} has no dimension {name:?}", path.display())]
    UnknownDimension {
        /// The name.
        name: String,
        /// Where the store is.
        path: PathBuf,
    },
    /// The dimension was made from something else.
    #[error("the dimension {name:?} was made by {stored}, but {wanted} is wanted; give it another name")]
    OriginMismatch {
        /// The dimension's name.
        name: String,
        /// What it was made from.
        stored: Box<GeneratorIdentity>,
        /// What it should be made from now.
        wanted: Box<GeneratorIdentity>,
    },
    /// The removal of the dimension has begun.
    #[error(
        "the dimension {name:?} is being removed; call remove_dimension again to finish that, then the name is free"
    )]
    BeingRemoved {
        /// The dimension's name.
        name: String,
    },
    /// Which columns of a dimension are stored is not known.
    #[error(
        "the graph of stored columns of {dimension} in the world {} is lost: open it with its game once, or salvage it",
        path.display()
    )]
    LostGraph {
        /// The dimension.
        dimension: DimensionId,
        /// Where the store is.
        path: PathBuf,
    },
    /// The world was opened to be [read](super::Access::Read) or [maintained](super::Access::Maintain).
    #[error("the world {} was not opened to be changed", path.display())]
    NotWritable {
        /// Where the store is.
        path: PathBuf,
    },
    /// The store can be read but not written since its disk failed. It is opened anew as soon as that is possible.
    #[error("the world {} is read-only since its store failed, it is tried again: {reason}", path.display())]
    ReadOnly {
        /// Where the store is.
        path: PathBuf,
        /// What failed.
        reason: String,
    },
    /// The folder that was opened is not there any more: what is saved elsewhere would not be found again.
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
    /// Whether it is of something stored that is not what was written, and not of the store itself.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Corrupt { .. } | Self::Damaged { .. } | Self::DamagedFile { .. })
    }

    /// Whether the store itself does not work, which may end: the same may succeed a moment later.
    #[doc(hidden)]
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Backend { .. } | Self::ReadOnly { .. } | Self::FolderLost { .. })
    }

    /// What a backend said. Where it names files of the store, their folder is left out: the error says where the store is.
    pub(super) fn backend(
        operation: &'static str,
        family: Option<Family>,
        path: &Path,
        reason: impl Into<String>,
    ) -> Self {
        Self::Backend { operation, family, path: path.to_path_buf(), reason: without_folder(&reason.into(), path) }
    }
}

/// A world could not be opened. Nothing stored was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WorldOpenError {
    /// There is a file where the folder should be.
    #[error("{} is a file, not a folder; choose another place for the world", path.display())]
    NotAFolder {
        /// The file.
        path: PathBuf,
    },
    /// The folder belongs to something else.
    #[error("{} holds {found:?} but no world; choose an empty folder or one that does not exist yet", path.display())]
    NotAWorld {
        /// The folder.
        path: PathBuf,
        /// Something in it.
        found: String,
    },
    /// There is no world that could be opened.
    #[error("there is no world in {}", path.display())]
    NoWorld {
        /// Where it should be.
        path: PathBuf,
    },
    /// Something is there already where a world should be made.
    #[error("{} is a world already; choose an empty folder or one that does not exist yet", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// The file system does not allow what is needed.
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
        /// The number of the process, if it could be read.
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
    /// The file that names the format does not.
    #[error(
        "{} is damaged: {reason}; restore it from a backup, or all of the world with `terrane salvage`", path.display()
    )]
    MarkerDamaged {
        /// The marker file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The world has no database any more.
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
        /// What the database said.
        source: StoreError,
    },
    /// There is no backend for worlds on disk in this build.
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
    /// Whether something of the world is missing, or not what was written.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::MarkerDamaged { .. } | Self::DatabaseMissing { .. } => true,
            Self::Database { source, .. } => source.is_damage(),
            _ => false,
        }
    }
}

/// A text in which the files in a folder are named without it.
pub(super) fn without_folder(text: &str, folder: &Path) -> String {
    match folder.to_str() {
        Some(folder) if !folder.is_empty() => text.replace(&format!("{}/", folder.trim_end_matches('/')), ""),
        _ => text.to_owned(),
    }
}

/// Names one stored value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StoredItem {
    /// A chunk.
    Chunk(DimensionId, ChunkPos),
    /// All chunks under one key of a tier, by the first chunk that it has room for.
    Cluster(Tier, DimensionId, ChunkPos),
    /// The record of an entity.
    Entity(Uuid),
    /// The scheduled block ticks of a chunk.
    BlockTicks(DimensionId, ChunkPos),
    /// A piece of the graph of what is stored, by its x and z in steps of 32 columns.
    Tile(DimensionId, TilePos),
    /// What a column looks like from afar.
    Summary(DimensionId, ColumnPos),
    /// Which blocks of a batch of columns are opaque.
    Opacity(DimensionId, BatchPos),
    /// A pre-generation, by its number in the dimension.
    Pregeneration(DimensionId, u64),
    /// An object of an export that is only kept, by its key.
    Object(DimensionId, String),
    /// How far an import has come, by its number.
    Import(DimensionId, u32),
    /// The world's header.
    Header,
    /// The record of the dimension with this name.
    Dimension(String),
    /// The number that was given to a dimension last.
    LastDimension,
    /// How long the world has been open.
    PlayTime,
    /// How much time has passed in a dimension.
    Clock(DimensionId),
    /// The seed that the game gave a dimension's generator.
    OwnSeed(DimensionId),
    /// The list under this key of the registry.
    Registry(String),
    /// A key of an unknown form.
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
