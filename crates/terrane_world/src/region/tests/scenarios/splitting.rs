//! Splitting regions with distant parts, and their data.

use super::*;

/// A region of two clumps whose living sections are `distance` apart, and a tick that removes the dead sections between them.
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
    // Makes the tick merge regions, so that it removes the dead sections.
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
        let (RegionState::Ready, split_off) = outcome else { panic!("{outcome:?}") };
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
fn removing_the_bridge_does_not_split_below_the_thresholds() {
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

/// Data that tracks its sections, and returns this many values from a split.
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
        assert_eq!(outcome, [RegionId::new(1), RegionId::new(2)]);
        assert_eq!(world.region_at(at(0, 0)), Some(id));
        for id in world.regions() {
            assert_eq!(world.data(id).unwrap().sections, world.sections(id).collect(), "{id} with {given}");
        }
        assert_eq!(world.data(id).unwrap().surplus, given.saturating_sub(2));
    }
}

/// The calls that the data received, in order.
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
fn data_sees_merges_and_splits_in_order() {
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
    // A transient region beside it, with the row that the ticking one must not gain.
    world.add_column(at(1, 1)).unwrap();
    let waiting = world.region_at(at(1, 3)).unwrap();
    assert_eq!(world.data(waiting), Some(&Told(vec![("new", 0), ("grow", 5)])));
    world.end_tick(id, data).unwrap();
    // The dead sections are four rows of five between the columns, and one corner.
    let all = [("new", 0), ("grow", 75), ("merge", 2), ("shrink", 21), ("split", 1)];
    assert_eq!(world.data(id), Some(&Told(all.to_vec())));
    // The part that split off only gets the call of `split`.
    let part = world.region_at(at(10, 0)).unwrap();
    assert_eq!(world.data(part), Some(&Told(Vec::new())));
    assert_eq!(world.section_count(id) + world.section_count(part), 75 + 5 - 21);
}
