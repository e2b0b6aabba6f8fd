//! The rules of arenas, against a model.

use super::*;
use crate::block::BlockRegistry;
use crate::snapshot::{Snapshot, StoreOptions};
use crate::space::{BlockPos, DimensionId};
use proptest::collection::vec;
use proptest::prelude::*;
use std::ops::ControlFlow;

const NAMES: [&str; 4] = ["one", "two", "ONE", "3x3"];
/// Some of the areas overlap, and the last one is too long.
const AREAS: [[i64; 2]; 5] = [[0, 9], [5, 14], [10, 19], [20, 20], [30, 62]];
const MAX_SIDE: u64 = 32;

fn area(number: usize) -> BlockBox {
    let [low, high] = AREAS[number];
    BlockBox::new(BlockPos::new(low, 0, 0), BlockPos::new(high, 3, 3))
}

fn stored() -> Arc<StoredSnapshot> {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = Snapshot::new(area(0));
    let options = StoreOptions { level: 0, sync: false };
    let (blocks, owner) = (BlockRegistry::new(), BTreeMap::new());
    let go_on = &mut |_: &_| ControlFlow::Continue(());
    let path = folder.path().join("arena");
    Arc::new(StoredSnapshot::create(&path, (DimensionId(0), &snapshot), &blocks, &options, owner, go_on).unwrap())
}

#[derive(Clone, Debug)]
enum Do {
    Create(usize, usize),
    /// Ends the running action on an arena.
    End(usize),
    Revert(usize),
    Remove(usize),
    Wait(u64),
}

fn what() -> impl Strategy<Value = Do> {
    prop_oneof![
        (0..NAMES.len(), 0..AREAS.len()).prop_map(|(name, area)| Do::Create(name, area)),
        (0..NAMES.len()).prop_map(Do::End),
        (0..NAMES.len()).prop_map(Do::Revert),
        (0..NAMES.len()).prop_map(Do::Remove),
        (1..8_u64).prop_map(Do::Wait),
    ]
}

/// An arena in the slow model.
#[derive(Clone, Debug)]
struct Model {
    name: String,
    area: usize,
    state: ArenaState,
    cool_at: u64,
}

proptest! {
    #[test]
    fn only_one_thing_is_done_at_a_time_and_arenas_never_overlap(steps in vec(what(), 1..60)) {
        let stored = stored();
        let mut book = ArenaBook { folder: Ok(PathBuf::new()), most_side: MAX_SIDE, entries: BTreeMap::new() };
        let mut model: Vec<Model> = Vec::new();
        let mut now = 0;
        for step in steps {
            let time = Duration::from_secs(now);
            let of = |model: &[Model], name: usize| {
                model.iter().position(|arena| arena.name.eq_ignore_ascii_case(NAMES[name]))
            };
            match step {
                Do::Wait(seconds) => now += seconds,
                Do::Create(name, number) => {
                    let arena = Arena::new(NAMES[name], DimensionId(0), area(number));
                    let [low, high] = AREAS[number];
                    let meets = |other: &Model| AREAS[other.area][0] <= high && low <= AREAS[other.area][1];
                    let fits = number < 4 && of(&model, name).is_none() && !model.iter().any(meets);
                    prop_assert_eq!(book.check(&arena).is_ok(), fits);
                    if fits {
                        book.begin(arena, JobId::default());
                        let name = NAMES[name].to_owned();
                        model.push(Model { name, area: number, state: ArenaState::Creating, cool_at: 0 });
                    }
                }
                Do::End(name) => {
                    let Some(place) = of(&model, name) else { continue };
                    let entry = book.entries().find(|entry| key(&entry.arena.name) == key(NAMES[name])).unwrap();
                    match model[place].state {
                        ArenaState::Creating => {
                            entry.end_creation(stored.clone());
                            model[place].state = ArenaState::Ready;
                        }
                        ArenaState::Reverting => {
                            prop_assert_eq!(entry.end_revert(JobState::Finished, None, time), None);
                            (model[place].state, model[place].cool_at) = (ArenaState::CoolingDown, now + 5);
                        }
                        ArenaState::Removing => {
                            let gone = book.end_removal(NAMES[name], true);
                            prop_assert_eq!(gone.map(|arena| arena.name), Some(model.remove(place).name));
                        }
                        _ => {}
                    }
                }
                Do::Revert(name) => {
                    let may = of(&model, name).is_some_and(|place| match model[place].state {
                        ArenaState::Ready => true,
                        ArenaState::CoolingDown => model[place].cool_at <= now,
                        _ => false,
                    });
                    let found = book.revertible(NAMES[name], time);
                    prop_assert_eq!(found.is_ok(), may);
                    if let Ok((entry, _)) = found {
                        (entry.status.state, entry.until) = (ArenaState::Reverting, time);
                        let place = of(&model, name).unwrap();
                        model[place].state = ArenaState::Reverting;
                    }
                }
                Do::Remove(name) => {
                    let is_idle = |state| matches!(state, ArenaState::Ready | ArenaState::CoolingDown);
                    let may = of(&model, name).is_some_and(|place| is_idle(model[place].state));
                    let found = book.removable(NAMES[name]);
                    prop_assert_eq!(found.is_ok(), may);
                    if let Ok((Some(entry), _)) = found {
                        entry.status.state = ArenaState::Removing;
                        let place = of(&model, name).unwrap();
                        model[place].state = ArenaState::Removing;
                    }
                }
            }
            let states: Vec<_> = book.entries().map(|entry| (entry.arena.name.clone(), entry.status.state)).collect();
            let mut expected: Vec<_> = model.iter().map(|arena| (arena.name.clone(), arena.state)).collect();
            expected.sort_by_key(|(name, _)| key(name));
            prop_assert_eq!(states, expected);
        }
    }
}

#[test]
fn boxes_of_any_size_are_measured() {
    let sides = |min: [i64; 3], max: [i64; 3]| {
        let [min, max] = [min, max].map(|[x, y, z]| BlockPos::new(x, y, z));
        longest_side(&BlockBox { min, max })
    };
    assert_eq!(sides([0, 0, 0], [0, 0, 0]), 1);
    assert_eq!(sides([0, -5, 0], [3, 5, 0]), 11);
    assert_eq!(sides([0, 0, 1], [9, 9, 0]), 0);
    assert_eq!(sides([i64::MIN, 0, 0], [i64::MAX, 0, 0]), 1 << 64);
}
