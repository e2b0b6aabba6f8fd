//! The log of a killed world: everything before its torn end counts, and any other damage is reported.

use super::*;
use crate::support::folder::copy_folder;
use crate::support::rounds;
use bevy_terrane::storage::StoreError;

const ROUNDS: u32 = 40;

/// A world that was killed after so many saves, all of which are in its log, and the path of the log.
fn killed_world(folder: &Path, durability: Durability) -> (PathBuf, PathBuf) {
    let (path, killed) = (folder.join("world"), folder.join("killed"));
    let world = open(&path).unwrap();
    (0..ROUNDS).for_each(|number| drop(world.commit(&round(number), durability).unwrap()));
    copy_folder(&path, &killed);
    let log = database_files(&killed, "log").pop().unwrap();
    (killed, log)
}

/// Checks that everything in the world is from one round, that of its entity.
fn expect_whole_save(world: &WorldStore) -> Option<u32> {
    let last = stored_round(world)?;
    let column = ColumnPos::new(0, 0);
    let loaded = world.load_batch(OVERWORLD, column.batch(), &[column], 0..4).unwrap().remove(0);
    assert_eq!(loaded.column.chunk(0), Some(&chunk(last.into())));
    assert_eq!(loaded.block_ticks[0].remaining, u64::from(last));
    assert_eq!(world.stored_tiles(OVERWORLD).unwrap(), [(TilePos::new(0, 0), [last as u16; 64])]);
    Some(last)
}

/// Promise, crashes: A world with a missing file, or other damage to its log, is refused, and the damage is named.
#[test]
fn a_flipped_bit_in_the_log_is_refused_with_its_place_and_nothing_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    let (killed, log) = killed_world(folder.path(), Durability::Sync);
    let whole = fs::read(&log).unwrap();
    let flips = rounds(40);
    for flip in 0..flips {
        let mut bytes = whole.clone();
        // Including the last byte.
        let at = (bytes.len() - 1) * flip as usize / (flips - 1) as usize;
        bytes[at] ^= 1 << (flip % 8);
        fs::write(&log, bytes).unwrap();
        let before = files(&killed);
        let error = open(&killed).unwrap_err();
        let WorldOpenError::Database { source: StoreError::DamagedFile { path, reason }, .. } = &error else {
            panic!("byte {at}: {error}");
        };
        assert_eq!(path, &log, "byte {at}");
        let told =
            reason.split("byte ").nth(1).and_then(|rest| rest.split(|digit: char| !digit.is_ascii_digit()).next());
        let told: usize = told.and_then(|told| told.parse().ok()).expect(reason);
        assert!((0..20_000).contains(&(at as i64 - told as i64)), "byte {at}: {reason}");
        assert!(error.to_string().contains("terrane salvage"), "{error}");
        assert!(files(&killed).iter().all(|(file, bytes)| before[file] == *bytes || file.ends_with("world.lock")));
    }
    fs::write(&log, whole).unwrap();
    assert_eq!(expect_whole_save(&open(&killed).unwrap()), Some(ROUNDS - 1));
}

/// Promise, crashes: A save is one atomic batch.
/// Promise, crashes: After a kill, a world has all synced data, up to the torn end of its log.
#[test]
fn a_log_that_was_cut_ends_with_a_whole_save() {
    let folder = tempfile::tempdir().unwrap();
    let (killed, log) = killed_world(folder.path(), Durability::Process);
    let log = log.strip_prefix(&killed).unwrap();
    let length = fs::metadata(killed.join(log)).unwrap().len();
    let mut found = Vec::new();
    let cuts = rounds(20);
    for cut in 0..cuts {
        let copy = folder.path().join("copy");
        copy_folder(&killed, &copy);
        let file = fs::File::options().write(true).open(copy.join(log)).unwrap();
        // The log begins with the session, which is synced.
        file.set_len(length / 20 + length * 19 / 20 * (2 * cut + 1) / (2 * cuts)).unwrap();
        drop(file);
        let world = open(&copy).unwrap();
        found.extend(expect_whole_save(&world));
        // The world can be used from there.
        world.commit(&round(ROUNDS), Durability::Sync).unwrap();
        drop(world);
        assert_eq!(expect_whole_save(&open(&copy).unwrap()), Some(ROUNDS));
        fs::remove_dir_all(&copy).unwrap();
    }
    assert!(found.is_sorted() && found.last() > Some(&(ROUNDS * 9 / 10)), "{found:?}");
}

/// Promise, crashes: A world with a missing file, or other damage to its log, is refused, and the damage is named.
#[test]
fn a_log_that_was_cut_in_front_of_a_synced_save_is_refused_and_nothing_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    let (killed, log) = killed_world(folder.path(), Durability::Sync);
    let whole = fs::read(&log).unwrap();
    for cut in 0..20 {
        fs::write(&log, &whole[..whole.len() * cut / 20]).unwrap();
        let before = files(&killed);
        let error = open(&killed).unwrap_err();
        assert!(error.is_damage() && error.to_string().contains("was synced"), "{error}");
        assert!(files(&killed).iter().all(|(file, bytes)| before[file] == *bytes || file.ends_with("world.lock")));
    }
    fs::write(&log, whole).unwrap();
    assert_eq!(expect_whole_save(&open(&killed).unwrap()), Some(ROUNDS - 1));
}

/// Promise, crashes: After a kill, a world has all synced data, up to the torn end of its log.
#[test]
fn a_torn_log_that_was_recovered_before_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let (world, log) = killed_world(folder.path(), Durability::Process);
    let mut torn = fs::read(&log).unwrap();
    torn.pop();
    fs::write(&log, &torn).unwrap();
    open(&world).unwrap().commit(&round(ROUNDS), Durability::Sync).unwrap();
    let last = open(&world).unwrap();
    last.commit(&round(ROUNDS + 1), Durability::Sync).unwrap();
    let killed = folder.path().join("killed again");
    copy_folder(&world, &killed);
    fs::write(killed.join(log.strip_prefix(&world).unwrap()), torn).unwrap();
    assert_eq!(expect_whole_save(&open(&killed).unwrap()), Some(ROUNDS + 1));
}
