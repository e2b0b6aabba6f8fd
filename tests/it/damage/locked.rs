use super::*;
use crate::support::process::{here, process};
use bevy_terrane::storage::OpenWait;
use std::io::Write;
use std::time::Duration;

/// Runs only in the process that the tests below start; otherwise it does nothing.
#[test]
fn process_that_has_the_world_open() {
    let Some(path) = here() else { return };
    let world = open(&path).unwrap();
    world.commit(&round(1), Durability::Process).unwrap();
    println!("\nopened {}", std::process::id());
    std::io::stdin().lines().next();
}

/// Promise, crashes: A world that another process has open is refused with that process's number, and stays untouched.
#[test]
fn a_world_that_another_process_has_open_is_refused_with_its_number_and_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world");
    for is_killed in [false, true] {
        let (mut process, lines) = process("damage::locked::process_that_has_the_world_open", &path);
        // Kept until the process has ended, since it writes a last line.
        let mut opened = numbers(lines, "opened");
        assert_eq!(opened.next(), Some(process.id()));
        let before = files(&path);
        let config = StorageConfig::Path(path.clone());
        let error = WorldStore::open_waiting(&config, &mut OpenWait::new(Duration::ZERO, |_| panic!("it waits")));
        let error = error.unwrap_err();
        let expected = WorldOpenError::Locked { path: path.join("world.lock"), process: Some(process.id()) };
        assert_eq!(error, expected);
        assert!(error.to_string().contains(&format!("process {}", process.id())), "{error}");
        assert!(files(&path) == before, "it was touched");
        match is_killed {
            true => process.kill().unwrap(),
            false => writeln!(process.stdin.take().unwrap()).unwrap(),
        }
        process.wait().unwrap();
        // The world is free, however the process ended.
        let world = open(&path).unwrap();
        assert_eq!(world.entity(Uuid::from_u128(5)).unwrap(), round(1).entities[&Uuid::from_u128(5)]);
    }
}
