//! What of a box a snapshot holds.

use serde::{Deserialize, Serialize};

/// What a snapshot holds of its box; what it does not hold is left alone when it is restored. The default is all.
///
/// | left out | when the snapshot is restored |
/// |---|---|
/// | blocks | blocks stay as they are |
/// | layers | the layers above a block stay as long as it does, and go with a block that changes |
/// | components | they stay with a block that stays the same; a block that changes has none yet: zeros and empty values |
/// | entities | nobody comes or goes |
///
/// Without blocks, layers are restored onto whatever block is there, and components to the blocks that are still of the same
/// type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SnapshotParts {
    /// The blocks of layer 0.
    pub blocks: bool,
    /// The blocks of the layers above.
    pub layers: bool,
    /// The components of blocks.
    pub components: bool,
    /// Entities. Players never are.
    pub entities: bool,
}

impl SnapshotParts {
    /// Everything.
    pub const ALL: Self = Self { blocks: true, layers: true, components: true, entities: true };

    /// What both have.
    pub const fn intersection(self, other: Self) -> Self {
        Self {
            blocks: self.blocks && other.blocks,
            layers: self.layers && other.layers,
            components: self.components && other.components,
            entities: self.entities && other.entities,
        }
    }

    /// Whether anything of chunks is held.
    pub(super) const fn has_cells(self) -> bool {
        self.blocks || self.layers || self.components
    }

    /// Whether all of chunks is held.
    pub(super) const fn has_all_of_cells(self) -> bool {
        self.blocks && self.layers && self.components
    }
}

impl Default for SnapshotParts {
    fn default() -> Self {
        Self::ALL
    }
}
