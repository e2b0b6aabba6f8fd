//! Opening folders, with a store in memory in place of their database.

use super::*;
use std::fs;

fn open(path: &Path, store: &TestStore) -> Result<WorldStore, WorldOpenError> {
    WorldStore::open_folder(path, |database, create| {
        assert_eq!(create, !path.join("world.terrane").exists());
        fs::create_dir_all(database).unwrap();
        Ok(Arc::new(store.clone()))
    })
}

#[test]
fn a_world_whose_database_does_not_open_is_unlocked_and_unchanged() {
    let root = tempfile::tempdir().unwrap();
    let store = TestStore::default();
    let fail = |path: &Path, _| {
        let reason = "damaged".into();
        let operation = "open";
        Err(StoreError::Backend { operation, family: None, path: path.to_path_buf(), reason })
    };
    // During creation, and later.
    for _ in 0..2 {
        let error = WorldStore::open_folder(root.path(), fail).unwrap_err();
        assert!(matches!(&error, WorldOpenError::Database { path, .. } if path == root.path()), "{error}");
        assert!(error.to_string().contains("damaged"), "{error}");
        drop(open(root.path(), &store).unwrap());
    }
    // A world that cannot be marked as complete is incomplete: its next opening continues its creation.
    let second = root.path().join("second");
    store.fail_writes(true);
    assert!(open(&second, &store).is_err());
    assert!(!second.join("world.terrane").exists());
    store.fail_writes(false);
    assert!(open(&second, &store).is_ok());
}

#[test]
fn an_emptied_database_is_not_taken_for_a_new_world() {
    let root = tempfile::tempdir().unwrap();
    drop(open(root.path(), &TestStore::default()).unwrap());
    let error = open(root.path(), &TestStore::default()).unwrap_err();
    assert!(matches!(error, WorldOpenError::Database { source: StoreError::Corrupt { .. }, .. }), "{error}");
}

#[test]
fn a_world_on_disk_is_there_the_next_time() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("saves/world");
    let config = StorageConfig::Path(path.clone());
    let pos = ChunkPos::new(-1, 2, -3);
    for session in 1..4 {
        let world = WorldStore::open(&config).unwrap();
        assert_eq!(world.session(), session);
        assert_eq!(world.open_dimension("overworld", &origin(42)), Ok(OVERWORLD));
        if session > 1 {
            let column = pos.column();
            let loaded = world.load_batch(OVERWORLD, column.batch(), &[column], HEIGHTS).unwrap();
            assert_eq!(loaded[0].column.chunk(2), Some(&chunk(session as u32 - 1)));
            assert_eq!(loaded[0].entities, [entity(1, BlockPos::new(-1, session as i64 - 1, -33))]);
        }
        let mut batch = SaveBatch::default();
        batch.chunks.insert((OVERWORLD, pos), chunk(session as u32));
        batch.entities.insert(Uuid::from_u128(1), Some(entity(1, BlockPos::new(-1, session as i64, -33))));
        save(&world, batch);
        assert!(matches!(WorldStore::open(&config), Err(WorldOpenError::Locked { process: Some(_), .. })));
    }
    fs::write(path.join("db/CURRENT"), "nonsense").unwrap();
    let error = WorldStore::open(&config).unwrap_err();
    assert!(matches!(&error, WorldOpenError::Database { path: of, .. } if *of == path), "{error}");
    fs::write(path.join("world.terrane"), "bevy_terrane world\nformat = 2\n").unwrap();
    let files = |path: &Path| -> BTreeMap<PathBuf, Vec<u8>> {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_file()).map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    };
    let before = (files(&path), files(&path.join("db")));
    assert!(matches!(WorldStore::open(&config), Err(WorldOpenError::NewerFormat { found: 2, .. })));
    assert_eq!((files(&path), files(&path.join("db"))), before);
}
