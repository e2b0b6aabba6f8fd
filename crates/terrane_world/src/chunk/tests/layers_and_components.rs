//! Compares layers and components with plain maps.

use super::furniture::*;
use super::*;
use crate::block::BlockComponentId;
use crate::chunk::BlockValueError;

const AT: [usize; 3] = [1, 2, 3];

fn with_chest(items: &[u8]) -> Chunk {
    let mut chunk = Chunk::default();
    chunk.place_block(&Furniture, AT, 0, CHEST).unwrap();
    chunk.set_component(&Furniture, AT, 0, ITEMS, items).unwrap();
    chunk
}

#[test]
fn a_chunk_without_layers_and_components_is_no_larger_for_them() {
    assert!(size_of::<Chunk>() <= 56);
    let mut chunk = with_chest(b"cake");
    chunk.set_block_at(AT, 1, WATER).unwrap();
    chunk.remove_block(AT, 1);
    chunk.set_block(AT, BlockId::AIR);
    chunk.compact();
    assert_eq!(chunk.heap_bytes(), 0);
}

/// Promise, blocks: A new block has all components of its type, each zeroed, or empty if its size varies.
#[test]
fn a_new_block_has_the_components_of_its_type_and_none_of_the_old_ones() {
    let mut chunk = with_chest(b"cake");
    assert_eq!(chunk.component(AT, 0, FACING), Some(&[0][..]));
    chunk.place_block(&Furniture, AT, 0, CHEST).unwrap();
    assert_eq!(chunk.component(AT, 0, ITEMS), Some(&b"cake"[..]), "the same type is the same block");

    chunk.place_block(&Furniture, AT, 0, SIGN).unwrap();
    assert_eq!(chunk.component(AT, 0, ITEMS), None);
    assert_eq!(chunk.component(AT, 0, TEXT), Some(&[][..]));
    chunk.set_block(AT, STONE);
    assert!(!chunk.has_components());
}

#[test]
fn typed_access_checks_the_size() {
    let mut chunk = Chunk::uniform(FURNACE);
    chunk.set_component(&Furniture, AT, 0, HEAT, &1.5_f32.to_le_bytes()).unwrap();
    assert_eq!(chunk.component_as(AT, 0, HEAT), Ok(Some(1.5_f32)));
    assert_eq!(chunk.component_as::<f32>([0, 0, 0], 0, HEAT), Ok(None), "it was never set");
    let size = |found| BlockValueError::Size { component: HEAT, expected: 4, found };
    assert_eq!(chunk.component_as::<u64>(AT, 0, HEAT), Err(size(8)));
    assert_eq!(chunk.set_component(&Furniture, AT, 0, HEAT, &[1]), Err(size(1)));
    assert_eq!(size(8).to_string(), "component 0 has 4 bytes, found 8");
}

#[test]
fn a_component_is_set_only_where_a_block_has_it() {
    let mut chunk = with_chest(b"");
    let (position, layer, component) = (AT, 0, TEXT);
    assert_eq!(
        chunk.set_component(&Furniture, AT, 0, TEXT, b"no"),
        Err(BlockValueError::NotOfBlock { position, layer, block: CHEST, component })
    );
    let no_layer = BlockValueError::NoLayer { position, count: 1, layer: 1 };
    assert_eq!(chunk.set_component(&Furniture, AT, 1, ITEMS, b"no"), Err(no_layer));
    let unknown = BlockComponentId::new(77);
    assert!(chunk.set_component(&Furniture, AT, 0, unknown, b"no").is_err());
}

#[test]
fn layers_have_no_gaps_and_move_down_with_their_components() {
    let mut chunk = with_chest(b"cake");
    let gap = BlockValueError::NoLayer { position: AT, count: 1, layer: 2 };
    assert_eq!(chunk.set_block_at(AT, 2, WATER), Err(gap));
    assert_eq!(gap.to_string(), "there is no layer 2 in block [1, 2, 3], which has 1");

    chunk.set_block_at(AT, 1, WATER).unwrap();
    chunk.place_block(&Furniture, AT, 2, SIGN).unwrap();
    chunk.set_component(&Furniture, AT, 2, TEXT, b"exit").unwrap();
    assert!(chunk.layered_blocks().eq([(AT, 1, WATER), (AT, 2, SIGN)]));

    assert_eq!(chunk.remove_block(AT, 0), Some(CHEST));
    assert_eq!((chunk.block(AT), chunk.component(AT, 0, ITEMS)), (WATER, None));
    assert_eq!(chunk.component(AT, 1, TEXT), Some(&b"exit"[..]));
    assert_eq!(chunk.remove_block(AT, 2), None);
    assert_eq!((chunk.remove_block(AT, 1), chunk.remove_block(AT, 0)), (Some(SIGN), Some(WATER)));
    assert_eq!(chunk, Chunk::default());
}

#[test]
fn a_chunk_with_a_layer_or_a_component_is_not_uniform() {
    let mut chunk = Chunk::default();
    chunk.set_block_at(AT, 1, WATER).unwrap();
    assert_eq!(chunk.uniform_block(), None);
    assert_ne!(chunk, Chunk::default());
    let mut chunk = Chunk::uniform(FURNACE);
    chunk.set_component(&Furniture, AT, 0, HEAT, &[0; 4]).unwrap();
    assert_eq!(chunk.uniform_block(), None);
}

#[test]
fn editing_a_clone_leaves_the_original_unchanged() {
    let original = with_chest(b"cake");
    let mut edited = original.clone();
    edited.set_component(&Furniture, AT, 0, ITEMS, b"").unwrap();
    edited.set_block_at(AT, 1, WATER).unwrap();
    assert_eq!(original, with_chest(b"cake"));
}

/// Promise, chunk format: A cell of a chunk can have up to 255 layers above the first.
#[test]
fn a_cell_can_have_255_layers_above_the_first() {
    let mut chunk = Chunk::default();
    for layer in 1..=u8::MAX {
        chunk.set_block_at(AT, layer, BlockId::new(layer.into())).unwrap();
    }
    assert_eq!(chunk.layer_count(AT), 256);
    assert_eq!(chunk.remove_block(AT, 0), Some(BlockId::AIR));
    assert_eq!(chunk.block_at(AT, 254), Some(BlockId::new(255)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_chunk_is_an_array_of_lists_of_blocks_with_components(edits in edits(400), start in 0..KINDS) {
        let start = BlockId::new(start);
        let (mut chunk, mut model) = (Chunk::uniform(start), ModelChunk::new(start));
        for edit in &edits {
            model.edit(&mut chunk, edit);
        }
        model.check(&chunk);
        let mut compact = chunk.clone();
        compact.compact();
        model.check(&compact);
        prop_assert_eq!(chunk, compact);
    }

    #[test]
    fn an_edit_does_what_single_calls_do(
        edits in edits(400),
        start in 0..KINDS,
        sets in prop::collection::vec((prop_oneof![0..24_usize, 0..CHUNK_VOLUME], 0..KINDS), 0..200),
    ) {
        let start = BlockId::new(start);
        let (mut chunk, mut model) = (Chunk::uniform(start), ModelChunk::new(start));
        edits.iter().for_each(|edit| model.edit(&mut chunk, edit));
        let mut single = chunk.clone();
        let mut edit = chunk.edit();
        for (cell, block) in sets {
            let (position, block) = (cell_position(cell), BlockId::new(block));
            prop_assert_eq!(edit.set_block(position, block), single.block(position));
            model.edit(&mut single, &Edit::Set(cell, 0, block));
        }
        drop(edit);
        model.check(&chunk);
        prop_assert_eq!(chunk, single);
    }
}
