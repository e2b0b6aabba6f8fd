//! [`EditBook`]: the edits and actions of one client on the server.

use crate::chunk_sync::messages::MAX_EDITS;
use crate::chunk_sync::{EditAnswer, SyncAction, SyncEdit, SyncWish};
use crate::space::ChunkPos;
use rustc_hash::{FxHashMap, FxHashSet};
use std::mem;
use std::time::Duration;

/// The actions of a client that are passed on in a second, and at once. The region allows an entity less.
const ACTIONS_PER_SECOND: f64 = 256.0;

/// Edits from their arrival until their answers are in a message.
///
/// An accepted edit is answered after the state of its chunk that includes it. So the client, which shows the edit until then,
/// never shows its block without it.
#[derive(Debug, Default)]
pub(super) struct EditBook {
    /// `true` if the client was told that its edits are taken.
    pub is_announced: bool,
    /// The edits that the client may make at once.
    allowance: f64,
    /// The actions that the client may do at once.
    actions: f64,
    refilled: Option<Duration>,
    /// Edits that are not decided.
    incoming: Vec<SyncWish>,
    /// Actions that were too many.
    pub excess: Vec<u64>,
    open: FxHashSet<u64>,
    /// The chunks of accepted actions that have several, and how many of them the client was not told of.
    parts: FxHashMap<u64, (usize, Vec<ChunkPos>)>,
    /// Accepted edits, each with the number of look-ups of its chunk until one includes it.
    waiting: FxHashMap<ChunkPos, Vec<(u64, u8)>>,
}

impl EditBook {
    /// Allows this many edits per second, and as many at once.
    pub fn refill(&mut self, now: Duration, per_second: u32) {
        let since =
            self.refilled.replace(now).map_or(f64::INFINITY, |refilled| now.saturating_sub(refilled).as_secs_f64());
        let refill = |left: f64, rate: f64| (left + rate * since).min(rate);
        self.allowance = refill(self.allowance, per_second.into());
        self.actions = refill(self.actions, ACTIONS_PER_SECOND);
    }

    /// Notes an edit. Returns `None` if the client has too many unanswered ones, so that it gets no answer, and otherwise whether
    /// the edit is to be decided: `false` if there were too many in a short time.
    pub fn take_in(&mut self, edit: SyncEdit, is_near: bool) -> Option<bool> {
        if self.open.len() >= MAX_EDITS || !self.open.insert(edit.id) {
            return None;
        }
        let is_allowed = is_near && self.allowance >= 1.0;
        if is_allowed {
            self.allowance -= 1.0;
            self.incoming.push(SyncWish::Edit(edit));
        }
        Some(is_allowed)
    }

    /// Notes an action, unless the client has too many unanswered ones, so that it gets no answer.
    pub fn take_in_action(&mut self, action: SyncAction) {
        if self.open.len() >= MAX_EDITS || !self.open.insert(action.id) {
            return;
        }
        if self.actions >= 1.0 {
            self.actions -= 1.0;
            self.incoming.push(SyncWish::Action(action));
        } else {
            self.excess.push(action.id);
        }
    }

    /// Notes the chunks of an accepted action.
    pub fn divide(&mut self, id: u64, chunks: &[ChunkPos]) {
        if chunks.len() > 1 {
            self.parts.insert(id, (chunks.len(), chunks.to_vec()));
        }
    }

    /// Notes that the client is told of one more chunk of these edits and actions. Leaves those of which it is told whole, and adds their
    /// other chunks.
    pub fn complete(&mut self, ids: &mut Vec<u64>, chunks: &mut Vec<ChunkPos>) {
        ids.retain(|id| {
            let Some((left, of)) = self.parts.get_mut(id) else { return true };
            *left -= 1;
            if *left > 0 {
                return false;
            }
            chunks.append(of);
            self.parts.remove(id);
            true
        });
    }

    pub fn take_incoming(&mut self) -> Vec<SyncWish> {
        mem::take(&mut self.incoming)
    }

    pub fn is_open(&self, id: u64) -> bool {
        self.open.contains(&id)
    }

    /// The chunks of accepted edits.
    pub fn waiting(&self) -> impl Iterator<Item = ChunkPos> {
        self.waiting.keys().copied()
    }

    pub fn wait(&mut self, chunk: ChunkPos, id: u64, look_ups: u8) {
        self.waiting.entry(chunk).or_default().push((id, look_ups));
    }

    /// The edits that wait for no more look-ups of this chunk, after one of them; after the last one these are all.
    pub fn looked_up(&mut self, chunk: ChunkPos, is_last: bool) -> Vec<u64> {
        let Some(waiting) = self.waiting.get_mut(&chunk) else { return Vec::new() };
        waiting.iter_mut().for_each(|(_, look_ups)| *look_ups = look_ups.saturating_sub(1));
        let included = waiting.extract_if(.., |(_, look_ups)| is_last || *look_ups == 0).map(|(id, _)| id).collect();
        if waiting.is_empty() {
            self.waiting.remove(&chunk);
        }
        included
    }

    /// The edits in chunks that the client has left behind.
    pub fn leave(&mut self, is_left: impl Fn(ChunkPos) -> bool) -> Vec<(ChunkPos, Vec<u64>)> {
        let left = self.waiting.extract_if(|chunk, _| is_left(*chunk));
        left.map(|(chunk, edits)| (chunk, edits.into_iter().map(|(id, _)| id).collect())).collect()
    }

    /// Notes that these answers are on their way to the client.
    pub fn answered(&mut self, answers: impl IntoIterator<Item = EditAnswer>) {
        answers.into_iter().for_each(|answer| _ = self.open.remove(&answer.id));
    }
}
