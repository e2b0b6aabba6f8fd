//! The moves, their time, and their state after a crash.

use super::*;
use std::ops::ControlFlow;
use std::time::Duration;

/// Promise, tiers: With `promotes_on_load` a loaded chunk group becomes hot, otherwise only a saved one.
#[test]
fn an_unchanged_save_leaves_a_group_in_its_tier() {
    for tier in [Tier::Warm, Tier::Cold] {
        let store = TestStore::default();
        let mut model = filled(&store);
        let world = store.world();
        all_to(&world, &model, tier);
        let before = store.contents();
        let report = save(&world, model.iter().map(|(pos, (block, _))| (*pos, *block)));
        assert_eq!((report.chunks, report.bytes), (0, 0));
        assert!(store.contents() == before);
        // Saving air where nothing is stored is not a change either.
        save(&world, [(ChunkPos::new(2, 2, 2), 0)]);
        assert!(store.contents() == before);
        // A real change moves its group, and no other.
        let pos = ChunkPos::new(0, 0, 0);
        assert_eq!(save(&world, [(pos, 99)]).chunks, 1);
        model.insert(pos, (99, 1));
        check(&store, &model);
        assert_eq!(world.tier(group(pos)), Ok(Some(Tier::Hot)));
        assert_eq!(world.tier(group(ChunkPos::new(4, 0, -4))), Ok(Some(tier)));
    }
}

#[test]
fn moves_are_counted() {
    let store = TestStore::default();
    let model = filled(&store);
    let world = store.world();
    let moves = all_to(&world, &model, Tier::Warm);
    assert_eq!((moves.groups, moves.chunks, moves.left), ([0, 3, 0], 24, 0));
    assert!(moves.chunk_bytes > 24 * 40 && moves.written > 0 && moves.damaged.is_empty());
    assert_eq!(all_to(&world, &model, Tier::Warm).groups, [0; 3]);
    assert_eq!(all_to(&world, &model, Tier::Cold).groups, [0, 0, 3]);
    assert_eq!(all_to(&world, &model, Tier::Hot).groups, [3, 0, 0]);
    check(&store, &model);
}

/// Promise, tiers: With `promotes_on_load` a loaded chunk group becomes hot, otherwise only a saved one.
#[test]
fn a_loaded_group_becomes_hot_only_if_the_setting_says_so() {
    for on_load in [false, true] {
        let store = TestStore::default();
        let model = filled(&store);
        let world = store.world();
        world.set_promotes_on_load(on_load);
        all_to(&world, &model, Tier::Cold);
        let column = ColumnPos::new(0, 0);
        assert!(!world.has_promotions());
        load(&world, column);
        assert_eq!(world.has_promotions(), on_load);
        world.promote_loaded().unwrap();
        let expected = if on_load { Tier::Hot } else { Tier::Cold };
        assert_eq!(world.tier(group(column.chunk(0))), Ok(Some(expected)));
        assert_eq!(world.tier(group(ChunkPos::new(-400, 8, 80))), Ok(Some(Tier::Cold)));
        check(&store, &model);
        assert!(!world.has_promotions());
    }
}

#[test]
fn a_failed_write_in_the_middle_of_moves_loses_nothing() {
    for good_writes in 0..3 {
        for tier in [Tier::Warm, Tier::Cold] {
            let store = TestStore::default();
            let model = filled(&store);
            let world = store.world();
            let groups: BTreeSet<_> = model.keys().map(|pos| (group(*pos), tier)).collect();
            store.fail_writes_after(good_writes);
            let moved = world.move_groups(&groups.iter().copied().collect::<Vec<_>>());
            assert!(moved.is_err(), "{moved:?}");
            store.fail_writes(false);
            check(&store, &model);
            // The moves are retried.
            all_to(&world, &model, tier);
            check(&store, &model);
            // A save that makes a group hot is retried too.
            store.fail_writes(true);
            let pos = ChunkPos::new(0, 0, 0);
            let batch = SaveBatch { chunks: [((DIMENSION, pos), chunk(99))].into(), ..SaveBatch::default() };
            assert!(world.commit(&batch, Durability::Process).is_err());
            store.fail_writes(false);
            check(&store, &model);
            world.commit(&batch, Durability::Process).unwrap();
            let mut model = model;
            model.insert(pos, (99, 1));
            check(&store, &model);
        }
    }
}

/// Promise, tiers: Every move between tiers is one atomic write, and no reader misses a chunk group.
#[test]
fn every_state_that_a_crash_can_leave_is_whole() {
    let store = TestStore::default();
    let mut model = filled(&store);
    let world = store.world();
    store.record_writes();
    for tier in [Tier::Warm, Tier::Cold, Tier::Warm, Tier::Hot, Tier::Cold] {
        all_to(&world, &model, tier);
    }
    for end in store.take_history() {
        check(&TestStore::on(end), &model);
    }
    // The states before and after a save that makes groups hot and changes them.
    let changed: Vec<_> = model.keys().step_by(5).map(|pos| (*pos, 99)).collect();
    let before = model.clone();
    store.record_writes();
    save(&world, changed.clone());
    changed.iter().for_each(|(pos, block)| _ = model.insert(*pos, (*block, 1)));
    let history = store.take_history();
    assert_eq!(history.len(), 1);
    check(&TestStore::on(history.into_iter().next().unwrap()), &model);
    assert_ne!(before, model);
}

/// Promise, tiers: Every move between tiers is one atomic write, and no reader misses a chunk group.
#[test]
fn a_reader_finds_every_group_while_it_moves() {
    let store = Arc::new(MemoryStore::new());
    let world = Arc::new(WorldStore::from_store(store).unwrap());
    let positions: Vec<ChunkPos> = (0..6).map(|y| ChunkPos::new(1, 4 * y, 2)).collect();
    save(&world, positions.iter().map(|pos| (*pos, 5)));
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..300 {
                let tier = Tier::ALL[(round * 7 + round / 3) % 3];
                let moves: Vec<_> = positions.iter().map(|pos| (group(*pos), tier)).collect();
                world.move_groups(&moves).unwrap();
                if round % 10 == 0 {
                    save(&world, [(positions[round % 6], 6 + round as u32)]);
                }
            }
            is_done.store(true, Ordering::SeqCst);
        });
        while !is_done.load(Ordering::SeqCst) {
            let loaded =
                world.load_batch(DIMENSION, positions[0].column().batch(), &[positions[0].column()], 0..24).unwrap();
            assert_eq!(loaded[0].column.chunks().len(), 6);
        }
    });
}

#[test]
fn a_rebuilt_graph_knows_all_tiers() {
    let store = TestStore::default();
    let model = filled(&store);
    let world = store.world();
    let mut groups: BTreeSet<_> = model.keys().map(|pos| group(*pos)).collect();
    let tiers = std::iter::zip(std::mem::take(&mut groups), Tier::ALL);
    world.move_groups(&tiers.collect::<Vec<_>>()).unwrap();
    check(&store, &model);
    assert!(world.has_lost_tiles(DIMENSION).unwrap());
    let columns: BTreeSet<_> = model.keys().map(|pos| pos.column()).collect();
    let found = world.rebuild_tiles(DIMENSION, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(found, Some(columns.len() as u64));
    // In a tall range, stored chunks are searched for.
    for column in columns {
        let expected = model.iter().filter(|(pos, _)| pos.column() == column);
        assert_eq!(load(&world, column), expected.map(|(pos, (block, _))| (*pos, *block)).collect());
    }
}

/// Promise, tiers: A chunk group of more than 64 MiB stays hot.
#[test]
fn a_chunk_of_megabytes_moves_through_the_tiers() {
    // Noise, which does not compress.
    let noise = |n: u64| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8;
    let value = |length: u64, from: u64| {
        let mut value = envelope::unsealed();
        value.extend((from..from + length).map(noise));
        envelope::seal(&mut value, 4);
        value
    };
    let store = TestStore::default();
    let world = store.world();
    let (large, small) = (ChunkPos::new(0, 0, 0), ChunkPos::new(1, 0, 0));
    save(&world, [(large, 1), (small, 2)]);
    let values = [value(4 << 20, 0), value(100, 9)];
    for (pos, value) in [large, small].iter().zip(&values) {
        store.tamper(Family::Chunks, &keys::chunk_key(DIMENSION, *pos), |stored| *stored = value.clone());
    }
    for tier in [Tier::Warm, Tier::Cold, Tier::Hot] {
        world.move_groups(&[(group(large), tier)]).unwrap();
        assert_eq!(world.tier(group(large)), Ok(Some(tier)));
    }
    for (pos, value) in [large, small].iter().zip(&values) {
        assert!(store.get(Family::Chunks, &keys::chunk_key(DIMENSION, *pos)).unwrap().as_ref() == Some(value));
    }
    // A group that is too large to be packed stays, and is not retried immediately.
    store
        .tamper(Family::Chunks, &keys::chunk_key(DIMENSION, large), |stored| *stored = vec![7; cluster::LARGEST_GROUP]);
    world.set_session_time(Duration::from_secs(50));
    let (moves, _) = world.move_groups(&[(group(large), Tier::Cold)]).unwrap();
    assert_eq!((moves.groups, moves.left), ([0; 3], 1));
    assert_eq!(world.tier(group(large)), Ok(Some(Tier::Hot)));
    assert_eq!(world.last_access(group(large)), Ok(Some(Duration::from_secs(50))));
}
