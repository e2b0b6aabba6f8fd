//! What the tests of the storage keep worlds in.

pub(crate) mod test_store;
