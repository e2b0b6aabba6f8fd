//! One scenario per test, with the default configuration: sections of 4 x 4 columns, creation radius 2, merge radius 1.

mod dead_sections;
mod edges;
mod merging;
mod splitting;

use crate::region::*;
use crate::space::ColumnPos;
use std::collections::BTreeSet;

/// The names of the regions whose data was merged into this one.
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

/// The state of a region after its tick, and the regions that split off.
type TickEnd = (RegionState, Vec<RegionId>);

fn end(world: &mut World, id: RegionId, data: Names) -> TickEnd {
    let split_off = world.end_tick(id, data).expect("the region ticks");
    world.check_invariants().unwrap();
    (world.state(id).expect("it was given out"), split_off)
}

fn tick(world: &mut World, id: RegionId) -> TickEnd {
    let data = begin(world, id);
    end(world, id, data)
}

const STILL_READY: TickEnd = (RegionState::Ready, Vec::new());
const WAITS: TickEnd = (RegionState::Transient, Vec::new());
const DEAD: TickEnd = (RegionState::Dead, Vec::new());

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

/// The complete observable state of a world, including regions that have ended.
fn everything(world: &World) -> String {
    let of_region = |index| {
        let id = RegionId::new(index);
        let sections: Vec<_> = world.sections(id).collect();
        let dead: Vec<_> = world.dead_sections(id).collect();
        let columns: Vec<_> = world.columns(id).collect();
        let counts = (world.section_count(id), world.dead_section_count(id), world.column_count(id));
        let pending = (world.waits_for(id).collect::<Vec<_>>(), world.awaited_by(id));
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
    // A ready region with dead sections, a ticking one, a transient one that waits for it, and one that has ended.
    let mut world = world();
    let ready = add(&mut world, 0, 0);
    add(&mut world, 3, 0);
    remove(&mut world, 3, 0);
    let gone = add(&mut world, 30, 0);
    remove(&mut world, 30, 0);
    assert_eq!(tick(&mut world, gone), DEAD);
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
        // In the same section, in the rim, in a section that is or may be dead, and on empty ground.
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
    // No id is lost either.
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
