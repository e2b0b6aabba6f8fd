//! Merging nearby regions.

use super::*;

#[test]
fn regions_merge_at_a_distance_of_five_and_not_of_six() {
    let mut world = world();
    let first = add(&mut world, 0, 0);
    let second = add(&mut world, 6, 0);
    assert_ne!(first, second);
    let third = add(&mut world, 11, 0);
    assert_eq!(third, second);
    assert_eq!(world.regions(), [first, second]);
}

#[test]
fn the_largest_absorbs_and_of_equals_the_oldest() {
    let mut world = world();
    let small = add(&mut world, 0, 0);
    let large = add(&mut world, 10, 0);
    add(&mut world, 11, 0);
    world.drain_events();
    assert_eq!(add(&mut world, 5, 0), large);
    assert_eq!(world.drain_events(), [RegionEvent::Merged { from: small, into: large }]);
    assert_eq!((world.state(small), world.state(large)), (Some(RegionState::Dead), Some(RegionState::Ready)));
    assert_eq!(world.data(large), Some(&Names(BTreeSet::from([0, 1]))));

    let older = add(&mut world, 0, 50);
    let newer = add(&mut world, 10, 50);
    assert_eq!(add(&mut world, 5, 50), older);
    assert_eq!(world.state(newer), Some(RegionState::Dead));
}

#[test]
fn growth_beside_a_ticking_region_is_transient_until_the_tick_ends() {
    let mut world = world();
    let ticking = add(&mut world, 0, 0);
    let data = begin(&mut world, ticking);
    world.drain_events();
    // The column lies in the ticking region's rim; the sections that it needs beyond do not.
    assert_eq!(add(&mut world, 1, 0), ticking);
    let waiting = world.region_at(at(3, 0)).unwrap();
    assert_eq!((world.section_count(ticking), world.section_count(waiting)), (25, 5));
    assert_eq!((world.column_count(ticking), world.column_count(waiting)), (2, 0));
    assert_eq!(world.state(waiting), Some(RegionState::Transient));
    assert_eq!(world.pending_merges(), [(waiting, ticking)]);
    assert!(world.waits_for(waiting).eq([ticking]) && world.awaited_by(ticking) == [waiting]);
    // Growing the transient region leaves it transient. A column that makes no section changes nothing.
    assert_eq!(add(&mut world, 3, 0), waiting);
    assert_eq!(add(&mut world, 0, 1), ticking);
    assert_eq!(add(&mut world, -5, 9), RegionId::new(2));
    assert_eq!(end(&mut world, ticking, data), STILL_READY);
    assert_eq!(world.state(waiting), Some(RegionState::Dead));
    assert_eq!(world.data(ticking), Some(&Names(BTreeSet::from([0, 1]))));
    assert_eq!(world.regions(), [ticking, RegionId::new(2)]);
}

#[test]
fn a_ready_region_that_joins_a_ticking_one_waits_for_it() {
    let mut world = world();
    let ticking = add(&mut world, 0, 0);
    let ready = add(&mut world, 10, 0);
    let data = begin(&mut world, ticking);
    world.drain_events();
    assert_eq!(add(&mut world, 5, 0), ready);
    assert_eq!(world.state(ready), Some(RegionState::Transient));
    assert_eq!(world.drain_events(), [RegionEvent::Transient(ready)]);
    assert_eq!(world.try_begin_tick(ready), None);
    // The waiting region is larger than the ticking one, but is absorbed all the same, with its data.
    assert_eq!((world.section_count(ready), world.section_count(ticking)), (50, 25));
    assert_eq!(end(&mut world, ticking, data), STILL_READY);
    assert_eq!(world.drain_events(), [RegionEvent::Merged { from: ready, into: ticking }]);
    assert_eq!((world.section_count(ticking), world.column_count(ticking)), (75, 3));
    assert_eq!(world.data(ticking), Some(&Names(BTreeSet::from([0, 1]))));
    assert_eq!(tick(&mut world, ticking), STILL_READY);
}

#[test]
fn a_merge_moves_the_smaller_data_whichever_region_survives() {
    let mut world = world();
    let ticking = add(&mut world, 0, 0);
    let large = add(&mut world, 10, 0);
    for x in 11..60 {
        add(&mut world, x, 0);
    }
    let data = begin(&mut world, ticking);
    assert_eq!(add(&mut world, 5, 0), large);
    // Ground is marked with a slot: the large region keeps its marks under the other's name.
    let slot_of_ground = world.slots[&large];
    assert_eq!(end(&mut world, ticking, data), STILL_READY);
    assert_eq!((world.regions(), world.slots[&ticking]), (vec![ticking], slot_of_ground));
    assert_eq!(world.data(ticking), Some(&Names(BTreeSet::from([0, 1]))));
}

#[test]
fn a_ready_region_that_absorbs_a_transient_one_waits_in_its_place() {
    let mut world = world();
    let ticking = add(&mut world, 0, 0);
    let ready = add(&mut world, 20, 0);
    let data = begin(&mut world, ticking);
    let waiting = add(&mut world, 5, 0);
    add(&mut world, 10, 0);
    world.drain_events();
    // The waiting region is the larger one and stays transient.
    assert_eq!(add(&mut world, 15, 0), waiting);
    assert_eq!((world.state(ready), world.state(waiting)), (Some(RegionState::Dead), Some(RegionState::Transient)));
    assert_eq!(world.drain_events(), [RegionEvent::Merged { from: ready, into: waiting }]);

    // And the other way round.
    let large = add(&mut world, 5, 10);
    let grown: Vec<_> = (4..40).step_by(4).map(|z| add(&mut world, 5, 10 + z)).collect();
    assert!(grown.iter().all(|&id| id == large));
    assert_eq!(world.state(large), Some(RegionState::Ready));
    assert_eq!(add(&mut world, 5, 5), large);
    assert_eq!((world.state(waiting), world.state(large)), (Some(RegionState::Dead), Some(RegionState::Transient)));
    assert_eq!(world.pending_merges(), [(large, ticking)]);
    assert_eq!(end(&mut world, ticking, data), STILL_READY);
    assert_eq!(world.regions(), [ticking]);
}

#[test]
fn of_bridged_ticking_regions_the_last_to_end_has_everything() {
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]] {
        let mut world = world();
        let ids: Vec<_> = (0..4).map(|n| add(&mut world, 10 * n, 0)).collect();
        let mut data: Vec<_> = ids.iter().map(|&id| Some(begin(&mut world, id))).collect();
        for n in 0..3 {
            add(&mut world, 10 * n + 5, 0);
        }
        for (done, &n) in order.iter().enumerate() {
            let outcome = end(&mut world, ids[n], data[n].take().unwrap());
            if done == 3 {
                assert_eq!(outcome, STILL_READY);
                assert_eq!(world.regions(), [ids[n]]);
                assert_eq!(world.data(ids[n]), Some(&Names((0..7).collect())));
            } else {
                assert_eq!((outcome, world.state(ids[n])), (WAITS, Some(RegionState::Transient)));
                assert!(world.waits_for(ids[n]).all(|id| world.state(id) == Some(RegionState::Ticking)));
                assert_ne!(world.waits_for(ids[n]).count(), 0);
            }
        }
    }
}
