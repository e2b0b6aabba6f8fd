//! Snapshots are part of copies and backups.

use super::*;
use std::collections::BTreeMap;
use std::time::SystemTime;

fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    drop(found.insert(path.strip_prefix(folder).unwrap().to_owned(), fs::read(path).unwrap()));
                }
            }
        }
    }
    found
}

fn put(folder: &Path, name: &str, content: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Promise, upkeep: A `terrane backup` stores only changes since the last one.
#[test]
fn a_backup_is_complete_and_shares_unchanged_files() {
    let folder = tempfile::tempdir().unwrap();
    let (world, backups) = (folder.path().join("snapshots"), folder.path().join("backups"));
    let long = "x".repeat(PIECE + 5);
    put(&world, "arenas/first/index", "one");
    put(&world, "arenas/first/c.0.0.schem", &long);
    put(&world, "arenas/half.new/index", "half");
    let backup = |number| Backup { number, made_at: SystemTime::UNIX_EPOCH, bytes: 0 };
    let back_up = |number, kept: &[u32]| {
        let made = || Ok((backup(number), kept.iter().map(|number| backup(*number)).collect()));
        assert_eq!(back_up(&world, &backups, made).unwrap().number, number);
    };
    back_up(1, &[1]);
    put(&world, "arenas/first/index", "two");
    put(&world, "restores/3/restore", "three");
    back_up(2, &[1, 2]);

    let [first, second] = [1, 2].map(|number| files(&of_backup(&backups, number)));
    assert_eq!(first.len(), 2);
    assert_eq!(first[Path::new("arenas/first/index")], b"one");
    assert_eq!(second[Path::new("arenas/first/index")], b"two");
    assert_eq!(second[Path::new("restores/3/restore")], b"three");
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let links = |name: &str| fs::metadata(of_backup(&backups, 2).join(name)).unwrap().nlink();
        assert_eq!((links("arenas/first/c.0.0.schem"), links("arenas/first/index")), (2, 1));
    }

    fs::remove_dir_all(&world).unwrap();
    back_up(3, &[2, 3]);
    assert!(!of_backup(&backups, 1).exists());
    assert_eq!(files(&of_backup(&backups, 2)), second);
    assert!(files(&of_backup(&backups, 3)).is_empty());

    let restored = folder.path().join("restored");
    copy(&of_backup(&backups, 2), &restored).unwrap();
    assert_eq!(files(&restored), second);
    copy(&folder.path().join("nothing"), &folder.path().join("empty")).unwrap();
    assert!(!folder.path().join("empty").exists());
}

#[test]
fn files_that_appear_or_vanish_during_a_backup_do_not_break_it() {
    let folder = tempfile::tempdir().unwrap();
    let (world, backups) = (folder.path().join("snapshots"), folder.path().join("backups"));
    put(&world, "restores/1/restore", "ends");
    put(&backups, "snapshots/backup.new/restores/0/restore", "of one that was cut short");
    let backup = Backup { number: 1, made_at: SystemTime::UNIX_EPOCH, bytes: 0 };
    let make = || {
        fs::remove_dir_all(world.join("restores/1")).unwrap();
        put(&world, "restores/2/restore", "begins");
        Ok((backup.clone(), vec![backup.clone()]))
    };
    back_up(&world, &backups, make).unwrap();
    let names: Vec<_> = files(&of_backup(&backups, 1)).into_keys().collect();
    assert_eq!(names, [Path::new("restores/1/restore"), Path::new("restores/2/restore")]);

    let error = StoreError::NotWritable { path: world.clone() };
    let failed = back_up(&world, &backups, || Err(error.clone()));
    assert_eq!(failed, Err(error));
    assert_eq!(fs::read_dir(backups.join("snapshots")).unwrap().count(), 1);
}
