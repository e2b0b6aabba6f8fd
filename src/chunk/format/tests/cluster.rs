//! Clusters of chunks.

use super::*;
use crate::chunk::format::cluster::{ClusterFormatError, ClusterScale, EncodedCluster, encode_cluster};
use crate::space::ChunkPos;
use std::collections::BTreeMap;

fn cluster(scale: ClusterScale, chunks: &BTreeMap<usize, Vec<u8>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_cluster(scale, |place| chunks.get(&place).map(|bytes| &bytes[..]), &mut bytes);
    bytes
}

fn all(bytes: &[u8]) -> Result<BTreeMap<usize, Vec<u8>>, ClusterFormatError> {
    let cluster = EncodedCluster::new(bytes)?;
    cluster.chunks().map(|chunk| chunk.map(|(place, bytes)| (place, bytes.to_vec()))).collect()
}

#[test]
fn a_cluster_has_the_bytes_of_the_table() {
    let chunks = BTreeMap::from([(1, vec![7, 7]), (63, vec![9])]);
    let bytes = cluster(ClusterScale::Small, &chunks);
    let header = 9 + 64 * 8;
    let mut expected = words(&[1]);
    expected.push(1);
    expected.extend(words(&std::array::from_fn::<u64, 64, _>(|place| match place {
        1 => header,
        63 => header + 2,
        _ => 0,
    })));
    expected.extend([7, 7, 9]);
    assert_eq!(bytes, expected);
}

#[test]
fn places_are_in_the_order_of_the_keys() {
    let small = |x, y, z| ClusterScale::Small.place(ChunkPos::new(x, y, z));
    assert_eq!([small(0, 0, 1), small(0, 1, 0), small(1, 0, 0), small(0, 0, 2)], [1, 2, 4, 8]);
    assert_eq!(small(-1, -1, -1), 63);
    assert_eq!(small(-4, 4, 8), 0);
    assert_eq!(ClusterScale::Large.place(ChunkPos::new(15, 15, -1)), 4095);
    let mut places: Vec<usize> = Vec::new();
    for x in 0..16 {
        for y in 0..16 {
            places.extend((0..16).map(|z| ClusterScale::Large.place(ChunkPos::new(x, y, z))));
        }
    }
    places.sort_unstable();
    assert!(places.into_iter().eq(0..4096));
}

#[test]
fn errors_of_a_cluster_say_what_and_where() {
    let good = cluster(ClusterScale::Small, &BTreeMap::from([(1, vec![7, 7]), (2, vec![9])]));
    let header = 9 + 64 * 8;
    let new = |bytes: &[u8]| EncodedCluster::new(bytes).unwrap_err();
    assert_eq!(new(&with_u64(&good, 0, 2)), ClusterFormatError::Version { found: 2 });
    let mut scale = good.clone();
    scale[8] = 3;
    assert_eq!(new(&scale), ClusterFormatError::Scale { found: 3 });
    let truncated = |part, expected, found| ClusterFormatError::Truncated { offset: 0, part, expected, found };
    assert_eq!(new(&good[..8]), truncated("header", 9, 8));
    assert_eq!(new(&good[..header - 1]), truncated("header and offsets", header as u128, header - 1));

    for (place, found, least) in [(1, 3, header), (2, header as u64, header + 1), (2, u64::MAX, header + 1)] {
        let bytes = with_u64(&good, 9 + place * 8, found);
        let (offset, end) = (9 + place * 8, good.len());
        let wrong = ClusterFormatError::ChunkOffset { offset, least, end, found };
        assert_eq!(EncodedCluster::new(&bytes).unwrap().chunk(1), Err(wrong));
    }
    let gap = with_u64(&good, 17, header as u64 + 1);
    assert!(all(&gap).is_err(), "there is a byte of no chunk");
    let message = new(&scale).to_string();
    assert_eq!(message, "byte 8: expected the scale 1 or 2, found 3");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn chunks_of_a_cluster_come_back_as_they_were(
        is_large: bool,
        chunks in prop::collection::btree_map(0..4096_usize, prop::collection::vec(any::<u8>(), 1..60), 0..80),
    ) {
        let scale = if is_large { ClusterScale::Large } else { ClusterScale::Small };
        let chunks: BTreeMap<_, _> = chunks.into_iter().filter(|(place, _)| *place < scale.volume()).collect();
        let bytes = cluster(scale, &chunks);
        prop_assert_eq!(all(&bytes).unwrap(), chunks.clone());
        let read = EncodedCluster::new(&bytes).unwrap();
        prop_assert_eq!(read.scale(), scale);
        for place in 0..scale.volume() {
            prop_assert_eq!(read.chunk(place).unwrap(), chunks.get(&place).map(|bytes| &bytes[..]));
        }
    }
}
