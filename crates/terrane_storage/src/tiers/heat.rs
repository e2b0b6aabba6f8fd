//! Heat: when each group of chunks was accessed last, in play time.
//!
//! Accesses are noted in memory and written along with what is saved. The record of a group also says in which tier it lies,
//! and since when it waits there to move on; under that second it has one *cooling key*, so that those which have waited
//! longest are found without looking at the others. An access alone does not move the cooling key: it is put right when its
//! time comes.

#[cfg(test)]
mod tests;

use crate::space::{BatchPos, DimensionId};
use crate::{
    ChunkGroup, CommitReport, Durability, Family, StoreError, StoredItem, Tier, WorldStore, WriteBatch, keys,
    values::record,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Records that are read at a time.
const PAGE: usize = 256;
/// Groups of a column whose accesses are noted, at most: a range may be all heights there are.
const MAX_HEIGHTS: u64 = 64;
/// More accesses than this are not noted before some are written: what is forgotten cools down too early, no more.
const MAX_NOTED: usize = 1 << 18;

/// What is known of heat in memory.
#[derive(Debug, Default)]
pub(crate) struct Heat {
    /// The [second](second_of) of each access that is not written yet.
    noted: Mutex<BTreeMap<ChunkGroup, u64>>,
    /// The play time when the world was opened.
    before: Duration,
    /// The time since then, in nanoseconds.
    session: AtomicU64,
}

/// What is stored of a group's heat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct HeatRecord {
    /// The [second](second_of) of the last access; 0 if there was none.
    accessed: u64,
    /// The tier that it lies in, and the second under which its cooling key is; `None` if it is cold.
    waiting: Option<(Tier, u64)>,
}

/// Whether this is what is stored of a group's heat.
pub(crate) fn is_record(value: &[u8]) -> bool {
    record::decode::<HeatRecord>(value).is_ok()
}

/// A group that was put into a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// Somebody uses it.
    Accessed(Tier),
    /// It counts as accessed when it was accessed last.
    Moved(Tier),
    /// It could not be moved. It is tried again when it has cooled down once more.
    Postponed,
    /// Nothing is stored of it.
    Gone,
}

/// A group that may move to a colder tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoolingGroup {
    /// The group.
    pub group: ChunkGroup,
    /// Where it lies.
    pub tier: Tier,
    /// The play time of its last access, in whole seconds; `None` if nobody has needed it since it was generated.
    pub accessed: Option<Duration>,
}

impl Heat {
    pub fn new(before: Duration) -> Self {
        Self { before, ..Self::default() }
    }

    fn noted(&self) -> MutexGuard<'_, BTreeMap<ChunkGroup, u64>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These accesses are stored.
    pub fn forget(&self, written: &[(ChunkGroup, u64)]) {
        let mut noted = self.noted();
        for (group, second) in written {
            // One that came meanwhile is later.
            if noted.get(group) == Some(second) {
                noted.remove(group);
            }
        }
    }
}

impl WorldStore {
    /// How long the world has been open, all its sessions together. It is stored whenever heat is, so that it never goes back
    /// behind an access that is known.
    pub fn play_time(&self) -> Duration {
        self.heat.before.saturating_add(Duration::from_nanos(self.heat.session.load(Ordering::Relaxed)))
    }

    /// Says how long the world has been open in this session, by the clock of whoever runs it. It cannot go back.
    #[doc(hidden)]
    pub fn set_session_time(&self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.heat.session.fetch_max(nanoseconds, Ordering::Relaxed);
    }

    /// Notes that the columns of a batch are in use at these chunk heights. It is written along with the next save; what is
    /// not stored stays unknown. Of a range of more than 256 chunks nothing is noted.
    #[doc(hidden)]
    pub fn note_access(&self, dimension: DimensionId, batch: BatchPos, chunk_heights: Range<i64>) {
        if chunk_heights.is_empty() {
            return;
        }
        let (first, last) = (chunk_heights.start >> 2, (chunk_heights.end - 1) >> 2);
        if last.abs_diff(first) < MAX_HEIGHTS {
            let chunk = |group: i64| batch.column(0).chunk(group << 2);
            self.note_accesses((first..=last).map(|group| ChunkGroup::of(dimension, chunk(group))));
        }
    }

    /// Notes that these groups are in use.
    #[doc(hidden)]
    pub fn note_accesses(&self, groups: impl IntoIterator<Item = ChunkGroup>) {
        let second = second_of(self.play_time());
        let mut noted = self.heat.noted();
        for group in groups {
            if noted.len() < MAX_NOTED || noted.contains_key(&group) {
                noted.insert(group, second);
            }
        }
    }

    /// Adds what was noted, and where groups were put, to a write. Once it is done, the answer is to be
    /// [forgotten](Heat::forget).
    pub(crate) fn add_heat(
        &self,
        placed: &BTreeMap<ChunkGroup, Placed>,
        writes: &mut WriteBatch,
    ) -> Result<Vec<(ChunkGroup, u64)>, StoreError> {
        let noted = self.heat.noted().clone();
        let groups: BTreeSet<ChunkGroup> = noted.keys().chain(placed.keys()).copied().collect();
        if groups.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.play_time();
        let groups: Vec<ChunkGroup> = groups.into_iter().collect();
        let before = writes.len();
        for groups in groups.chunks(PAGE) {
            for (&group, old) in groups.iter().zip(self.heat_records(groups)?) {
                let new =
                    HeatRecord::after(old, noted.get(&group).copied(), placed.get(&group).copied(), second_of(now));
                change_record(group, old, new, writes);
            }
        }
        if writes.len() > before {
            writes.put(Family::Meta, keys::PLAY_TIME, record::encode(&now));
        }
        Ok(noted.into_iter().collect())
    }

    /// Goes on with the play time that is stored.
    pub(crate) fn resume_play_time(&mut self) -> Result<(), StoreError> {
        let stored = self.read_record(keys::PLAY_TIME, StoredItem::PlayTime)?;
        self.heat = Heat::new(stored.unwrap_or_default());
        Ok(())
    }

    /// Up to `limit` groups of a tier that were not accessed since `until`, in play time, those first that wait longest. With no
    /// time only those that nobody has accessed ever.
    #[doc(hidden)]
    pub fn cooling_groups(
        &self,
        tier: Tier,
        until: Option<Duration>,
        limit: usize,
    ) -> Result<Vec<CoolingGroup>, StoreError> {
        let mut cooling = Vec::new();
        let range = keys::cooling_range(tier, until.map_or(0, second_of));
        // Those that wait in vain are put right, so the next call finds what this one did not come to.
        let page = self.store.scan(Family::Meta, &range.start..&range.end, 2 * limit)?;
        let page: Vec<Vec<u8>> = page.into_iter().map(|(key, _)| key).collect();
        for group in self.check_cooling(&page)? {
            // One that was accessed later has been put right, and waits there.
            if group.accessed <= until && cooling.len() < limit {
                cooling.push(group);
            }
        }
        Ok(cooling)
    }

    /// The next groups of a tier of a walk over all of them, and the key from which it goes on; a walk begins with no key, and
    /// ends with none.
    #[doc(hidden)]
    pub fn walk_cooling_groups(
        &self,
        tier: Tier,
        from: Option<&Vec<u8>>,
        limit: usize,
    ) -> Result<(Vec<CoolingGroup>, Option<Vec<u8>>), StoreError> {
        let Range { start, end } = keys::cooling_range(tier, u64::MAX);
        let start = from.map_or(start, Vec::clone);
        let page = self.store.scan(Family::Meta, &start..&end, limit)?;
        let page: Vec<Vec<u8>> = page.into_iter().map(|(key, _)| key).collect();
        let next = page.last().filter(|_| page.len() == limit).map(|key| keys::after(key));
        Ok((self.check_cooling(&page)?, next))
    }

    /// How many groups there are for [`cooling_groups`](Self::cooling_groups); more than `limit` are not counted.
    #[doc(hidden)]
    pub fn count_cooling_groups(&self, tier: Tier, until: Option<Duration>, limit: usize) -> Result<usize, StoreError> {
        let range = keys::cooling_range(tier, until.map_or(0, second_of));
        Ok(self.store.scan(Family::Meta, &range.start..&range.end, limit)?.len())
    }

    /// The groups of these cooling keys. Keys that are not under the second of the last access are put right.
    fn check_cooling(&self, found: &[Vec<u8>]) -> Result<Vec<CoolingGroup>, StoreError> {
        let parse = |key: &Vec<u8>| self.parsed(Family::Meta, key, keys::parse_cooling_key);
        let entries = found.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        let _writing = self.lock_writes();
        let groups: Vec<ChunkGroup> = entries.iter().map(|(.., group)| *group).collect();
        let (mut cooling, mut writes) = (Vec::new(), WriteBatch::default());
        for ((tier, second, group), stored) in entries.into_iter().zip(self.heat_records(&groups)?) {
            let Some(record) = stored.filter(|record| record.waiting == Some((tier, second))) else {
                // Left behind by a damaged record.
                writes.delete(Family::Meta, keys::cooling_key(tier, second, group));
                continue;
            };
            let noted = self.heat.noted().get(&group).copied().unwrap_or(0);
            let accessed = record.accessed.max(noted);
            change_record(group, stored, Some(HeatRecord { accessed, waiting: Some((tier, accessed)) }), &mut writes);
            cooling.push(CoolingGroup { group, tier, accessed: time_of(accessed) });
        }
        if !writes.is_empty() {
            writes.put(Family::Meta, keys::PLAY_TIME, record::encode(&self.play_time()));
            self.write(writes, Durability::Process)?;
        }
        Ok(cooling)
    }

    /// What is stored of the heat of groups. A damaged record is like none: nothing but heat is lost with it.
    fn heat_records(&self, groups: &[ChunkGroup]) -> Result<Vec<Option<HeatRecord>>, StoreError> {
        let keys: Vec<Vec<u8>> = groups.iter().map(|group| keys::heat_key(*group)).collect();
        let keys = keys.iter().map(Vec::as_slice).collect::<Vec<_>>();
        let values = self.read_to_replace(Family::Meta, &keys, &mut CommitReport::default())?;
        Ok(values.into_iter().map(|value| record::decode(&value?).ok()).collect())
    }

    /// The cooling keys of groups with these heat keys.
    pub(crate) fn cooling_keys_of(&self, heat_keys: &[Vec<u8>]) -> Result<BTreeSet<(Family, Vec<u8>)>, StoreError> {
        let groups = heat_keys.iter().map(|key| keys::parse_heat_key(key));
        let groups: Vec<ChunkGroup> = groups.flatten().collect();
        let records = self.heat_records(&groups)?;
        let key = |(group, record): (&ChunkGroup, Option<HeatRecord>)| {
            let (tier, second) = record?.waiting?;
            Some((Family::Meta, keys::cooling_key(tier, second, *group)))
        };
        Ok(groups.iter().zip(records).filter_map(key).collect())
    }

    /// Finds groups that have no heat, as in a world that was made before there was any, and lets them cool down from now on.
    /// Looks at up to `limit` groups, and goes on there the next time. Says whether it has come to the end.
    #[doc(hidden)]
    pub fn adopt_groups(&self, limit: usize) -> Result<bool, StoreError> {
        let _writing = self.lock_writes();
        let mut next = match self.store.get(Family::Meta, keys::ADOPTED)? {
            // An empty value says that all are known.
            Some(cursor) if cursor.is_empty() => return Ok(true),
            cursor => cursor.unwrap_or_default(),
        };
        let last = [0xff; keys::CHUNK_KEY_LENGTH + 1];
        let (mut found, mut is_end) = (Vec::new(), false);
        while found.len() < limit {
            let page = match self.store.scan(Family::Chunks, &next..&last[..], 1) {
                // What is behind it stays hot; it must not keep what is known of others from being written.
                Err(StoreError::Damaged { .. }) => Vec::new(),
                page => page?,
            };
            let Some((key, _)) = page.first() else {
                is_end = true;
                break;
            };
            let Some((dimension, chunk)) = keys::parse_chunk_key(key) else {
                next = keys::after(key);
                continue;
            };
            let group = ChunkGroup::of(dimension, chunk);
            next = group.range().end;
            found.push(group);
        }
        let unknown = found.iter().zip(self.heat_records(&found)?).filter(|(_, record)| record.is_none());
        let placed = unknown.map(|(group, _)| (*group, Placed::Accessed(Tier::Hot))).collect();
        let mut writes = WriteBatch::default();
        let written = self.add_heat(&placed, &mut writes)?;
        writes.put(Family::Meta, keys::ADOPTED, if is_end { Vec::new() } else { next });
        self.write(writes, Durability::Process)?;
        self.heat.forget(&written);
        Ok(is_end)
    }
}

impl HeatRecord {
    /// What is to be known of a group; `None` for nothing.
    fn after(old: Option<Self>, noted: Option<u64>, placed: Option<Placed>, now: u64) -> Option<Self> {
        let known = old.map_or(0, |old| old.accessed).max(noted.unwrap_or(0));
        let (tier, accessed) = match placed {
            // An access to what is not stored is forgotten.
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

/// A time as it is stored: the second in which it lies, counted from 1. 0 is before there was any time.
fn second_of(time: Duration) -> u64 {
    time.as_secs().saturating_add(1)
}

fn time_of(second: u64) -> Option<Duration> {
    second.checked_sub(1).map(Duration::from_secs)
}

/// Replaces what is known of a group, with its cooling key.
fn change_record(group: ChunkGroup, old: Option<HeatRecord>, new: Option<HeatRecord>, writes: &mut WriteBatch) {
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
