//! The expected number of entries of a family according to its tables. A walk that finds another number has missed some.

use crate::Family;
use rocksdb::{ColumnFamily, DB, properties};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::ops::RangeInclusive;

/// The minimum and maximum number of entries. Both are the same for a family that is in one table or compacted, and has
/// no deletions.
///
/// A key occurs only once in a table, and only once in all tables of a level, except for the first level. It may occur
/// in several of these. So the number of keys is at least the largest number in one of them, minus all deletions.
pub(super) fn expected(
    database: &DB,
    handle: &ColumnFamily,
    family: Family,
) -> Result<RangeInclusive<u64>, rocksdb::Error> {
    let property = |name: &CStr| Ok(database.property_int_value_cf(handle, name)?.unwrap_or(0));
    // Data in the log is also in memory.
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
