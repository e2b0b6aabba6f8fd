//! Dimensions, or boxes of them, as object stores: exports that another world takes in, with other numbers for its blocks.
//!
//! `docs/exports.md` has the keys and the values, for other programs.

mod arrival;
mod export;
mod format;
mod ground;
mod import;
mod kept;
mod name;
mod reader;
#[cfg(test)]
mod tests;
mod types;
mod writer;

pub use format::EXPORT_SIGNATURE;
#[cfg(feature = "rocksdb")]
pub(super) use import::check_export;
pub use writer::export_file;

use super::{Listed, UpkeepError};
use crate::space::{BlockBox, ColumnPos};
use serde::{Deserialize, Serialize};

/// What is exported, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportOptions {
    /// The box: all chunks that it reaches, whole.
    pub area: BlockBox,
    /// Whether the ground is packed: an object for 4 x 4 x 4 chunks and one for all else of 4 x 4 columns, instead of an object
    /// a chunk and up to four a column. `None` for packs if there are more than 1,024 columns.
    pub packs: Option<bool>,
    /// How many objects are in a file; a batch of columns is not torn apart for it.
    pub objects_per_file: usize,
    /// Whether columns of which something is damaged are left out. Without, that is an error.
    pub leaves_damaged: bool,
}

impl Default for ExportOptions {
    /// The whole dimension, packed if it is large; 100,000 objects a file; damage is an error.
    fn default() -> Self {
        Self { area: BlockBox::ALL, packs: None, objects_per_file: 100_000, leaves_damaged: false }
    }
}

/// What an export has written, calls before that were stopped included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportReport {
    /// Whether it came to the end. If not, the same call goes on.
    pub finished: bool,
    /// Columns.
    pub columns: u64,
    /// Chunks.
    pub chunks: u64,
    /// Entities.
    pub entities: u64,
    /// Objects that were kept with the dimension.
    pub objects: u64,
    /// Files.
    pub files: u32,
    /// What was left out because it is damaged.
    pub lost: Listed<LostObject>,
}

/// How an export comes into a world.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// The name of the dimension that it comes to, which is made if it is not there. `None` for the one that it has.
    pub dimension: Option<String>,
    /// How far it is moved along x, y and z, in chunks.
    pub moved_by: [i64; 3],
    /// What becomes of ground that is there already.
    pub existing: ExistingGround,
    /// Whether columns that were never generated are left out, if the export has only a part of their heights. Without, that is
    /// an error that comes before anything is changed.
    pub leaves_ungenerated: bool,
    /// Whether columns of which something in the files is damaged are left out. Without, that is an error.
    pub leaves_damaged: bool,
    /// Whether an import of the same export that was stopped is forgotten. What it brought is then ground that is there already.
    pub begins_anew: bool,
}

/// What becomes of ground that is there already, where other ground is to come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExistingGround {
    /// That is an error, which comes before anything is changed.
    #[default]
    Refuse,
    /// It stays, and what is to come there is left out: whole columns, or chunks of a sparse dimension.
    Keep,
    /// It is replaced. Its entities stay.
    Replace,
}

/// What an import did, calls before that were stopped included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportReport {
    /// Whether it came to the end. If not, the same call goes on.
    pub finished: bool,
    /// Columns that came into the world.
    pub columns: u64,
    /// Chunks of them.
    pub chunks: u64,
    /// Entities that came into the world.
    pub entities: u64,
    /// Entities that the world has already, wherever they are: nobody is there twice.
    pub known_entities: u64,
    /// Entities that hang on others and were in a dimension that the world does not have: they are where the others are.
    pub displaced_entities: u64,
    /// Objects that the world only keeps.
    pub objects: u64,
    /// Objects that the world keeps already, and that stay as they are.
    pub known_objects: u64,
    /// Objects whose ground was left out, and they with it.
    pub left_objects: u64,
    /// Columns, or chunks of a sparse dimension, that were there already and stay.
    pub left: u64,
    /// Columns that were never generated and were left out.
    pub ungenerated: u64,
    /// Types of blocks that are new in the world's list.
    pub new_types: u64,
    /// What was left out because it is damaged.
    pub lost: Listed<LostObject>,
}

/// Something that was left out of an export, or of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostObject {
    /// The column, where it was; `None` for an object that a world only keeps.
    pub column: Option<ColumnPos>,
    /// What is damaged, and where.
    pub reason: String,
}

impl ImportReport {
    fn lose(&mut self, column: Option<ColumnPos>, error: &UpkeepError) {
        self.lost.add(LostObject { column, reason: error.to_string() });
    }
}
