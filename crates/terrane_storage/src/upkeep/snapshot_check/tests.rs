//! Flipped bits in the files of snapshots, in a copy of the world folder that is a fixture.

use super::*;
use crate::upkeep::{UpkeepError, copy_world, salvage_world};
use crate::{Access, StorageConfig};
use tempfile::TempDir;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/world-folder-1")
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy_folder(&path, &to),
            false => drop(fs::copy(&path, &to).unwrap()),
        }
    }
}

/// A world with two stored snapshots, a restore and a schematic of a game.
fn world() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("world");
    copy_folder(&fixture(), &path);
    let snapshots = path.join("snapshots");
    let record = b"what to restore";
    let record = [RECORD_SIGNATURE, &crc32fast::hash(record).to_le_bytes(), record].concat();
    fs::create_dir_all(snapshots.join("restores/3")).unwrap();
    fs::write(snapshots.join("restores/3/restore"), record).unwrap();
    fs::create_dir_all(snapshots.join("houses")).unwrap();
    fs::copy(snapshots.join("before/0_0_16.schem"), snapshots.join("houses/small.schem")).unwrap();
    (folder, path)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let (files, folders) = list(folder).unwrap();
    files.into_keys().chain(folders.iter().flat_map(|folder| self::files(folder))).collect()
}

fn damages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut note = |damage| match damage {
        Damage::File { path, .. } => found.push(path),
        other => panic!("{other}"),
    };
    assert!(check(folder, &mut |_| ControlFlow::Continue(()), &mut note).is_continue());
    found
}

fn unpacked(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(BufReader::new(File::open(path).unwrap())).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Promise, upkeep: `terrane verify` finds every flipped bit in the files of snapshots and arenas.
#[test]
fn every_flipped_bit_is_found_or_changes_nothing() {
    let (_folder, path) = world();
    let (snapshots, whole) = (path.join("snapshots"), path.join("snapshots/houses/small.schem"));
    let content = unpacked(&whole);
    let (mut flips, mut harmless) = (0, 0);
    let files = files(&snapshots);
    assert_eq!(files.len(), 12, "{files:?}");
    assert!(damages(&snapshots).is_empty());
    for file in files {
        let bytes = fs::read(&file).unwrap();
        for at in (0..bytes.len()).step_by(3) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at * 3 % 8);
            fs::write(&file, &flipped).unwrap();
            flips += 1;
            match &damages(&snapshots)[..] {
                // The header of gzip has a time and the number of a system.
                [] => {
                    assert!(file == whole && unpacked(&whole) == content, "byte {at} of {}", file.display());
                    harmless += 1;
                }
                found => assert_eq!(found, std::slice::from_ref(&file), "byte {at}"),
            }
        }
        for cut in [0, bytes.len() / 2, bytes.len() - 1] {
            fs::write(&file, &bytes[..cut]).unwrap();
            assert_eq!(damages(&snapshots), std::slice::from_ref(&file), "cut to {cut}");
        }
        fs::write(&file, bytes).unwrap();
    }
    assert!(flips > 800 && harmless < 5, "{harmless} of {flips}");
}

#[test]
fn a_missing_file_is_named_and_a_removed_snapshot_is_not() {
    let (_folder, path) = world();
    let snapshots = path.join("snapshots");
    for file in ["arenas/spleef/0_0_16.schem", "arenas/spleef/index.txt", "before/-1_0_16.schem"] {
        let file = snapshots.join(file);
        let bytes = fs::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        assert_eq!(damages(&snapshots), std::slice::from_ref(&file));
        fs::write(&file, bytes).unwrap();
    }
    // What an interrupted removal or preparation leaves.
    fs::write(snapshots.join("before/0_0_16.schem"), "damaged").unwrap();
    fs::rename(snapshots.join("before"), snapshots.join(".before.unfinished")).unwrap();
    fs::create_dir_all(snapshots.join("restores/4.new")).unwrap();
    fs::write(snapshots.join("restores/4.new/restore"), "half").unwrap();
    assert!(damages(&snapshots).is_empty());
    fs::remove_dir_all(&snapshots).unwrap();
    assert!(damages(&snapshots).is_empty());
}

#[test]
fn verifying_a_world_names_the_files_and_tells_its_progress() {
    let (_folder, path) = world();
    let open = || WorldStore::open_existing(&StorageConfig::Path(path.clone()), Access::Read).unwrap();
    let mut told = Vec::new();
    let report = open().verify(|progress| {
        told.push(*progress);
        ControlFlow::Continue(())
    });
    let report = report.unwrap();
    assert!(report.finished && report.damage.is_empty(), "{:?}", report.damage);
    assert!(told.iter().map(|progress| progress.bytes).is_sorted(), "{told:?}");
    let fractions: Vec<f64> = told.iter().filter_map(|progress| progress.fraction).collect();
    assert!(fractions.is_sorted() && fractions.iter().all(|part| (0.0..=1.0).contains(part)), "{fractions:?}");
    let size = bytes(&path.join("snapshots"));
    assert!(size > 2_000 && report.read.bytes > size, "{:?}", report.read);
    // It can be stopped at each step.
    for steps in 0..told.len() {
        let mut left = steps;
        let report = open().verify(|_| {
            left = left.saturating_sub(1);
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(!report.unwrap().finished, "{steps}");
    }
    let file = path.join("snapshots/arenas/spleef/0_-1_16.schem");
    let mut bytes = fs::read(&file).unwrap();
    bytes[100] ^= 1;
    fs::write(&file, bytes).unwrap();
    let report = open().verify(|_| ControlFlow::Continue(())).unwrap();
    assert!(report.finished && matches!(&report.damage.first[..], [Damage::File { path, .. }] if *path == file));
}

/// Promise, upkeep: `terrane copy` and `terrane backup` name a damaged file of a snapshot, and leave older backups alone.
#[test]
fn copies_and_backups_refuse_a_damaged_file_and_a_salvage_names_it() {
    let (folder, path) = world();
    let open = |access| WorldStore::open_existing(&StorageConfig::Path(path.clone()), access).unwrap();
    let go_on = |_: &Progress| ControlFlow::Continue(());
    let backups = folder.path().join("backups");
    let first = open(Access::Maintain).back_up(&backups, None).unwrap();
    copy_world(&open(Access::Read), &folder.path().join("whole"), go_on).unwrap();
    assert!(damages(&folder.path().join("whole/snapshots")).is_empty());

    let file = path.join("snapshots/before/0_0_16.schem");
    let mut bytes = fs::read(&file).unwrap();
    bytes[33] ^= 4;
    fs::write(&file, &bytes).unwrap();
    let names_it = |error: &StoreError| matches!(error, StoreError::DamagedFile { path, .. } if *path == file);
    let error = open(Access::Maintain).back_up(&backups, std::num::NonZeroU32::new(1)).unwrap_err();
    assert!(names_it(&error), "{error}");
    assert_eq!(crate::RocksStore::backups(&backups).unwrap(), [first]);
    let copy = folder.path().join("copy");
    let error = copy_world(&open(Access::Read), &copy, go_on).unwrap_err();
    assert!(matches!(&error, UpkeepError::Store(error) if names_it(error)) && !copy.exists(), "{error}");
    let stopped = copy_world(&open(Access::Read), &copy, |_| ControlFlow::Break(()));
    assert!(stopped == Err(UpkeepError::Cancelled) && !copy.exists());
    let salvaged = folder.path().join("salvaged");
    let report = salvage_world(&path, &salvaged, go_on).unwrap();
    assert!(matches!(&report.damage.first[..], [Damage::File { path, .. }] if *path == file), "{:?}", report.damage);
    assert_eq!(fs::read(salvaged.join("snapshots/before/0_0_16.schem")).unwrap(), bytes);
}
