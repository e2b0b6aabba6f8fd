//! An entity as it is stored.

use super::keys;
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

    /// The keys in `meta` by which it is found: its place, and itself as a viewer if it is one.
    pub(super) fn index_keys(&self) -> Vec<Vec<u8>> {
        let mut keys = vec![keys::place_key(self.dimension, self.column(), self.id)];
        if self.viewer_radius.is_some() {
            keys.push(keys::viewer_key(self.dimension, self.id));
        }
        keys
    }
}
