use super::*;
use crate::support::process::{here, process};
use crate::support::rounds;
use std::time::Duration;

/// Runs only in the process that the test below starts and kills; otherwise it does nothing.
#[test]
fn process_that_is_killed() {
    let Some(path) = here() else { return };
    let world = open(&path).unwrap();
    world.open_dimension("overworld", &origin()).unwrap();
    for number in stored_round(&world).map_or(0, |last| last + 1).. {
        println!("\nbegins {number}");
        let durability = if number.is_multiple_of(3) { Durability::Sync } else { Durability::Process };
        world.commit(&round(number), durability).unwrap();
        println!("\nacknowledged {number}");
    }
}

/// `TERRANE_ROUNDS=10` kills 200 times.
///
/// Promise, overview: Everything is saved in RocksDB, crash-safe.
/// Promise, worlds: Everything that changed is committed to the store as one atomic batch.
/// Promise, crashes: A save is one atomic batch.
#[test]
fn after_any_kill_acknowledged_saves_are_in_all_families() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world");
    let mut stored = None;
    for kill in 0..rounds(20) {
        let (mut process, lines) = process("damage::kills::process_that_is_killed", &path);
        let mut acknowledged = numbers(lines, "acknowledged");
        // From the middle of the first save to dozens of saves later.
        let mut last = acknowledged.by_ref().take((kill % 5) as usize).last();
        std::thread::sleep(Duration::from_micros(kill * 7_919 % 23_000));
        process.kill().unwrap();
        process.wait().unwrap();
        last = acknowledged.last().or(last);

        let world = open(&path).unwrap();
        let found = stored_round(&world);
        assert!(found >= last.or(stored), "kill {kill}: {last:?} was acknowledged, {found:?} is there");
        stored = found;
        let Some(found) = found else { continue };
        let expected = round(found);
        let column = ColumnPos::new(0, 0);
        let loaded = world.load_batch(OVERWORLD, column.batch(), &[column], 0..4).unwrap().remove(0);
        let is_expected = |y| loaded.column.chunk(y) == expected.chunks.get(&(OVERWORLD, column.chunk(y)));
        assert!(is_expected(0), "kill {kill}: a chunk is of another round than {found}");
        let ticks: Vec<_> = expected.block_ticks.values().flatten().cloned().collect();
        assert_eq!(loaded.block_ticks, ticks, "kill {kill}");
        let entities: Vec<_> = expected.entities.values().flatten().cloned().collect();
        assert_eq!(loaded.entities, entities, "kill {kill}");
        assert_eq!(world.stored_tiles(OVERWORLD).unwrap(), [(TilePos::new(0, 0), [found as u16; 64])], "kill {kill}");
        let summary = world.summaries(OVERWORLD, &[column]).unwrap().remove(0);
        assert_eq!(summary.as_ref(), Some(&*expected.summaries[&(OVERWORLD, column)]), "kill {kill}");
        // Every chunk of every earlier round decodes, and is that of its last round.
        for x in 0..50_u32 {
            let newest = (0..=found).rev().take(50).find(|number| number % 50 == x);
            let column = ColumnPos::new(x.into(), 3);
            let loaded = world.load_batch(OVERWORLD, column.batch(), &[column], 1..2).unwrap().remove(0);
            let newest = newest.map(|number| chunk(number.into()));
            assert_eq!(loaded.column.chunk(1), newest.as_ref(), "kill {kill}: column {column}");
        }
    }
    assert!(stored > Some(0), "nothing was ever saved");
}

/// Runs only in the process that the test below starts and kills. When its world's folder is lost, it goes on with a new world.
#[test]
fn process_that_loses_its_folder() {
    let Some(path) = here() else { return };
    let mut number = 0;
    loop {
        let world = open(&path).unwrap();
        world.open_dimension("overworld", &origin()).unwrap();
        while world.commit(&round(number), Durability::Process).is_ok() {
            println!("\nacknowledged {number}");
            number += 1;
        }
        println!("\nlost {number}");
    }
}

/// The folder is moved away, the path opens again in the same process, and the process is killed. `TERRANE_ROUNDS=10` does it 200 times.
///
/// Promise, crashes: After its folder is lost, a world's path opens again, and each save is in the folder in which it was acknowledged.
#[cfg(unix)]
#[test]
fn a_path_from_which_a_world_was_lost_opens_again_and_keeps_its_saves() {
    for kill in 0..rounds(20) {
        let folder = tempfile::tempdir().unwrap();
        let [path, away] = ["world", "away"].map(|name| folder.path().join(name));
        let (mut process, lines) = process("damage::kills::process_that_loses_its_folder", &path);
        let mut saves = lines.filter(|line| line.starts_with("acknowledged ") || line.starts_with("lost "));
        let mut heard: Vec<String> = saves.by_ref().take(1 + (kill % 5) as usize).collect();
        std::thread::sleep(Duration::from_micros(kill * 7_919 % 23_000));
        fs::rename(&path, &away).unwrap();
        heard.extend(saves.by_ref().take_while(|line| !line.starts_with("lost ")));
        let first = heard.len() as u32;
        heard.extend(saves.by_ref().take(1 + (kill % 3) as usize));
        std::thread::sleep(Duration::from_micros(kill * 4_729 % 23_000));
        process.kill().unwrap();
        process.wait().unwrap();
        heard.extend(saves);
        let all = (0..).zip(&heard).all(|(number, line)| *line == format!("acknowledged {number}"));
        assert!(all && heard.len() as u32 > first, "kill {kill}: {heard:?}");
        for (path, last) in [(away, first - 1), (path, heard.len() as u32 - 1)] {
            let world = open(&path).unwrap();
            assert!(stored_round(&world) >= Some(last), "kill {kill}: {} has no {last}", path.display());
            let found = stored_round(&world).unwrap();
            let column = ColumnPos::new(0, 0);
            let loaded = world.load_batch(OVERWORLD, column.batch(), &[column], 0..4).unwrap().remove(0);
            assert_eq!(loaded.column.chunk(0), Some(&chunk(found.into())), "kill {kill}: a chunk of another round");
        }
    }
}
