//! Upgrades a game's own objects in an export: all keys of one ending become keys of another, with new values.
//!
//! The game has kept with a chunk who claimed it, `chunk/x,y,z/game:owner`, the bytes of a name. Its next version wants to know on
//! which day too, and calls that `chunk/x,y,z/game:claim`: a `u32`, little-endian, and the name.
//!
//! ```sh
//! cargo run --example upgrade                    # makes a file to show it with
//! cargo run --example upgrade -- world.objects   # the first file of an export, and those that belong to it
//! ```
//!
//! Each batch is one change: whenever it is killed, every object is an old one or a new one, and the next run does the rest.

use bevy_terrane::object_store::{Batch, ObjectStore, ObjectStoreError, ObjectStoreOptions};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const OLD: &str = "/game:owner";
const NEW: &str = "/game:claim";
/// Objects of one change.
const AT_ONCE: usize = 256;

fn main() -> ExitCode {
    let upgraded = match std::env::args_os().nth(1) {
        Some(path) => upgrade_all(Path::new(&path)),
        None => rehearse(),
    };
    match upgraded {
        Ok(count) => {
            println!("{count} objects were upgraded");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Upgrades all files of an export. Gives how many objects there were.
pub fn upgrade_all(first: &Path) -> Result<usize, ObjectStoreError> {
    let path = |number: u32| match number {
        1 => first.to_path_buf(),
        number => PathBuf::from(format!("{}.{number}", first.display())),
    };
    // The first one must be there.
    let files = (1..).map(path).take_while(|path| path == first || path.exists());
    files.map(|path| upgrade(&path, OLD, NEW, claim_of_today)).sum()
}

/// Gives all objects whose keys end in `old` the ending `new`, and new values. The versions stay: they count changes of the
/// object, not of its form.
fn upgrade(path: &Path, old: &str, new: &str, value: impl Fn(&[u8]) -> Vec<u8>) -> Result<usize, ObjectStoreError> {
    // Whatever kind of object store it is.
    let signature = ObjectStore::signature_of(path)?;
    let mut store = ObjectStore::open(path, &signature, ObjectStoreOptions::default())?;
    let keys: Vec<String> =
        store.entries_from(0).map(|(key, _)| key.to_owned()).filter(|key| key.ends_with(old)).collect();
    for keys in keys.chunks(AT_ONCE) {
        let mut batch = Batch::default();
        for key in keys {
            let Some(object) = store.read(key)? else { continue };
            let place = key.strip_suffix(old).unwrap_or(key);
            batch.write(format!("{place}{new}"), object.version, value(&object.data));
            batch.delete(key);
        }
        store.apply(&batch)?;
    }
    store.close()?;
    Ok(keys.len())
}

/// Of older claims nobody knows the day.
fn claim_of_today(owner: &[u8]) -> Vec<u8> {
    [&0_u32.to_le_bytes()[..], owner].concat()
}

/// Upgrades a file that is made for it, and shows a part of it before and after.
fn rehearse() -> Result<usize, ObjectStoreError> {
    let path = std::env::temp_dir().join(format!("upgrade-{}.objects", std::process::id()));
    let mut store = ObjectStore::create(&path, "a game's claims", ObjectStoreOptions::default())?;
    let mut batch = Batch::default();
    for x in -500..500 {
        batch.write(format!("chunk/{x},4,0/game:owner"), 3, *b"Ada");
    }
    batch.write("game:weather", 1, *b"rain");
    store.apply(&batch)?;
    store.close()?;
    let upgraded = show(&path).and_then(|()| upgrade_all(&path)).and_then(|count| show(&path).map(|()| count));
    // It is not needed any more, whatever became of it.
    let _ = std::fs::remove_file(&path);
    upgraded
}

fn show(path: &Path) -> Result<(), ObjectStoreError> {
    let store = ObjectStore::open_to_read(path, &ObjectStore::signature_of(path)?)?;
    for (key, version) in store.with_prefix("chunk/7,4,0/").chain(store.with_prefix("game:")) {
        let bytes = store.read(key)?.map_or(0, |object| object.data.len());
        println!("{key}, version {version}: {bytes} bytes");
    }
    Ok(())
}
