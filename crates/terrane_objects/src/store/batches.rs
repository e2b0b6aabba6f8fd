//! Batches: all parts of a batch are on disk before any of them counts.

use super::{Entry, ObjectStore, Result};
use crate::block::Kind;
use crate::bytes::put_number;
use crate::index::CommitRecord;
use crate::{Disk, ObjectBatch, payload};

impl<D: Disk> ObjectStore<D> {
    /// Applies several changes. After a crash, all or none of them exist.
    ///
    /// # Errors
    /// Those of [`write`](Self::write). Nothing has changed then.
    pub fn apply(&mut self, batch: &ObjectBatch) -> Result<()> {
        for (key, change) in &batch.changes {
            self.check(key, change.as_ref().map_or(&[], |(_, data)| data))?;
        }
        self.begin()?;
        self.quiesce()?;
        let counter = self.next_counter()?;
        let mut runs = Vec::new();
        let written = self.write_batch(batch, counter, &mut runs);
        if written.is_err() {
            self.discard(&runs);
        }
        let (written, commit) = written?;
        let Entry { first, blocks, .. } = commit;
        self.index.commits.insert(counter, CommitRecord { first, blocks, live: written.len() as u64 });
        written.into_iter().for_each(|(key, entry)| self.put(key, entry));
        for (key, _) in batch.changes.iter().filter(|(_, change)| change.is_none()) {
            if let Some(entry) = self.index.entries.remove(key) {
                self.leave_batch(&entry);
                self.superseded.push((entry.first, entry.blocks));
            }
        }
        if self.index.commits.get(&counter).is_some_and(|commit| commit.live == 0) {
            self.retired.push(counter);
        }
        self.settle();
        Ok(())
    }

    /// Writes the objects of a batch, and then its commit. `runs` are the blocks that this takes, even after an error.
    fn write_batch<'a>(
        &mut self,
        batch: &'a ObjectBatch,
        counter: u64,
        runs: &mut Vec<(u64, u64)>,
    ) -> Result<(Vec<(&'a str, Entry)>, Entry)> {
        let (mut written, mut deleted) = (Vec::new(), Vec::new());
        for (key, change) in &batch.changes {
            match change {
                Some((version, data)) => {
                    let payload = payload::encode(&mut self.tables, self.options.level, data);
                    let entry = self.write_chain(Kind::BatchObject, key, (*version, counter), &payload)?;
                    runs.push((entry.first, entry.blocks));
                    written.push((key.as_str(), Entry { in_batch: true, ..entry }));
                }
                None => {
                    put_number(&mut deleted, key.len() as u64);
                    deleted.extend_from_slice(key.as_bytes());
                }
            }
        }
        // All objects must be on disk before the commit.
        self.sync_disk()?;
        let payload = payload::encode(&mut self.tables, self.options.level, &deleted);
        let commit = self.write_chain(Kind::Commit, "", (0, counter), &payload)?;
        runs.push((commit.first, commit.blocks));
        self.sync_disk()?;
        self.is_synced = true;
        Ok((written, commit))
    }
}
