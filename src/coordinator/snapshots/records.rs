//! Records of running restores on disk, so that the next session can continue or undo them.
//!
//! Each restore has a folder, `restores/NUMBER`, from before its first change until all of its changes are saved:
//!
//! | name | what |
//! |---|---|
//! | `restore` | the line `bevy_terrane restore 1`, a CRC-32 of the rest, little-endian, and [`Content`] in postcard |
//! | `snapshot` | the snapshot to restore, unless it is stored elsewhere |
//!
//! The folder is prepared as `NUMBER.new`. A folder without the file `restore` is being removed.

use crate::block::BlockRegistry;
use crate::bytes;
use crate::coordinator::messages::snapshots::{AfterCrash, EntityRestore, RestoreSnapshot, SnapshotSource};
use crate::snapshot::{BlockFilter, RestoreSequence, StoreOptions, StoredSnapshot, StoredSnapshotError};
use crate::space::{BlockBox, DimensionId};
use crate::work::{FileError, Tell, if_exists, sync_folder};
use bevy::log::{error, warn};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SIGNATURE: &[u8] = b"bevy_terrane restore 1\n";
const RECORD: &str = "restore";
const SNAPSHOT: &str = "snapshot";
const UNFINISHED: &str = "new";
/// The maximum size of a record: a filter takes a bit for each block.
const MAX_BYTES: u64 = 1 << 24;
/// A record is short-lived, so it is compressed little.
const OPTIONS: StoreOptions = StoreOptions { level: 1, sync: true };

/// The record of a restore.
#[derive(Clone)]
pub struct Record {
    pub path: PathBuf,
    /// The restore that the next session runs.
    pub restore: RestoreSnapshot,
    pub is_written: bool,
}

/// The content of a record.
#[derive(Serialize, Deserialize)]
struct Content {
    dimension: DimensionId,
    area: Option<BlockBox>,
    filter: BlockFilter,
    sequence: Option<RestoreSequence>,
    entities: EntityRestore,
    after_crash: AfterCrash,
    /// The folder of the snapshot, relative if it is in the folder of all snapshots; `None` if it is beside the record.
    snapshot: Option<PathBuf>,
}

/// All records of a world.
#[derive(Clone, Debug)]
pub struct RestoreRecords {
    /// The folder of all snapshots.
    snapshots: PathBuf,
    next: u64,
}

impl RestoreRecords {
    /// Finds the records in the folder of all snapshots, in their order, and removes leftovers of others. Unreadable records
    /// are kept.
    ///
    /// # Errors
    /// Fails if the records cannot be listed, since a restore would then stay half done.
    pub fn open(snapshots: PathBuf) -> Result<(Self, Vec<Record>), FileError> {
        let mut records = Self { snapshots, next: 0 };
        let mut next = 0;
        let numbers = records.numbers(&mut next).map_err(FileError::of(&records.folder(), "list"))?;
        records.next = numbers.last().map_or(0, |last| last.saturating_add(1)).max(next);
        let mut found = Vec::new();
        for path in numbers.into_iter().map(|number| records.path(number)) {
            match records.read(&path) {
                Ok(restore) => found.push(Record { path, restore, is_written: true }),
                Err(error) => error!("a restore was interrupted and cannot continue: {}: {error}", path.display()),
            }
        }
        Ok((records, found))
    }

    /// The numbers of the records. Raises `next` above numbers whose leftovers cannot be removed.
    fn numbers(&self, next: &mut u64) -> io::Result<Vec<u64>> {
        let entries = match fs::read_dir(self.folder()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut numbers = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let (number, is_unfinished) = match name.strip_suffix(".new") {
                Some(number) => (number, true),
                None => (name, false),
            };
            // Folders with other names are not ours.
            let Ok(number) = number.parse::<u64>() else { continue };
            if is_unfinished || !path.join(RECORD).exists() {
                // The restore has not begun, or is over. A folder that cannot be removed stays, and only blocks its number.
                if let Err(error) = fs::remove_dir_all(&path) {
                    warn!("{}: cannot be removed: {error}", path.display());
                    *next = number.saturating_add(1).max(*next);
                }
            } else {
                numbers.push(number);
            }
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn folder(&self) -> PathBuf {
        self.snapshots.join("restores")
    }

    /// Creates the next record in memory.
    pub fn next(&mut self, restore: RestoreSnapshot) -> Record {
        let path = self.path(self.next);
        self.next += 1;
        Record { path, restore, is_written: false }
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder().join(number.to_string())
    }

    fn read(&self, path: &Path) -> Result<RestoreSnapshot, Box<dyn Error>> {
        let mut bytes = Vec::new();
        File::open(path.join(RECORD))?.take(MAX_BYTES).read_to_end(&mut bytes)?;
        let Content { dimension, area, filter, sequence, entities, after_crash, snapshot } = decode(&bytes)?;
        let folder = snapshot.map_or_else(|| path.join(SNAPSHOT), |folder| self.snapshots.join(folder));
        let snapshot = SnapshotSource::Stored(Arc::new(StoredSnapshot::open(&folder)?));
        Ok(RestoreSnapshot { dimension, snapshot, area, filter, sequence, entities, after_crash })
    }
}

/// Writes the record of a restore durably, with its snapshot if that is not stored.
pub fn write(
    path: &Path,
    restore: &RestoreSnapshot,
    blocks: &BlockRegistry,
    progress: Tell<'_>,
) -> Result<(), StoredSnapshotError> {
    let failed = FileError::of(path, "write");
    let unfinished = path.with_extension(UNFINISHED);
    // Leftovers of a failed attempt.
    drop(fs::remove_dir_all(&unfinished));
    fs::create_dir_all(&unfinished).map_err(&failed)?;
    let snapshot = match &restore.snapshot {
        SnapshotSource::Held(snapshot) => {
            StoredSnapshot::create(
                &unfinished.join(SNAPSHOT),
                (restore.dimension, snapshot),
                blocks,
                &OPTIONS,
                BTreeMap::new(),
                progress,
            )?;
            None
        }
        SnapshotSource::Stored(stored) => {
            let all = path.parent().and_then(Path::parent);
            let inside = all.and_then(|all| stored.folder().strip_prefix(all).ok());
            Some(inside.map_or_else(|| std::path::absolute(stored.folder()), |inside| Ok(inside.to_owned())))
        }
    };
    let RestoreSnapshot { dimension, snapshot: _, area, filter, sequence, entities, after_crash } = restore.clone();
    let snapshot = snapshot.transpose().map_err(&failed)?;
    let content = Content { dimension, area, filter, sequence, entities, after_crash, snapshot };
    let bytes = encode(&content).map_err(|reason| failed(io::Error::other(reason)))?;
    let write = || {
        let mut file = File::create(unfinished.join(RECORD))?;
        file.write_all(&bytes)?;
        file.sync_all()
    };
    write().map_err(&failed)?;
    sync_folder(&unfinished)?;
    fs::rename(&unfinished, path).map_err(&failed)?;
    Ok(path.parent().map_or(Ok(()), sync_folder)?)
}

/// Removes the record of a restore whose changes are all saved or no longer wanted.
pub fn remove(path: &Path) -> io::Result<()> {
    // A backup or a check beside it takes the rest for left over, and so does the next start.
    let left_over = path.with_extension(UNFINISHED);
    if_exists(fs::remove_dir_all(&left_over))?;
    fs::rename(path, &left_over)?;
    fs::remove_dir_all(left_over)
}

fn encode(content: &Content) -> Result<Vec<u8>, String> {
    let payload = bytes::try_put_value(Vec::new(), content)?;
    Ok([SIGNATURE, &crc32fast::hash(&payload).to_le_bytes(), &payload].concat())
}

fn decode(bytes: &[u8]) -> Result<Content, String> {
    let rest = bytes.strip_prefix(SIGNATURE).ok_or("its first line is not `bevy_terrane restore 1`")?;
    let (checksum, payload) = rest.split_first_chunk::<4>().ok_or("it ends too early")?;
    if u32::from_le_bytes(*checksum) != crc32fast::hash(payload) {
        return Err("its checksum is wrong".into());
    }
    bytes::value(payload)
}
