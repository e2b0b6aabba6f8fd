//! Random histories that end in the middle of an operation.

use super::*;
use std::cell::Cell;

/// Deterministic random numbers.
fn random(seed: u64) -> impl FnMut() -> u64 {
    let state = Cell::new(seed | 1);
    move || {
        let mut next = state.get();
        next ^= next << 13;
        next ^= next >> 7;
        next ^= next << 17;
        state.set(next);
        next >> 8
    }
}

/// Performs the steps until the power fails during an operation of the disk. Returns the disk, and the contents before
/// and after the step that failed, if one did.
fn until_power_fails(steps: &[Do], options: ObjectStoreOptions, operation: usize) -> (PowerDisk, Model, Option<Model>) {
    let disk = PowerDisk::default();
    let (mut store, mut model) = (create(disk.clone(), options), Model::new());
    disk.fail_at(disk.operations() + operation);
    for (seed, step) in (1..).zip(steps) {
        let before = model.clone();
        // A store on a disk without failures computes the expected result.
        let mut after = before.clone();
        let mut other = create(PowerDisk::default(), options);
        for (key, object) in &before {
            other.write(key, object.version, &object.data).unwrap();
        }
        perform(&mut other, step, seed, &mut after).unwrap();
        if perform(&mut store, step, seed, &mut model).is_err() {
            return (disk, before, Some(after));
        }
        if matches!(step, Do::Reopen) {
            if store.write_index().is_err() {
                return (disk, before, None);
            }
            store = open(disk.clone(), options);
        }
    }
    (disk, model, None)
}

/// Promise, object store: An object deleted by a batch never reappears.
#[test]
fn deleting_the_newest_version_revives_no_older_one() {
    let steps = [Do::Write(1, 1, 5_000), Do::Write(1, 2, 5_000), Do::Delete(1), Do::Write(2, 1, 5_000)];
    let mut random = random(3);
    for operation in 0..30 {
        for zero_freed in [false, true] {
            let options = ObjectStoreOptions { zero_freed, ..options() };
            let (disk, before, after) = until_power_fails(&steps, options, operation);
            for _ in 0..100 {
                let found = contents(&open(disk.after_power_loss(&mut random), options));
                assert!(found == before || after.as_ref() == Some(&found), "operation {operation}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// A loss of power at every write and every sync of a history.
    ///
    /// Promise, object store: An object store ignores incomplete chains of blocks.
    /// Promise, object store: The write with the highest counter wins, and a batch is applied as a whole.
    /// Promise, object store: After a loss of power, an object store has the old or the new version of an object.
    /// Promise, object store: An object store reuses a block only after its replacement is synced.
    #[test]
    fn after_a_loss_of_power_changes_are_atomic_and_acknowledged_ones_survive(
        steps in vec(doing(), 1..14), zero_freed in any::<bool>(), seed in any::<u64>(),
    ) {
        let options = ObjectStoreOptions { zero_freed, ..options() };
        let all = {
            let (disk, _, failed) = until_power_fails(&steps, options, usize::MAX / 2);
            prop_assert!(failed.is_none());
            disk.operations()
        };
        let mut random = random(seed);
        for operation in 0..all {
            let (disk, before, after) = until_power_fails(&steps, options, operation);
            for _ in 0..4 {
                let lost = disk.after_power_loss(&mut random);
                let store = open(lost.clone(), options);
                let found = contents(&store);
                let is_right = found == before || after.as_ref() == Some(&found);
                prop_assert!(is_right, "operation {operation}: {:?}", store.recovery());
                // This remains true: no object that is deleted now reappears after the index is lost again.
                let keys: Vec<String> = found.keys().cloned().collect();
                let mut store = store;
                for key in &keys {
                    prop_assert!(store.delete(key).unwrap());
                }
                std::mem::forget(store);
                let again = open(lost.after_power_loss(&mut random), options);
                prop_assert!(again.is_empty(), "operation {operation}: {:?}", again.recovery());
            }
        }
    }

    /// Without a sync, each object has the state of some write since the last sync.
    #[test]
    fn without_a_sync_an_object_is_never_lost_whole(lengths in vec(lengths(), 2..8), seed in any::<u64>()) {
        let options = ObjectStoreOptions { sync: false, ..options() };
        let disk = PowerDisk::default();
        let mut store = create(disk.clone(), options);
        store.write("a", 0, &data(0, 5_000)).unwrap();
        store.sync().unwrap();
        for (version, length) in (1..).zip(&lengths) {
            store.write("a", version, &data(version, *length)).unwrap();
            store.write("b", version, &data(version, 9_000)).unwrap();
        }
        std::mem::forget(store);
        let mut random = random(seed);
        for _ in 0..20 {
            let store = open(disk.after_power_loss(&mut random), options);
            let found = store.read("a").unwrap().unwrap();
            let expected = if found.version == 0 { 5_000 } else { lengths[found.version as usize - 1] };
            prop_assert_eq!(found.data, data(found.version, expected));
        }
    }
}
