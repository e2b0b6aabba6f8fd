//! Giving the room of old versions back.

use super::{FileDisk, ObjectStore, ObjectStoreError, file};
use crate::work::{FileError, Progress};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

impl ObjectStore<FileDisk> {
    /// Makes the file as small as it can be: its objects are copied into another one beside it, which then takes its place. A
    /// crash leaves the one or the other. `progress` hears how many of how many objects are copied, and may break it off; then
    /// the store stays as it is. Gives the bytes that were saved.
    ///
    /// # Errors
    /// An object that is damaged; what the system says. The store goes on as it was.
    pub fn compact(&mut self, mut progress: impl FnMut(&Progress) -> ControlFlow<()>) -> Result<u64, ObjectStoreError> {
        let path = self.path().to_path_buf();
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".compacted");
        let other = path.with_file_name(name);
        // Of an attempt that a crash cut short.
        let _ = fs::remove_file(&other);
        let copied = self.copy_to(&other, &mut progress).and_then(|copy| match copy {
            Some(copy) => {
                fs::rename(&other, &path).map_err(FileError::of(&path, "replace"))?;
                file::sync_folder_of(&path);
                Ok(Some(copy))
            }
            None => Ok(None),
        });
        let Ok(Some(copy)) = copied else {
            let _ = fs::remove_file(&other);
            return copied.map(|_| 0);
        };
        let before = self.size();
        // It has the other file open, which is this one by now.
        *self = copy.renamed(&path);
        Ok(before.saturating_sub(self.size()))
    }

    fn copy_to(
        &self,
        path: &Path,
        progress: &mut impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Option<Self>, ObjectStoreError> {
        let mut copy = Self::create(path, self.signature(), self.options)?;
        copy.options.sync = false;
        for (done, (key, version)) in (1..).zip(self.entries_from(0)) {
            if let Some(object) = self.read(key)? {
                copy.write(key, version, &object.data)?;
            }
            if progress(&Progress::of(done, self.len() as u64)).is_break() {
                return Ok(None);
            }
        }
        copy.options.sync = self.options.sync;
        copy.write_index()?;
        Ok(Some(copy))
    }
}
