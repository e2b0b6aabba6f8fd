//! Upgrading arbitrary keys. A batch writes the new objects and deletes the old ones, so each object exists exactly once,
//! even if the upgrade is killed.

use bevy_terrane::object_store::{MAX_KEY_BYTES, Object, ObjectBatch, ObjectStore, ObjectStoreError};
use serde::Serialize;
use std::fmt::{self, Display, Formatter};
use std::ops::ControlFlow;

/// The maximum number of objects in a batch, and the number of value bytes after which it is applied. They limit the work lost
/// when killed, and roughly the memory use.
const MAX_OBJECTS: usize = 256;
const MANY_BYTES: usize = 4 << 20;

/// The ending of the keys before and after the upgrade.
#[derive(Clone, Copy, Debug)]
pub struct Endings<'a> {
    from: &'a str,
    to: &'a str,
}

impl<'a> Endings<'a> {
    /// Checks the endings: upgraded keys must be distinguishable from old ones.
    pub fn new(from: &'a str, to: &'a str) -> Result<Self, String> {
        match from.is_empty() || to.ends_with(from) {
            true => Err(format!("keys that end with {to:?} would be upgraded again, for they end with {from:?}")),
            false => Ok(Self { from, to }),
        }
    }
}

/// The result of the upgrade.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The number of objects that were upgraded.
    pub upgraded: usize,
    /// The keys that were left unchanged, with the reason.
    pub left: Vec<(String, String)>,
    /// `true` if `progress` stopped the upgrade.
    pub stopped: bool,
}

impl Display for Outcome {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let how = if self.stopped { "stopped: " } else { "" };
        write!(f, "{how}{} objects were upgraded, {} stay as they are", self.upgraded, self.left.len())
    }
}

/// Upgrades all keys with the old ending. `progress` gets the number of finished objects and the total, and may stop the upgrade.
pub fn upgrade(
    store: &mut ObjectStore,
    Endings { from, to }: Endings<'_>,
    convert: impl Fn(&[u8]) -> Result<Vec<u8>, String>,
    mut progress: impl FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Outcome, ObjectStoreError> {
    let keys = store.with_prefix("").map(|(key, _)| key).filter(|key| key.ends_with(from));
    let keys: Vec<String> = keys.map(str::to_owned).collect();
    let (mut outcome, mut batch, mut bytes) = (Outcome::default(), ObjectBatch::default(), 0);
    for (done, key) in (1..).zip(&keys) {
        let new_key = [key.strip_suffix(from).unwrap_or(key), to].concat();
        match upgraded(store, key, &new_key, &convert)? {
            // The version counts changes of the object by the game, and this is none.
            Ok(Object { version, data }) => {
                bytes += data.len();
                batch.write(new_key, version, data).delete(key);
                outcome.upgraded += 1;
            }
            Err(reason) => outcome.left.push((key.clone(), reason)),
        }
        if batch.len() >= 2 * MAX_OBJECTS || bytes >= MANY_BYTES || done == keys.len() {
            store.apply(&batch)?;
            (batch, bytes) = (ObjectBatch::default(), 0);
            if progress(done, keys.len()).is_break() {
                outcome.stopped = done < keys.len();
                break;
            }
        }
    }
    Ok(outcome)
}

/// The upgraded object, or the reason why it is left unchanged. Damaged or conflicting objects do not stop the upgrade.
fn upgraded(
    store: &ObjectStore,
    key: &str,
    new_key: &str,
    convert: impl Fn(&[u8]) -> Result<Vec<u8>, String>,
) -> Result<Result<Object, String>, ObjectStoreError> {
    if store.contains(new_key) {
        return Ok(Err(format!("{new_key} is there already")));
    }
    if new_key.len() > MAX_KEY_BYTES {
        return Ok(Err(format!("the new key would have {} bytes", new_key.len())));
    }
    let object = match store.read(key) {
        Ok(object) => object.ok_or_else(|| "it is gone".to_owned()),
        Err(error @ ObjectStoreError::Damaged { .. }) => Err(error.to_string()),
        Err(error) => return Err(error),
    };
    Ok(object.and_then(|object| Ok(Object { data: convert(&object.data)?, ..object })))
}
