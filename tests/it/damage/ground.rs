//! Damaged chunks as a game sees them.

use super::*;
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::ColumnError;
use bevy_terrane::storage::{
    Entry, Family, KeyValueStore, MemoryStore, StorageConfig, StoreError, StoredItem, WriteBatch, keys,
};
use bevy_terrane::view::GroundRegenerated;
use std::time::Duration;

const BAD: BlockPos = BlockPos::new(5, 3, 5);
const GOOD: BlockPos = BlockPos::new(5 + 16, 3, 5);

fn open(disk: &Arc<MemoryStore>, regenerates: bool) -> (App, DimensionId) {
    let saving = SaveSettings { regenerate_damaged: regenerates, ..SaveSettings::every(Duration::from_secs(3_600)) };
    let mut app = game(TerranePlugin { saving, ..TerranePlugin::stored_in(StorageConfig::Custom(disk.clone())) });
    listen::<ColumnFailed>(&mut app);
    listen::<GroundRegenerated>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 2);
    start(&mut app);
    update_until(&mut app, "the ground is there", |world| block_at(world, dimension, GOOD).is_some());
    (app, dimension)
}

/// A world with two edits, where the chunk of the first is damaged. Returns its key and its damaged value.
fn damaged(disk: &Arc<MemoryStore>) -> (Vec<u8>, Vec<u8>) {
    let (mut app, dimension) = open(disk, false);
    let stone = id_of(app.world(), "terrane:stone");
    for position in [BAD, GOOD] {
        app.world_mut().write_message(SetBlock { dimension, position, block: stone });
    }
    update_until(&mut app, "both are edited", |world| {
        [BAD, GOOD].into_iter().all(|position| block_at(world, dimension, position) == Some(stone))
    });
    let id = dimension;
    drop(app);
    let key = keys::chunk_key(id, BAD.chunk()).to_vec();
    let mut value = disk.get(Family::Chunks, &key).unwrap().unwrap();
    *value.last_mut().unwrap() ^= 0x10;
    let mut batch = WriteBatch::default();
    batch.put(Family::Chunks, key.clone(), value.clone());
    disk.write(batch, Durability::Sync).unwrap();
    (key, value)
}

/// Promise, crashes: A column with a damaged chunk is not loaded, the damage is reported, and the columns beside it load.
#[test]
fn a_damaged_chunk_is_reported_and_the_columns_beside_it_load() {
    let disk = Arc::new(MemoryStore::new());
    let (key, value) = damaged(&disk);
    let (mut app, dimension) = open(&disk, false);
    update_until(&mut app, "it is told", |world| !world.resource::<Heard<ColumnFailed>>().0.is_empty());
    let failed = &heard::<ColumnFailed>(&app)[0];
    assert_eq!((failed.column, failed.set_aside), (BAD.column(), false));
    let damaged = StoredItem::Chunk(DimensionId(0), BAD.chunk());
    let ColumnError::Store { source: StoreError::Corrupt { what, .. }, .. } = &failed.error else {
        panic!("{}", failed.error)
    };
    assert_eq!(*what, damaged);
    let stone = id_of(app.world(), "terrane:stone");
    assert_eq!(block_at(app.world_mut(), dimension, GOOD), Some(stone));
    assert_eq!(block_at(app.world_mut(), dimension, BAD), None);
    assert!(heard::<GroundRegenerated>(&app).is_empty());
    drop(app);
    assert_eq!(disk.get(Family::Chunks, &key), Ok(Some(value)), "it is as it was");
}

/// Promise, crashes: With `regenerate_damaged`, a damaged chunk is generated again and reported, and its old value is
/// kept.
#[test]
fn by_a_setting_a_damaged_chunk_is_regenerated_and_set_aside() {
    let disk = Arc::new(MemoryStore::new());
    let (key, value) = damaged(&disk);
    let (mut app, dimension) = open(&disk, true);
    update_until(&mut app, "it is there", |world| block_at(world, dimension, BAD).is_some());
    let [stone, air] = ["terrane:stone", "terrane:air"].map(|name| id_of(app.world(), name));
    // As generated: the changes there are lost, but nothing beside it.
    assert_eq!(block_at(app.world_mut(), dimension, BAD), Some(air));
    assert_eq!(block_at(app.world_mut(), dimension, GOOD), Some(stone));
    let below = |position: BlockPos| BlockPos { y: -1, ..position };
    let ground = [BAD, GOOD].map(|position| block_at(app.world_mut(), dimension, below(position)));
    assert_eq!(ground[0], ground[1]);
    update_until(&mut app, "it is told", |world| !world.resource::<Heard<GroundRegenerated>>().0.is_empty());
    let [told] = heard::<GroundRegenerated>(&app) else { panic!("told once") };
    assert_eq!((told.dimension, told.chunk), (dimension, BAD.chunk()));
    assert!(told.error.to_string().contains("checksum"), "{}", told.error);
    assert!(heard::<ColumnFailed>(&app).is_empty());
    drop(app);

    let world = WorldStore::open(&StorageConfig::Custom(disk.clone())).unwrap();
    assert_eq!(world.set_aside(), Ok(vec![Entry { family: Family::Chunks, key, value: Some(value) }]));
    drop(world);
    // The new chunk is stored, so it stays intact.
    let (mut app, dimension) = open(&disk, false);
    update_until(&mut app, "it is loaded", |world| block_at(world, dimension, BAD).is_some());
    assert!(heard::<ColumnFailed>(&app).is_empty() && heard::<GroundRegenerated>(&app).is_empty());
}
