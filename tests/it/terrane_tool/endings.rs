//! The ends of commands: exit codes, messages, files left behind, and permissions needed.

use super::*;
use bevy_terrane::storage::{OpenWait, WorldOpenError};
use std::thread;
use std::time::Duration;

/// A world, an export of it, a schematic, and a damaged copy of each.
struct Damaged {
    folder: tempfile::TempDir,
}

impl Damaged {
    fn make() -> Self {
        let made = Self { folder: tempfile::tempdir().unwrap() };
        let [world, export, schematic] = ["world", "world.objects", "box.schem"].map(|name| made.path(name));
        make_world(Path::new(&world), 5);
        name_blocks(Path::new(&world));
        run(&["export", &world, &export, "-d", "overworld"]);
        run(&["schematic", "export", &world, &schematic, "-d", "overworld", "--from", "0,0,0", "--to", "20,20,20"]);
        for (file, damaged) in [(export, "cut.objects"), (schematic, "cut.schem")] {
            let bytes = fs::read(file).unwrap();
            fs::write(made.path(damaged), &bytes[..bytes.len() * 2 / 3]).unwrap();
        }
        let damaged = made.path("damaged");
        folder::copy_folder(Path::new(&world), Path::new(&damaged));
        fs::remove_file(Path::new(&damaged).join("db/CURRENT")).unwrap();
        made
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Promise, upkeep: The exit code of `terrane` is 0, 1, 2, 3 or 130, as the README says.
#[test]
fn exit_codes_and_messages_are_those_of_the_readme() {
    let made = Damaged::make();
    let [world, export, cut, schem, cut_schem, damaged, new, nowhere] =
        ["world", "world.objects", "cut.objects", "box.schem", "cut.schem", "damaged", "new", "nowhere"]
            .map(|name| made.path(name));
    let area = ["--from", "0,0,0", "--to", "9,9,9"];
    let overworld = ["-d", "overworld"];
    let before = made.names();
    let cases: Vec<(Vec<&str>, u8, &str)> = vec![
        (vec!["info", &world], 0, "\"overworld\""),
        (vec!["dance"], 2, "dance"),
        (vec!["info", &nowhere], 1, "no world"),
        (vec!["verify", &export], 1, "not a folder"),
        (vec!["inspect", &nowhere, "entity", "4f0c3a52-9f5e-4d0a-8a53-0c3d1f0e7a11"], 1, "no world"),
        (vec!["copy", &nowhere, &new], 1, "no world"),
        (vec!["salvage", &nowhere, &new], 1, "no world"),
        (vec!["copy", &world, &world], 1, "is already a world"),
        (vec!["restore", &nowhere, &new], 1, "backup"),
        (vec!["backup", &nowhere, &new], 1, "no world"),
        (vec!["compact", &nowhere], 1, "no world"),
        (vec!["prune", &world, "-d", "nether", "--radius", "3", "--dry-run"], 1, "\"overworld\""),
        (vec!["export", &world, &new, "-d", "nether"], 1, "nether"),
        (vec!["export", &world, &export, "-d", "overworld"], 1, "already exists"),
        (vec!["import", &nowhere, &world], 1, "nowhere"),
        (vec!["import", &schem, &world], 3, "not an object store"),
        (vec!["import", &export, &nowhere], 1, "--create"),
        (vec!["import", &export, &world], 1, "--existing"),
        (vec!["schematic", "info", &nowhere], 1, "nowhere"),
        (vec!["import", &export, &world, "--move", "1,0,0"], 2, "multiples of 16"),
        (vec!["prune", &world, "-d", "overworld", "--from", "5,5", "--to", "1,1", "--yes"], 2, "nothing between"),
        (vec!["export", &world, &new, "-d", "overworld", "--from", "0,0", "--to", "1,1,1"], 2, "or none"),
        (vec!["verify", &damaged], 3, "terrane salvage"),
        (vec!["info", &damaged], 3, "terrane salvage"),
        (vec!["copy", &damaged, &new], 3, "terrane salvage"),
        (vec!["backup", &damaged, &new], 3, "terrane salvage"),
        (vec!["compact", &damaged], 3, "terrane salvage"),
        (vec!["export", &damaged, &new, "-d", "overworld"], 3, "terrane salvage"),
        (vec!["import", &cut, &new, "--create"], 3, "--leave-damaged"),
        (vec!["import", &cut, &world, "--dimension", "other"], 3, "--leave-damaged"),
        ([&["schematic", "import", &world, &cut_schem, "--at", "0,0,0"][..], &overworld].concat(), 3, "--salvage"),
        ([&["schematic", "export", &world, &schem][..], &overworld, &area].concat(), 1, "exists already"),
        (vec!["schematic", "info", &cut_schem], 3, "damaged"),
    ];
    for (arguments, code, text) in cases {
        let (found, message) = exit(&arguments);
        assert_eq!(found, code, "{arguments:?}: {message}");
        assert!(message.contains(text), "{arguments:?}: {message}");
        assert_eq!(made.names(), before, "{arguments:?} leaves nothing behind");
        let once = [&world, &export, &cut, &cut_schem, &nowhere, &damaged]
            .into_iter()
            .filter(|path| arguments.contains(&path.as_str()));
        for path in once {
            assert!(message.matches(path.as_str()).count() <= 1, "{arguments:?}: {message}");
        }
    }
    assert_eq!(try_run(&["copy", &world, &new], true).unwrap().end.code(), 130);
    assert_eq!(made.names(), before);
    let salvaged = run(&["salvage", &damaged, &new]);
    assert_eq!((salvaged.end.code(), &salvaged.json["damages"][0]["kind"]), (3, &"file".into()), "{}", salvaged.text());
    assert_eq!(run(&["verify", &new]).json["entries"], run(&["verify", &world]).json["entries"]);
}

#[test]
fn a_schematic_of_an_unknown_version_is_no_damage_wherever_the_version_stands() {
    let made = Damaged::make();
    let (world, file) = (made.path("world"), made.path("new.schem"));
    let version = [&b"\x03\0\x07Version"[..], &[0, 0, 0, 9]].concat();
    let sides = [&b"\x02\0\x05Width\0\x01"[..], b"\x02\0\x06Height\0\x01", b"\x02\0\x06Length\0\x01"].concat();
    for entries in [[&*version, &*sides], [&*sides, &*version]] {
        fs::write(&file, [b"\x0a\0\x09Schematic", entries[0], entries[1], b"\0"].concat()).unwrap();
        for arguments in [
            vec!["schematic", "info", &file],
            vec!["schematic", "import", &world, &file, "-d", "overworld", "--at", "0,0,0", "--salvage"],
        ] {
            let (code, message) = exit(&arguments);
            assert!(code == 1 && message.contains("expected version 1, 2 or 3"), "{arguments:?}: {code}, {message}");
        }
    }
}

/// Promise, upkeep: A failed `import --create` leaves nothing behind.
#[test]
fn a_failed_import_removes_the_world_that_it_created() {
    let made = Damaged::make();
    let (export, deep, empty) = (made.path("world.objects"), made.path("a/b/c"), made.path("empty"));
    // Damage in the middle, which is found only after a part of the export is already in the world.
    let mut bytes = fs::read(&export).unwrap();
    let place = bytes.len() * 3 / 4;
    bytes[place..place + 20].fill(7);
    fs::write(&export, bytes).unwrap();
    fs::create_dir(&empty).unwrap();
    for world in [&deep, &empty] {
        assert_eq!(exit(&["import", &export, world, "--create"]).0, 3);
    }
    assert!(!Path::new(&made.path("a")).exists());
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);
    // A world that existed before stays.
    let world = made.path("world");
    let sessions = run(&["info", &world]).json["sessions"].as_u64();
    assert_eq!(exit(&["import", &export, &world, "--create", "--dimension", "other"]).0, 3);
    assert!(run(&["info", &world]).json["sessions"].as_u64() > sessions);
    // The same for a world that has lost its marker.
    fs::remove_file(Path::new(&world).join("world.terrane")).unwrap();
    assert_ne!(exit(&["import", &export, &world, "--create", "--dimension", "other"]).0, 0);
    assert!(Path::new(&world).join("db/CURRENT").exists());
    for world in [&deep, &empty] {
        assert_eq!(exit(&["import", &export, world, "--create", "--leave-damaged"]).0, 3);
        assert_eq!(run(&["verify", world]).end.code(), 0);
    }
}

#[test]
#[cfg(unix)]
fn an_exported_schematic_replaces_nothing_and_follows_no_link() {
    let made = Damaged::make();
    let (world, link, target) = (made.path("world"), made.path("link.schem"), made.path("target"));
    std::os::unix::fs::symlink(&target, &link).unwrap();
    std::os::unix::fs::symlink(&target, made.path(".new.schem.unfinished")).unwrap();
    let export = |file: &str| {
        exit(&["schematic", "export", &world, file, "-d", "overworld", "--from", "0,0,0", "--to", "9,9,9"])
    };
    let (code, message) = export(&link);
    assert!(code == 1 && message.contains("exists already"), "{message}");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(export(&made.path("new.schem")).0, 0);
    assert!(!Path::new(&target).exists());
    assert!(!made.names().contains(&".new.schem.unfinished".to_owned()));
}

#[test]
fn no_backup_is_put_among_other_files() {
    let made = Damaged::make();
    let (world, backups) = (made.path("world"), made.path("backups"));
    let (code, message) = exit(&["backup", &world, made.folder.path().to_str().unwrap()]);
    assert!(code == 1 && message.contains("not part of a backup"), "{message}");
    let before = made.names();
    assert_eq!(exit(&["backup", &world, &world]).0, 1);
    assert_eq!(made.names(), before);
    fs::create_dir(&backups).unwrap();
    (1..=2).for_each(|number| assert_eq!(run(&["backup", &world, &backups]).json["number"], number));
    fs::write(Path::new(&backups).join("letter.txt"), "mine").unwrap();
    assert_eq!(exit(&["backup", &world, &backups]).0, 1);
    assert_eq!(run(&["restore", &backups, "--list"]).json["backups"].as_array().unwrap().len(), 2);
}

/// Promise, upkeep: Commands of `terrane` that only read need no permission to write, and several can run at once.
#[test]
fn two_commands_that_only_read_run_at_once_and_none_that_writes() {
    let made = Damaged::make();
    let (world, new) = (made.path("world"), made.path("new"));
    let config = StorageConfig::Path(world.clone().into());
    let reader = WorldStore::open_existing(&config, Access::Read).unwrap();
    for command in [
        &["info", &world][..],
        &["verify", &world],
        &["copy", &world, &new],
        &["prune", &world, "-d", "overworld", "--radius", "2", "--dry-run"],
    ] {
        assert_eq!(exit(command).0, 0, "{command:?}");
    }
    for command in [&["compact", &world][..], &["backup", &world, &made.path("backups")]] {
        let (code, message) = exit(&[command, &["--wait", "0"]].concat());
        assert!(code == 1 && message.contains("locked by another process"), "{command:?}: {message}");
    }
    let mut wait = OpenWait::new(Duration::ZERO, |_| panic!("it waits"));
    let locked = WorldStore::open_waiting(&config, &mut wait);
    assert!(matches!(locked, Err(WorldOpenError::Locked { process: None, .. })));
    // A command that waits can be stopped.
    let stopped = try_run(&["compact", &world], true).unwrap();
    assert_eq!(stopped.end.code(), 130);
    assert!(stopped.text().contains("locked by another process"), "{}", stopped.text());
    drop(reader);
    let writer = WorldStore::open(&config).unwrap();
    let (code, message) = exit(&["info", &world, "--wait", "0"]);
    assert!(code == 1 && message.contains(&format!("process {}", std::process::id())), "{message}");
    // The other program closes the world while the command waits.
    thread::scope(|scope| {
        let command = scope.spawn(|| exit(&["compact", &world, "--wait", "600"]));
        drop(writer);
        assert_eq!(command.join().unwrap().0, 0);
    });
}

/// Runs all read-only commands, with their sources in `from` and their results in `to`.
fn read_everything(from: &Path, to: &Path) {
    let from = |name: &str| from.join(name).to_str().unwrap().to_owned();
    let to = |name: &str| to.join(name).to_str().unwrap().to_owned();
    let (world, export) = (from("world"), from("world.objects"));
    for (arguments, code) in [
        (&["info", &world][..], 0),
        (&["inspect", &world, "chunk", "overworld", "0", "0", "0"], 0),
        (&["verify", &world], 0),
        (&["export", &world, &to("exported"), "-d", "overworld"], 0),
        (&["copy", &world, &to("copy")], 0),
        (&["salvage", &world, &to("salvaged")], 0),
        (&["salvage", &from("damaged"), &to("salvaged too")], 3),
        (&["restore", &from("backups"), "--list"], 0),
        (&["restore", &from("backups"), &to("restored")], 0),
        (&["import", &export, &to("imported"), "--create"], 0),
        (&["import", &from("cut.objects"), &to("imported too"), "--create", "--leave-damaged"], 3),
        (&["prune", &world, "-d", "overworld", "--radius", "2", "--dry-run"], 0),
        (&["schematic", "info", &from("box.schem")], 0),
        (&["schematic", "export", &world, &to("b.schem"), "-d", "overworld", "--from", "0,0,0", "--to", "9,9,9"], 0),
    ] {
        let (found, message) = exit(arguments);
        assert_eq!(found, code, "{arguments:?}: {message}");
    }
}

/// Runs only in the process that the test below starts; otherwise it does nothing.
#[test]
fn process_that_reads_a_world_without_write_permission() {
    let Some(folder) = process::here() else { return };
    let from = folder.join("from");
    assert!(fs::write(from.join("file"), "").is_err(), "it can be written");
    read_everything(&from, &folder.join("to"));
    println!("\nread all of it");
}

/// Reads from a read-only mount, if this process may create one. Otherwise only checks that nothing is changed.
///
/// Promise, upkeep: Commands of `terrane` that only read need no permission to write, and several can run at once.
#[test]
fn reading_commands_need_no_write_permission() {
    let made = Damaged::make();
    run(&["backup", &made.path("world"), &made.path("backups")]);
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
    [&from, &to].into_iter().for_each(|path| fs::create_dir(path).unwrap());
    let names = made.names();
    names.iter().map(|name| (made.folder.path().join(name), from.join(name))).for_each(|(made, from)| {
        fs::rename(made, from).unwrap();
    });
    // A world that never had a lock can be read too.
    fs::remove_file(from.join("damaged/world.lock")).unwrap();
    let before = folder::files(&from);
    let script = "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" && exec timeout 300 \"$@\"";
    let unshared = |program: &Path| {
        let mut command = std::process::Command::new("unshare");
        command.args(["--mount", "sh", "-c", script]).arg(&from).arg(program);
        command
    };
    let may_mount = unshared(Path::new("true")).output().is_ok_and(|output| output.status.success());
    if may_mount {
        let test = "terrane_tool::endings::process_that_reads_a_world_without_write_permission";
        let command = unshared(&std::env::current_exe().unwrap());
        let (mut process, lines) = process::start(command, test, folder.path());
        let lines: Vec<String> = lines.collect();
        assert!(process.wait().unwrap().success(), "{lines:#?}");
        assert!(lines.iter().any(|line| line == "read all of it"), "{lines:#?}");
    } else {
        read_everything(&from, &to);
    }
    let mut after = folder::files(&from);
    // If a lock can be created, it keeps games away meanwhile.
    after.retain(|path, _| before.contains_key(path) || !path.ends_with("world.lock"));
    assert!(after == before);
}
