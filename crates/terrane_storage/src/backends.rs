//! Storage backends: their interface, and the ones of this crate.

pub mod conformance;
pub(super) mod family;
pub(super) mod memory;
#[cfg(feature = "rocksdb")]
pub(super) mod rocks;
pub(super) mod store;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(super) use tests::test_store;
