//! An entity as it is stored.

use crate::space::{BlockPos, ColumnPos, DimensionId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// An entity as it is stored, under its UUID.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntityRecord {
    /// Who it is, in every session.
    pub id: Uuid,
    /// The dimension it is in.
    pub dimension: DimensionId,
    /// The block it is in.
    pub block: BlockPos,
    /// Where in that block.
    pub offset: [f32; 3],
    /// How far it holds ground loaded around it, in columns; `None` if it does not.
    pub viewer_radius: Option<u32>,
    /// Its saved components: name and encoded value.
    pub components: Vec<(String, Vec<u8>)>,
}

impl EntityRecord {
    /// The column it is in.
    pub fn column(&self) -> ColumnPos {
        self.block.column()
    }
}
