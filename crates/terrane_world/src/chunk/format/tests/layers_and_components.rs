//! Chunks with layers and components.

use super::*;
use crate::block::BlockComponentId;
use crate::chunk::BlockValueError;
use crate::chunk::tests::furniture::*;
use std::collections::BTreeMap;

const ENTITY: Uuid = Uuid::from_u128(9);

fn encoded(chunk: &Chunk) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&Furniture, chunk, &[ENTITY], &mut bytes).unwrap();
    bytes
}

fn furniture_error(bytes: &[u8]) -> String {
    decode(&Furniture, bytes).unwrap_err().to_string()
}

/// Appends numbers, each with its number of bits, bit by bit.
fn append_bits(bytes: &mut Vec<u8>, numbers: impl Iterator<Item = (u64, usize)>) {
    let bits: Vec<u8> =
        numbers.flat_map(|(number, bits)| (0..bits).map(move |bit| (number >> bit & 1) as u8)).collect();
    bytes.extend(bits.chunks(8).map(|bits| bits.iter().rev().fold(0, |byte, bit| byte << 1 | bit)));
}

/// The bytes of a chunk from the tables of `docs/chunk-format.md`: slow and obvious.
fn by_hand(model: &ModelChunk) -> Vec<u8> {
    let bases = model.0.iter().map(|blocks| blocks[0].0);
    let layered: Vec<(u64, BlockId)> = (0..)
        .zip(&model.0)
        .flat_map(|(cell, blocks)| blocks[1..].iter().map(move |(block, _)| (cell, *block)))
        .collect();
    let mut palette = Vec::new();
    for block in bases.clone().chain(layered.iter().map(|(_, block)| *block)) {
        if !palette.contains(&block) {
            palette.push(block);
        }
    }
    let id = |block: BlockId| palette.iter().position(|other| *other == block).unwrap() as u64;
    let bits = (0..).find(|bits| 1_usize << bits >= palette.len()).unwrap();

    let mut bytes = words(&[1, 0, 0, layered.len() as u64, palette.len() as u64]);
    bytes.extend(words(&palette.iter().map(|block| block.index().into()).collect::<Vec<u64>>()));
    append_bits(&mut bytes, bases.map(|block| (id(block), bits)));
    append_bits(&mut bytes, layered.iter().flat_map(|(cell, block)| [(*cell, 12), (id(*block), bits)]));

    let components_at = bytes.len() as u64;
    let mut arrays: BTreeMap<BlockComponentId, Vec<&[u8]>> = BTreeMap::new();
    for (component, value) in model.0.iter().flatten().flat_map(|(_, components)| components) {
        arrays.entry(*component).or_default().push(value);
    }
    for (component, values) in arrays {
        bytes.extend(words(&[component.number()]));
        if component.is_variable() {
            let length = values.concat().len();
            let offset_bytes = (1..).find(|bytes| length < 1 << (8 * bytes)).unwrap();
            bytes.push(offset_bytes as u8);
            for count in 0..=values.len() {
                let offset = values[..count].concat().len();
                bytes.extend(&offset.to_le_bytes()[..offset_bytes]);
            }
        }
        bytes.extend(values.concat());
    }
    let entities_at = bytes.len() as u64;
    bytes.extend(words(&[1]));
    bytes.extend(ENTITY.as_bytes());
    with_u64(&with_u64(&bytes, 8, components_at), 16, entities_at)
}

/// A chest in water at (0, 0, 2), with a sign on top; a furnace at (0, 1, 0); the rest is air.
pub(super) fn kitchen() -> Chunk {
    let mut chunk = Chunk::default();
    let chest = [0, 0, 2];
    chunk.place_block(&Furniture, chest, 0, CHEST).unwrap();
    chunk.set_component(&Furniture, chest, 0, FACING, &[7]).unwrap();
    chunk.set_component(&Furniture, chest, 0, ITEMS, b"cake").unwrap();
    chunk.set_block_at(chest, 1, WATER).unwrap();
    chunk.place_block(&Furniture, chest, 2, SIGN).unwrap();
    chunk.set_component(&Furniture, chest, 2, FACING, &[8]).unwrap();
    chunk.set_component(&Furniture, chest, 2, TEXT, b"mine").unwrap();
    chunk.place_block(&Furniture, [0, 1, 0], 0, FURNACE).unwrap();
    chunk.set_component(&Furniture, [0, 1, 0], 0, FACING, &[9]).unwrap();
    chunk.set_component(&Furniture, [0, 1, 0], 0, HEAT, &[1, 2, 3, 4]).unwrap();
    chunk
}

/// Promise, chunk format: In an encoded chunk, the k-th layer entry of a cell is its layer k.
/// Promise, chunk format: A block component of variable size is written as an offset width `w`, non-descending offsets, and data.
#[test]
fn layers_and_components_have_the_bytes_of_the_table() {
    let bytes = encoded(&kitchen());
    // Air, chest, furnace; water and sign come with the layers. 3 bits each.
    let layers_at = 40 + 5 * 8 + 4096 * 3 / 8;
    assert_eq!(bytes[40..80], words(&[0, 5, 3, 2, 4]));
    // Cell 2 twice, as 12 bits, with the local ids 3 and 4, as 3 bits: 30 bits.
    let entries = 2_u32 | 3 << 12 | 2 << 15 | 4 << 27;
    assert_eq!(bytes[layers_at..layers_at + 4], entries.to_le_bytes());

    let variable = 1 << 63;
    let mut components = words(&[0]);
    components.extend([1, 2, 3, 4]);
    components.extend(words(&[1]));
    components.extend([7, 8, 9]);
    components.extend(words(&[variable | 2]));
    components.extend([1, 0, 4]);
    components.extend(b"mine");
    components.extend(words(&[variable | 3]));
    components.extend([1, 0, 4]);
    components.extend(b"cake");
    let components_at = layers_at + 4;
    let entities_at = components_at + components.len();
    assert_eq!(bytes[..40], words(&[1, components_at as u64, entities_at as u64, 2, 5]));
    assert_eq!(bytes[components_at..entities_at], components);
    assert_eq!(bytes[entities_at..], [&words(&[1])[..], ENTITY.as_bytes()].concat());
    assert_eq!(decode(&Furniture, &bytes).unwrap().0, kitchen());
}

#[test]
fn unset_components_take_no_bytes() {
    let chunk = Chunk::from_fn(|[x, _, _]| if x == 0 { CHEST } else { FURNACE });
    let decoded = decode(&Furniture, &encoded(&chunk)).unwrap().0;
    assert_eq!(decoded.component([0, 5, 5], 0, ITEMS), Some(&[][..]));
    assert_eq!(decoded.component([9, 5, 5], 0, HEAT), Some(&[0; 4][..]));
}

#[test]
fn a_component_that_the_type_does_not_have_is_not_lost_in_silence() {
    let mut bytes = vec![1, 2, 3];
    let (position, layer) = ([0, 1, 0], 0);
    let lost = BlockValueError::NotOfBlock { position, layer, block: FURNACE, component: HEAT };
    assert_eq!(encode(&(), &kitchen(), &[], &mut bytes), Err(lost));
    assert_eq!(bytes, [1, 2, 3]);

    let cold = vec![BlockComponentLayout { id: HEAT, size: Some(2) }];
    let size = BlockValueError::Size { component: HEAT, expected: 2, found: 4 };
    assert_eq!(encode(&cold, &kitchen(), &[], &mut bytes), Err(size));
}

/// Promise, chunk format: The layer entries of an encoded chunk may come in any order.
#[test]
fn layers_and_components_may_come_in_any_order() {
    let mut chunk = kitchen();
    chunk.set_block_at([9, 9, 9], 1, WATER).unwrap();
    let bytes = encoded(&chunk);
    let layers_at = 40 + 5 * 8 + 4096 * 3 / 8;
    let entry = |number: usize| encoded_chunk::bits_at(&bytes[layers_at..], number * 15, 15);
    let mut layers = Vec::new();
    append_bits(&mut layers, [entry(2), entry(0), entry(1)].into_iter().map(|entry| (entry, 15)));
    let mut shuffled = bytes.clone();
    shuffled[layers_at..layers_at + layers.len()].copy_from_slice(&layers);

    // The second component, of 11 bytes, before the first, of 12.
    let components_at = layers_at + layers.len();
    shuffled[components_at..components_at + 23].rotate_left(12);
    assert_ne!(shuffled, bytes);
    assert_eq!(decode(&Furniture, &shuffled).unwrap().0, chunk);
    let read = EncodedChunk::new(&shuffled).unwrap();
    assert_eq!(read.component(&Furniture, [0, 0, 2], 2, FACING), Ok(Some(&[8][..])));
    assert_eq!(read.component(&Furniture, [0, 1, 0], 0, HEAT), Ok(Some(&[1, 2, 3, 4][..])));
}

/// Promise, chunk format: An encoded chunk has exactly the components of its blocks, each once.
#[test]
fn errors_in_layers_and_components_name_the_problem_and_its_place() {
    let bytes = encoded(&kitchen());
    let components_at = 40 + 5 * 8 + 4096 * 3 / 8 + 4;
    let end = u64_at(&bytes, 16) as usize;

    let unknown = |id| format!("byte {components_at}: expected a component of a block in the chunk, found {id}");
    assert_eq!(furniture_error(&with_u64(&bytes, components_at, 5)), unknown(5));
    assert_eq!(error(&bytes), unknown(0));
    let text_at = components_at + 12 + 11;
    let again = format!("byte {}: found the component 2 (variable size) again", text_at + 15);
    assert_eq!(furniture_error(&with_u64(&bytes, text_at + 15, TEXT.number())), again);

    let mut missing = bytes.clone();
    missing.drain(text_at + 15..end);
    let missing = with_u64(&missing, 16, text_at as u64 + 15);
    let expected = "expected the component 3 (variable size), found the end of the components";
    assert_eq!(furniture_error(&missing), format!("byte {}: {expected}", text_at + 15));

    let with_byte = |offset: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[offset] = value;
        furniture_error(&bytes)
    };
    for found in [0, 9] {
        let expected = format!("byte {}: expected 1 to 8 bytes per offset, found {found}", text_at + 8);
        assert_eq!(with_byte(text_at + 8, found), expected);
    }
    assert_eq!(with_byte(text_at + 9, 1), format!("byte {}: expected an offset of 0, found 1", text_at + 9));
    let truncated = format!("byte {}: expected 100 bytes of component data, found 19", text_at + 11);
    assert_eq!(with_byte(text_at + 10, 100), truncated);
}

/// Promise, chunk format: A block component of variable size is written as an offset width `w`, non-descending offsets, and data.
#[test]
fn offsets_that_descend_are_refused() {
    let chunk = Chunk::uniform(CHEST);
    let mut bytes = encoded(&chunk);
    // After the 4,096 facings and the number of the items.
    let offsets_at = 48 + 8 + 4096 + 8 + 1;
    bytes[offsets_at + 3] = 1;
    // The data has no bytes, and the second offset was 0.
    assert_eq!(furniture_error(&bytes), format!("byte {}: expected an offset of 0 to 0, found 1", offsets_at + 3));
}

/// Promise, chunk format: A cell of a chunk can have up to 255 layers above the first.
#[test]
fn more_layers_than_a_chunk_can_have_are_refused() {
    let entries = |count: u64| {
        let mut bytes = words(&[1, 0, 0, count, 1, 2]);
        append_bits(&mut bytes, (0..count).map(|_| (77, 12)));
        let end = bytes.len() as u64;
        bytes.extend(words(&[0]));
        with_u64(&with_u64(&bytes, 8, end), 16, end)
    };
    assert_eq!(decode(&(), &entries(255)).unwrap().0.layer_count([0, 4, 13]), 256);
    let what = "expected at most 255 blocks above layer 0 in a cell, found one more";
    assert_eq!(error(&entries(256)), format!("byte {}: {what}", 48 + 255 * 12 / 8));
}

#[test]
fn a_palette_with_layers_may_need_more_bits_than_there_are_cells() {
    let mut chunk = Chunk::from_fn(|[x, y, z]| BlockId::new((100 + x * 256 + y * 16 + z) as u32));
    chunk.place_block(&Furniture, [0, 0, 3], 0, FURNACE).unwrap();
    chunk.set_block_at([3, 3, 3], 1, BlockId::new(70_000)).unwrap();
    let bytes = encoded(&chunk);
    assert_eq!(u64_at(&bytes, 32), 4097);
    assert_eq!(decode(&Furniture, &bytes).unwrap().0, chunk);
    let read = EncodedChunk::new(&bytes).unwrap();
    assert_eq!(read.block_at([3, 3, 3], 1), Ok(Some(BlockId::new(70_000))));
    assert_eq!(read.component(&Furniture, [0, 0, 3], 0, HEAT), Ok(Some(&[0; 4][..])));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Promise, chunk format: The place of a component in an encoded chunk follows from the chunk's blocks.
    #[test]
    fn layers_and_components_survive_encoding(edits in edits(300), start in 0..KINDS) {
        let start = BlockId::new(start);
        let (mut chunk, mut model) = (Chunk::uniform(start), ModelChunk::new(start));
        for edit in &edits {
            model.edit(&mut chunk, edit);
        }
        model.complete();
        let bytes = encoded(&chunk);
        prop_assert!(bytes == by_hand(&model));
        let (decoded, entities) = decode(&Furniture, &bytes).unwrap();
        model.check(&decoded);
        prop_assert_eq!(entities, [ENTITY]);
        prop_assert!(encoded(&decoded) == bytes);

        let read = EncodedChunk::new(&bytes).unwrap();
        prop_assert!(read.entities().eq([ENTITY]));
        let layered = model.0.iter().enumerate().filter(|(_, blocks)| blocks.len() > 1 || !blocks[0].1.is_empty());
        for (cell, blocks) in layered.take(40) {
            let position = cell_position(cell);
            for (layer, (block, components)) in (0..).zip(blocks) {
                prop_assert_eq!(read.block_at(position, layer), Ok(Some(*block)));
                for component in [HEAT, FACING, TEXT, ITEMS] {
                    let expected = components.get(&component).map(|value| &value[..]);
                    prop_assert_eq!(read.component(&Furniture, position, layer, component), Ok(expected));
                }
            }
            prop_assert_eq!(read.block_at(position, blocks.len() as u8), Ok(None));
        }
    }
}
