//! A store on disk: RocksDB.

use super::{Durability, Family, FamilySize, KeyValue, KeyValueStore, Operation, StoreError, WriteBatch};
use rocksdb::{
    BlockBasedOptions, BottommostLevelCompaction, Cache, ColumnFamily, ColumnFamilyDescriptor, CompactOptions, DB,
    DBCompressionType, ErrorKind, Options, ReadOptions, WriteOptions, properties,
};
use std::ffi::CStr;
use std::ops::Range;
use std::path::Path;

const MEBIBYTE: usize = 1 << 20;
/// One cache for the blocks of all families.
const BLOCK_CACHE_BYTES: usize = 128 * MEBIBYTE;
/// Measured with terrain: 16K blocks compress a seventh better than 4K for twice the time of a point read, and
/// most reads here are ranges.
const BLOCK_BYTES: usize = 16 * 1024;
/// A small limit flushes small files all the time and nearly doubles the bytes written.
const WAL_BYTES: u64 = 192 * MEBIBYTE as u64;
const ZSTD_LEVEL: i32 = 1;
/// Not among the crate's names of properties.
const LIVE_BLOB_FILE_SIZE: &CStr = c"rocksdb.live-blob-file-size";

/// A [`KeyValueStore`] in a RocksDB database.
///
/// All families share one write-ahead log, so a batch over several of them is atomic. A damaged database is reported
/// and never repaired: RocksDB's repair may drop data that could still be read.
pub struct RocksStore {
    database: DB,
}

impl RocksStore {
    /// Opens the database in the folder `path`, or makes one there if `create`.
    pub fn open(path: &Path, create: bool) -> Result<Self, StoreError> {
        let cache = Cache::new_lru_cache(BLOCK_CACHE_BYTES);
        let families =
            Family::ALL.map(|family| ColumnFamilyDescriptor::new(family.name(), family_options(family, &cache)));
        let database = DB::open_cf_descriptors(&database_options(create), path, families).map_err(|error| {
            StoreError::Backend {
                operation: Operation::Open,
                family: None,
                path: path.to_path_buf(),
                reason: error.into_string(),
            }
        })?;
        Ok(Self { database })
    }

    /// Gives the room back that deleted and replaced values still take, as far as the settings of each family allow. That takes
    /// as long as it takes to write everything anew.
    pub fn compact(&self) -> Result<(), StoreError> {
        let mut options = CompactOptions::default();
        options.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
        for family in Family::ALL {
            let handle = self.family(Operation::Write, family)?;
            self.database.flush_cf(handle).map_err(self.error(Operation::Write, Some(family)))?;
            self.database.compact_range_cf_opt(handle, None::<&[u8]>, None::<&[u8]>, &options);
        }
        Ok(())
    }

    fn family(&self, operation: Operation, family: Family) -> Result<&ColumnFamily, StoreError> {
        self.database.cf_handle(family.name()).ok_or_else(|| StoreError::Backend {
            operation,
            family: Some(family),
            path: self.path().to_path_buf(),
            reason: "the database was opened without this column family".into(),
        })
    }

    fn family_bytes(&self, family: Family, handle: &ColumnFamily) -> Result<u64, StoreError> {
        let parts = [properties::LIVE_SST_FILES_SIZE, LIVE_BLOB_FILE_SIZE, properties::CUR_SIZE_ALL_MEM_TABLES];
        parts.into_iter().map(|part| self.property(family, handle, part)).sum()
    }

    fn property(&self, family: Family, handle: &ColumnFamily, name: &CStr) -> Result<u64, StoreError> {
        let value = self.database.property_int_value_cf(handle, name);
        Ok(value.map_err(self.error(Operation::Measure, Some(family)))?.unwrap_or(0))
    }

    fn error(&self, operation: Operation, family: Option<Family>) -> impl Fn(rocksdb::Error) -> StoreError {
        move |error| StoreError::Backend {
            operation,
            family,
            path: self.path().to_path_buf(),
            reason: error.into_string(),
        }
    }
}

fn database_options(create: bool) -> Options {
    let mut options = Options::default();
    options.create_if_missing(create);
    options.create_missing_column_families(true);
    options.set_paranoid_checks(true);
    options.set_max_background_jobs(2);
    options.set_max_total_wal_size(WAL_BYTES);
    // Spreads the writing of large files out, so that a sync does not wait for all of it at once.
    options.set_bytes_per_sync(MEBIBYTE as u64);
    options.set_keep_log_file_num(4);
    options.set_max_log_file_size(4 * MEBIBYTE);
    options
}

/// From which size on values are kept in files of their own, which compactions need not copy. A chunk is 2 KB, and takes more
/// room there than among others; a library that a player built may be megabytes.
const fn least_blob_bytes(family: Family) -> u64 {
    match family {
        Family::WarmChunks => 16 << 10,
        Family::ColdChunks => 4 << 10,
        _ => 64 << 10,
    }
}

/// Whether the values are compressed and checksummed part by part before they come here.
const fn is_packed(family: Family) -> bool {
    matches!(family, Family::WarmChunks | Family::ColdChunks)
}

fn family_options(family: Family, cache: &Cache) -> Options {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(cache);
    table.set_block_size(BLOCK_BYTES);
    table.set_bloom_filter(10.0, false);
    table.set_cache_index_and_filter_blocks(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);

    let mut options = Options::default();
    options.set_block_based_table_factory(&table);
    options.set_write_buffer_size(32 * MEBIBYTE);
    if matches!(family, Family::Chunks | Family::WarmChunks | Family::ColdChunks) {
        options.set_enable_blob_files(true);
        options.set_min_blob_size(least_blob_bytes(family));
        // Measured: with the defaults, files that are mostly garbage stay for long; a threshold of 0 never comes to an end.
        options.set_enable_blob_gc(true);
        options.set_blob_gc_age_cutoff(0.5);
        options.set_blob_gc_force_threshold(0.5);
    }
    if is_packed(family) {
        // Compressed once more they would not shrink, and a flipped bit would damage more than one of their parts.
        options.set_compression_type(DBCompressionType::None);
        options.set_blob_compression_type(DBCompressionType::None);
        return options;
    }
    options.set_blob_compression_type(DBCompressionType::Zstd);
    options.set_compression_type(DBCompressionType::Zstd);
    // Of a small world the first levels are all there is.
    options.set_bottommost_compression_type(DBCompressionType::Zstd);
    // The other three are the defaults: window bits and strategy of zlib, no dictionary (no gain was measured).
    options.set_compression_options(-14, ZSTD_LEVEL, 0, 0);
    // The first levels are soon written again.
    options.set_compression_per_level(&[
        DBCompressionType::Lz4,
        DBCompressionType::Lz4,
        DBCompressionType::Zstd,
        DBCompressionType::Zstd,
        DBCompressionType::Zstd,
        DBCompressionType::Zstd,
        DBCompressionType::Zstd,
    ]);
    options
}

impl KeyValueStore for RocksStore {
    fn path(&self) -> &Path {
        self.database.path()
    }

    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let handle = self.family(Operation::Read, family)?;
        let found = self.database.get_cf(handle, key);
        if let Err(error) = &found
            && error.kind() == ErrorKind::Corruption
            && is_packed(family)
        {
            // The checksum is of the whole value. With those of its parts most of it can still be used.
            let mut unchecked = ReadOptions::default();
            unchecked.set_verify_checksums(false);
            if let Ok(Some(value)) = self.database.get_cf_opt(handle, key, &unchecked) {
                return Ok(Some(value));
            }
        }
        found.map_err(self.error(Operation::Read, Some(family)))
    }

    fn multi_get(&self, family: Family, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let handle = self.family(Operation::Read, family)?;
        let values = self.database.batched_multi_get_cf(handle, keys.iter().copied(), keys.is_sorted());
        let values = values.into_iter().map(|value| Ok(value?.map(|value| value.to_vec())));
        values.collect::<Result<_, rocksdb::Error>>().map_err(self.error(Operation::Read, Some(family)))
    }

    fn scan(&self, family: Family, range: Range<&[u8]>, limit: usize) -> Result<Vec<KeyValue>, StoreError> {
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let handle = self.family(Operation::Scan, family)?;
        let mut read_options = ReadOptions::default();
        read_options.set_iterate_upper_bound(range.end);
        let mut iterator = self.database.raw_iterator_cf_opt(handle, read_options);
        let mut entries = Vec::new();
        iterator.seek(range.start);
        while entries.len() < limit
            && let Some((key, value)) = iterator.item()
        {
            entries.push((key.to_vec(), value.to_vec()));
            iterator.next();
        }
        // An iterator also ends where the data cannot be read.
        iterator.status().map_err(self.error(Operation::Scan, Some(family)))?;
        Ok(entries)
    }

    fn write(&self, batch: WriteBatch, durability: Durability) -> Result<(), StoreError> {
        let mut writes = rocksdb::WriteBatch::default();
        for change in batch.into_changes() {
            let handle = self.family(Operation::Write, change.family)?;
            match change.value {
                Some(value) => writes.put_cf(handle, change.key, value),
                None => writes.delete_cf(handle, change.key),
            }
        }
        let mut write_options = WriteOptions::default();
        write_options.set_sync(durability == Durability::Sync);
        self.database.write_opt(writes, &write_options).map_err(self.error(Operation::Write, None))
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.database.flush_wal(true).map_err(self.error(Operation::Sync, None))
    }

    fn approximate_bytes(&self) -> Result<u64, StoreError> {
        let mut bytes = 0_u64;
        for family in Family::ALL {
            let handle = self.family(Operation::Measure, family)?;
            bytes = bytes.saturating_add(self.family_bytes(family, handle)?);
        }
        Ok(bytes)
    }

    fn approximate_family(&self, family: Family) -> Result<Option<FamilySize>, StoreError> {
        let handle = self.family(Operation::Measure, family)?;
        let entries = self.property(family, handle, properties::ESTIMATE_NUM_KEYS)?;
        Ok(Some(FamilySize { entries, bytes: self.family_bytes(family, handle)? }))
    }

    fn approximate_range_bytes(&self, family: Family, range: Range<&[u8]>) -> Result<Option<u64>, StoreError> {
        let handle = self.family(Operation::Measure, family)?;
        // Of what is in files; the little that is in memory alone is left out.
        let sizes = self.database.get_approximate_sizes_cf(handle, &[rocksdb::Range::new(range.start, range.end)]);
        Ok(sizes.first().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance;
    use super::*;
    use std::fs;

    #[test]
    fn conforms() {
        let folder = tempfile::tempdir().unwrap();
        let mut count = 0;
        conformance::check(|| {
            count += 1;
            RocksStore::open(&folder.path().join(count.to_string()), true).unwrap()
        });
    }

    #[test]
    fn what_was_written_is_there_after_opening_again() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..3_u8 {
            let store = RocksStore::open(folder.path(), round == 0).unwrap();
            for earlier in 0..round {
                for family in Family::ALL {
                    assert_eq!(store.get(family, &[earlier]).unwrap(), Some(vec![earlier; 100]));
                }
            }
            let mut batch = WriteBatch::default();
            Family::ALL.into_iter().for_each(|family| batch.put(family, [round], vec![round; 100]));
            store.write(batch, Durability::Process).unwrap();
        }
    }

    #[test]
    fn half_of_a_range_takes_about_half_the_room() {
        let folder = tempfile::tempdir().unwrap();
        let store = RocksStore::open(folder.path(), true).unwrap();
        // It must not compress.
        let byte = |seed: u64| (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
        let noise = |key: u64| (0..1_000).map(move |place| byte(key * 1_000 + place));
        for half in [0, 1_000] {
            let mut batch = WriteBatch::default();
            (half..half + 1_000_u64).for_each(|key| batch.put(Family::Chunks, key.to_be_bytes(), noise(key).collect()));
            store.write(batch, Durability::Process).unwrap();
        }
        store.database.flush_cf(store.family(Operation::Sync, Family::Chunks).unwrap()).unwrap();
        let bytes = |from: u64| {
            let range = (from.to_be_bytes(), u64::MAX.to_be_bytes());
            store.approximate_range_bytes(Family::Chunks, &range.0[..]..&range.1[..]).unwrap().unwrap() as f64
        };
        let part = bytes(1_000) / bytes(0);
        assert!((0.4..0.6).contains(&part), "{part}");
        assert_eq!(bytes(2_000), 0.0);
    }

    /// Bytes that do not compress.
    fn noise(length: u64, mut state: u64) -> Vec<u8> {
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        (0..length).map(|_| next()).collect()
    }

    fn put(store: &RocksStore, family: Family, key: &[u8], value: Vec<u8>) {
        let mut batch = WriteBatch::default();
        batch.put(family, key, value);
        store.write(batch, Durability::Process).unwrap();
        store.database.flush_cf(store.family(Operation::Write, family).unwrap()).unwrap();
    }

    #[test]
    fn a_database_from_before_the_tiers_opens_and_an_older_program_leaves_a_newer_one_alone() {
        let folder = tempfile::tempdir().unwrap();
        let older = Family::ALL.into_iter().filter(|family| !is_packed(*family)).map(Family::name);
        let older: Vec<&str> = older.collect();
        let mut options = Options::default();
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        let database = DB::open_cf(&options, folder.path(), &older).unwrap();
        database.put_cf(database.cf_handle("chunkl0").unwrap(), b"key", b"old").unwrap();
        drop(database);
        let store = RocksStore::open(folder.path(), false).unwrap();
        assert_eq!(store.get(Family::Chunks, b"key"), Ok(Some(b"old".to_vec())));
        put(&store, Family::ColdChunks, b"key", b"new".to_vec());
        drop(store);
        let error = DB::open_cf(&options, folder.path(), &older).err().unwrap().into_string();
        assert!(error.contains("Column families not opened"), "{error}");
        let store = RocksStore::open(folder.path(), false).unwrap();
        assert_eq!(store.get(Family::Chunks, b"key"), Ok(Some(b"old".to_vec())));
        assert_eq!(store.get(Family::ColdChunks, b"key"), Ok(Some(b"new".to_vec())));
    }

    #[test]
    fn a_flipped_bit_in_a_large_cluster_leaves_the_other_bytes_readable() {
        let folder = tempfile::tempdir().unwrap();
        let values = [noise(100_000, 0), noise(100_000, 7)];
        for family in [Family::WarmChunks, Family::ColdChunks, Family::Chunks] {
            let path = folder.path().join(family.name());
            let store = RocksStore::open(&path, true).unwrap();
            values.iter().zip([b"a", b"b"]).for_each(|(value, key)| put(&store, family, key, value.clone()));
            drop(store);
            let is_blob = |path: &std::path::PathBuf| path.extension().is_some_and(|extension| extension == "blob");
            let mut blobs: Vec<_> =
                fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).filter(is_blob).collect();
            blobs.sort();
            assert_eq!(blobs.len(), 2, "large values are in files of their own");
            let mut bytes = fs::read(&blobs[0]).unwrap();
            bytes[50_000] ^= 1;
            fs::write(&blobs[0], bytes).unwrap();
            let store = RocksStore::open(&path, false).unwrap();
            assert_eq!(store.get(family, b"b").unwrap().as_ref(), Some(&values[1]));
            match store.get(family, b"a") {
                Ok(found) => {
                    let found = found.unwrap();
                    let differ = found.iter().zip(&values[0]).filter(|(found, value)| found != value).count();
                    assert!(is_packed(family) && found.len() == 100_000 && differ == 1, "{family}");
                }
                // What has no checksums of its own is refused.
                Err(error) => assert!(!is_packed(family) && error.to_string().contains("Corruption"), "{error}"),
            }
        }
    }

    #[test]
    fn a_chunk_of_megabytes_is_in_a_file_of_its_own_and_gives_its_room_back() {
        const LARGE: u64 = 4 << 20;
        let folder = tempfile::tempdir().unwrap();
        let store = RocksStore::open(folder.path(), true).unwrap();
        let handle = store.family(Operation::Measure, Family::Chunks).unwrap();
        let blobs = || store.property(Family::Chunks, handle, LIVE_BLOB_FILE_SIZE).unwrap();
        put(&store, Family::Chunks, b"ordinary", noise(40_000, 1));
        assert_eq!(blobs(), 0);
        let began = std::time::Instant::now();
        (0..8).for_each(|round| put(&store, Family::Chunks, b"library", noise(LARGE, round)));
        let saved = began.elapsed() / 8;
        let before = blobs();
        store.compact().unwrap();
        let began = std::time::Instant::now();
        assert!(store.get(Family::Chunks, b"library").unwrap() == Some(noise(LARGE, 7)));
        println!(
            "4 MiB chunk: saved and flushed in {saved:?}, read in {:?}; 8 versions took {before} bytes, then {}",
            began.elapsed(),
            blobs()
        );
        assert!((LARGE..LARGE + LARGE / 4).contains(&blobs()), "{} bytes", blobs());
    }

    #[test]
    fn a_missing_database_is_made_only_on_request() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let error = RocksStore::open(&path, false).err().unwrap();
        assert!(matches!(&error, StoreError::Backend { operation: Operation::Open, path: at, .. } if *at == path));
        assert!(RocksStore::open(&path, true).is_ok());
        assert!(RocksStore::open(&path, false).is_ok());
    }

    #[test]
    fn a_damaged_manifest_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        drop(RocksStore::open(folder.path(), true).unwrap());
        fs::write(folder.path().join("CURRENT"), "MANIFEST-999999\n").unwrap();
        assert!(RocksStore::open(folder.path(), false).is_err());
    }
}
