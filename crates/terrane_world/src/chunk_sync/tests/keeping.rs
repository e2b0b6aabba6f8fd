//! The content and the size of a cache.

use super::*;
use std::fs;

fn noise(seed: i64, length: usize) -> Vec<u8> {
    let mut state = seed as u64 ^ 0x9E37_79B9_7F4A_7C15;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(|_| next()).collect()
}

/// Promise, multiplayer: A client's chunk cache has a bounded size, and evicts distant chunks.
#[test]
fn a_cache_stays_small_and_keeps_what_is_near() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    let bound = 1 << 20;
    let mut cache = ChunkCache::open(&path, bound).unwrap();
    // Four times as much as fits, walking away from the origin.
    for x in 0..512_i64 {
        let chunk = ChunkPos::new(x, 0, 0);
        cache.put(chunk, CachedChunk { version: 1, bytes: noise(x, 8_000) }).unwrap();
        if x % 16 == 15 {
            cache.flush(chunk).unwrap();
        }
        let length = fs::metadata(&path).unwrap().len();
        assert!(length <= bound + bound / 4, "{length} bytes after {x}");
    }
    cache.flush(ChunkPos::new(511, 0, 0)).unwrap();
    drop(cache);
    let mut cache = ChunkCache::open(&path, bound).unwrap();
    let mut kept = |x: i64| cache.chunk(ChunkPos::new(x, 0, 0)).unwrap().map(|found| found.bytes.clone());
    (460..512).for_each(|x| assert_eq!(kept(x), Some(noise(x, 8_000)), "{x}"));
    assert_eq!(kept(0), None);
}

#[test]
fn a_cache_that_may_not_be_so_large_any_more_gets_smaller() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    let mut cache = ChunkCache::open(&path, 16 << 20).unwrap();
    for x in 0..512_i64 {
        cache.put(ChunkPos::new(x, 0, 0), CachedChunk { version: 1, bytes: noise(x, 8_000) }).unwrap();
    }
    cache.flush(ChunkPos::default()).unwrap();
    assert!(cache.size() > 4 << 20);
    drop(cache);
    ChunkCache::open(&path, 2 << 20).unwrap().flush(ChunkPos::default()).unwrap();
    let mut cache = ChunkCache::open(&path, 2 << 20).unwrap();
    assert!(cache.size() <= 2 << 20, "{}", cache.size());
    assert!(cache.chunk(ChunkPos::new(100, 0, 0)).unwrap().is_some());
}

#[test]
fn whole_columns_at_once_do_not_make_a_cache_larger() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a folder/that is not there/cache");
    let bound = 1 << 20;
    let mut cache = ChunkCache::open(&path, bound).unwrap();
    for x in 0..40_i64 {
        for y in 0..16 {
            cache.put(ChunkPos::new(x, y, 0), CachedChunk { version: 1, bytes: noise(x * 16 + y, 8_000) }).unwrap();
        }
    }
    cache.flush(ChunkPos::new(39, 0, 0)).unwrap();
    assert!(cache.size() <= bound + bound / 2, "{}", cache.size());
    drop(cache);
    let mut cache = ChunkCache::open(&path, bound).unwrap();
    assert!(cache.chunk(ChunkPos::new(39, 3, 0)).unwrap().is_some());
}

#[test]
fn a_cache_that_does_not_know_its_server_any_more_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    let world = visit(&path, world(1), area(0, 0, 1));
    let mut bytes = fs::read(&path).unwrap();
    // The object has a block of its own, whose trailer ends in its key.
    let blocks = bytes.chunks_exact_mut(4_096).skip(1);
    let about = blocks.filter(|block| block[4_053..4_058] == *b"about").last().unwrap();
    about[100] ^= 1;
    fs::write(&path, bytes).unwrap();

    let mut wire = Wire::new(SyncLimits::default(), &path, world);
    assert_eq!(wire.client.take_cache_error(), None);
    wire.client.look(area(0, 0, 1));
    wire.settle();
    wire.assert_right(area(0, 0, 1));
    assert_eq!(wire.client.progress().cached, 0);
    wire.client.flush();
    drop(wire.client);
    let mut cache = ChunkCache::open(&path, CACHE_BYTES).unwrap();
    assert!(cache.chunk(ChunkPos::new(0, 0, 0)).unwrap().is_some());
}

/// Promise, multiplayer: A chunk cache may be lost, damaged or of another world, and never gives a wrong chunk.
#[test]
fn a_damaged_byte_costs_chunks_and_never_changes_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    let mut cache = ChunkCache::open(&path, 1 << 20).unwrap();
    let chunks: Vec<ChunkPos> = (0..20).map(|at| ChunkPos::new(at % 3, at * 5, -at)).collect();
    for chunk in &chunks {
        cache.put(*chunk, CachedChunk { version: 3, bytes: noise(chunk.y, 300) }).unwrap();
    }
    cache.flush(ChunkPos::default()).unwrap();
    drop(cache);
    let whole = fs::read(&path).unwrap();
    let mut lost = 0;
    for at in (100..whole.len()).step_by(97) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(&path, bytes).unwrap();
        let mut cache = ChunkCache::open(&path, 1 << 20).unwrap();
        for chunk in &chunks {
            match cache.chunk(*chunk).unwrap() {
                Some(found) => assert_eq!(found.bytes, noise(chunk.y, 300), "byte {at}"),
                None => lost += 1,
            }
        }
    }
    assert!(lost > 0);
}

#[test]
fn what_is_no_cache_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    fs::write(&path, "a diary").unwrap();
    ChunkCache::open(&path, 1 << 20).unwrap_err();
    assert_eq!(fs::read(&path).unwrap(), b"a diary");
}
