//! Keys are parsed as they were written, and sort in the right order.

use super::*;
use proptest::prelude::*;

fn coordinate() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        -40..40_i64,
        Just(i64::MIN),
        Just(i64::MAX),
        any::<u8>().prop_map(|shift| i64::MIN >> (shift % 64))
    ]
}

fn chunk() -> impl Strategy<Value = ChunkPos> {
    (coordinate(), coordinate(), coordinate()).prop_map(|(x, y, z)| ChunkPos::new(x, y, z))
}

/// The bits of the key.
fn model(dimension: DimensionId, pos: ChunkPos) -> Vec<u8> {
    let mut bits: Vec<u8> = (0..64).rev().map(|bit| (dimension.0 >> bit & 1) as u8).collect();
    for bit in (0..64).rev() {
        for value in [pos.x, pos.y, pos.z] {
            let flipped = if bit == 63 { 1 } else { 0 };
            bits.push((value >> bit & 1) as u8 ^ flipped);
        }
    }
    bits.chunks(8).map(|bits| bits.iter().fold(0, |byte, bit| byte << 1 | bit)).collect()
}

proptest! {
    /// Promise, world format: The key of a chunk is in Morton order, with the highest bit of each coordinate flipped.
    #[test]
    fn chunk_keys_agree_with_the_model(dimension: u64, pos in chunk()) {
        let dimension = DimensionId(dimension);
        let key = chunk_key(dimension, pos);
        prop_assert_eq!(&key[..], &model(dimension, pos)[..]);
        prop_assert_eq!(parse_chunk_key(&key), Some((dimension, pos)));
        prop_assert_eq!(parse_chunk_key(&key[..31]), None);
    }

    /// Promise, tiers: A chunk group or a cube is one range of keys.
    /// Promise, world format: An aligned cube of chunks is one range of keys.
    #[test]
    fn a_cube_is_one_range(
        dimension: u64,
        pos in chunk(),
        other in chunk(),
        (x, y, z) in (-9..9_i64, -9..9_i64, -9..9_i64),
        shift in 0..=64_u32,
    ) {
        let dimension = DimensionId(dimension);
        let near = ChunkPos::new(pos.x.saturating_add(x), pos.y.saturating_add(y), pos.z.saturating_add(z));
        for shift in [shift, 2] {
            let range = chunk_cube_range(dimension, pos, shift);
            let cube = |pos: ChunkPos| {
                [pos.x, pos.y, pos.z].map(|value| (i128::from(value) - i128::from(i64::MIN)) >> shift)
            };
            for other in [pos, near, other] {
                let inside = range.contains(&chunk_key(dimension, other).to_vec());
                prop_assert_eq!(inside, cube(pos) == cube(other), "{} and {} at {}", pos, other, shift);
                let elsewhere = DimensionId(dimension.0.wrapping_add(1));
                prop_assert!(!range.contains(&chunk_key(elsewhere, other).to_vec()));
            }
        }
    }

    #[test]
    fn the_range_of_a_prefix_holds_all_keys_with_that_prefix(
        prefix in proptest::collection::vec(prop_oneof![any::<u8>(), Just(u8::MAX)], 0..5),
        key in proptest::collection::vec(prop_oneof![any::<u8>(), Just(u8::MAX)], 0..9),
    ) {
        prop_assert_eq!(range_of(&prefix).contains(&key), key.starts_with(&prefix));
        prop_assert!(range_of(&prefix).contains(&[prefix, key].concat()));
    }

    /// Promise, world format: The key of a chunk is in Morton order, with the highest bit of each coordinate flipped.
    #[test]
    fn each_axis_keeps_its_order(dimension: u64, pos in chunk(), a in coordinate(), b in coordinate()) {
        let dimension = DimensionId(dimension);
        let key = |pos| chunk_key(dimension, pos);
        prop_assert_eq!(key(ChunkPos { x: a, ..pos }).cmp(&key(ChunkPos { x: b, ..pos })), a.cmp(&b));
        prop_assert_eq!(key(ChunkPos { y: a, ..pos }).cmp(&key(ChunkPos { y: b, ..pos })), a.cmp(&b));
        prop_assert_eq!(key(ChunkPos { z: a, ..pos }).cmp(&key(ChunkPos { z: b, ..pos })), a.cmp(&b));
    }

    /// Promise, world format: Keys of columns and batches in the store sort by their coordinates.
    #[test]
    fn other_keys_sort_and_can_be_read_back(
        dimension: u64,
        (x, z) in (coordinate(), coordinate()),
        other in (coordinate(), coordinate()),
        (y, other_y) in (coordinate(), coordinate()),
        id: u128,
    ) {
        let beside_it = DimensionId(dimension ^ 1);
        let (dimension, id) = (DimensionId(dimension), Uuid::from_u128(id));
        let (column, other) = (ColumnPos::new(x, z), ColumnPos::new(other.0, other.1));
        let key = place_key(dimension, column, id);
        prop_assert_eq!(parse_place_key(&key), Some((dimension, column, id)));
        prop_assert_eq!(key.cmp(&place_key(dimension, other, id)), column.cmp(&other));
        let (low, high) = (z.min(other.z), z.max(other.z));
        let range = place_range(dimension, x, low, high);
        prop_assert!(range.contains(&place_key(dimension, ColumnPos::new(x, low), Uuid::nil())));
        prop_assert!(range.contains(&place_key(dimension, ColumnPos::new(x, high), Uuid::max())));
        prop_assert_eq!(range.contains(&place_key(dimension, other, id)), x == other.x);

        prop_assert!(dimension_range(PLACE, dimension).contains(&key));
        prop_assert!(!dimension_range(PLACE, beside_it).contains(&key));

        prop_assert_eq!(parse_viewer_key(&viewer_key(dimension, id)), Some((dimension, id)));
        prop_assert!(dimension_range(VIEWER, dimension).contains(&viewer_key(dimension, id)));
        prop_assert!(!dimension_range(VIEWER, dimension).contains(&viewer_key(beside_it, id)));

        let (pos, beside) = (column.chunk(y), other.chunk(other_y));
        let key = block_ticks_key(dimension, pos);
        prop_assert_eq!(parse_block_ticks_key(&key), Some((dimension, pos)));
        let order = (column, y).cmp(&(other, other_y));
        prop_assert_eq!(key.cmp(&block_ticks_key(dimension, beside)), order);
        let range = block_ticks_range(dimension, x, low, high);
        prop_assert!(range.contains(&key));
        prop_assert_eq!(range.contains(&block_ticks_key(dimension, beside)), x == other.x);
        prop_assert!(!range.contains(&block_ticks_key(beside_it, pos)));
        prop_assert!(dimension_range(BLOCK_TICKS, dimension).contains(&key));
        prop_assert!(!dimension_range(BLOCK_TICKS, beside_it).contains(&key));

        let name = id.to_string();
        let key = object_key(dimension, Some(column), &name);
        prop_assert_eq!(parse_object_key(&key), Some((dimension, Some(column), &*name)));
        let nowhere = object_key(dimension, None, &name);
        prop_assert_eq!(parse_object_key(&nowhere), Some((dimension, None, &*name)));
        let range = object_range(dimension, x, low, high);
        prop_assert!(range.contains(&key) && !range.contains(&nowhere));
        prop_assert_eq!(range.contains(&object_key(dimension, Some(other), &name)), x == other.x);
        for key in [key, nowhere] {
            prop_assert!(dimension_range(OBJECT, dimension).contains(&key));
            prop_assert!(!dimension_range(OBJECT, beside_it).contains(&key));
        }
        let number = dimension.0 as u32;
        let key = import_key(dimension, number);
        prop_assert_eq!(parse_import_key(&key), Some((dimension, number)));
        prop_assert!(dimension_range(IMPORT, dimension).contains(&key) && !dimension_range(IMPORT, beside_it).contains(&key));

        let tile = TilePos::new(x, z);
        prop_assert_eq!(parse_tile_key(&tile_key(dimension, tile)), Some((dimension, tile)));
        prop_assert_eq!(parse_history_key(&history_key(dimension, tile)), Some((dimension, tile)));
        let batch = BatchPos::new(x, z);
        prop_assert_eq!(parse_opacity_key(&opacity_key(dimension, batch)), Some((dimension, batch)));
        prop_assert_eq!(parse_opacity_key(&opacity_key(dimension, batch)[1..]), None);
        prop_assert_eq!(parse_key_of_dimension(REMOVAL, &key_of_dimension(REMOVAL, dimension)), Some(dimension));
        prop_assert_eq!(parse_key_of_dimension(SPARSE, &key_of_dimension(SPARSE, dimension)), Some(dimension));
        prop_assert_eq!(parse_key_of_dimension(CLOCK, &key_of_dimension(CLOCK, dimension)), Some(dimension));
        prop_assert_eq!(parse_key_of_dimension(DAYS, &key_of_dimension(DAYS, dimension)), Some(dimension));
        prop_assert_eq!(parse_key_of_dimension(OWN_SEED, &key_of_dimension(OWN_SEED, dimension)), Some(dimension));
        prop_assert_eq!(parse_key_of_dimension(HEIGHTS, &key_of_dimension(HEIGHTS, dimension)), Some(dimension));
        prop_assert_eq!(parse_entity_key(&entity_key(id)), Some(id));
        prop_assert!(dimension_range(TILE, dimension).contains(&tile_key(dimension, tile)));
        prop_assert!(!dimension_range(TILE, dimension).contains(&tile_key(beside_it, tile)));
    }

    #[test]
    fn dimensions_are_found_by_any_name(name: String) {
        let key = dimension_key(&name);
        prop_assert_eq!(parse_dimension_key(&key), Some(&*name));
        prop_assert!(range_of(DIMENSION).contains(&key));
        prop_assert!(!range_of(DIMENSION).contains(&LAST_DIMENSION.to_vec()));
        prop_assert!(!range_of(DIMENSION).contains(&key_of_dimension(REMOVAL, DimensionId(0))));
        let no_text = [&key[..], &[0xff]].concat();
        prop_assert_eq!(parse_dimension_key(&no_text), None);
    }

    /// Promise, world format: Damaged values are kept under their key, several per key if they differ.
    #[test]
    fn copies_of_damaged_values_have_distinct_keys(key: Vec<u8>, value: Vec<u8>, other: Vec<u8>) {
        for family in Family::ALL {
            let copy = damaged_key(family, &key, &value);
            prop_assert_eq!(parse_damaged_key(&copy), Some((family, &key[..])));
            prop_assert!(range_of(DAMAGED).contains(&copy));
            prop_assert_eq!(copy == damaged_key(family, &key, &other), value == other);
        }
        prop_assert!(!range_of(DAMAGED).contains(&HEADER.to_vec()));
        let elsewhere = [DAMAGED, b"elsewhere:", &key[..], b"1234"].concat();
        prop_assert_eq!(parse_damaged_key(&elsewhere), None);
    }

    #[test]
    fn parsers_take_any_bytes(mut key in proptest::collection::vec(any::<u8>(), 0..60), prefix in 0..6_usize) {
        key.splice(0..0, [&b""[..], PLACE, VIEWER, TILE, BLOCK_TICKS, OBJECT][prefix].iter().copied());
        if let Some((dimension, pos)) = parse_chunk_key(&key) {
            prop_assert_eq!(&chunk_key(dimension, pos)[..], &key[..]);
        }
        if let Some((dimension, column, id)) = parse_place_key(&key) {
            prop_assert_eq!(place_key(dimension, column, id), key.clone());
        }
        if let Some((dimension, id)) = parse_viewer_key(&key) {
            prop_assert_eq!(viewer_key(dimension, id), key.clone());
        }
        if let Some((dimension, pos)) = parse_block_ticks_key(&key) {
            prop_assert_eq!(block_ticks_key(dimension, pos), key.clone());
        }
        if let Some((dimension, column, name)) = parse_object_key(&key) {
            prop_assert_eq!(object_key(dimension, column, name), key.clone());
        }
        if let Some((dimension, tile)) = parse_tile_key(&key) {
            prop_assert_eq!(tile_key(dimension, tile), key);
        }
    }
}
