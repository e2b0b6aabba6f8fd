//! Moves between tiers, against a world without tiers.

use super::*;
use crate::block::BlockId;
use crate::chunk::{Chunk, format};
use crate::space::{BatchPos, ColumnPos};
use crate::storage::backends::test_store::TestStore;
use crate::storage::{KeyValueStore, MemoryStore, Promotion, SaveBatch, envelope, values::tiles};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const DIMENSION: DimensionId = DimensionId(3);
/// Every height that a range can hold.
const ALL_HEIGHTS: std::ops::Range<i64> = i64::MIN..i64::MAX;

/// What each stored chunk holds, and how often it was changed.
type Model = BTreeMap<ChunkPos, (u32, u64)>;

fn chunk(block: u32) -> Arc<Chunk> {
    let mut chunk = Chunk::uniform(BlockId::AIR);
    if block > 0 {
        chunk.set_block([1, 2, 3], BlockId::new(block));
    }
    Arc::new(chunk)
}

fn block_of(chunk: &Chunk) -> u32 {
    chunk.block([1, 2, 3]).index()
}

fn group(chunk: ChunkPos) -> ChunkGroup {
    ChunkGroup::of(DIMENSION, chunk)
}

fn save(world: &WorldStore, chunks: impl IntoIterator<Item = (ChunkPos, u32)>) -> crate::storage::CommitReport {
    let chunks = chunks.into_iter().map(|(pos, block)| ((DIMENSION, pos), chunk(block)));
    world.commit(&SaveBatch { chunks: chunks.collect(), ..SaveBatch::default() }, Durability::Process).unwrap()
}

fn load(world: &WorldStore, column: ColumnPos) -> BTreeMap<ChunkPos, u32> {
    let mut loaded = world.load_batch(DIMENSION, column.batch(), &[column], ALL_HEIGHTS).unwrap();
    let column = loaded.remove(0).column;
    column.chunks().map(|(y, chunk)| (column.pos().chunk(y), block_of(chunk))).collect()
}

/// What is stored, read without the store's own help: each chunk with its tier, its block and its version.
fn stored(store: &TestStore) -> Vec<(ChunkPos, (Tier, u32, u64))> {
    let mut stored = Vec::new();
    let mut add = |pos, tier, value: &[u8]| {
        let opened = envelope::open(value).unwrap();
        let block = block_of(&format::decode(opened.payload).unwrap().chunk);
        stored.push((pos, (tier, block, opened.version)));
    };
    for (family, (key, value)) in store.contents() {
        let tier = match family {
            Family::Chunks => Tier::Hot,
            Family::WarmChunks => Tier::Warm,
            Family::ColdChunks => Tier::Cold,
            _ => continue,
        };
        let (dimension, first) = keys::parse_chunk_key(&key).unwrap();
        if tier == Tier::Hot {
            add(first, tier, &value);
            continue;
        }
        let parts = cluster::open(&value).unwrap();
        assert!(!parts.is_empty() && (tier == Tier::Cold || parts.len() == 1));
        for (place, part) in parts {
            let group = match tier {
                Tier::Cold => ChunkGroup::in_cube(dimension, first, place),
                _ => ChunkGroup::of(dimension, first),
            };
            assert_eq!(group.place_in_cube(), place);
            part.unpack().unwrap().values().for_each(|(place, value)| add(group.chunk(place), tier, value));
        }
    }
    stored
}

/// Each chunk lies in exactly one tier and is as it was saved, each group in one tier as a whole, and its heat knows which.
fn check(store: &TestStore, model: &Model) {
    let found = stored(store);
    let mut visited = Vec::new();
    // Another session would take the world from the one that the test has.
    let world = TestStore::on(store.snapshot()).world();
    let all = world.visit_chunks(|tier, chunk| {
        let (dimension, pos, value) = chunk.unwrap();
        assert_eq!(dimension, DIMENSION);
        visited.push((pos, tier, envelope::open(value).unwrap().version));
        ControlFlow::Continue(())
    });
    assert_eq!(all, Ok(ControlFlow::Continue(())));
    assert!(visited.into_iter().eq(found.iter().map(|(pos, (tier, _, version))| (*pos, *tier, *version))));
    let chunks: BTreeMap<_, _> = found.iter().copied().collect();
    assert_eq!(chunks.len(), found.len(), "a chunk is in two tiers");
    let expected: Vec<_> = model.iter().map(|(pos, state)| (*pos, *state)).collect();
    let contents: Vec<_> = chunks.iter().map(|(pos, (_, block, version))| (*pos, (*block, *version))).collect();
    assert_eq!(contents, expected);
    let mut tiers: BTreeMap<ChunkGroup, BTreeSet<Tier>> = BTreeMap::new();
    chunks.iter().for_each(|(pos, (tier, ..))| _ = tiers.entry(group(*pos)).or_default().insert(*tier));
    for (group, tiers) in &tiers {
        assert_eq!(tiers.len(), 1, "{group} is in {tiers:?}");
        assert_eq!(world.tier(*group).unwrap().as_ref(), tiers.first());
        assert!(world.last_access(*group).unwrap().is_some(), "{group}");
    }
    let mut cooling = BTreeMap::new();
    for tier in Tier::ALL {
        let (groups, end) = world.walk_cooling_groups(tier, None, usize::MAX).unwrap();
        assert_eq!(end, None);
        groups.iter().for_each(|found| assert_eq!(cooling.insert(found.group, found.tier), None, "it waits twice"));
    }
    let warmer = tiers.iter().filter(|(_, tiers)| !tiers.contains(&Tier::Cold));
    let waiting: BTreeMap<_, _> = warmer.map(|(group, tiers)| (*group, *tiers.first().unwrap())).collect();
    assert_eq!(cooling, waiting);
}

#[derive(Clone, Debug)]
enum Step {
    Save(Vec<(ChunkPos, u32)>),
    Load(ChunkPos),
    Move(Vec<(ChunkPos, Tier)>),
    PromoteLoaded,
    Reopen,
}

fn place() -> impl Strategy<Value = ChunkPos> {
    let edge =
        prop_oneof![Just(i64::MIN), Just(i64::MIN + 3), Just(i64::MAX - 1), Just(i64::MIN >> 4), Just(i64::MAX >> 4)];
    // Few groups and cubes, so that they meet.
    let near = prop_oneof![-5..5_i64, Just(15), Just(16), Just(-16), Just(-17)];
    let coordinate = prop_oneof![8 => near, 1 => edge];
    (coordinate.clone(), coordinate.clone(), coordinate).prop_map(|(x, y, z)| ChunkPos::new(x, y, z))
}

fn tier() -> impl Strategy<Value = Tier> {
    prop_oneof![Just(Tier::Hot), Just(Tier::Warm), Just(Tier::Cold)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => vec((place(), 0..4_u32), 1..6).prop_map(Step::Save),
        2 => place().prop_map(Step::Load),
        5 => vec((place(), tier()), 1..6).prop_map(Step::Move),
        1 => Just(Step::PromoteLoaded),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_chunk_is_in_one_tier_and_as_it_was_saved(steps in vec(step(), 1..24), on_load: bool) {
        let store = TestStore::default();
        let promotion = if on_load { Promotion::OnLoad } else { Promotion::OnSave };
        let open = || {
            let world = store.world();
            world.set_promotion(promotion);
            world
        };
        let mut world = open();
        let mut model = Model::new();
        for step in steps {
            match step {
                Step::Save(chunks) => {
                    let chunks: BTreeMap<_, _> = chunks.into_iter().collect();
                    save(&world, chunks.clone());
                    for (pos, block) in chunks {
                        match model.get_mut(&pos) {
                            Some((stored, version)) if *stored != block => (*stored, *version) = (block, *version + 1),
                            None if block > 0 => _ = model.insert(pos, (block, 0)),
                            _ => {}
                        }
                    }
                }
                Step::Load(pos) => {
                    let column = pos.column();
                    let expected = model.iter().filter(|(pos, (block, _))| pos.column() == column && *block > 0);
                    let expected: BTreeMap<_, _> = expected.map(|(pos, (block, _))| (*pos, *block)).collect();
                    prop_assert_eq!(load(&world, column), expected);
                }
                Step::Move(moves) => {
                    // Also of what is not there, and of what is there already.
                    let moves: BTreeMap<_, _> = moves.iter().map(|(pos, tier)| (group(*pos), *tier)).collect();
                    let stored: BTreeSet<_> = model.keys().map(|pos| group(*pos)).collect();
                    let (_, left) = world.move_groups(&moves.clone().into_iter().collect::<Vec<_>>()).unwrap();
                    prop_assert_eq!(left, 0);
                    for (group, tier) in moves {
                        prop_assert_eq!(world.tier(group).unwrap(), stored.contains(&group).then_some(tier));
                    }
                }
                Step::PromoteLoaded => _ = world.promote_loaded().unwrap(),
                Step::Reopen => world = open(),
            }
            check(&store, &model);
        }
    }
}

/// A world with two groups of one cube and a third one far away, eight chunks each.
fn filled(store: &TestStore) -> Model {
    let mut model = Model::new();
    for first in [ChunkPos::new(0, 0, 0), ChunkPos::new(4, 0, -4), ChunkPos::new(-400, 8, 80)] {
        model.extend([0, 1, 5, 9, 20, 33, 62, 63].map(|place| (group(first).chunk(place), (7 + place as u32, 0))));
    }
    save(&store.world(), model.iter().map(|(pos, (block, _))| (*pos, *block)));
    model
}

fn all_to(world: &WorldStore, model: &Model, tier: Tier) -> TierMoves {
    let groups: BTreeSet<_> = model.keys().map(|pos| (group(*pos), tier)).collect();
    let (moves, left) = world.move_groups(&groups.into_iter().collect::<Vec<_>>()).unwrap();
    assert_eq!(left, 0);
    moves
}

#[test]
fn a_save_that_changes_nothing_leaves_a_group_where_it_is() {
    for tier in [Tier::Warm, Tier::Cold] {
        let store = TestStore::default();
        let mut model = filled(&store);
        let world = store.world();
        all_to(&world, &model, tier);
        let before = store.contents();
        let report = save(&world, model.iter().map(|(pos, (block, _))| (*pos, *block)));
        assert_eq!((report.chunks, report.bytes), (0, 0));
        assert!(store.contents() == before);
        // Air that nobody knew of is no change either.
        save(&world, [(ChunkPos::new(2, 2, 2), 0)]);
        assert!(store.contents() == before);
        // One that does takes its group along, and no other.
        let pos = ChunkPos::new(0, 0, 0);
        assert_eq!(save(&world, [(pos, 99)]).chunks, 1);
        model.insert(pos, (99, 1));
        check(&store, &model);
        assert_eq!(world.tier(group(pos)), Ok(Some(Tier::Hot)));
        assert_eq!(world.tier(group(ChunkPos::new(4, 0, -4))), Ok(Some(tier)));
    }
}

#[test]
fn moves_are_counted() {
    let store = TestStore::default();
    let model = filled(&store);
    let world = store.world();
    let moves = all_to(&world, &model, Tier::Warm);
    assert_eq!((moves.groups, moves.chunks, moves.left), ([0, 3, 0], 24, 0));
    assert!(moves.chunk_bytes > 24 * 40 && moves.written > 0 && moves.damaged.is_empty());
    assert_eq!(all_to(&world, &model, Tier::Warm).groups, [0; 3]);
    assert_eq!(all_to(&world, &model, Tier::Cold).groups, [0, 0, 3]);
    assert_eq!(all_to(&world, &model, Tier::Hot).groups, [3, 0, 0]);
    check(&store, &model);
}

#[test]
fn what_is_loaded_becomes_hot_only_if_it_is_to() {
    for promotion in [Promotion::OnSave, Promotion::OnLoad] {
        let store = TestStore::default();
        let model = filled(&store);
        let world = store.world();
        world.set_promotion(promotion);
        all_to(&world, &model, Tier::Cold);
        let column = ColumnPos::new(0, 0);
        assert!(!world.has_promotions());
        load(&world, column);
        assert_eq!(world.has_promotions(), promotion == Promotion::OnLoad);
        world.promote_loaded().unwrap();
        let expected = if promotion == Promotion::OnLoad { Tier::Hot } else { Tier::Cold };
        assert_eq!(world.tier(group(column.chunk(0))), Ok(Some(expected)));
        assert_eq!(world.tier(group(ChunkPos::new(-400, 8, 80))), Ok(Some(Tier::Cold)));
        check(&store, &model);
        assert!(!world.has_promotions());
    }
}

/// Which chunks cannot be read, each asked for by itself.
fn unreadable(world: &WorldStore, model: &Model) -> BTreeSet<ChunkPos> {
    let mut unreadable = BTreeSet::new();
    for (pos, (block, _)) in model {
        match world.load_batch(DIMENSION, pos.column().batch(), &[pos.column()], pos.y..pos.y + 1) {
            Ok(loaded) => assert_eq!(block_of(loaded[0].column.chunk(pos.y).unwrap()), *block),
            Err(StoreError::Corrupt { what: StoredItem::Chunk(DIMENSION, named), .. }) => {
                assert_eq!(named, *pos);
                unreadable.insert(named);
            }
            Err(error) => panic!("{error}"),
        }
    }
    unreadable
}

#[test]
fn a_flipped_bit_in_a_cluster_damages_the_chunks_of_one_group_and_names_them() {
    let store = TestStore::default();
    let model = filled(&store);
    let world = store.world();
    all_to(&world, &model, Tier::Cold);
    let near = group(ChunkPos::new(4, 0, 4));
    let whole = store.get(Family::ColdChunks, &group(ChunkPos::new(0, 0, 0)).cube_key()).unwrap().unwrap();
    // The two groups of the origin lie in two cubes that differ in z.
    assert_ne!(near.cube_key(), group(ChunkPos::new(4, 0, -4)).cube_key());
    for at in 0..whole.len() {
        store.tamper(Family::ColdChunks, &group(ChunkPos::new(0, 0, 0)).cube_key(), |value| {
            *value = whole.clone();
            value[at] ^= 1 << (at % 8);
        });
        let damaged = unreadable(&world, &model);
        let groups: BTreeSet<_> = damaged.iter().map(|pos| group(*pos)).collect();
        assert!(groups.len() <= 1, "byte {at}");
        let expected = model.keys().filter(|pos| groups.contains(&group(**pos))).copied().collect();
        assert_eq!(damaged, expected, "byte {at}");
    }
}

#[test]
fn what_is_damaged_moves_as_it_is_and_what_is_saved_over_it_is_whole() {
    for tier in [Tier::Warm, Tier::Cold] {
        let store = TestStore::default();
        let model = filled(&store);
        let world = store.world();
        all_to(&world, &model, tier);
        let bad = group(ChunkPos::new(0, 0, 0));
        let (family, key) = match tier {
            Tier::Warm => (Family::WarmChunks, bad.key()),
            _ => (Family::ColdChunks, bad.cube_key()),
        };
        store.tamper(family, &key, |value| {
            let middle = value.len() / 2;
            value[middle] ^= 4;
        });
        let damaged: BTreeSet<_> = model.keys().filter(|pos| group(**pos) == bad).copied().collect();
        assert_eq!(unreadable(&world, &model), damaged);
        // Packed, it is carried along.
        let other = if tier == Tier::Warm { Tier::Cold } else { Tier::Warm };
        all_to(&world, &model, other);
        assert_eq!(unreadable(&world, &model), damaged);
        // Made hot, its bytes are kept, and its chunks are still known to be lost.
        let moves = all_to(&world, &model, Tier::Hot);
        assert_eq!(moves.damaged.len(), damaged.len());
        assert_eq!(unreadable(&world, &model), damaged);
        assert!(world.set_aside().unwrap().iter().any(|kept| kept.key == bad.key()));
        assert_eq!(world.tier(bad), Ok(Some(Tier::Hot)));
        // And packed again.
        all_to(&world, &model, other);
        assert_eq!(unreadable(&world, &model), damaged);
        // What is in memory replaces one of them.
        let pos = *damaged.first().unwrap();
        let report = save(&world, [(pos, model[&pos].0)]);
        let named = |error: &StoreError| matches!(error, StoreError::Corrupt { what: StoredItem::Chunk(_, at), .. } if *at == pos);
        assert!(report.replaced.len() == 1 && named(&report.replaced[0]), "{:?}", report.replaced);
        let left: BTreeSet<_> = damaged.iter().skip(1).copied().collect();
        assert_eq!(unreadable(&world, &model), left);
        // It cannot be told from an older one by its version, so it takes one that nobody has seen.
        let value = store.get(Family::Chunks, &keys::chunk_key(DIMENSION, pos)).unwrap().unwrap();
        assert!(envelope::open(&value).unwrap().version >= 1 << 32);
    }
}

#[test]
fn a_save_over_a_damaged_group_replaces_what_it_has_and_keeps_the_rest_known() {
    let store = TestStore::default();
    let model = filled(&store);
    let world = store.world();
    all_to(&world, &model, Tier::Warm);
    let bad = group(ChunkPos::new(0, 0, 0));
    store.tamper(Family::WarmChunks, &bad.key(), |value| value[50] ^= 1);
    let damaged: BTreeSet<_> = model.keys().filter(|pos| group(**pos) == bad).copied().collect();
    assert_eq!(unreadable(&world, &model), damaged);
    let pos = *damaged.last().unwrap();
    assert_eq!(save(&world, [(pos, model[&pos].0)]).replaced.len(), 1);
    let left = damaged.iter().filter(|at| **at != pos).copied().collect();
    assert_eq!(unreadable(&world, &model), left);
    assert!(world.set_aside().unwrap().iter().any(|kept| kept.key == bad.key()));
}

#[test]
fn a_cluster_of_another_version_is_an_error_that_names_it_and_stays() {
    let store = TestStore::default();
    let model = filled(&store);
    let world = store.world();
    all_to(&world, &model, Tier::Cold);
    let bad = group(ChunkPos::new(0, 0, 0));
    store.tamper(Family::ColdChunks, &bad.cube_key(), |value| {
        let end = value.len();
        let table = end - 8 - u32::from_le_bytes(*value[end - 8..].first_chunk().unwrap()) as usize;
        [0, table, end - 4].into_iter().for_each(|at| value[at] = 9);
    });
    let before = store.contents();
    let error = world.load_batch(DIMENSION, BatchPos::new(0, 0), &[ColumnPos::new(0, 0)], 0..4).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("the cold cluster from chunk [0, 0, 0] of dimension 3"), "{text}");
    assert!(matches!(error, StoreError::Corrupt { what: StoredItem::Cluster(Tier::Cold, DIMENSION, _), .. }));
    // Nothing is moved out of it or into it.
    let (moves, _) = world.move_groups(&[(bad, Tier::Hot)]).unwrap();
    assert_eq!((moves.groups, moves.left, moves.damaged.len()), ([0; 3], 1, 1));
    assert!(store.contents() == before);
}

#[test]
fn what_is_saved_into_a_group_whose_cluster_cannot_be_read_neither_hides_nor_destroys_it() {
    for tier in [Tier::Warm, Tier::Cold] {
        let store = TestStore::default();
        let world = store.world();
        let (old, new) = (ChunkPos::new(0, 0, 0), ChunkPos::new(1, 0, 1));
        let of = group(old);
        let mut graph = BTreeMap::new();
        tiles::insert(&mut graph, old.column());
        let tiles = graph.into_iter().map(|(tile, masks)| ((DIMENSION, tile), masks)).collect();
        let chunks = [((DIMENSION, old), chunk(5))].into();
        world.commit(&SaveBatch { chunks, tiles, ..SaveBatch::default() }, Durability::Process).unwrap();
        world.move_groups(&[(of, tier)]).unwrap();
        let (family, key) =
            if tier == Tier::Warm { (Family::WarmChunks, of.key()) } else { (Family::ColdChunks, of.cube_key()) };
        let whole = store.get(family, &key).unwrap();
        store.tamper(family, &key, |value| value.fill(9));
        let damaged = store.get(family, &key).unwrap();

        assert_eq!(save(&world, [(new, 6)]).replaced.len(), 1);
        // Of the cube only this group is looked at.
        let load = |chunk: ChunkPos| {
            let loaded = world.load_batch(DIMENSION, chunk.column().batch(), &[chunk.column()], 0..1)?;
            Ok(loaded[0].column.chunk(chunk.y).map(|chunk| block_of(chunk)))
        };
        assert_eq!(load(new), Ok(Some(6)));
        let refused = load(old).unwrap_err();
        assert!(
            matches!(refused, StoreError::Corrupt { what: StoredItem::Chunk(DIMENSION, chunk), .. } if chunk == old)
        );
        // It stays hot, and the cluster as it is, whatever it is told.
        for to in [Tier::Warm, Tier::Cold] {
            let (moves, _) = world.move_groups(&[(of, to)]).unwrap();
            assert_eq!((moves.groups, moves.left), ([0; 3], 1), "{tier} to {to}");
        }
        assert_eq!(store.get(family, &key).unwrap(), damaged);
        assert_eq!(save(&world, [(new, 7), (old, 8)]).chunks, 2);
        assert_eq!((load(new), load(old)), (Ok(Some(7)), Ok(Some(8))));
        assert_ne!(damaged, whole);
    }
}

#[test]
fn a_damaged_block_where_a_group_was_hot_hides_nothing_of_where_it_is_now() {
    for tier in [Tier::Warm, Tier::Cold] {
        let store = TestStore::default();
        let world = store.world();
        let (one, other) = (ChunkPos::new(0, 0, 0), ChunkPos::new(1, 0, 1));
        let hot = [one, other].map(|pos| keys::chunk_key(DIMENSION, pos));
        save(&world, [(one, 5), (other, 6)]);
        world.move_groups(&[(group(one), tier)]).unwrap();
        store.damage_block(Family::Chunks, &hot.each_ref().map(|key| &key[..]));
        assert_eq!(load(&world, one.column())[&one], 5);
        save(&world, [(one, 7)]);
        assert_eq!((load(&world, one.column())[&one], load(&world, other.column())[&other]), (7, 6));
    }
}

#[test]
fn a_damaged_block_does_not_keep_other_groups_from_moving() {
    let store = TestStore::default();
    let world = store.world();
    let (bad, good) = (ChunkPos::new(0, 0, 0), ChunkPos::new(4, 0, 0));
    save(&world, [(bad, 5), (good, 6)]);
    store.damage_block(Family::Chunks, &[&keys::chunk_key(DIMENSION, bad)]);
    let (moves, left) = world.move_groups(&[(group(bad), Tier::Warm), (group(good), Tier::Warm)]).unwrap();
    assert_eq!((moves.groups, moves.left, moves.damaged.len(), left), ([0, 1, 0], 1, 1, 0));
    assert_eq!(world.adopt_groups(10), Ok(true));
}

#[test]
fn a_failed_write_in_the_middle_of_moves_loses_nothing() {
    for good_writes in 0..3 {
        for tier in [Tier::Warm, Tier::Cold] {
            let store = TestStore::default();
            let model = filled(&store);
            let world = store.world();
            let groups: BTreeSet<_> = model.keys().map(|pos| (group(*pos), tier)).collect();
            store.fail_writes_after(good_writes);
            let moved = world.move_groups(&groups.iter().copied().collect::<Vec<_>>());
            assert!(moved.is_err(), "{moved:?}");
            store.fail_writes(false);
            check(&store, &model);
            // They are tried again.
            all_to(&world, &model, tier);
            check(&store, &model);
            // So is a save that makes one hot.
            store.fail_writes(true);
            let pos = ChunkPos::new(0, 0, 0);
            let batch = SaveBatch { chunks: [((DIMENSION, pos), chunk(99))].into(), ..SaveBatch::default() };
            assert!(world.commit(&batch, Durability::Process).is_err());
            store.fail_writes(false);
            check(&store, &model);
            world.commit(&batch, Durability::Process).unwrap();
            let mut model = model;
            model.insert(pos, (99, 1));
            check(&store, &model);
        }
    }
}

#[test]
fn every_state_that_a_crash_can_leave_is_whole() {
    let store = TestStore::default();
    let mut model = filled(&store);
    let world = store.world();
    store.record_writes();
    for tier in [Tier::Warm, Tier::Cold, Tier::Warm, Tier::Hot, Tier::Cold] {
        all_to(&world, &model, tier);
    }
    for end in store.take_history() {
        check(&TestStore::on(end), &model);
    }
    // A save that makes groups hot and changes them: before it, or after it.
    let changed: Vec<_> = model.keys().step_by(5).map(|pos| (*pos, 99)).collect();
    let before = model.clone();
    store.record_writes();
    save(&world, changed.clone());
    changed.iter().for_each(|(pos, block)| _ = model.insert(*pos, (*block, 1)));
    let history = store.take_history();
    assert_eq!(history.len(), 1);
    check(&TestStore::on(history.into_iter().next().unwrap()), &model);
    assert_ne!(before, model);
}

#[test]
fn a_reader_finds_every_group_while_it_moves() {
    let store = Arc::new(MemoryStore::new());
    let world = Arc::new(WorldStore::from_store(Box::new(store)).unwrap());
    let positions: Vec<ChunkPos> = (0..6).map(|y| ChunkPos::new(1, 4 * y, 2)).collect();
    save(&world, positions.iter().map(|pos| (*pos, 5)));
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..300 {
                let tier = Tier::ALL[(round * 7 + round / 3) % 3];
                let moves: Vec<_> = positions.iter().map(|pos| (group(*pos), tier)).collect();
                world.move_groups(&moves).unwrap();
                if round % 10 == 0 {
                    save(&world, [(positions[round % 6], 6 + round as u32)]);
                }
            }
            is_done.store(true, Ordering::SeqCst);
        });
        while !is_done.load(Ordering::SeqCst) {
            let loaded =
                world.load_batch(DIMENSION, positions[0].column().batch(), &[positions[0].column()], 0..24).unwrap();
            assert_eq!(loaded[0].column.chunks().len(), 6);
        }
    });
}

#[test]
fn a_rebuilt_graph_knows_all_tiers() {
    let store = TestStore::default();
    let model = filled(&store);
    let world = store.world();
    let mut groups: BTreeSet<_> = model.keys().map(|pos| group(*pos)).collect();
    let tiers = std::iter::zip(std::mem::take(&mut groups), Tier::ALL);
    world.move_groups(&tiers.collect::<Vec<_>>()).unwrap();
    check(&store, &model);
    assert!(world.has_lost_tiles(DIMENSION).unwrap());
    let columns: BTreeSet<_> = model.keys().map(|pos| pos.column()).collect();
    let found = world.rebuild_tiles(DIMENSION, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(found, Some(columns.len() as u64));
    // A tall range is searched for what there is.
    for column in columns {
        let expected = model.iter().filter(|(pos, _)| pos.column() == column);
        assert_eq!(load(&world, column), expected.map(|(pos, (block, _))| (*pos, *block)).collect());
    }
}

#[test]
fn a_chunk_of_megabytes_moves_through_the_tiers() {
    // Noise, as a list of values that do not compress.
    let noise = |n: u64| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8;
    let value = |length: u64, from: u64| {
        let mut value = envelope::unsealed();
        value.extend((from..from + length).map(noise));
        envelope::seal(&mut value, 4);
        value
    };
    let store = TestStore::default();
    let world = store.world();
    let (large, small) = (ChunkPos::new(0, 0, 0), ChunkPos::new(1, 0, 0));
    save(&world, [(large, 1), (small, 2)]);
    let values = [value(4 << 20, 0), value(100, 9)];
    for (pos, value) in [large, small].iter().zip(&values) {
        store.tamper(Family::Chunks, &keys::chunk_key(DIMENSION, *pos), |stored| *stored = value.clone());
    }
    for tier in [Tier::Warm, Tier::Cold, Tier::Hot] {
        world.move_groups(&[(group(large), tier)]).unwrap();
        assert_eq!(world.tier(group(large)), Ok(Some(tier)));
    }
    for (pos, value) in [large, small].iter().zip(&values) {
        assert!(store.get(Family::Chunks, &keys::chunk_key(DIMENSION, *pos)).unwrap().as_ref() == Some(value));
    }
    // Too large to be packed: it stays, and is not tried again at once.
    store
        .tamper(Family::Chunks, &keys::chunk_key(DIMENSION, large), |stored| *stored = vec![7; cluster::LARGEST_GROUP]);
    world.set_session_time(Duration::from_secs(50));
    let (moves, _) = world.move_groups(&[(group(large), Tier::Cold)]).unwrap();
    assert_eq!((moves.groups, moves.left), ([0; 3], 1));
    assert_eq!(world.tier(group(large)), Ok(Some(Tier::Hot)));
    assert_eq!(world.last_access(group(large)), Ok(Some(Duration::from_secs(50))));
}
