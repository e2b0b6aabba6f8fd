//! Every flipped bit is found, every truncation is a torn end, and logs written by RocksDB are whole.

use super::*;
use crate::{Durability, Family, KeyValueStore, RocksStore, WriteBatch};
use proptest::prelude::*;
use std::fs;

fn file_of(records: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    records.iter().for_each(|record| append(&mut file, record));
    file
}

/// A batch of `count` writes from `first` on, with `bytes` bytes of content.
fn batch(first: u64, count: u32, bytes: usize) -> Vec<u8> {
    let content = (0..bytes).map(|place| (place as u64 * 0x9e37_79b9 + first) as u8 | 1);
    first.to_le_bytes().into_iter().chain(count.to_le_bytes()).chain(content).collect()
}

fn read(file: &[u8]) -> LogFile {
    LogFile::read(file).unwrap()
}

fn batches(sizes: &[usize]) -> Vec<Vec<u8>> {
    sizes.iter().enumerate().map(|(number, bytes)| batch(10 + 3 * number as u64, 3, *bytes)).collect()
}

#[test]
fn the_checksum_is_crc_32c() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    assert_eq!(crc32c(b""), 0);
}

#[test]
fn an_empty_file_has_no_writes() {
    assert_eq!(read(&[]), LogFile { writes: None, end: LogEnd::Whole });
}

#[test]
fn each_flipped_bit_of_a_small_file_is_damage() {
    let file = file_of(&batches(&[40, 0, 100, 25]));
    assert_eq!(read(&file), LogFile { writes: Some(10..22), end: LogEnd::Whole });
    for (at, bit) in (0..file.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut flipped = file.clone();
        flipped[at] ^= 1 << bit;
        let end = read(&flipped).end;
        let LogEnd::Damaged { at: found, .. } = end else { panic!("byte {at}, bit {bit}: {end:?}") };
        assert!((0..140).contains(&(at as i64 - found as i64)), "byte {at}, bit {bit}: {end:?}");
    }
}

#[test]
fn zeros_from_a_sector_on_are_writes_that_a_loss_of_power_cut_off() {
    let file = file_of(&batches(&[300, 400, 500, 600]));
    for written in [512, 1_024, 1_536] {
        let mut torn = file.clone();
        torn[written..].fill(0);
        let end = read(&torn).end;
        assert!(matches!(end, LogEnd::Torn { at } if at < written as u64), "{written}: {end:?}");
        assert_eq!(read(&[&file[..], &vec![0; 5_000]].concat()).end, LogEnd::Torn { at: file.len() as u64 });
        // In the middle, zeros are damage.
        let mut hole = file.clone();
        hole[written..written + 100].fill(0);
        assert!(matches!(read(&hole).end, LogEnd::Damaged { .. }), "{written}");
    }
}

#[test]
fn logs_written_by_rocksdb_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    let store = RocksStore::open(folder.path(), true).unwrap();
    for size in [10, 100_000, 30_000, 1, 32_740, 7, 500_000] {
        let mut batch = WriteBatch::default();
        (0..3_u8).for_each(|key| batch.put(Family::Chunks, [key], vec![key; size]));
        store.write(batch, Durability::Process).unwrap();
    }
    let files = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let (mut logs, mut manifests) = (0, 0);
    for path in files {
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.ends_with(".log") {
            assert_eq!(read(&fs::read(&path).unwrap()), LogFile { writes: Some(1..22), end: LogEnd::Whole });
            logs += 1;
        } else if name.starts_with("MANIFEST") {
            assert_eq!(read(&fs::read(&path).unwrap()).end, LogEnd::Whole);
            manifests += 1;
        }
    }
    assert_eq!((logs, manifests), (1, 1));
}

/// Sizes of batches, some of which end near the end of a block.
fn sizes() -> impl Strategy<Value = Vec<usize>> {
    let near_a_block = (BLOCK - 60..BLOCK + 10).prop_map(|bytes| bytes - BATCH_HEADER);
    proptest::collection::vec(prop_oneof![0..2_000_usize, 0..100_000_usize, near_a_block], 1..6)
}

proptest! {
    #[test]
    fn records_of_all_sizes_are_whole(sizes in sizes()) {
        let writes = 10..10 + 3 * sizes.len() as u64;
        prop_assert_eq!(read(&file_of(&batches(&sizes))), LogFile { writes: Some(writes), end: LogEnd::Whole });
    }

    #[test]
    fn a_flipped_bit_is_damage_wherever_it_is(sizes in sizes(), at: prop::sample::Index, bit in 0..8_u8) {
        let mut file = file_of(&batches(&sizes));
        let at = at.index(file.len());
        file[at] ^= 1 << bit;
        // The filling at the end of a block has no meaning.
        let is_filling = BLOCK - at % BLOCK < HEADER && read(&file).end == LogEnd::Whole;
        let is_damaged = matches!(read(&file).end, LogEnd::Damaged { .. });
        prop_assert!(is_damaged || is_filling, "{:?}", read(&file));
    }

    #[test]
    fn a_cut_is_a_torn_end_and_no_damage(sizes in sizes(), at: prop::sample::Index) {
        let file = file_of(&batches(&sizes));
        let cut = read(&file[..at.index(file.len())]);
        prop_assert!(!matches!(cut.end, LogEnd::Damaged { .. }), "{cut:?}");
        if let LogEnd::Torn { at } = cut.end {
            let before = read(&file[..at as usize]);
            prop_assert_eq!(before, LogFile { writes: cut.writes, end: LogEnd::Whole });
        }
    }
}
