//! What the main world is told of columns.

use crate::space::{ChunkPos, ColumnPos, DimensionId, HeightSet};
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

/// In a sparse dimension: a part of a loaded column can be read, or cannot be read any more.
#[derive(Message, Clone, Debug)]
pub struct ColumnHeightsChanged {
    /// Its dimension.
    pub dimension: DimensionId,
    /// The column.
    pub column: ColumnPos,
    /// The chunk heights that came or went; [`Column::is_loaded`](crate::chunk::Column::is_loaded) tells them apart.
    pub heights: HeightSet,
}

/// A column cannot be read in the main world any more.
#[derive(Message, Clone, Debug)]
pub struct ColumnUnloaded {
    /// Its dimension.
    pub dimension: DimensionId,
    /// The column.
    pub column: ColumnPos,
}

pub(super) fn build(app: &mut App) {
    app.add_message::<ColumnLoaded>()
        .add_message::<ColumnChanged>()
        .add_message::<ColumnHeightsChanged>()
        .add_message::<ColumnUnloaded>();
}
