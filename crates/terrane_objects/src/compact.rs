//! Giving the room of old versions back.

use super::{FileDisk, ObjectStore, ObjectStoreError, file};
use crate::work::FileError;
use std::fs;
use std::path::Path;

impl ObjectStore<FileDisk> {
    /// Makes the file as small as it can be: its objects are copied into another one beside it, which then takes its place. A
    /// crash leaves the one or the other.
    ///
    /// # Errors
    /// An object that is damaged; what the system says. The store goes on as it was.
    pub fn compact(&mut self) -> Result<(), ObjectStoreError> {
        let path = self.path().to_path_buf();
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".compacted");
        let other = path.with_file_name(name);
        // Of an attempt that a crash cut short.
        let _ = fs::remove_file(&other);
        let copied = self.copy_to(&other).and_then(|copy| {
            fs::rename(&other, &path).map_err(FileError::of(&path, "replace"))?;
            file::sync_folder_of(&path);
            Ok(copy)
        });
        if copied.is_err() {
            let _ = fs::remove_file(&other);
        }
        // It has the other file open, which is this one by now.
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
