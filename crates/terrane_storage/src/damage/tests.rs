//! Damaged values are named, kept, and replaced.

use super::*;
use crate::backends::test_store::TestStore;
use crate::block::BlockId;
use crate::chunk::Chunk;
use crate::space::{BlockPos, ColumnPos, DimensionId};
use crate::{Durability, EntityRecord, KeyValueStore, LoadedColumn, SaveBatch, StoredBlockTick, envelope};
use std::sync::Arc;
use uuid::Uuid;

const OVERWORLD: DimensionId = DimensionId(0);
const COLUMN: ColumnPos = ColumnPos::new(-3, 2);

fn chunk(block: u32) -> Arc<Chunk> {
    Arc::new(Chunk::uniform(BlockId::new(block)))
}

fn key(y: i64) -> Vec<u8> {
    keys::chunk_key(OVERWORLD, COLUMN.chunk(y)).to_vec()
}

fn load(world: &WorldStore, column: ColumnPos, heights: std::ops::Range<i64>) -> Result<LoadedColumn, StoreError> {
    Ok(world.load_batch(OVERWORLD, column.batch(), &[column], heights)?.remove(0))
}

/// Two columns of eight chunks each.
fn filled() -> (TestStore, WorldStore) {
    let store = TestStore::default();
    let world = store.world();
    let mut batch = SaveBatch::default();
    for y in 0..8 {
        batch.chunks.insert((OVERWORLD, COLUMN.chunk(y)), chunk(1 + y as u32));
        batch.chunks.insert((OVERWORLD, COLUMN.offset(1, 0).chunk(y)), chunk(1 + y as u32));
    }
    world.commit(&batch, Durability::Sync).unwrap();
    (store, world)
}

#[test]
fn of_a_damaged_block_of_the_database_exactly_the_keys_in_it_are_named() {
    let (store, world) = filled();
    store.damage_block(Family::Chunks, &[&key(2), &key(5)]);
    for (heights, bad) in [(0..8, 2), (2..3, 2), (3..8, 5), (5..6, 5)] {
        let error = load(&world, COLUMN, heights).unwrap_err();
        let named = matches!(&error, StoreError::Corrupt { what: StoredItem::Chunk(OVERWORLD, chunk), .. }
            if *chunk == COLUMN.chunk(bad));
        assert!(named && error.to_string().contains("a block's checksum"), "{error}");
    }
    for heights in [0..2, 3..5, 6..8] {
        assert_eq!(load(&world, COLUMN, heights.clone()).unwrap().column.chunks().count(), heights.count());
    }
    assert_eq!(load(&world, COLUMN.offset(1, 0), 0..8).unwrap().column.chunks().count(), 8);
    // The search in a tall range finds the block too.
    let error = load(&world, COLUMN, i64::MIN >> 4..i64::MAX >> 4).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { what: StoredItem::Chunk(..), .. }), "{error}");
}

#[test]
fn chunks_in_memory_replace_unreadable_ones() {
    let (store, world) = filled();
    let id = Uuid::from_u128(7);
    let entity = |health: u8| EntityRecord {
        id,
        dimension: OVERWORLD,
        block: BlockPos::new(-40, 3, 40),
        offset: [0.5; 3],
        viewer: None,
        components: vec![("health".into(), vec![health])],
        children: Vec::new(),
    };
    let tick = StoredBlockTick { block: COLUMN.chunk(2).min_block(), kind: "flow".into(), remaining: 9 };
    let mut batch = SaveBatch::default();
    batch.block_ticks.insert((OVERWORLD, COLUMN.chunk(2)), vec![tick.clone()]);
    batch.entities.insert(id, Some(entity(1)));
    world.commit(&batch, Durability::Sync).unwrap();

    store.damage_block(Family::Chunks, &[&key(2), &key(3)]);
    store.damage_block(Family::Entities, &[id.as_bytes()]);
    store.damage_block(Family::Meta, &[&keys::block_ticks_key(OVERWORLD, COLUMN.chunk(2))]);
    let error = world.entity_records(&[id]).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { what: StoredItem::Entity(bad), .. } if bad == id), "{error}");

    batch.entities.insert(id, Some(entity(2)));
    batch.chunks.insert((OVERWORLD, COLUMN.chunk(2)), chunk(50));
    batch.chunks.insert((OVERWORLD, COLUMN.chunk(4)), chunk(60));
    let report = world.commit(&batch, Durability::Sync).unwrap();
    let blocks = report.replaced.iter().filter(|error| matches!(error, StoreError::Damaged { .. }));
    assert_eq!((blocks.count(), report.chunks, report.entities, report.block_ticks), (3, 2, 1, 1));
    let loaded = load(&world, COLUMN, 0..3).unwrap();
    assert_eq!((loaded.column.chunk(2), &loaded.block_ticks[..]), (Some(&chunk(50)), &[tick][..]));
    assert_eq!(world.entity(id), Ok(Some(entity(2))));
    // The old version is unknown, so the new one is higher than any before.
    let value = store.get(Family::Chunks, &key(2)).unwrap().unwrap();
    assert_eq!(envelope::open(&value).unwrap().0, (1 << 32) + 1);
    // Damaged values that were not replaced are unchanged.
    load(&world, COLUMN, 3..4).unwrap_err();
}

#[test]
fn damaged_values_are_kept_when_they_are_replaced() {
    let (store, world) = filled();
    assert_eq!(world.set_aside(), Ok(Vec::new()));
    let mut expected = Vec::new();
    for round in 0..3_u8 {
        store.tamper(Family::Chunks, &key(2), |value| value[15] ^= 1 << round);
        let value = store.get(Family::Chunks, &key(2)).unwrap().unwrap();
        expected.push(Entry { family: Family::Chunks, key: key(2), value: Some(value) });
        let chunks = [((OVERWORLD, COLUMN.chunk(2)), chunk(100 + u32::from(round)))].into();
        let report = world.commit(&SaveBatch { chunks, ..SaveBatch::default() }, Durability::Sync).unwrap();
        assert_eq!(report.replaced.len(), 1);
    }
    let mut found = world.set_aside().unwrap();
    found.sort_by_key(|kept| kept.value.as_ref().map(|value| value[..8].to_vec()));
    assert_eq!(found, expected);
    assert_eq!(load(&world, COLUMN, 2..3).unwrap().column.chunk(2), Some(&chunk(102)));
}
