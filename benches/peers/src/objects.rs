//! An object store of this project.

use crate::{LEVEL, Store};
use bevy_terrane::object_store::{ObjectStore, ObjectStoreOptions};
use std::path::Path;

const SIGNATURE: &str = "benchmark 1";

/// An object store with default settings except for its syncs.
pub struct Objects(ObjectStore);

fn options(packs: bool) -> ObjectStoreOptions {
    ObjectStoreOptions { level: if packs { LEVEL } else { 0 }, sync: false, ..ObjectStoreOptions::default() }
}

impl Store for Objects {
    const NAME: &'static str = "object store";

    fn create(path: &Path, packs: bool) -> Self {
        Self(ObjectStore::create(path, SIGNATURE, options(packs)).expect("a new file"))
    }

    fn open(path: &Path, packs: bool) -> Self {
        Self(ObjectStore::open(path, SIGNATURE, options(packs)).expect("a store"))
    }

    fn write(&mut self, objects: &[(&str, &[u8])]) {
        for (key, data) in objects {
            self.0.write(key, 1, data).expect("the disk has room");
        }
        self.0.sync().expect("the disk works");
    }

    fn read(&mut self, key: &str) -> Vec<u8> {
        self.0.read(key).expect("it is whole").expect("it is there").data
    }

    fn close(self) {
        self.0.close().expect("the disk works");
    }
}
