//! Writes that fail and happen all the same, just before the next one. Readers do not see them until then.

use crate::backends::test_store::TestStore;
use crate::block::{BlockId, BlockRegistry, BlockType};
use crate::chunk::Chunk;
use crate::servers::{Crossing, CrossingId};
use crate::space::{BatchPos, BlockPos, ChunkPos, ColumnPos, DimensionId, GeneratorIdentity, TilePos};
use crate::{BatchOpacity, ChunkGroup, Durability, EntityRecord, SaveBatch, StoreError, Tier, WorldStore};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use uuid::Uuid;

const DIMENSION: DimensionId = DimensionId(1);
const STONE: BlockId = BlockId::new(1);

fn open(store: &TestStore) -> WorldStore {
    with_blocks(store.world())
}

fn with_blocks(world: WorldStore) -> WorldStore {
    let mut blocks = BlockRegistry::new();
    ["game:stone", "game:ore"].into_iter().for_each(|name| _ = blocks.register(BlockType::new(name)).unwrap());
    world.set_blocks(Arc::new(blocks));
    world
}

/// A chunk of air with this block in it.
fn chunk(block: BlockId) -> Arc<Chunk> {
    let mut chunk = Chunk::uniform(BlockId::AIR);
    if block != BlockId::AIR {
        chunk.set_block([1, 2, 3], block);
    }
    Arc::new(chunk)
}

fn record(number: u8, x: i64) -> EntityRecord {
    EntityRecord {
        id: Uuid::from_u128(number.into()),
        dimension: DIMENSION,
        block: BlockPos::new(x, 5, 0),
        offset: [0.5; 3],
        viewer: None,
        components: Vec::new(),
        children: Vec::new(),
    }
}

fn commit(world: &WorldStore, batch: &SaveBatch) -> Result<(), StoreError> {
    world.commit(batch, Durability::Sync).map(drop)
}

fn chunks<const N: usize>(chunks: [(ChunkPos, BlockId); N]) -> SaveBatch {
    let chunks = chunks.into_iter().map(|(pos, block)| ((DIMENSION, pos), chunk(block))).collect();
    SaveBatch { chunks, ..SaveBatch::default() }
}

fn entity(number: u8, record: Option<EntityRecord>) -> SaveBatch {
    SaveBatch { entities: [(Uuid::from_u128(number.into()), record)].into(), ..SaveBatch::default() }
}

/// Has something done whose writes fail and happen later.
fn late<T>(store: &TestStore, act: impl FnOnce() -> Result<T, StoreError>) {
    store.delay_writes(true);
    assert!(act().is_err_and(|error| error.is_outage()));
    store.delay_writes(false);
}

/// The blocks of the first two groups of chunks.
fn blocks(world: &WorldStore) -> BTreeMap<ChunkPos, BlockId> {
    let batches = [0, 1].map(|x| BatchPos::new(x, 0));
    let columns = batches.into_iter().flat_map(|batch| {
        let columns: Vec<ColumnPos> = batch.columns().collect();
        world.load_batch(DIMENSION, batch, &columns, 0..4).unwrap()
    });
    let columns: Vec<_> = columns.collect();
    let chunks = columns.iter().flat_map(|loaded| {
        loaded.column.chunks().map(|(y, chunk)| (loaded.column.pos().chunk(y), chunk.block([1, 2, 3])))
    });
    chunks.collect()
}

#[test]
fn an_entity_that_is_gone_does_not_come_back_with_a_late_write() {
    let store = TestStore::default();
    let world = open(&store);
    late(&store, || commit(&world, &entity(7, Some(record(7, 0)))));
    // It is picked up meanwhile, so there is nothing to remove yet.
    commit(&world, &entity(7, None)).unwrap();
    store.land_writes();
    assert_eq!(world.entity(record(7, 0).id), Ok(None));
}

#[test]
fn a_chunk_that_is_changed_back_stays_so_after_a_late_write() {
    let (store, pos) = (TestStore::default(), ChunkPos::new(0, 0, 0));
    let world = open(&store);
    commit(&world, &chunks([(pos, STONE)])).unwrap();
    late(&store, || commit(&world, &chunks([(pos, BlockId::new(2))])));
    commit(&world, &chunks([(pos, STONE)])).unwrap();
    store.land_writes();
    assert_eq!(blocks(&world), [(pos, STONE)].into());
}

#[test]
fn a_group_that_moves_late_keeps_all_of_its_chunks() {
    let [one, other] = [0, 1].map(|x| ChunkPos::new(x, 0, 0));
    for (from, to) in [(Tier::Hot, Tier::Warm), (Tier::Warm, Tier::Hot), (Tier::Warm, Tier::Cold)] {
        let store = TestStore::default();
        let world = open(&store);
        commit(&world, &chunks([(one, STONE), (other, STONE)])).unwrap();
        let group = ChunkGroup::of(DIMENSION, one);
        world.move_groups(&[(group, from)]).unwrap();
        late(&store, || world.move_groups(&[(group, to)]));
        commit(&world, &chunks([(one, BlockId::new(2))])).unwrap();
        store.land_writes();
        assert_eq!(blocks(&world), [(one, BlockId::new(2)), (other, STONE)].into(), "{from:?} to {to:?}");
    }
}

#[test]
fn a_load_finds_a_group_that_moves_late() {
    let pos = ChunkPos::new(0, 0, 0);
    for (from, to) in [(Tier::Hot, Tier::Warm), (Tier::Warm, Tier::Hot), (Tier::Warm, Tier::Cold)] {
        for scans in 1..12 {
            let store = TestStore::default();
            let world = open(&store);
            commit(&world, &chunks([(pos, STONE)])).unwrap();
            let group = ChunkGroup::of(DIMENSION, pos);
            world.move_groups(&[(group, from)]).unwrap();
            late(&store, || world.move_groups(&[(group, to)]));
            store.land_writes_after(scans);
            assert_eq!(blocks(&world), [(pos, STONE)].into(), "{from:?} to {to:?} after {scans} scans");
        }
    }
}

/// A world whose disk is full goes on, also into dimensions that were there before.
#[test]
fn a_dimension_that_exists_opens_after_a_failed_write() {
    let store = TestStore::default();
    let world = open(&store);
    let origin = GeneratorIdentity { name: "flat".into(), version: 1, seed: 0 };
    let id = world.open_dimension("moon", &origin).unwrap();
    store.fail_writes(true);
    commit(&world, &entity(7, Some(record(7, 0)))).unwrap_err();
    assert_eq!(world.open_dimension("moon", &origin), Ok(id));
    assert!(world.open_dimension("sun", &origin).is_err());
}

#[test]
fn no_map_is_kept_of_chunks_that_a_late_write_changes() {
    let (store, pos, batch) = (TestStore::default(), ChunkPos::new(0, 0, 0), BatchPos::new(0, 0));
    let world = open(&store);
    commit(&world, &chunks([(pos, STONE)])).unwrap();
    let changed = chunks([(ChunkPos::new(0, 1, 0), STONE)]);
    late(&store, || commit(&world, &changed));
    assert_eq!(world.opacity(DIMENSION, batch).unwrap().highest(1, 3), Some(2));
    commit(&world, &changed).unwrap();
    assert_eq!(world.opacity(DIMENSION, batch).unwrap().highest(1, 3), Some(18));
}

#[test]
fn an_entity_whose_departure_was_late_is_not_sent_twice() {
    let store = TestStore::default();
    let [a, b] = [0; 2].map(|_| WorldStore::join(Arc::new(store.clone()), b"").unwrap());
    let plot = (DIMENSION, TilePos::new(1, 0));
    let id = CrossingId { plot, sender: a.incarnation().unwrap().number(), number: 1 };
    let mut leaves = entity(7, None);
    leaves.sent.insert(id, Crossing::Entities(vec![record(7, 600)]));
    late(&store, || commit(&a, &leaves));
    let mut arrives = entity(7, Some(record(7, 600)));
    arrives.received.insert(id);
    store.after_landing(move || commit(&b, &arrives).unwrap());
    commit(&a, &leaves).unwrap();
    assert_eq!(a.entity(record(7, 600).id), Ok(Some(record(7, 600))));
    assert_eq!(a.crossings(DIMENSION), Ok(vec![]));
}

#[derive(Clone, Copy, Debug)]
enum Fate {
    Done,
    Lost,
    /// It happens, but its answer is lost.
    Unanswered,
    Late,
}

#[derive(Clone, Debug)]
enum Change {
    /// 0 is air.
    Chunk(ChunkPos, u32),
    /// Its x, if it is not removed.
    Entity(u8, Option<i64>),
}

#[derive(Clone, Debug)]
enum Step {
    /// Saves these changes together with those that are not saved yet.
    Save(Vec<Change>),
    Move(Vec<(ChunkPos, Tier)>),
    Look,
}

fn step() -> impl Strategy<Value = (Step, Fate)> {
    let pos = || (0..8_i64, 0..2_i64).prop_map(|(x, y)| ChunkPos::new(x, y, 0));
    let change = prop_oneof![
        (pos(), 0..3_u32).prop_map(|(pos, block)| Change::Chunk(pos, block)),
        (0..3_u8, proptest::option::of(prop_oneof![Just(3), Just(20), Just(70)]))
            .prop_map(|(number, x)| Change::Entity(number, x)),
    ];
    let tier = prop_oneof![Just(Tier::Hot), Just(Tier::Warm), Just(Tier::Cold)];
    let step = prop_oneof![
        4 => vec(change, 0..5).prop_map(Step::Save),
        2 => vec((pos(), tier), 1..3).prop_map(Step::Move),
        1 => Just(Step::Look),
    ];
    let fate =
        prop_oneof![3 => Just(Fate::Done), 1 => Just(Fate::Lost), 1 => Just(Fate::Unanswered), 2 => Just(Fate::Late)];
    (step, fate)
}

/// The values that must be stored.
#[derive(Debug, Default)]
struct Model {
    chunks: BTreeMap<ChunkPos, BlockId>,
    entities: BTreeMap<Uuid, EntityRecord>,
}

impl Model {
    fn save(&mut self, batch: &SaveBatch) {
        for ((_, pos), chunk) in &batch.chunks {
            self.chunks.insert(*pos, chunk.block([1, 2, 3]));
        }
        for (id, record) in &batch.entities {
            match record {
                Some(record) => drop(self.entities.insert(*id, record.clone())),
                None => drop(self.entities.remove(id)),
            }
        }
        self.chunks.retain(|_, block| *block != BlockId::AIR);
    }

    fn check(&self, world: &WorldStore) {
        assert_eq!(blocks(world), self.chunks);
        let stored = [0, 1, 2].map(|number| world.entity(Uuid::from_u128(number)).unwrap());
        assert_eq!(
            stored.into_iter().flatten().collect::<Vec<_>>(),
            self.entities.values().cloned().collect::<Vec<_>>()
        );
        let columns: Vec<ColumnPos> = [0, 1, 4].map(|x| ColumnPos::new(x, 0)).to_vec();
        let mut placed: Vec<EntityRecord> = Vec::new();
        for batch in [0, 1].map(|x| BatchPos::new(x, 0)) {
            let loaded = world.load_batch(DIMENSION, batch, &columns, 0..0).unwrap();
            placed.extend(loaded.into_iter().flat_map(|loaded| loaded.entities));
            let mut map = BatchOpacity::default();
            for (pos, block) in self.chunks.iter().filter(|(pos, _)| pos.column().batch() == batch) {
                map.set_chunk(pos.column(), pos.y, &chunk(*block), |block| block != BlockId::AIR);
            }
            assert_eq!(world.opacity(DIMENSION, batch), Ok(map));
        }
        placed.sort_by_key(|record| record.id);
        assert_eq!(placed, self.entities.values().cloned().collect::<Vec<_>>(), "by the keys of their places");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Promise, crashes: After a save, everything is stored as it was saved last, whatever became of failed writes.
    #[test]
    fn what_was_saved_last_is_stored_whatever_became_of_failed_writes(steps in vec(step(), 1..24)) {
        let store = TestStore::default();
        let world = open(&store);
        let (mut model, mut pending) = (Model::default(), SaveBatch::default());
        let last = (Step::Save(vec![Change::Entity(9, None)]), Fate::Done);
        for (step, fate) in steps.into_iter().chain([last]) {
            store.fail_writes(matches!(fate, Fate::Lost));
            store.delay_writes(matches!(fate, Fate::Unanswered | Fate::Late));
            let mut is_saved = false;
            match step {
                Step::Save(changes) => {
                    for change in changes {
                        pending.merge(match change {
                            Change::Chunk(pos, block) => chunks([(pos, BlockId::new(block))]),
                            Change::Entity(number, x) => entity(number, x.map(|x| record(number, x))),
                        });
                    }
                    is_saved = commit(&world, &pending).is_ok();
                }
                Step::Move(moves) => {
                    let moves = moves.into_iter().map(|(pos, tier)| (ChunkGroup::of(DIMENSION, pos), tier));
                    _ = world.move_groups(&moves.collect::<Vec<_>>());
                }
                Step::Look => [0, 1].into_iter().for_each(|x| _ = world.opacity(DIMENSION, BatchPos::new(x, 0))),
            }
            store.fail_writes(false);
            store.delay_writes(false);
            if matches!(fate, Fate::Unanswered) {
                store.land_writes();
            }
            if is_saved {
                model.save(&std::mem::take(&mut pending));
                // A write that failed before a later one succeeded must not land any more.
                store.land_writes();
                model.check(&world);
            }
        }
        prop_assert!(pending.is_empty());
        prop_assert_eq!(world.verify(|_| ControlFlow::Continue(())).unwrap().damage.count(), 0);
    }
}
