use super::*;

/// A store with an object of several blocks, a batch and a hole, closed.
fn filled() -> (PowerDisk, Model) {
    let disk = PowerDisk::default();
    let (mut store, mut model) = (create(disk.clone(), options()), Model::new());
    let steps = [
        Do::Write(1, 4, 9_000),
        Do::Write(2, 1, 100),
        Do::Write(3, 2, 5_000),
        Do::Batch(vec![(4, Some(4_500)), (5, Some(10)), (3, None)]),
        Do::Write(2, 2, 3_000),
    ];
    for (seed, step) in (1..).zip(&steps) {
        perform(&mut store, step, seed, &mut model).unwrap();
    }
    store.close().unwrap();
    (disk, model)
}

#[test]
fn every_flipped_bit_is_noticed() {
    let (disk, model) = filled();
    let bytes = disk.bytes();
    let (mut lost, mut kept) = (0, 0);
    for place in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1 << (place % 8);
        let Ok(store) = ObjectStore::open_on(PowerDisk::with(flipped), SIGNATURE, options(), true) else {
            assert!(place < 64, "only the first line keeps it from being opened");
            continue;
        };
        for (key, object) in &model {
            match store.read(key) {
                Ok(Some(found)) => assert_eq!(found, *object, "{key} at {place}"),
                Ok(None) => {
                    // The index was lost with it: the report says so.
                    let report = store.recovery().unwrap();
                    assert!(report.damaged_blocks > 0 || report.dropped_count > 0, "{key} at {place}");
                    lost += 1;
                }
                Err(error) => {
                    assert!(matches!(error, ObjectStoreError::Damaged { .. }), "{error}");
                    lost += 1;
                }
            }
            kept += 1;
        }
        std::mem::forget(store);
    }
    assert!(lost > 0 && lost < kept / 2, "{lost} of {kept}");
}

#[test]
fn a_lost_index_is_made_anew_with_a_report() {
    let (disk, model) = filled();
    let mut bytes = disk.bytes();
    bytes[4_090] ^= 1;
    let store = open(PowerDisk::with(bytes.clone()), options());
    assert_eq!(contents(&store), model);
    let report = store.recovery().unwrap().clone();
    assert_eq!((report.kept, report.damaged_blocks, report.dropped_count), (model.len(), 1, 0));
    std::mem::forget(store);
    // One that is only read changes nothing.
    let disk = PowerDisk::with(bytes.clone());
    let store = ObjectStore::open_on(disk.clone(), SIGNATURE, options(), false).unwrap();
    assert_eq!(contents(&store), model);
    drop(store);
    assert_eq!(disk.bytes(), bytes);
    // A block of an object is damaged as well.
    let place = (1..bytes.len() / 4_096).find(|block| bytes[block * 4_096 + 4_059] == 2).unwrap();
    bytes[place * 4_096 + 10] ^= 1;
    let store = open(PowerDisk::with(bytes), options());
    let report = store.recovery().unwrap();
    assert_eq!((report.kept, report.damaged_blocks), (model.len() - 1, 2));
}

#[test]
fn an_index_that_says_it_is_huge_is_not_believed() {
    let (disk, model) = filled();
    let mut bytes = disk.bytes();
    let start = super::super::file::line_bytes(SIGNATURE);
    // How many bytes the index has when it is decompressed, with a checksum that is right.
    bytes[start + 1..start + 9].copy_from_slice(&u64::MAX.to_le_bytes());
    let checksum = crc32fast::hash(&bytes[start..4_092]);
    bytes[4_092..4_096].copy_from_slice(&checksum.to_le_bytes());
    let store = open(PowerDisk::with(bytes), options());
    assert!(store.recovery().is_some());
    assert_eq!(contents(&store), model);
}

#[test]
fn a_full_disk_is_an_error_and_the_store_goes_on() {
    let disk = PowerDisk::default();
    let mut store = create(disk.clone(), options());
    store.write("a", 1, &data(1, 9_000)).unwrap();
    store.write("b", 1, &data(2, 9_000)).unwrap();
    disk.set_capacity(Some(disk.length()));
    let full =
        |error: ObjectStoreError| matches!(error, ObjectStoreError::Io { kind: std::io::ErrorKind::StorageFull, .. });
    assert!(full(store.write("c", 1, &data(3, 90_000)).unwrap_err()));
    assert!(full(store.apply(Batch::default().write("a", 2, data(4, 90_000)).delete("b")).unwrap_err()));
    assert_eq!(store.read("a").unwrap().unwrap().data, data(1, 9_000));
    assert_eq!(store.read("b").unwrap().unwrap().data, data(2, 9_000));
    // What is deleted makes room.
    assert!(store.delete("a").unwrap());
    store.write("c", 2, &data(5, 8_000)).unwrap();
    store.close().unwrap();
    let store = open(disk, options());
    assert_eq!(store.recovery(), None);
    assert_eq!(store.entries_from(0).collect::<Vec<_>>(), [("b", 1), ("c", 2)]);
}

#[test]
fn a_write_that_failed_does_not_come_back_when_what_was_there_is_deleted() {
    for operation in 0..12 {
        let disk = PowerDisk::default();
        let mut store = create(disk.clone(), options());
        store.write("a", 1, &data(1, 5_000)).unwrap();
        disk.fail_at(disk.operations() + operation);
        let failed = store.write("a", 2, &data(2, 5_000)).is_err();
        // The disk works again.
        disk.fail_at(usize::MAX);
        let expected = if failed { 1 } else { 2 };
        assert_eq!(store.read("a").unwrap().unwrap().data, data(expected, 5_000));
        assert!(store.delete("a").unwrap());
        std::mem::forget(store);
        assert!(open(disk.clone(), options()).is_empty(), "{operation}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Opening whatever begins like a store ends well or with an error.
    #[test]
    fn hostile_files_are_opened_or_refused(
        seed in any::<u64>(), changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..12), cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(), fixes in any::<bool>(),
    ) {
        let (disk, _) = filled();
        let mut bytes = disk.bytes();
        let _ = seed;
        for (place, value) in changes {
            let place = place.index(bytes.len() - 64) + 64;
            bytes[place] = value;
            if fixes {
                // As somebody would who knows the format.
                let block = place / 4_096;
                let start = if block == 0 { super::super::file::line_bytes(SIGNATURE) } else { block * 4_096 };
                let end = block * 4_096 + 4_092;
                let checksum = crc32fast::hash(&bytes[start..end]);
                bytes[end..end + 4].copy_from_slice(&checksum.to_le_bytes());
            }
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(mut store) = ObjectStore::open_on(PowerDisk::with(bytes), SIGNATURE, options(), true) {
            let keys: Vec<String> = store.entries_from(0).map(|(key, _)| key.to_owned()).collect();
            for key in keys {
                let _ = store.read(&key);
            }
            let _ = store.write("chunk/1", 9, &data(1, 6_000));
            if store.contains("chunk/1") {
                prop_assert_eq!(store.read("chunk/1").map(|read| read.map(|object| object.version)).unwrap_or(Some(9)), Some(9));
            }
        }
    }
}
