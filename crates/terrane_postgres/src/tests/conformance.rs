//! The rules that every store obeys.

use super::new_world;
use crate::PostgresStore;
use terrane_storage::conformance;

#[test]
fn it_passes_the_conformance_tests() {
    conformance::check(|| PostgresStore::open(&new_world()).unwrap()).unwrap();
}

#[test]
fn what_was_written_is_there_when_it_is_opened_again() {
    let address = new_world();
    conformance::check_reopening(|| PostgresStore::open(&address).unwrap()).unwrap();
}
