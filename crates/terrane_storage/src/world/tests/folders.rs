//! Opening folders, with a store in memory in place of their database.

use super::*;
use std::fs;
use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::process::{Command, Stdio};

fn without_wait() -> OpenWait<'static> {
    OpenWait::new(Duration::ZERO, |_| panic!("it waits"))
}

fn open(path: &Path, store: &TestStore) -> Result<WorldStore, WorldOpenError> {
    WorldStore::open_folder(path, &mut without_wait(), |database, create| {
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
        let error = WorldStore::open_folder(root.path(), &mut without_wait(), fail).unwrap_err();
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
        let locked = WorldStore::open_waiting(&config, &mut without_wait());
        assert!(matches!(locked, Err(WorldOpenError::Locked { process: Some(_), .. })));
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

/// Promise, crashes: Opening a world waits a moment for a process that is just ending, and says so.
#[test]
fn an_opening_waits_for_a_lock_that_is_released_a_moment_later() {
    let root = tempfile::tempdir().unwrap();
    let config = StorageConfig::Path(root.path().to_path_buf());
    drop(WorldStore::open(&config).unwrap());
    let mut openings: Vec<fn(&StorageConfig, &mut OpenWait<'_>) -> Result<WorldStore, WorldOpenError>> =
        vec![WorldStore::open_waiting];
    openings.push(|config, wait| WorldStore::open_existing_waiting(config, Access::Read, wait));
    openings.push(|config, wait| WorldStore::open_existing_waiting(config, Access::Write, wait));
    for open in openings {
        let (mut held, mut told) = (Some(WorldStore::open(&config).unwrap()), Vec::new());
        let mut stopped = OpenWait::new(Duration::MAX, |_| ControlFlow::Break(()));
        assert!(matches!(open(&config, &mut stopped), Err(WorldOpenError::Locked { .. })));
        let mut wait = OpenWait::new(Duration::MAX, |reason| {
            told.push(reason.to_owned());
            drop(held.take());
            ControlFlow::Continue(())
        });
        drop(open(&config, &mut wait).unwrap());
        drop(wait);
        assert!(told[0].contains(&format!("locked by process {}", std::process::id())), "{told:?}");
    }
}

/// The variable with the folder of the database for [`process_that_has_a_database_open`].
const DATABASE: &str = "TERRANE_TEST_DATABASE";

/// Not a test of its own: a process that has a database open until it is killed.
#[test]
fn process_that_has_a_database_open() {
    let Some(path) = std::env::var_os(DATABASE) else { return };
    let _store = RocksStore::open(Path::new(&path), false).unwrap();
    println!("\nopened");
    std::io::stdin().lines().next();
}

/// A process that ends may release its folder before its database.
#[test]
fn an_opening_waits_for_a_database_that_is_released_after_its_folder() {
    let root = tempfile::tempdir().unwrap();
    let (config, database) = (StorageConfig::Path(root.path().to_path_buf()), root.path().join("db"));
    drop(WorldStore::open(&config).unwrap());
    let is_in_use = |error: &WorldOpenError, by: &str| {
        assert!(matches!(error, WorldOpenError::Database { source: StoreError::InUse { .. }, .. }), "{error}");
        let text = error.to_string();
        assert!(error.is_in_use() && text.contains(by) && !text.contains("backup"), "{text}");
    };
    let mut held = Some(RocksStore::open(&database, false).unwrap());
    is_in_use(&WorldStore::open_waiting(&config, &mut without_wait()).unwrap_err(), "this process has it open");
    let mut wait = OpenWait::new(Duration::MAX, |_| {
        drop(held.take());
        ControlFlow::Continue(())
    });
    drop(WorldStore::open_waiting(&config, &mut wait).unwrap());

    let mut other = Command::new(std::env::current_exe().unwrap());
    other.args(["--exact", "world::tests::folders::process_that_has_a_database_open", "--nocapture"]);
    let mut other = other.env(DATABASE, &database).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "opened"));
    is_in_use(&WorldStore::open_waiting(&config, &mut without_wait()).unwrap_err(), "another process has it open");
    let mut wait = OpenWait::new(Duration::MAX, |_| {
        other.kill().unwrap();
        other.wait().unwrap();
        ControlFlow::Continue(())
    });
    drop(WorldStore::open_waiting(&config, &mut wait).unwrap());
}
