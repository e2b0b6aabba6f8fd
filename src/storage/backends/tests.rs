//! What the tests of the storage keep worlds in.

pub(in crate::storage) mod test_store;
