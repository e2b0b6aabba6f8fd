//! The options of databases and families.

use crate::Family;
use rocksdb::{BlockBasedOptions, Cache, DBCompressionType, Options, statistics::StatsLevel};

const MEBIBYTE: usize = 1 << 20;
/// The size of the cache that all families share.
pub(super) const BLOCK_CACHE_BYTES: usize = 128 * MEBIBYTE;
/// Measured with terrain: 16K blocks compress a seventh better than 4K blocks for twice the time of a point read, and
/// most reads here are ranges.
pub(super) const BLOCK_BYTES: usize = 16 * 1024;
/// Values that are already compressed gain nothing from larger blocks. With small ones, a flipped bit damages one
/// value, or a few that are in blob files.
const PACKED_BLOCK_BYTES: usize = 256;
/// A small limit causes frequent flushes of small files and nearly doubles the bytes written.
const WAL_BYTES: u64 = 192 * MEBIBYTE as u64;
const ZSTD_LEVEL: i32 = 1;

/// The options of a database.
pub(super) fn database_options(create: bool) -> Options {
    let mut options = Options::default();
    options.create_if_missing(create);
    options.create_missing_column_families(true);
    options.set_paranoid_checks(true);
    // Otherwise the data of a missing log would be lost unnoticed.
    options.set_track_and_verify_wals_in_manifest(true);
    options.set_max_background_jobs(2);
    options.set_max_total_wal_size(WAL_BYTES);
    // Spreads the writing of large files, so that a sync does not have to wait for all of it at once.
    options.set_bytes_per_sync(MEBIBYTE as u64);
    options.set_keep_log_file_num(4);
    options.set_max_log_file_size(4 * MEBIBYTE);
    // Only counters for the written bytes, and no clocks.
    options.enable_statistics();
    options.set_statistics_level(StatsLevel::ExceptHistogramOrTimers);
    options
}

/// The minimum size of values that are kept in separate blob files, which compactions need not copy. A chunk has 2 KB
/// and takes less room among others; a library built by a player may have megabytes.
const fn least_blob_bytes(family: Family) -> u64 {
    match family {
        Family::WarmChunks => 16 << 10,
        // A table has checksums for blocks, and a cluster has checksums for groups.
        Family::ColdChunks => 0,
        _ => 64 << 10,
    }
}

/// Returns `true` if the values of the family consist of parts that are already compressed and checksummed.
pub(super) const fn is_packed(family: Family) -> bool {
    matches!(family, Family::WarmChunks | Family::ColdChunks)
}

/// The options of a family.
pub(super) fn family_options(family: Family, cache: &Cache) -> Options {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(cache);
    table.set_block_size(if is_packed(family) { PACKED_BLOCK_BYTES } else { BLOCK_BYTES });
    table.set_bloom_filter(10.0, false);
    table.set_cache_index_and_filter_blocks(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);

    let mut options = Options::default();
    options.set_block_based_table_factory(&table);
    options.set_write_buffer_size(32 * MEBIBYTE);
    if matches!(family, Family::Chunks | Family::WarmChunks | Family::ColdChunks) {
        options.set_enable_blob_files(true);
        options.set_min_blob_size(least_blob_bytes(family));
        // Measured: with the defaults, files that are mostly garbage stay for long; with a threshold of 0, the
        // collection never ends.
        options.set_enable_blob_gc(true);
        options.set_blob_gc_age_cutoff(0.5);
        options.set_blob_gc_force_threshold(0.5);
    }
    if is_packed(family) {
        // Compressing the values again would not shrink them, and a flipped bit would damage several of their parts.
        options.set_compression_type(DBCompressionType::None);
        options.set_blob_compression_type(DBCompressionType::None);
        return options;
    }
    options.set_blob_compression_type(DBCompressionType::Zstd);
    options.set_compression_type(DBCompressionType::Zstd);
    // A small world has only the first levels.
    options.set_bottommost_compression_type(DBCompressionType::Zstd);
    // The other three are defaults: window bits and strategy of zlib, and no dictionary, which brought no measurable gain.
    options.set_compression_options(-14, ZSTD_LEVEL, 0, 0);
    // The first levels are soon rewritten.
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
