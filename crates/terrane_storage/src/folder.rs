//! A world's folder. Its format, and whether it is a world and already open, are known before the database is opened.
//!
//! ```text
//! world.terrane   the marker: a text that names the format; written last when a world is made
//! world.lock      locked while the world is open; holds the number of the process
//! db/             the database
//! ```

use super::values::{FORMAT, Header};
use super::{Family, KeyValueStore, RocksStore, WorldOpenError, keys, values::record};
use crate::work::{FileError, if_exists, sync_folder};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

const MARKER: &str = "world.terrane";
/// The marker while it is being written.
const NEW_MARKER: &str = "world.terrane.new";
const LOCK: &str = "world.lock";
const DATABASE: &str = "db";
const SNAPSHOTS: &str = "snapshots";
const UNFINISHED_DATABASE: &str = "db.unfinished";
/// Links to the remains of the database from which a salvage builds a new one.
const REMAINS: &str = "db.remains";

const SIGNATURE: &str = "bevy_terrane world";

/// The maximum size of a marker, which has two lines. A longer file is not a marker.
const MARKER_LIMIT: u64 = 4096;

/// A world's folder, locked until this is dropped.
#[derive(Debug)]
pub(super) struct WorldFolder {
    path: PathBuf,
    is_new: bool,
    /// `None` for a folder that is only read and whose lock file cannot be created.
    lock: Option<File>,
}

impl Drop for WorldFolder {
    /// Closing the file would release the lock only when no other process has the file open. A process that this one is
    /// spawning has it open until it executes another program.
    fn drop(&mut self) {
        _ = self.lock.as_ref().map(File::unlock);
    }
}

impl WorldFolder {
    /// Locks the world in `path`. If there is none, begins a new one, which [`finish_creation`](Self::finish_creation)
    /// completes. An error leaves the folder unchanged.
    pub(super) fn open(path: &Path) -> Result<Self, WorldOpenError> {
        match if_exists(fs::metadata(path)).map_err(FileError::of(path, "open"))? {
            Some(metadata) if !metadata.is_dir() => {
                return Err(WorldOpenError::NotAFolder { path: path.to_path_buf() });
            }
            Some(_) => {}
            None => create(path).map_err(FileError::of(path, "create"))?,
        }
        // Checked twice: without the lock, because a refused world must not be touched, and with it, because another
        // process may have created the world in between.
        is_new(path)?;
        let lock = lock(path, false)?;
        let is_new = is_new(path)?;
        Ok(Self { path: path.to_path_buf(), is_new, lock })
    }

    /// Like [`open`](Self::open), for a world whose database is first built under another name. Removes the remains of
    /// an earlier interrupted attempt.
    pub(super) fn open_to_fill(path: &Path) -> Result<Self, WorldOpenError> {
        if is_left_over(path) {
            let left = Self { path: path.to_path_buf(), is_new: true, lock: lock(path, false)? };
            // Another process may have completed the world before this one got the lock.
            if is_left_over(path) {
                left.clear().map_err(FileError::of(path, "clear"))?;
            }
        }
        Self::open(path)
    }

    /// Locks the existing world in `path` for changes.
    pub(super) fn open_existing(path: &Path) -> Result<Self, WorldOpenError> {
        expect_world(path)?;
        Self::open(path)
    }

    /// Locks the existing world in `path` for reading, shared with other readers. The folder may be on a read-only
    /// disk: it is left unchanged, except that a missing lock file is created if possible.
    pub(super) fn open_to_read(path: &Path) -> Result<Self, WorldOpenError> {
        expect_world(path)?;
        let lock = lock(path, true)?;
        Ok(Self { path: path.to_path_buf(), is_new: false, lock })
    }

    /// Like [`open_to_read`](Self::open_to_read), for a world whose marker may be missing or damaged. Such damage is returned.
    pub(super) fn open_to_salvage(path: &Path) -> Result<(Self, Option<WorldOpenError>), WorldOpenError> {
        let damage = match expect_world(path) {
            Ok(()) => None,
            Err(damage @ WorldOpenError::MarkerDamaged { .. }) => Some(damage),
            // Other files may be beside the database.
            Err(WorldOpenError::NoWorld { .. } | WorldOpenError::NotAWorld { .. }) if holds_database(path) => {
                Some(WorldOpenError::MarkerDamaged { path: path.join(MARKER), reason: "it is missing".into() })
            }
            Err(error) => return Err(error),
        };
        if !path.join(DATABASE).is_dir() {
            return Err(WorldOpenError::DatabaseMissing { path: path.join(DATABASE) });
        }
        let lock = lock(path, true)?;
        Ok((Self { path: path.to_path_buf(), is_new: false, lock }, damage))
    }

    /// Returns `true` if `path` holds a world, or a part of one: its marker may be lost.
    pub(super) fn holds_world(path: &Path) -> bool {
        [MARKER, DATABASE].iter().any(|name| fs::symlink_metadata(path.join(name)).is_ok())
    }

    /// Removes the world in `path`, which was just created, and keeps all other files there.
    pub(super) fn remove_world(path: &Path) -> Result<(), WorldOpenError> {
        let folder = Self::open_existing(path)?;
        let remove = || {
            // Without its marker, the folder is no longer a world.
            fs::remove_file(path.join(MARKER))?;
            fs::remove_dir_all(folder.database())?;
            folder.forget()
        };
        Ok(remove().map_err(FileError::of(path, "clear"))?)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns `true` if the world does not exist yet.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// The folder of snapshots, which this crate only copies.
    pub(super) fn snapshots(&self) -> PathBuf {
        self.path.join(SNAPSHOTS)
    }

    pub(super) fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }

    /// The folder in which a database is built that must not be opened before it is complete. A folder that contains it
    /// is not a world, and no game creates one there.
    pub(super) fn unfinished_database(&self) -> PathBuf {
        self.path.join(UNFINISHED_DATABASE)
    }

    /// The folder for links to the files of another database while they are read.
    pub(super) fn remains(&self) -> PathBuf {
        self.path.join(REMAINS)
    }

    /// Renames the complete, so far unfinished database to its final name.
    pub(super) fn finish_database(&self) -> Result<(), WorldOpenError> {
        let database = self.database();
        fs::rename(self.unfinished_database(), &database).map_err(FileError::of(&database, "rename"))?;
        Ok(sync_folder(&self.path)?)
    }

    /// Removes everything of an unfinished world except the lock. The folder that identifies it as unfinished is removed last.
    pub(super) fn clear(&self) -> io::Result<()> {
        for folder in [self.snapshots(), self.remains(), self.unfinished_database()] {
            if_exists(fs::remove_dir_all(folder))?;
        }
        Ok(())
    }

    /// Removes the lock file, the last trace of an abandoned new world.
    pub(super) fn forget(&self) -> io::Result<()> {
        fs::remove_file(self.path.join(LOCK))
    }

    /// Completes a new world by writing its marker. Everything else must be safe on disk already.
    pub(super) fn finish_creation(&self) -> Result<(), WorldOpenError> {
        let temporary = self.path.join(NEW_MARKER);
        let write = || {
            let mut file = File::create(&temporary)?;
            write!(file, "{SIGNATURE}\nformat = {FORMAT}\n")?;
            file.sync_all()?;
            fs::rename(&temporary, self.path.join(MARKER))
        };
        write().map_err(FileError::of(&self.path.join(MARKER), "write"))?;
        Ok(sync_folder(&self.path)?)
    }
}

/// Returns `true` if the folder holds no world yet and may become one; an error if it holds a world that cannot be used.
fn is_new(path: &Path) -> Result<bool, WorldOpenError> {
    let marker = path.join(MARKER);
    let failed = FileError::of(&marker, "read");
    let Some(file) = if_exists(File::open(&marker)).map_err(&failed)? else {
        return expect_unused(path).map(|()| true);
    };
    let mut text = Vec::new();
    file.take(MARKER_LIMIT).read_to_end(&mut text).map_err(&failed)?;
    let found = parse_marker(&text)
        .map_err(|reason| WorldOpenError::MarkerDamaged { path: marker.clone(), reason: reason.into() })?;
    if found > FORMAT {
        // A flipped bit can turn the format into another valid number.
        if let Some(stored) = stored_format(&path.join(DATABASE)).filter(|stored| *stored < found) {
            let reason = format!("it names format {found}, but its database is of format {stored}");
            return Err(WorldOpenError::MarkerDamaged { path: marker, reason });
        }
        return Err(WorldOpenError::NewerFormat { path: path.to_path_buf(), found, supported: FORMAT });
    }
    if !path.join(DATABASE).is_dir() {
        return Err(WorldOpenError::DatabaseMissing { path: path.join(DATABASE) });
    }
    Ok(false)
}

/// The format of the world according to the database in this folder; `None` if it cannot be read.
fn stored_format(database: &Path) -> Option<u32> {
    let store = database.is_dir().then(|| RocksStore::open_to_read(database).ok())??;
    let header = store.get(Family::Meta, keys::HEADER).ok()??;
    record::decode::<Header>(&header).ok().map(|header| header.format)
}

fn parse_marker(text: &[u8]) -> Result<u32, &'static str> {
    let text = str::from_utf8(text).map_err(|_| "it is not text")?;
    let mut lines = text.lines();
    if lines.next() != Some(SIGNATURE) {
        return Err("its first line is not `bevy_terrane world`");
    }
    let format = lines.next().and_then(|line| line.strip_prefix("format = "));
    match format.and_then(|format| format.trim_end().parse().ok()) {
        None | Some(0) => Err("its second line is not `format = ` and a number from 1"),
        Some(format) => Ok(format),
    }
}

/// Accepts a folder that is empty, or in which the creation of a world was interrupted.
fn expect_unused(path: &Path) -> Result<(), WorldOpenError> {
    let mut ours = false;
    let mut foreign = None;
    for entry in fs::read_dir(path).map_err(FileError::of(path, "read"))? {
        let name = entry.map_err(FileError::of(path, "read"))?.file_name();
        match name.to_str() {
            Some(LOCK) => ours = true,
            Some(NEW_MARKER) => {}
            // Other programs use folders of this name too.
            Some(DATABASE) => _ = foreign.get_or_insert(name),
            _ => foreign = Some(name),
        }
    }
    match foreign {
        Some(name) if !(ours && name == OsStr::new(DATABASE)) => {
            Err(WorldOpenError::NotAWorld { path: path.to_path_buf(), found: name.to_string_lossy().into_owned() })
        }
        _ => Ok(()),
    }
}

/// Returns `true` if the folder contains only the remains of an interrupted [`open_to_fill`](WorldFolder::open_to_fill).
fn is_left_over(path: &Path) -> bool {
    let names = |entries: fs::ReadDir| entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>();
    let names = fs::read_dir(path).and_then(names).unwrap_or_default();
    let ours = [LOCK, UNFINISHED_DATABASE, REMAINS, SNAPSHOTS].map(OsStr::new);
    let is_there = |name: &&OsStr| names.iter().any(|found| found == name);
    // A salvage links to the remains of a world before it begins the new database.
    is_there(&ours[0]) && ours[1..3].iter().any(is_there) && names.iter().all(|name| ours.contains(&name.as_os_str()))
}

/// Fails unless the folder holds a world of a supported format.
fn expect_world(path: &Path) -> Result<(), WorldOpenError> {
    match if_exists(fs::metadata(path)).map_err(FileError::of(path, "open"))? {
        Some(metadata) if !metadata.is_dir() => Err(WorldOpenError::NotAFolder { path: path.to_path_buf() }),
        Some(_) if !is_new(path)? => Ok(()),
        _ => Err(WorldOpenError::NoWorld { path: path.to_path_buf() }),
    }
}

/// Returns `true` if the folder holds a database with contents, judging by its file names.
fn holds_database(path: &Path) -> bool {
    let Ok(mut files) = fs::read_dir(path.join(DATABASE)) else { return false };
    files.any(|file| {
        let name = file.map(|file| file.file_name()).unwrap_or_default();
        ["sst", "log"].iter().any(|kind| Path::new(&name).extension() == Some(OsStr::new(kind)))
    })
}

/// Takes the lock: exclusively to change the world, or shared to read it. `None` if a shared lock was requested, the
/// lock file does not exist and the folder is read-only.
fn lock(path: &Path, is_shared: bool) -> Result<Option<File>, WorldOpenError> {
    let path = path.join(LOCK);
    let to_write = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let opened = match is_shared {
        false => to_write(),
        // A newly created lock file keeps a game from opening the world meanwhile.
        true => File::open(&path).or_else(|error| match error.kind() {
            ErrorKind::NotFound => to_write(),
            _ => Err(error),
        }),
    };
    let file = match opened {
        Err(error) if is_shared && is_refusal(error.kind()) => return Ok(None),
        opened => opened.map_err(FileError::of(&path, "open"))?,
    };
    match if is_shared { file.try_lock_shared() } else { file.try_lock() } {
        Ok(()) if is_shared => {}
        Ok(()) => sign(&file).map_err(FileError::of(&path, "write"))?,
        Err(TryLockError::WouldBlock) => return Err(WorldOpenError::Locked { process: holder(&file), path }),
        Err(TryLockError::Error(error)) => return Err(FileError::of(&path, "lock")(error).into()),
    }
    Ok(Some(file))
}

/// Returns `true` if the folder cannot be written.
fn is_refusal(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied)
}

/// The id of the process that has the world open, if known. Readers do not write theirs.
fn holder(file: &File) -> Option<u32> {
    if file.try_lock_shared().is_ok() {
        _ = file.unlock();
        return None;
    }
    let mut holder = String::new();
    // Best effort: on some systems a locked file cannot be read.
    _ = file.take(64).read_to_string(&mut holder);
    holder.trim().strip_prefix("process = ").and_then(|number| number.parse().ok())
}

/// Writes the id of this process to the lock file.
fn sign(mut file: &File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "process = {}", std::process::id())
}

fn create(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|folder| !folder.exists()).collect();
    fs::create_dir_all(path)?;
    for parent in missing.into_iter().filter_map(Path::parent) {
        // Without this, a loss of power may undo the creation of the folder. Some parents cannot be opened for it, though.
        _ = sync_folder(parent);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// The files and folders below `path`, with the contents of the files.
    fn contents(path: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut contents = BTreeMap::new();
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                contents.extend(self::contents(&path));
                contents.insert(path, None);
            } else {
                contents.insert(path.clone(), Some(fs::read(&path).unwrap()));
            }
        }
        contents
    }

    fn error(path: &Path) -> WorldOpenError {
        WorldFolder::open(path).expect_err("must not open")
    }

    fn make_world(path: &Path) {
        let folder = WorldFolder::open(path).unwrap();
        assert!(folder.is_new());
        fs::create_dir(folder.database()).unwrap();
        fs::write(folder.database().join("data"), "data").unwrap();
        folder.finish_creation().unwrap();
    }

    #[test]
    fn a_world_is_made_with_its_parents_and_found_again() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("saves/first");
        make_world(&path);
        assert_eq!(fs::read_to_string(path.join(MARKER)).unwrap(), "bevy_terrane world\nformat = 1\n");
        assert!(!path.join(NEW_MARKER).exists());
        for _ in 0..2 {
            assert!(!WorldFolder::open(&path).unwrap().is_new());
        }
    }

    /// Promise, world format: A world's marker is written last, and a folder without it holds no world.
    #[test]
    fn a_world_cut_short_while_made_can_be_made_again() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("world");
        // Each is a step after which the process may end.
        let steps: [fn(&Path); 4] = [
            |path| fs::create_dir(path).unwrap(),
            |path| drop(WorldFolder::open(path).unwrap()),
            |path| fs::create_dir_all(path.join(DATABASE)).unwrap(),
            |path| fs::write(path.join(NEW_MARKER), "bevy_ter").unwrap(),
        ];
        for step in steps {
            step(&path);
            assert!(WorldFolder::open(&path).unwrap().is_new());
        }
        WorldFolder::open(&path).unwrap().finish_creation().unwrap();
        assert!(!WorldFolder::open(&path).unwrap().is_new());
    }

    #[test]
    fn the_remains_of_an_unfinished_new_world_are_replaced_and_other_folders_are_not() {
        let root = tempfile::tempdir().unwrap();
        let left_over = |name: &str| {
            let path = root.path().join(name);
            let folder = WorldFolder::open_to_fill(&path).unwrap();
            for made in [folder.snapshots(), folder.unfinished_database()] {
                fs::create_dir(made).unwrap();
            }
            (path, folder)
        };
        let (path, held) = left_over("first");
        let error = WorldFolder::open_to_fill(&path).unwrap_err();
        assert!(matches!(error, WorldOpenError::Locked { .. }), "{error}");
        assert!(held.unfinished_database().exists());
        drop(held);
        assert!(matches!(WorldFolder::open(&path), Err(WorldOpenError::NotAWorld { .. })), "a game makes none of it");
        let taken = WorldFolder::open_to_fill(&path).unwrap();
        assert!(taken.is_new() && !taken.unfinished_database().exists() && !taken.snapshots().exists());

        // A salvage that was interrupted before it began the new database.
        let early = root.path().join("early");
        fs::create_dir(WorldFolder::open_to_fill(&early).unwrap().remains()).unwrap();
        assert!(!WorldFolder::open_to_fill(&early).unwrap().remains().exists());

        for name in ["letter.txt", MARKER, DATABASE] {
            let (path, held) = left_over(name);
            drop(held);
            fs::write(path.join(name), "mine").unwrap();
            let before = contents(&path);
            assert!(WorldFolder::open_to_fill(&path).is_err());
            assert_eq!(contents(&path), before);
        }
    }

    /// Promise, world format: A world's lock file has the number of the process that holds it.
    #[test]
    fn the_lock_names_its_holder_and_ends_with_it() {
        let root = tempfile::tempdir().unwrap();
        make_world(root.path());
        let first = WorldFolder::open(root.path()).unwrap();
        let before = contents(root.path());
        let error = error(root.path());
        let process = Some(std::process::id());
        assert!(matches!(&error, WorldOpenError::Locked { process: holder, .. } if *holder == process), "{error}");
        assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
        assert_eq!(contents(root.path()), before);
        drop(first);
        assert!(WorldFolder::open(root.path()).is_ok());
    }

    /// Promise, world format: A world's marker with CR LF is read, and a marker of a newer format is refused.
    #[test]
    fn a_newer_world_is_refused_untouched() {
        let root = tempfile::tempdir().unwrap();
        make_world(root.path());
        fs::remove_file(root.path().join(LOCK)).unwrap();
        for text in ["bevy_terrane world\nformat = 2\nmore = true\n", "bevy_terrane world\r\nformat = 77\r\n"] {
            fs::write(root.path().join(MARKER), text).unwrap();
            let before = contents(root.path());
            let error = error(root.path());
            assert!(matches!(error, WorldOpenError::NewerFormat { found: 2 | 77, supported: 1, .. }), "{error}");
            assert_eq!(contents(root.path()), before);
        }
    }

    /// Promise, crashes: A damaged world is refused with an error that names the damage and its place.
    #[test]
    fn a_damaged_marker_is_refused_untouched() {
        let root = tempfile::tempdir().unwrap();
        make_world(root.path());
        let long = format!("{SIGNATURE}\nformat = {}", "1".repeat(9000));
        for text in [
            &b""[..],
            b"bevy_terrane",
            b"bevy_terrane world",
            b"bevy_terrane world\nformat = 0\n",
            b"bevy_terrane world\nformat = one\n",
            b"\xff\xfe\n",
            long.as_bytes(),
        ] {
            fs::write(root.path().join(MARKER), text).unwrap();
            let before = contents(root.path());
            let error = error(root.path());
            assert!(matches!(error, WorldOpenError::MarkerDamaged { .. }), "{error}");
            assert_eq!(contents(root.path()), before);
        }
    }

    #[test]
    fn a_world_without_its_database_is_refused() {
        let root = tempfile::tempdir().unwrap();
        make_world(root.path());
        fs::remove_dir_all(root.path().join(DATABASE)).unwrap();
        let before = contents(root.path());
        assert!(matches!(error(root.path()), WorldOpenError::DatabaseMissing { path } if path.ends_with(DATABASE)));
        fs::write(root.path().join(DATABASE), "a file").unwrap();
        assert!(matches!(error(root.path()), WorldOpenError::DatabaseMissing { .. }));
        fs::remove_file(root.path().join(DATABASE)).unwrap();
        assert_eq!(contents(root.path()), before);
    }

    #[test]
    fn other_folders_are_refused_untouched() {
        let root = tempfile::tempdir().unwrap();
        let cases: [(&str, &[&str]); 4] = [
            ("letter.txt", &["letter.txt"]),
            ("db", &["db"]),
            ("letter.txt", &["letter.txt", "db", LOCK]),
            ("db", &["db", NEW_MARKER]),
        ];
        for (index, (offender, names)) in cases.into_iter().enumerate() {
            let path = root.path().join(index.to_string());
            fs::create_dir(&path).unwrap();
            names.iter().for_each(|name| fs::write(path.join(name), "mine").unwrap());
            let before = contents(&path);
            let error = error(&path);
            assert!(matches!(&error, WorldOpenError::NotAWorld { found, .. } if found == offender), "{error}");
            assert!(error.to_string().contains(&path.display().to_string()), "{error}");
            assert_eq!(contents(&path), before);
        }
    }

    #[test]
    fn places_where_no_folder_can_be_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "mine").unwrap();
        assert!(matches!(error(&file), WorldOpenError::NotAFolder { path } if path == file));
        let below = error(&file.join("world"));
        assert!(matches!(&below, WorldOpenError::Inaccessible(_)), "{below}");
        assert!(below.to_string().contains(&file.join("world").display().to_string()), "{below}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
        if cfg!(target_os = "linux") {
            assert!(matches!(error(Path::new("/proc/no such world")), WorldOpenError::Inaccessible(_)));
        }
    }
}
