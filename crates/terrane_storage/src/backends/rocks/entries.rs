//! How many entries a family must have, as its tables say: a walk over it that comes to another number did not see all.

use crate::Family;
use rocksdb::{ColumnFamily, DB, properties};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::ops::RangeInclusive;

/// At least and at most so many. Both are the same number in a family that is in one table, or compacted, and has nothing deleted.
///
/// A key is only once in a table, and in all tables of a level but the first. It may be in several of those. So there are
/// at least as many keys as one of them has, but for those that are deleted elsewhere.
pub(super) fn expected(
    database: &DB,
    handle: &ColumnFamily,
    family: Family,
) -> Result<RangeInclusive<u64>, rocksdb::Error> {
    let property = |name: &CStr| Ok(database.property_int_value_cf(handle, name)?.unwrap_or(0));
    // What the log holds is in memory.
    let in_memory: [&CStr; 2] = [properties::NUM_ENTRIES_ACTIVE_MEM_TABLE, properties::NUM_ENTRIES_IMM_MEM_TABLES];
    let deleted_in_memory: [&CStr; 2] =
        [properties::NUM_DELETES_ACTIVE_MEM_TABLE, properties::NUM_DELETES_IMM_MEM_TABLES];
    let mut most = in_memory.into_iter().map(property).sum::<Result<u64, rocksdb::Error>>()?;
    let mut deletions = deleted_in_memory.into_iter().map(property).sum::<Result<u64, rocksdb::Error>>()?;
    let mut levels = BTreeMap::new();
    for (place, file) in database.live_files()?.into_iter().enumerate() {
        if file.column_family_name != family.name() {
            continue;
        }
        let entries = file.num_entries.saturating_sub(file.num_deletions);
        most += entries;
        deletions += file.num_deletions;
        // Tables of the first level overlap.
        let level = (file.level, if file.level == 0 { place } else { 0 });
        *levels.entry(level).or_insert(0) += entries;
    }
    let least = levels.into_values().max().unwrap_or(0).saturating_sub(deletions);
    Ok(least..=most)
}
