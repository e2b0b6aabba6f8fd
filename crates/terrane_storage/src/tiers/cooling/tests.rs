//! Heat by group.

use super::*;
use crate::backends::test_store::TestStore;
use crate::block::BlockId;
use crate::chunk::Chunk;
use crate::space::{ChunkPos, ColumnPos};
use crate::{KeyValueStore, SaveBatch, TierConfig};
use std::sync::Arc;

const DIMENSION: DimensionId = DimensionId(5);
const MINUTE: Duration = Duration::from_secs(60);

fn group(x: i64) -> ChunkGroup {
    ChunkGroup::of(DIMENSION, ChunkPos::new(x, 0, 0))
}

fn batch(places: impl IntoIterator<Item = i64>, block: u32) -> SaveBatch {
    let chunk = Arc::new(Chunk::uniform(BlockId::new(block)));
    let chunks = places.into_iter().map(|x| ((DIMENSION, ChunkPos::new(x, 0, 0)), chunk.clone()));
    SaveBatch { chunks: chunks.collect(), ..SaveBatch::default() }
}

fn save(world: &WorldStore, batch: &SaveBatch) {
    world.commit(batch, Durability::Process).unwrap();
}

fn load(world: &WorldStore, x: i64) {
    let column = ColumnPos::new(x, 0);
    world.load_batch(DIMENSION, column.batch(), &[column], -4..20).unwrap();
}

fn cooling(world: &WorldStore, tier: Tier, until: impl Into<Option<Duration>>) -> Vec<(ChunkGroup, u64)> {
    let found = world.cooling_groups(tier, until.into(), 100).unwrap();
    found.iter().map(|found| (found.group, found.accessed.map_or(0, |accessed| accessed.as_secs()))).collect()
}

impl WorldStore {
    /// The play time of the last access to a group, in whole seconds; `None` if unknown.
    pub(crate) fn last_access(&self, group: ChunkGroup) -> Result<Option<Duration>, StoreError> {
        let stored = self.heat_records(&[group])?.remove(0).map(|record| record.accessed);
        let noted = self.heat.noted().get(&group).copied();
        Ok(stored.and_then(|stored| time_of(stored.max(noted.unwrap_or(0)))))
    }
}

/// Promise, tiers: The heat of a chunk group counts play time, over all sessions.
/// Promise, tiers: The heat of chunk groups is written with the next save, and a load writes nothing.
#[test]
fn heat_is_written_along_with_saves_and_survives_a_restart() {
    let store = TestStore::default();
    let world = store.world();
    world.set_session_time(10 * MINUTE);
    save(&world, &batch([0, 40], 1));
    world.set_session_time(20 * MINUTE);
    let before = store.contents();
    load(&world, 0);
    assert!(store.contents() == before, "a load writes nothing");
    assert_eq!(world.last_access(group(0)), Ok(Some(20 * MINUTE)));
    save(&world, &batch([80], 1));
    world.set_session_time(25 * MINUTE);
    world.note_access(DIMENSION, BatchPos::new(10, 0), 0..1);
    drop(world);

    let world = store.world();
    assert_eq!(world.play_time(), 20 * MINUTE, "what was not saved with anything is forgotten with its time");
    let accessed = [0, 40, 80, 120].map(|x| world.last_access(group(x)).unwrap());
    assert_eq!(accessed, [Some(20 * MINUTE), Some(10 * MINUTE), Some(20 * MINUTE), None]);
    world.set_session_time(MINUTE);
    assert_eq!(world.play_time(), 21 * MINUTE);
    world.set_session_time(Duration::ZERO);
    assert_eq!(world.play_time(), 21 * MINUTE, "it never goes back");
}

#[test]
fn groups_cool_down_in_the_order_of_their_last_access() {
    let store = TestStore::default();
    let world = store.world();
    for (minute, x) in [(1, 0), (2, 40), (3, 80)] {
        world.set_session_time(minute * MINUTE);
        save(&world, &batch([x], 1));
    }
    world.set_session_time(10 * MINUTE);
    assert_eq!(cooling(&world, Tier::Hot, 59 * Duration::from_secs(1)), []);
    assert_eq!(cooling(&world, Tier::Hot, 2 * MINUTE), [(group(0), 60), (group(40), 120)]);
    assert_eq!(world.cooling_groups(Tier::Hot, Some(5 * MINUTE), 1).unwrap().len(), 1);
    // A group that was loaded meanwhile is only found when its time has come, and then waits in its new place.
    load(&world, 0);
    assert_eq!(cooling(&world, Tier::Hot, 5 * MINUTE), [(group(40), 120), (group(80), 180)]);
    assert_eq!(world.count_cooling_groups(Tier::Hot, Some(5 * MINUTE), 100), Ok(2));
    assert_eq!(cooling(&world, Tier::Hot, 10 * MINUTE), [(group(40), 120), (group(80), 180), (group(0), 600)]);
    // A warm group waits from its last access on; a cold one does not wait.
    world.move_groups(&[(group(40), Tier::Warm), (group(80), Tier::Cold)]).unwrap();
    assert_eq!(cooling(&world, Tier::Hot, 10 * MINUTE), [(group(0), 600)]);
    assert_eq!(cooling(&world, Tier::Warm, 10 * MINUTE), [(group(40), 120)]);
    assert_eq!(cooling(&world, Tier::Cold, Duration::MAX), []);
    // A change makes the group hot now.
    save(&world, &batch([80], 2));
    assert_eq!(cooling(&world, Tier::Hot, 10 * MINUTE), [(group(0), 600), (group(80), 600)]);
    // A walk visits all groups, however small its pages are.
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let (groups, next) = world.walk_cooling_groups(Tier::Hot, cursor.as_ref(), 1).unwrap();
        seen.extend(groups.into_iter().map(|found| found.group));
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, [group(0), group(80)]);
}

/// Promise, tiers: A chunk group that was unused for 10 minutes moves to the warm tier.
/// Promise, tiers: A chunk group that was unused for 1 hour moves to the cold tier.
#[test]
fn ten_minutes_and_an_hour_pass_on_the_clock() {
    let (store, config) = (TestStore::default(), TierConfig::default());
    let world = store.world();
    world.set_session_time(MINUTE);
    save(&world, &batch([0], 1));
    let mut tiers = Vec::new();
    for minute in 1..=70 {
        world.set_session_time(minute * MINUTE);
        let now = world.play_time();
        for tier in [Tier::Hot, Tier::Warm] {
            let until = now.saturating_sub(if tier == Tier::Hot { config.warm_after } else { config.cold_after });
            let due = world.cooling_groups(tier, Some(until), 10).unwrap();
            let moves: Vec<_> = due.iter().map(|due| (due.group, config.tier(now, due.accessed, None))).collect();
            world.move_groups(&moves).unwrap();
        }
        tiers.push(world.tier(group(0)).unwrap().unwrap());
    }
    let first = |tier| 1 + tiers.iter().position(|found| *found == tier).unwrap();
    assert_eq!([Tier::Hot, Tier::Warm, Tier::Cold].map(first), [1, 11, 61]);
}

#[test]
fn unused_groups_start_cold_and_used_ones_stay_hot() {
    let store = TestStore::default();
    let world = store.world();
    world.set_session_time(30 * MINUTE);
    let mut generated = batch([0, 40], 1);
    generated.unused.insert((DIMENSION, ColumnPos::new(0, 0)));
    save(&world, &generated);
    assert_eq!(cooling(&world, Tier::Hot, None), [(group(0), 0)]);
    assert_eq!(world.last_access(group(0)), Ok(None));
    // A neighbour in the group that is generated later does not cool the group down.
    load(&world, 0);
    let mut generated = batch([1], 1);
    generated.unused.insert((DIMENSION, ColumnPos::new(1, 0)));
    save(&world, &generated);
    assert_eq!(cooling(&world, Tier::Hot, None), []);
    assert_eq!(world.last_access(group(0)), Ok(Some(30 * MINUTE)));
}

/// Promise, tiers: The chunk groups of a world that has no heat yet are found step by step.
#[test]
fn groups_of_an_older_world_are_found_step_by_step_and_once() {
    let store = TestStore::default();
    save(&store.world(), &batch((0..10).map(|n| n * 8 - 40), 1));
    let mut writes = WriteBatch::default();
    for (family, (key, _)) in store.contents() {
        if key.starts_with(b"heat:") || key.starts_with(b"cooling:") {
            writes.delete(family, key);
        }
    }
    store.write(writes, Durability::Process).unwrap();
    let mut calls = 0;
    loop {
        calls += 1;
        // Each time after a restart.
        let world = store.world();
        world.set_session_time(MINUTE);
        if world.adopt_groups(3).unwrap() {
            break;
        }
    }
    assert_eq!(calls, 4);
    let world = store.world();
    let found = cooling(&world, Tier::Hot, Duration::MAX);
    assert_eq!(found.len(), 10);
    assert!(found.iter().all(|(_, accessed)| *accessed >= 60), "from now on: {found:?}");
    assert_eq!(world.adopt_groups(3), Ok(true));
}

/// Promise, tiers: Damaged or lost heat only causes moves between tiers.
#[test]
fn damaged_heat_loses_only_heat() {
    let store = TestStore::default();
    let world = store.world();
    save(&world, &batch([0, 40], 1));
    store.tamper(Family::Meta, &keys::heat_key(group(0)), |value| value.truncate(1));
    assert_eq!(world.last_access(group(0)), Ok(None));
    assert_eq!(cooling(&world, Tier::Hot, MINUTE), [(group(40), 0)], "its cooling key is dropped");
    save(&world, &batch([0], 2));
    load(&world, 0);
    world.commit(&SaveBatch::default(), Durability::Process).unwrap();
    assert_eq!(world.tier(group(0)), Ok(Some(Tier::Hot)));
}

#[test]
fn a_failed_write_forgets_no_access() {
    let store = TestStore::default();
    let world = store.world();
    save(&world, &batch([0], 1));
    world.set_session_time(MINUTE);
    load(&world, 0);
    store.fail_writes(true);
    assert!(world.commit(&SaveBatch::default(), Durability::Process).is_err());
    store.fail_writes(false);
    world.commit(&SaveBatch::default(), Durability::Process).unwrap();
    assert_eq!(store.world().last_access(group(0)), Ok(Some(MINUTE)));
}

#[test]
fn heat_that_cannot_be_read_keeps_nothing_from_being_saved() {
    let store = TestStore::default();
    let world = store.world();
    save(&world, &batch([0, 40], 1));
    store.damage_block(Family::Meta, &[&keys::heat_key(group(0))]);
    world.set_session_time(MINUTE);
    load(&world, 0);
    load(&world, 40);
    save(&world, &batch([0], 2));
    assert_eq!(world.last_access(group(40)), Ok(Some(MINUTE)));
}
