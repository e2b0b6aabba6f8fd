//! Byte-for-byte copies from one backend to another.

use super::{Damage, UpkeepError};
use crate::walk::{all_keys, walk};
use crate::work::Progress;
use crate::{Durability, Family, KeyValueStore, StoreError, WriteBatch};
use std::ops::ControlFlow;

/// Copies everything from one store into another, which must be empty, and makes it durable there. Returns the copied amount.
///
/// After an error the other store holds a part of a world and must not be opened. Keys that begin with 256 bytes of
/// 0xff are skipped; no world has such keys.
///
/// # Errors
/// [`UpkeepError::NotEmpty`], [`UpkeepError::Cancelled`], or an error of a store. Unreadable data is an error too;
/// [salvage](super::salvage) skips it.
pub fn copy_store(
    from: &dyn KeyValueStore,
    to: &dyn KeyValueStore,
    progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Progress, UpkeepError> {
    expect_empty(to)?;
    let ranges = Family::ALL.map(|family| (family, all_keys()));
    let (copied, finished) = walk(from, ranges, progress, |family, found| match found {
        Ok(page) => {
            let mut writes = WriteBatch::default();
            page.iter().for_each(|(key, value)| writes.put(family, key.clone(), value.clone()));
            Ok(to.write(writes, Durability::Process)?)
        }
        Err((keys, reason)) => {
            let (path, reason) = (from.path().to_path_buf(), Damage::Unreadable { family, keys, reason }.to_string());
            Err(UpkeepError::Store(StoreError::Damaged { family, path, reason }))
        }
    })?;
    if !finished {
        return Err(UpkeepError::Cancelled);
    }
    to.sync()?;
    Ok(copied)
}

/// Two worlds must not be mixed.
pub(super) fn expect_empty(store: &dyn KeyValueStore) -> Result<(), UpkeepError> {
    for family in Family::ALL {
        let all = all_keys();
        if !store.scan(family, &all.start..&all.end, 1)?.is_empty() {
            return Err(UpkeepError::NotEmpty { path: store.path().to_path_buf() });
        }
    }
    Ok(())
}
