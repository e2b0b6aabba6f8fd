//! Compares chunks with a plain array.

pub(super) mod furniture;
mod layers_and_components;

use super::*;
use proptest::prelude::*;

type Model = Box<[BlockId; CHUNK_VOLUME]>;

fn model(chunk: &Chunk) -> Model {
    let mut blocks = Box::new([BlockId::new(u32::MAX); CHUNK_VOLUME]);
    chunk.copy_into(&mut blocks);
    blocks
}

/// Compares all properties of a chunk with a plain array.
fn check(chunk: &Chunk, expected: &Model) -> Result<(), TestCaseError> {
    prop_assert!(model(chunk) == *expected);
    prop_assert!(chunk.blocks().eq(expected.iter().copied()));
    for (cell, block) in expected.iter().enumerate() {
        prop_assert_eq!(chunk.block(cell_position(cell)), *block);
    }
    let distinct: std::collections::BTreeSet<_> = expected.iter().collect();
    let palette: std::collections::BTreeSet<_> = chunk.palette().iter().collect();
    prop_assert_eq!(palette.len(), chunk.palette().len(), "no block is twice in a palette");
    prop_assert!(palette.is_superset(&distinct));
    prop_assert_eq!(chunk.uniform_block(), (distinct.len() == 1).then_some(expected[0]));

    let mut compact = chunk.clone();
    compact.compact();
    prop_assert_eq!(compact.palette().len(), distinct.len());
    prop_assert!(model(&compact) == *expected);
    prop_assert!(compact == *chunk);
    prop_assert!(compact.heap_bytes() <= chunk.heap_bytes());
    Ok(())
}

pub(super) fn from_model(blocks: &[BlockId; CHUNK_VOLUME]) -> Chunk {
    Chunk::from_fn(|[x, y, z]| blocks[x * 256 + y * 16 + z])
}

/// A random-looking pattern of `kinds` kinds of blocks.
pub(super) fn noise(kinds: u32, seed: u32) -> Model {
    let mut state = seed | 1;
    let mut blocks = Box::new([BlockId::AIR; CHUNK_VOLUME]);
    for block in blocks.iter_mut() {
        state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        *block = BlockId::new((state >> 12) % kinds * 7919);
    }
    blocks
}

#[test]
fn a_uniform_chunk_owns_no_heap_memory() {
    let stone = BlockId::new(1);
    let mut chunk = Chunk::from_fn(|_| stone);
    assert_eq!((chunk.heap_bytes(), chunk.uniform_block(), chunk.palette()), (0, Some(stone), &[stone][..]));
    assert_eq!(chunk.set_block([1, 2, 3], stone), stone);
    assert_eq!(chunk.heap_bytes(), 0);

    chunk.set_block([0, 0, 0], BlockId::AIR);
    assert!(chunk.heap_bytes() > 0);
    assert_ne!(chunk, Chunk::uniform(stone));
    chunk.set_block([0, 0, 0], stone);
    assert_eq!(chunk, Chunk::uniform(stone), "equal before compaction too");
    chunk.compact();
    assert_eq!(chunk.heap_bytes(), 0);
    assert_eq!(Chunk::default(), Chunk::uniform(BlockId::AIR));
}

#[test]
fn every_palette_length_works() {
    for kinds in (0..=12).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + 1]).filter(|kinds| *kinds > 0) {
        // With more kinds than cells, only some kinds appear, and none twice.
        let blocks: Model = Box::new(std::array::from_fn(|cell| BlockId::new((cell as u32 * 2_731) % kinds)));
        let chunk = from_model(&blocks);
        assert_eq!(chunk.palette().len(), (kinds as usize).min(CHUNK_VOLUME), "{kinds} kinds");
        let mut edited = Chunk::default();
        for (cell, block) in blocks.iter().enumerate() {
            edited.set_block(cell_position(cell), *block);
        }
        for chunk in [&chunk, &edited] {
            check(chunk, &blocks).unwrap();
        }
        assert_eq!(chunk, edited);
        let bits = (kinds as usize).min(CHUNK_VOLUME).next_power_of_two().trailing_zeros() as usize;
        let palette = (kinds as usize).next_multiple_of(8) * 4;
        assert!(chunk.heap_bytes() <= palette + 512 * bits + 8, "{kinds} kinds");
    }
}

#[test]
fn the_palette_stays_bounded_however_many_blocks_come_and_go() {
    let mut chunk = from_model(&Box::new(std::array::from_fn(|cell| BlockId::new(cell as u32))));
    let mut expected = model(&chunk);
    for edit in 0..2_000 {
        let (cell, block) = (edit * 1_237 % CHUNK_VOLUME, BlockId::new(1_000_000 + edit as u32));
        assert_eq!(chunk.set_block(cell_position(cell), block), expected[cell]);
        expected[cell] = block;
        assert!(chunk.palette().len() <= CHUNK_VOLUME);
    }
    check(&chunk, &expected).unwrap();

    let mut chunk = Chunk::default();
    for edit in 0..50_000 {
        chunk.set_block(cell_position(edit % 3), BlockId::new(edit as u32 + 1));
    }
    assert!(chunk.palette().len() <= 16, "4 kinds at a time, {} entries", chunk.palette().len());
}

/// An edit has ids of 16 bits, so it must remove unused palette entries in time.
#[test]
fn an_edit_may_use_any_number_of_blocks() {
    let mut chunk = Chunk::default();
    let mut expected = model(&chunk);
    let mut edit = chunk.edit();
    for number in 1..100_000 {
        let (cell, block) = (number * 1_237 % CHUNK_VOLUME, BlockId::new(number as u32));
        assert_eq!(edit.set_block(cell_position(cell), block), expected[cell]);
        expected[cell] = block;
    }
    drop(edit);
    check(&chunk, &expected).unwrap();

    let mut edit = chunk.edit();
    (0..CHUNK_VOLUME).for_each(|cell| _ = edit.set_block(cell_position(cell), BlockId::AIR));
    drop(edit);
    assert_eq!((chunk.heap_bytes(), chunk.uniform_block()), (0, Some(BlockId::AIR)));
}

#[test]
fn coordinates_are_checked() {
    for position in [[16, 0, 0], [0, 16, 0], [0, 0, 16], [usize::MAX, 0, 0]] {
        assert!(std::panic::catch_unwind(|| Chunk::default().edit().block(position)).is_err());
        assert!(std::panic::catch_unwind(|| Chunk::default().edit().set_block(position, BlockId::AIR)).is_err());
        assert!(std::panic::catch_unwind(|| Chunk::default().block(position)).is_err());
        assert!(std::panic::catch_unwind(|| Chunk::default().set_block(position, BlockId::AIR)).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_chunk_is_an_array_of_blocks(
        start_kinds in 1..300u32,
        seed: u32,
        kinds in prop_oneof![1..4u32, 1..40u32, 1..5000u32],
        edits in prop::collection::vec((0..CHUNK_VOLUME, any::<u32>()), 0..3000),
        compact_every in 100..2000usize,
    ) {
        let mut expected = noise(start_kinds, seed);
        let mut chunk = from_model(&expected);
        check(&chunk, &expected)?;
        for (number, (cell, block)) in edits.into_iter().enumerate() {
            let block = BlockId::new(block % kinds);
            let old = std::mem::replace(&mut expected[cell], block);
            prop_assert_eq!(chunk.set_block(cell_position(cell), block), old);
            if number % compact_every == compact_every - 1 {
                chunk.compact();
            }
        }
        check(&chunk, &expected)?;
        prop_assert_eq!(from_model(&expected), chunk);
    }

    #[test]
    fn an_edit_is_an_array_of_blocks(
        start_kinds in 1..300u32,
        seed: u32,
        kinds in prop_oneof![1..4u32, 1..40u32, 1..300u32, 1..5000u32],
        edits in prop::collection::vec(prop::collection::vec((0..CHUNK_VOLUME, any::<u32>()), 0..3000), 1..4),
    ) {
        let mut expected = noise(start_kinds, seed);
        let mut chunk = from_model(&expected);
        for edits in edits {
            let mut edit = chunk.edit();
            for (cell, block) in edits {
                let block = BlockId::new(block % kinds);
                let old = std::mem::replace(&mut expected[cell], block);
                prop_assert_eq!(edit.block(cell_position(cell)), old);
                prop_assert_eq!(edit.set_block(cell_position(cell), block), old);
                prop_assert_eq!(edit.block(cell_position(cell)), block);
            }
            drop(edit);
            check(&chunk, &expected)?;
            let mut compact = chunk.clone();
            compact.compact();
            prop_assert_eq!((chunk.heap_bytes(), chunk.palette()), (compact.heap_bytes(), compact.palette()));
        }
    }

    #[test]
    fn equality_is_of_the_blocks(kinds in 2..100u32, seed: u32, cell in 0..CHUNK_VOLUME) {
        let blocks = noise(kinds, seed);
        let chunk = from_model(&blocks);
        let mut other = Chunk::uniform(BlockId::new(12));
        for cell in (0..CHUNK_VOLUME).rev() {
            other.set_block(cell_position(cell), blocks[cell]);
        }
        prop_assert_eq!(&chunk, &other);
        other.set_block(cell_position(cell), BlockId::new(4));
        prop_assert_ne!(&chunk, &other);
    }
}
