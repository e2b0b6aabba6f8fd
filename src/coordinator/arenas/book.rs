//! The arenas of a world, and the rules for creating, reverting and removing them.

#[cfg(test)]
mod tests;

use super::owner_data;
use crate::coordinator::messages::arenas::{Arena, ArenaError, ArenaState, ArenaStatus};
use crate::coordinator::messages::jobs::{JobId, JobState};
use crate::coordinator::messages::snapshots::JobError;
use crate::snapshot::{StoredSnapshot, StoredSnapshotError};
use crate::space::BlockBox;
use crate::work::FileError;
use bevy::prelude::*;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

const NAME_LENGTHS: RangeInclusive<usize> = 3..=32;

/// All arenas of a world by name. Two arenas never overlap, and each arena does only one thing at a time.
#[derive(Resource, Debug)]
pub struct ArenaBook {
    /// The folder for arenas, or why there is none.
    folder: Result<PathBuf, ArenaError>,
    /// The maximum length of each side, in blocks.
    most_side: u64,
    /// The arenas; an error for each arena that cannot be read.
    entries: BTreeMap<String, Result<Entry, StoredSnapshotError>>,
}

#[derive(Debug)]
pub struct Entry {
    pub arena: Arena,
    pub status: ArenaStatus,
    /// When a running revert is cancelled, or the next one may begin.
    pub until: Duration,
    stored: Option<Arc<StoredSnapshot>>,
    /// The status that was last published to the main world.
    pub told: Option<ArenaStatus>,
}

fn key(name: &str) -> String {
    name.to_ascii_lowercase()
}

fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    NAME_LENGTHS.contains(&name.len()) && name.bytes().all(is_part)
}

impl ArenaBook {
    /// Finds the arenas in the folder of all snapshots; without one, all orders are refused for the given reason.
    ///
    /// # Errors
    /// Fails if the arenas cannot be listed, since a new arena could then overwrite an existing one.
    pub fn open(snapshots: Result<PathBuf, ArenaError>, most_side: u64) -> Result<Self, FileError> {
        let folder = snapshots.map(|snapshots| snapshots.join("arenas"));
        let found = match &folder {
            Ok(folder) => folders(folder).map_err(FileError::of(folder, "list"))?,
            Err(_) => Vec::new(),
        };
        let mut entries = BTreeMap::new();
        for (name, path) in found {
            let entry = read(&path).and_then(|(arena, stored)| match key(&arena.name) == name {
                true => Ok(Entry::stored(arena, stored)),
                false => Err(damaged(path, format!("it is the folder of arena {}", arena.name))),
            });
            if let Err(error) = &entry {
                error!("arena {name} is damaged: {error}");
            }
            entries.insert(key(&name), entry);
        }
        Ok(Self { folder, most_side, entries })
    }

    /// The arenas that can be read.
    pub fn entries(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.values_mut().flatten()
    }

    fn folder(&self, name: &str) -> Result<PathBuf, ArenaError> {
        self.folder.clone().map(|folder| folder.join(key(name)))
    }

    /// Checks that the arena may be created, and returns its folder.
    pub fn check(&self, arena: &Arena) -> Result<PathBuf, ArenaError> {
        let folder = self.folder(&arena.name)?;
        let name = || arena.name.clone();
        if !is_name(&arena.name) {
            return Err(ArenaError::Name { name: name() });
        }
        match self.entries.get(&key(&arena.name)) {
            Some(Ok(_)) => return Err(ArenaError::Exists { name: name() }),
            Some(Err(damage)) => return Err(ArenaError::Damaged { name: name(), source: damage.clone().into() }),
            None => {}
        }
        let side = longest_side(&arena.area);
        if side == 0 || side > self.most_side.into() {
            return Err(ArenaError::Size { name: name(), side, limit: self.most_side });
        }
        let overlaps =
            |other: &&Arena| other.dimension == arena.dimension && !other.area.intersection(&arena.area).is_empty();
        match self.entries.values().flatten().map(|entry| &entry.arena).find(overlaps) {
            Some(other) => Err(ArenaError::Overlap { name: name(), other: other.name.clone() }),
            None => Ok(folder),
        }
    }

    /// Adds an arena that the job creates.
    pub fn begin(&mut self, arena: Arena, job: JobId) {
        let status = ArenaStatus { job: Some(job), ..ArenaStatus::default() };
        let name = key(&arena.name);
        self.entries.insert(name, Ok(Entry { arena, status, until: Duration::ZERO, stored: None, told: None }));
    }

    /// The arena and its snapshot, if the arena may be reverted.
    pub fn revertible(&mut self, name: &str, now: Duration) -> Result<(&mut Entry, Arc<StoredSnapshot>), ArenaError> {
        let entry = self.idle(name)?;
        let name = entry.arena.name.clone();
        if entry.status.state == ArenaState::CoolingDown && now < entry.until {
            return Err(ArenaError::CoolingDown { name, left: entry.until.saturating_sub(now) });
        }
        match entry.stored.clone() {
            Some(stored) => Ok((entry, stored)),
            None => Err(ArenaError::Busy { name, state: ArenaState::Creating }),
        }
    }

    /// Checks that the arena may be removed. Returns its folder, and its entry unless it is damaged.
    pub fn removable(&mut self, name: &str) -> Result<(Option<&mut Entry>, PathBuf), ArenaError> {
        let folder = self.folder(name)?;
        match self.entries.get(&key(name)) {
            Some(Err(_)) => Ok((None, folder)),
            _ => self.idle(name).map(|entry| (Some(entry), folder)),
        }
    }

    /// Handles the end of a removal, and returns the arena if it is gone.
    pub fn end_removal(&mut self, name: &str, is_gone: bool) -> Option<Arena> {
        if is_gone {
            return self.remove(name);
        }
        if let Some(Ok(entry)) = self.entries.get_mut(&key(name)) {
            entry.status.state = ArenaState::Ready;
        }
        None
    }

    pub fn remove(&mut self, name: &str) -> Option<Arena> {
        self.entries.remove(&key(name))?.ok().map(|entry| entry.arena)
    }

    fn idle(&mut self, name: &str) -> Result<&mut Entry, ArenaError> {
        match self.entries.get_mut(&key(name)) {
            None => Err(ArenaError::Unknown { name: name.to_owned() }),
            Some(Err(damage)) => Err(ArenaError::Damaged { name: name.to_owned(), source: damage.clone().into() }),
            Some(Ok(entry)) => match entry.status.state {
                ArenaState::Ready | ArenaState::CoolingDown => Ok(entry),
                state => Err(ArenaError::Busy { name: entry.arena.name.clone(), state }),
            },
        }
    }
}

impl Entry {
    fn stored(arena: Arena, stored: StoredSnapshot) -> Self {
        let (status, stored) = (ArenaStatus::default(), Arc::new(stored));
        let mut entry = Self { arena, status, until: Duration::ZERO, stored: None, told: None };
        entry.end_creation(stored);
        entry
    }

    /// Handles the end of the creation.
    pub fn end_creation(&mut self, stored: Arc<StoredSnapshot>) {
        let (columns, bytes) = (stored.columns().len(), stored.bytes());
        self.status = ArenaStatus { state: ArenaState::Ready, job: None, columns, bytes, reverts: 0 };
        self.stored = Some(stored);
    }

    /// Handles the end of the job that reverts the arena. Returns the error for the game if the revert failed.
    pub fn end_revert(&mut self, state: JobState, failure: Option<JobError>, now: Duration) -> Option<ArenaError> {
        let name = self.arena.name.clone();
        let is_late = state == JobState::Cancelled && now >= self.until;
        self.status.state = ArenaState::CoolingDown;
        self.status.job = None;
        self.status.reverts += 1;
        self.until = now.saturating_add(self.arena.settings.cooldown);
        match failure? {
            _ if is_late => Some(ArenaError::TimedOut { name, timeout: self.arena.settings.timeout }),
            source => Some(ArenaError::Failed { name, source: source.into() }),
        }
    }
}

/// The folders within a folder, by name.
fn folders(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir()
            && let Ok(name) = entry.file_name().into_string()
        {
            found.push((name, entry.path()));
        }
    }
    Ok(found)
}

fn read(path: &Path) -> Result<(Arena, StoredSnapshot), StoredSnapshotError> {
    let stored = StoredSnapshot::open(path)?;
    let arena = owner_data::read(stored.owner_data(), stored.dimension(), *stored.area());
    let arena = arena.map_err(|what| damaged(path.to_path_buf(), what))?;
    Ok((arena, stored))
}

fn damaged(path: PathBuf, what: String) -> StoredSnapshotError {
    StoredSnapshotError::Damaged { path, what }
}

/// Removes the files of an arena, damaged or not.
pub fn remove_folder(folder: &Path) -> Result<(), StoredSnapshotError> {
    match StoredSnapshot::open(folder) {
        Ok(stored) => stored.remove(),
        Err(_) => Ok(fs::remove_dir_all(folder).map_err(FileError::of(folder, "remove"))?),
    }
}

/// The length of the longest side in blocks; 0 if the box is empty.
fn longest_side(area: &BlockBox) -> u128 {
    if area.is_empty() {
        return 0;
    }
    let BlockBox { min, max } = area;
    let sides = [(min.x, max.x), (min.y, max.y), (min.z, max.z)];
    sides.into_iter().map(|(low, high)| u128::from(high.abs_diff(low)) + 1).max().unwrap_or(0)
}
