//! Reclaiming the space of deleted data.

use super::RocksStore;
use crate::{Family, StoreError};
use rocksdb::{BottommostLevelCompaction, CompactOptions, WaitForCompactOptions};

/// The option for the part of the blob files, oldest first, from which garbage is collected.
const BLOB_AGE_CUTOFF: &str = "blob_garbage_collection_age_cutoff";
/// The value with which the families are opened.
const USUAL_AGE_CUTOFF: &str = "0.5";

impl RocksStore {
    /// Rewrites all files of a family. Deleting alone does not shrink a database: deleted data stays in its files until
    /// they are compacted, which takes long for old files.
    pub(super) fn compact_family(&self, family: Family) -> Result<(), StoreError> {
        self.expect_sound()?;
        self.with("compact", family, |database, handle| {
            database.flush_cf(handle)?;
            // Collects garbage from all blob files this time, not only from the older half.
            database.set_options_cf(handle, &[(BLOB_AGE_CUTOFF, "1.0")])?;
            let mut options = CompactOptions::default();
            // Otherwise files in the last level are not rewritten.
            options.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
            options.set_exclusive_manual_compaction(false);
            database.compact_range_cf_opt(handle, None::<&[u8]>, None::<&[u8]>, &options);
            database.set_options_cf(handle, &[(BLOB_AGE_CUTOFF, USUAL_AGE_CUTOFF)])?;
            // Errors are only reported here.
            database.wait_for_compact(&WaitForCompactOptions::default())
        })
    }
}
