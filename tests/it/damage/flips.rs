//! For every flipped bit in a world's files, either all values are unchanged, or verifying the world names the damage.

use super::*;
use crate::support::folder::copy_folder;
use crate::support::{noise, rounds};
use bevy_terrane::storage::{Access, ChunkGroup, Family, KeyValue, KeyValueStore, RocksStore, Tier};
use std::ops::ControlFlow;

/// The columns of the worlds: 24 groups in 8 cubes, some of one chunk and some of 12.
fn chunks() -> impl Iterator<Item = ChunkPos> {
    (0..24_i64).flat_map(|group| {
        let (x, z) = (group % 8 * 16 + group / 8 * 4, 0);
        (0..if group % 4 == 0 { 12 } else { 1 }).map(move |place| ChunkPos::new(x + place % 4, place / 4, z))
    })
}

fn fill(world: &WorldStore) {
    world.open_dimension("overworld", &origin()).unwrap();
    let mut batch = round(1);
    for (seed, pos) in (0..).zip(chunks()) {
        batch.chunks.insert((OVERWORLD, pos), chunk(seed));
        batch.tiles.insert((OVERWORLD, pos.column().tile()), [u16::MAX; 64]);
    }
    world.commit(&batch, Durability::Sync).unwrap();
}

/// A third of the groups stays hot.
fn move_to_tiers(world: &WorldStore) {
    let tier = |pos: ChunkPos| [None, Some(Tier::Warm), Some(Tier::Cold)][(pos.x / 4 % 4) as usize % 3];
    let groups: BTreeMap<_, _> =
        chunks().filter_map(|pos| Some((ChunkGroup::of(OVERWORLD, pos), tier(pos)?))).collect();
    let (moves, left) = world.move_groups(&groups.into_iter().collect::<Vec<_>>()).unwrap();
    assert!(moves.groups[1] > 0 && moves.groups[2] > 0 && left == 0, "{moves:?}");
}

/// All stored values.
fn contents(path: &Path) -> Vec<Vec<KeyValue>> {
    let store = RocksStore::open_to_read(&path.join("db")).unwrap();
    Family::ALL.map(|family| store.scan(family, &[]..&[0xff; 100], usize::MAX).unwrap()).into()
}

/// Returns `true` if opening or verifying the world tells of damage, or of lost unsynced writes.
fn is_named(path: &Path) -> bool {
    match WorldStore::open_existing(&StorageConfig::Path(path.into()), Access::Read) {
        Err(error) => {
            assert!(error.is_damage(), "{error}");
            true
        }
        Ok(world) => {
            let report = world.verify(|_| ControlFlow::Continue(())).unwrap();
            assert!(report.finished);
            !report.damage.is_empty() || world.lost_writes().is_some()
        }
    }
}

/// Flips bits in one file after the other, and restores each.
fn flip(path: &Path, flips: impl IntoIterator<Item = (PathBuf, usize, u8)>) -> u64 {
    let whole = contents(path);
    let mut named = 0;
    for (file, at, bit) in flips {
        let bytes = fs::read(&file).unwrap();
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << bit;
        fs::write(&file, &flipped).unwrap();
        match is_named(path) {
            true => named += 1,
            false => assert!(contents(path) == whole, "{} byte {at} bit {bit}", file.display()),
        }
        fs::write(&file, &bytes).unwrap();
    }
    assert!(!is_named(path) && contents(path) == whole);
    named
}

/// Random places. Each file is equally likely, regardless of its size.
fn anywhere(path: &Path, count: u64, seed: u64) -> Vec<(PathBuf, usize, u8)> {
    let files: Vec<_> = files(path).into_iter().filter(|(_, bytes)| !bytes.is_empty()).collect();
    let mut next = noise(seed);
    let mut below = |end: usize| (next() >> 20) as usize % end;
    let mut one = || {
        let (file, bytes) = &files[below(files.len())];
        (file.clone(), below(bytes.len()), below(8) as u8)
    };
    (0..count).map(|_| one()).collect()
}

/// `TERRANE_ROUNDS=10` flips 5,000 bits.
///
/// Promise, crashes: A world with a missing file, or other damage to its log, is refused, and the damage is named.
#[test]
fn each_flipped_bit_is_named_or_changes_no_value() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let world = open(&path("closed")).unwrap();
    fill(&world);
    copy_folder(&path("closed"), &path("fresh log"));
    drop(world);

    let world = open(&path("tiers")).unwrap();
    fill(&world);
    drop(world);
    let world = open(&path("tiers")).unwrap();
    move_to_tiers(&world);
    copy_folder(&path("tiers"), &path("killed"));
    drop(world);

    copy_folder(&path("tiers"), &path("compacted"));
    let world = open(&path("compacted")).unwrap();
    assert!(world.compact(|_| ControlFlow::Continue(())).unwrap().is_continue());
    drop(world);

    for (seed, state) in (1..).zip(["fresh log", "closed", "tiers", "killed", "compacted"]) {
        let count = rounds(100);
        let named = flip(&path(state), anywhere(&path(state), count, seed));
        println!("{state}: {named} of {count} flips are named");
        assert!(named * 4 > count, "{state}: {named}");
    }
}

/// Promise, tiers: A flipped bit in a RocksDB table of cold chunks hides none of them.
#[test]
fn no_flipped_bit_in_a_table_of_cold_chunks_hides_some_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world");
    let world = open(&path).unwrap();
    fill(&world);
    move_to_tiers(&world);
    assert!(world.compact(|_| ControlFlow::Continue(())).unwrap().is_continue());
    drop(world);
    let cold = |bytes: &[u8]| bytes.windows(7).any(|word| word == b"chunkl2");
    let mut tables =
        files(&path).into_iter().filter(|(file, bytes)| file.extension().is_some_and(|e| e == "sst") && cold(bytes));
    let (table, bytes) = tables.next().expect("a table of cold chunks");
    let step = (bytes.len() as u64 / rounds(150)).max(1) as usize;
    let flips: Vec<_> = (0..bytes.len()).step_by(step).map(|at| (table.clone(), at, (at / step % 8) as u8)).collect();
    let count = flips.len() as u64;
    let named = flip(&path, flips);
    println!("{named} of {count} flips are named");
    assert!(named * 10 > count * 8, "{named} of {count}");
}
