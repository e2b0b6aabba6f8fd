use crate::space::{ChunkPos, ColumnPos, DimensionId};
use bevy::prelude::*;

/// A column can be read in the main world.
#[derive(Message, Clone, Debug)]
pub struct ColumnLoaded {
    /// Its dimension.
    pub dimension: DimensionId,
    /// The column.
    pub column: ColumnPos,
}

/// A chunk of a loaded column changed.
#[derive(Message, Clone, Debug)]
pub struct ColumnChanged {
    /// Its dimension.
    pub dimension: DimensionId,
    /// The chunk that changed.
    pub chunk: ChunkPos,
}

/// A column cannot be read in the main world any more.
#[derive(Message, Clone, Debug)]
pub struct ColumnUnloaded {
    /// Its dimension.
    pub dimension: DimensionId,
    /// The column.
    pub column: ColumnPos,
}
