//! Damaged exports.

use super::*;
use crate::StoreError;
use crate::{Family, keys, player_component, values::record};
use format::{Files, Header};
use terrane_objects::ObjectStoreOptions;

fn exported(options: &ExportOptions) -> (tempfile::TempDir, PathBuf, Contents) {
    let (store, _) = small_world();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world.objects");
    export(&store, &path, options);
    (folder, path, contents(&store, NAME))
}

/// Changes objects of an export: `None` deletes one.
fn tamper(path: &Path, changes: &[(&str, Option<Vec<u8>>)]) {
    let mut file = ObjectStore::open(path, EXPORT_SIGNATURE, ObjectStoreOptions::default()).unwrap();
    for (key, data) in changes {
        match data {
            Some(data) => file.write(key, 0, data).unwrap(),
            None => drop(file.delete(key).unwrap()),
        }
    }
    file.close().unwrap();
}

#[test]
fn a_damaged_column_of_the_world_is_named_or_left_out() {
    let (store, dimension) = small_world();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world.objects");
    let hot = store.contents().into_iter().find_map(|(family, (key, _))| (family == Family::Chunks).then_some(key));
    let key = hot.unwrap();
    let (_, chunk) = keys::parse_chunk_key(&key).unwrap();
    let expected = contents(&store, NAME);
    store.tamper(Family::Chunks, &key, |value| value[20] ^= 1);
    let world = store.world();
    let error = world.export_dimension(NAME, &path, &ExportOptions::default(), go_on).unwrap_err();
    assert!(error.to_string().contains(&format!("chunk {chunk} of {dimension}")), "{error}");
    // The same call continues and leaves the damage out.
    let options = ExportOptions { leaves_damaged: true, ..ExportOptions::default() };
    let report = world.export_dimension(NAME, &path, &options, go_on).unwrap();
    assert_eq!(report.lost.first.iter().map(|lost| lost.column).collect::<Vec<_>>(), [Some(chunk.column())]);
    assert_eq!(report.columns as usize, expected.columns.len() - 1);
    let new = TestStore::default();
    import(&new, &path, &ImportOptions::default()).unwrap();
    let arrived = contents(&new, NAME);
    let named = objects(&path)[0].keys().filter(|key| key.ends_with("/chunks")).count();
    assert_eq!(named, arrived.columns.len());
    let lost = (chunk.x, chunk.z);
    assert!(expected.columns.iter().filter(|column| **column != lost).eq(&arrived.columns));
    for (pos @ (x, _, z), chunk) in &expected.chunks {
        assert_eq!(arrived.chunks.get(pos), Some(chunk).filter(|_| (*x, *z) != lost));
    }
}

#[test]
fn of_a_damaged_cluster_and_a_damaged_object_nothing_else_is_lost() {
    let (store, dimension) = small_world();
    let expected = contents(&store, NAME);
    let cold =
        store.contents().into_iter().find_map(|(family, (key, _))| (family == Family::ColdChunks).then_some(key));
    let key = cold.unwrap();
    let (_, first) = keys::parse_chunk_key(&key).unwrap();
    store.tamper(Family::ColdChunks, &key, |value| value.fill(1));
    let kept = format::object_key(dimension, "game:weather/5");
    store.tamper(Family::Meta, &kept, |value| value[5] ^= 1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world.objects");
    let report = export(&store, &path, &ExportOptions { leaves_damaged: true, ..ExportOptions::default() });
    let lost: BTreeSet<_> = report.lost.first.iter().filter_map(|lost| lost.column).map(|at| (at.x, at.z)).collect();
    let over = |(x, z): &(i64, i64)| (x >> 4, z >> 4) == (first.x >> 4, first.z >> 4);
    assert!(
        !lost.is_empty() && lost.iter().all(over) && report.lost.count() as usize == lost.len() + 1,
        "{:?}",
        report.lost
    );
    let new = TestStore::default();
    import(&new, &path, &ImportOptions::default()).unwrap();
    let arrived = contents(&new, NAME);
    assert_eq!(arrived.columns, expected.columns.difference(&lost).copied().collect());
    assert_eq!(arrived.kept.len(), expected.kept.len() - 1);
    for (pos, chunk) in &arrived.chunks {
        assert_eq!(Some(chunk), expected.chunks.get(pos));
    }
}

#[test]
fn a_damaged_object_is_named_with_its_file_or_left_out_with_its_column() {
    let options = ExportOptions { objects_per_file: 120, ..ExportOptions::default() };
    let (_folder, path, expected) = exported(&options);
    let files = objects(&path);
    let find = |part: &str| {
        let place = files.iter().position(|file| file.keys().any(|key| key.ends_with(part))).unwrap();
        (export_file(&path, place as u32 + 1), files[place].keys().find(|key| key.ends_with(part)).unwrap().clone())
    };
    let mut seen = 0;
    for part in ["/blocks", "/chunks", "/ticks", "/entities", "columns/-1,-1", "history/-1,-1"] {
        let (file, key) = find(part);
        let whole = fs::read(&file).unwrap();
        for data in [None, Some(b"nonsense".to_vec()), Some(record::encode(&vec![vec![7_u8]]))] {
            if data.is_none() && matches!(part, "/ticks" | "/entities" | "history/-1,-1") {
                continue;
            }
            tamper(&file, &[(&key, data)]);
            let new = TestStore::default();
            let error = import(&new, &path, &ImportOptions::default()).unwrap_err();
            let is_named = matches!(&error, UpkeepError::Damaged { path, key: named, .. }
                if *path == file && (*named == key || part == "columns/-1,-1"));
            assert!(is_named, "{key}: {error}");
            let options = ImportOptions { leaves_damaged: true, ..ImportOptions::default() };
            let report = import(&new, &path, &options).unwrap();
            let arrived = contents(&new, NAME);
            let lost: Vec<_> = report.lost.first.iter().filter_map(|lost| lost.column).map(|at| (at.x, at.z)).collect();
            assert_eq!(lost.len(), usize::from(!part.ends_with("-1,-1")), "{key}: {:?}", report.lost);
            assert!(expected.columns.iter().filter(|column| !lost.contains(column)).eq(&arrived.columns), "{key}");
            for (pos, chunk) in &arrived.chunks {
                assert_eq!(Some(chunk), expected.chunks.get(pos));
            }
            fs::write(&file, &whole).unwrap();
            seen += 1;
        }
    }
    assert_eq!(seen, 15);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whichever_byte_changes_nothing_wrong_comes_into_a_world(
        is_clustered: bool,
        flips in vec((any::<prop::sample::Index>(), 1..=255_u8), 1..4),
    ) {
        let packs = Some(is_clustered);
        let (_folder, path, expected) = exported(&ExportOptions { packs, ..ExportOptions::default() });
        let mut bytes = fs::read(&path).unwrap();
        for (at, flip) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
        }
        fs::write(&path, bytes).unwrap();
        for leaves_damaged in [false, true] {
            let new = TestStore::default();
            let options = ImportOptions { leaves_damaged, ..ImportOptions::default() };
            let report = import(&new, &path, &options);
            let arrived = contents(&new, NAME);
            for column in &arrived.columns {
                prop_assert!(expected.columns.contains(column));
                let chunks = |of: &Contents| {
                    let mut chunks = of.chunks.clone();
                    chunks.retain(|(x, _, z), _| (*x, *z) == *column);
                    chunks
                };
                prop_assert!(chunks(&arrived) == chunks(&expected), "{:?}", column);
            }
            match report {
                Ok(report) if report.lost.is_empty() => prop_assert!(arrived == expected),
                Ok(report) => {
                    prop_assert!(leaves_damaged);
                    let lost = report.lost.first.iter().filter(|lost| lost.column.is_some()).count();
                    prop_assert!(arrived.columns.len() + lost <= expected.columns.len());
                }
                Err(error) => {
                    let is_listed = matches!(
                        error,
                        UpkeepError::Damaged { .. }
                            | UpkeepError::UnknownLoss { .. }
                            | UpkeepError::Objects(_)
                            | UpkeepError::Unfinished { .. }
                    );
                    prop_assert!(is_listed, "{}", error);
                }
            }
        }
    }
}

/// Promise, exports: An import reports objects that were lost together with their keys.
#[test]
fn an_object_lost_with_its_key_is_reported() {
    let (_folder, path, expected) = exported(&ExportOptions::default());
    let mut bytes = fs::read(&path).unwrap();
    // Damages the index and the single block of a game's own object, whose key ends where the fixed part of the trailer
    // begins.
    let key = expected.kept.keys().next().unwrap().as_bytes();
    let blocks = bytes.chunks_exact_mut(4_096);
    let of_object = blocks.skip(1).find(|block| block[..4_058].ends_with(key)).unwrap();
    of_object[4_058 - key.len()] ^= 1;
    bytes[200] ^= 1;
    fs::write(&path, bytes).unwrap();
    let new = TestStore::default();
    let error = import(&new, &path, &ImportOptions::default()).unwrap_err();
    assert!(matches!(error, UpkeepError::UnknownLoss { blocks: 2, .. }), "{error}");
    assert_eq!(contents(&new, NAME).chunks.len(), 0);
    let options = ImportOptions { leaves_damaged: true, ..ImportOptions::default() };
    let report = import(&new, &path, &options).unwrap();
    assert!(report.lost.first.iter().any(|lost| lost.reason.contains("may be missing")), "{:?}", report.lost);
    let arrived = contents(&new, NAME);
    assert_eq!((arrived.chunks, arrived.kept.len()), (expected.chunks, expected.kept.len() - 1));
}

/// Promise, exports: A world with more data than the limits of the export format is not exported.
/// Promise, exports: Players are not in an export.
#[test]
fn lies_are_refused_before_they_cost_anything() {
    let (_folder, path, _) = exported(&ExportOptions::default());
    let whole = fs::read(&path).unwrap();
    let file = &objects(&path)[0];
    let header: Header = record::decode(&file["export"].1).unwrap();
    let lists =
        |names: &[&str]| record::encode(&names.iter().map(|name| (*name, Vec::<u64>::new())).collect::<Vec<_>>());
    let far = i64::MAX >> 9;
    let a_column = [1_u8, 0].into_iter().chain([0; 126]).collect::<Vec<u8>>();
    let huge = |lie: &[u8]| {
        Some([&[record::FORMAT][..], lie, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]].concat())
    };
    let columns = file.keys().filter(|key| key.ends_with("/chunks")).count() as u64;
    let more = |starts: Vec<u64>, columns| Some(record::encode(&Files { starts, columns }));
    let column = file.keys().find(|key| key.ends_with("/chunks")).unwrap();
    let outside = Header { area: BlockBox::of_chunk(ChunkPos::new(99, 99, 99)), ..header.clone() };
    let entities = file.keys().find(|key| key.ends_with("/entities")).unwrap();
    let records: Vec<Vec<u8>> = record::decode(&file[entities].1).unwrap();
    let changed = |change: &dyn Fn(&mut EntityRecord)| {
        let mut entity = EntityRecord::from_bytes(&records[0]).unwrap();
        change(&mut entity);
        Some(record::encode(&vec![entity.to_bytes()]))
    };
    let cases: [(&str, Option<Vec<u8>>); 17] = [
        (entities, changed(&|entity| entity.block.x += 16)),
        (entities, changed(&|entity| entity.dimension.0 += 1)),
        (entities, changed(&|entity| entity.children[0].parent = Some(5))),
        (entities, changed(&|entity| entity.components.push(player_component("Ada")))),
        ("export", None),
        ("export", huge(&[])),
        ("export", Some(record::encode(&outside))),
        ("registry/blocks", Some(lists(&["terrane:air", "terrane:air"]))),
        ("registry/blocks", Some(lists(&["game:stone"]))),
        ("registry/blocks", huge(&[])),
        ("registry/components", Some(record::encode(&Vec::<u8>::new()))),
        ("files", more(vec![1], columns)),
        ("files", more(vec![0], columns + 1)),
        ("files", more(vec![0, u64::MAX], columns)),
        (column, huge(&[])),
        (column, Some(record::encode(&vec![5_i64, 4]))),
        (column, Some(record::encode(&vec![i64::MAX]))),
    ];
    for (key, data) in cases {
        tamper(&path, &[(key, data)]);
        let new = TestStore::default();
        let error = import(&new, &path, &ImportOptions::default());
        let is_refused = match &error {
            Err(UpkeepError::Damaged { .. } | UpkeepError::Objects(_)) => true,
            // A box at another place has other heights.
            Err(UpkeepError::Ungenerated { .. }) => key == "export",
            _ => false,
        };
        assert!(is_refused, "{key}: {error:?}");
        fs::write(&path, &whole).unwrap();
    }
    for place in [far, -far - 1] {
        let key = format!("columns/{place},0");
        tamper(&path, &[(&key, Some(a_column.clone())), ("files", more(vec![0], columns + 1))]);
        let options = ImportOptions { moved_by: [place.signum() * 600, 0, 0], ..ImportOptions::default() };
        let error = import(&TestStore::default(), &path, &options).unwrap_err();
        assert!(matches!(error, UpkeepError::OutOfRange { .. }), "{error}");
        let key = format!("columns/{},0", place * 4);
        tamper(&path, &[(&key, Some(a_column.clone()))]);
        let error = import(&TestStore::default(), &path, &ImportOptions::default()).unwrap_err();
        assert!(matches!(error, UpkeepError::Damaged { .. }), "{error}");
        fs::write(&path, &whole).unwrap();
    }
    for by in [i64::MIN, i64::MAX] {
        let options = ImportOptions { moved_by: [0, by, 0], ..ImportOptions::default() };
        let error = import(&TestStore::default(), &path, &options).unwrap_err();
        assert!(matches!(error, UpkeepError::OutOfRange { .. }), "{error}");
    }
}

#[test]
fn an_import_into_a_world_without_its_graph_changes_nothing() {
    let (_folder, path, _) = exported(&ExportOptions::default());
    let (target, dimension) = small_world();
    let mut writes = crate::WriteBatch::default();
    for (tile, _) in target.world().stored_tiles(dimension).unwrap() {
        writes.delete(Family::Meta, keys::tile_key(dimension, tile));
    }
    target.world().write(writes, Durability::Process).unwrap();
    let before = target.contents();
    for existing in [ExistingGround::Refuse, ExistingGround::Replace] {
        let world = target.world();
        let error = world.import_dimension(&path, &ImportOptions { existing, ..ImportOptions::default() }, go_on);
        assert_eq!(
            error,
            Err(UpkeepError::Store(StoreError::LostGraph { dimension, path: world.path().to_path_buf() }))
        );
    }
    let is_ground = |(family, _): &(Family, _)| *family != Family::Meta;
    assert!(target.contents().into_iter().filter(is_ground).eq(before.into_iter().filter(is_ground)));
}

/// Promise, exports: A pack of an export contains only its own objects, each once.
#[test]
fn a_pack_has_only_its_own_chunks_and_each_once() {
    let options = ExportOptions { packs: Some(true), ..ExportOptions::default() };
    let (_folder, path, _) = exported(&options);
    let whole = fs::read(&path).unwrap();
    let file = &objects(&path)[0];
    for kind in ["cluster/", "batch/"] {
        let key = file.keys().find(|key| key.starts_with(kind)).unwrap();
        let packed: Vec<format::Packed> = record::decode(&file[key].1).unwrap();
        let of = |key: &str| (key.to_owned(), 0, vec![7]);
        let foreign = [of("game:weather"), of("chunk/900,0,0/blocks"), of("column/900,0/chunks"), packed[0].clone()];
        for more in foreign {
            let packed: Vec<_> = packed.iter().cloned().chain([more.clone()]).collect();
            tamper(&path, &[(key, Some(record::encode(&packed)))]);
            let error = import(&TestStore::default(), &path, &ImportOptions::default()).unwrap_err();
            assert!(matches!(&error, UpkeepError::Damaged { key: named, .. } if named == key), "{}: {error}", more.0);
        }
        tamper(&path, &[(key, Some(record::encode(&vec![of("game:weather"); 100])))]);
        let error = import(&TestStore::default(), &path, &ImportOptions::default()).unwrap_err();
        assert!(matches!(&error, UpkeepError::Damaged { key: named, .. } if named == key), "{error}");
        fs::write(&path, &whole).unwrap();
    }
}

/// Promise, exports: A world with more data than the limits of the export format is not exported.
#[test]
fn lists_and_batches_that_no_import_reads_are_not_written() {
    let (_folder, path, _) = exported(&ExportOptions::default());
    let file = &objects(&path)[0];
    let entities = file.keys().find(|key| key.ends_with("/entities")).unwrap();
    for most in [format::MAX_LISTED, format::MAX_LISTED + 1] {
        tamper(&path, &[(entities, Some(record::encode(&vec![Vec::<u8>::new(); most])))]);
        let error = import(&TestStore::default(), &path, &ImportOptions::default()).unwrap_err();
        // A list that is too long is not decoded at all.
        let is_looked_into = error.to_string().contains("it is empty");
        assert_eq!(is_looked_into, most == format::MAX_LISTED, "{error}");
        let written = ground::BatchObjects { longest: most, bytes: format::LARGEST_BATCH, ..Default::default() };
        assert_eq!(written.fits(), most == format::MAX_LISTED);
    }
    assert!(!ground::BatchObjects { bytes: format::LARGEST_BATCH + 1, ..Default::default() }.fits());
}

/// Promise, exports: An import rejects keys that cannot be moved before it changes anything.
#[test]
fn an_unmovable_object_is_rejected_before_anything_changes() {
    let (_folder, path, expected) = exported(&ExportOptions::default());
    let whole = fs::read(&path).unwrap();
    let long = format!("column/9,0/{}", "x".repeat(501));
    for key in ["column/9223372036854775807,0/a:b", "chunk/0,9223372036854775807,0/a:b", &long] {
        tamper(&path, &[(key, Some(b"mine".to_vec()))]);
        let options = ImportOptions { moved_by: [1, 1, 0], ..ImportOptions::default() };
        let new = TestStore::default();
        let world = new.world();
        let before = new.contents();
        let error = world.import_dimension(&path, &options, go_on).unwrap_err();
        assert!(matches!(&error, UpkeepError::Damaged { key: named, .. } if named == key), "{error}");
        assert_eq!(new.contents(), before);
        let leaves = ImportOptions { leaves_damaged: true, ..options };
        let report = world.import_dimension(&path, &leaves, go_on).unwrap();
        assert!(
            report.finished && report.lost.count() as usize == 1 && report.lost.first[0].reason.contains(key),
            "{report:?}"
        );
        assert_eq!((report.columns as usize, report.objects as usize), (expected.columns.len(), expected.kept.len()));
        fs::write(&path, &whole).unwrap();
    }
    // An object that would leave the grid is not damage in the file.
    tamper(&path, &[("chunk/0,576460752303423487,0/a:b", Some(b"mine".to_vec()))]);
    let options = ImportOptions { moved_by: [0, 1, 0], leaves_damaged: true, ..ImportOptions::default() };
    let error = import(&TestStore::default(), &path, &options).unwrap_err();
    assert_eq!(error, UpkeepError::OutOfRange { column: ColumnPos::new(0, 0) });
    let (store, dimension) = small_world();
    let key = "column/9223372036854775807,0/a:b";
    let error = store.world().keep_object(dimension, key, 0, b"").unwrap_err();
    assert_eq!(error, UpkeepError::Key { key: key.to_owned() });
}

#[test]
fn a_missing_or_damaged_file_loses_only_its_own_objects() {
    let (_folder, path, expected) = exported(&ExportOptions { objects_per_file: 60, ..ExportOptions::default() });
    let files = objects(&path);
    let second = export_file(&path, 2);
    let in_it = files[1].keys().filter(|key| key.ends_with("/chunks")).count();
    assert!(files.len() > 2 && in_it > 0);
    let whole = fs::read(&second).unwrap();
    for damage in [None, Some(b"nonsense".to_vec())] {
        match &damage {
            None => fs::remove_file(&second).unwrap(),
            Some(bytes) => fs::write(&second, bytes).unwrap(),
        }
        let new = TestStore::default();
        let before = new.contents();
        let world = new.world();
        let error = world.import_dimension(&path, &ImportOptions::default(), go_on).unwrap_err();
        assert!(error.is_damage(), "{error}");
        assert!(new.contents().len() <= before.len() + 5, "nothing was changed");
        let options = ImportOptions { leaves_damaged: true, ..ImportOptions::default() };
        let report = world.import_dimension(&path, &options, go_on).unwrap();
        let lost: BTreeSet<_> =
            report.lost.first.iter().filter_map(|lost| lost.column).map(|at| (at.x, at.z)).collect();
        assert!(report.finished);
        assert_eq!(lost.len(), in_it);
        drop(world);
        let arrived = contents(&new, NAME);
        assert_eq!(arrived.columns, expected.columns.difference(&lost).copied().collect());
        for (pos, chunk) in &arrived.chunks {
            assert_eq!(Some(chunk), expected.chunks.get(pos));
        }
        // The same if the first file's list of columns is gone.
        let columns = files[0].keys().find(|key| key.starts_with("columns/")).unwrap();
        let first = fs::read(&path).unwrap();
        tamper(&path, &[(columns, None)]);
        let other = TestStore::default();
        import(&other, &path, &options).unwrap();
        assert_eq!(contents(&other, NAME).columns, arrived.columns);
        fs::write(&path, first).unwrap();
        fs::write(&second, &whole).unwrap();
    }
}

#[test]
fn a_report_lists_a_thousand_losses_and_counts_the_others() {
    let (mut of_import, mut of_export) = (ImportReport::default(), ExportReport::default());
    for x in 0..2_500 {
        let column = ColumnPos::new(x, 0);
        of_import.lose(Some(column), &UpkeepError::OutOfRange { column });
        of_export.lost.add(LostObject { column: Some(column), reason: String::new() });
    }
    assert_eq!((of_import.lost.first.len(), of_import.lost.more), (1_000, 1_500));
    assert_eq!((of_export.lost.first.len(), of_export.lost.more), (1_000, 1_500));
}

#[test]
fn only_entries_that_the_backend_cannot_read_are_left_out() {
    let (store, _) = small_world();
    let expected = contents(&store, NAME);
    for family in [Family::Chunks, Family::WarmChunks, Family::ColdChunks] {
        let store = TestStore::on(store.snapshot());
        let key = store.contents().into_iter().find_map(|(of, (key, _))| (of == family).then_some(key)).unwrap();
        let (_, chunk) = keys::parse_chunk_key(&key).unwrap();
        store.damage_block(family, &[&key]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("world.objects");
        let world = store.world();
        assert!(world.export_dimension(NAME, &path, &ExportOptions::default(), go_on).is_err());
        let options = ExportOptions { leaves_damaged: true, ..ExportOptions::default() };
        let report = world.export_dimension(NAME, &path, &options, go_on).unwrap();
        let lost: BTreeSet<_> =
            report.lost.first.iter().filter_map(|lost| lost.column).map(|at| (at.x, at.z)).collect();
        let side = 5 - 1;
        let is_near = |(x, z): &(i64, i64)| (x >> side, z >> side) == (chunk.x >> side, chunk.z >> side);
        assert!(!lost.is_empty() && lost.iter().all(is_near), "{family:?}: {:?}", report.lost);
        let new = TestStore::default();
        import(&new, &path, &ImportOptions::default()).unwrap();
        let arrived = contents(&new, NAME);
        assert_eq!(arrived.columns, expected.columns.difference(&lost).copied().collect());
        for (pos, chunk) in &arrived.chunks {
            assert_eq!(Some(chunk), expected.chunks.get(pos));
        }
    }
}

/// Promise, exports: An import does not read the summaries of an export.
#[test]
fn with_a_damaged_summary_no_ground_is_lost() {
    let (store, dimension) = small_world();
    let expected = contents(&store, NAME);
    let column = ColumnPos::new(0, 0);
    store.tamper(Family::Meta, &keys::summary_key(dimension, column), |value| value[9] ^= 1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world.objects");
    let world = store.world();
    assert!(world.export_dimension(NAME, &path, &ExportOptions::default(), go_on).is_err());
    let options = ExportOptions { leaves_damaged: true, ..ExportOptions::default() };
    let report = world.export_dimension(NAME, &path, &options, go_on).unwrap();
    assert_eq!(report.lost.first.iter().map(|lost| lost.column).collect::<Vec<_>>(), [None]);
    assert!(!objects(&path)[0].contains_key("column/0,0/summary"));
    let new = TestStore::default();
    import(&new, &path, &ImportOptions::default()).unwrap();
    assert_eq!(contents(&new, NAME), expected);
}

/// For a file truncated at any length, exactly its whole parts are imported, if the options allow it.
///
/// Promise, upkeep: `import --leave-damaged` imports all intact objects of a truncated export.
#[test]
fn all_intact_objects_of_a_truncated_export_are_imported() {
    for packs in [Some(false), Some(true)] {
        let (_folder, path, expected) = exported(&ExportOptions { packs, ..ExportOptions::default() });
        let whole = fs::read(&path).unwrap();
        let (mut arrived_columns, mut refused) = (BTreeSet::new(), 0);
        for cut in 1..60 {
            let length = whole.len() * cut / 60;
            fs::write(&path, &whole[..length]).unwrap();
            let new = TestStore::default();
            let error = import(&new, &path, &ImportOptions::default()).unwrap_err();
            assert!(error.is_damage(), "{length}: {error}");
            assert_eq!(contents(&new, NAME).columns.len(), 0);
            let options = ImportOptions { leaves_damaged: true, ..ImportOptions::default() };
            let report = match import(&new, &path, &options) {
                Ok(report) => report,
                Err(error) => {
                    // The lists of types are missing.
                    assert!(error.is_damage(), "{length}: {error}");
                    refused += 1;
                    continue;
                }
            };
            assert!(report.finished && report.lost.first[0].reason.contains("is incomplete"), "{:?}", report.lost);
            let arrived = contents(&new, NAME);
            let lost = report.lost.first.iter().filter(|lost| lost.column.is_some()).count();
            assert_eq!(arrived.columns.len() + lost, expected.columns.len(), "{length}");
            let of_columns = |of: &Contents| {
                let mut chunks = of.chunks.clone();
                chunks.retain(|(x, _, z), _| arrived.columns.contains(&(*x, *z)));
                chunks
            };
            assert!(of_columns(&arrived) == of_columns(&expected), "{length}");
            for (id, entity) in &expected.entities {
                let (ColumnPos { x, z }, there) = (entity.column(), arrived.entities.contains_key(id));
                assert_eq!(there, arrived.columns.contains(&(x, z)), "{length}: a column comes with its entities");
            }
            assert!(arrived_columns.is_subset(&arrived.columns), "{length}: more of the file is more of the ground");
            arrived_columns = arrived.columns;
        }
        assert!(refused < 45, "{refused} of 59 are refused");
        assert!(arrived_columns.len() * 3 > expected.columns.len(), "{} columns", arrived_columns.len());
    }
}
