//! Sessions, dimensions and headers.

use super::*;

#[test]
fn sessions_and_dimensions_last() {
    let store = TestStore::default();
    let started = SystemTime::now();
    let mut created_at = None;
    for session in 1..4 {
        let world = store.world();
        assert_eq!(world.session(), session);
        assert_eq!(*created_at.get_or_insert(world.created_at()), world.created_at());
        assert!(started.duration_since(world.created_at()).unwrap_or_default() < Duration::from_secs(2));
        assert_eq!(world.open_dimension("overworld", &origin(42)), Ok(DimensionId(0)));
        assert_eq!(world.open_dimension("", &origin(0)), Ok(DimensionId(1)));
        assert_eq!(world.open_dimension("overworld ", &origin(42)), Ok(DimensionId(2)));
        assert_eq!(world.open_dimension(&session.to_string(), &origin(0)), Ok(DimensionId(2 + session)));
    }
}

#[test]
fn a_backend_of_the_callers_own_outlives_the_world_on_it() {
    let disk = Arc::new(MemoryStore::new());
    let config = StorageConfig::Custom(disk.clone());
    let pos = ChunkPos::new(1, 2, 3);
    let world = WorldStore::open(&config).unwrap();
    save_chunk(&world, pos, chunk(7));
    let cut = disk.snapshot();
    save_chunk(&world, pos, chunk(8));
    drop(world);

    let stored = |config: &StorageConfig, session: u64| {
        let world = WorldStore::open(config).unwrap();
        assert_eq!(world.session(), session);
        let mut loaded = world.load_batch(OVERWORLD, pos.column().batch(), &[pos.column()], HEIGHTS).unwrap();
        loaded.remove(0).column.chunk(2).cloned()
    };
    assert_eq!(stored(&config, 2), Some(chunk(8)));
    // The power was cut between the two commits.
    assert_eq!(stored(&StorageConfig::Custom(Arc::new(cut)), 2), Some(chunk(7)));
    assert_eq!(stored(&config.clone(), 3), Some(chunk(8)));
}

#[test]
fn storage_settings_can_be_shown() {
    let custom = StorageConfig::Custom(Arc::new(MemoryStore::new()));
    assert_eq!(format!("{custom:?}"), "Custom(\"in memory\")");
    assert_eq!(format!("{:?}", StorageConfig::Path("world".into())), "Path(\"world\")");
}

#[test]
fn a_dimension_keeps_its_origin() {
    let world = WorldStore::open(&StorageConfig::Memory).unwrap();
    world.open_dimension("overworld", &origin(42)).unwrap();
    let changed = [
        origin(43),
        GeneratorIdentity { version: 4, ..origin(42) },
        GeneratorIdentity { name: "flat".into(), ..origin(42) },
    ];
    for wanted in changed {
        let error = world.open_dimension("overworld", &wanted).unwrap_err();
        let expected =
            StoreError::OriginMismatch { name: "overworld".into(), stored: origin(42).into(), wanted: wanted.into() };
        assert_eq!(error, expected);
    }
    assert_eq!(world.open_dimension("overworld", &origin(42)), Ok(DimensionId(0)));
}

#[test]
fn damaged_or_newer_headers_are_refused() {
    let store = TestStore::default();
    drop(store.world());
    store.tamper(Family::Meta, keys::HEADER, |value| value[0] = 77);
    let before = store.contents();
    let open = || WorldStore::from_store(Arc::new(store.clone())).unwrap_err();
    assert!(matches!(
        open(),
        WorldOpenError::Database { source: StoreError::Corrupt { what: StoredItem::Header, .. }, .. }
    ));
    assert!(store.contents() == before);
    let newer = Header { format: 2, created_at_seconds: 0, sessions: 0 };
    store.tamper(Family::Meta, keys::HEADER, |value| *value = record::encode(&newer));
    assert!(matches!(open(), WorldOpenError::NewerFormat { found: 2, supported: 1, .. }));
}

/// Promise, crashes: Only the session that opened a world last can write it.
#[test]
fn a_process_that_lost_the_world_to_another_can_no_longer_write() {
    let store = TestStore::default();
    let (older, pos) = (store.world(), ChunkPos::new(1, 2, 3));
    older.open_dimension("overworld", &origin(1)).unwrap();
    save_chunk(&older, pos, chunk(1));
    let newer = store.world();
    assert_eq!((older.session(), newer.session()), (1, 2));
    let before = store.contents();
    let writes: [&dyn Fn() -> Result<(), StoreError>; 5] = [
        &|| {
            let batch = SaveBatch { chunks: [((OVERWORLD, pos), chunk(2))].into(), ..SaveBatch::default() };
            older.commit(&batch, Durability::Sync).map(drop)
        },
        &|| older.make_sparse(NETHER),
        &|| older.save_registry_lists(&older.registry_lists()?),
        &|| older.open_dimension("nether", &origin(1)).map(drop),
        &|| older.rebuild_tiles(OVERWORLD, |_| std::ops::ControlFlow::Continue(())).map(drop),
    ];
    for write in writes {
        let error = write().unwrap_err();
        assert!(matches!(error, StoreError::Superseded { session: 1, .. }), "{error}");
        assert!(error.to_string().contains("another process has opened it"), "{error}");
    }
    assert!(store.contents() == before);
    // The newer session can still write, and the older one can still read.
    save_chunk(&newer, pos, chunk(3));
    let load =
        |world: &WorldStore| world.load_batch(OVERWORLD, pos.column().batch(), &[pos.column()], HEIGHTS).unwrap();
    assert_eq!(load(&older), load(&newer));
    assert_eq!(load(&newer)[0].column.chunk(2), Some(&chunk(3)));
}

/// Promise, crashes: Only the session that opened a world last can write it.
#[test]
fn of_many_concurrent_opens_each_has_a_session_and_the_newest_can_write() {
    let store = TestStore::default();
    let worlds: Vec<WorldStore> = std::thread::scope(|scope| {
        let opening = [(); 8].map(|()| scope.spawn(|| store.world()));
        opening.into_iter().map(|opening| opening.join().unwrap()).collect()
    });
    let sessions: BTreeSet<u64> = worlds.iter().map(WorldStore::session).collect();
    assert!(sessions.into_iter().eq(1..=8));
    for world in &worlds {
        let written = world.make_sparse(DimensionId(world.session()));
        assert_eq!(written.is_ok(), world.session() == 8, "{written:?}");
    }
}
