//! The store for tests of the storage.

pub(crate) mod test_store;
