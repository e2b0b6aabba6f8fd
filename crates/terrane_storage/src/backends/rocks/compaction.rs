//! Giving back the room of what was deleted.

use super::RocksStore;
use crate::{Family, StoreError};
use rocksdb::{BottommostLevelCompaction, CompactOptions, WaitForCompactOptions};

/// The option for which part of the blob files, the oldest first, is collected.
const BLOB_AGE_CUTOFF: &str = "blob_garbage_collection_age_cutoff";
/// As the families are opened with.
const USUAL_AGE_CUTOFF: &str = "0.5";

impl RocksStore {
    /// Writes all files of a family anew. Deleting alone does not shrink a database: what was deleted stays in its files
    /// until they are compacted, and in old ones for long.
    pub(super) fn compact_family(&self, family: Family) -> Result<(), StoreError> {
        self.expect_sound()?;
        self.with("compact", family, |database, handle| {
            database.flush_cf(handle)?;
            // For once all blob files give up what is garbage in them, not only the older half.
            database.set_options_cf(handle, &[(BLOB_AGE_CUTOFF, "1.0")])?;
            let mut options = CompactOptions::default();
            // Otherwise files that are in the last level already stay as they are.
            options.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
            options.set_exclusive_manual_compaction(false);
            database.compact_range_cf_opt(handle, None::<&[u8]>, None::<&[u8]>, &options);
            database.set_options_cf(handle, &[(BLOB_AGE_CUTOFF, USUAL_AGE_CUTOFF)])?;
            // Whether it failed is not said before.
            database.wait_for_compact(&WaitForCompactOptions::default())
        })
    }
}
