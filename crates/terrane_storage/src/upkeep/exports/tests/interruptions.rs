//! Exports and imports that are stopped and continued.

use super::*;
use crate::StoreError;
use crate::work::Progress;
use crate::{Family, KeyValue};

/// Exports until it is stopped at this step. Returns `true` if it was stopped.
fn export_steps(
    store: &TestStore,
    path: &Path,
    options: &ExportOptions,
    most: usize,
    mut each: impl FnMut(usize),
) -> bool {
    let mut step = 0;
    // Opened for reading, as between two sessions.
    let config = crate::StorageConfig::Custom(Arc::new(store.clone()));
    let world = WorldStore::open_existing(&config, crate::Access::Read).unwrap();
    let report = world.export_by(1, NAME, path, options, |_| {
        each(step);
        step += 1;
        if step > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    !report.unwrap().finished
}

/// Promise, upkeep: A stopped or killed export or import resumes, with the same result as without a stop.
/// Promise, exports: An export's record of progress is in the same files as its data.
#[test]
fn an_export_stopped_or_killed_at_any_step_completes_to_the_same_file() {
    let (store, _) = small_world();
    let folder = tempfile::tempdir().unwrap();
    for objects_per_file in [100_000, 60] {
        let options = steps(objects_per_file);
        let at = |name: String| folder.path().join(format!("{objects_per_file} {name}"));
        let whole = at("whole".into());
        let mut count = 0;
        assert!(!export_steps(&store, &whole, &options, usize::MAX, |step| {
            // The state of a crash at this moment: the index is not written.
            copy_files(&whole, &at(format!("killed {step}")));
            count = step + 1;
        }));
        let expected = objects(&whole);
        assert!(count > 10 && (objects_per_file > 100) == (expected.len() == 1), "{count}, {}", expected.len());
        for step in 0..count {
            let killed = at(format!("killed {step}"));
            assert!(!export_steps(&store, &killed, &options, usize::MAX, |_| {}));
            assert!(objects(&killed) == expected, "killed in step {step}");
        }
        let stopped = at("stopped".into());
        let stops = (0..=count).take_while(|_| export_steps(&store, &stopped, &options, 0, |_| {})).count();
        assert!(stops >= count - 1, "{stops} of {count}");
        assert!(objects(&stopped) == expected);
    }
}

/// Promise, exports: A barely begun file of an export is started again.
#[test]
fn a_new_file_that_was_only_just_made_is_begun_again() {
    let (store, _) = small_world();
    let folder = tempfile::tempdir().unwrap();
    let (whole, cut) = (folder.path().join("whole"), folder.path().join("cut"));
    let options = steps(60);
    export_steps(&store, &whole, &options, usize::MAX, |_| {});
    fs::write(&cut, b"").unwrap();
    export_steps(&store, &cut, &options, 0, |_| {});
    // The next files were created before anything was written to them.
    ObjectStore::create(&export_file(&cut, 2), EXPORT_SIGNATURE, Default::default()).unwrap();
    export_steps(&store, &cut, &options, usize::MAX, |_| {});
    assert!(objects(&cut) == objects(&whole));

    // The older file does not know the next one yet.
    let begun = folder.path().join("begun");
    export_steps(&store, &begun, &options, 0, |_| {});
    let older = objects(&begun)[0]["progress"].1.clone();
    while objects(&begun).len() < 2 {
        export_steps(&store, &begun, &options, 0, |_| {});
    }
    let mut first = ObjectStore::open(&begun, EXPORT_SIGNATURE, Default::default()).unwrap();
    first.write("progress", 0, &older).unwrap();
    first.close().unwrap();
    export_steps(&store, &begun, &options, usize::MAX, |_| {});
    assert!(objects(&begun) == objects(&whole));

    // The first file says that the export is complete, and the last one does not.
    let last = export_file(&whole, objects(&whole).len() as u32);
    let mut file = ObjectStore::open(&last, EXPORT_SIGNATURE, Default::default()).unwrap();
    file.write("progress", 0, &older).unwrap();
    file.close().unwrap();
    assert!(!export_steps(&store, &whole, &options, 0, |_| panic!("nothing is left to do")));
    assert!(objects(&begun) == objects(&whole));
}

#[test]
fn an_export_does_not_continue_the_file_of_another_export() {
    let (store, _) = small_world();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world.objects");
    let world = store.world();
    let whole = world.export_dimension(NAME, &path, &ExportOptions::default(), go_on).unwrap();
    assert!(whole.finished);
    let again = world.export_dimension(NAME, &path, &ExportOptions::default(), go_on);
    assert_eq!(again, Err(UpkeepError::Exists { path: path.clone() }));
    let part = ExportOptions { area: BlockBox::of_chunk(ChunkPos::new(0, 0, 0)), ..ExportOptions::default() };
    let other = world.export_dimension(NAME, &path, &part, go_on);
    assert_eq!(other, Err(UpkeepError::OtherExport { path: path.clone() }));
    let unknown = world.export_dimension("moon", &path, &part, go_on);
    assert_eq!(
        unknown,
        Err(UpkeepError::Store(StoreError::UnknownDimension { name: "moon".into(), path: world.path().to_path_buf() }))
    );

    // A file that would be in the way later is reported before anything is written.
    let (path, second) = (folder.path().join("new.objects"), folder.path().join("new.objects.2"));
    fs::write(&second, b"mine").unwrap();
    let in_the_way = world.export_dimension(NAME, &path, &ExportOptions::default(), go_on);
    assert_eq!(in_the_way, Err(UpkeepError::OtherExport { path: second }));

    let path = folder.path().join("begun.objects");
    let stop = |_: &Progress| ControlFlow::Break(());
    assert!(!world.export_dimension(NAME, &path, &ExportOptions::default(), stop).unwrap().finished);
    let unfinished = import(&TestStore::default(), &path, &ImportOptions::default()).unwrap_err();
    assert_eq!(unfinished, UpkeepError::Unfinished { path: path.clone() });
    drop(world);
    // A game had the world open in between.
    let later = store.world().export_dimension(NAME, &path, &ExportOptions::default(), go_on);
    assert_eq!(later, Err(UpkeepError::OtherExport { path }));
}

/// All stored entries, except those that count sessions and time.
fn stored(store: &TestStore) -> Vec<(Family, KeyValue)> {
    let is_timeless = |(family, (key, _)): &(Family, KeyValue)| {
        *family != Family::Meta
            || ![&b"header"[..], b"play time", b"heat:", b"cooling:"].iter().any(|of| key.starts_with(of))
    };
    store.contents().into_iter().filter(is_timeless).collect()
}

/// Promise, upkeep: A stopped or killed export or import resumes, with the same result as without a stop.
#[test]
fn an_import_stopped_or_killed_at_any_write_completes_to_the_same_world() {
    let (store, _) = small_world();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world.objects");
    export(&store, &path, &ExportOptions { objects_per_file: 100, ..ExportOptions::default() });
    let (new, _) = empty_world(&[2, 4], false);
    let (stopped, begun) = (TestStore::on(new.snapshot()), TestStore::on(new.snapshot()));
    new.record_writes();
    let whole = import(&new, &path, &ImportOptions::default()).unwrap();
    let history = new.take_history();
    let expected = stored(&new);
    assert!(history.len() > 15, "{}", history.len());
    for (step, memory) in history.into_iter().enumerate() {
        let killed = TestStore::on(memory);
        match import(&killed, &path, &ImportOptions::default()) {
            Ok(report) => assert_eq!((report.columns, report.entities), (whole.columns, whole.entities)),
            // The import was complete.
            Err(error) => assert!(matches!(error, UpkeepError::Occupied { .. }), "{error}"),
        }
        assert!(stored(&killed) == expected, "killed after write {step}");
    }
    let mut stops = 0;
    while !stopped
        .world()
        .import_dimension(&path, &ImportOptions::default(), |_| ControlFlow::Break(()))
        .unwrap()
        .finished
    {
        stops += 1;
        assert_eq!(stopped.world().verify(go_on).unwrap().damage.count(), 0);
    }
    assert!(stops > 10 && stored(&stopped) == expected);

    // A failed write changes nothing and does not prevent the next one.
    for writes in 0..20 {
        begun.fail_writes_after(writes);
        let world = WorldStore::from_store(Arc::new(begun.clone()));
        let failed = world.is_ok_and(|world| world.import_dimension(&path, &ImportOptions::default(), go_on).is_ok());
        begun.fail_writes(false);
        if failed {
            break;
        }
    }
    if stored(&begun) != expected {
        import(&begun, &path, &ImportOptions::default()).unwrap();
    }
    assert!(stored(&begun) == expected);
}

/// Promise, exports: An unfinished import refuses other options until it is finished or restarted, and pruning forgets it.
#[test]
fn an_import_continues_only_with_the_same_options_and_not_over_pruned_columns() {
    let (store, _) = small_world();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world.objects");
    export(&store, &path, &ExportOptions::default());
    let (new, dimension) = empty_world(&[2, 4], false);
    let world = new.world();
    let options = ImportOptions::default();
    let stop_after = |steps: usize| {
        let mut step = 0;
        move |_: &Progress| {
            step += 1;
            if step > steps { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    };
    assert!(!world.import_dimension(&path, &options, stop_after(6)).unwrap().finished);
    let others = ImportOptions { existing: ExistingGround::Replace, ..options.clone() };
    assert_eq!(world.import_dimension(&path, &others, go_on), Err(UpkeepError::OtherOptions));
    let anew = ImportOptions { begins_anew: true, ..options.clone() };
    let occupied = world.import_dimension(&path, &anew, go_on);
    assert!(matches!(occupied, Err(UpkeepError::Occupied { .. })), "{occupied:?}");
    let others_anew = ImportOptions { begins_anew: true, ..others.clone() };
    assert!(!world.import_dimension(&path, &others_anew, stop_after(6)).unwrap().finished);
    assert_eq!(world.import_dimension(&path, &options, go_on), Err(UpkeepError::OtherOptions));

    // Pruning the imported ground discards the import's progress.
    let nothing = crate::space::ColumnArea::Box { min: ColumnPos::new(900, 900), max: ColumnPos::new(900, 900) };
    assert!(world.prune(dimension, &nothing, true, go_on).unwrap().columns > 0);
    assert_eq!(world.import_dimension(&path, &options, go_on), Err(UpkeepError::OtherOptions));
    assert!(world.prune(dimension, &nothing, false, go_on).unwrap().columns > 0);
    assert!(world.import_dimension(&path, &options, go_on).unwrap().finished);
    drop(world);
    let (arrived, expected) = (contents(&new, NAME), contents(&store, NAME));
    assert_eq!(arrived.columns, expected.columns);
    assert_eq!(arrived.chunks, expected.chunks);
}

/// Promise, exports: A stopped export does not resume after a later save of the world.
#[test]
fn a_continued_export_leaves_out_later_saves() {
    let (store, dimension) = small_world();
    let folder = tempfile::tempdir().unwrap();
    let world = store.world();
    let stop = |_: &Progress| ControlFlow::Break(());
    let began = |name: &str| {
        let path = folder.path().join(name);
        assert!(!world.export_dimension(NAME, &path, &ExportOptions::default(), stop).unwrap().finished);
        path
    };
    let goes_on = |path: &Path| world.export_dimension(NAME, path, &ExportOptions::default(), go_on);
    assert!(goes_on(&began("same")).unwrap().finished);
    let path = began("pruned");
    let keep = crate::space::ColumnArea::Box { min: ColumnPos::new(-4, -4), max: ColumnPos::new(4, 4) };
    assert!(world.prune(dimension, &keep, false, go_on).unwrap().columns > 0);
    assert_eq!(goes_on(&path), Err(UpkeepError::OtherExport { path }));
    let path = began("saved");
    world.set_session_time(std::time::Duration::from_secs(5));
    assert_eq!(goes_on(&path), Err(UpkeepError::OtherExport { path }));
}
