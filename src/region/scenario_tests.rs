//! One story a test, with the default configuration: sections of 4 x 4 columns, creation radius 2, merge radius 1.

use super::*;
use crate::space::ColumnPos;
use std::collections::BTreeSet;

/// The names of the regions whose data came together here.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Names(BTreeSet<u64>);

impl RegionData for Names {
    fn new(region: RegionId) -> Self {
        Self(BTreeSet::from([region.index()]))
    }

    fn merge(&mut self, from: RegionId, data: Self) {
        assert!(data.0.contains(&from.index()));
        self.0.extend(data.0);
    }

    fn split(&mut self, parts: &[RegionPart]) -> Vec<Self> {
        parts.iter().map(|part| Self::new(part.id)).collect()
    }
}

type World = Regionizer<Names>;

fn world() -> World {
    Regionizer::new(RegionizerConfig::default()).expect("the default is valid")
}

/// A column in this section.
fn at(x: i64, z: i64) -> ColumnPos {
    ColumnPos::new(4 * x + 1, 4 * z + 2)
}

fn add(world: &mut World, x: i64, z: i64) -> RegionId {
    let id = world.add_column(at(x, z)).expect("the column is absent");
    world.check_invariants().unwrap();
    id
}

fn remove(world: &mut World, x: i64, z: i64) -> RegionId {
    let id = world.remove_column(at(x, z)).expect("the column is present");
    world.check_invariants().unwrap();
    id
}

fn begin(world: &mut World, id: RegionId) -> Names {
    let data = world.try_begin_tick(id).expect("the region is ready");
    assert_eq!((world.state(id), world.data(id)), (Some(RegionState::Ticking), None));
    data
}

fn end(world: &mut World, id: RegionId, data: Names) -> TickEnd {
    let end = world.end_tick(id, data).expect("the region ticks");
    world.check_invariants().unwrap();
    end
}

fn tick(world: &mut World, id: RegionId) -> TickEnd {
    let data = begin(world, id);
    end(world, id, data)
}

const STILL_READY: TickEnd = TickEnd::Ready { split_off: Vec::new() };

#[test]
fn a_column_makes_a_ready_region_with_a_rim() {
    let mut world = world();
    let id = add(&mut world, 0, 0);
    assert_eq!((id, world.state(id)), (RegionId::new(0), Some(RegionState::Ready)));
    assert_eq!((world.section_count(id), world.column_count(id), world.dead_section_count(id)), (25, 1, 0));
    assert_eq!(world.bounds(id), Some((SectionPos::new(-2, -2), SectionPos::new(2, 2))));
    assert_eq!(world.columns(id).collect::<Vec<_>>(), [at(0, 0)]);
    assert_eq!((world.region_at(at(2, -2)), world.region_at(at(3, 0))), (Some(id), None));
    assert_eq!((world.contains_column(at(0, 0)), world.contains_column(at(1, 0))), (true, false));
    assert_eq!(world.data(id), Some(&Names::new(id)));
    assert_eq!(world.drain_events(), [RegionEvent::Created(id), RegionEvent::Ready(id)]);
    assert_eq!(world.drain_events(), []);
}

/// Everything that can be asked of a world, regions that are gone included.
fn everything(world: &World) -> String {
    let of_region = |index| {
        let id = RegionId::new(index);
        let sections: Vec<_> = world.sections(id).collect();
        let dead: Vec<_> = world.dead_sections(id).collect();
        let columns: Vec<_> = world.columns(id).collect();
        let counts = (world.section_count(id), world.dead_section_count(id), world.column_count(id));
        let pending = (world.waits_for(id), world.awaited_by(id));
        let owners: Vec<_> = sections.iter().map(|&section| world.region_at_section(section)).collect();
        format!(
            "{id} {:?} {:?} {sections:?} {dead:?} {columns:?} {counts:?} {pending:?} {owners:?}\n",
            world.state(id),
            world.data(id)
        )
    };
    let all: String = (0..8).map(of_region).collect();
    format!("{all}{:?} {:?}", world.regions(), world.pending_merges())
}

#[test]
fn refused_calls_change_nothing() {
    // A ready region with dead sections, a ticking one, a transient one that waits for it, and one that is gone.
    let mut world = world();
    let ready = add(&mut world, 0, 0);
    add(&mut world, 3, 0);
    remove(&mut world, 3, 0);
    let gone = add(&mut world, 30, 0);
    remove(&mut world, 30, 0);
    assert_eq!(tick(&mut world, gone), TickEnd::Dead);
    let ticking = add(&mut world, 60, 0);
    let data = begin(&mut world, ticking);
    let waiting = add(&mut world, 63, 0);
    world.drain_events();
    let before = everything(&world);

    for (x, region) in [(0, ready), (60, ticking), (63, waiting)] {
        let column = at(x, 0);
        let region = world.region_at(column).filter(|&id| id == region).unwrap();
        assert_eq!(world.add_column(column), Err(RegionizerError::ColumnPresent { column, region }));
        assert_eq!(everything(&world), before);
        // In the same section, in the rim, in a section that is or may be dead, and where nothing is.
        for column in [column.offset(1, 0), at(x + 1, 1), at(x + 3, 0).offset(1, 0), at(x, 20), at(30, 0)] {
            assert_eq!(world.remove_column(column), Err(RegionizerError::ColumnAbsent { column }));
            assert_eq!(everything(&world), before);
        }
    }
    assert_eq!(
        [world.try_begin_tick(ticking), world.try_begin_tick(waiting), world.try_begin_tick(gone)],
        [const { None }; 3]
    );
    for (region, state) in [(ready, RegionState::Ready), (waiting, RegionState::Transient), (gone, RegionState::Dead)] {
        assert_eq!(world.end_tick(region, data.clone()), Err(RegionizerError::NotTicking { region, state }));
    }
    let region = RegionId::new(99);
    assert_eq!(world.end_tick(region, data), Err(RegionizerError::UnknownRegion { region }));
    assert_eq!(everything(&world), before);
    assert_eq!(world.drain_events(), []);
    // Nor is an id lost.
    assert_eq!(add(&mut world, 200, 0), RegionId::new(4));
}

#[test]
fn only_ready_regions_begin_and_only_ticking_ones_end() {
    let mut world = world();
    let region = add(&mut world, 0, 0);
    let state = RegionState::Ready;
    assert_eq!(world.end_tick(region, Names::new(region)), Err(RegionizerError::NotTicking { region, state }));
    let data = begin(&mut world, region);
    assert_eq!(world.try_begin_tick(region), None);
    assert_eq!(world.data_mut(region), None);
    let waiting = add(&mut world, 3, 0);
    assert_eq!(world.try_begin_tick(waiting), None);
    let state = RegionState::Transient;
    assert_eq!(
        world.end_tick(waiting, Names::new(waiting)),
        Err(RegionizerError::NotTicking { region: waiting, state })
    );
    end(&mut world, region, data);
    let state = RegionState::Dead;
    assert_eq!(
        world.end_tick(waiting, Names::new(waiting)),
        Err(RegionizerError::NotTicking { region: waiting, state })
    );
    let region = RegionId::new(99);
    assert_eq!(world.end_tick(region, Names::new(region)), Err(RegionizerError::UnknownRegion { region }));
    assert_eq!((world.try_begin_tick(region), world.state(region), world.data(region)), (None, None, None));
    assert_eq!((world.sections(region).count(), world.bounds(region)), (0, None));
}

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
    // The column lies in the ticking region's rim, what it needs beyond does not.
    assert_eq!(add(&mut world, 1, 0), ticking);
    let waiting = world.region_at(at(3, 0)).unwrap();
    assert_eq!((world.section_count(ticking), world.section_count(waiting)), (25, 5));
    assert_eq!((world.column_count(ticking), world.column_count(waiting)), (2, 0));
    assert_eq!(world.state(waiting), Some(RegionState::Transient));
    assert_eq!(world.pending_merges(), [(waiting, ticking)]);
    assert_eq!((world.waits_for(waiting), world.awaited_by(ticking)), (&[ticking][..], &[waiting][..]));
    // Growing the transient one leaves it transient; a column that makes no section changes nothing.
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
    // What waits is larger than what it waits for: it is absorbed all the same, with its data.
    assert_eq!((world.section_count(ready), world.section_count(ticking)), (50, 25));
    assert_eq!(end(&mut world, ticking, data), STILL_READY);
    assert_eq!(world.drain_events(), [RegionEvent::Merged { from: ready, into: ticking }]);
    assert_eq!((world.section_count(ticking), world.column_count(ticking)), (75, 3));
    assert_eq!(world.data(ticking), Some(&Names(BTreeSet::from([0, 1]))));
    assert_eq!(tick(&mut world, ticking), STILL_READY);
}

#[test]
fn a_merge_moves_the_smaller_ground_whoever_goes_on() {
    let mut world = world();
    let ticking = add(&mut world, 0, 0);
    let large = add(&mut world, 10, 0);
    for x in 11..60 {
        add(&mut world, x, 0);
    }
    let data = begin(&mut world, ticking);
    assert_eq!(add(&mut world, 5, 0), large);
    // A slot is what ground is marked with: the large one keeps its mark under the other's name.
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
    // Of these the waiting one is the larger; it stays what it is.
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
            } else if let TickEnd::Transient { waits_for } = outcome {
                assert_eq!(world.state(ids[n]), Some(RegionState::Transient));
                assert_eq!(world.waits_for(ids[n]), waits_for);
                assert!(waits_for.iter().all(|&id| world.state(id) == Some(RegionState::Ticking)));
            } else {
                panic!("{outcome:?} while others of the chain tick");
            }
        }
    }
}

#[test]
fn a_region_without_columns_stays_until_its_tick_ends() {
    let mut world = world();
    let id = add(&mut world, 0, 0);
    assert_eq!(remove(&mut world, 0, 0), id);
    assert_eq!((world.state(id), world.dead_section_count(id)), (Some(RegionState::Ready), 25));
    assert_eq!(world.region_at(at(0, 0)), Some(id));
    world.drain_events();
    assert_eq!(tick(&mut world, id), TickEnd::Dead);
    assert_eq!((world.state(id), world.region_at(at(0, 0))), (Some(RegionState::Dead), None));
    assert_eq!(world.drain_events(), [RegionEvent::Destroyed(id)]);
    assert_eq!(add(&mut world, 0, 0), RegionId::new(1));
}

#[test]
fn a_place_that_was_left_can_be_taken_again() {
    // Each region lies in one tile. The tile that was used last is removed before the other one, so that the other's
    // number is the first to be used again.
    let mut world = world();
    let (left, right) = (add(&mut world, 3, 3), add(&mut world, 11, 3));
    assert_ne!(left, right);
    remove(&mut world, 11, 3);
    remove(&mut world, 3, 3);
    assert_eq!([tick(&mut world, left), tick(&mut world, right)], [TickEnd::Dead, TickEnd::Dead]);
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
fn thresholds_are_met_by_what_equals_them() {
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
fn a_tick_that_merged_removes_dead_sections_whatever_the_thresholds() {
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

/// A region of two clumps whose living sections end up `distance` apart, and a tick that removes the dead between them.
fn pull_apart(distance: i64) -> (World, RegionId, TickEnd) {
    let mut world = world();
    let id = add(&mut world, 0, 0);
    let far = 4 + distance;
    for x in 1..=far {
        add(&mut world, x, 0);
    }
    add(&mut world, far + 1, 0);
    for x in 1..far {
        remove(&mut world, x, 0);
    }
    let data = begin(&mut world, id);
    // Makes the tick merge something, so that it removes the dead sections.
    add(&mut world, far, 1);
    world.drain_events();
    let outcome = end(&mut world, id, data);
    (world, id, outcome)
}

#[test]
fn parts_split_at_a_distance_of_three_and_not_of_two() {
    for near in [1, 2] {
        let (world, id, outcome) = pull_apart(near);
        assert_eq!(outcome, STILL_READY, "at {near}");
        assert_eq!(world.regions(), [id]);
    }
    for far in [3, 4, 9] {
        let (mut world, id, outcome) = pull_apart(far);
        let TickEnd::Ready { split_off } = outcome else { panic!("{outcome:?}") };
        let [new] = split_off[..] else { panic!("{split_off:?}") };
        assert_eq!(world.regions(), [id, new]);
        // The larger part keeps the id.
        assert_eq!((world.column_count(id), world.column_count(new)), (3, 1));
        assert_eq!(world.region_at(at(0, 0)), Some(new));
        assert_eq!(world.state(new), Some(RegionState::Ready));
        assert_eq!(world.data(new), Some(&Names::new(new)));
        let events = world.drain_events();
        assert!(matches!(events[0], RegionEvent::Merged { into, .. } if into == id));
        assert_eq!(
            events[1..],
            [RegionEvent::Created(new), RegionEvent::Split { from: id, into: vec![new] }, RegionEvent::Ready(new)]
        );
        assert_eq!((tick(&mut world, new), tick(&mut world, id)), (STILL_READY, STILL_READY));
    }
}

#[test]
fn removing_what_is_between_does_not_split_while_below_the_thresholds() {
    let mut world = world();
    let id = add(&mut world, 0, 0);
    for x in 1..=12 {
        add(&mut world, x, 0);
    }
    for x in 1..12 {
        remove(&mut world, x, 0);
    }
    assert_eq!(tick(&mut world, id), STILL_READY);
    assert_eq!(world.regions(), [id]);
}

/// Data that knows its sections, and answers a split with this many values.
#[derive(Debug, PartialEq)]
struct Stubborn {
    values: usize,
    surplus: usize,
    sections: BTreeSet<SectionPos>,
}

impl RegionData for Stubborn {
    fn new(_: RegionId) -> Self {
        Self { values: 0, surplus: 0, sections: BTreeSet::new() }
    }

    fn merge(&mut self, _: RegionId, data: Self) {
        self.surplus += 1;
        self.sections.extend(data.sections);
    }

    fn split(&mut self, parts: &[RegionPart]) -> Vec<Self> {
        parts.iter().for_each(|part| self.shrink(&part.sections));
        let part = |place: usize| parts.get(place).map_or(&[][..], |part| &part.sections);
        let value = |place| Self { sections: part(place).iter().copied().collect(), ..Self::new(RegionId::new(0)) };
        (0..self.values).map(value).collect()
    }

    fn grow(&mut self, sections: &[SectionPos]) {
        self.sections.extend(sections);
    }

    fn shrink(&mut self, sections: &[SectionPos]) {
        self.sections.retain(|section| !sections.contains(section));
    }
}

#[test]
fn a_split_into_a_wrong_number_of_data_loses_none() {
    for given in [0, 1, 5] {
        let config = RegionizerConfig { recalculation_section_count: 1, ..RegionizerConfig::default() };
        let mut world: Regionizer<Stubborn> = Regionizer::new(config).unwrap();
        for x in 0..=20 {
            world.add_column(at(x, 0)).unwrap();
        }
        for x in (0..=20).filter(|x| x % 10 != 0) {
            world.remove_column(at(x, 0)).unwrap();
        }
        let id = RegionId::new(0);
        let data = world.try_begin_tick(id).unwrap();
        assert_eq!(data.sections, world.sections(id).collect());
        let outcome = world.end_tick(id, Stubborn { values: given, ..data }).unwrap();
        world.check_invariants().unwrap();
        // Three equal parts: the one with the lowest section keeps the id.
        assert_eq!(outcome, TickEnd::Ready { split_off: vec![RegionId::new(1), RegionId::new(2)] });
        assert_eq!(world.region_at(at(0, 0)), Some(id));
        for id in world.regions() {
            assert_eq!(world.data(id).unwrap().sections, world.sections(id).collect(), "{id} with {given}");
        }
        assert_eq!(world.data(id).unwrap().surplus, given.saturating_sub(2));
    }
}

/// What data was told, in that order.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Told(Vec<(&'static str, usize)>);

impl RegionData for Told {
    fn new(_: RegionId) -> Self {
        Self(vec![("new", 0)])
    }

    fn merge(&mut self, _: RegionId, data: Self) {
        self.0.push(("merge", data.0.len()));
    }

    fn split(&mut self, parts: &[RegionPart]) -> Vec<Self> {
        self.0.push(("split", parts.len()));
        parts.iter().map(|_| Self(Vec::new())).collect()
    }

    fn grow(&mut self, sections: &[SectionPos]) {
        match self.0.last_mut() {
            Some(("grow", count)) => *count += sections.len(),
            _ => self.0.push(("grow", sections.len())),
        }
    }

    fn shrink(&mut self, sections: &[SectionPos]) {
        match self.0.last_mut() {
            Some(("shrink", count)) => *count += sections.len(),
            _ => self.0.push(("shrink", sections.len())),
        }
    }
}

#[test]
fn data_is_told_what_becomes_of_its_region_in_order() {
    let mut world: Regionizer<Told> = Regionizer::new(RegionizerConfig::default()).unwrap();
    let id = world.add_column(at(0, 0)).unwrap();
    assert_eq!(world.data(id), Some(&Told(vec![("new", 0), ("grow", 25)])));
    for x in 1..=10 {
        world.add_column(at(x, 0)).unwrap();
    }
    for x in 1..10 {
        world.remove_column(at(x, 0)).unwrap();
    }
    let data = world.try_begin_tick(id).unwrap();
    assert_eq!(data.0, [("new", 0), ("grow", 75)]);
    // Beside it a transient region: the row that the ticking one may not gain.
    world.add_column(at(1, 1)).unwrap();
    let waiting = world.region_at(at(1, 3)).unwrap();
    assert_eq!(world.data(waiting), Some(&Told(vec![("new", 0), ("grow", 5)])));
    world.end_tick(id, data).unwrap();
    // Dead are four rows of five between the columns, and one corner.
    let all = [("new", 0), ("grow", 75), ("merge", 2), ("shrink", 21), ("split", 1)];
    assert_eq!(world.data(id), Some(&Told(all.to_vec())));
    // The part that split off is told by `split` alone.
    let part = world.region_at(at(10, 0)).unwrap();
    assert_eq!(world.data(part), Some(&Told(Vec::new())));
    assert_eq!(world.section_count(id) + world.section_count(part), 75 + 5 - 21);
}

#[test]
fn everything_works_at_the_edges_of_the_grid() {
    for section_shift in 0..=RegionizerConfig::MAX_SECTION_SHIFT {
        for creation in [1, 2, RegionizerConfig::MAX_CREATION_RADIUS] {
            let config = RegionizerConfig {
                section_shift,
                empty_section_creation_radius: creation,
                section_merge_radius: creation,
                ..RegionizerConfig::default()
            };
            let mut world: World = Regionizer::new(config).unwrap();
            let corners: Vec<_> = [i64::MIN, i64::MAX]
                .into_iter()
                .flat_map(|z| [i64::MIN, i64::MAX].map(|x| ColumnPos::new(x, z)))
                .collect();
            let ids: Vec<_> = corners.iter().map(|&corner| world.add_column(corner).unwrap()).collect();
            assert_eq!(world.regions(), ids);
            world.check_invariants().unwrap();
            for (&corner, &id) in corners.iter().zip(&ids) {
                // No section lies beyond the edge: of the square a quarter is left, with the middle lines.
                assert_eq!(world.section_count(id), (creation as usize + 1).pow(2));
                assert_eq!(world.columns(id).collect::<Vec<_>>(), [corner]);
                assert!(world.contains_column(corner) && world.region_at(corner) == Some(id));
                let data = begin(&mut world, id);
                let inward = ColumnPos::new(corner.x ^ 0xff, corner.z);
                world.add_column(inward).unwrap();
                world.remove_column(corner).unwrap();
                world.check_invariants().unwrap();
                end(&mut world, id, data);
                world.remove_column(inward).unwrap();
                for id in world.regions() {
                    if world.column_count(id) == 0 {
                        assert_eq!(tick(&mut world, id), TickEnd::Dead);
                    }
                }
                assert_eq!(world.region_at(corner), None);
            }
            assert_eq!(world.region_count(), 0);
        }
    }
}

/// From each corner of the grid inwards, in columns.
fn corners() -> [impl Fn(i64, i64) -> ColumnPos; 4] {
    let axis = |edge: i64, inward: i64| if edge < 0 { edge + inward } else { edge - inward };
    [(i64::MIN, i64::MIN), (i64::MAX, i64::MIN), (i64::MIN, i64::MAX), (i64::MAX, i64::MAX)]
        .map(|(x, z)| move |inward_x: i64, inward_z: i64| ColumnPos::new(axis(x, inward_x), axis(z, inward_z)))
}

#[test]
fn regions_merge_and_split_in_the_corners_of_the_grid_and_nothing_wraps() {
    for (section_shift, creation) in
        [0, 2, 4, 6].into_iter().flat_map(|shift| [1, 2, 3, 8].map(|radius| (shift, radius)))
    {
        let config = RegionizerConfig {
            section_shift,
            empty_section_creation_radius: creation,
            section_merge_radius: 1,
            recalculation_section_count: 1,
            max_dead_section_percent: 0.0,
        };
        let mut world: World = Regionizer::new(config).unwrap();
        let width = 1 << section_shift;
        // Along the edge, so far apart that two columns need a third in the middle to share a region.
        let step = i64::from(2 * creation + 1);
        for corner in corners() {
            let along = |n: i64| corner(n * step * width, 0);
            let section = |n: i64| along(n).section(section_shift);
            let near = world.add_column(along(0)).unwrap();
            let far = world.add_column(along(2)).unwrap();
            assert_ne!(near, far, "shift {section_shift}, radius {creation}");
            world.check_invariants().unwrap();

            // The middle one merges all, at once or when the tick ends.
            let data = begin(&mut world, near);
            assert_eq!(world.add_column(along(1)), Ok(far));
            assert_eq!(world.pending_merges(), [(far, near)]);
            assert_eq!(end(&mut world, near, data), STILL_READY);
            assert_eq!((world.state(far), world.region_at(along(2))), (Some(RegionState::Dead), Some(near)));
            let (low, high) = world.bounds(near).unwrap();
            let ends = [section(0).x, section(2).x + i64::from(creation) * (section(2).x - section(0).x).signum()];
            assert_eq!([low.x, high.x], [ends[0].min(ends[1]), ends[0].max(ends[1])]);
            assert_eq!(high.z.abs_diff(low.z), u64::from(creation));
            assert!(low.z == section(0).z || high.z == section(0).z);

            // Without it they part again; of equals the one with the lowest section keeps the id.
            world.remove_column(along(1)).unwrap();
            world.check_invariants().unwrap();
            let TickEnd::Ready { split_off } = tick(&mut world, near) else { panic!("it has columns") };
            let [other] = split_off[..] else { panic!("{split_off:?} at shift {section_shift}, radius {creation}") };
            let owners = [world.region_at(along(0)), world.region_at(along(2))];
            assert!(owners == [Some(near), Some(other)] || owners == [Some(other), Some(near)]);
            for id in [near, other] {
                let columns: Vec<_> = world.columns(id).collect();
                assert_eq!(columns.len(), 1);
                world.remove_column(columns[0]).unwrap();
                assert_eq!(tick(&mut world, id), TickEnd::Dead);
            }
            assert_eq!((world.region_count(), world.bounds(near)), (0, None));
        }

        // All corners at once: across an edge nobody is a neighbour.
        let ids = corners().map(|corner| world.add_column(corner(0, 0)).unwrap());
        assert_eq!(world.regions(), ids);
        let ticking = ids.map(|id| begin(&mut world, id));
        for (corner, id) in corners().into_iter().zip(ids) {
            assert_eq!(world.add_column(corner(width, width)), Ok(id));
        }
        for (id, data) in ids.into_iter().zip(ticking) {
            assert_eq!(world.awaited_by(id).len(), 1);
            assert_eq!(end(&mut world, id, data), STILL_READY);
            assert_eq!(world.data(id).unwrap().0.len(), 2);
        }
        assert_eq!(world.regions(), ids);
    }
}
