//! A store on disk, with RocksDB: reading, writing, reclaiming space, and the number of entries to expect.

mod backups;
mod files;
mod log_file;
mod options;
pub(crate) mod remains;
mod reopening;
#[cfg(test)]
mod tests;

use crate::error::without_folder;
use crate::{
    Backup, Durability, Family, FamilySize, KeyValue, KeyValueStore, LostWrites, StoreError, WriteBatch, keys,
};
use options::{BLOCK_CACHE_BYTES, database_options, is_packed};
use reopening::{Database, Keeper};
use rocksdb::statistics::Ticker;
use rocksdb::{
    BottommostLevelCompaction, Cache, ColumnFamily, CompactOptions, DB, ErrorKind, ReadOptions, WaitForCompactOptions,
    WriteOptions, properties,
};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::num::NonZeroU32;
use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A property without a constant in the `rocksdb` crate.
const LIVE_BLOB_FILE_SIZE: &CStr = c"rocksdb.live-blob-file-size";

/// A [`KeyValueStore`] in a RocksDB database.
///
/// All families share one write-ahead log, so a batch over several of them is atomic. A damaged database is reported
/// and never repaired: RocksDB's repair may drop readable data.
///
/// On drop, all data is moved from the log into tables, and a list of the files is written, which the next opening
/// compares with the files that exist. After a kill the log is read instead, up to its torn end. After a loss of power, the
/// unsynced end of the log may have gaps: everything up to the first one is there, the rest is
/// [lost](KeyValueStore::lost_writes). If synced data is missing or damaged, the database is refused.
///
/// After a failed write, RocksDB refuses all others until it is reopened, even if the disk works again. So a thread
/// tries each second to reopen it until that succeeds; reads continue meanwhile if the disk can be read. If a damaged
/// table was the reason, tables are no longer compacted until the world is opened the next time. Nothing is written
/// while the path does not lead to the folder that was opened.
pub struct RocksStore {
    is_writable: bool,
    keeper: Arc<Keeper>,
    // Writes are serialized, so no other write happens between a precondition and its batch: no other process has the
    // database open.
    writing: Mutex<()>,
    /// Held during a backup: two backups in one folder would destroy each other.
    backing_up: Mutex<()>,
    lost: Option<LostWrites>,
}

impl RocksStore {
    /// Opens the database in the folder `path`, or creates one there if `create` is `true`.
    ///
    /// # Errors
    /// [`StoreError::DamagedFile`] for a missing or damaged file, and RocksDB's own errors as a [`StoreError::Backend`]
    /// that names the folder, for instance if the database is already open. Stored data is unchanged then.
    pub fn open(path: &Path, create: bool) -> Result<Self, StoreError> {
        let cache = Cache::new_lru_cache(BLOCK_CACHE_BYTES);
        Ok(Self::new(true, Keeper::open(path, create, database_options(create), cache)?))
    }

    /// Opens the database in the folder `path` without changing its files. The contents of its log are read into memory.
    ///
    /// # Errors
    /// The same as those of [`open`](Self::open). All writes are refused later.
    pub fn open_to_read(path: &Path) -> Result<Self, StoreError> {
        let cache = Cache::new_lru_cache(BLOCK_CACHE_BYTES);
        Ok(Self::new(false, Keeper::open_to_read(path, database_options(false), cache)?))
    }

    fn new(is_writable: bool, (keeper, lost): (Keeper, Option<LostWrites>)) -> Self {
        let (writing, backing_up) = Default::default();
        Self { is_writable, keeper: Arc::new(keeper), writing, backing_up, lost }
    }

    fn expect_sound(&self) -> Result<(), StoreError> {
        match self.is_writable {
            true => self.keeper.expect_sound(),
            false => Err(StoreError::NotWritable { path: self.path().to_path_buf() }),
        }
    }

    /// Runs an operation on the database and one of its families.
    fn with<T>(
        &self,
        operation: &'static str,
        family: Family,
        act: impl FnOnce(&DB, &ColumnFamily) -> Result<T, rocksdb::Error>,
    ) -> Result<T, StoreError> {
        let database = self.keeper.database();
        let database = database.get(self.path(), operation)?;
        act(database, self.family(database, operation, family)?).map_err(self.error(operation, Some(family)))
    }

    fn family<'a>(
        &self,
        database: &'a DB,
        operation: &'static str,
        family: Family,
    ) -> Result<&'a ColumnFamily, StoreError> {
        database.cf_handle(family.name()).ok_or_else(|| {
            let reason = "the database was opened without this column family";
            StoreError::backend(operation, Some(family), self.path(), reason)
        })
    }

    fn error(&self, operation: &'static str, family: Option<Family>) -> impl Fn(rocksdb::Error) -> StoreError {
        move |error| match (operation, family, error.kind()) {
            ("read" | "scan", Some(family), ErrorKind::Corruption) => {
                let reason = without_folder(error.as_ref(), self.path());
                StoreError::Damaged { family, path: self.path().to_path_buf(), reason }
            }
            (_, _, kind) => {
                let is_read = matches!(operation, "read" | "scan");
                let error = StoreError::backend(operation, family, self.path(), error);
                if is_read && kind == ErrorKind::IOError {
                    self.keeper.note_failed_read(&error);
                }
                error
            }
        }
    }

    /// Runs a write, and checks that it ended up in the right folder.
    fn change(
        &self,
        operation: &'static str,
        durability: Durability,
        change: impl FnOnce(&DB) -> Result<Result<(), rocksdb::Error>, StoreError>,
    ) -> Result<(), StoreError> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.expect_sound()?;
        let database = self.keeper.database();
        let Database::Whole(written, note) = &*database else { return Err(self.keeper.refusal()) };
        change(written)?.map_err(|error| {
            let kind = error.kind();
            let error = self.error(operation, None)(error);
            self.keeper.note_failed_write(&error, kind);
            error
        })?;
        let number = written.latest_sequence_number();
        if durability == Durability::Sync {
            // Otherwise, after a loss of power, the write would count as one that may be missing.
            note.note(number).map_err(|error| {
                let error = StoreError::backend("sync", None, self.path(), error.to_string());
                self.keeper.note_failed_write(&error, ErrorKind::IOError);
                error
            })?;
        }
        self.keeper.note_written(number)
    }
}

impl Drop for RocksStore {
    fn drop(&mut self) {
        self.keeper.close();
    }
}

/// Returns `true` if only a value in a blob file is damaged, and its parts have their own checksums. The table with its
/// location is whole.
fn has_finer_checksums(family: Family, error: &rocksdb::Error) -> bool {
    const OF_A_BLOB: [&str; 3] = [
        "Corruption: Blob CRC mismatch",
        "Corruption: Key mismatch when reading blob",
        "Corruption: Error while decoding blob",
    ];
    is_packed(family) && OF_A_BLOB.iter().any(|reason| error.as_ref().starts_with(reason))
}

/// Options to read without checksums. The result is not cached, since other reads would take it for checked.
fn unchecked() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_verify_checksums(false);
    options.fill_cache(false);
    options
}

/// The first entries of a range. A damaged value whose parts have their own checksums is returned as it is.
fn read_page(
    database: &DB,
    handle: &ColumnFamily,
    family: Family,
    range: Range<&[u8]>,
    (most_entries, most_bytes): (usize, usize),
    fills_cache: bool,
) -> Result<Vec<KeyValue>, rocksdb::Error> {
    let (mut page, mut bytes) = (Vec::<KeyValue>::new(), 0);
    // The reason for reading the next value without checksums.
    let mut failed = None;
    while !range.is_empty() {
        let mut options = if failed.is_some() { unchecked() } else { ReadOptions::default() };
        options.fill_cache(fills_cache && failed.is_none());
        options.set_iterate_upper_bound(range.end);
        let mut iterator = database.raw_iterator_cf_opt(handle, options);
        iterator.seek(page.last().map_or(range.start.to_vec(), |(last, _)| keys::after(last)));
        let before = page.len();
        while page.len() < most_entries
            && bytes < most_bytes
            && let Some((key, value)) = iterator.item()
        {
            bytes += key.len() + value.len();
            page.push((key.to_vec(), value.to_vec()));
            if failed.is_some() {
                break;
            }
            iterator.next();
        }
        // The unreadable entry is behind a full page.
        if !page.is_empty() && (page.len() >= most_entries || bytes >= most_bytes) {
            break;
        }
        match (failed.take(), iterator.status()) {
            (None, Ok(())) => break,
            (None, Err(error)) if has_finer_checksums(family, &error) => failed = Some(error),
            (Some(_), Ok(())) if page.len() > before => {}
            (Some(error), _) | (None, Err(error)) => return Err(error),
        }
    }
    Ok(page)
}

impl KeyValueStore for RocksStore {
    fn path(&self) -> &Path {
        &self.keeper.path
    }

    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.with("read", family, |database, handle| match database.get_cf(handle, key) {
            Err(error) if has_finer_checksums(family, &error) => {
                database.get_cf_opt(handle, key, &unchecked()).or(Err(error))
            }
            found => found,
        })
    }

    fn multi_get(&self, family: Family, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        // Only a single read can return a damaged value whose parts have their own checksums.
        if is_packed(family) {
            return keys.iter().map(|key| self.get(family, key)).collect();
        }
        self.with("read", family, |database, handle| {
            let values = database.batched_multi_get_cf(handle, keys.iter().copied(), keys.is_sorted());
            values.into_iter().map(|value| Ok(value?.map(|value| value.to_vec()))).collect()
        })
    }

    fn scan(&self, family: Family, range: Range<&[u8]>, limit: usize) -> Result<Vec<KeyValue>, StoreError> {
        self.with("scan", family, |database, handle| {
            read_page(database, handle, family, range, (limit, usize::MAX), true)
        })
    }

    fn scan_page(
        &self,
        family: Family,
        range: Range<&[u8]>,
        most_entries: usize,
        most_bytes: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        // A walk over everything must not evict the game's data from the cache.
        let limits = (most_entries, most_bytes);
        self.with("scan", family, |database, handle| read_page(database, handle, family, range, limits, false))
    }

    fn expected_entries(&self, family: Family) -> Result<Option<RangeInclusive<u64>>, StoreError> {
        if self.is_writable {
            return Ok(None);
        }
        self.with("measure", family, |database, handle| expected(database, handle, family).map(Some))
    }

    fn write(&self, batch: WriteBatch, durability: Durability) -> Result<(), StoreError> {
        self.change("write", durability, |database| {
            for required in batch.preconditions() {
                let handle = self.family(database, "read", required.family)?;
                let stored = database.get_pinned_cf(handle, &required.key);
                let stored = stored.map_err(self.error("read", Some(required.family)))?;
                required.require(stored.as_deref(), self.path())?;
            }
            let mut writes = rocksdb::WriteBatch::default();
            for change in batch.into_changes() {
                let handle = self.family(database, "write", change.family)?;
                match change.value {
                    Some(value) => writes.put_cf(handle, change.key, value),
                    None => writes.delete_cf(handle, change.key),
                }
            }
            let mut write_options = WriteOptions::default();
            write_options.set_sync(durability == Durability::Sync);
            Ok(database.write_opt(writes, &write_options))
        })
    }

    fn lost_writes(&self) -> Option<&LostWrites> {
        self.lost.as_ref()
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.change("sync", Durability::Sync, |database| Ok(database.flush_wal(true)))
    }

    fn written_bytes(&self) -> Option<u64> {
        // The bytes of flushes and compactions include blob files.
        let parts = [Ticker::WalFileBytes, Ticker::FlushWriteBytes, Ticker::CompactWriteBytes];
        Some(parts.into_iter().map(|part| self.keeper.options.get_ticker_count(part)).sum())
    }

    fn memory_bytes(&self) -> Option<u64> {
        let property = |family, name: &'static CStr| {
            let read = self.with("measure", family, |database, handle| database.property_int_value_cf(handle, name));
            read.ok().flatten()
        };
        // The families share one cache.
        let cache = property(Family::ALL[0], properties::BLOCK_CACHE_USAGE)?;
        let tables = |family| property(family, properties::CUR_SIZE_ALL_MEM_TABLES);
        Some(cache + Family::ALL.into_iter().map(tables).sum::<Option<u64>>()?)
    }

    fn approximate_family(&self, family: Family) -> Result<Option<FamilySize>, StoreError> {
        self.with("measure", family, |database, handle| {
            let property = |name: &CStr| Ok(database.property_int_value_cf(handle, name)?.unwrap_or(0));
            let parts = [properties::LIVE_SST_FILES_SIZE, LIVE_BLOB_FILE_SIZE, properties::CUR_SIZE_ALL_MEM_TABLES];
            let bytes = parts.into_iter().map(property).sum::<Result<u64, rocksdb::Error>>()?;
            Ok(Some(FamilySize { entries: property(properties::ESTIMATE_NUM_KEYS)?, bytes }))
        })
    }

    fn approximate_range_bytes(&self, family: Family, range: Range<&[u8]>) -> Result<Option<u64>, StoreError> {
        self.with("measure", family, |database, handle| {
            // The size of data in files, without the small part that is only in memory.
            let sizes = database.get_approximate_sizes_cf(handle, &[rocksdb::Range::new(range.start, range.end)]);
            Ok(sizes.first().copied())
        })
    }

    fn compact(&self, family: Family) -> Result<(), StoreError> {
        self.compact_family(family)
    }

    fn back_up(&self, folder: &Path, keep: Option<NonZeroU32>) -> Result<Backup, StoreError> {
        self.add_backup(folder, keep)
    }
}

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
