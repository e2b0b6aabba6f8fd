//! The trait every generator implements, what it is asked and what it answers.

use crate::block::{BlockId, BlockRegistry};
use crate::chunk::Column;
use crate::space::ColumnPos;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use thiserror::Error;

/// Makes the columns that a dimension does not have yet.
///
/// A generator is a pure function of the request and of its own settings: the same column asked for twice, in any
/// order and from any thread, is the same column. That is what lets a world be generated in parallel, and lets a
/// column that was never changed be made again instead of stored.
pub trait Generator: Send + Sync + 'static {
    /// Name, version and seed. They are stored with the dimension, so that a world is never continued by another
    /// generator.
    fn identity(&self) -> GeneratorIdentity;

    /// Makes one column, as far as it lies within the heights asked for. Chunks that are all air are left out.
    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError>;
}

/// What a [`Generator`] is asked for.
#[derive(Clone)]
pub struct GenerateRequest<'a> {
    /// The column to make.
    pub column: ColumnPos,
    /// The block heights (y) the dimension has; what lies outside is cut.
    pub heights: Range<i64>,
    /// The blocks of the game, by name.
    pub blocks: &'a BlockRegistry,
}

impl GenerateRequest<'_> {
    /// The id of the block with this name; an error that names it if the game has none.
    pub fn block(&self, name: &str) -> Result<BlockId, GenerateError> {
        self.blocks.id(name).ok_or_else(|| GenerateError::UnknownBlock { name: name.to_owned() })
    }
}

/// Which generator made a dimension. Two generators with equal identities make equal columns.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GeneratorIdentity {
    /// The generator's name, such as `terrane:hills`.
    pub name: String,
    /// Rises whenever the generator would make other columns from the same settings.
    pub version: u32,
    /// The seed. The generators of this crate answer a digest of their seed and all their settings.
    pub seed: u64,
}

/// Why a column could not be generated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GenerateError {
    /// The generator uses a block that the game's registry does not have.
    #[error("the generator uses the block \"{name}\", which is not registered: register it, or set another block")]
    UnknownBlock {
        /// The missing block's name.
        name: String,
    },
    /// The column would hold more chunks than a column may.
    #[error(
        "column {column} would hold {chunks} chunks of ground, at most {limit} are allowed: give the dimension a \
         smaller height range, or the generator thinner layers"
    )]
    TooTall {
        /// The column asked for.
        column: ColumnPos,
        /// Chunks it would hold.
        chunks: u64,
        /// Chunks it may hold.
        limit: u64,
    },
    /// The generator gave up, for a reason of its own.
    #[error("column {column} could not be generated: {reason}")]
    Failed {
        /// The column asked for.
        column: ColumnPos,
        /// What went wrong.
        reason: String,
    },
}
