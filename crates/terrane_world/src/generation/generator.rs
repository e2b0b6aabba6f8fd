//! [`Generator`], its requests and its errors.

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
/// A generator is a pure function: the block at a place depends only on the place, the generator's settings and the
/// game's block types. Therefore
///
/// * generating the same column twice, in any order and on any thread, gives the same column. A world can thus be
///   generated in parallel, and an unchanged column can be generated again instead of being stored;
/// * the requested heights only cut the result. They may be a window, a part of the dimension's heights: the union of
///   windows is the complete column, everywhere within `i64`. If a generator depends on blocks above or below its
///   window, it computes them, and never treats the window's edge as the edge of the ground.
pub trait Generator: Send + Sync + 'static {
    /// Name, version and seed. They are stored with the dimension, so that no other generator can continue its ground.
    fn identity(&self) -> GeneratorIdentity;

    /// The seed that the game gave, for messages: [`identity`](Self::identity) may contain a digest instead. `None` if
    /// the ground does not depend on a seed.
    fn own_seed(&self) -> Option<u64> {
        Some(self.identity().seed)
    }

    /// Generates one column within the requested heights. Chunks of only air are omitted.
    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError>;

    /// The surface at one place, if the generator can compute it without the column. [`Layers`](super::Layers) and
    /// [`Features`](super::Features) use it, even beyond their own column.
    ///
    /// It must match the result of [`generate`](Self::generate). Without this method, whole columns are generated to
    /// find the surface, and some of them are cached.
    fn surface(&self, request: &SurfaceRequest<'_>) -> Result<SurfaceAnswer, GenerateError> {
        let _ = request;
        Ok(SurfaceAnswer::Unknown)
    }
}

/// A request to a [`Generator`].
#[derive(Clone)]
pub struct GenerateRequest<'a> {
    /// The column to generate.
    pub column: ColumnPos,
    /// The block heights (y) to generate: those of the dimension, or a window of them. The result is cut to them.
    pub heights: Range<i64>,
    /// The blocks of the game, by name.
    pub blocks: &'a BlockRegistry,
}

impl GenerateRequest<'_> {
    /// The id of the block with this name. The error names the block if the game does not have it.
    pub fn block(&self, name: &str) -> Result<BlockId, GenerateError> {
        block_id(self.blocks, name)
    }
}

/// Generates a column ready to be stored and read: every block is of a registered type and has all components of its
/// type, including those that the generator did not set.
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

/// The id of the block with this name. The error names the block if the game does not have it.
pub(super) fn block_id(blocks: &BlockRegistry, name: &str) -> Result<BlockId, GenerateError> {
    let unknown =
        || GenerateError::UnknownBlock { name: name.to_owned(), nearest: blocks.nearest_name(name).map(str::to_owned) };
    blocks.id(name).ok_or_else(unknown)
}

/// The error for a column that could not be generated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GenerateError {
    /// The generator uses a block that the game's registry does not have.
    #[error(
        "the generator uses the block \"{name}\", which is not registered: register it, or set another block{}",
        .nearest.as_ref().map(|nearest| format!(", such as {nearest:?}")).unwrap_or_default()
    )]
    UnknownBlock {
        /// The missing block's name.
        name: String,
        /// The most similar name of a registered type, if there is one.
        nearest: Option<String>,
    },
    /// The generator set a block to an id without a type.
    #[error(
        "the generator {generator:?} set block {position} to {block}, and no type is registered under that id: take ids from \
         `GenerateRequest::block`"
    )]
    Unregistered {
        /// The generator's name.
        generator: String,
        /// The position of the block.
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
        /// The requested column.
        column: ColumnPos,
        /// The number of chunks that it would hold.
        chunks: u64,
        /// The maximum number of chunks.
        limit: u64,
    },
    /// A feature set a block beyond the reach that it declares.
    #[error(
        "the feature \"{feature}\" at {origin} set a block {offset:?} away, beyond its reach: let its `reach` say how \
         far it goes"
    )]
    BeyondReach {
        /// The feature's name.
        feature: String,
        /// The origin where it stands.
        origin: BlockPos,
        /// The offset of the block, along x, y and z.
        offset: [i64; 3],
    },
    /// The generator set a component of a block that does not have it.
    #[error("the generator set a component that does not fit, in chunk {chunk}: {source}")]
    Component {
        /// The chunk.
        chunk: ChunkPos,
        /// The component, its place in the chunk, and the reason.
        source: BlockValueError,
    },
    /// The generator failed for a reason of its own.
    #[error("column {column} could not be generated: {reason}")]
    Failed {
        /// The requested column.
        column: ColumnPos,
        /// The reason.
        reason: String,
    },
}
