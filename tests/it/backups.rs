//! Backups of a running world, and worlds restored from them.

#![cfg(feature = "rocksdb")]

use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::space::BatchPos;
use bevy_terrane::storage::upkeep::restore_world;
use bevy_terrane::storage::{
    Access, Durability, Family, KeyValueStore, RocksStore, StorageConfig, WorldStore, WriteBatch,
};
use bevy_terrane::view::{BackupFailed, BackupWorld, SaveError, WorkError, WorldBackedUp};
use bevy_terrane::work::Stop;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn open(path: &Path) -> WorldStore {
    WorldStore::open_existing(&StorageConfig::Path(path.into()), Access::Read).unwrap()
}

/// Promise, upkeep: A running game backs itself up with `BackupWorld` without stopping, and gets an answer.
#[test]
fn a_running_world_is_saved_and_backed_up() {
    let folder = tempfile::tempdir().unwrap();
    let (world, backups, restored) =
        (folder.path().join("world"), folder.path().join("backups"), folder.path().join("restored"));
    let mut app = game(TerranePlugin::at(&world));
    listen::<WorldBackedUp>(&mut app);
    listen::<BackupFailed>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 8.0, 8.0, 2);
    start(&mut app);
    let block = BlockPos::new(3, 70, 3);
    update_until(&mut app, "the ground is there", |world| block_at(world, dimension, block).is_some());
    let stone = id_of(app.world(), "terrane:stone");
    // Two requests at once for one folder are handled one after the other.
    for request in [11, 12] {
        app.world_mut().write_message(BackupWorld { request, folder: folder.path().join("both"), keep: None });
    }
    update_until(&mut app, "both backups are made", |world| {
        assert!(world.resource::<Heard<BackupFailed>>().0.is_empty());
        world.resource::<Heard<WorldBackedUp>>().0.len() == 2
    });
    assert_eq!(RocksStore::backups(&folder.path().join("both")).unwrap().len(), 2);
    app.world_mut().resource_mut::<Heard<WorldBackedUp>>().0.clear();
    for request in 1..=3 {
        let position = BlockPos::new(3, 70 + request as i64, 3);
        app.world_mut().write_message(SetBlock { dimension, position, block: stone });
        update_until(&mut app, "the block is set", |world| block_at(world, dimension, position) == Some(stone));
        let keep = NonZeroU32::new(2);
        app.world_mut().write_message(BackupWorld { request, folder: backups.clone(), keep });
        update_until(&mut app, "the backup is made", |world| {
            assert!(world.resource::<Heard<BackupFailed>>().0.is_empty());
            world.resource::<Heard<WorldBackedUp>>().0.len() == request as usize
        });
    }
    let numbers: Vec<(u64, u32)> =
        heard::<WorldBackedUp>(&app).iter().map(|made| (made.request, made.number)).collect();
    assert_eq!(numbers, [(1, 1), (2, 2), (3, 3)]);

    // A backup that fails is reported, and the world continues.
    std::fs::write(folder.path().join("file"), "mine").unwrap();
    app.world_mut().write_message(BackupWorld { request: 9, folder: folder.path().join("file"), keep: None });
    update_until(&mut app, "the backup fails", |world| !world.resource::<Heard<BackupFailed>>().0.is_empty());
    let failed = &heard::<BackupFailed>(&app)[0];
    assert_eq!(failed.request, 9);
    assert!(matches!(failed.error, SaveError::Backup(WorkError::Store(_))), "{}", failed.error);

    // The second one contains the second block but not the third.
    let listed: Vec<u32> = RocksStore::backups(&backups).unwrap().iter().map(|backup| backup.number).collect();
    assert_eq!(listed, [2, 3]);
    restore_world(&backups, Some(2), &restored, &Stop::default()).unwrap();
    let store = open(&restored);
    let column =
        store.load_batch(DimensionId(0), BatchPos::new(0, 0), &[ColumnPos::new(0, 0)], 0..6).unwrap().remove(0);
    let found = (71..=73).map(|y| column.column.block(BlockPos::new(3, y, 3)));
    assert_eq!(found.collect::<Vec<_>>(), [stone, stone, BlockId::AIR]);
    assert_eq!(store.verify(|_| std::ops::ControlFlow::Continue(())).unwrap().damage.count(), 0);
    assert!(restore_world(&backups, None, &restored, &Stop::default()).is_err(), "nothing is written over a world");
    drop(app);
}

#[test]
fn a_backup_that_is_asked_for_as_the_app_ends_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let (world, backups) = (folder.path().join("world"), folder.path().join("backups"));
    let mut app = game(TerranePlugin::at(&world));
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 8.0, 8.0, 2);
    start(&mut app);
    let block = BlockPos::new(3, 70, 3);
    update_until(&mut app, "the ground is there", |world| block_at(world, dimension, block).is_some());
    app.world_mut().write_message(BackupWorld { request: 1, folder: backups.clone(), keep: None });
    app.update();
    drop(app);
    assert_eq!(RocksStore::backups(&backups).unwrap().len(), 1);
    restore_world(&backups, None, &folder.path().join("restored"), &Stop::default()).unwrap();
}

#[test]
fn a_backup_holds_whole_batches_of_all_families() {
    let folder = tempfile::tempdir().unwrap();
    let store = RocksStore::open(&folder.path().join("db"), true).unwrap();
    let backups = folder.path().join("backups");
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0_u64.. {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                let mut batch = WriteBatch::default();
                let value = |family: Family| [&number.to_be_bytes()[..], &vec![family as u8; 20_000]].concat();
                Family::ALL.into_iter().for_each(|family| batch.put(family, *b"counter", value(family)));
                store.write(batch, Durability::Process).unwrap();
            }
        });
        for _ in 0..rounds(6) {
            store.back_up(&backups, None).unwrap();
        }
        ended.store(true, Ordering::Relaxed);
    });
    for backup in RocksStore::backups(&backups).unwrap() {
        let path = folder.path().join(format!("restored {}", backup.number));
        RocksStore::restore(&backups, Some(backup.number), &path).unwrap();
        let restored = RocksStore::open(&path, false).unwrap();
        let read = |family| restored.get(family, b"counter").unwrap().map(|value| value[..8].to_vec());
        let first = read(Family::Chunks);
        assert!(Family::ALL.into_iter().all(|family| read(family) == first), "backup {}", backup.number);
    }
}

/// Promise, upkeep: `terrane salvage`, `copy` and `restore` make a complete world or none.
#[test]
fn a_damaged_backup_makes_no_world() {
    let folder = tempfile::tempdir().unwrap();
    let (world, backups, restored) =
        (folder.path().join("world"), folder.path().join("backups"), folder.path().join("restored"));
    drop(WorldStore::open(&StorageConfig::Path(world.clone())).unwrap());
    let store = WorldStore::open_existing(&StorageConfig::Path(world), Access::Maintain).unwrap();
    store.back_up(&backups, None).unwrap();
    for file in std::fs::read_dir(backups.join("shared_checksum")).unwrap() {
        let path = file.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(path, bytes).unwrap();
    }
    let error = restore_world(&backups, None, &restored, &Stop::default()).unwrap_err();
    assert!(!restored.exists(), "{error}");
    assert!(
        restore_world(&backups, Some(7), &restored, &Stop::default()).unwrap_err().to_string().contains("backup 7")
    );
    assert!(restore_world(folder.path(), None, &restored, &Stop::default()).is_err());
    assert!(!restored.exists());
}
