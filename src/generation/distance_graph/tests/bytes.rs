//! The byte form: every damage is an error that says where, and nothing else.

use super::super::*;
use proptest::prelude::*;

/// A full root, a branch, a tile and a batch that are full, one that is not, and something claimed.
fn graph() -> DistanceGraph {
    let mut graph = DistanceGraph::new();
    graph.mark_range(ColumnPos::new(-2048, 0), ColumnPos::new(-1, 2047)).unwrap();
    graph.mark_range(ColumnPos::new(256, -256), ColumnPos::new(511, -1)).unwrap();
    graph.mark_range(ColumnPos::new(32, -32), ColumnPos::new(63, -1)).unwrap();
    graph.mark_batch(BatchPos::new(-1, -1), u16::MAX);
    graph.mark_batch(BatchPos::new(-2, -1), 0x0180);
    graph.claim(BatchPos::new(1000, 1000), ColumnPos::new(0, 0)).unwrap();
    graph
}

/// The bytes with a checksum that is right.
fn signed(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len() - 4;
    let sum = crc32fast::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[test]
fn version_1_stays_as_it_is() {
    let graph = graph();
    let mut expected = Vec::new();
    let word = |bytes: &mut Vec<u8>, word: u64| bytes.extend(word.to_le_bytes());
    expected.extend(b"dgra\x01\x00\x00\x00");
    for number in [4_194_304 + 65_536 + 1_024 + 16 + 2, 3] {
        word(&mut expected, number);
    }
    // Root [-1, -1]: the last tile has a full batch and two columns of another.
    for number in [u64::MAX, u64::MAX, 0, 1 << 63, 0, 1 << 63, 1 << 63, 1 << 62] {
        word(&mut expected, number);
    }
    expected.extend([0x80, 0x01]);
    // Root [0, -1]: a full branch, and one with a full tile.
    for number in [0, u64::MAX, 1 << 57, 1 << 56, 1 << 57, 0] {
        word(&mut expected, number);
    }
    // Root [-1, 0]: all of it.
    for number in [u64::MAX, 0, u64::MAX, 0] {
        word(&mut expected, number);
    }
    expected.extend(0x721b_70aa_u32.to_le_bytes());
    assert_eq!(graph.to_bytes(), expected);

    let read = DistanceGraph::from_bytes(&expected).unwrap();
    assert!(read.completed_batches().eq(graph.completed_batches()));
    assert_eq!((read.completed_count(), read.claimed_count()), (4_260_882, 0));
    let empty = DistanceGraph::new().to_bytes();
    assert_eq!(empty.len(), 28);
    assert_eq!(DistanceGraph::from_bytes(&empty).unwrap().completed_count(), 0);
}

#[test]
fn errors_say_what_is_wrong_and_where() {
    let bytes = graph().to_bytes();
    let error = |bytes: &[u8]| DistanceGraph::from_bytes(bytes).unwrap_err();
    let with = |offset: usize, patch: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[offset..offset + patch.len()].copy_from_slice(patch);
        error(&signed(bytes))
    };
    let word = |offset: usize, word: u64| with(offset, &word.to_le_bytes());

    let truncated = |offset, part, expected, found| GraphBytesError::Truncated { offset, part, expected, found };
    assert_eq!(error(b"dgr"), truncated(0, "signature", 4, 3));
    assert_eq!(error(b"dgra\x01\x00\x00\x00\x09"), truncated(8, "completed count", 8, 1));
    assert_eq!(error(&bytes[..26]), truncated(24, "checksum", 4, 2));
    assert_eq!(with(0, b"digraph"), GraphBytesError::Signature { found: *b"digr" });
    assert_eq!(with(4, &[2]), GraphBytesError::Version { found: 2 });

    let mut damaged = bytes.clone();
    damaged[100] ^= 4;
    let offset = bytes.len() - 4;
    assert!(matches!(error(&damaged), GraphBytesError::Checksum { offset: at, .. } if at == offset));

    assert_eq!(word(8, 7), GraphBytesError::Count { expected: 7, found: 4_260_882 });
    assert_eq!(word(16, 2), GraphBytesError::Trailing { offset: offset - 32, found: 32 });
    assert_eq!(word(16, 4), truncated(offset, "root", 8, 0));
    assert_eq!(word(24, 1 << 52), GraphBytesError::RootOutOfRange { offset: 24, x: 1 << 52, z: -1 });
    assert_eq!(word(24, 0), GraphBytesError::RootOrder { offset: 90, x: 0, z: -1 });

    let square = |offset, level, full, kept| GraphBytesError::Square { offset, level, full, kept };
    assert_eq!(word(40, 1 << 63), square(40, 3, 1 << 63, 1 << 63));
    assert_eq!(word(48, 0), square(40, 3, 0, 0));
    assert_eq!(word(56, u64::MAX >> 1), {
        // A branch with 63 full tiles, and the other one described.
        GraphBytesError::Count { expected: 4_260_882, found: 4_260_882 + 63 * 1024 }
    });
    assert_eq!(word(72, 3 << 62), square(72, 1, 3 << 62, 1 << 62));
    assert_eq!(with(88, &[0, 0]), GraphBytesError::Batch { offset: 88, found: 0 });
    assert_eq!(with(88, &[255, 255]), GraphBytesError::Batch { offset: 88, found: u16::MAX });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(DistanceGraph::from_bytes(&bytes).is_err());
    }

    /// With a checksum that is right, so that they get past it: they are refused, or are a graph's own bytes.
    #[test]
    fn mutated_bytes_are_refused_or_mean_what_they_say(
        patches in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
        body in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let mut bytes = graph().to_bytes();
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
            bytes.extend(body);
        }
        for (place, value) in patches {
            if !bytes.is_empty() {
                let place = place.index(bytes.len());
                bytes[place] = value;
            }
        }
        if bytes.len() >= 4 {
            bytes = signed(bytes);
        }
        if let Ok(graph) = DistanceGraph::from_bytes(&bytes) {
            prop_assert_eq!(graph.to_bytes(), bytes);
        }
    }

    /// Squares at random, in bytes that are right otherwise.
    #[test]
    fn random_squares_take_little_memory(words in prop::collection::vec(
        prop_oneof![Just(0u64), Just(u64::MAX), (0..64u32).prop_map(|bit| 1 << bit), any::<u64>()], 0..40,
    ), count in any::<u64>()) {
        let mut bytes = Vec::from(*b"dgra\x01\x00\x00\x00");
        for word in [count, words.len() as u64 / 4].iter().chain(&words) {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([0; 4]);
        let bytes = signed(bytes);
        match DistanceGraph::from_bytes(&bytes) {
            Ok(graph) => prop_assert!(graph.memory() <= 4096 + 16 * bytes.len()),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
