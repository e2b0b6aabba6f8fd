//! Damage in the database's own files.

use super::*;
use crate::support::folder::copy_folder;
use crate::support::rounds;
use bevy_terrane::storage::{StoreError, StoredItem};

/// The number of columns along each side of the world.
const SIDE: i64 = 16;

fn columns() -> impl Iterator<Item = ColumnPos> {
    (0..SIDE * SIDE).map(|number| ColumnPos::new(number % SIDE, number / SIDE))
}

fn seed(column: ColumnPos) -> u64 {
    (column.x + SIDE * column.z) as u64
}

/// A world with everything in tables.
fn make_world(path: &Path) {
    let world = open(path).unwrap();
    let chunks = columns().map(|column| ((OVERWORLD, column.chunk(0)), chunk(seed(column)))).collect();
    world.commit(&SaveBatch { chunks, ..round(1) }, Durability::Sync).unwrap();
}

fn load(world: &WorldStore, column: ColumnPos) -> Result<Arc<Chunk>, StoreError> {
    let mut loaded = world.load_batch(OVERWORLD, column.batch(), &[column], 0..1)?;
    Ok(loaded.remove(0).column.remove_chunk(0).expect("it is stored"))
}

/// Promise, crashes: A damaged table of the database loses only the keys of its damaged blocks.
#[test]
fn a_flipped_bit_in_a_table_loses_only_the_chunks_of_its_block() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world");
    make_world(&path);
    // The largest table has the chunks.
    let table = database_files(&path, "sst").pop().unwrap();
    let whole = fs::read(&table).unwrap();
    let flips = rounds(12);
    let (mut with_damage, mut refused) = (0, 0);
    for flip in 0..flips {
        let mut bytes = whole.clone();
        let at = bytes.len() * (2 * flip as usize + 1) / (2 * flips as usize);
        bytes[at] ^= 1 << (flip % 8);
        fs::write(&table, &bytes).unwrap();
        let world = match open(&path) {
            Ok(world) => world,
            Err(error) => {
                // The metadata of a table is at its end.
                assert!(matches!(error, WorldOpenError::Database { .. }), "{error}");
                refused += 1;
                continue;
            }
        };
        let mut damaged = Vec::new();
        for column in columns() {
            match load(&world, column) {
                Ok(found) => assert_eq!(found, chunk(seed(column)), "byte {at}: {column} is not what was saved"),
                Err(StoreError::Corrupt { what: StoredItem::Chunk(OVERWORLD, named), reason, .. }) => {
                    assert_eq!(named, column.chunk(0), "byte {at}");
                    assert!(reason.contains(table.file_name().unwrap().to_str().unwrap()), "{reason}");
                    damaged.push(column);
                }
                Err(error) => panic!("byte {at}: {error}"),
            }
        }
        // A block has 16 KiB, and a chunk 2.
        assert!(damaged.len() <= 9, "byte {at}: {damaged:?}");
        with_damage += u64::from(!damaged.is_empty());
        assert!(world.entity(Uuid::from_u128(5)).unwrap().is_some());
        // The world can still be saved, even over unreadable values.
        let Some(column) = damaged.first().copied() else { continue };
        let batch = SaveBatch { chunks: [((OVERWORLD, column.chunk(0)), chunk(seed(column)))].into(), ..round(1) };
        // Compacting the damaged table may fail at any time; then the commit is retried, as the storage thread does.
        let mut tries = (0..10).map(|_| world.commit(&batch, Durability::Sync));
        let report = tries.find_map(Result::ok).expect("it can be saved");
        assert!(report.replaced.iter().any(|error| matches!(error, StoreError::Damaged { .. })), "{report:?}");
        assert_eq!(load(&world, column), Ok(chunk(seed(column))));
    }
    assert!(with_damage * 4 > flips * 3, "of {flips} flips {with_damage} did damage, and {refused} the whole table");
    // No data was deleted: without the damage everything is readable.
    fs::write(&table, &whole).unwrap();
    let world = open(&path).unwrap();
    columns().for_each(|column| assert_eq!(load(&world, column), Ok(chunk(seed(column)))));
}

/// Promise, crashes: A damaged world is refused with an error that names the damage and its place.
#[test]
fn a_missing_file_is_reported_and_nothing_else_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world");
    make_world(&path);
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let is_needed = |name: &str| name == "CURRENT" || name.starts_with("MANIFEST") || name.ends_with(".sst");
    let needed: Vec<_> = files(&path).into_keys().filter(|path| is_needed(&name(path))).collect();
    assert!(needed.len() >= 5, "{needed:?}");
    for needed in needed {
        let copy = folder.path().join("copy");
        copy_folder(&path, &copy);
        let file = copy.join(needed.strip_prefix(&path).unwrap());
        fs::remove_file(&file).unwrap();
        let before = files(&copy);
        let error = open(&copy).expect_err(&name(&file));
        let WorldOpenError::Database { source: StoreError::DamagedFile { path: told, .. }, .. } = &error else {
            panic!("{}: {error}", name(&file));
        };
        assert_eq!(told, &file);
        assert!(error.to_string().contains("restore the world"), "{error}");
        let after = files(&copy);
        for (file, bytes) in &before {
            assert!(name(file) == "world.lock" || after.get(file) == Some(bytes), "{} was changed", name(file));
        }
        // The missing file can still be put back.
        fs::copy(&needed, &file).unwrap();
        let world = open(&copy).unwrap();
        columns().for_each(|column| assert_eq!(load(&world, column), Ok(chunk(seed(column)))));
        drop(world);
        fs::remove_dir_all(&copy).unwrap();
    }
}
