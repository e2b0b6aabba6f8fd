//! Every decoder on damaged bytes: `TERRANE_ROUNDS` says how many of them.

use super::layers_and_components::kitchen;
use super::*;
use crate::chunk::format::cluster::{ClusterScale, EncodedCluster, encode_cluster};
use crate::chunk::tests::furniture::{FACING, Furniture, HEAT, ITEMS, TEXT};

/// A chunk can be held in so many times its bytes and so much more.
const MOST_TIMES: usize = 64;
const MOST_MORE: usize = 1 << 20;

fn rounds() -> u64 {
    std::env::var("TERRANE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(3_000)
}

/// Numbers that look random, the same ones in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 32) as usize * end) >> 32
    }

    /// Changes some bytes, mostly those that steer; now and then inserts, removes or cuts.
    fn damage(&mut self, bytes: &mut Vec<u8>, steering: &[usize]) {
        for _ in 0..1 + self.below(4) {
            let place = match self.below(3) {
                0 => self.below(bytes.len()),
                _ => steering[self.below(steering.len())].min(bytes.len() - 1),
            };
            match self.below(12) {
                0 => bytes.truncate(place + 1),
                1 => bytes.insert(place, self.below(256) as u8),
                2 if bytes.len() > 1 => drop(bytes.remove(place)),
                3 => bytes[place] = 0xff,
                4..8 => bytes[place] = bytes[place].wrapping_add(self.below(5) as u8).wrapping_sub(2),
                8 => bytes[place] ^= 1 << self.below(8),
                _ => bytes[place] = self.below(256) as u8,
            }
        }
    }
}

fn encoded_kitchen() -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_with(&Furniture, &kitchen(), &[Uuid::from_u128(3)], &mut bytes).unwrap();
    bytes
}

#[test]
fn damaged_chunks_are_read_or_refused() {
    let good = encoded_kitchen();
    let components_at = u64_at(&good, COMPONENT_OFFSET_AT) as usize;
    let steering: Vec<usize> = (0..80).chain(components_at - 4..good.len()).collect();
    let mut read = 0;
    for round in 0..rounds() {
        let mut bytes = good.clone();
        Random(round).damage(&mut bytes, &steering);
        if let Ok(decoded) = decode_with(&Furniture, &bytes) {
            read += 1;
            assert!(decoded.chunk.heap_bytes() <= MOST_TIMES * bytes.len() + MOST_MORE, "round {round}");
            let mut again = Vec::new();
            encode_with(&Furniture, &decoded.chunk, &decoded.entities, &mut again).unwrap();
            assert_eq!(decode_with(&Furniture, &again), Ok(decoded), "round {round}");
        }
        let _ = decode(&bytes);
    }
    assert!(read > 0, "some damage changes no more than a value");
}

#[test]
fn random_access_to_damaged_chunks_agrees_with_decoding() {
    let good = encoded_kitchen();
    let components_at = u64_at(&good, COMPONENT_OFFSET_AT) as usize;
    let steering: Vec<usize> = (0..80).chain(components_at - 4..good.len()).collect();
    for round in 0..rounds() {
        let mut bytes = good.clone();
        Random(round).damage(&mut bytes, &steering);
        let Ok(read) = EncodedChunk::new(&bytes) else { continue };
        let decoded = decode_with(&Furniture, &bytes);
        for (position, layer) in [([0, 0, 2], 0), ([0, 0, 2], 1), ([0, 0, 2], 2), ([0, 1, 0], 0), ([9, 9, 9], 3)] {
            let block = read.block_at(position, layer);
            if let Ok(decoded) = &decoded {
                assert_eq!(block, Ok(decoded.chunk.block_at(position, layer)), "round {round}");
            }
            for component in [HEAT, FACING, TEXT, ITEMS] {
                let value = read.component(&Furniture, position, layer, component);
                if let Ok(decoded) = &decoded {
                    assert_eq!(value, Ok(decoded.chunk.component(position, layer, component)), "round {round}");
                }
            }
        }
    }
}

#[test]
fn damaged_clusters_are_read_or_refused() {
    let mut good = Vec::new();
    let chunks = [[1; 20], [2; 20], [3; 20]];
    encode_cluster(ClusterScale::Small, |place| Some(&chunks.get(place / 7)?[..place % 7 + 1]), &mut good);
    let steering: Vec<usize> = (0..9 + 64 * 8).collect();
    for round in 0..rounds() {
        let mut bytes = good.clone();
        Random(round).damage(&mut bytes, &steering);
        let Ok(cluster) = EncodedCluster::new(&bytes) else { continue };
        let found = cluster.chunks().filter_map(Result::ok).map(|(_, bytes)| bytes.len()).sum::<usize>();
        assert!(found < bytes.len(), "round {round}");
        for place in 0..cluster.scale().volume() {
            let _ = cluster.chunk(place);
        }
    }
}
