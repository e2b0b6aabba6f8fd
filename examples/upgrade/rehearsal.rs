//! A sample file for the upgrade.

use super::{Endings, Outcome, tell, upgrade_all};
use bevy_terrane::object_store::{ObjectBatch, ObjectStore, ObjectStoreError, ObjectStoreOptions};
use std::path::Path;

/// Upgrades a sample file, and shows a part of it before and after.
pub fn rehearse(endings: Endings<'_>, is_over: impl Fn() -> bool) -> Result<Outcome, ObjectStoreError> {
    let path = std::env::temp_dir().join(format!("upgrade-{}.objects", std::process::id()));
    let mut store = ObjectStore::create(&path, "a game's claims", ObjectStoreOptions::default())?;
    let mut batch = ObjectBatch::default();
    for x in -500..500 {
        batch.write(format!("chunk/{x},4,0/game:owner"), 3, *b"Ada");
    }
    batch.write("game:weather", 1, *b"rain");
    store.apply(&batch)?;
    store.close()?;
    let upgraded = show(&path)
        .and_then(|()| upgrade_all(&path, endings, is_over))
        .and_then(|outcome| show(&path).map(|()| outcome));
    // The file is removed whether the upgrade succeeded or not.
    let _ = std::fs::remove_file(&path);
    upgraded
}

fn show(path: &Path) -> Result<(), ObjectStoreError> {
    let store = ObjectStore::open_to_read(path, &ObjectStore::signature_of(path)?)?;
    for (key, version) in store.with_prefix("chunk/7,4,0/").chain(store.with_prefix("game:")) {
        let bytes = store.read(key)?.map_or(0, |object| object.data.len());
        tell::say(format_args!("{key}, version {version}: {bytes} bytes"));
    }
    Ok(())
}
