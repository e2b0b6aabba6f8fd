//! Missing, changed and truncated files, and crashes during writing.

use super::hostile_index::rounds;
use super::*;
use std::sync::LazyLock;

static STORED: LazyLock<(TempDir, PathBuf, StoredSnapshot)> = LazyLock::new(stored);

fn stored() -> (TempDir, PathBuf, StoredSnapshot) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("hall");
    let stored = store(&path, &small()).unwrap();
    (folder, path, stored)
}

/// The first error of a stored snapshot, if there is one.
fn error(path: &Path) -> Option<StoredSnapshotError> {
    let stored = match StoredSnapshot::open(path) {
        Ok(stored) => stored,
        Err(error) => return Some(error),
    };
    let verified = stored.verify(&mut go_on).err();
    assert_eq!(stored.read(&BLOCKS, &mut go_on).err(), verified, "both look at the same");
    verified
}

/// Returns `true` if the error reports a damaged file of a column in these words.
fn is_damage(error: &StoredSnapshotError, words: &str) -> bool {
    let StoredSnapshotError::Damaged { path, what } = error else { return false };
    path.extension().is_some_and(|extension| extension == "schem") && what.contains(words)
}

/// Promise, snapshots: The checksums of a stored snapshot are verified before its data is used.
#[test]
fn every_change_to_a_file_is_found_before_anything_is_given_out() {
    let (_folder, path, stored) = stored();
    assert_eq!(error(&path), None);
    for (name, bytes) in files(&path) {
        let file = path.join(&name);
        let is_index = name == INDEX;
        for place in [0, 1, bytes.len() / 2, bytes.len() - 1] {
            let mut changed = bytes.clone();
            changed[place] ^= 1 << (place % 8);
            fs::write(&file, &changed).unwrap();
            let found = error(&path).unwrap();
            assert!(is_index || is_damage(&found, "checksum"), "{name} {place}: {found}");
            fs::write(&file, &bytes[..place]).unwrap();
            let found = error(&path).unwrap();
            assert!(is_index || is_damage(&found, "bytes, found"), "{name} {place}: {found}");
        }
        fs::write(&file, [&bytes[..], b" "].concat()).unwrap();
        let found = error(&path).unwrap();
        assert!(is_index || is_damage(&found, "bytes, found"), "{name}: {found}");
        fs::remove_file(&file).unwrap();
        let found = error(&path).unwrap();
        match is_index {
            true => assert!(matches!(found, StoredSnapshotError::NotASnapshot { .. })),
            false => assert!(is_damage(&found, "it is missing"), "{name}"),
        }
        fs::write(&file, &bytes).unwrap();
    }
    // Other columns can still be read.
    let mut columns = stored.columns();
    let (first, second) = (columns.next().unwrap(), columns.next().unwrap());
    let name = stored.columns[&first].files[0].name(first);
    fs::write(path.join(name), b"nothing").unwrap();
    assert!(stored.read_column(first, &BLOCKS).is_err() && stored.read_column(second, &BLOCKS).is_ok());
}

/// Promise, snapshot files: Any flipped bit in a stored snapshot's index is detected.
#[test]
fn every_bit_of_the_index_counts() {
    let (_folder, path, _stored) = stored();
    let bytes = fs::read(path.join(INDEX)).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(StoredSnapshot::parse(&changed, &path).is_err(), "bit {bit}");
    }
    for length in 0..bytes.len() {
        assert!(StoredSnapshot::parse(&bytes[..length], &path).is_err(), "{length} bytes");
    }
}

#[test]
fn files_that_changed_places_are_found() {
    let (_folder, path, _stored) = stored();
    let names: Vec<String> = files(&path).into_keys().filter(|name| name.ends_with(".schem")).collect();
    fs::rename(path.join(&names[0]), path.join("else")).unwrap();
    fs::rename(path.join(&names[1]), path.join(&names[0])).unwrap();
    fs::rename(path.join("else"), path.join(&names[1])).unwrap();
    assert!(matches!(error(&path).unwrap(), StoredSnapshotError::Damaged { .. }));
}

/// Replaces the file of a column, with a matching index.
fn replaced(stored: &StoredSnapshot, bytes: &[u8]) -> StoredSnapshotError {
    let mut index = stored.clone();
    let pos = *index.columns.keys().next().unwrap();
    let file = &mut index.columns.get_mut(&pos).unwrap().files[0];
    (file.bytes, file.checksum) = (bytes.len() as u64, crc32fast::hash(bytes));
    fs::write(stored.folder.join(file.name(pos)), bytes).unwrap();
    fs::write(stored.folder.join(INDEX), index.to_text()).unwrap();
    StoredSnapshot::open(&stored.folder).unwrap().read(&BLOCKS, &mut go_on).unwrap_err()
}

#[test]
fn a_foreign_file_with_a_valid_checksum_is_refused() {
    use crate::snapshot::schematic::{Schematic, WriteOptions};
    let (_folder, path, stored) = stored();
    assert!(matches!(replaced(&stored, b"nothing"), StoredSnapshotError::Schematic { .. }));
    let written = |schematic: &Schematic| {
        let mut bytes = Vec::new();
        schematic.write(&mut bytes, &WriteOptions::default()).unwrap();
        bytes
    };
    let content = |error| match error {
        StoredSnapshotError::Damaged { what, .. } => what,
        other => panic!("{other}"),
    };
    let small = written(&Schematic::new([16, 1, 16]));
    assert_eq!(content(replaced(&stored, &small)), "it has another size than the index says");
    let huge = replaced(&stored, &written(&Schematic::new([16, 4_000, 16])));
    assert!(matches!(huge, StoredSnapshotError::Schematic { .. }), "{huge}");

    let file = stored.columns.values().next().unwrap().files[0];
    let mut schematic = Schematic::new([16, file.chunks * 16, 16]);
    schematic.entities.push(crate::snapshot::schematic::SchematicEntity {
        position: [90.0, 0.0, 0.0],
        id: "b:cow".into(),
        data: Compound::new(),
    });
    assert_eq!(content(replaced(&stored, &written(&schematic))), "an entity is outside of the column");

    let mut index = stored.clone();
    index.columns.values_mut().for_each(|column| column.heights = Some(HeightSet::new()));
    fs::write(path.join(INDEX), index.to_text()).unwrap();
    let last = index.columns.keys().next_back().unwrap();
    let error = StoredSnapshot::open(&path).unwrap().read_column(*last, &BLOCKS).unwrap_err();
    assert_eq!(content(error), "there are blocks at a height that was not captured");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: rounds(200), ..ProptestConfig::default() })]

    #[test]
    fn a_column_that_was_changed_and_sealed_again_is_read_or_refused(
        column in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8, any::<u32>()), 1..4),
    ) {
        let (_folder, path, stored) = &*STORED;
        let mut stored = stored.clone();
        let columns: Vec<ColumnPos> = stored.columns().collect();
        let pos = columns[column.index(columns.len())];
        let name = stored.columns[&pos].files[0].name(pos);
        let mut bytes = Vec::new();
        let packed = fs::read(path.join(&name)).unwrap();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed[..]), &mut bytes).unwrap();
        for (at, kind, value) in changes {
            let at = at.index(bytes.len().max(1)).min(bytes.len());
            match kind {
                0 => bytes.truncate(at),
                1 => drop(bytes.splice(at..at, value.to_be_bytes())),
                2 => drop(bytes.drain(at..(at + value as usize % 9).min(bytes.len()))),
                _ => bytes.iter_mut().skip(at).zip(value.to_be_bytes()).for_each(|(byte, new)| *byte = new),
            }
        }
        let folder = TempDir::new().unwrap();
        stored.folder = folder.path().to_path_buf();
        fs::write(folder.path().join(name), &bytes).unwrap();
        let file = &mut stored.columns.get_mut(&pos).unwrap().files[0];
        (file.bytes, file.checksum) = (bytes.len() as u64, crc32fast::hash(&bytes));
        if let Ok((column, _)) = stored.read_column(pos, &BLOCKS) {
            prop_assert!(column.chunks().is_sorted_by(|(a, _), (b, _)| a < b));
            prop_assert!(column.chunks().all(|(y, _)| column.holds(y)));
            prop_assert!(column.entities().iter().all(|entity| entity.column() == pos));
            let mut snapshot = Snapshot::new(*stored.area());
            prop_assert!(snapshot.insert_column(pos, column));
            store(&folder.path().join("again"), &snapshot).unwrap();
        }
    }
}

/// Promise, snapshot files: A stored snapshot under its final name is complete, and the remains of a crash are removed when the
/// name is reused.
#[test]
fn a_crash_at_any_step_leaves_no_snapshot_and_the_next_one_removes_the_rest() {
    let (_folder, path, _stored) = stored();
    let snapshot = small();
    // In the order of writing: the index comes last.
    let mut written: Vec<(String, Vec<u8>)> = files(&path).into_iter().filter(|(name, _)| name != INDEX).collect();
    written.push((INDEX.to_owned(), fs::read(path.join(INDEX)).unwrap()));
    for steps in 0..=written.len() {
        for is_cut in [false, true] {
            let folder = TempDir::new().unwrap();
            let path = folder.path().join("hall");
            let unfinished = folder.path().join(".hall.unfinished");
            fs::create_dir(&unfinished).unwrap();
            for (number, (name, bytes)) in written[..steps].iter().enumerate() {
                let is_last = number + 1 == steps;
                let length = if is_cut && is_last { bytes.len() / 2 } else { bytes.len() };
                fs::write(unfinished.join(name), &bytes[..length]).unwrap();
            }
            fs::write(unfinished.join("of another one"), b"").unwrap();
            assert!(matches!(StoredSnapshot::open(&path).unwrap_err(), StoredSnapshotError::NotASnapshot { .. }));
            same(&read(&store(&path, &snapshot).unwrap()), &snapshot);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
            assert!(!path.join("of another one").exists());
        }
    }
}

#[test]
fn an_existing_folder_is_left_alone() {
    let (folder, path, stored) = stored();
    let other = Snapshot::new(*stored.area());
    assert_eq!(store(&path, &other).unwrap_err(), StoredSnapshotError::AlreadyExists { path: path.clone() });
    same(&read(&StoredSnapshot::open(&path).unwrap()), &small());
    let file = folder.path().join("file");
    fs::write(&file, b"mine").unwrap();
    assert_eq!(store(&file, &other).unwrap_err(), StoredSnapshotError::AlreadyExists { path: file.clone() });
    assert!(matches!(store(&file.join("below"), &other).unwrap_err(), StoredSnapshotError::Io(_)));
    assert!(matches!(StoredSnapshot::open(&file).unwrap_err(), StoredSnapshotError::NotASnapshot { .. }));
    let nameless = store(Path::new("/"), &other).unwrap_err();
    assert!(matches!(nameless, StoredSnapshotError::Io(FileError { action: "name", .. })));
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    // Removing a snapshot that is already gone is an error.
    fs::remove_dir_all(&path).unwrap();
    assert!(matches!(stored.remove().unwrap_err(), StoredSnapshotError::Io(FileError { action: "rename", .. })));
}
