//! What the main world is told of columns.

use crate::space::{ColumnPos, DimensionId, HeightSet};
use bevy::prelude::*;

/// Something of a published column is another than before. [`PublishedColumns`](super::PublishedColumns) has what is there
/// now, which may be newer than what is told here.
#[derive(Message, Clone, Debug)]
pub struct ColumnChanged {
    /// Its dimension.
    pub dimension: DimensionId,
    /// The column.
    pub column: ColumnPos,
    /// What became of it.
    pub change: ColumnChange,
}

/// What became of a column in the main world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnChange {
    /// It can be read.
    Loaded,
    /// Its chunk at this height is another one.
    Chunk(i64),
    /// In a sparse dimension: it can be read, or cannot be read any more, at these chunk heights;
    /// [`Column::is_loaded`](crate::chunk::Column::is_loaded) tells them apart.
    Heights(HeightSet),
    /// It cannot be read any more.
    Unloaded,
}

pub(super) fn build(app: &mut App) {
    app.add_message::<ColumnChanged>();
}
