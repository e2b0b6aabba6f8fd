//! The game's systems are told of each new column once.

use super::*;
use crate::simulation::work::new_columns::NewColumn;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The columns that the systems of a region were told of, by their x.
#[derive(Resource, Default)]
struct Told(Vec<i64>);

/// A system panics if this is set.
#[derive(Resource, Default)]
struct Armed(bool);

fn listen(mut new: MessageReader<NewColumn>, mut told: ResMut<Told>, armed: Res<Armed>) {
    told.0.extend(new.read().map(|new| new.column.x));
    assert!(!armed.0, "armed");
}

fn regions() -> Regions {
    Regions::with_plugins(
        |_| {},
        |region| {
            region
                .init_resource::<Told>()
                .init_resource::<Armed>()
                .add_systems(crate::simulation::schedules::RegionTick, listen);
        },
    )
}

fn new(x: i64) -> Inbox {
    Inbox { columns: vec![LoadedColumn { is_new: true, ..loaded(x) }], ..Inbox::default() }
}

fn told(regions: &mut Regions, region: u64) -> Vec<i64> {
    std::mem::take(&mut regions.world(region).resource_mut::<Told>().0)
}

fn columns(xs: &[i64]) -> BTreeSet<ColumnPos> {
    xs.iter().map(|x| column(*x)).collect()
}

#[test]
fn a_region_is_told_in_a_tick_and_says_so_with_its_next_unsaved_data() {
    let mut regions = regions();
    regions.open(1);
    // Without a tick no system hears of it, and the column stays new.
    assert_eq!(regions.run(1, new(12), Task::Save).told, columns(&[]));
    assert_eq!(regions.save(1).told, columns(&[]));
    assert_eq!(told(&mut regions, 1), []);
    assert_eq!(regions.tick_with(1, new(13)).told, columns(&[]), "nothing was handed out");
    assert_eq!(told(&mut regions, 1), [12, 13]);
    regions.tick(1);
    assert_eq!(regions.save(1).told, columns(&[12, 13]));
    assert_eq!(regions.save(1).told, columns(&[]));
    let save = Task::Tick { clock: Duration::from_secs(9), delta: Duration::from_millis(50), save: true };
    assert_eq!(regions.run(1, new(14), save).told, columns(&[14]), "in the tick that hands everything out");
    regions.tick(1);
    assert_eq!(told(&mut regions, 1), [14]);
}

#[test]
fn a_column_that_leaves_before_a_tick_is_as_new_as_before() {
    let mut regions = regions();
    regions.open(1);
    regions.run(1, new(12), Task::Save);
    let inbox = Inbox { evict: vec![column(12)], ..Inbox::default() };
    let outbox = regions.run(1, inbox, Task::Save);
    assert_eq!((outbox.left.len(), outbox.told), (1, columns(&[])));
    regions.tick(1);
    assert_eq!(told(&mut regions, 1), []);
}

#[test]
fn a_column_that_leaves_after_the_tick_was_told() {
    let mut regions = regions();
    regions.open(1);
    regions.tick_with(1, new(12));
    let outbox = regions.tick_with(1, Inbox { evict: vec![column(12)], ..Inbox::default() });
    assert_eq!((outbox.left.len(), outbox.told), (1, columns(&[12])));
}

#[test]
fn new_columns_stay_new_through_merges_and_splits() {
    let mut regions = regions();
    (1..=3).for_each(|region| _ = regions.open(region));
    regions.tick_with(1, new(12));
    assert_eq!(told(&mut regions, 1), [12]);
    regions.merge(1, 3);
    assert_eq!(told(&mut regions, 3), []);
    // What the absorbed region was told is handed out by the other one.
    regions.run(2, new(22), Task::Save);
    regions.merge(3, 2);
    assert_eq!(told(&mut regions, 2), [22]);
    assert_eq!(regions.save(2).told, columns(&[12, 22]));

    regions.run(2, new(16), Task::Save);
    regions.split(2, 3, &[16]);
    assert_eq!((told(&mut regions, 2), told(&mut regions, 3)), (vec![], vec![16]));
    assert_eq!(regions.save(3).told, columns(&[16]));
}

#[test]
fn a_panic_undoes_what_was_told() {
    let mut regions = regions();
    regions.open(1);
    regions.tick_with(1, new(12));
    regions.world(1).resource_mut::<Armed>().0 = true;
    let save = Task::Tick { clock: Duration::from_secs(9), delta: Duration::from_millis(50), save: true };
    let mut assignment = regions.assignment(1, new(13), save);
    let run = catch_unwind(AssertUnwindSafe(|| assignment.run(&regions.template)));
    assert!(run.is_err());
    assert!(assignment.salvage().outbox.is_none());
}
