//! Clusters of chunks.

use super::*;
use crate::chunk::format::cluster::{CLUSTER_VOLUME, cluster_place, decode_cluster, encode_cluster};
use crate::space::ChunkPos;
use std::collections::BTreeMap;

fn cluster(chunks: &BTreeMap<usize, Vec<u8>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_cluster(|place| chunks.get(&place).map(|bytes| &bytes[..]), &mut bytes);
    bytes
}

/// Promise, chunk format: The parts of a chunk cluster have the documented bytes.
#[test]
fn a_cluster_has_the_bytes_of_the_table() {
    let chunks = BTreeMap::from([(1, vec![7, 7]), (63, vec![9])]);
    let bytes = cluster(&chunks);
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

/// Promise, chunk format: The places in a chunk cluster are in Morton order, like keys.
#[test]
fn places_are_in_the_order_of_the_keys() {
    let at = |x, y, z| cluster_place(ChunkPos::new(x, y, z));
    assert_eq!([at(0, 0, 1), at(0, 1, 0), at(1, 0, 0), at(0, 0, 2)], [1, 2, 4, 8]);
    assert_eq!(at(-1, -1, -1), 63);
    assert_eq!(at(-4, 4, 8), 0);
    let mut places: Vec<usize> = Vec::new();
    for x in 0..4 {
        for y in 0..4 {
            places.extend((0..4).map(|z| at(x, y, z)));
        }
    }
    places.sort_unstable();
    assert!(places.into_iter().eq(0..CLUSTER_VOLUME));
}

#[test]
fn errors_of_a_cluster_name_the_problem_and_its_place() {
    let good = cluster(&BTreeMap::from([(1, vec![7, 7]), (2, vec![9])]));
    let header = 9 + 64 * 8;
    let error = |bytes: &[u8]| decode_cluster(bytes).unwrap_err().to_string();
    assert_eq!(decode_cluster(&with_u64(&good, 0, 2)), Err(ChunkFormatError::Version { found: 2 }));
    for found in [0, 2, 3] {
        let mut scale = good.clone();
        scale[8] = found;
        assert_eq!(error(&scale), format!("byte 8: expected the scale 1, found {found}"));
    }
    assert_eq!(error(&good[..8]), "byte 0: expected 9 bytes of header, found 8");
    let truncated = format!("byte 0: expected {header} bytes of header and offsets, found {}", header - 1);
    assert_eq!(error(&good[..header - 1]), truncated);

    // A chunk begins within the header, after a gap, or not after the previous one.
    let (header, end) = (header as u64, good.len() as u64);
    let wrong = [
        (1, 3, header, header + 1),
        (1, header + 1, header, header + 1),
        (2, header, header + 1, end),
        (2, end, header + 1, end),
        (2, u64::MAX, header + 1, end),
    ];
    for (place, found, least, end) in wrong {
        let at = 9 + place * 8;
        let what = format!("expected the offset of a chunk from {least} to below {end}, found {found}");
        assert_eq!(error(&with_u64(&good, at, found)), format!("byte {at}: {what}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Promise, chunk format: A chunk cluster stores chunks as opaque bytes.
    #[test]
    fn chunks_of_a_cluster_survive_encoding(
        chunks in prop::collection::btree_map(0..CLUSTER_VOLUME, prop::collection::vec(any::<u8>(), 1..60), 0..64),
    ) {
        let bytes = cluster(&chunks);
        let read = decode_cluster(&bytes).unwrap();
        prop_assert!(read.into_iter().eq(chunks.iter().map(|(place, bytes)| (*place, &bytes[..]))));
    }
}
