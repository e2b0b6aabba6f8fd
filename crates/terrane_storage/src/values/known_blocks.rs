//! The block types of a world in memory.

use crate::block::{BlockId, BlockRegistry};
use std::sync::Arc;

/// The block types, as the game has registered them or as they are stored.
#[derive(Debug)]
pub(crate) struct KnownBlocks {
    pub registry: Arc<BlockRegistry>,
    /// For each type, by its id, `true` if it is opaque. Empty before the game has registered its types, since opacity is not stored.
    pub opaque: Vec<bool>,
}

impl KnownBlocks {
    /// Returns `true` if the game has registered its types.
    pub fn are_registered(&self) -> bool {
        !self.opaque.is_empty()
    }

    /// Returns `true` if a block hides the blocks behind it. Blocks of unknown types do.
    pub fn is_opaque(&self, block: BlockId) -> bool {
        self.opaque.get(block.index() as usize).copied().unwrap_or(block != BlockId::AIR)
    }

    /// A checksum of the types that are not opaque. An opacity map with another one is outdated. Opaque types that are
    /// added later do not change it.
    pub fn fingerprint(&self) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        let transparent = (0_u32..).zip(&self.opaque).filter(|(_, is_opaque)| !**is_opaque);
        transparent.for_each(|(id, _)| hasher.update(&id.to_le_bytes()));
        hasher.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Promise, world format: The fingerprint of an opacity map is that of the block types that are not opaque.
    #[test]
    fn the_fingerprint_is_that_of_the_types_that_are_not_opaque() {
        let registry = Arc::new(BlockRegistry::new());
        let known = |opaque: &[bool]| KnownBlocks { registry: registry.clone(), opaque: opaque.to_vec() };
        let fingerprint = |opaque: &[bool]| known(opaque).fingerprint();
        let expected = crc32fast::hash(&[0, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(fingerprint(&[false, true, false]), expected);
        assert_eq!(fingerprint(&[false, true, false, true]), expected, "an opaque type that came later");
        assert_ne!(fingerprint(&[false, true, false, false]), expected);
        assert_ne!(fingerprint(&[false, false, true]), expected);
    }
}
