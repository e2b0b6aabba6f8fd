//! The choice of groups to move.

use crate::coordinator::tiers::*;
use crate::space::ChunkPos;
use crate::space::DimensionId;
use proptest::prelude::*;

#[test]
fn the_distance_is_that_of_the_nearest_chunk() {
    let group = ChunkGroup::of(DimensionId(0), ChunkPos::new(8, 4, -4));
    let at = |x, z| blocks_between(group, ColumnPos::new(x, z), None);
    for inside in [(8, -4), (11, -1), (9, -2)] {
        assert_eq!(at(inside.0, inside.1), 0);
    }
    assert_eq!((at(7, -4), at(12, -4), at(8, 0), at(8, -5)), (16, 16, 16, 16));
    assert_eq!(at(8 - 3, -4 - 4), 16 * 5);
    assert_eq!(blocks_between(group, ColumnPos::new(8, -4), Some(0)), 64);
    assert_eq!(blocks_between(group, ColumnPos::new(8, -4), Some(7)), 0);
}

proptest! {
    #[test]
    fn any_two_places_have_a_distance(a: [i64; 3], b: [i64; 3]) {
        let group = ChunkGroup::of(DimensionId(0), ChunkPos::new(a[0], a[1], a[2]));
        let between = |height| blocks_between(group, ColumnPos::new(b[0], b[2]), height);
        prop_assert!(between(None) <= between(Some(b[1])));
    }
}
