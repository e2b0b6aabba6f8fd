//! Tests of more than one part of the storage.

#[cfg(feature = "rocksdb")]
mod documented;
mod late_writes;
