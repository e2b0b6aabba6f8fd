//! [`SnapshotParts`].

use serde::{Deserialize, Serialize};

/// The parts of a box that a snapshot contains. A restore leaves other parts alone. The default is all parts.
///
/// | excluded part | effect when the snapshot is restored |
/// |---|---|
/// | blocks | blocks stay unchanged |
/// | layers | the layers above a block stay unless the block changes, which removes them |
/// | components | an unchanged block keeps its components; a changed block gets zeros and empty values |
/// | entities | entities are neither added nor removed |
///
/// Without blocks, layers are restored onto the current blocks, and components only to blocks whose type is still the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SnapshotParts {
    /// The blocks of layer 0.
    pub blocks: bool,
    /// The blocks of the layers above.
    pub layers: bool,
    /// The components of blocks.
    pub components: bool,
    /// Entities, which never include players.
    pub entities: bool,
}

impl SnapshotParts {
    /// All parts.
    pub const ALL: Self = Self { blocks: true, layers: true, components: true, entities: true };

    /// The parts in both sets.
    pub const fn intersection(self, other: Self) -> Self {
        Self {
            blocks: self.blocks && other.blocks,
            layers: self.layers && other.layers,
            components: self.components && other.components,
            entities: self.entities && other.entities,
        }
    }

    /// Returns `true` if any part of chunks is included.
    pub(super) const fn has_cells(self) -> bool {
        self.blocks || self.layers || self.components
    }

    /// Returns `true` if all parts of chunks are included.
    pub(super) const fn has_all_of_cells(self) -> bool {
        self.blocks && self.layers && self.components
    }
}

impl Default for SnapshotParts {
    fn default() -> Self {
        Self::ALL
    }
}
