//! The map follows the chunks through saves, losses and damage.

use super::*;
use crate::backends::test_store::TestStore;
use crate::block::{BlockComponent, BlockId, BlockRegistry, BlockType, Schema};
use crate::chunk::Chunk;
use crate::space::{ChunkPos, GeneratorIdentity};
use crate::{CommitReport, KeyValueStore, MemoryStore, RegistryLists, SaveBatch};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

const DIMENSION: DimensionId = DimensionId(0);
const STONE: BlockId = BlockId::new(1);
const GLASS: BlockId = BlockId::new(2);
const OPAQUE: [bool; 3] = [false, true, false];

fn open(store: &TestStore, opaque: [bool; 3]) -> WorldStore {
    let world = store.world();
    let mut blocks = BlockRegistry::new();
    for (id, name) in [(1, "game:stone"), (2, "game:glass")] {
        let block = BlockType::new(name);
        blocks.register(if opaque[id] { block } else { block.transparent() }).unwrap();
    }
    world.set_blocks(Arc::new(blocks));
    world
}

fn save(world: &WorldStore, chunks: impl IntoIterator<Item = (ChunkPos, Chunk)>) -> CommitReport {
    let chunks = chunks.into_iter().map(|(pos, chunk)| ((DIMENSION, pos), Arc::new(chunk)));
    let batch = SaveBatch { chunks: chunks.collect(), ..SaveBatch::default() };
    world.commit(&batch, Durability::Process).unwrap()
}

/// A chunk of `other` with a layer of `block` at height 3.
fn slab(block: BlockId, other: BlockId) -> Chunk {
    Chunk::from_fn(|[_, y, _]| if y == 3 { block } else { other })
}

fn stored_value(store: &TestStore, batch: BatchPos) -> Option<Vec<u8>> {
    store.get(Family::Opacity, &keys::opacity_key(DIMENSION, batch)).unwrap()
}

#[test]
fn edits_are_seen_and_nothing_is_written_that_stays_as_it_was() {
    let store = TestStore::default();
    let world = open(&store, OPAQUE);
    let (pos, batch) = (ChunkPos::new(-3, 2, 5), BatchPos::new(-1, 1));
    assert_eq!(world.opacity(DIMENSION, batch).unwrap(), BatchOpacity::default());
    assert_eq!(stored_value(&store, batch), None, "whoever looks around in empty ground leaves nothing behind");
    save(&world, [(pos, slab(STONE, GLASS))]);
    assert_eq!(stored_value(&store, batch), None, "nobody has asked");
    assert_eq!(world.opacity(DIMENSION, batch).unwrap().highest(16, 16), Some(35));
    let before = stored_value(&store, batch);
    save(&world, [(pos, slab(STONE, GLASS))]);
    assert!(before.is_some() && stored_value(&store, batch) == before, "the chunk is as it was");
    let elsewhere = ChunkPos { x: -5, ..pos };
    save(&world, [(elsewhere, slab(GLASS, BlockId::AIR))]);
    assert_eq!(stored_value(&store, batch), before, "it is of another batch");
    save(&world, [(pos, slab(GLASS, BlockId::AIR))]);
    assert_eq!(stored_value(&store, batch), None, "what is not true any more is not stored");
    assert_eq!(world.opacity(DIMENSION, batch).unwrap().highest(16, 16), None);
}

#[test]
fn a_tile_is_cached_until_a_write_changes_it() {
    let store = TestStore::default();
    let batch = BatchPos::new(0, 0);
    let highest = |world: &WorldStore| world.opacity(DIMENSION, batch).unwrap().highest(16, 16);
    let above = |y: i64| [(ChunkPos::new(1, y, 1), slab(STONE, BlockId::AIR))];
    {
        let world = open(&store, OPAQUE);
        save(&world, above(0));
        assert_eq!((highest(&world), stored_value(&store, batch).is_some()), (Some(3), true));
        save(&world, above(1));
        assert_eq!(stored_value(&store, batch), None);
    }
    let world = open(&store, OPAQUE);
    assert_eq!(highest(&world), Some(19), "after a crash");
    // A failed commit does not change the map, and a map that cannot be stored is still returned.
    store.fail_writes(true);
    let batch_above = SaveBatch {
        chunks: above(9).into_iter().map(|(pos, chunk)| ((DIMENSION, pos), Arc::new(chunk))).collect(),
        ..SaveBatch::default()
    };
    assert!(world.commit(&batch_above, Durability::Process).is_err());
    assert_eq!(world.opacity(DIMENSION, BatchPos::new(7, 7)), Ok(BatchOpacity::default()));
    store.fail_writes(false);
    assert_eq!((highest(&world), highest(&open(&store, OPAQUE))), (Some(19), Some(19)));
}

#[test]
fn a_tile_is_not_stored_during_a_write_or_the_removal_of_its_dimension() {
    let store = TestStore::default();
    let world = open(&store, OPAQUE);
    let batch = BatchPos::new(0, 0);
    save(&world, [(ChunkPos::new(1, 0, 1), slab(STONE, BlockId::AIR))]);
    let written = world.written.load(Ordering::Acquire);
    let tile = {
        let _writing = world.lock_writes().unwrap();
        world.opacity(DIMENSION, batch).unwrap()
    };
    assert_eq!((tile.highest(16, 16), stored_value(&store, batch)), (Some(3), None), "somebody is writing");
    let (blocks, key) = (world.known_blocks().unwrap(), keys::opacity_key(DIMENSION, batch));
    world.make_sparse(DimensionId(1)).unwrap();
    world.keep_opacity(DIMENSION, key, &tile, &blocks, written, None);
    assert_eq!(stored_value(&store, batch), None, "something was written meanwhile");
    let origin = GeneratorIdentity { name: "hills".into(), version: 0, seed: 0 };
    assert_eq!(world.open_dimension("overworld", &origin), Ok(DIMENSION));
    assert_eq!(world.remove_dimension("overworld", |_| ControlFlow::Break(())), Ok(None));
    world.opacity(DIMENSION, batch).unwrap();
    assert_eq!(stored_value(&store, batch), None);
}

/// Promise, world format: An opacity map that is lost, damaged, or made for other block types is rebuilt.
#[test]
fn a_lost_damaged_or_wrong_opacity_map_is_rebuilt() {
    let store = TestStore::default();
    let (pos, batch) = (ChunkPos::new(1, 0, 1), BatchPos::new(0, 0));
    // The opacity of the blocks is not known yet.
    save(&store.world(), [(pos, slab(STONE, BlockId::AIR))]);
    assert_eq!(stored_value(&store, batch), None);
    let highest = |world: &WorldStore| world.opacity(DIMENSION, batch).unwrap().highest(16, 16);
    let world = open(&store, OPAQUE);
    assert_eq!(highest(&world), Some(3));
    let above = |y: i64| [(ChunkPos::new(1, y, 1), slab(GLASS, BlockId::AIR))];
    save(&world, above(1));
    assert_eq!(highest(&world), Some(3), "what was there before is in it");
    // Glass is opaque now.
    let world = open(&store, [false, true, true]);
    assert_eq!(highest(&world), Some(19));
    save(&world, above(2));
    assert_eq!(highest(&world), Some(35));
    store.tamper(Family::Opacity, &keys::opacity_key(DIMENSION, batch), |value| value[20] ^= 1);
    let damaged = stored_value(&store, batch);
    assert_eq!(highest(&world), Some(35));
    assert!(stored_value(&store, batch).is_some_and(|value| Some(value) != damaged), "it is whole again");
    assert!(save(&world, above(3)).replaced.is_empty());
    assert_eq!(highest(&world), Some(51));
}

#[test]
fn a_damaged_chunk_keeps_nothing_else_from_being_saved() {
    let store = TestStore::default();
    let (damaged, whole, batch) = (ChunkPos::new(0, 0, 0), ChunkPos::new(1, 0, 1), BatchPos::new(0, 0));
    save(&store.world(), [(damaged, slab(STONE, BlockId::AIR))]);
    store.tamper(Family::Chunks, &keys::chunk_key(DIMENSION, damaged), |value| value[30] ^= 1);
    let world = open(&store, OPAQUE);
    assert!(matches!(world.opacity(DIMENSION, batch), Err(StoreError::Corrupt { what: StoredItem::Chunk(..), .. })));
    assert_eq!(save(&world, [(whole, slab(STONE, BlockId::AIR))]).chunks, 1);
    assert_eq!(stored_value(&store, batch), None);
    // The map is whole again together with the chunk.
    save(&world, [(damaged, slab(GLASS, BlockId::AIR))]);
    save(&world, [(damaged, slab(STONE, BlockId::AIR))]);
    let tile = world.opacity(DIMENSION, batch).unwrap();
    assert_eq!((tile.highest(0, 0), tile.highest(16, 16)), (Some(3), Some(3)));
    assert!(stored_value(&store, batch).is_some());
}

#[test]
fn a_chunk_that_cannot_be_migrated_keeps_nothing_else_from_being_saved() {
    let (store, mut old) = (TestStore::default(), BlockRegistry::new());
    old.register_component(BlockComponent::fixed::<u8>("game:lock")).unwrap();
    let chest = BlockType::new("game:chest").with_component("game:lock");
    let id = old.register(chest.clone()).unwrap();
    let (blocks, components): (Vec<_>, Vec<_>) =
        (old.block_records().collect(), old.component_records().cloned().collect());
    let world = store.world();
    let lists = RegistryLists { blocks: blocks.clone(), components: components.clone(), ..RegistryLists::default() };
    world.save_registry_lists(&lists).unwrap();
    let (refused, whole, batch) = (ChunkPos::new(0, 0, 0), ChunkPos::new(1, 0, 1), BatchPos::new(0, 0));
    save(&world, [(refused, slab(id, BlockId::AIR))]);

    let mut new = BlockRegistry::from_records(blocks, components).unwrap();
    let schema = Schema::new(1).with_migration(0, |_| Err("no key fits".into()));
    new.register_component(BlockComponent::fixed::<u16>("game:lock").with_schema(schema)).unwrap();
    new.register(chest).unwrap();
    world.set_blocks(Arc::new(new));
    assert!(matches!(world.opacity(DIMENSION, batch), Err(StoreError::Unmigrated { .. })));
    assert_eq!(save(&world, [(whole, slab(id, BlockId::AIR))]).chunks, 1);
    assert_eq!(stored_value(&store, batch), None);
}

#[test]
fn a_map_of_ground_that_was_on_another_server_meanwhile_is_not_kept() {
    let store = Arc::new(MemoryStore::new());
    let [a, b] = [0; 2].map(|_| WorldStore::join(store.clone(), b"").unwrap());
    let [server_a, server_b] = [&a, &b].map(|world| world.incarnation().unwrap());
    let (batch, plot) = (BatchPos::new(0, 0), (DIMENSION, BatchPos::new(0, 0).column(0).tile()));
    a.set_blocks(Arc::new(BlockRegistry::new()));
    let (blocks, key) = (a.known_blocks().unwrap(), keys::opacity_key(DIMENSION, batch));
    server_a.acquire(&[plot].into()).unwrap();
    let mut map = BatchOpacity::default();
    map.set_chunk(batch.column(0), 0, &Chunk::uniform(STONE), |_| true);
    let old = server_a.own_row(plot).unwrap().map(|row| (plot, row));
    assert!(server_a.hand_over(&[plot].into(), server_b.number()).unwrap());
    assert!(server_b.hand_over(&[plot].into(), server_a.number()).unwrap());
    let keep = |owner| {
        a.keep_opacity(DIMENSION, key.clone(), &map, &blocks, a.written.load(Ordering::Acquire), owner);
        store.get(Family::Opacity, &key).unwrap().is_some()
    };
    assert!(!keep(old), "the map was made before the ground left");
    assert!(keep(server_a.own_row(plot).unwrap().map(|row| (plot, row))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The map is always that of the stored chunks, for any saves and any time of asking.
    #[test]
    fn the_map_follows_the_chunks(
        commits in vec((vec((-5..5_i64, -2..3_i64, -5..5_i64, 0..3_u32, 0..3_u32), 1..6), any::<bool>()), 1..8),
    ) {
        let store = TestStore::default();
        let world = open(&store, OPAQUE);
        let mut known = BTreeMap::new();
        let batches = || (-2..2).flat_map(|x| (-2..2).map(move |z| BatchPos::new(x, z)));
        for (chunks, is_asked) in commits {
            let mut batch = SaveBatch::default();
            for (x, y, z, block, other) in chunks {
                let (pos, chunk) = (ChunkPos::new(x, y, z), slab(BlockId::new(block), BlockId::new(other)));
                known.insert(pos, chunk.clone());
                batch.chunks.insert((DIMENSION, pos), Arc::new(chunk));
            }
            world.commit(&batch, Durability::Process).unwrap();
            if is_asked {
                batches().for_each(|batch| drop(world.opacity(DIMENSION, batch).unwrap()));
            }
        }
        let reopened = open(&store, OPAQUE);
        for batch in batches() {
            let mut expected = BatchOpacity::default();
            for (pos, chunk) in known.iter().filter(|(pos, _)| pos.column().batch() == batch) {
                expected.set_chunk(pos.column(), pos.y, chunk, |block| OPAQUE[block.index() as usize]);
            }
            prop_assert_eq!(&world.opacity(DIMENSION, batch).unwrap(), &expected);
            prop_assert_eq!(reopened.opacity(DIMENSION, batch).unwrap(), expected);
        }
    }
}
