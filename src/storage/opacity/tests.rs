//! The map follows the chunks, whatever is saved, lost or damaged.

use super::*;
use crate::block::{BlockComponent, BlockId, BlockRegistry, BlockType, Schema};
use crate::chunk::Chunk;
use crate::space::ChunkPos;
use crate::storage::backends::test_store::TestStore;
use crate::storage::{CommitReport, Durability, KeyValueStore, RegistryLists, SaveBatch, values::stored_graph};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

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

/// A slab of one block at the height 3 of a chunk of another.
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
    save(&world, [(pos, slab(STONE, GLASS))]);
    assert_eq!(world.opacity(DIMENSION, batch).unwrap().highest(16, 16), Some(35));
    world.save_opacity().unwrap();
    let before = stored_value(&store, batch);
    save(&world, [(pos, slab(STONE, BlockId::AIR))]);
    assert!(before.is_some() && stored_value(&store, batch) == before, "glass hides as little as air");
    save(&world, [(pos, slab(GLASS, BlockId::AIR))]);
    assert_eq!(world.opacity(DIMENSION, batch).unwrap().highest(16, 16), None);
    assert_eq!(stored_value(&store, batch), None, "what is not true any more is not stored");
}

#[test]
fn a_tile_that_changes_is_written_minutes_later_or_made_anew_after_a_crash() {
    let store = TestStore::default();
    let (pos, batch) = (ChunkPos::new(1, 0, 1), BatchPos::new(0, 0));
    let mut graph = BTreeMap::new();
    stored_graph::insert(&mut graph, pos.column());
    let new = SaveBatch {
        chunks: [((DIMENSION, pos), Arc::new(slab(STONE, BlockId::AIR)))].into(),
        tiles: graph.into_iter().map(|(tile, masks)| ((DIMENSION, tile), masks)).collect(),
        ..SaveBatch::default()
    };
    let highest = |world: &WorldStore| world.opacity(DIMENSION, batch).unwrap().highest(16, 16);
    let above = |y: i64| [(ChunkPos::new(1, y, 1), slab(STONE, BlockId::AIR))];
    {
        let world = open(&store, OPAQUE);
        world.commit(&new, Durability::Process).unwrap();
        assert!(stored_value(&store, batch).is_some(), "of new ground it is written at once");
        save(&world, above(1));
        assert_eq!((highest(&world), stored_value(&store, batch)), (Some(19), None));
    }
    let world = open(&store, OPAQUE);
    assert_eq!(highest(&world), Some(19), "after a crash");
    save(&world, above(2));
    world.set_session_time(Duration::from_secs(299));
    save(&world, above(3));
    assert_eq!((highest(&world), stored_value(&store, batch)), (Some(51), None));
    world.set_session_time(Duration::from_secs(300));
    let elsewhere = [(ChunkPos::new(100, 0, 0), slab(STONE, BlockId::AIR))];
    save(&world, elsewhere);
    assert!(stored_value(&store, batch).is_some());
    // A commit that fails changes nothing of what is known.
    store.fail_writes(true);
    let batch_above = SaveBatch {
        chunks: above(9).into_iter().map(|(pos, chunk)| ((DIMENSION, pos), Arc::new(chunk))).collect(),
        ..SaveBatch::default()
    };
    assert!(world.commit(&batch_above, Durability::Process).is_err());
    store.fail_writes(false);
    assert_eq!((highest(&world), highest(&open(&store, OPAQUE))), (Some(51), Some(51)));
}

/// Promise, world format: An opacity map that is lost, damaged, or made for other block types is made anew.
#[test]
fn a_map_that_is_lost_or_damaged_or_says_something_else_is_made_anew() {
    let store = TestStore::default();
    let (pos, batch) = (ChunkPos::new(1, 0, 1), BatchPos::new(0, 0));
    // Nobody has said yet what is opaque.
    save(&store.world(), [(pos, slab(STONE, BlockId::AIR))]);
    assert_eq!(stored_value(&store, batch), None);
    let highest = |world: &WorldStore| world.opacity(DIMENSION, batch).unwrap().highest(16, 16);
    let world = open(&store, OPAQUE);
    assert_eq!(highest(&world), Some(3));
    let above = |y: i64| [(ChunkPos::new(1, y, 1), slab(GLASS, BlockId::AIR))];
    save(&world, above(1));
    assert_eq!(highest(&world), Some(3), "what was there before is in it");
    // Glass hides what is behind it now.
    let world = open(&store, [false, true, true]);
    assert_eq!(highest(&world), Some(19));
    save(&world, above(2));
    world.save_opacity().unwrap();
    assert_eq!(highest(&world), Some(35));
    store.tamper(Family::Opacity, &keys::opacity_key(DIMENSION, batch), |value| value[20] ^= 1);
    assert_eq!(highest(&world), Some(35));
    let report = save(&world, above(3));
    world.save_opacity().unwrap();
    assert!(report.replaced[0].to_string().contains("opacity"), "{:?}", report.replaced);
    assert_eq!((highest(&world), report.replaced.len()), (Some(51), 1));
    assert!(save(&world, above(4)).replaced.is_empty());
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
    // It is whole again when the chunk is.
    save(&world, [(damaged, slab(GLASS, BlockId::AIR))]);
    save(&world, [(damaged, slab(STONE, BlockId::AIR))]);
    let tile = world.opacity(DIMENSION, batch).unwrap();
    assert_eq!((tile.highest(0, 0), tile.highest(16, 16)), (Some(3), Some(3)));
    world.save_opacity().unwrap();
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever is saved, with the graph or without, in whatever batches: the map is that of the stored chunks.
    #[test]
    fn the_map_follows_the_chunks(
        commits in vec((vec((-5..5_i64, -2..3_i64, -5..5_i64, 0..3_u32, 0..3_u32), 1..6), any::<bool>(), 0..200_u64), 1..8),
        is_saved: bool,
    ) {
        let store = TestStore::default();
        let world = open(&store, OPAQUE);
        let mut graph = BTreeMap::new();
        let mut known = BTreeMap::new();
        let mut seconds = 0;
        for (chunks, with_graph, later) in commits {
            seconds += later;
            world.set_session_time(Duration::from_secs(seconds));
            let mut batch = SaveBatch::default();
            for (x, y, z, block, other) in chunks {
                let (pos, chunk) = (ChunkPos::new(x, y, z), slab(BlockId::new(block), BlockId::new(other)));
                known.insert(pos, chunk.clone());
                batch.chunks.insert((DIMENSION, pos), Arc::new(chunk));
                stored_graph::insert(&mut graph, pos.column());
            }
            if with_graph {
                for (dimension, pos) in batch.chunks.keys() {
                    let tile = pos.column().tile();
                    batch.tiles.insert((*dimension, tile), graph[&tile]);
                }
            }
            world.commit(&batch, Durability::Process).unwrap();
        }
        if is_saved {
            world.save_opacity().unwrap();
        }
        let reopened = open(&store, OPAQUE);
        for batch in (-2..2).flat_map(|x| (-2..2).map(move |z| BatchPos::new(x, z))) {
            let mut expected = BatchOpacity::default();
            for (pos, chunk) in known.iter().filter(|(pos, _)| pos.column().batch() == batch) {
                expected.set_chunk(pos.column(), pos.y, chunk, |block| OPAQUE[block.index() as usize]);
            }
            prop_assert_eq!(&world.opacity(DIMENSION, batch).unwrap(), &expected);
            prop_assert_eq!(reopened.opacity(DIMENSION, batch).unwrap(), expected);
        }
    }
}
