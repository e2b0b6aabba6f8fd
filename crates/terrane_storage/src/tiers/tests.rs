//! Moves between tiers, compared with a world without tiers.

mod damage;
mod moves;

use super::*;
use crate::backends::test_store::TestStore;
use crate::block::BlockId;
use crate::chunk::{Chunk, format};
use crate::space::{BatchPos, ColumnPos};
use crate::values::tile_masks;
use crate::{KeyValueStore, MemoryStore, SaveBatch, envelope};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const DIMENSION: DimensionId = DimensionId(3);
/// Every height that a range can hold.
const ALL_HEIGHTS: std::ops::Range<i64> = i64::MIN..i64::MAX;

/// The contents and version of each stored chunk.
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

fn save(world: &WorldStore, chunks: impl IntoIterator<Item = (ChunkPos, u32)>) -> crate::CommitReport {
    let chunks = chunks.into_iter().map(|(pos, block)| ((DIMENSION, pos), chunk(block)));
    world.commit(&SaveBatch { chunks: chunks.collect(), ..SaveBatch::default() }, Durability::Process).unwrap()
}

fn load(world: &WorldStore, column: ColumnPos) -> BTreeMap<ChunkPos, u32> {
    let mut loaded = world.load_batch(DIMENSION, column.batch(), &[column], ALL_HEIGHTS).unwrap();
    let column = loaded.remove(0).column;
    column.chunks().map(|(y, chunk)| (column.pos().chunk(y), block_of(chunk))).collect()
}

/// The stored chunks, read without the store's own functions: each with its tier, block and version.
fn stored(store: &TestStore) -> Vec<(ChunkPos, (Tier, u32, u64))> {
    let mut stored = Vec::new();
    let mut add = |pos, tier, value: &[u8]| {
        let (version, payload) = envelope::open(value).unwrap();
        let block = block_of(&format::decode(&(), payload).unwrap().0);
        stored.push((pos, (tier, block, version)));
    };
    for (family, (key, value)) in store.contents() {
        let Some(tier) = Tier::of_family(family) else { continue };
        let (dimension, first) = keys::parse_chunk_key(&key).unwrap();
        assert_eq!(dimension, DIMENSION);
        if tier == Tier::Hot {
            add(first, tier, &value);
            continue;
        }
        let parts = cluster::open(&value).unwrap();
        assert!(!parts.is_empty() && (tier == Tier::Cold || parts.len() == 1));
        for (place, part) in parts {
            let group = ChunkGroup::in_cluster(tier, dimension, first, place);
            assert_eq!(group.place_in_cube(), place);
            cluster::values(&part.unpack().unwrap()).for_each(|(place, value)| add(group.chunk(place), tier, value));
        }
    }
    stored
}

/// Checks that each chunk is in exactly one tier and as it was saved, each group is in one tier as a whole, and heat
/// has the right tier.
fn check(store: &TestStore, model: &Model) {
    let found = stored(store);
    // Another session on the same store would end that of the test.
    let world = TestStore::on(store.snapshot()).world();
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
    // Few groups and cubes, so that moves affect each other.
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

    /// Promise, tiers: A chunk group is in one tier, under the key of its first chunk.
    #[test]
    fn every_chunk_is_in_one_tier_and_as_it_was_saved(steps in vec(step(), 1..24), on_load: bool) {
        let store = TestStore::default();
        let open = || {
            let world = store.world();
            world.set_promotes_on_load(on_load);
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
                    // The groups include missing ones, and ones that are already there.
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

/// A world with two groups of one cube and a third one far away, with eight chunks each.
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
