//! Promotion of loaded groups, for worlds whose [`TierConfig`](crate::TierConfig) enables it.
//!
//! Loading threads only note the packed groups that they find; a single thread moves them.

use crate::{ChunkGroup, StoreError, Tier, TierMoves, WorldStore};
use std::collections::BTreeSet;
use std::mem;
use std::sync::{MutexGuard, PoisonError};

/// The maximum number of waiting groups. Further ones stay in their tier.
const MAX_WAITING: usize = 1 << 16;

impl WorldStore {
    fn loaded(&self) -> MutexGuard<'_, Option<BTreeSet<ChunkGroup>>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets whether groups become hot again when they are loaded. Until this is called, they do so only when they are saved.
    pub fn set_promotes_on_load(&self, promotes_on_load: bool) {
        *self.loaded() = (promotes_on_load && self.incarnation().is_none()).then(BTreeSet::new);
    }

    /// Notes packed groups that were loaded.
    pub(crate) fn note_packed(&self, groups: &[ChunkGroup]) {
        if let Some(waiting) = &mut *self.loaded() {
            waiting.extend(groups.iter().take(MAX_WAITING.saturating_sub(waiting.len())));
        }
    }

    /// Returns `true` if loaded groups wait for promotion.
    pub fn has_promotions(&self) -> bool {
        self.loaded().as_ref().is_some_and(|waiting| !waiting.is_empty())
    }

    /// Promotes loaded groups, as many as [`move_groups`](Self::move_groups) moves at once. After an error the groups
    /// stay in their tiers.
    pub fn promote_loaded(&self) -> Result<TierMoves, StoreError> {
        let waiting = self.loaded().as_mut().map(mem::take).unwrap_or_default();
        let groups: Vec<_> = waiting.into_iter().map(|group| (group, Tier::Hot)).collect();
        let (moves, left) = self.move_groups(&groups)?;
        if left > 0 {
            // Groups that are done are cheaply found to be hot.
            self.note_packed(&groups.into_iter().map(|(group, _)| group).collect::<Vec<_>>());
        }
        Ok(moves)
    }
}
