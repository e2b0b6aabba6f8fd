//! Checks of all files below a world's folder of snapshots.
//!
//! Stored snapshots and the records of restores have checksums of their own. Other compressed schematics have the one of
//! gzip. The rest is only read. Leftovers of interrupted work are no part of the world.

use super::Damage;
use crate::work::{Progress, if_exists};
use crate::{Family, StoreError, WorldStore};
use flate2::bufread::GzDecoder;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::mem;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use terrane_world::snapshot::{StoredSnapshot, StoredSnapshotError};

const ARENAS: &str = "arenas";
const INDEX: &str = "index.txt";
const SCHEMATIC: &str = "schem";
/// The file of a restore; its first line, which a CRC-32 of the rest follows; and the most bytes it has.
const RECORD: &str = "restore";
const RECORD_SIGNATURE: &[u8] = b"bevy_terrane restore 1\n";
const MAX_RECORD: u64 = 1 << 24;
/// The extensions of restores that are being prepared, and of snapshots that are being stored or removed.
const LEFT_OVER: [&str; 2] = ["new", "unfinished"];
/// The first byte of a schematic that is not compressed.
const UNCOMPRESSED: u8 = 10;
/// The number of bytes read at a time.
const PIECE: usize = 1 << 16;

/// The files of a world that were checked before its database, as a part of the same work.
pub(super) struct CheckedSnapshots {
    bytes: u64,
    /// Their part of all work.
    share: f64,
}

impl CheckedSnapshots {
    /// The progress of the work, from that of the rest.
    pub fn and(&self, rest: &Progress) -> Progress {
        let fraction = rest.fraction.map(|fraction| self.share + (1.0 - self.share) * fraction);
        Progress { done: rest.done, bytes: self.bytes + rest.bytes, fraction }
    }
}

/// Checks the snapshots of a world, if it has any. `None` if `progress` stopped it.
pub(super) fn check_world(
    world: &WorldStore,
    progress: &mut impl FnMut(&Progress) -> ControlFlow<()>,
    found: &mut dyn FnMut(Damage),
) -> Result<Option<CheckedSnapshots>, StoreError> {
    let mut checked = CheckedSnapshots { bytes: 0, share: 0.0 };
    let Some(folder) = world.snapshot_folder() else { return Ok(Some(checked)) };
    let all = bytes(&folder);
    let size = |family| Ok(world.store.approximate_family(family)?.map(|size| size.bytes));
    let rest = Family::ALL.into_iter().map(size).sum::<Result<Option<u64>, StoreError>>()?;
    let all_of_both = rest.map(|rest| (all + rest).max(1) as f64);
    let mut tell = |bytes| {
        checked.bytes += bytes;
        let fraction = all_of_both.map(|both| checked.bytes.min(all) as f64 / both);
        progress(&Progress { done: 0, bytes: checked.bytes, fraction })
    };
    let flow = check(&folder, &mut tell, found);
    checked.share = all_of_both.map_or(0.0, |both| all as f64 / both);
    Ok(flow.is_continue().then_some(checked))
}

/// The size of all files below a folder, in bytes. Unreadable folders count as empty.
fn bytes(folder: &Path) -> u64 {
    let (files, folders) = list(folder).unwrap_or_default();
    files.into_values().sum::<u64>() + folders.iter().map(|folder| bytes(folder)).sum::<u64>()
}

/// The first damage below a folder, as an error.
///
/// # Errors
/// [`StoreError::DamagedFile`].
#[cfg(feature = "rocksdb")]
pub(super) fn expect_whole(folder: &Path) -> Result<(), StoreError> {
    let mut first = None;
    let mut note = |damage| _ = first.get_or_insert(damage);
    _ = check(folder, &mut |_| ControlFlow::Continue(()), &mut note);
    first.map_or(Ok(()), |damage| Err(error_of(damage)))
}

/// The error of work that needs whole files.
#[cfg(feature = "rocksdb")]
pub(super) fn error_of(damage: Damage) -> StoreError {
    match damage {
        Damage::File { path, reason } => StoreError::DamagedFile { path, reason },
        damage => StoreError::DamagedFile { path: PathBuf::new(), reason: damage.to_string() },
    }
}

/// Reads all files below a folder. `tell` gets the number of bytes that were read since the last call, and can stop the
/// work. Files that are removed meanwhile are not damaged.
pub(super) fn check(
    folder: &Path,
    tell: &mut dyn FnMut(u64) -> ControlFlow<()>,
    found: &mut dyn FnMut(Damage),
) -> ControlFlow<()> {
    let (mut files, folders) = match list(folder) {
        Ok(listed) => listed,
        Err(error) => {
            found(damage(folder, error.to_string()));
            return ControlFlow::Continue(());
        }
    };
    let index = folder.join(INDEX);
    let is_arena = || folder.parent().is_some_and(|parent| parent.ends_with(ARENAS));
    if files.contains_key(&index) || is_arena() && !files.is_empty() {
        check_snapshot(folder, &mut files, tell, &mut |error| {
            // A snapshot that is removed is renamed first.
            if folder.exists()
                && let Some(damage) = damage_of(&index, error)
            {
                found(damage);
            }
        })?;
    }
    for (path, bytes) in files {
        let checked = check_file(&path, tell);
        match if_exists(checked) {
            Ok(Some(ControlFlow::Break(()))) => return ControlFlow::Break(()),
            Ok(_) => {}
            Err(error) => found(damage(&path, error.to_string())),
        }
        tell(bytes)?;
    }
    folders.into_iter().try_for_each(|folder| check(&folder, tell, found))
}

/// The files in a folder, with their sizes, and the folders in it. Other things are ignored, as they are in copies.
fn list(folder: &Path) -> io::Result<(BTreeMap<PathBuf, u64>, BTreeSet<PathBuf>)> {
    let (mut files, mut folders) = (BTreeMap::new(), BTreeSet::new());
    for entry in if_exists(fs::read_dir(folder))?.into_iter().flatten() {
        let (path, metadata) = entry.and_then(|entry| Ok((entry.path(), if_exists(entry.metadata())?)))?;
        let is_left_over = path.extension().is_some_and(|ending| LEFT_OVER.iter().any(|left| ending == *left));
        match metadata {
            Some(metadata) if metadata.is_dir() && !is_left_over => drop(folders.insert(path)),
            Some(metadata) if metadata.is_file() && !is_left_over => drop(files.insert(path, metadata.len())),
            _ => {}
        }
    }
    Ok((files, folders))
}

/// Checks a stored snapshot, and takes its files out of those of its folder.
fn check_snapshot(
    folder: &Path,
    files: &mut BTreeMap<PathBuf, u64>,
    tell: &mut dyn FnMut(u64) -> ControlFlow<()>,
    found: &mut dyn FnMut(StoredSnapshotError),
) -> ControlFlow<()> {
    let stored = match StoredSnapshot::open(folder) {
        Ok(stored) => stored,
        Err(error) => {
            found(error);
            return ControlFlow::Continue(());
        }
    };
    let mut bytes = files.remove(&folder.join(INDEX)).unwrap_or(0);
    for column in stored.columns() {
        stored.verify_column(column).err().into_iter().for_each(&mut *found);
        bytes += stored.files(column).filter_map(|path| files.remove(&path)).sum::<u64>();
        tell(mem::take(&mut bytes))?;
    }
    tell(bytes)
}

/// Reads a file that belongs to no stored snapshot. An error describes the damage.
fn check_file(path: &Path, tell: &mut dyn FnMut(u64) -> ControlFlow<()>) -> io::Result<ControlFlow<()>> {
    let mut file = BufReader::with_capacity(PIECE, File::open(path)?);
    if path.file_name().is_some_and(|name| name == RECORD) {
        return check_record(file).map(ControlFlow::Continue);
    }
    let is_packed =
        path.extension().is_some_and(|ending| ending == SCHEMATIC) && file.fill_buf()?.first() != Some(&UNCOMPRESSED);
    let reader: &mut dyn Read = if is_packed { &mut GzDecoder::new(file) } else { &mut file };
    let mut piece = vec![0; PIECE];
    loop {
        match reader.read(&mut piece) {
            Ok(0) => return Ok(ControlFlow::Continue(())),
            Ok(_) if tell(0).is_break() => return Ok(ControlFlow::Break(())),
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
    }
}

fn check_record(file: impl Read) -> io::Result<()> {
    let mut bytes = Vec::new();
    file.take(MAX_RECORD).read_to_end(&mut bytes)?;
    let rest = bytes.strip_prefix(RECORD_SIGNATURE).and_then(|rest| rest.split_first_chunk());
    let (stored, content) = rest.ok_or_else(|| io::Error::other("it is not the record of a restore"))?;
    let (stored, found) = (u32::from_le_bytes(*stored), crc32fast::hash(content));
    match stored == found {
        true => Ok(()),
        false => Err(io::Error::other(format!("its checksum is {found:08x}, but {stored:08x} was stored with it"))),
    }
}

fn damage(path: &Path, reason: String) -> Damage {
    Damage::File { path: path.to_path_buf(), reason }
}

/// The damage behind an error of a stored snapshot with this index.
fn damage_of(index: &Path, error: StoredSnapshotError) -> Option<Damage> {
    match error {
        StoredSnapshotError::Damaged { path, what } => Some(damage(&path, what)),
        StoredSnapshotError::Io(error) if error.kind == ErrorKind::NotFound => None,
        StoredSnapshotError::Io(error) => Some(damage(&error.path, error.message)),
        StoredSnapshotError::NotASnapshot { .. } => Some(damage(index, "it is missing".into())),
        error => Some(damage(index, error.to_string())),
    }
}

#[cfg(all(test, feature = "rocksdb"))]
mod tests;
