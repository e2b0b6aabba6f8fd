//! [`OwnEdits`]: a client's edits and actions until the server answers.

use crate::chunk_sync::messages::{ACTIONS_AT_ONCE, MAX_EDITS};
use crate::chunk_sync::{ActionRequests, EditAnswer, EditRequests, SyncWish};
use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::time::Duration;

/// An edit without an answer for so long counts as refused.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct OwnEdits {
    /// `true` if the server takes edits.
    pub are_taken: bool,
    unsent: VecDeque<SyncWish>,
    /// The unanswered edits, with the times when they were made.
    open: BTreeMap<u64, Duration>,
}

impl OwnEdits {
    /// Returns `false` if the edit or the action is refused at once.
    pub fn make(&mut self, now: Duration, wish: SyncWish) -> bool {
        let is_taken = self.are_taken && self.open.len() < MAX_EDITS;
        if is_taken {
            self.open.insert(wish.id(), now);
            self.unsent.push_back(wish);
        }
        is_taken
    }

    /// The next message, with wishes of one kind in their order; `None` if there is nothing to say.
    pub fn message(&mut self) -> Option<Vec<u8>> {
        let (mut edits, mut actions, mut bytes) = (Vec::new(), Vec::new(), 0);
        while self.are_taken
            && bytes < ACTIONS_AT_ONCE
            && let Some(wish) = self.unsent.pop_front_if(|wish| match wish {
                SyncWish::Edit(_) => actions.is_empty(),
                SyncWish::Action(_) => edits.is_empty(),
            })
        {
            match wish {
                SyncWish::Edit(edit) => edits.push(edit),
                SyncWish::Action(action) => {
                    bytes += action.bytes.len();
                    actions.push(action);
                }
            }
        }
        match (edits.is_empty(), actions.is_empty()) {
            (false, _) => Some(EditRequests { edits }.encode()),
            (_, false) => Some(ActionRequests { actions }.encode()),
            _ => None,
        }
    }

    /// Returns `false` if the edit was answered before, or withdrawn.
    pub fn answer(&mut self, answer: EditAnswer) -> bool {
        self.open.remove(&answer.id).is_some()
    }

    /// Withdraws the edits that have waited too long.
    pub fn expire(&mut self, now: Duration) -> Vec<u64> {
        let late = self.open.extract_if(.., |_, made| *made + PATIENCE <= now).map(|(id, _)| id).collect();
        self.unsent.retain(|wish| self.open.contains_key(&wish.id()));
        late
    }

    /// Withdraws all edits.
    pub fn withdraw(&mut self) -> Vec<u64> {
        self.unsent.clear();
        mem::take(&mut self.open).into_keys().collect()
    }
}
