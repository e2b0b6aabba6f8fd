//! Making groups hot because they were loaded, for worlds with [`Promotion::OnLoad`].
//!
//! Whoever loads only notes what it found packed: moves are made by one thread.

use crate::storage::{ChunkGroup, Promotion, StoreError, Tier, TierMoves, WorldStore};
use std::collections::BTreeSet;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// More groups than this do not wait at a time. Those that are left out are read where they lie.
const MAX_WAITING: usize = 1 << 16;

/// Packed groups that were loaded.
#[derive(Debug, Default)]
pub(in crate::storage) struct LoadedGroups {
    are_promoted: AtomicBool,
    waiting: Mutex<BTreeSet<ChunkGroup>>,
}

impl LoadedGroups {
    fn waiting(&self) -> MutexGuard<'_, BTreeSet<ChunkGroup>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A packed group was loaded.
    pub fn note(&self, group: ChunkGroup) {
        if self.are_promoted.load(Ordering::Relaxed) {
            let mut waiting = self.waiting();
            if waiting.len() < MAX_WAITING {
                waiting.insert(group);
            }
        }
    }
}

impl WorldStore {
    /// Says when groups become hot again. Before it was said, they do when they are saved.
    pub fn set_promotion(&self, promotion: Promotion) {
        self.loaded.are_promoted.store(promotion == Promotion::OnLoad, Ordering::Relaxed);
    }

    /// Whether groups wait that were loaded and are to become hot.
    pub fn has_promotions(&self) -> bool {
        !self.loaded.waiting().is_empty()
    }

    /// Makes groups hot that were loaded, as many as [`move_groups`](Self::move_groups) moves at once. After an error they are
    /// read where they lie.
    pub fn promote_loaded(&self) -> Result<TierMoves, StoreError> {
        let groups: Vec<_> =
            mem::take(&mut *self.loaded.waiting()).into_iter().map(|group| (group, Tier::Hot)).collect();
        let (moves, left) = self.move_groups(&groups)?;
        if left > 0 {
            // Those that are done are found hot, which costs little.
            self.loaded.waiting().extend(groups.into_iter().map(|(group, _)| group));
        }
        Ok(moves)
    }
}
