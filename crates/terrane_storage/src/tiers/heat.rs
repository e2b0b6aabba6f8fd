//! Heat: the last access of each group of chunks, in play time.
//!
//! Accesses are noted in memory and written along with saves. The record of a group also holds its tier and the second since
//! which it waits there to move on. Its *cooling key* contains that second, so the groups that have waited longest are found
//! without looking at the others. An access alone leaves the cooling key unchanged: it is corrected when its time comes.

use crate::bytes::record;
use crate::{ChunkGroup, Family, Tier, WriteBatch, keys};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The state of heat in memory.
#[derive(Debug, Default)]
pub(crate) struct Heat {
    /// The [second](second_of) of each unwritten access.
    noted: Mutex<BTreeMap<ChunkGroup, u64>>,
    /// The play time when the world was opened.
    pub before: Duration,
    /// The time since then, in nanoseconds.
    pub session: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HeatRecord {
    /// The [second](second_of) of the last access; 0 if there was none.
    pub accessed: u64,
    /// The group's tier, and the second in its cooling key; `None` if it is cold.
    pub waiting: Option<(Tier, u64)>,
}

/// Returns `true` if this is the stored value of a heat record.
pub(crate) fn is_record(value: &[u8]) -> bool {
    record::decode::<HeatRecord>(value).is_ok()
}

/// The change of a group in a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// The group is in use in this tier, and counts as accessed now.
    Accessed(Tier),
    /// The group was moved to this tier, and keeps the time of its last access.
    Moved(Tier),
    /// The group could not be moved. It is retried after cooling down once more.
    Postponed,
    /// The group is no longer stored.
    Gone,
}

/// A group that may move to a colder tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoolingGroup {
    /// The group.
    pub group: ChunkGroup,
    /// The group's tier.
    pub tier: Tier,
    /// The play time of its last access, in whole seconds; `None` if it was not accessed since it was generated.
    pub accessed: Option<Duration>,
}

impl Heat {
    pub fn new(before: Duration) -> Self {
        Self { before, ..Self::default() }
    }

    pub fn noted(&self) -> MutexGuard<'_, BTreeMap<ChunkGroup, u64>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets these accesses, which are now stored.
    pub fn forget(&self, written: &[(ChunkGroup, u64)]) {
        let mut noted = self.noted();
        for (group, second) in written {
            // An access that was noted meanwhile is later.
            if noted.get(group) == Some(second) {
                noted.remove(group);
            }
        }
    }
}

impl HeatRecord {
    /// The new heat record of a group; `None` to delete it.
    pub fn after(old: Option<Self>, noted: Option<u64>, placed: Option<Placed>, now: u64) -> Option<Self> {
        let known = old.map_or(0, |old| old.accessed).max(noted.unwrap_or(0));
        let (tier, accessed) = match placed {
            // Accesses to groups that are not stored are forgotten.
            None => return old.map(|old| Self { accessed: known, ..old }),
            Some(Placed::Gone) => return None,
            Some(Placed::Accessed(tier)) => (tier, now),
            Some(Placed::Moved(tier)) => (tier, known),
            Some(Placed::Postponed) => {
                let old = old?;
                return Some(Self { accessed: now, waiting: old.waiting.map(|(tier, _)| (tier, now)) });
            }
        };
        Some(Self { accessed, waiting: (tier != Tier::Cold).then_some((tier, accessed)) })
    }
}

/// The stored form of a time: its second, counted from 1. 0 means before any time.
pub(super) fn second_of(time: Duration) -> u64 {
    time.as_secs().saturating_add(1)
}

pub(super) fn time_of(second: u64) -> Option<Duration> {
    second.checked_sub(1).map(Duration::from_secs)
}

/// Replaces the record of a group, together with its cooling key.
pub(super) fn change_record(
    group: ChunkGroup,
    old: Option<HeatRecord>,
    new: Option<HeatRecord>,
    writes: &mut WriteBatch,
) {
    if old == new {
        return;
    }
    let waiting = |record: Option<HeatRecord>| record.and_then(|record| record.waiting);
    if waiting(old) != waiting(new) {
        if let Some((tier, second)) = waiting(old) {
            writes.delete(Family::Meta, keys::cooling_key(tier, second, group));
        }
        if let Some((tier, second)) = waiting(new) {
            writes.put(Family::Meta, keys::cooling_key(tier, second, group), Vec::new());
        }
    }
    match new {
        Some(new) => writes.put(Family::Meta, keys::heat_key(group), record::encode(&new)),
        None => writes.delete(Family::Meta, keys::heat_key(group)),
    }
}
