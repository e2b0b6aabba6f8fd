//! The trait every generator implements, what it is asked and what it answers.

use super::digest::GeneratorIdentity;
use super::surface::{SurfaceAnswer, SurfaceRequest};
use crate::block::{BlockId, BlockRegistry};
use crate::chunk::{BlockValueError, Column};
use crate::space::{BlockPos, ChunkPos, ColumnPos};
use std::ops::Range;
use std::sync::Arc;
use thiserror::Error;

/// Makes the columns that a dimension does not have yet.
///
/// A generator is a pure function: the block at a place follows from the place, the generator's settings and the
/// game's block types, and from nothing else. So
///
/// * the same column asked for twice, in any order and from any thread, is the same column. That is what lets a world
///   be generated in parallel, and lets a column that was never changed be made again instead of stored;
/// * the heights asked for only cut. They may be a window, a part of the heights that the dimension has: the union of
///   windows is the column made whole, everywhere within `i64`. A generator that needs to know what lies above or
///   below its window works it out, and never takes the window's edge for the edge of the ground.
pub trait Generator: Send + Sync + 'static {
    /// Name, version and seed. They are stored with the dimension, so that a world is never continued by another
    /// generator.
    fn identity(&self) -> GeneratorIdentity;

    /// The seed as the game gave it, for messages: [`identity`](Self::identity) may have a digest in its place.
    /// `None` if the ground does not depend on one.
    fn own_seed(&self) -> Option<u64> {
        Some(self.identity().seed)
    }

    /// Makes one column, as far as it lies within the heights asked for. Chunks that are all air are left out.
    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError>;

    /// The ground at one place, if the generator can tell without making the column: what [`Layers`](super::Layers)
    /// and [`Features`](super::Features) stand on, also beyond their own column.
    ///
    /// It has to be what [`generate`](Self::generate) makes. A generator that leaves this out is asked for whole
    /// columns instead, some of which are remembered.
    fn surface(&self, request: &SurfaceRequest<'_>) -> Result<SurfaceAnswer, GenerateError> {
        let _ = request;
        Ok(SurfaceAnswer::Unknown)
    }
}

/// What a [`Generator`] is asked for.
#[derive(Clone)]
pub struct GenerateRequest<'a> {
    /// The column to make.
    pub column: ColumnPos,
    /// The block heights (y) to make: those that the dimension has, or a window of them. What lies outside is cut.
    pub heights: Range<i64>,
    /// The blocks of the game, by name.
    pub blocks: &'a BlockRegistry,
}

impl GenerateRequest<'_> {
    /// The id of the block with this name; an error that names it if the game has none.
    pub fn block(&self, name: &str) -> Result<BlockId, GenerateError> {
        block_id(self.blocks, name)
    }
}

/// Makes a column as it is stored and read: every block is of a registered type and has all components of that, also those
/// that the generator did not set.
#[doc(hidden)]
pub fn generate(generator: &dyn Generator, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
    let mut column = generator.generate(request)?;
    let mut completed = Vec::new();
    for (y, chunk) in column.chunks() {
        if let Some((cell, block)) = chunk.find_block(|block| !request.blocks.contains(block)) {
            let position = column.pos().chunk(y).block(cell);
            return Err(GenerateError::Unregistered { generator: generator.identity().name, position, block });
        }
        let of_chunk = |source| GenerateError::Component { chunk: column.pos().chunk(y), source };
        completed.extend(chunk.with_all_components(request.blocks).map_err(of_chunk)?.map(|chunk| (y, chunk)));
    }
    completed.into_iter().for_each(|(y, chunk)| drop(column.set_chunk(y, Arc::new(chunk))));
    Ok(column)
}

/// The id of the block with this name; an error that names it if the game has none.
pub(super) fn block_id(blocks: &BlockRegistry, name: &str) -> Result<BlockId, GenerateError> {
    blocks.id(name).ok_or_else(|| GenerateError::UnknownBlock { name: name.to_owned() })
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
    /// The generator set a block to an id that no type has.
    #[error(
        "the generator {generator:?} set block {position} to {block}, and no type is registered under that id: take ids from \
         `GenerateRequest::block`"
    )]
    Unregistered {
        /// The generator's name.
        generator: String,
        /// Where it set it.
        position: BlockPos,
        /// The id.
        block: BlockId,
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
    /// A feature set a block farther from its origin than the reach it declares.
    #[error(
        "the feature \"{feature}\" at {origin} set a block {offset:?} away, beyond its reach: let its `reach` say how \
         far it goes"
    )]
    BeyondReach {
        /// The feature's name.
        feature: String,
        /// Where it stands.
        origin: BlockPos,
        /// The offset of the block, along x, y and z.
        offset: [i64; 3],
    },
    /// The generator set a component of a block that does not have it.
    #[error("the generator set a component that does not fit, in chunk {chunk}: {source}")]
    Component {
        /// The chunk.
        chunk: ChunkPos,
        /// Which, where in the chunk, and why not.
        source: BlockValueError,
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
