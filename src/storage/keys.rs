//! The keys under which things are stored.
//!
//! A chunk's key is its dimension, big-endian, and then the bits of x, y and z in turn, highest first, each with its
//! sign bit flipped so that negative coordinates come first. So keys sort in Morton order, and every aligned cube of
//! 2^n chunks a side is one contiguous range.
//!
//! Entities are stored under their UUID alone. *Place keys* and *viewer keys* in `meta` carry no value; they only find
//! records by column or by dimension, and the record decides whether they are true. *Player keys* find those of players by
//! name, which have no other keys.

use super::{ChunkGroup, Family, Tier};
use crate::space::{BatchPos, ChunkPos, ColumnPos, DimensionId, TilePos};
use std::ops::Range;
use uuid::Uuid;

/// Length of a chunk's key.
pub const CHUNK_KEY_LENGTH: usize = 32;
/// Length of an entity's key.
pub const ENTITY_KEY_LENGTH: usize = 16;
/// Length of the key of what is opaque in a batch of columns.
pub const OPACITY_KEY_LENGTH: usize = 24;
/// The key of the world's header in `meta`.
pub const HEADER: &[u8] = b"header";
/// The key in `meta` of the number that was given to a dimension last.
pub const LAST_DIMENSION: &[u8] = b"last dimension";

/// The key of the world's play time in `meta`.
pub const PLAY_TIME: &[u8] = b"play time";
/// The key in `meta` that says how far the search for groups of chunks without heat has come.
pub const ADOPTED: &[u8] = b"adopted";

const HEAT: &[u8] = b"heat:";
const COOLING: &[u8] = b"cooling:";
const DAMAGED: &[u8] = b"damaged:";
const PLACE: &[u8] = b"place:";
const VIEWER: &[u8] = b"viewer:";
const PLAYER: &[u8] = b"player:";
const BLOCK_TICKS: &[u8] = b"ticks:";
const TILE: &[u8] = b"stored:";
const SUMMARY: &[u8] = b"summary:";
const PREGENERATION: &[u8] = b"pregeneration:";
const DIMENSION: &[u8] = b"dimension:";
const REMOVAL: &[u8] = b"removal:";
const SPARSE: &[u8] = b"sparse:";
const OBJECT: &[u8] = b"object:";
const IMPORT: &[u8] = b"import:";

/// The key of a chunk.
pub fn chunk_key(dimension: DimensionId, pos: ChunkPos) -> [u8; CHUNK_KEY_LENGTH] {
    let mut key = [0; CHUNK_KEY_LENGTH];
    key[..8].copy_from_slice(&dimension.0.to_be_bytes());
    let [x, y, z] = [pos.x, pos.y, pos.z].map(ordered);
    for (place, ((x, y), z)) in key[8..].chunks_exact_mut(3).zip(x.into_iter().zip(y).zip(z)) {
        let bits = spread(x) << 2 | spread(y) << 1 | spread(z);
        place.copy_from_slice(&bits.to_be_bytes()[1..]);
    }
    key
}

/// The dimension and place of the chunk with this key; `None` if it is no chunk's key.
pub fn parse_chunk_key(key: &[u8]) -> Option<(DimensionId, ChunkPos)> {
    let key: &[u8; CHUNK_KEY_LENGTH] = key.try_into().ok()?;
    let (dimension, morton) = key.split_first_chunk::<8>()?;
    let (mut x, mut y, mut z) = ([0; 8], [0; 8], [0; 8]);
    for (place, bytes) in morton.chunks_exact(3).enumerate() {
        let bits = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
        (x[place], y[place], z[place]) = (gather(bits >> 2), gather(bits >> 1), gather(bits));
    }
    let pos = ChunkPos::new(from_ordered(x), from_ordered(y), from_ordered(z));
    Some((DimensionId(u64::from_be_bytes(*dimension)), pos))
}

/// The range of the keys of all chunks of a dimension.
pub fn chunk_dimension_range(dimension: DimensionId) -> Range<Vec<u8>> {
    chunk_cube_range(dimension, ChunkPos::new(0, 0, 0), i64::BITS)
}

/// The range of the keys of the aligned 4^3 group that holds `chunk`, and of no others.
pub fn chunk_group_range(dimension: DimensionId, chunk: ChunkPos) -> Range<Vec<u8>> {
    chunk_cube_range(dimension, chunk, 2)
}

/// The range of the keys of the aligned cube of 2^`shift` chunks a side that holds `chunk`, and of no others.
/// With a `shift` of 64 that is the whole dimension.
pub fn chunk_cube_range(dimension: DimensionId, chunk: ChunkPos, shift: u32) -> Range<Vec<u8>> {
    let size_mask = span(shift) as i64;
    // With the sign bit flipped the lowest coordinate has no bit set, also in a cube that spans zero.
    let first = |coordinate: i64| ((coordinate ^ i64::MIN) & !size_mask) ^ i64::MIN;
    let first = ChunkPos::new(first(chunk.x), first(chunk.y), first(chunk.z));
    let last = |first: i64| first.wrapping_add(size_mask);
    let last = ChunkPos::new(last(first.x), last(first.y), last(first.z));
    chunk_key(dimension, first).to_vec()..after(&chunk_key(dimension, last))
}

/// How far the last coordinate in 2^`shift` of them is from the first.
pub(super) fn span(shift: u32) -> u64 {
    u64::MAX.checked_shr(64 - shift.min(64)).unwrap_or(0)
}

/// The key of an entity's record in `entities`.
pub fn entity_key(id: Uuid) -> [u8; ENTITY_KEY_LENGTH] {
    *id.as_bytes()
}

/// The entity whose record has this key.
pub fn parse_entity_key(key: &[u8]) -> Option<Uuid> {
    Uuid::from_slice(key).ok()
}

/// The key that says: the record of this entity may say that it is in this column.
pub fn place_key(dimension: DimensionId, column: ColumnPos, id: Uuid) -> Vec<u8> {
    [PLACE, &dimension.0.to_be_bytes(), &ordered(column.x), &ordered(column.z), id.as_bytes()].concat()
}

/// The range of the place keys of all columns of one `x` from `first_z` to `last_z`.
pub fn place_range(dimension: DimensionId, x: i64, first_z: i64, last_z: i64) -> Range<Vec<u8>> {
    let first = place_key(dimension, ColumnPos::new(x, first_z), Uuid::nil());
    first..after(&place_key(dimension, ColumnPos::new(x, last_z), Uuid::max()))
}

/// The range of all place keys of a dimension.
pub fn place_dimension_range(dimension: DimensionId) -> Range<Vec<u8>> {
    let first = place_key(dimension, ColumnPos::new(i64::MIN, i64::MIN), Uuid::nil());
    first..after(&place_key(dimension, ColumnPos::new(i64::MAX, i64::MAX), Uuid::max()))
}

/// The column and the entity of a place key.
pub fn parse_place_key(key: &[u8]) -> Option<(DimensionId, ColumnPos, Uuid)> {
    let (dimension, rest) = key.strip_prefix(PLACE)?.split_first_chunk::<8>()?;
    let (x, rest) = rest.split_first_chunk()?;
    let (z, id) = rest.split_first_chunk()?;
    let column = ColumnPos::new(from_ordered(*x), from_ordered(*z));
    Some((DimensionId(u64::from_be_bytes(*dimension)), column, Uuid::from_slice(id).ok()?))
}

/// The key that says: the record of this entity may say that it holds ground loaded in this dimension.
pub fn viewer_key(dimension: DimensionId, id: Uuid) -> Vec<u8> {
    [VIEWER, &dimension.0.to_be_bytes(), id.as_bytes()].concat()
}

/// The range of the viewer keys of a dimension.
pub fn viewer_range(dimension: DimensionId) -> Range<Vec<u8>> {
    viewer_key(dimension, Uuid::nil())..after(&viewer_key(dimension, Uuid::max()))
}

/// The entity of a viewer key.
pub fn parse_viewer_key(key: &[u8]) -> Option<(DimensionId, Uuid)> {
    let (dimension, id) = key.strip_prefix(VIEWER)?.split_first_chunk::<8>()?;
    Some((DimensionId(u64::from_be_bytes(*dimension)), Uuid::from_slice(id).ok()?))
}

/// The key that says: the record of this entity may say that it is the player of this name. The name's length comes first,
/// so that no name's range holds another's.
pub fn player_key(name: &str, id: Uuid) -> Vec<u8> {
    [PLAYER, &(name.len() as u32).to_be_bytes(), name.as_bytes(), id.as_bytes()].concat()
}

/// The range of the player keys of a name.
pub fn player_range(name: &str) -> Range<Vec<u8>> {
    player_key(name, Uuid::nil())..after(&player_key(name, Uuid::max()))
}

/// The range of all player keys.
pub fn all_players_range() -> Range<Vec<u8>> {
    PLAYER.to_vec()..after(&[PLAYER, &[u8::MAX; 4 + ENTITY_KEY_LENGTH]].concat())
}

/// The name and the entity of a player key.
pub fn parse_player_key(key: &[u8]) -> Option<(&str, Uuid)> {
    let (length, rest) = key.strip_prefix(PLAYER)?.split_first_chunk::<4>()?;
    let (name, id) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    Some((str::from_utf8(name).ok()?, Uuid::from_slice(id).ok()?))
}

/// The key of a chunk's scheduled block ticks: those of a column are one range.
pub fn block_ticks_key(dimension: DimensionId, pos: ChunkPos) -> Vec<u8> {
    [BLOCK_TICKS, &dimension.0.to_be_bytes(), &ordered(pos.x), &ordered(pos.z), &ordered(pos.y)].concat()
}

/// The range of the block ticks of all columns of one `x` from `first_z` to `last_z`.
pub fn block_ticks_range(dimension: DimensionId, x: i64, first_z: i64, last_z: i64) -> Range<Vec<u8>> {
    let first = block_ticks_key(dimension, ChunkPos::new(x, i64::MIN, first_z));
    first..after(&block_ticks_key(dimension, ChunkPos::new(x, i64::MAX, last_z)))
}

/// The range of all block ticks of a dimension.
pub fn block_ticks_dimension_range(dimension: DimensionId) -> Range<Vec<u8>> {
    let first = block_ticks_key(dimension, ChunkPos::new(i64::MIN, i64::MIN, i64::MIN));
    first..after(&block_ticks_key(dimension, ChunkPos::new(i64::MAX, i64::MAX, i64::MAX)))
}

/// The dimension and place of the chunk whose block ticks have this key.
pub fn parse_block_ticks_key(key: &[u8]) -> Option<(DimensionId, ChunkPos)> {
    let (dimension, rest) = key.strip_prefix(BLOCK_TICKS)?.split_first_chunk::<8>()?;
    let (x, rest) = rest.split_first_chunk()?;
    let (z, y) = rest.split_first_chunk()?;
    let pos = ChunkPos::new(from_ordered(*x), from_ordered(y.try_into().ok()?), from_ordered(*z));
    Some((DimensionId(u64::from_be_bytes(*dimension)), pos))
}

/// The key of a piece of a dimension's graph of stored columns.
pub fn tile_key(dimension: DimensionId, tile: TilePos) -> Vec<u8> {
    [TILE, &dimension.0.to_be_bytes(), &ordered(tile.x), &ordered(tile.z)].concat()
}

/// The range of all pieces of a dimension's graph.
pub fn tile_range(dimension: DimensionId) -> Range<Vec<u8>> {
    let [first, last] = [i64::MIN, i64::MAX].map(|end| tile_key(dimension, TilePos::new(end, end)));
    first..after(&last)
}

/// The range of the pieces of all graphs.
pub fn all_tiles_range() -> Range<Vec<u8>> {
    tile_range(DimensionId(0)).start..tile_range(DimensionId(u64::MAX)).end
}

/// The dimension and the place of a tile's key.
pub fn parse_tile_key(key: &[u8]) -> Option<(DimensionId, TilePos)> {
    let (dimension, rest) = key.strip_prefix(TILE)?.split_first_chunk::<8>()?;
    let (x, z) = rest.split_first_chunk()?;
    let tile = TilePos::new(from_ordered(*x), from_ordered(z.try_into().ok()?));
    Some((DimensionId(u64::from_be_bytes(*dimension)), tile))
}

/// The key of what is opaque in a batch of columns.
pub fn opacity_key(dimension: DimensionId, batch: BatchPos) -> Vec<u8> {
    [&dimension.0.to_be_bytes()[..], &ordered(batch.x), &ordered(batch.z)].concat()
}

/// The dimension and the batch of the key of what is opaque.
pub fn parse_opacity_key(key: &[u8]) -> Option<(DimensionId, BatchPos)> {
    let (dimension, rest) = key.split_first_chunk::<8>()?;
    let (x, z) = rest.split_first_chunk()?;
    let batch = BatchPos::new(from_ordered(*x), from_ordered(z.try_into().ok()?));
    Some((DimensionId(u64::from_be_bytes(*dimension)), batch))
}

/// The range of the opacity of a whole dimension.
pub fn opacity_dimension_range(dimension: DimensionId) -> Range<Vec<u8>> {
    let [first, last] = [i64::MIN, i64::MAX].map(|end| opacity_key(dimension, BatchPos::new(end, end)));
    first..after(&last)
}

/// The key of a column's summary.
pub fn summary_key(dimension: DimensionId, column: ColumnPos) -> Vec<u8> {
    [SUMMARY, &dimension.0.to_be_bytes(), &ordered(column.x), &ordered(column.z)].concat()
}

/// The range of all summaries of a dimension.
pub fn summary_dimension_range(dimension: DimensionId) -> Range<Vec<u8>> {
    let first = summary_key(dimension, ColumnPos::new(i64::MIN, i64::MIN));
    first..after(&summary_key(dimension, ColumnPos::new(i64::MAX, i64::MAX)))
}

/// The column whose summary has this key.
pub fn parse_summary_key(key: &[u8]) -> Option<(DimensionId, ColumnPos)> {
    let (dimension, rest) = key.strip_prefix(SUMMARY)?.split_first_chunk::<8>()?;
    let (x, z) = rest.split_first_chunk()?;
    let column = ColumnPos::new(from_ordered(*x), from_ordered(z.try_into().ok()?));
    Some((DimensionId(u64::from_be_bytes(*dimension)), column))
}

/// The key of a pre-generation, by its number in the dimension.
pub fn pregeneration_key(dimension: DimensionId, number: u64) -> Vec<u8> {
    [PREGENERATION, &dimension.0.to_be_bytes(), &number.to_be_bytes()].concat()
}

/// The range of all pre-generations of a dimension.
pub fn pregeneration_range(dimension: DimensionId) -> Range<Vec<u8>> {
    pregeneration_key(dimension, 0)..after(&pregeneration_key(dimension, u64::MAX))
}

/// The dimension and the number of a pre-generation's key.
pub fn parse_pregeneration_key(key: &[u8]) -> Option<(DimensionId, u64)> {
    let (dimension, number) = key.strip_prefix(PREGENERATION)?.split_first_chunk::<8>()?;
    Some((DimensionId(u64::from_be_bytes(*dimension)), u64::from_be_bytes(number.try_into().ok()?)))
}

/// The key of a dimension's record.
pub fn dimension_key(name: &str) -> Vec<u8> {
    [DIMENSION, name.as_bytes()].concat()
}

/// The range of the records of all dimensions.
pub fn dimension_range() -> Range<Vec<u8>> {
    // The prefix ends in a colon, and a semicolon comes right behind it.
    DIMENSION.to_vec()..b"dimension;".to_vec()
}

/// The name of the dimension whose record has this key.
pub fn parse_dimension_key(key: &[u8]) -> Option<&str> {
    str::from_utf8(key.strip_prefix(DIMENSION)?).ok()
}

/// The key that says: this dimension is being removed. By number, because a name may be given again.
pub fn removal_key(dimension: DimensionId) -> Vec<u8> {
    [REMOVAL, &dimension.0.to_be_bytes()].concat()
}

/// The dimension whose removal this key is about.
pub fn parse_removal_key(key: &[u8]) -> Option<DimensionId> {
    Some(DimensionId(u64::from_be_bytes(key.strip_prefix(REMOVAL)?.try_into().ok()?)))
}

/// The key that says: of this dimension every chunk that was generated is stored, also one of air.
pub fn sparse_key(dimension: DimensionId) -> Vec<u8> {
    [SPARSE, &dimension.0.to_be_bytes()].concat()
}

/// The key of an object of an export that is only kept: those that belong to a column are one range.
pub fn object_key(dimension: DimensionId, column: Option<ColumnPos>, name: &str) -> Vec<u8> {
    let place = column.map(|column| [&[1][..], &ordered(column.x), &ordered(column.z)].concat());
    [OBJECT, &dimension.0.to_be_bytes(), &place.unwrap_or(vec![0]), name.as_bytes()].concat()
}

/// The range of the kept objects of all columns of one `x` from `first_z` to `last_z`.
pub fn object_range(dimension: DimensionId, x: i64, first_z: i64, last_z: i64) -> Range<Vec<u8>> {
    let key = |z| object_key(dimension, Some(ColumnPos::new(x, z)), "");
    // No text has this byte.
    key(first_z)..[&key(last_z)[..], &[u8::MAX]].concat()
}

/// The range of all kept objects of a dimension.
pub fn object_dimension_range(dimension: DimensionId) -> Range<Vec<u8>> {
    let first = object_key(dimension, None, "");
    let end = object_range(dimension, i64::MAX, i64::MAX, i64::MAX).end;
    first..end
}

/// The dimension, the column if there is one, and the name of a kept object.
pub fn parse_object_key(key: &[u8]) -> Option<(DimensionId, Option<ColumnPos>, &str)> {
    let (dimension, rest) = key.strip_prefix(OBJECT)?.split_first_chunk::<8>()?;
    let dimension = DimensionId(u64::from_be_bytes(*dimension));
    match rest.split_first()? {
        (0, name) => Some((dimension, None, str::from_utf8(name).ok()?)),
        (1, rest) => {
            let (x, rest) = rest.split_first_chunk()?;
            let (z, name) = rest.split_first_chunk()?;
            let column = ColumnPos::new(from_ordered(*x), from_ordered(*z));
            Some((dimension, Some(column), str::from_utf8(name).ok()?))
        }
        _ => None,
    }
}

/// The key of how far an import into a dimension has come: another one for each import.
pub fn import_key(dimension: DimensionId, import: u32) -> Vec<u8> {
    [IMPORT, &dimension.0.to_be_bytes(), &import.to_be_bytes()].concat()
}

/// The range of all imports into a dimension that have not come to their end.
pub fn import_range(dimension: DimensionId) -> Range<Vec<u8>> {
    import_key(dimension, 0)..after(&import_key(dimension, u32::MAX))
}

/// The dimension and the number of an import's key.
pub fn parse_import_key(key: &[u8]) -> Option<(DimensionId, u32)> {
    let (dimension, number) = key.strip_prefix(IMPORT)?.split_first_chunk::<8>()?;
    Some((DimensionId(u64::from_be_bytes(*dimension)), u32::from_be_bytes(number.try_into().ok()?)))
}

/// The key in `meta` of the copy of a damaged value that was stored under `key`: another one for each such value.
pub fn damaged_key(family: Family, key: &[u8], value: &[u8]) -> Vec<u8> {
    [DAMAGED, family.name().as_bytes(), b":", key, &crc32fast::hash(value).to_be_bytes()].concat()
}

/// The range of the copies of all damaged values.
pub fn damaged_range() -> Range<Vec<u8>> {
    // The prefix ends in a colon, and a semicolon comes right behind it.
    DAMAGED.to_vec()..b"damaged;".to_vec()
}

/// The range of the copies of a dimension's damaged values in a family of chunks.
pub fn damaged_chunks_range(family: Family, dimension: DimensionId) -> Range<Vec<u8>> {
    let copy = |key: Vec<u8>| [DAMAGED, family.name().as_bytes(), b":", &key].concat();
    let Range { start, end } = chunk_dimension_range(dimension);
    copy(start)..copy(end)
}

/// The family and the key of the damaged value whose copy has this key.
pub fn parse_damaged_key(key: &[u8]) -> Option<(Family, &[u8])> {
    let (key, _checksum) = key.strip_prefix(DAMAGED)?.split_last_chunk::<4>()?;
    Family::ALL.into_iter().find_map(|family| {
        let key = key.strip_prefix(family.name().as_bytes())?.strip_prefix(b":")?;
        Some((family, key))
    })
}

/// The key of what is known of when a group of chunks was accessed.
pub fn heat_key(group: ChunkGroup) -> Vec<u8> {
    [HEAT, &group.key()].concat()
}

/// The range of the heat of all groups of a dimension.
pub fn heat_dimension_range(dimension: DimensionId) -> Range<Vec<u8>> {
    let Range { start, end } = chunk_dimension_range(dimension);
    [HEAT, &start].concat()..[HEAT, &end].concat()
}

/// The group whose heat has this key.
pub fn parse_heat_key(key: &[u8]) -> Option<ChunkGroup> {
    ChunkGroup::parse(key.strip_prefix(HEAT)?)
}

/// The key that says: this group lies in this tier, and was accessed in this second or later; 0 says nothing. Those of a
/// tier are sorted by the time.
pub fn cooling_key(tier: Tier, second: u64, group: ChunkGroup) -> Vec<u8> {
    [COOLING, &[tier.number()], &second.to_be_bytes(), &group.key()].concat()
}

/// The range of the groups of a tier under this second or an earlier one.
pub fn cooling_range(tier: Tier, last_second: u64) -> Range<Vec<u8>> {
    let first = [COOLING, &[tier.number()]].concat();
    let end = [COOLING, &[tier.number()], &last_second.to_be_bytes(), &[0xff; CHUNK_KEY_LENGTH]].concat();
    first..after(&end)
}

/// The tier, the second and the group of a cooling key.
pub fn parse_cooling_key(key: &[u8]) -> Option<(Tier, u64, ChunkGroup)> {
    let (tier, rest) = key.strip_prefix(COOLING)?.split_first()?;
    let (second, group) = rest.split_first_chunk()?;
    Some((Tier::from_number(*tier)?, u64::from_be_bytes(*second), ChunkGroup::parse(group)?))
}

/// The dimension that is sparse by this key.
pub fn parse_sparse_key(key: &[u8]) -> Option<DimensionId> {
    Some(DimensionId(u64::from_be_bytes(key.strip_prefix(SPARSE)?.try_into().ok()?)))
}

/// The key that comes right behind `key`.
pub fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// Bytes that sort as the number does.
fn ordered(value: i64) -> [u8; 8] {
    (value ^ i64::MIN).to_be_bytes()
}

fn from_ordered(bytes: [u8; 8]) -> i64 {
    i64::from_be_bytes(bytes) ^ i64::MIN
}

/// Moves bit n of a byte to bit 3n.
const fn spread(byte: u8) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let mut bit = 0;
            while bit < 8 {
                table[byte] |= ((byte as u32 >> bit) & 1) << (3 * bit);
                bit += 1;
            }
            byte += 1;
        }
        table
    };
    TABLE[byte as usize]
}

/// Moves bit 3n to bit n of a byte: undoes [`spread`], whatever is in the other bits.
const fn gather(bits: u32) -> u8 {
    let bits = bits & 0o1111_1111;
    let bits = (bits | bits >> 2) & 0o0303_0303;
    let bits = (bits | bits >> 4) & 0o0017_0017;
    ((bits | bits >> 8) & 0xff) as u8
}

#[cfg(test)]
mod tests {
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

    /// The key as a row of bits.
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
        #[test]
        fn chunk_keys_agree_with_the_model(dimension: u64, pos in chunk()) {
            let dimension = DimensionId(dimension);
            let key = chunk_key(dimension, pos);
            prop_assert_eq!(&key[..], &model(dimension, pos)[..]);
            prop_assert_eq!(parse_chunk_key(&key), Some((dimension, pos)));
            prop_assert_eq!(parse_chunk_key(&key[..31]), None);
        }

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
            prop_assert_eq!(chunk_group_range(dimension, pos), chunk_cube_range(dimension, pos, 2));
        }

        #[test]
        fn each_axis_keeps_its_order(dimension: u64, pos in chunk(), a in coordinate(), b in coordinate()) {
            let dimension = DimensionId(dimension);
            let key = |pos| chunk_key(dimension, pos);
            prop_assert_eq!(key(ChunkPos { x: a, ..pos }).cmp(&key(ChunkPos { x: b, ..pos })), a.cmp(&b));
            prop_assert_eq!(key(ChunkPos { y: a, ..pos }).cmp(&key(ChunkPos { y: b, ..pos })), a.cmp(&b));
            prop_assert_eq!(key(ChunkPos { z: a, ..pos }).cmp(&key(ChunkPos { z: b, ..pos })), a.cmp(&b));
        }

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

            prop_assert!(place_dimension_range(dimension).contains(&key));
            prop_assert!(!place_dimension_range(beside_it).contains(&key));

            prop_assert_eq!(parse_viewer_key(&viewer_key(dimension, id)), Some((dimension, id)));
            prop_assert!(viewer_range(dimension).contains(&viewer_key(dimension, id)));
            prop_assert!(!viewer_range(dimension).contains(&viewer_key(beside_it, id)));

            let (pos, beside) = (column.chunk(y), other.chunk(other_y));
            let key = block_ticks_key(dimension, pos);
            prop_assert_eq!(parse_block_ticks_key(&key), Some((dimension, pos)));
            let order = (column, y).cmp(&(other, other_y));
            prop_assert_eq!(key.cmp(&block_ticks_key(dimension, beside)), order);
            let range = block_ticks_range(dimension, x, low, high);
            prop_assert!(range.contains(&key));
            prop_assert_eq!(range.contains(&block_ticks_key(dimension, beside)), x == other.x);
            prop_assert!(!range.contains(&block_ticks_key(beside_it, pos)));
            prop_assert!(block_ticks_dimension_range(dimension).contains(&key));
            prop_assert!(!block_ticks_dimension_range(beside_it).contains(&key));

            let name = id.to_string();
            let key = object_key(dimension, Some(column), &name);
            prop_assert_eq!(parse_object_key(&key), Some((dimension, Some(column), &*name)));
            let nowhere = object_key(dimension, None, &name);
            prop_assert_eq!(parse_object_key(&nowhere), Some((dimension, None, &*name)));
            let range = object_range(dimension, x, low, high);
            prop_assert!(range.contains(&key) && !range.contains(&nowhere));
            prop_assert_eq!(range.contains(&object_key(dimension, Some(other), &name)), x == other.x);
            for key in [key, nowhere] {
                prop_assert!(object_dimension_range(dimension).contains(&key));
                prop_assert!(!object_dimension_range(beside_it).contains(&key));
            }
            let number = dimension.0 as u32;
            let key = import_key(dimension, number);
            prop_assert_eq!(parse_import_key(&key), Some((dimension, number)));
            prop_assert!(import_range(dimension).contains(&key) && !import_range(beside_it).contains(&key));

            let tile = TilePos::new(x, z);
            prop_assert_eq!(parse_tile_key(&tile_key(dimension, tile)), Some((dimension, tile)));
            let batch = BatchPos::new(x, z);
            prop_assert_eq!(parse_opacity_key(&opacity_key(dimension, batch)), Some((dimension, batch)));
            prop_assert_eq!(parse_opacity_key(&opacity_key(dimension, batch)[1..]), None);
            prop_assert_eq!(parse_removal_key(&removal_key(dimension)), Some(dimension));
            prop_assert_eq!(parse_sparse_key(&sparse_key(dimension)), Some(dimension));
            prop_assert_eq!(parse_entity_key(&entity_key(id)), Some(id));
            prop_assert!(tile_range(dimension).contains(&tile_key(dimension, tile)));
            prop_assert!(!tile_range(dimension).contains(&tile_key(beside_it, tile)));
        }

        #[test]
        fn dimensions_are_found_by_any_name(name: String) {
            let key = dimension_key(&name);
            prop_assert_eq!(parse_dimension_key(&key), Some(&*name));
            prop_assert!(dimension_range().contains(&key));
            prop_assert!(!dimension_range().contains(&LAST_DIMENSION.to_vec()));
            prop_assert!(!dimension_range().contains(&removal_key(DimensionId(0))));
            let no_text = [&key[..], &[0xff]].concat();
            prop_assert_eq!(parse_dimension_key(&no_text), None);
        }

        #[test]
        fn copies_of_damaged_values_are_told_apart(key: Vec<u8>, value: Vec<u8>, other: Vec<u8>) {
            for family in Family::ALL {
                let copy = damaged_key(family, &key, &value);
                prop_assert_eq!(parse_damaged_key(&copy), Some((family, &key[..])));
                prop_assert!(damaged_range().contains(&copy));
                prop_assert_eq!(copy == damaged_key(family, &key, &other), value == other);
            }
            prop_assert!(!damaged_range().contains(&HEADER.to_vec()));
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
}
