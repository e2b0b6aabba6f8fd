//! A client's cache that an earlier version of this crate wrote.
//!
//! `tests/fixtures/README.md` describes how it was made.

use super::*;
use std::fs;

/// Promise, chunk sync: A client continues with the cache that an earlier version wrote.
#[test]
fn a_cache_of_an_earlier_version_answers_for_every_chunk() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/chunk_cache_1.objects");
    fs::copy(fixture, &cache).unwrap();
    let mut wire = Wire::new(SyncLimits::default(), &cache, world(2));
    wire.client.look(area(0, 0, 2));
    wire.settle();
    wire.assert_right(area(0, 0, 2));
    let progress = wire.client.progress();
    assert_eq!((progress.cached, progress.current, progress.received), (65, 65, 0));
}

/// Makes the fixture if `TERRANE_WRITE_FIXTURE=1` is set, only until the format is released.
#[test]
fn the_cache_that_is_a_fixture_can_be_made() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    visit(&cache, world(2), area(0, 0, 2));
    if std::env::var_os("TERRANE_WRITE_FIXTURE").is_some() {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/chunk_cache_1.objects");
        fs::copy(cache, fixture).unwrap();
    }
}
