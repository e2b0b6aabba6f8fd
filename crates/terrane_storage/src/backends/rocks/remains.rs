//! The remains of a database that cannot be opened: its tables, blob files and logs under a new manifest.
//!
//! RocksDB opens a database by its manifest, which names every table, and refuses the database if one of them is missing or
//! damaged. RocksDB's repair drops all blob files. So the remaining files are linked into a scratch folder and get a new
//! manifest there. The resulting database is only opened for reading, and nothing in the damaged folder changes.
//!
//! All tables are put into level 0, like newly flushed ones, because the order of the levels is lost. Scans are still
//! correct: they merge the tables by the sequence numbers of their entries. A point read takes the first table that has
//! the key, which may be outdated. So single keys are read by scans, too.

mod manifest;
mod table;
#[cfg(test)]
mod tests;

use super::RocksStore;
use super::files::{self, LostFile, link};
use super::options::{BLOCK_CACHE_BYTES, database_options};
use super::reopening::{self, Keeper};
use crate::work::{FileError, if_exists};
use crate::{Durability, Family, KeyValue, KeyValueStore, StoreError, WriteBatch, keys};
use manifest::Blobs;
use rocksdb::{Cache, DBRecoveryMode, Options};
use std::cmp::Reverse;
use std::fs;
use std::io;
use std::mem;
use std::ops::Range;
use std::path::{Path, PathBuf};
use table::{DEFAULT_FAMILY, Table};

/// A readable database built from the remains of another. Dropping it removes the scratch folder.
pub(crate) struct Remains {
    store: RocksStore,
    scratch: PathBuf,
}

struct Files {
    folder: PathBuf,
    /// All families by number. Logs and blob files contain the numbers, and tables the names.
    families: Vec<(u32, &'static str)>,
    tables: Vec<Table>,
    blobs: Vec<Blobs>,
    logs: Vec<u64>,
    lost: Vec<LostFile>,
}

impl Remains {
    /// Opens the remains of a database in a folder. `scratch` is a folder that is created for it.
    ///
    /// # Errors
    /// An error of the system, or nothing remains.
    pub fn open(folder: &Path, scratch: &Path) -> Result<(Self, Vec<LostFile>), StoreError> {
        let failed = |error: FileError| StoreError::backend("open", None, folder, error.to_string());
        let mut left = Files::find(folder).map_err(failed)?;
        let mut options = database_options(false);
        // All readable records of a log count, even behind damage. The manifest names no log.
        options.set_wal_recovery_mode(DBRecoveryMode::SkipAnyCorruptedRecord);
        options.set_track_and_verify_wals_in_manifest(false);
        let cache = Cache::new_lru_cache(BLOCK_CACHE_BYTES);
        let whole = scratch.join("whole");
        let mut database = left.open(&whole, &options, &cache);
        if database.is_err() {
            left.leave_out_damaged(&scratch.join("one"), &options, &cache);
            database = left.open(&whole, &options, &cache);
        }
        if let Err(error) = &database
            && !left.logs.is_empty()
        {
            left.leave_out_logs(error);
            database = left.open(&whole, &options, &cache);
        }
        if left.tables.is_empty() && left.logs.is_empty() {
            let reason = "no table and no log that could be read is left of it";
            return Err(StoreError::backend("open", None, folder, reason));
        }
        left.lost.extend(files::missing(&left.folder));
        let store = RocksStore::new(false, (Keeper::to_read(folder, options, cache, database?), None));
        Ok((Self { store, scratch: scratch.to_path_buf() }, left.lost))
    }
}

impl Drop for Remains {
    fn drop(&mut self) {
        // It contains only links and a manifest. Open ones can be removed too, or stay until the new world is finished.
        let _ = fs::remove_dir_all(&self.scratch);
    }
}

impl Files {
    fn find(folder: &Path) -> Result<Self, FileError> {
        let folder = std::path::absolute(folder).map_err(FileError::of(folder, "find"))?;
        let (families, tables, blobs, logs, lost) = Default::default();
        let mut files = Self { folder, families, tables, blobs, logs, lost };
        let failed = FileError::of(&files.folder, "read");
        for entry in fs::read_dir(&files.folder).map_err(&failed)? {
            let path = entry.map_err(&failed)?.path();
            let number = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
            let (Some(number), Some(kind)) = (number, path.extension().and_then(|kind| kind.to_str())) else {
                continue;
            };
            let found = match kind {
                "sst" => Table::read(&path, number).map(|table| files.tables.push(table)),
                "blob" => Blobs::read(&path, number).map(|blobs| files.blobs.push(blobs)),
                "log" => {
                    files.logs.push(number);
                    Ok(())
                }
                _ => Ok(()),
            };
            if let Err(error) = found {
                files.lost.push((path, error.to_string()));
            }
        }
        files.lost.sort_unstable();
        files.families = numbered(&files.tables);
        Ok(files)
    }

    /// Puts the files together in a new folder, and opens them as a database.
    fn open(&self, scratch: &Path, options: &Options, cache: &Cache) -> Result<rocksdb::DB, StoreError> {
        let put_together = || {
            if_exists(fs::remove_dir_all(scratch))?;
            fs::create_dir_all(scratch)?;
            let tables = self.tables.iter().map(|table| (table.number, "sst"));
            let blobs = self.blobs.iter().map(|blobs| (blobs.number, "blob"));
            let logs = self.logs.iter().map(|number| (*number, "log"));
            for (number, kind) in tables.chain(blobs).chain(logs) {
                let name = format!("{number:06}.{kind}");
                link(&self.folder.join(&name), &scratch.join(&name))?;
            }
            Ok::<_, io::Error>(())
        };
        put_together().map_err(FileError::of(scratch, "fill")).map_err(in_scratch(scratch))?;
        let manifest = manifest::encode(&self.families, &self.tables, &self.blobs);
        let write = |name: &str, bytes: &[u8]| {
            let path = scratch.join(name);
            fs::write(&path, bytes).map_err(FileError::of(&path, "write")).map_err(in_scratch(scratch))
        };
        write("MANIFEST-000001", &manifest)?;
        write("CURRENT", b"MANIFEST-000001\n")?;
        reopening::open_to_read(scratch, None, options, cache)
    }

    /// Tries each table separately: one damaged table would prevent all from being opened.
    fn leave_out_damaged(&mut self, scratch: &Path, options: &Options, cache: &Cache) {
        let (folder, families) = (self.folder.clone(), self.families.clone());
        let (tables, blobs, logs, lost) = Default::default();
        let mut alone = Self { folder, families, tables, blobs, logs, lost };
        for table in mem::take(&mut self.tables) {
            alone.tables = vec![table];
            match alone.open(scratch, options, cache) {
                Ok(_) => self.tables.append(&mut alone.tables),
                Err(error) => {
                    let path = self.folder.join(format!("{:06}.sst", alone.tables[0].number));
                    self.lost.push((path, reason_of(&error)));
                }
            }
        }
        // The family in a damaged table must not count.
        self.families = numbered(&self.tables);
    }

    fn leave_out_logs(&mut self, error: &StoreError) {
        for number in self.logs.drain(..) {
            let path = self.folder.join(format!("{number:06}.log"));
            self.lost.push((path, reason_of(error)));
        }
    }
}

/// The families by number: those of a new database, unless most of the tables have others. A single table may be
/// damaged, so it does not outvote the usual number.
fn numbered(tables: &[Table]) -> Vec<(u32, &'static str)> {
    let usual: Vec<(u32, &'static str)> = (1..).zip(Family::ALL.map(Family::name)).collect();
    let votes = |family: &(u32, &'static str)| {
        let is_usual = usual.contains(family);
        let tables = tables.iter().filter(|table| (table.family, &*table.family_name) == *family);
        (tables.count() + usize::from(is_usual), is_usual)
    };
    let numbers = 1..=usual.len() as u32;
    let mut possible: Vec<_> = numbers.flat_map(|number| Family::ALL.map(|family| (number, family.name()))).collect();
    possible.sort_by_cached_key(|family| Reverse(votes(family)));
    let mut families = vec![DEFAULT_FAMILY];
    for (number, name) in possible {
        if families.iter().all(|(other, of)| *other != number && *of != name) {
            families.push((number, name));
        }
    }
    families
}

/// RocksDB's message without the path, which is in the scratch folder.
fn reason_of(error: &StoreError) -> String {
    match error {
        StoreError::Backend { reason, .. } => reason.clone(),
        error => error.to_string(),
    }
}

fn in_scratch(scratch: &Path) -> impl Fn(FileError) -> StoreError {
    move |error| StoreError::backend("open", None, scratch, error.to_string())
}

impl KeyValueStore for Remains {
    fn path(&self) -> &Path {
        self.store.path()
    }

    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let found = self.store.scan(family, key..&keys::after(key), 1)?.pop();
        Ok(found.map(|(_, value)| value))
    }

    fn multi_get(&self, family: Family, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        keys.iter().map(|key| self.get(family, key)).collect()
    }

    fn scan(&self, family: Family, range: Range<&[u8]>, limit: usize) -> Result<Vec<KeyValue>, StoreError> {
        self.store.scan(family, range, limit)
    }

    fn scan_page(
        &self,
        family: Family,
        range: Range<&[u8]>,
        most_entries: usize,
        most_bytes: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        self.store.scan_page(family, range, most_entries, most_bytes)
    }

    fn write(&self, _: WriteBatch, _: Durability) -> Result<(), StoreError> {
        Err(StoreError::NotWritable { path: self.path().to_path_buf() })
    }

    fn sync(&self) -> Result<(), StoreError> {
        Err(StoreError::NotWritable { path: self.path().to_path_buf() })
    }

    fn approximate_range_bytes(&self, family: Family, range: Range<&[u8]>) -> Result<Option<u64>, StoreError> {
        self.store.approximate_range_bytes(family, range)
    }
}
