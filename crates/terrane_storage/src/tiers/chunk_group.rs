//! Groups of 4 x 4 x 4 chunks, and their numbering.

use crate::chunk::format::cluster::{CLUSTER_VOLUME, cluster_place};
use crate::space::{BatchPos, ChunkPos, DimensionId};
use crate::{Tier, keys};
use std::fmt;
use std::ops::Range;

pub(crate) const GROUP_VOLUME: usize = CLUSTER_VOLUME;
/// The number of chunks along a group's edge, as a power of two.
const GROUP_SHIFT: u32 = 2;

/// An aligned group of 4 x 4 x 4 chunks: the chunks of a batch of columns at four heights. A group is in one [`Tier`]
/// as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkGroup {
    dimension: DimensionId,
    first: ChunkPos,
}

impl ChunkGroup {
    /// The group of a chunk.
    pub fn of(dimension: DimensionId, chunk: ChunkPos) -> Self {
        let first = |coordinate: i64| coordinate >> GROUP_SHIFT << GROUP_SHIFT;
        Self { dimension, first: ChunkPos::new(first(chunk.x), first(chunk.y), first(chunk.z)) }
    }

    /// The dimension of the group.
    pub fn dimension(self) -> DimensionId {
        self.dimension
    }

    /// The group's chunk with the lowest coordinates.
    pub fn first(self) -> ChunkPos {
        self.first
    }

    /// The batch of the group's columns.
    pub fn batch(self) -> BatchPos {
        self.first.column().batch()
    }

    /// The group's chunk at a [place](cluster_place).
    pub fn chunk(self, place: usize) -> ChunkPos {
        let bit = |bit: usize| (place >> bit & 1) as i64;
        let ChunkPos { x, y, z } = self.first;
        ChunkPos::new(x | bit(5) << 1 | bit(2), y | bit(4) << 1 | bit(1), z | bit(3) << 1 | bit(0))
    }

    /// The group's chunks whose bits are set in a mask by [place](cluster_place).
    pub fn chunks(self, mask: u64) -> impl Iterator<Item = ChunkPos> {
        (0..GROUP_VOLUME).filter(move |place| mask >> place & 1 == 1).map(move |place| self.chunk(place))
    }

    /// The key of the group when it is warm. When it is hot, the keys of its chunks start here.
    pub(crate) fn key(self) -> [u8; keys::CHUNK_KEY_LENGTH] {
        keys::chunk_key(self.dimension, self.first)
    }

    pub(crate) fn parse(key: &[u8]) -> Option<Self> {
        let (dimension, chunk) = keys::parse_chunk_key(key)?;
        Some(Self::of(dimension, chunk)).filter(|group| group.first == chunk)
    }

    /// The keys of the group's chunks when it is hot.
    pub(crate) fn range(self) -> Range<Vec<u8>> {
        keys::chunk_cube_range(self.dimension, self.first, GROUP_SHIFT)
    }

    /// The key of the group when it is cold, shared with the other groups of its cube of 16 x 16 x 16 chunks.
    pub(crate) fn cube_key(self) -> [u8; keys::CHUNK_KEY_LENGTH] {
        let first = |coordinate: i64| coordinate >> 4 << 4;
        let ChunkPos { x, y, z } = self.first;
        keys::chunk_key(self.dimension, ChunkPos::new(first(x), first(y), first(z)))
    }

    /// The place of the group in its cube, in Morton order.
    pub(crate) fn place_in_cube(self) -> u8 {
        let ChunkPos { x, y, z } = self.first;
        cluster_place(ChunkPos::new(x >> GROUP_SHIFT, y >> GROUP_SHIFT, z >> GROUP_SHIFT)) as u8
    }

    /// The group at `place` in a tier's cluster whose first chunk is `first`. Only a cold cluster has several groups.
    pub(crate) fn in_cluster(tier: Tier, dimension: DimensionId, first: ChunkPos, place: u8) -> Self {
        match tier {
            Tier::Cold => {
                let inside = Self::of(dimension, ChunkPos::new(0, 0, 0)).chunk(place.into());
                let ChunkPos { x, y, z } = first;
                Self::of(dimension, ChunkPos::new(x | inside.x << 2, y | inside.y << 2, z | inside.z << 2))
            }
            Tier::Hot | Tier::Warm => Self::of(dimension, first),
        }
    }
}

impl fmt::Display for ChunkGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the group of 64 chunks from {} on of {}", self.first, self.dimension)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn coordinate() -> impl Strategy<Value = i64> {
        prop_oneof![any::<i64>(), -40..40_i64, Just(i64::MIN), Just(i64::MAX)]
    }

    proptest! {
        /// Promise, tiers: A chunk group is in one tier, under the key of its first chunk.
        #[test]
        fn a_chunk_has_its_place_in_its_group_and_the_group_in_its_cube(x in coordinate(), y in coordinate(), z in coordinate()) {
            let (dimension, chunk) = (DimensionId(7), ChunkPos::new(x, y, z));
            let group = ChunkGroup::of(dimension, chunk);
            let place = cluster_place(chunk);
            prop_assert_eq!(group.chunk(place), chunk);
            prop_assert_eq!(group.chunks(1 << place).collect::<Vec<_>>(), [chunk]);
            prop_assert_eq!(group.batch(), chunk.column().batch());
            prop_assert_eq!(ChunkGroup::parse(&group.key()), Some(group));
            prop_assert_eq!(group.key().to_vec(), group.range().start);
            let (_, cube) = keys::parse_chunk_key(&group.cube_key()).unwrap();
            prop_assert_eq!(ChunkGroup::in_cluster(Tier::Cold, dimension, cube, group.place_in_cube()), group);
            // The keys of a cube's groups are one range that begins with the cube's.
            let range = keys::chunk_cube_range(dimension, chunk, 4);
            prop_assert_eq!(&range.start, &group.cube_key().to_vec());
            prop_assert!(range.contains(&group.key().to_vec()));
        }
    }
}
