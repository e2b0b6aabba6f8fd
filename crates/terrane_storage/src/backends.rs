//! Where keys and values are kept: what a backend must be able to do, and ours.

pub mod conformance;
pub(super) mod memory;
#[cfg(feature = "rocksdb")]
pub(super) mod rocks;
pub(super) mod store;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(super) use tests::test_store;
