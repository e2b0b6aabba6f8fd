//! Byte-for-byte copies from one backend to another.

use super::{Damage, UpkeepError};
use crate::walk::{all_keys, walk};
use crate::work::Progress;
use crate::{Durability, Family, KeyValueStore, StoreError, WorldStore, WriteBatch, keys};
use std::ops::ControlFlow;

/// The most entries that are removed with one write, and the most bytes that are read for it.
const CLEARED_AT_ONCE: usize = 1_024;
const CLEARED_BYTES: usize = 1 << 20;

/// Copies everything from one store into another, which must be empty, and makes it durable there. Returns the copied amount.
///
/// After an error the other store holds a part of a world. It has no header, which is written last, so it cannot be opened.
/// Keys that begin with 256 bytes of 0xff are skipped; no world has such keys.
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
    let mut header = WriteBatch::default();
    header.require(Family::Meta, keys::HEADER, None);
    let (copied, finished) = walk(from, ranges, progress, |family, found| match found {
        Ok(page) => {
            let mut writes = WriteBatch::default();
            for (key, value) in page {
                let is_header = family == Family::Meta && key == keys::HEADER;
                let writes = if is_header { &mut header } else { &mut writes };
                writes.put(family, key.clone(), value.clone());
            }
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
    to.write(header, Durability::Sync)?;
    Ok(copied)
}

/// Copies a world into a store without a folder, which must be empty. The world's snapshots are not copied, since they
/// are files. If the copy is stopped or fails, what it has written is removed again, as far as the store allows.
///
/// # Errors
/// The same as those of [`copy_store`].
pub fn copy_world_into(
    from: &WorldStore,
    to: &dyn KeyValueStore,
    progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Progress, UpkeepError> {
    expect_empty(to)?;
    let copied = copy_store(&*from.store, to, progress);
    if copied.is_err() {
        // The error of the copy matters more.
        let _ = clear(to);
    }
    copied
}

fn clear(store: &dyn KeyValueStore) -> Result<(), StoreError> {
    for family in Family::ALL {
        let all = all_keys();
        loop {
            let page = store.scan_page(family, &all.start..&all.end, CLEARED_AT_ONCE, CLEARED_BYTES)?;
            if page.is_empty() {
                break;
            }
            let mut writes = WriteBatch::default();
            page.into_iter().for_each(|(key, _)| writes.delete(family, key));
            store.write(writes, Durability::Process)?;
        }
    }
    Ok(())
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
