//! Exports: dimensions, or boxes of them, as object stores. Another world can import them, under its own numbers for
//! the blocks.
//!
//! `docs/exports.md` specifies the keys and values, for other programs.

mod arrival;
mod export;
mod format;
mod ground;
mod import;
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

/// The options of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportOptions {
    /// The box to export. Chunks that it touches are exported whole.
    pub area: BlockBox,
    /// `true` if chunks are packed: one object for 4 x 4 x 4 chunks and one for everything else of 4 x 4 columns, instead
    /// of one object per chunk and up to four per column. `None` packs if there are more than 1,024 columns.
    pub packs: Option<bool>,
    /// The number of objects per file. A batch of columns is never split between files.
    pub objects_per_file: usize,
    /// `true` if damaged columns are left out. Otherwise damage is an error.
    pub leaves_damaged: bool,
}

impl Default for ExportOptions {
    /// Exports the whole dimension, packed if it is large, with 100,000 objects per file. Damage is an error.
    fn default() -> Self {
        Self { area: BlockBox::ALL, packs: None, objects_per_file: 100_000, leaves_damaged: false }
    }
}

/// The totals of an export, including earlier calls that were stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportReport {
    /// `true` if the export is complete. If not, the same call continues it.
    pub finished: bool,
    /// The number of columns.
    pub columns: u64,
    /// The number of chunks.
    pub chunks: u64,
    /// The number of entities.
    pub entities: u64,
    /// The number of kept objects of the dimension.
    pub objects: u64,
    /// The number of files.
    pub files: u32,
    /// The data that was left out because of damage.
    pub lost: Listed<LostObject>,
}

/// The options of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// The name of the target dimension, which is created if necessary. `None` keeps the name in the export.
    pub dimension: Option<String>,
    /// The distance by which the columns are moved along x, y and z, in chunks.
    pub moved_by: [i64; 3],
    /// The treatment of existing ground.
    pub existing: ExistingGround,
    /// `true` if columns that were never generated are left out if the export has only a part of their height. Otherwise
    /// they are an error, found before anything is changed.
    pub leaves_ungenerated: bool,
    /// `true` if columns with damage in the files are left out. Otherwise damage is an error.
    pub leaves_damaged: bool,
    /// `true` if the progress of an earlier stopped import of the same export is discarded. Its columns then count as
    /// existing ground.
    pub begins_anew: bool,
}

/// The treatment of existing ground in the target area of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExistingGround {
    /// Existing ground is an error, found before anything is changed.
    #[default]
    Refuse,
    /// Existing ground is kept, and whole columns, or chunks of a sparse dimension, of the export are left out.
    Keep,
    /// Existing ground is replaced. Its entities stay.
    Replace,
}

/// The totals of an import, including earlier calls that were stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportReport {
    /// `true` if the import is complete. If not, the same call continues it.
    pub finished: bool,
    /// The number of imported columns.
    pub columns: u64,
    /// The number of imported chunks.
    pub chunks: u64,
    /// The number of imported entities.
    pub entities: u64,
    /// The number of entities left out because the world already has them, in any place.
    pub known_entities: u64,
    /// The number of entities that are attached to others and were in a dimension that the world does not have. They
    /// are placed where the others are.
    pub displaced_entities: u64,
    /// The number of kept objects.
    pub objects: u64,
    /// The number of kept objects left out because the world already has them.
    pub known_objects: u64,
    /// The number of kept objects left out together with their ground.
    pub left_objects: u64,
    /// The number of existing columns, or chunks of a sparse dimension, that were kept.
    pub left: u64,
    /// The number of columns left out because they were never generated.
    pub ungenerated: u64,
    /// The number of block types that were added to the world's list.
    pub new_types: u64,
    /// The data that was left out because of damage.
    pub lost: Listed<LostObject>,
}

/// Data that was left out of an export or import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostObject {
    /// The original column; `None` for a kept object without ground, and for the history of columns, which then count as old.
    pub column: Option<ColumnPos>,
    /// The damage and its place.
    pub reason: String,
}

impl ImportReport {
    fn lose(&mut self, column: Option<ColumnPos>, error: &UpkeepError) {
        self.lost.add(LostObject { column, reason: error.to_string() });
    }
}
