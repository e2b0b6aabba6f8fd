//! Entities that move around while their box is captured column by column.

use super::*;
use bevy_terrane::snapshot::SnapshotParts;
use uuid::Uuid;

/// A row of eleven columns around the middle one.
const ROW: BlockBox = BlockBox { min: at(-80, 0, 0), max: at(95, 31, 15) };

/// A world in lockstep that captures one column at a time; optionally, walkers turn round at both ends of the row.
fn walked_world(turns: bool) -> (App, DimensionId, DimensionId) {
    let config = SnapshotConfig { columns: 1, ..SnapshotConfig::default() };
    let mut app = game(TerranePlugin { snapshots: config, ..lockstep() });
    listen::<JobEnded>(&mut app);
    app.add_region_plugins(move |region| {
        if turns {
            region.add_systems(Update, turn_round::<-80, 95>);
        }
    });
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 8.0, 8.0, 6);
    start(&mut app);
    update_until(&mut app, "the ground is there", |world| {
        [-80, 95].iter().all(|x| block_at(world, dimension, at(*x, 0, 0)).is_some())
    });
    let id = dimension;
    (app, dimension, id)
}

fn walk_from(app: &mut App, dimension: DimensionId, id: u128, x: i64, blocks_a_tick: f32) {
    let walker = walker(&format!("walker {id}"), blocks_a_tick);
    spawn_in_region(app, dimension, at(x, 10, (id % 16) as i64), (walker, StableId(Uuid::from_u128(id))));
}

#[test]
fn an_entity_that_walks_through_a_capture_is_captured_once() {
    let (mut app, dimension, id) = walked_world(true);
    // Some walkers cross from one column into the next between the captures of the two, at any pace of the job.
    let starts: Vec<i64> = (0..16).map(|step| 94 - step * 3).collect();
    for (number, x) in (1..).zip(&starts) {
        walk_from(&mut app, dimension, number, *x, -9.0);
    }
    update(&mut app, 2);
    let snapshot = capture(&mut app, CaptureSnapshot::new(id, ROW));
    assert!(caught(&snapshot).into_iter().eq(1..=starts.len() as u128), "{:?}", caught(&snapshot));
    for entity in snapshot.entities() {
        assert!(ROW.contains(entity.block) && snapshot.entity_column(entity.id) == Some(entity.column()));
    }
}

#[test]
fn however_many_walk_however_fast_each_is_caught_once() {
    let (mut app, dimension, id) = walked_world(true);
    let count = 40;
    for number in 1..=count {
        let (x, speed) = ((number * 37 % 176) as i64 - 80, (number % 9) as f32 * 4.0 - 16.0);
        walk_from(&mut app, dimension, number, x, speed);
    }
    for round in 0..rounds(12) {
        update(&mut app, round as usize % 5);
        let snapshot = capture(&mut app, CaptureSnapshot::new(id, ROW));
        assert!(caught(&snapshot).into_iter().eq(1..=count), "{round}: {:?}", caught(&snapshot));
    }
    // Only half of the row.
    let half = BlockBox { max: at(7, 31, 15), ..ROW };
    let snapshot = capture(&mut app, CaptureSnapshot::new(id, half));
    assert!(snapshot.entities().all(|entity| half.contains(entity.block)));
    let without = capture(
        &mut app,
        CaptureSnapshot {
            parts: SnapshotParts { entities: false, ..SnapshotParts::ALL },
            ..CaptureSnapshot::new(id, ROW)
        },
    );
    assert_eq!(without.entities().count(), 0);
}

#[test]
fn a_restore_removes_entities_that_walk_through_it_and_restores_captured_ones() {
    let (mut app, dimension, id) = walked_world(true);
    for number in 1..=10 {
        walk_from(&mut app, dimension, number, number as i64 * 17 - 80, number as f32 * 3.0 - 16.0);
    }
    update(&mut app, 2);
    let snapshot = capture(&mut app, CaptureSnapshot::new(id, ROW));
    for number in 11..=40 {
        walk_from(&mut app, dimension, number, (number * 37 % 176) as i64 - 80, (number % 9) as f32 * 4.0 - 16.0);
    }
    for round in 0..rounds(6) {
        update(&mut app, 7 + round as usize % 3);
        let outcome = restore(&mut app, RestoreSnapshot::new(id, snapshot.clone()));
        assert_eq!(outcome.alive_elsewhere, 0, "{round}");
        update(&mut app, 2);
        let names: BTreeSet<String> = walkers(app.world_mut()).into_iter().map(|(name, _)| name).collect();
        assert!(names.into_iter().eq((1..=10).map(|number| format!("walker {number}")).collect::<BTreeSet<_>>()));
    }
}

#[test]
fn an_entity_that_walks_onto_captured_columns_is_captured_once() {
    let (mut app, dimension, id) = walked_world(false);
    // The west of the box is not loaded, and is captured first.
    let area = BlockBox { min: at(-16 * 16, 0, 0), ..ROW };
    let count = 60;
    for number in 1..=count {
        walk_from(&mut app, dimension, number, number as i64 * 2 - 80, 0.0);
    }
    update(&mut app, 3);
    let job = jobs(&app).capture(CaptureSnapshot::new(id, area));
    update_until(&mut app, "the west is captured", |world| {
        world.query::<&JobProgress>().single(world).is_ok_and(|progress| progress.done >= 10)
    });
    in_region(&mut app, dimension, at(0, 0, 0), |region| {
        region.query::<&mut Walker>().iter_mut(region).for_each(|mut walker| walker.blocks_a_tick = -13.0);
    });
    let ended = ended(&mut app, job);
    let snapshot = ended.outcome.snapshot.clone().unwrap();
    assert!(caught(&snapshot).into_iter().eq(1..=count), "{:?}", caught(&snapshot));
    let beyond = snapshot.entities().filter(|entity| entity.block.x < ROW.min.x).count();
    assert!(beyond > 0, "nobody has left the loaded ground");
}
