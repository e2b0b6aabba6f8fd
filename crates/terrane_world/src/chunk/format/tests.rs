//! Tests the chunk format against its table, against a slow writer, and with damage at every byte.

mod cluster;
mod golden;
mod layers_and_components;

use super::*;
use crate::block::{BlockComponentLayout, BlockId};
use crate::chunk::Chunk;
use crate::chunk::tests::{from_model, noise};
use crate::space::{CHUNK_VOLUME, cell_position};
use proptest::prelude::*;
use uuid::Uuid;

fn encoded(chunk: &Chunk, entities: &[Uuid]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&(), chunk, entities, &mut bytes).unwrap();
    bytes
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The bytes of a chunk, bit by bit from the table: slow and obvious.
fn by_hand(palette: &[u64], ids: impl Iterator<Item = u64>, entities: &[Uuid]) -> Vec<u8> {
    let bits = (0..).find(|bits| 1_usize << bits >= palette.len()).unwrap();
    let mut blocks = vec![0; (CHUNK_VOLUME * bits).div_ceil(8)];
    for (cell, id) in ids.enumerate() {
        for bit in (0..bits).filter(|bit| id >> bit & 1 == 1) {
            let place = cell * bits + bit;
            blocks[place / 8] |= 1 << (place % 8);
        }
    }
    let end = (40 + 8 * palette.len() + blocks.len()) as u64;
    let mut bytes = words(&[1, end, end, 0, palette.len() as u64]);
    bytes.extend(words(palette));
    bytes.extend(blocks);
    bytes.extend(words(&[entities.len() as u64]));
    bytes.extend(entities.iter().flat_map(|entity| *entity.as_bytes()));
    bytes
}

fn error(bytes: &[u8]) -> String {
    decode(&(), bytes).unwrap_err().to_string()
}

fn with_u64(bytes: &[u8], offset: usize, value: u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
    bytes
}

/// Promise, chunk format: A chunk of a single kind of block takes 56 bytes.
#[test]
fn a_uniform_chunk_is_56_bytes() {
    let bytes = encoded(&Chunk::uniform(BlockId::new(0x0102)), &[]);
    assert_eq!(bytes, words(&[1, 48, 48, 0, 1, 0x0102, 0]));
}

/// Promise, chunk format: Cells of a chunk are numbered with z fastest and x slowest.
/// Promise, chunk format: The parts of an encoded chunk have the documented bytes and order.
#[test]
fn a_small_chunk_has_the_bytes_of_the_table() {
    // Three blocks, so 2 bits each. Air appears first, then 7 at (0, 0, 1), then 5 at (0, 0, 3) and (0, 1, 0).
    let (five, seven) = (BlockId::new(5), BlockId::new(7));
    let mut chunk = Chunk::uniform(five);
    for x in 0..16 {
        for y in 0..16 {
            for z in 0..16 {
                chunk.set_block([x, y, z], BlockId::AIR);
            }
        }
    }
    chunk.set_block([0, 1, 0], five);
    chunk.set_block([0, 0, 3], five);
    chunk.set_block([0, 0, 1], seven);
    chunk.set_block([15, 15, 15], seven);
    let entity = Uuid::from_u128(0x000102030405060708090a0b0c0d0e0f);
    let bytes = encoded(&chunk, &[entity]);

    let end = 40 + 3 * 8 + 4096 * 2 / 8;
    assert_eq!(end, 1088);
    assert_eq!(
        bytes[..40],
        [
            [1, 0, 0, 0, 0, 0, 0, 0],
            [0x40, 4, 0, 0, 0, 0, 0, 0],
            [0x40, 4, 0, 0, 0, 0, 0, 0],
            [0; 8],
            [3, 0, 0, 0, 0, 0, 0, 0]
        ]
        .concat()
    );
    assert_eq!(bytes[40..64], [[0; 8], [7, 0, 0, 0, 0, 0, 0, 0], [5, 0, 0, 0, 0, 0, 0, 0]].concat());
    // Cell 1 is local id 1 (bits 2-3), cell 3 is local id 2 (bits 6-7), cell 16 is local id 2 (bits 0-1 of byte 4).
    assert_eq!(bytes[64..70], [0b10_00_01_00, 0, 0, 0, 0b00_00_00_10, 0]);
    assert!(bytes[70..1087].iter().all(|byte| *byte == 0));
    assert_eq!(bytes[1087], 0b01_00_00_00);
    assert_eq!(bytes[1088..1096], [1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[1096..], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
    assert_eq!(decode(&(), &bytes), Ok((chunk, vec![entity])));
}

#[test]
fn encoding_appends() {
    let mut bytes = vec![9; 3];
    encode(&(), &Chunk::default(), &[], &mut bytes).unwrap();
    assert_eq!(bytes[..3], [9; 3]);
    assert_eq!(bytes[3..], encoded(&Chunk::default(), &[]));
}

/// Promise, chunk format: A read palette may have repeated or unused blocks, a written one has neither.
#[test]
fn repeated_and_unused_palette_entries_are_fine() {
    let block = |cell: u64| BlockId::new([3, 8, 3, 1][cell as usize % 4]);
    let expected = Chunk::from_fn(|[x, y, z]| block((x * 256 + y * 16 + z) as u64));
    let repeated = by_hand(&[3, 8, 3, 1], (0..4096).map(|cell| cell % 4), &[]);
    let unused = by_hand(&[9, 3, 8, 10, 1, 11], (0..4096).map(|cell| [1, 2, 1, 4][cell as usize % 4]), &[]);
    // More entries than cells need 13 bits.
    let many: Vec<u64> = [3, 8, 3, 1].into_iter().chain(0..4996).collect();
    let many = by_hand(&many, (0..4096).map(|cell| if cell == 5 { 4 + 8 } else { cell % 4 }), &[]);
    let all_one = by_hand(&[4, 3], (0..4096).map(|_| 1), &[]);
    for bytes in [repeated, unused, many] {
        let chunk = decode(&(), &bytes).unwrap().0;
        assert_eq!(chunk, expected);
        assert_eq!(encoded(&chunk, &[]), encoded(&expected, &[]));
    }
    let chunk = decode(&(), &all_one).unwrap().0;
    assert_eq!(chunk.uniform_block(), Some(BlockId::new(3)));
    assert_eq!(encoded(&chunk, &[]).len(), 56);
}

/// Promise, chunk format: The last entity ends an encoded chunk, and more bytes are an error.
/// Promise, chunk format: A chunk with a palette count of 0, a local id that is too high, or a block id of 2^32 is invalid.
#[test]
fn errors_name_the_problem_and_its_place() {
    let good = by_hand(&[0, 1, 2], (0..4096).map(|cell| cell % 3), &[Uuid::from_u128(1)]);
    let end = 40 + 24 + 1024;
    assert!(decode(&(), &good).is_ok());

    assert_eq!(error(&[]), "byte 0: expected 40 bytes of header, found 0");
    assert_eq!(decode(&(), &with_u64(&good, 0, 2)), Err(ChunkFormatError::Version { found: 2 }));
    let begins_at = |at: usize, part: &str, expected: usize, found: u64| {
        format!("byte {at}: expected the {part} at {expected}, found the offset {found}")
    };
    let part = "components";
    assert_eq!(error(&with_u64(&good, 24, 1)), begins_at(8, part, end + 2, end as u64));
    let layers = (u128::from(u64::MAX) * 14).div_ceil(8);
    let expected = format!("byte {end}: expected {layers} bytes of layers, found 24");
    assert_eq!(error(&with_u64(&good, 24, u64::MAX)), expected);
    assert_eq!(error(&with_u64(&good, 32, 0)), "byte 32: expected a palette count of 1 or more, found 0");
    let (palette, left) = (u128::from(u64::MAX) * 8, good.len() - 40);
    let expected = format!("byte 40: expected {palette} bytes of palette, found {left}");
    assert_eq!(error(&with_u64(&good, 32, u64::MAX)), expected);
    assert_eq!(error(&with_u64(&good, 48, 1 << 32)), "byte 48: expected a block id below 2^32, found 4294967296");
    assert_eq!(error(&good[..end - 1]), "byte 64: expected 1024 bytes of blocks, found 1023");
    for found in [end as u64 - 1, end as u64 + 1, u64::MAX] {
        assert_eq!(error(&with_u64(&good, 8, found)), begins_at(8, part, end, found));
    }
    assert_eq!(error(&with_u64(&good, 16, 0)), begins_at(16, "entities", end, 0));
    let trailing = |at: usize, found: usize| format!("byte {at}: expected the end, found {found} more bytes");
    assert_eq!(error(&with_u64(&good, 16, end as u64 + 8)), trailing(end + 16, 8));
    let entities = u128::from(u64::MAX) * 16;
    let expected = format!("byte {}: expected {entities} bytes of entities, found 16", end + 8);
    assert_eq!(error(&with_u64(&good, end, u64::MAX)), expected);
    assert_eq!(error(&with_u64(&good, end, 0)), trailing(end + 8, 16));
}

/// Promise, chunk format: A chunk with a palette count of 0, a local id that is too high, or a block id of 2^32 is invalid.
#[test]
fn a_local_id_outside_of_the_palette_is_found() {
    let many: Vec<u64> = (0..5000).collect();
    for (palette, bits) in [(&[0, 1, 2][..], 2), (&[0, 1, 1, 2, 3], 3), (&many, 13)] {
        for cell in [0, 77, 4095] {
            let found = palette.len() as u64;
            let bytes = by_hand(palette, (0..4096).map(|other| if other == cell { found } else { 1 }), &[]);
            let at = 40 + 8 * palette.len() + cell * bits / 8;
            let what = format!("expected a local id below the palette count of {found}, found {found}");
            assert_eq!(error(&bytes), format!("byte {at}: {what}"));
        }
    }
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = encoded(&from_model(&noise(5, 1)), &[Uuid::from_u128(7), Uuid::from_u128(8)]);
    for length in 0..bytes.len() {
        assert!(error(&bytes[..length]).contains(" bytes of "), "{length} bytes");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Promise, chunk format: The parts of an encoded chunk have the documented bytes and order.
    #[test]
    fn chunks_survive_encoding(
        kinds in prop_oneof![1..5u32, 1..70u32, 1..6000u32],
        seed: u32,
        edits in prop::collection::vec((0..CHUNK_VOLUME, 0..9u32), 0..20),
        entities in prop::collection::vec(any::<u128>().prop_map(Uuid::from_u128), 0..5),
    ) {
        let mut blocks = noise(kinds, seed);
        let mut chunk = from_model(&blocks);
        for (cell, block) in edits {
            blocks[cell] = BlockId::new(block);
            chunk.set_block(cell_position(cell), BlockId::new(block));
        }
        let bytes = encoded(&chunk, &entities);
        prop_assert_eq!(&bytes, &encoded(&from_model(&blocks), &entities), "equal chunks give equal bytes");

        let mut palette = Vec::new();
        for block in blocks.iter().map(|block| u64::from(block.index())) {
            if !palette.contains(&block) {
                palette.push(block);
            }
        }
        let place = |block: &BlockId| palette.iter().position(|other| *other == u64::from(block.index())).unwrap();
        prop_assert!(bytes == by_hand(&palette, blocks.iter().map(|block| place(block) as u64), &entities));

        let decoded = decode(&(), &bytes).unwrap();
        prop_assert_eq!(encoded(&decoded.0, &decoded.1), bytes);
        prop_assert_eq!(decoded, (chunk, entities));
    }

    #[test]
    fn damaged_bytes_never_panic_and_bound_the_memory(
        kinds in 1..40u32,
        seed: u32,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 1..6),
        length in any::<prop::sample::Index>(),
        truncate: bool,
    ) {
        let mut bytes = encoded(&from_model(&noise(kinds, seed)), &[Uuid::from_u128(1); 2]);
        for (place, value, in_header) in damage {
            let range = if in_header { 48 } else { bytes.len() };
            bytes[place.index(range)] = value;
        }
        if truncate {
            bytes.truncate(length.index(bytes.len()));
        }
        if let Ok((chunk, entities)) = decode(&(), &bytes) {
            prop_assert!(chunk.heap_bytes() + entities.len() * 16 <= bytes.len() + 16);
            prop_assert_eq!(chunk.blocks().len(), CHUNK_VOLUME);
            prop_assert_eq!(decode(&(), &encoded(&chunk, &entities)).unwrap().0, chunk);
        }
    }
}
