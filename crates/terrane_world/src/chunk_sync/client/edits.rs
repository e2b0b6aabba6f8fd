//! [`OwnEdits`]: a client's edits until the server answers.

use crate::chunk_sync::messages::MAX_EDITS;
use crate::chunk_sync::{EditAnswer, EditRequests, SyncEdit};
use std::collections::BTreeMap;
use std::mem;
use std::time::Duration;

/// An edit without an answer for so long counts as refused.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct OwnEdits {
    /// `true` if the server takes edits.
    pub are_taken: bool,
    unsent: Vec<SyncEdit>,
    /// The unanswered edits, with the times when they were made.
    open: BTreeMap<u64, Duration>,
}

impl OwnEdits {
    /// Returns `false` if the edit is refused at once.
    pub fn make(&mut self, now: Duration, edit: SyncEdit) -> bool {
        let is_taken = self.are_taken && self.open.len() < MAX_EDITS;
        if is_taken {
            self.open.insert(edit.id, now);
            self.unsent.push(edit);
        }
        is_taken
    }

    /// The next message; `None` if there is nothing to say.
    pub fn message(&mut self) -> Option<Vec<u8>> {
        let is_ready = self.are_taken && !self.unsent.is_empty();
        is_ready.then(|| EditRequests { edits: mem::take(&mut self.unsent) }.encode())
    }

    /// Returns `false` if the edit was answered before, or withdrawn.
    pub fn answer(&mut self, answer: EditAnswer) -> bool {
        self.open.remove(&answer.id).is_some()
    }

    /// Withdraws the edits that have waited too long.
    pub fn expire(&mut self, now: Duration) -> Vec<u64> {
        let late = self.open.extract_if(.., |_, made| *made + PATIENCE <= now).map(|(id, _)| id).collect();
        self.unsent.retain(|edit| self.open.contains_key(&edit.id));
        late
    }

    /// Withdraws all edits.
    pub fn withdraw(&mut self) -> Vec<u64> {
        self.unsent.clear();
        mem::take(&mut self.open).into_keys().collect()
    }
}
