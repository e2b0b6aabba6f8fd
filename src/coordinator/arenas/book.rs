//! The arenas of a world, and what may be done with them when.

#[cfg(test)]
mod tests;

use super::arena::{Arena, ArenaDamage, ArenaError, ArenaState, ArenaStatus};
use crate::coordinator::snapshots::SnapshotJobId;
use crate::snapshot::StoredSnapshot;
use crate::space::BlockBox;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

const NAME_LENGTHS: RangeInclusive<usize> = 3..=32;

/// All arenas of a world by name. Two never overlap, and with each only one thing is done at a time.
#[derive(Debug)]
pub struct ArenaBook {
    /// Blocks along each side at the most.
    most_side: u64,
    entries: BTreeMap<String, Entry>,
    /// Those that cannot be read, and why.
    damaged: BTreeMap<String, ArenaDamage>,
}

#[derive(Debug)]
pub struct Entry {
    pub arena: Arena,
    pub stage: Stage,
    pub stored: Option<Arc<StoredSnapshot>>,
    pub reverts: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Creating(SnapshotJobId),
    Ready,
    /// Cancelled if it takes longer.
    Reverting {
        job: SnapshotJobId,
        until: Duration,
        is_late: bool,
    },
    CoolingDown(Duration),
    Removing,
}

/// The name under which an arena is kept.
pub fn key(name: &str) -> String {
    name.to_ascii_lowercase()
}

fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    NAME_LENGTHS.contains(&name.len()) && name.bytes().all(is_part)
}

impl ArenaBook {
    pub fn new(most_side: u64) -> Self {
        Self { most_side, entries: BTreeMap::new(), damaged: BTreeMap::new() }
    }

    /// One that was found on disk.
    pub fn restore(&mut self, arena: Arena, stored: Arc<StoredSnapshot>) {
        let entry = Entry { stage: Stage::Ready, stored: Some(stored), reverts: 0, arena };
        self.entries.insert(key(&entry.arena.name), entry);
    }

    /// One that was found on disk and cannot be used.
    pub fn restore_damaged(&mut self, name: String, damage: ArenaDamage) {
        self.damaged.insert(key(&name), damage);
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Entry> {
        self.entries.get_mut(&key(name))
    }

    pub fn entries(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.values_mut()
    }

    /// Whether the arena may be created.
    pub fn check(&self, arena: &Arena) -> Result<(), ArenaError> {
        let name = || arena.name.clone();
        if !is_name(&arena.name) {
            return Err(ArenaError::Name { name: name() });
        }
        if let Some(damage) = self.damaged.get(&key(&arena.name)) {
            return Err(ArenaError::Damaged { name: name(), source: damage.clone().into() });
        }
        if self.entries.contains_key(&key(&arena.name)) {
            return Err(ArenaError::Exists { name: name() });
        }
        let side = longest_side(&arena.area);
        if side == 0 || side > self.most_side.into() {
            return Err(ArenaError::Size { name: name(), side, limit: self.most_side });
        }
        let overlaps = |entry: &&Entry| {
            entry.arena.dimension == arena.dimension && !entry.arena.area.intersection(&arena.area).is_empty()
        };
        match self.entries.values().find(overlaps) {
            Some(other) => Err(ArenaError::Overlap { name: name(), other: other.arena.name.clone() }),
            None => Ok(()),
        }
    }

    /// It is being created by this job.
    pub fn begin(&mut self, arena: Arena, job: SnapshotJobId) {
        let entry = Entry { stage: Stage::Creating(job), stored: None, reverts: 0, arena };
        self.entries.insert(key(&entry.arena.name), entry);
    }

    /// Gives the arena with its snapshot, if it may be reverted.
    pub fn revertible(&mut self, name: &str, now: Duration) -> Result<(&mut Entry, Arc<StoredSnapshot>), ArenaError> {
        let entry = self.idle(name)?;
        let name = entry.arena.name.clone();
        match (entry.stage, entry.stored.clone()) {
            (Stage::CoolingDown(until), _) if now < until => {
                Err(ArenaError::CoolingDown { name, left: until.saturating_sub(now) })
            }
            (_, Some(stored)) => Ok((entry, stored)),
            (_, None) => Err(ArenaError::Damaged { name, source: ArenaDamage::Missing { what: "snapshot" }.into() }),
        }
    }

    /// Whether it may be removed: gives its entry, or `None` for one that is damaged.
    pub fn removable(&mut self, name: &str) -> Result<Option<&mut Entry>, ArenaError> {
        match self.damaged.contains_key(&key(name)) {
            true => Ok(None),
            false => self.idle(name).map(Some),
        }
    }

    /// It is gone.
    pub fn remove(&mut self, name: &str) {
        self.entries.remove(&key(name));
        self.damaged.remove(&key(name));
    }

    fn idle(&mut self, name: &str) -> Result<&mut Entry, ArenaError> {
        if let Some(damage) = self.damaged.get(&key(name)) {
            return Err(ArenaError::Damaged { name: name.to_owned(), source: damage.clone().into() });
        }
        let Some(entry) = self.entries.get_mut(&key(name)) else {
            return Err(ArenaError::Unknown { name: name.to_owned() });
        };
        match entry.stage {
            Stage::Ready | Stage::CoolingDown(_) => Ok(entry),
            _ => Err(ArenaError::Busy { name: entry.arena.name.clone(), state: entry.status().state }),
        }
    }
}

impl Entry {
    pub fn status(&self) -> ArenaStatus {
        let (state, job) = match self.stage {
            Stage::Creating(job) => (ArenaState::Creating, Some(job)),
            Stage::Ready => (ArenaState::Ready, None),
            Stage::Reverting { job, .. } => (ArenaState::Reverting, Some(job)),
            Stage::CoolingDown(_) => (ArenaState::CoolingDown, None),
            Stage::Removing => (ArenaState::Removing, None),
        };
        let (columns, bytes) = self.stored.as_ref().map_or((0, 0), |stored| (stored.columns().len(), stored.bytes()));
        ArenaStatus { state, job, columns, bytes, reverts: self.reverts }
    }
}

/// Blocks along the longest side; 0 if the box is empty.
fn longest_side(area: &BlockBox) -> u128 {
    if area.is_empty() {
        return 0;
    }
    let BlockBox { min, max } = area;
    let sides = [(min.x, max.x), (min.y, max.y), (min.z, max.z)];
    sides.into_iter().map(|(low, high)| u128::from(high.abs_diff(low)) + 1).max().unwrap_or(0)
}
