//! Bytes that earlier versions wrote. Later versions must read them: add files, but never change one.

use super::layers_and_components::kitchen;
use super::*;
use crate::chunk::format::cluster::{decode_cluster, encode_cluster};
use crate::chunk::tests::furniture::Furniture;

const TERRAIN: &[u8] = include_bytes!("golden/terrain.chunk");
const KITCHEN: &[u8] = include_bytes!("golden/kitchen.chunk");
const CLUSTER: &[u8] = include_bytes!("golden/small.cluster");
const ENTITY: Uuid = Uuid::from_u128(0x0123_4567_89ab_cdef_0011_2233_4455_6677);

fn terrain() -> Chunk {
    Chunk::from_fn(|[x, y, z]| BlockId::new(if y > 9 { 0 } else { 1_000 + ((x ^ z) / 4) as u32 * 70_000 }))
}

fn encoded_kitchen() -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&Furniture, &kitchen(), &[ENTITY], &mut bytes).unwrap();
    bytes
}

/// Promise, chunk format: Every later version reads the golden files of the chunk format.
#[test]
fn chunks_of_version_1_are_read() {
    assert_eq!(decode(&(), TERRAIN), Ok((terrain(), vec![])));
    assert_eq!(decode(&Furniture, KITCHEN), Ok((kitchen(), vec![ENTITY])));
}

/// Promise, chunk format: Every later version reads the golden files of the chunk format.
#[test]
fn clusters_of_version_1_are_read() {
    assert_eq!(decode_cluster(CLUSTER).unwrap(), [(3, TERRAIN), (42, KITCHEN)]);
}

/// Promise, chunk format: Chunk format version 1 never changes.
#[test]
fn version_1_is_written_as_it_always_was() {
    assert!(encoded(&terrain(), &[]) == TERRAIN);
    assert!(encoded_kitchen() == KITCHEN);
    let mut bytes = Vec::new();
    let chunk = |place| match place {
        3 => Some(TERRAIN),
        42 => Some(KITCHEN),
        _ => None,
    };
    encode_cluster(chunk, &mut bytes);
    assert!(bytes == CLUSTER);
}
