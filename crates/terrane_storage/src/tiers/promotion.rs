//! Making groups hot because they were loaded, for worlds whose [`TierConfig`](crate::TierConfig) says so.
//!
//! Whoever loads only notes what it found packed: moves are made by one thread.

use crate::{ChunkGroup, StoreError, Tier, TierMoves, WorldStore};
use std::collections::BTreeSet;
use std::mem;
use std::sync::{MutexGuard, PoisonError};

/// More groups than this do not wait at a time. Those that are left out are read where they lie.
const MAX_WAITING: usize = 1 << 16;

/// Packed groups that were loaded; `None` if they stay where they are.
pub(crate) type LoadedGroups = Option<BTreeSet<ChunkGroup>>;

impl WorldStore {
    fn loaded(&self) -> MutexGuard<'_, LoadedGroups> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says whether groups become hot again when they are loaded. Before it was said, they do when they are saved.
    pub fn set_promotes_on_load(&self, promotes_on_load: bool) {
        *self.loaded() = promotes_on_load.then(BTreeSet::new);
    }

    /// Packed groups were loaded.
    pub(crate) fn note_packed(&self, groups: &[ChunkGroup]) {
        if let Some(waiting) = &mut *self.loaded() {
            waiting.extend(groups.iter().take(MAX_WAITING.saturating_sub(waiting.len())));
        }
    }

    /// Whether groups wait that were loaded and are to become hot.
    pub fn has_promotions(&self) -> bool {
        self.loaded().as_ref().is_some_and(|waiting| !waiting.is_empty())
    }

    /// Makes groups hot that were loaded, as many as [`move_groups`](Self::move_groups) moves at once. After an error they are
    /// read where they lie.
    pub fn promote_loaded(&self) -> Result<TierMoves, StoreError> {
        let waiting = self.loaded().as_mut().map(mem::take).unwrap_or_default();
        let groups: Vec<_> = waiting.into_iter().map(|group| (group, Tier::Hot)).collect();
        let (moves, left) = self.move_groups(&groups)?;
        if left > 0 {
            // Those that are done are found hot, which costs little.
            self.note_packed(&groups.into_iter().map(|(group, _)| group).collect::<Vec<_>>());
        }
        Ok(moves)
    }
}
