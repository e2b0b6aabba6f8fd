//! Heat in the store: accesses are noted and written, and groups that cool down are found.

#[cfg(test)]
mod tests;

use super::heat::{CoolingGroup, Heat, HeatRecord, Placed, change_record, second_of, time_of};
use crate::space::{BatchPos, DimensionId};
use crate::{
    ChunkGroup, CommitReport, Durability, Family, StoreError, StoredItem, Tier, WorldStore, WriteBatch, keys,
    values::record,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Duration;

const PAGE: usize = 256;
/// The maximum number of groups of a column whose accesses are noted: a range may span all heights.
const MAX_HEIGHTS: u64 = 64;
/// The maximum number of unwritten accesses. Groups of dropped ones cool down too early, and nothing worse.
const MAX_NOTED: usize = 1 << 18;

impl WorldStore {
    /// The time that the world has been open, over all sessions. It is stored whenever heat is, so it never falls
    /// behind a stored access.
    pub fn play_time(&self) -> Duration {
        self.heat.before.saturating_add(Duration::from_nanos(self.heat.session.load(Ordering::Relaxed)))
    }
}

// For the coordinator.
#[doc(hidden)]
impl WorldStore {
    /// Sets the time that the world has been open in this session, by the caller's clock. It cannot go back.
    pub fn set_session_time(&self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.heat.session.fetch_max(nanoseconds, Ordering::Relaxed);
    }

    /// Notes that the columns of a batch are in use at these chunk heights. The note is written with the next save, and
    /// dropped for groups that are not stored. Ranges of more than 256 chunks are ignored.
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
    pub fn note_accesses(&self, groups: impl IntoIterator<Item = ChunkGroup>) {
        let second = second_of(self.play_time());
        let mut noted = self.heat.noted();
        for group in groups {
            if noted.len() < MAX_NOTED || noted.contains_key(&group) {
                noted.insert(group, second);
            }
        }
    }

    /// Adds noted accesses and placed groups to a write. Pass the result to [`Heat::forget`] after the write.
    pub(crate) fn add_heat(
        &self,
        placed: &BTreeMap<ChunkGroup, Placed>,
        writes: &mut WriteBatch,
    ) -> Result<Vec<(ChunkGroup, u64)>, StoreError> {
        let noted = self.heat.noted().clone();
        if self.incarnation().is_some() {
            // Play time and heat are of the whole world, so servers that share it keep neither.
            return Ok(noted.into_iter().collect());
        }
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

    /// Resumes the stored play time.
    pub(crate) fn resume_play_time(&mut self) -> Result<(), StoreError> {
        let stored = self.read_record(keys::PLAY_TIME, StoredItem::PlayTime)?;
        self.heat = Heat::new(stored.unwrap_or_default());
        Ok(())
    }

    /// Up to `limit` groups of a tier that were last accessed before or at `until`, in play time, starting with the
    /// longest wait. Without `until`, only groups that were never accessed.
    pub fn cooling_groups(
        &self,
        tier: Tier,
        until: Option<Duration>,
        limit: usize,
    ) -> Result<Vec<CoolingGroup>, StoreError> {
        let mut cooling = Vec::new();
        let range = keys::cooling_range(tier, until.map_or(0, second_of));
        // Outdated keys are corrected, so the next call finds the groups that this one skipped.
        let page = self.store.scan(Family::Meta, &range.start..&range.end, 2 * limit)?;
        let page: Vec<Vec<u8>> = page.into_iter().map(|(key, _)| key).collect();
        for group in self.check_cooling(&page)? {
            // Groups that were accessed later have got a corrected key, and wait there.
            if group.accessed <= until && cooling.len() < limit {
                cooling.push(group);
            }
        }
        Ok(cooling)
    }

    /// The next page of groups of a tier, for a walk over all of them, and the key at which the next page starts. A
    /// walk begins without a key and ends when none is returned.
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

    /// The number of groups for [`cooling_groups`](Self::cooling_groups), counted up to `limit`.
    pub fn count_cooling_groups(&self, tier: Tier, until: Option<Duration>, limit: usize) -> Result<usize, StoreError> {
        let range = keys::cooling_range(tier, until.map_or(0, second_of));
        Ok(self.store.scan(Family::Meta, &range.start..&range.end, limit)?.len())
    }

    /// The groups of these cooling keys. Keys that do not contain the second of the last access are corrected.
    fn check_cooling(&self, found: &[Vec<u8>]) -> Result<Vec<CoolingGroup>, StoreError> {
        let parse = |key: &Vec<u8>| self.parsed(Family::Meta, key, keys::parse_cooling_key);
        let entries = found.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        let _writing = self.lock_writes()?;
        let groups: Vec<ChunkGroup> = entries.iter().map(|(.., group)| *group).collect();
        let (mut cooling, mut writes) = (Vec::new(), WriteBatch::default());
        for ((tier, second, group), stored) in entries.into_iter().zip(self.heat_records(&groups)?) {
            let Some(record) = stored.filter(|record| record.waiting == Some((tier, second))) else {
                // A stale key of a damaged record.
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

    /// The stored heat of groups. A damaged record counts as missing: only heat is lost with it.
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

    /// Finds groups without heat, as in worlds that are older than heat, and lets them cool down from now on. Looks at
    /// up to `limit` groups, and continues from there on the next call. Returns `true` once all groups are known.
    pub fn adopt_groups(&self, limit: usize) -> Result<bool, StoreError> {
        let _writing = self.lock_writes()?;
        let mut next = match self.store.get(Family::Meta, keys::ADOPTED)? {
            // An empty value means that all groups are known.
            Some(cursor) if cursor.is_empty() => return Ok(true),
            cursor => cursor.unwrap_or_default(),
        };
        let last = [0xff; keys::CHUNK_KEY_LENGTH + 1];
        let (mut found, mut is_end) = (Vec::new(), false);
        while found.len() < limit {
            let page = match self.store.scan(Family::Chunks, &next..&last[..], 1) {
                // Groups behind the damage stay hot. The damage must not prevent the other groups from being written.
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
