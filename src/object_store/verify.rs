//! Reading all of a store, to see whether it is whole.

use super::{Disk, ObjectStore, ObjectStoreError};
use crate::work::Progress;
use std::ops::ControlFlow;

/// An object that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedObject {
    /// Its key.
    pub key: String,
    /// What is wrong with it.
    pub error: ObjectStoreError,
}

impl<D: Disk> ObjectStore<D> {
    /// Reads every object, and gives those that cannot be read. `progress` hears how many of how many are done, and may break
    /// it off.
    pub fn verify(&self, mut progress: impl FnMut(&Progress) -> ControlFlow<()>) -> Vec<DamagedObject> {
        let mut damaged = Vec::new();
        for (done, (key, _)) in (1..).zip(self.entries_from(0)) {
            if let Err(error) = self.read(key) {
                damaged.push(DamagedObject { key: key.to_owned(), error });
            }
            if progress(&Progress::of(done, self.len() as u64)).is_break() {
                break;
            }
        }
        damaged
    }
}
