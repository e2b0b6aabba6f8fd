//! Dead sections and their removal.

use super::*;

#[test]
fn a_region_without_columns_stays_until_its_tick_ends() {
    let mut world = world();
    let id = add(&mut world, 0, 0);
    assert_eq!(remove(&mut world, 0, 0), id);
    assert_eq!((world.state(id), world.dead_section_count(id)), (Some(RegionState::Ready), 25));
    assert_eq!(world.region_at(at(0, 0)), Some(id));
    world.drain_events();
    assert_eq!(tick(&mut world, id), DEAD);
    assert_eq!((world.state(id), world.region_at(at(0, 0))), (Some(RegionState::Dead), None));
    assert_eq!(world.drain_events(), [RegionEvent::Destroyed(id)]);
    assert_eq!(add(&mut world, 0, 0), RegionId::new(1));
}

#[test]
fn a_place_that_was_left_can_be_taken_again() {
    // Each region lies in one tile. The last used tile is removed before the other one, so the other's number is
    // reused first.
    let mut world = world();
    let (left, right) = (add(&mut world, 3, 3), add(&mut world, 11, 3));
    assert_ne!(left, right);
    remove(&mut world, 11, 3);
    remove(&mut world, 3, 3);
    assert_eq!([tick(&mut world, left), tick(&mut world, right)], [DEAD, DEAD]);
    let again = add(&mut world, 3, 3);
    assert_eq!(world.columns(again).collect::<Vec<_>>(), [at(3, 3)]);
    assert!(world.contains_column(at(3, 3)));
}

#[test]
fn dead_sections_come_back_to_life_in_place() {
    let mut world = world();
    let id = add(&mut world, 0, 0);
    remove(&mut world, 0, 0);
    assert_eq!(add(&mut world, 3, 0), id);
    // x = -2, -1, 0 are out of reach of the new column; 3, 4, 5 are new.
    assert_eq!((world.section_count(id), world.dead_section_count(id)), (40, 15));
    assert!(world.dead_sections(id).all(|section| section.x <= 0));
    assert_eq!(add(&mut world, 0, 0), id);
    assert_eq!(world.dead_section_count(id), 0);
}

#[test]
fn dead_sections_merge_too() {
    let mut world = world();
    let id = add(&mut world, 0, 0);
    remove(&mut world, 0, 0);
    assert_eq!(add(&mut world, 5, 0), id);
}

#[test]
fn dead_sections_stay_below_the_thresholds() {
    let mut world = world();
    let id = add(&mut world, 0, 0);
    add(&mut world, 3, 0);
    remove(&mut world, 3, 0);
    assert_eq!((tick(&mut world, id), world.dead_section_count(id)), (STILL_READY, 15));
    // 130 sections, of which 15 and then 30 are dead: the fraction passes 1/6.
    for x in 1..=18 {
        add(&mut world, -x, 0);
    }
    assert_eq!((world.section_count(id), world.dead_section_count(id)), (130, 15));
    assert_eq!((tick(&mut world, id), world.dead_section_count(id)), (STILL_READY, 15));
    for x in 16..=18 {
        remove(&mut world, -x, 0);
    }
    assert_eq!((tick(&mut world, id), world.section_count(id)), (STILL_READY, 100));
}

#[test]
fn a_value_equal_to_its_threshold_meets_it() {
    for (count, fraction, removed) in [(50, 0.5, true), (51, 0.5, false), (50, 0.51, false), (1, 0.0, true)] {
        let config = RegionizerConfig {
            recalculation_section_count: count,
            max_dead_section_percent: fraction,
            ..RegionizerConfig::default()
        };
        let mut world: World = Regionizer::new(config).unwrap();
        let id = add(&mut world, 0, 0);
        add(&mut world, 5, 0);
        remove(&mut world, 5, 0);
        assert_eq!((world.section_count(id), world.dead_section_count(id)), (50, 25));
        assert_eq!(tick(&mut world, id), STILL_READY);
        assert_eq!(world.section_count(id), if removed { 25 } else { 50 }, "from {count} on, {fraction}");
    }
}

#[test]
fn a_tick_that_merged_removes_dead_sections_regardless_of_the_thresholds() {
    let mut world = world();
    let id = add(&mut world, 0, 0);
    add(&mut world, 3, 0);
    remove(&mut world, 3, 0);
    let data = begin(&mut world, id);
    add(&mut world, -1, 0);
    assert_eq!(world.dead_section_count(id), 15);
    assert_eq!(end(&mut world, id, data), STILL_READY);
    assert_eq!((world.section_count(id), world.dead_section_count(id)), (30, 0));
}
