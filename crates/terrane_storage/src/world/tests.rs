//! Opening worlds, the errors of opening, and stored data.

mod columns;
mod entities;
#[cfg(feature = "rocksdb")]
mod folders;
mod opening;

use super::*;
use crate::backends::test_store::TestStore;
use crate::block::BlockId;
use crate::chunk::{Chunk, Column};
use crate::space::{BatchPos, BlockPos, ChunkPos, ColumnPos, DimensionId, GeneratorIdentity, HeightSet, TilePos};
use crate::{EntityRecord, SaveBatch, StoredBlockTick, ViewerRecord, envelope, mark_stored};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use uuid::Uuid;

const OVERWORLD: DimensionId = DimensionId(0);
const NETHER: DimensionId = DimensionId(1);
const HEIGHTS: std::ops::Range<i64> = -4..20;

fn chunk(block: u32) -> Arc<Chunk> {
    let mut chunk = Chunk::uniform(BlockId::AIR);
    chunk.set_block([1, 2, 3], BlockId::new(block));
    Arc::new(chunk)
}

fn entity(id: u128, block: BlockPos) -> EntityRecord {
    EntityRecord {
        id: Uuid::from_u128(id),
        dimension: OVERWORLD,
        block,
        offset: [0.25, 0.0, 0.75],
        viewer: None,
        components: vec![("health".into(), vec![1, 2, 3]), ("name".into(), Vec::new())],
        children: Vec::new(),
    }
}

fn origin(seed: u64) -> GeneratorIdentity {
    GeneratorIdentity { name: "hills".into(), version: 3, seed }
}

fn save(world: &WorldStore, batch: SaveBatch) -> crate::CommitReport {
    world.commit(&batch, Durability::Process).unwrap()
}

fn save_chunk(world: &WorldStore, pos: ChunkPos, chunk: Arc<Chunk>) -> crate::CommitReport {
    save(world, SaveBatch { chunks: [((OVERWORLD, pos), chunk)].into(), ..SaveBatch::default() })
}

fn save_entity(world: &WorldStore, id: u128, entity: Option<EntityRecord>) -> crate::CommitReport {
    save(world, SaveBatch { entities: [(Uuid::from_u128(id), entity)].into(), ..SaveBatch::default() })
}

fn entities_in(world: &WorldStore, dimension: DimensionId, column: ColumnPos) -> Vec<EntityRecord> {
    let mut loaded = world.load_batch(dimension, column.batch(), &[column], HEIGHTS).unwrap();
    assert_eq!(loaded.len(), 1);
    loaded.remove(0).entities
}

fn version(store: &TestStore, pos: ChunkPos) -> u64 {
    let value = store.get(Family::Chunks, &keys::chunk_key(OVERWORLD, pos)).unwrap().unwrap();
    envelope::open(&value).unwrap().0
}

#[test]
fn a_failed_commit_changes_nothing() {
    let store = TestStore::default();
    let world = store.world();
    save_entity(&world, 1, Some(entity(1, BlockPos::new(0, 0, 0))));
    let before = store.contents();
    let mut batch = SaveBatch::default();
    batch.chunks.insert((OVERWORLD, ChunkPos::new(0, 0, 0)), chunk(1));
    batch.entities.insert(Uuid::from_u128(1), Some(entity(1, BlockPos::new(50, 0, 0))));
    store.fail_writes(true);
    let error = world.commit(&batch, Durability::Process).unwrap_err();
    assert!(error.to_string().contains("cannot write"), "{error}");
    assert!(store.contents() == before);
    store.fail_writes(false);
    assert_eq!(world.commit(&batch, Durability::Process).unwrap().entities, 1);
    assert_eq!(world.commit(&SaveBatch::default(), Durability::Sync).unwrap().bytes, 0);
}

#[derive(Clone, Debug)]
enum Step {
    Chunk(i64, i64, u32),
    Entity(u8, Option<(i64, i64, bool)>),
    Commit,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let place = -3..3_i64;
    prop_oneof![
        4 => (place.clone(), place.clone(), 0..3_u32).prop_map(|(x, y, block)| Step::Chunk(x, y, block)),
        4 => (0..4_u8, prop::option::of((place.clone(), place, any::<bool>())))
            .prop_map(|(id, place)| Step::Entity(id, place)),
        2 => Just(Step::Commit),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// After any saves, loads and reopenings, the store holds the same as a map.
    #[test]
    fn a_world_agrees_with_a_map(steps in vec(step(), 1..60)) {
        let store = TestStore::default();
        let mut world = store.world();
        let mut pending = SaveBatch::default();
        let mut chunks: BTreeMap<ChunkPos, Arc<Chunk>> = BTreeMap::new();
        let mut entities: BTreeMap<Uuid, EntityRecord> = BTreeMap::new();
        for step in steps.into_iter().chain([Step::Commit]) {
            match step {
                Step::Chunk(x, y, block) => {
                    let mut newer = SaveBatch::default();
                    newer.chunks.insert((OVERWORLD, ChunkPos::new(x, y, 0)), chunk(block));
                    pending.merge(newer);
                }
                Step::Entity(id, place) => {
                    let record = place.map(|(x, z, is_viewer)| EntityRecord {
                        viewer: is_viewer.then(ViewerRecord::default),
                        ..entity(id.into(), BlockPos::new(x * 16, 0, z * 16))
                    });
                    pending.entities.insert(Uuid::from_u128(id.into()), record);
                }
                Step::Reopen => {
                    drop(world);
                    world = store.world();
                }
                Step::Commit => {
                    let pending = std::mem::take(&mut pending);
                    world.commit(&pending, Durability::Process).unwrap();
                    chunks.extend(pending.chunks.into_iter().map(|((_, pos), chunk)| (pos, chunk)));
                    for (id, record) in pending.entities {
                        match record {
                            Some(record) => drop(entities.insert(id, record)),
                            None => drop(entities.remove(&id)),
                        }
                    }
                }
            }
            let mut found_chunks = BTreeMap::new();
            let mut found_entities = Vec::new();
            for batch in [BatchPos::new(-1, -1), BatchPos::new(-1, 0), BatchPos::new(0, -1), BatchPos::new(0, 0)] {
                let wanted: Vec<ColumnPos> = batch.columns().collect();
                for stored in world.load_batch(OVERWORLD, batch, &wanted, -3..3).unwrap() {
                    let pos = stored.column.pos();
                    found_chunks.extend(stored.column.chunks().map(|(y, chunk)| (pos.chunk(y), Arc::clone(chunk))));
                    prop_assert!(stored.entities.iter().all(|entity| entity.column() == pos));
                    found_entities.extend(stored.entities);
                }
            }
            found_entities.sort_by_key(|entity| entity.id);
            let not_air = |chunk: &Chunk| chunk.uniform_block() != Some(BlockId::AIR);
            prop_assert!(found_chunks.iter().eq(chunks.iter().filter(|(_, chunk)| not_air(chunk))));
            prop_assert!(found_entities.iter().eq(entities.values()));
            let viewers: BTreeSet<Uuid> = world.viewers(OVERWORLD).unwrap().iter().map(|entity| entity.id).collect();
            let expected = entities.values().filter(|entity| entity.viewer.is_some());
            prop_assert_eq!(viewers, expected.map(|entity| entity.id).collect());
        }
        // There is one place key per entity, and none of removed entities.
        let places = store.contents().into_iter().filter(|(_, (key, _))| keys::parse_place_key(key).is_some());
        prop_assert_eq!(places.count(), entities.len());
    }
}
