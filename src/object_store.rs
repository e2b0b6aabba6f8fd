//! One portable file that holds versioned objects: exports, and a multiplayer client's cache.
//!
//! An object has a key of up to 512 bytes, a 64-bit version, and bytes. The file begins with a line of text, its signature, that
//! can be read without opening it. After that it is blocks of 4 KiB, each with a trailer that names the object it belongs to;
//! `docs/object-store.md` has the format.
//!
//! * A write never loses both the old and the new version, and one that was acknowledged is there after a crash. Several writes
//!   can be one change: all of it is there after a crash, or nothing.
//! * The index is in memory, and in the file when there was nothing else to do. A lost one is made anew by one scan.
//! * Every block has a checksum: what comes back is what was written, or an error says what is damaged.
//!
//! It is made for up to some hundred thousand objects that are read as a whole.
//!
//! ```
//! use bevy_terrane::object_store::{ObjectStore, ObjectStoreOptions};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("cache");
//! let mut cache = ObjectStore::create(&path, "my-game cache 1", ObjectStoreOptions::default())?;
//! cache.write("chunk/0,0,0", 7, b"blocks")?;
//! cache.close()?;
//!
//! assert_eq!(ObjectStore::signature_of(&path)?, "my-game cache 1");
//! let cache = ObjectStore::open_to_read(&path, "my-game cache 1")?;
//! let object = cache.read("chunk/0,0,0")?.unwrap();
//! assert_eq!((object.version, &object.data[..]), (7, &b"blocks"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
