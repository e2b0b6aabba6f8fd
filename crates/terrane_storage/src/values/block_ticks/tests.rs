//! Stored block ticks.

use super::*;
use crate::backends::test_store::TestStore;
use crate::block::BlockId;
use crate::chunk::Chunk;
use crate::space::{BatchPos, ColumnPos, DimensionId};
use crate::{Durability, Family, KeyValueStore, SaveBatch, StoreError, StoredItem, WorldStore, envelope, keys};
use proptest::collection::vec;
use proptest::prelude::*;
use std::ops::Range;

const OVERWORLD: DimensionId = DimensionId(0);
const NETHER: DimensionId = DimensionId(1);
const HEIGHTS: Range<i64> = -4..20;

fn tick(block: BlockPos, kind: &str, remaining: u64) -> StoredBlockTick {
    StoredBlockTick { block, kind: kind.into(), remaining }
}

/// Two ticks of one block and one of another.
fn ticks(chunk: ChunkPos) -> Vec<StoredBlockTick> {
    let min = chunk.min_block();
    vec![
        tick(min, "terrane:flow", 3),
        tick(min, "terrane:grow", u64::MAX),
        tick(min.offset(15, 15, 15), "terrane:flow", 0),
    ]
}

fn batch(lists: impl IntoIterator<Item = (DimensionId, ChunkPos, Vec<StoredBlockTick>)>) -> SaveBatch {
    let lists = lists.into_iter().map(|(dimension, chunk, ticks)| ((dimension, chunk), ticks));
    SaveBatch { block_ticks: lists.collect(), ..SaveBatch::default() }
}

fn save(world: &WorldStore, chunk: ChunkPos, ticks: Vec<StoredBlockTick>) -> crate::CommitReport {
    world.commit(&batch([(OVERWORLD, chunk, ticks)]), Durability::Process).unwrap()
}

fn try_load(world: &WorldStore, column: ColumnPos, heights: Range<i64>) -> Result<Vec<StoredBlockTick>, StoreError> {
    let mut loaded = world.load_batch(OVERWORLD, column.batch(), &[column], heights)?;
    assert_eq!(loaded.len(), 1);
    Ok(loaded.remove(0).block_ticks)
}

fn load(world: &WorldStore, column: ColumnPos) -> Vec<StoredBlockTick> {
    try_load(world, column, HEIGHTS).unwrap()
}

#[test]
fn a_columns_ticks_come_back_sorted_and_from_nowhere_else() {
    let world = TestStore::default().world();
    for column in [ColumnPos::new(0, 0), ColumnPos::new(-1, 7), ColumnPos::new(i64::MIN >> 4, i64::MAX >> 4)] {
        let mut lists = Vec::new();
        let mut expected = Vec::new();
        for y in HEIGHTS {
            let mut list = ticks(column.chunk(y));
            expected.extend(list.clone());
            list.reverse();
            lists.push((OVERWORLD, column.chunk(y), list));
        }
        // The neighbourhood: another dimension, other columns of the batch, and other heights.
        lists.push((NETHER, column.chunk(0), ticks(column.chunk(0))));
        let others: Vec<ColumnPos> = column.batch().columns().filter(|other| *other != column).collect();
        lists.extend(others.iter().map(|other| (OVERWORLD, other.chunk(0), ticks(other.chunk(0)))));
        let outside = [HEIGHTS.start - 1, HEIGHTS.end].map(|y| column.chunk(y));
        lists.extend(outside.map(|chunk| (OVERWORLD, chunk, ticks(chunk))));
        let count = lists.len();
        let report = world.commit(&batch(lists), Durability::Sync).unwrap();
        assert_eq!((report.block_ticks, report.chunks), (count, 0));

        expected.sort();
        assert_eq!(load(&world, column), expected);
        assert_eq!(try_load(&world, column, 0..0), Ok(Vec::new()));
        let whole = world.load_batch(OVERWORLD, column.batch(), &others, HEIGHTS).unwrap();
        assert!(whole.iter().all(|stored| stored.block_ticks == ticks(stored.column.pos().chunk(0))));
    }
}

#[test]
fn the_highest_and_lowest_chunks_keep_their_ticks() {
    let world = TestStore::default().world();
    let (top, bottom) = (ChunkPos::new(3, i64::MAX >> 4, 3), ChunkPos::new(3, i64::MIN >> 4, 3));
    [top, bottom].into_iter().for_each(|chunk| _ = save(&world, chunk, ticks(chunk)));
    let mut expected = [ticks(bottom), ticks(top)].concat();
    expected.sort();
    assert_eq!(try_load(&world, top.column(), i64::MIN..i64::MAX), Ok(expected));
}

#[test]
fn a_newer_list_replaces_the_whole_older_one() {
    let store = TestStore::default();
    let world = store.world();
    let chunk = ChunkPos::new(-1, 2, -3);
    let version = || {
        let key = keys::block_ticks_key(OVERWORLD, chunk);
        envelope::open(&store.get(Family::Meta, &key).unwrap().unwrap()).unwrap().0
    };
    assert_eq!(save(&world, chunk, ticks(chunk)).block_ticks, 1);
    assert_eq!(version(), 0);
    let newer = vec![tick(chunk.min_block().offset(1, 0, 0), "terrane:fall", 9)];
    assert_eq!(save(&world, chunk, newer.clone()).block_ticks, 1);
    assert_eq!(load(&world, chunk.column()), newer);
    assert_eq!(version(), 1);
    let unchanged = save(&world, chunk, newer);
    assert_eq!((unchanged.block_ticks, unchanged.bytes, version()), (0, 0, 1));
}

#[test]
fn the_order_of_a_list_is_no_change_and_equal_ticks_are_kept() {
    let world = TestStore::default().world();
    let chunk = ChunkPos::new(0, 0, 0);
    let mut list = ticks(chunk);
    list.extend(ticks(chunk));
    list.sort();
    save(&world, chunk, list.clone());
    assert_eq!(load(&world, chunk.column()), list);
    assert_eq!(save(&world, chunk, list.into_iter().rev().collect()).bytes, 0);
}

#[test]
fn an_empty_list_leaves_nothing_behind() {
    let store = TestStore::default();
    let world = store.world();
    let chunk = ChunkPos::new(5, 5, 5);
    let before = store.contents();
    let nothing = save(&world, chunk, Vec::new());
    assert_eq!((nothing.block_ticks, nothing.bytes), (0, 0));
    save(&world, chunk, ticks(chunk));
    assert!(store.contents() != before);
    assert_eq!(save(&world, chunk, Vec::new()).block_ticks, 1);
    assert!(load(&world, chunk.column()).is_empty());
    assert!(store.contents() == before);
}

#[test]
fn ticks_are_saved_together_with_their_blocks_or_not_at_all() {
    let store = TestStore::default();
    let world = store.world();
    let pos = ChunkPos::new(0, 0, 0);
    let chunk = Arc::new(Chunk::uniform(BlockId::new(7)));
    let mut both = batch([(OVERWORLD, pos, ticks(pos))]);
    both.chunks.insert((OVERWORLD, pos), Arc::clone(&chunk));
    let before = store.contents();
    store.fail_writes(true);
    assert!(world.commit(&both, Durability::Process).is_err());
    assert!(store.contents() == before);
    store.fail_writes(false);
    // A list that cannot be stored fails its whole batch.
    let mut misplaced = both.clone();
    misplaced.block_ticks.insert((OVERWORLD, ChunkPos::new(1, 0, 0)), ticks(pos));
    let error = world.commit(&misplaced, Durability::Process).unwrap_err();
    let named = StoredItem::BlockTicks(OVERWORLD, ChunkPos::new(1, 0, 0));
    assert!(matches!(&error, StoreError::Corrupt { what, .. } if *what == named), "{error}");
    assert!(error.to_string().contains("a tick of block [0, 0, 0] under this chunk"), "{error}");
    assert!(store.contents() == before);

    world.commit(&both, Durability::Process).unwrap();
    let loaded = world.load_batch(OVERWORLD, pos.column().batch(), &[pos.column()], HEIGHTS).unwrap();
    assert_eq!((loaded[0].column.chunk(0), &loaded[0].block_ticks), (Some(&chunk), &ticks(pos)));
}

#[test]
fn damaged_ticks_are_named_and_other_columns_load() {
    let store = TestStore::default();
    let world = store.world();
    let (bad, good) = (ChunkPos::new(-2, 7, 5), ChunkPos::new(-2, 7, 6));
    let key = keys::block_ticks_key(OVERWORLD, bad);
    let resealed = |value: &mut Vec<u8>, payload: &[u8]| *value = envelope::sealed(0, payload);
    let damages: [&dyn Fn(&mut Vec<u8>); 8] = [
        &|value| *value.last_mut().unwrap() ^= 1,
        &|value| value[3] ^= 1,
        &|value| value.truncate(5),
        &Vec::clear,
        // The following values have the right checksum.
        &|value| resealed(value, &[]),
        &|value| resealed(value, &[77]),
        // An invalid cell and an invalid kind.
        &|value| resealed(value, &record::encode(&(vec!["a"], vec![(4096_u16, 0_u32, 1_u64)]))),
        &|value| resealed(value, &record::encode(&(vec!["a"], vec![(4095_u16, 1_u32, 1_u64)]))),
    ];
    for (index, damage) in damages.into_iter().enumerate() {
        [bad, good].into_iter().for_each(|chunk| _ = save(&world, chunk, ticks(chunk)));
        store.tamper(Family::Meta, &key, damage);
        let before = store.contents();
        let error = try_load(&world, bad.column(), HEIGHTS).unwrap_err();
        let named = StoredItem::BlockTicks(OVERWORLD, bad);
        assert!(matches!(&error, StoreError::Corrupt { what, .. } if *what == named), "{error}");
        assert!(error.to_string().contains("the block ticks of chunk [-2, 7, 5] of dimension 0"), "{error}");
        assert_eq!(load(&world, good.column()), ticks(good));
        // This height was not requested.
        assert_eq!(try_load(&world, bad.column(), 8..20), Ok(Vec::new()));
        assert!(store.contents() == before);
        // The ticks in memory are whole.
        let report = save(&world, bad, ticks(bad)[..1].to_vec());
        assert_eq!(load(&world, bad.column()), ticks(bad)[..1]);
        // A commit trusts a matching checksum.
        assert_eq!((report.replaced.len(), report.block_ticks), (usize::from(index < 4), 1));
    }
    store.tamper(Family::Meta, &key, |value| value[9] ^= 1);
    assert_eq!(save(&world, bad, Vec::new()).replaced.len(), 1);
    assert!(load(&world, bad.column()).is_empty());
}

#[test]
fn a_key_of_another_form_is_an_error() {
    let store = TestStore::default();
    let world = store.world();
    let chunk = ChunkPos::new(0, 0, 0);
    let key = keys::after(&keys::block_ticks_key(OVERWORLD, chunk));
    let mut writes = crate::WriteBatch::default();
    writes.put(Family::Meta, key.clone(), Vec::new());
    store.write(writes, Durability::Process).unwrap();
    let error = try_load(&world, chunk.column(), HEIGHTS).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { what: StoredItem::Key(Family::Meta, of), .. } if of == key));
}

#[test]
fn a_length_that_lies_allocates_nothing() {
    let chunk = ChunkPos::new(0, 0, 0);
    let length = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    for payload in [
        // u64::MAX kinds; a kind of that length; no kind and u64::MAX ticks.
        [&[1][..], &length].concat(),
        [&[1, 1][..], &length].concat(),
        [&[1, 0][..], &length].concat(),
    ] {
        assert!(decode(chunk, &payload).is_err());
    }
}

#[test]
fn the_layout_stays_as_it_is() {
    let chunk = ChunkPos::new(-1, 0, 2);
    let list = [
        tick(BlockPos::new(-1, 2, 35), "b", 300),
        tick(BlockPos::new(-16, 0, 32), "b", 1),
        tick(BlockPos::new(-16, 0, 32), "a", 2),
    ];
    // The format; the kinds; for each tick its cell, kind and time as variable-length numbers.
    let bytes = [&[1, 2, 1, b'a', 1, b'b', 3][..], &[0, 0, 2], &[0, 1, 1], &[0xa3, 0x1e, 1, 0xac, 0x02]].concat();
    assert_eq!(encode(chunk, &list), Ok(bytes.clone()));
    let mut sorted = list.to_vec();
    sorted.sort();
    assert_eq!(decode(chunk, &bytes), Ok(sorted));
}

/// A chunk's position and its new ticks: cell, kind, remaining.
type Change = ((bool, i64, i64, i64), Vec<(u16, u8, u64)>);

fn change() -> impl Strategy<Value = Change> {
    let place = (any::<bool>(), -3..3_i64, -3..3_i64, -3..3_i64);
    (place, vec((0..4096_u16, 0..3_u8, prop_oneof![any::<u64>(), 0..200_u64]), 0..6))
}

proptest! {
    #[test]
    fn every_list_can_be_read_back(
        coordinates: [i64; 3],
        entries in vec((0..4096_u16, ".{0,12}", any::<u64>()), 0..40),
    ) {
        let [x, y, z] = coordinates.map(|coordinate| coordinate >> 4);
        let chunk = ChunkPos::new(x, y, z);
        let mut list: Vec<_> =
            entries.iter().map(|(cell, kind, left)| tick(block(chunk, *cell).unwrap(), kind, *left)).collect();
        let bytes = encode(chunk, &list).unwrap();
        list.sort();
        prop_assert_eq!(decode(chunk, &bytes), Ok(list));
    }

    #[test]
    fn hostile_bytes_are_an_error_or_a_list_of_this_chunk(
        mut bytes in vec(any::<u8>(), 0..200),
        at: prop::sample::Index,
    ) {
        let chunk = ChunkPos::new(-1, 0, 1);
        let mut tampered = encode(chunk, &ticks(chunk)).unwrap();
        if let Some(byte) = bytes.first() {
            let at = at.index(tampered.len());
            tampered[at] = *byte;
        }
        bytes.insert(0, 1);
        for bytes in [bytes, tampered] {
            if let Ok(list) = decode(chunk, &bytes) {
                prop_assert!(list.len() <= bytes.len());
                prop_assert!(list.iter().all(|tick| tick.block.chunk() == chunk));
            }
        }
    }

    /// After any saves, the store holds the same as a map.
    #[test]
    fn stored_ticks_agree_with_a_map(commits in vec((vec(change(), 0..6), any::<bool>()), 1..12)) {
        let store = TestStore::default();
        let mut world = store.world();
        let mut model: BTreeMap<(DimensionId, ChunkPos), Vec<StoredBlockTick>> = BTreeMap::new();
        for (changes, reopen) in commits {
            let mut pending = SaveBatch::default();
            for ((is_nether, x, y, z), entries) in changes {
                let chunk = ChunkPos::new(x, y, z);
                let kind = |kind: u8| ["terrane:flow", "terrane:grow", ""][usize::from(kind)];
                let list = entries.into_iter();
                let list = list.map(|(cell, of, left)| tick(block(chunk, cell).unwrap(), kind(of), left)).collect();
                pending.merge(batch([(if is_nether { NETHER } else { OVERWORLD }, chunk, list)]));
            }
            world.commit(&pending, Durability::Process).unwrap();
            model.extend(pending.block_ticks);
            if reopen {
                drop(world);
                world = store.world();
            }
            for dimension in [OVERWORLD, NETHER] {
                for at in [BatchPos::new(-1, -1), BatchPos::new(-1, 0), BatchPos::new(0, -1), BatchPos::new(0, 0)] {
                    let columns: Vec<ColumnPos> = at.columns().collect();
                    for stored in world.load_batch(dimension, at, &columns, -2..3).unwrap() {
                        let here = (-2..3).filter_map(|y| model.get(&(dimension, stored.column.pos().chunk(y))));
                        let mut expected: Vec<_> = here.flatten().cloned().collect();
                        expected.sort();
                        prop_assert_eq!(stored.block_ticks, expected);
                    }
                }
            }
        }
        let stored = store.contents().into_iter().filter(|(_, (key, _))| keys::parse_block_ticks_key(key).is_some());
        prop_assert_eq!(stored.count(), model.values().filter(|list| !list.is_empty()).count());
    }
}
