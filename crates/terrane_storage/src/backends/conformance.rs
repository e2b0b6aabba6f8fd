//! Tests that every [`KeyValueStore`] must pass. Run them in the tests of your own backend.
//!
//! ```
//! use terrane_storage::{
//!     Durability, Entry, Family, KeyValue, KeyValueStore, StoreError, WriteBatch, conformance,
//! };
//! use std::collections::BTreeMap;
//! use std::ops::Range;
//! use std::path::Path;
//! use std::sync::Mutex;
//!
//! /// A store of one map; a real one would be on disk, or at the other end of a network.
//! #[derive(Default)]
//! struct OneMap(Mutex<BTreeMap<(Family, Vec<u8>), Vec<u8>>>);
//!
//! impl KeyValueStore for OneMap {
//!     fn path(&self) -> &Path {
//!         Path::new("one map")
//!     }
//!
//!     fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
//!         Ok(self.0.lock().unwrap().get(&(family, key.to_vec())).cloned())
//!     }
//!
//!     fn multi_get(&self, family: Family, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
//!         keys.iter().map(|key| self.get(family, key)).collect()
//!     }
//!
//!     fn scan(&self, family: Family, range: Range<&[u8]>, limit: usize) -> Result<Vec<KeyValue>, StoreError> {
//!         let map = self.0.lock().unwrap();
//!         let found = map.iter().filter(|((of, key), _)| *of == family && range.contains(&&key[..]));
//!         Ok(found.take(limit).map(|((_, key), value)| (key.clone(), value.clone())).collect())
//!     }
//!
//!     fn write(&self, batch: WriteBatch, _durability: Durability) -> Result<(), StoreError> {
//!         let mut map = self.0.lock().unwrap();
//!         for required in batch.preconditions() {
//!             let stored = map.get(&(required.family, required.key.clone()));
//!             required.require(stored.map(Vec::as_slice), self.path())?;
//!         }
//!         for Entry { family, key, value } in batch.into_changes() {
//!             match value {
//!                 Some(value) => map.insert((family, key), value),
//!                 None => map.remove(&(family, key)),
//!             };
//!         }
//!         Ok(())
//!     }
//!
//!     fn sync(&self) -> Result<(), StoreError> {
//!         Ok(())
//!     }
//! }
//!
//! conformance::check(OneMap::default).unwrap();
//! ```

mod concurrency;
mod model;
mod rules;
#[cfg(test)]
mod tests;

use crate::{Durability, Family, KeyValue, KeyValueStore, WriteBatch};
use std::error::Error;

/// A rule that a store breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a store breaks the rule that {rule}: {what}")]
pub struct Violation {
    /// The rule.
    pub rule: &'static str,
    /// The store's wrong behaviour.
    pub what: String,
}

/// Checks every rule for reads and writes of an open store. `new_store` creates an empty store on each call.
///
/// On a disk this takes seconds, mostly in threads that read while others write. Random choices are the same in every
/// run, except for the timing of the threads.
///
/// # Errors
/// The first broken rule. Any error of the store itself breaks the rule that is being checked.
pub fn check<S: KeyValueStore>(mut new_store: impl FnMut() -> S) -> Result<(), Violation> {
    let rules: [(&'static str, fn(&S) -> Outcome); 14] = [
        ("an empty store has nothing in it", rules::an_empty_store_has_nothing_in_it),
        ("families are apart", rules::families_are_apart),
        ("any bytes are keys and values", rules::any_bytes_are_keys_and_values),
        ("values of megabytes come back", rules::large_values_come_back),
        ("several keys are read in their order", rules::several_keys_are_read_in_their_order),
        ("scans are ascending, half-open and limited", rules::scans_are_ascending_half_open_and_limited),
        ("a scan goes on behind its last key", rules::a_scan_goes_on_behind_its_last_key),
        ("a batch of reads answers each of them", rules::a_batch_of_reads_answers_each),
        ("a page ends after so many entries or bytes", rules::a_page_ends_after_so_many_entries_or_bytes),
        ("the later change of a key counts", rules::the_later_change_of_a_key_counts),
        ("a batch whose precondition fails changes nothing", rules::a_failed_precondition_changes_nothing),
        ("readers see whole batches", concurrency::readers_see_whole_batches),
        ("no write happens between a precondition and its batch", concurrency::no_write_in_between),
        ("it agrees with a plain map", model::agrees_with_a_plain_map),
    ];
    for (rule, check) in rules {
        check(&new_store()).map_err(|error| Violation { rule, what: error.to_string() })?;
    }
    Ok(())
}

/// Checks that written data is still there when a store is reopened. Each call of `open` opens the same store, which is
/// empty at first. The previous store is dropped before each call.
///
/// # Errors
/// The same as those of [`check`].
pub fn check_reopening<S: KeyValueStore>(mut open: impl FnMut() -> S) -> Result<(), Violation> {
    let rule = "what was written is there when it is opened again";
    let checked = (0..4_u8).try_for_each(|round| rules::what_was_written_is_there(&open(), round));
    checked.map_err(|error| Violation { rule, what: error.to_string() })
}

/// The result of a rule: an error is one of the store, or describes the store's wrong behaviour.
type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Outcome {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what} gave {found:?}, not {expected:?}").into()),
    }
}

fn put<S: KeyValueStore>(store: &S, entries: &[(Family, &[u8], &[u8])]) -> Outcome {
    let mut batch = WriteBatch::default();
    entries.iter().for_each(|(family, key, value)| batch.put(*family, *key, value.to_vec()));
    Ok(store.write(batch, Durability::Process)?)
}

/// All entries of a family whose keys begin with fewer than three bytes of 0xff.
fn contents<S: KeyValueStore>(store: &S, family: Family) -> Outcome<Vec<KeyValue>> {
    Ok(store.scan(family, &[]..&[0xff; 3], usize::MAX)?)
}

/// The next of a series of pseudo-random numbers, the same in every run.
fn noise(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32
}
