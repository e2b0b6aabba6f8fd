//! Compacts stores to free the space of old versions.

use super::{FileDisk, ObjectStore, ObjectStoreError, file};
use crate::work::FileError;
use std::fs;
use std::path::Path;

impl ObjectStore<FileDisk> {
    /// Makes the file as small as possible: copies its objects into a new file beside it, which then replaces it. A
    /// crash leaves either of the two files.
    ///
    /// # Errors
    /// Fails if an object is damaged, and on I/O errors. The store then continues unchanged.
    pub fn compact(&mut self) -> Result<(), ObjectStoreError> {
        let path = self.path().to_path_buf();
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".compacted");
        let other = path.with_file_name(name);
        // Removes the leftovers of an attempt before a crash.
        let _ = fs::remove_file(&other);
        let copied = self.copy_to(&other).and_then(|copy| {
            fs::rename(&other, &path).map_err(FileError::of(&path, "replace"))?;
            file::sync_folder_of(&path);
            Ok(copy)
        });
        if copied.is_err() {
            let _ = fs::remove_file(&other);
        }
        // The new store's open file is this file after the rename.
        *self = copied?.renamed(&path);
        Ok(())
    }

    fn copy_to(&self, path: &Path) -> Result<Self, ObjectStoreError> {
        let mut copy = Self::create(path, self.signature(), self.options)?;
        copy.options.sync = false;
        for (key, version) in self.with_prefix("") {
            if let Some(object) = self.read(key)? {
                copy.write(key, version, &object.data)?;
            }
        }
        copy.options.sync = self.options.sync;
        copy.write_index()?;
        Ok(copy)
    }
}
