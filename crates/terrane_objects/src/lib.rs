#![doc = include_str!("../README.md")]

#[doc(hidden)]
pub mod bytes;
pub mod work;

mod batch;
mod block;
mod compact;
mod disk;
mod error;
mod file;
mod free_list;
mod index;
mod payload;
mod recovery;
mod store;
#[cfg(test)]
mod tests;

pub use batch::ObjectBatch;
pub use block::{FILE_BLOCK_BYTES, MAX_KEY_BYTES};
pub use error::ObjectStoreError;
pub use recovery::Recovery;
pub use store::{Object, ObjectStore, ObjectStoreOptions};

use disk::{Disk, FileDisk};
