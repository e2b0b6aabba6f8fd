//! Captures and restores of a running world: restored contents, untouched contents, and the share of a tick.

mod crossing;
mod life;
mod parts;
mod undo;

use crate::disk::Disk;
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::snapshot::{BlockChoice, BlockFilter, RestoreSequence, Snapshot};
use bevy_terrane::view::{
    CaptureSnapshot, EntityRestore, Job, JobEnded, JobError, JobOrder, JobOutcome, JobProgress, JobState, Jobs,
    RegionOrder, RestoreSnapshot, SnapshotConfig, StoreSnapshot,
};
use bevy_terrane::view::{ColumnResult, JobId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

pub const fn at(x: i64, y: i64, z: i64) -> BlockPos {
    BlockPos::new(x, y, z)
}

/// A world in lockstep with one loaded square of columns around the middle.
pub fn world(plugin: TerranePlugin) -> (App, DimensionId, DimensionId) {
    world_with(plugin, |_| {})
}

/// The same, with the game's own registrations.
pub fn world_with(plugin: TerranePlugin, register: impl FnOnce(&mut App)) -> (App, DimensionId, DimensionId) {
    let mut app = game(TerranePlugin { tick_mode: TickMode::Lockstep, ..plugin });
    register(&mut app);
    listen::<JobEnded>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 8.0, 8.0, 3);
    start(&mut app);
    update_until(&mut app, "the ground is there", |world| {
        [at(-20, 0, -20), at(36, 0, 36)].iter().all(|block| block_at(world, dimension, *block).is_some())
    });
    let id = dimension;
    (app, dimension, id)
}

pub fn jobs(app: &App) -> Jobs {
    app.world().resource::<Jobs>().clone()
}

/// The result of the job, once it has ended.
pub fn ended(app: &mut App, job: JobId) -> JobEnded {
    update_until(app, "the job has ended", |world| {
        world.resource::<Heard<JobEnded>>().0.iter().any(|ended| ended.job.id == job)
    });
    heard::<JobEnded>(app).iter().find(|ended| ended.job.id == job).cloned().unwrap()
}

pub fn capture(app: &mut App, order: CaptureSnapshot) -> Arc<Snapshot> {
    let job = jobs(app).capture(order);
    let ended = ended(app, job);
    assert_eq!(ended.progress.state, JobState::Finished, "{:?}", ended.outcome);
    ended.outcome.snapshot.clone().unwrap()
}

pub fn restore(app: &mut App, order: RestoreSnapshot) -> Arc<JobOutcome> {
    let job = jobs(app).restore(order);
    let ended = ended(app, job);
    assert_eq!(ended.progress.state, JobState::Finished, "{:?}", ended.outcome);
    ended.outcome.clone()
}

pub fn set(app: &mut App, dimension: DimensionId, blocks: impl IntoIterator<Item = (BlockPos, BlockId)>) {
    for (position, block) in blocks {
        app.world_mut().write_message(SetBlock { dimension, position, block });
    }
    update(app, 4);
}

/// Keeps walkers between these x.
fn turn_round<const LOW: i64, const HIGH: i64>(mut walkers: Query<(&mut Walker, &mut Position)>) {
    for (mut walker, mut position) in &mut walkers {
        let inside = position.block.x.clamp(LOW, HIGH);
        if inside != position.block.x {
            position.block.x = inside;
            walker.blocks_a_tick = -walker.blocks_a_tick;
        }
    }
}

/// The numbers of the captured entities, ascending.
fn caught(snapshot: &Snapshot) -> Vec<u128> {
    let mut ids: Vec<_> = snapshot.entities().map(|entity| entity.id.as_u128()).collect();
    ids.sort_unstable();
    ids
}

/// All published blocks of a box and one block around it.
pub fn blocks(app: &mut App, dimension: DimensionId, area: &BlockBox) -> BTreeMap<BlockPos, BlockId> {
    let BlockBox { min, max } = *area;
    let places = (min.x - 1..=max.x + 1)
        .flat_map(|x| (min.y - 1..=max.y + 1).flat_map(move |y| (min.z - 1..=max.z + 1).map(move |z| at(x, y, z))));
    places.filter_map(|place| Some((place, block_at(app.world_mut(), dimension, place)?))).collect()
}

/// Promise, snapshots: A restore puts a snapshot back where it was captured, and changes nothing around it.
#[test]
fn a_restore_rebuilds_the_box_and_changes_nothing_around_it() {
    let (mut app, dimension, id) = world(lockstep());
    let [stone, grass] = ["terrane:stone", "terrane:grass"].map(|name| id_of(app.world(), name));
    // Not aligned to chunks, over nine columns and three heights.
    let area = BlockBox::new(at(-5, -3, -7), at(20, 37, 21));
    set(&mut app, dimension, [(at(0, 30, 0), stone), (at(20, 37, 21), stone), (at(21, 30, 0), stone)]);
    spawn_in_region(&mut app, dimension, at(3, 10, 3), (walker("guard", 0.0), StableId::default()));
    update(&mut app, 5);
    let snapshot = capture(&mut app, CaptureSnapshot::new(id, area));
    assert!(snapshot.is_complete() && snapshot.columns().len() == 9);
    let before = blocks(&mut app, dimension, &area);

    // Blocks are removed within the box and around it; the guard dies, and another one appears.
    let ruins = (-8..24).flat_map(|x| (-4..40).step_by(7).map(move |y| (at(x, y, 5), BlockId::AIR)));
    set(&mut app, dimension, ruins);
    set(&mut app, dimension, [(at(22, 3, 3), grass), (at(4, 4, 4), grass)]);
    app.world_mut().commands().run_in_region(dimension, at(3, 10, 3), |region: &mut World| {
        let guards: Vec<_> = region.query_filtered::<Entity, With<Walker>>().iter(region).collect();
        guards.into_iter().for_each(|guard| assert!(region.despawn(guard)));
    });
    spawn_in_region(&mut app, dimension, at(5, 10, 5), walker("raider", 0.0));
    spawn_in_region(&mut app, dimension, at(30, 10, 5), walker("bystander", 0.0));
    update(&mut app, 5);
    let torn = blocks(&mut app, dimension, &area);
    assert_ne!(torn, before);

    let outcome = restore(&mut app, RestoreSnapshot::new(id, snapshot.clone()));
    update(&mut app, 5);
    let after = blocks(&mut app, dimension, &area);
    for (place, block) in &after {
        let expected = if area.contains(*place) { before[place] } else { torn[place] };
        assert_eq!(*block, expected, "{place}");
    }
    let names: Vec<_> = walkers(app.world_mut()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["bystander", "guard"]);
    assert!(outcome.columns.iter().all(|column| column.result == ColumnResult::Done));
    let changed: usize = outcome.columns.iter().map(|column| column.changed.len()).sum();
    assert!((1..9 * 4).contains(&changed), "{changed}");
    // Nothing differs any more.
    let again = restore(&mut app, RestoreSnapshot::new(id, snapshot));
    assert!(again.columns.iter().all(|column| column.changed.is_empty()));
    assert_eq!(app.world_mut().query::<&Job>().iter(app.world()).count(), 0);
}

/// Promise, snapshots: A restore can be limited to a part of the box and to some blocks, and its order can be chosen.
#[test]
fn part_filter_and_sequence_select_the_restored_blocks() {
    let (mut app, dimension, id) = world(lockstep());
    let [stone, grass] = ["terrane:stone", "terrane:grass"].map(|name| id_of(app.world(), name));
    let area = BlockBox::new(at(0, 20, 0), at(31, 50, 15));
    let pillars: Vec<BlockPos> = [at(2, 22, 2), at(2, 45, 2), at(20, 22, 2)].into();
    set(&mut app, dimension, pillars.iter().map(|place| (*place, stone)));
    let snapshot = capture(&mut app, CaptureSnapshot::new(id, area));
    let now = |app: &mut App| {
        pillars.iter().map(|place| block_at(app.world_mut(), dimension, *place).unwrap()).collect::<Vec<_>>()
    };
    let clear =
        |app: &mut App, to: BlockId| set(app, dimension, pillars.iter().map(|place| (*place, to)).collect::<Vec<_>>());

    clear(&mut app, BlockId::AIR);
    let part = Some(BlockBox::new(at(0, 0, 0), at(15, 30, 15)));
    restore(&mut app, RestoreSnapshot { area: part, ..RestoreSnapshot::new(id, snapshot.clone()) });
    update(&mut app, 3);
    assert_eq!(now(&mut app), [stone, BlockId::AIR, BlockId::AIR]);
    // Only holes are filled.
    set(&mut app, dimension, [(pillars[0], grass)]);
    let filter = BlockFilter { current: BlockChoice::only([BlockId::AIR]), ..BlockFilter::default() };
    restore(&mut app, RestoreSnapshot { filter, ..RestoreSnapshot::new(id, snapshot.clone()) });
    update(&mut app, 3);
    assert_eq!(now(&mut app), [grass, stone, stone]);
    // From the bottom up: higher blocks never come before lower ones.
    clear(&mut app, BlockId::AIR);
    let job = jobs(&app)
        .restore(RestoreSnapshot { sequence: Some(RestoreSequence::BottomUp), ..RestoreSnapshot::new(id, snapshot) });
    let mut seen = Vec::new();
    for _ in 0..30 {
        app.update();
        seen.push(now(&mut app));
    }
    assert!(seen.contains(&vec![stone, BlockId::AIR, stone]), "{seen:?}");
    assert_eq!(seen.last().unwrap(), &[stone; 3]);
    assert_eq!(ended(&mut app, job).progress.state, JobState::Finished);
}

/// Promise, snapshots: A snapshot job loads columns as needed, and releases them.
#[test]
fn a_job_loads_unloaded_columns_and_releases_them() {
    let disk = Disk::default();
    let (mut app, dimension, id) = world(disk.plugin());
    let stone = id_of(app.world(), "terrane:stone");
    let far = BlockBox::new(at(1_600, 0, 0), at(1_600 + 79, 15, 79));
    let left_out = capture(&mut app, CaptureSnapshot { leaves_ungenerated: true, ..CaptureSnapshot::new(id, far) });
    assert_eq!(left_out.columns().len(), 0);
    let snapshot = capture(&mut app, CaptureSnapshot::new(id, far));
    assert!(snapshot.is_complete());
    let block = at(1_610, 3, 40);
    assert_eq!(snapshot.block(block), snapshot.block(at(1_611, 3, 41)));
    let before = snapshot.block(block).unwrap();
    update(&mut app, 100);
    assert_eq!(block_at(app.world_mut(), dimension, block), None, "it is evicted");

    // A visitor builds there and leaves; then everything is restored with no viewer there.
    let visitor = viewer(&mut app, dimension, 1_610.0, 40.0, 2);
    update_until(&mut app, "the ground is there", |world| block_at(world, dimension, block).is_some());
    set(&mut app, dimension, [(block, stone), (at(1_610, 40, 40), stone)]);
    app.world_mut().despawn(visitor);
    update(&mut app, 100);
    assert_eq!(block_at(app.world_mut(), dimension, block), None);
    restore(&mut app, RestoreSnapshot::new(id, snapshot));
    drop(app);

    let (mut app, dimension, _) = world(disk.plugin());
    viewer(&mut app, dimension, 1_610.0, 40.0, 2);
    update_until(&mut app, "the ground is there", |world| block_at(world, dimension, block).is_some());
    assert_eq!(block_at(app.world_mut(), dimension, block), Some(before));
    assert_eq!(block_at(app.world_mut(), dimension, at(1_610, 40, 40)), Some(stone), "it is not in the box");
}

/// Promise, snapshots: A restore can exclude blocks or entities, and never duplicates an entity.
#[test]
fn a_restore_never_duplicates_an_entity() {
    let (mut app, dimension, id) = world(lockstep());
    let area = BlockBox::new(at(0, 0, 0), at(15, 31, 15));
    for (name, x) in [("runs", 3), ("stays", 5)] {
        spawn_in_region(&mut app, dimension, at(x, 10, 3), (walker(name, 0.0), StableId::default()));
    }
    update(&mut app, 5);
    let snapshot = capture(&mut app, CaptureSnapshot::new(id, area));
    assert_eq!(snapshot.entities().count(), 2);
    // One of them leaves the box and lives on elsewhere.
    app.world_mut().commands().run_in_region(dimension, at(3, 10, 3), |region: &mut World| {
        let mut walkers = region.query::<(&Walker, &mut Position)>();
        for (walker, mut position) in walkers.iter_mut(region) {
            if walker.name == "runs" {
                position.block = BlockPos::new(40, 10, 3);
            }
        }
    });
    update(&mut app, 10);
    let outcome = restore(&mut app, RestoreSnapshot::new(id, snapshot.clone()));
    update(&mut app, 5);
    let found: Vec<_> = walkers(app.world_mut()).into_iter().map(|(name, at)| (name, at.block.x)).collect();
    assert_eq!(found, [("runs".to_owned(), 40), ("stays".to_owned(), 5)]);
    assert_eq!(outcome.alive_elsewhere, 1);
    // With `Add`, no entity is added that is alive; with `Keep`, none is removed.
    for entities in [EntityRestore::Add, EntityRestore::Keep] {
        restore(&mut app, RestoreSnapshot { entities, ..RestoreSnapshot::new(id, snapshot.clone()) });
        update(&mut app, 5);
        assert_eq!(walkers(app.world_mut()).len(), 2);
    }
}

/// A cart that a horse takes along, even when the horse is despawned; each is stored separately.
#[derive(Component)]
#[relationship(relationship_target = Pulls)]
struct PulledBy(Entity);

#[derive(Component)]
#[relationship_target(relationship = PulledBy, linked_spawn)]
struct Pulls(Vec<Entity>);

#[test]
fn followers_that_are_not_children_are_captured_and_restored() {
    let mut app = game(lockstep());
    app.register_region_relationship::<PulledBy>();
    listen::<JobEnded>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 8.0, 8.0, 1);
    start(&mut app);
    update(&mut app, 20);
    let id = dimension;
    in_region(&mut app, dimension, at(3, 10, 3), move |region| {
        let horse = region.spawn((Position::new(id, at(3, 10, 3)), walker("horse", 0.0))).id();
        region.spawn((Position::new(id, at(5, 10, 3)), walker("cart", 0.0), PulledBy(horse)));
    });
    update(&mut app, 5);
    let area = BlockBox::new(at(0, 0, 0), at(15, 31, 15));
    let snapshot = capture(&mut app, CaptureSnapshot::new(id, area));
    assert_eq!(snapshot.entities().count(), 2);
    let before = walkers(app.world_mut());
    for _ in 0..2 {
        restore(&mut app, RestoreSnapshot::new(id, snapshot.clone()));
        update(&mut app, 5);
        assert_eq!(walkers(app.world_mut()), before);
    }
}

#[test]
fn no_more_ground_is_loaded_for_a_job_at_a_time_than_it_may() {
    let updates = |loading| {
        let config = SnapshotConfig { loading, ..SnapshotConfig::default() };
        let (mut app, _, id) = world(TerranePlugin { snapshots: config, ..lockstep() });
        let far = BlockBox::new(at(1_600, 0, 0), at(1_600 + 79, 15, 79));
        let job = jobs(&app).capture(CaptureSnapshot::new(id, far));
        let mut updates = 0;
        while !heard::<JobEnded>(&app).iter().any(|ended| ended.job.id == job) {
            app.update();
            updates += 1;
        }
        assert!(ended(&mut app, job).outcome.snapshot.clone().unwrap().is_complete());
        updates
    };
    // In lockstep, columns come four updates after they were ordered.
    let [one, all] = [1, 25].map(updates);
    assert!(one >= 25 * 4 && all < 25, "{one} and {all} updates");
}

/// Promise, snapshots: A restore stays within its share of each region's tick.
/// Promise, snapshots: Despawning the entity of a snapshot job cancels the job, and leaves each chunk as it was or restored.
#[test]
fn a_job_stays_within_its_share_of_a_tick_and_can_be_cancelled() {
    let config = SnapshotConfig { columns: 64, chunks: 2, ..SnapshotConfig::default() };
    let (mut app, dimension, id) = world(TerranePlugin { snapshots: config, ..lockstep() });
    let stone = id_of(app.world(), "terrane:stone");
    let area = BlockBox::new(at(-16, 48, -16), at(31, 79, 31));
    let snapshot = capture(&mut app, CaptureSnapshot::new(id, area));
    let all = |y: i64| (-1..2).flat_map(move |x| (-1..2).map(move |z| at(x * 16 + 3, y, z * 16 + 3)));
    let torn: Vec<BlockPos> = all(50).chain(all(70)).collect();
    set(&mut app, dimension, torn.iter().map(|place| (*place, stone)));
    let there = |app: &mut App| {
        torn.iter().filter(|place| block_at(app.world_mut(), dimension, **place) == Some(stone)).count()
    };
    assert_eq!(there(&mut app), 18);

    let job = jobs(&app).restore(RestoreSnapshot::new(id, snapshot.clone()));
    let mut left = vec![18];
    for _ in 0..8 {
        app.update();
        left.push(there(&mut app));
    }
    jobs(&app).control(job, JobOrder::Cancel);
    let ended = ended(&mut app, job);
    assert_eq!(ended.progress.state, JobState::Cancelled);
    update(&mut app, 4);
    // A column has two of these chunks, which is the budget of a tick.
    assert!(left.windows(2).all(|pair| pair[0] - pair[1] <= 2), "{left:?}");
    let restored = 18 - there(&mut app);
    assert!((2..18).contains(&restored), "{restored}");
    // Each chunk is old or new, and reported correctly.
    let said: BTreeSet<_> =
        ended.outcome.columns.iter().flat_map(|it| it.changed.iter().map(|y| it.column.chunk(*y))).collect();
    let is: BTreeSet<_> = torn
        .iter()
        .filter(|place| block_at(app.world_mut(), dimension, **place) != Some(stone))
        .map(|place| place.chunk())
        .collect();
    assert_eq!(said, is);
    assert!(ended.outcome.columns.iter().any(|column| column.result == ColumnResult::Unfinished));
    // The same job restores the rest when it runs again.
    restore(&mut app, RestoreSnapshot::new(id, snapshot));
    update(&mut app, 4);
    assert_eq!(there(&mut app), 0);
}

/// Promise, snapshots: `Jobs` exists in regions too, and can be cloned for any thread.
#[test]
fn regions_and_any_thread_queue_jobs_that_run_in_their_order_and_end_with_their_dimension() {
    let (mut app, dimension, id) = world(lockstep());
    let area = BlockBox::new(at(0, 0, 0), at(15, 15, 15));
    let queued = Arc::new(Mutex::new(Vec::new()));
    let from_region = queued.clone();
    app.world_mut().commands().run_in_region(dimension, at(0, 0, 0), move |region: &mut World| {
        let jobs = region.resource::<Jobs>();
        from_region.lock().unwrap().push(jobs.capture(CaptureSnapshot::new(id, area)));
    });
    update(&mut app, 5);
    let handle = jobs(&app);
    let from_thread = queued.clone();
    std::thread::spawn(move || from_thread.lock().unwrap().push(handle.capture(CaptureSnapshot::new(id, area))))
        .join()
        .unwrap();
    update(&mut app, 20);
    let order: Vec<_> = heard::<JobEnded>(&app).iter().map(|ended| ended.job.id).collect();
    assert_eq!(order, *queued.lock().unwrap());
    // Observers get the event too.
    let heard_of = Arc::new(Mutex::new(0));
    let counted = heard_of.clone();
    app.add_observer(move |_: On<JobEnded>| *counted.lock().unwrap() += 1);

    let nowhere = jobs(&app).capture(CaptureSnapshot::new(DimensionId(99), area));
    let lost = ended(&mut app, nowhere);
    assert_eq!(lost.progress.state, JobState::Failed);
    assert_eq!(lost.outcome.error, Some(JobError::NotOpen(DimensionId(99))));
    assert_eq!(*heard_of.lock().unwrap(), 1);
    let endless = jobs(&app).capture(CaptureSnapshot::new(id, BlockBox::ALL));
    assert_eq!(ended(&mut app, endless).progress.state, JobState::Failed);
}

#[test]
fn the_work_on_files_is_a_part_of_the_progress() {
    let (mut app, _, id) = world(lockstep());
    let folder = tempfile::tempdir().unwrap();
    let area = BlockBox::new(at(0, 32, 0), at(15, 47, 31));
    let store = Some(StoreSnapshot::at(folder.path().join("stored")));
    let captured = jobs(&app).capture(CaptureSnapshot { store, ..CaptureSnapshot::new(id, area) });
    let captured = ended(&mut app, captured);
    // Two columns, each captured and written.
    assert_eq!((captured.progress.done, captured.progress.total), (4, 4));
    let stored = captured.outcome.stored.clone().unwrap();
    let job = jobs(&app).restore(RestoreSnapshot::new(id, stored));
    let mut told = Vec::new();
    update_until(&mut app, "the job has ended", |world| {
        told.extend(world.query::<&JobProgress>().iter(world).map(|progress| (progress.done, progress.total)));
        world.resource::<Heard<JobEnded>>().0.iter().any(|ended| ended.job.id == job)
    });
    // Read, blocks and entities of two columns.
    assert!(told.iter().any(|(done, _)| *done < 6) && told.is_sorted(), "{told:?}");
    assert!(told.iter().all(|(_, total)| *total == 6), "{told:?}");
}

#[test]
fn a_job_that_is_cancelled_does_nothing_later_in_a_region_that_was_halted() {
    let (mut app, dimension, id) = world(lockstep());
    let stone = id_of(app.world(), "terrane:stone");
    let (place, area) = (at(3, 40, 3), BlockBox::new(at(0, 32, 0), at(15, 47, 15)));
    let snapshot = capture(&mut app, CaptureSnapshot::new(id, area));
    set(&mut app, dimension, [(place, stone)]);
    order(&mut app, dimension, place.column(), RegionOrder::Pause);
    update(&mut app, 5);
    let job = jobs(&app).restore(RestoreSnapshot::new(id, snapshot));
    update(&mut app, 10);
    assert!(!heard::<JobEnded>(&app).iter().any(|ended| ended.job.id == job));
    jobs(&app).control(job, JobOrder::Cancel);
    let ended = ended(&mut app, job);
    assert_eq!(ended.progress.state, JobState::Cancelled);
    assert!(ended.outcome.columns.iter().all(|column| column.result == ColumnResult::Unfinished));
    order(&mut app, dimension, place.column(), RegionOrder::Resume);
    update(&mut app, 20);
    assert_eq!(block_at(app.world_mut(), dimension, place), Some(stone), "nobody restores it any more");
}

/// Promise, snapshots: Despawning the entity of a snapshot job cancels the job, and leaves each chunk as it was or restored.
#[test]
fn a_box_of_any_height_works_and_despawning_a_job_cancels_it() {
    let (mut app, dimension, id) = world(lockstep());
    let stone = id_of(app.world(), "terrane:stone");
    let area = BlockBox::new(at(0, i64::MIN, 0), at(15, i64::MAX, 15));
    let snapshot = capture(&mut app, CaptureSnapshot::new(id, area));
    set(&mut app, dimension, [(at(3, 60, 3), stone)]);
    restore(&mut app, RestoreSnapshot::new(id, snapshot.clone()));
    update(&mut app, 3);
    assert_eq!(block_at(app.world_mut(), dimension, at(3, 60, 3)), Some(BlockId::AIR));
    let ordered =
        RestoreSnapshot { sequence: Some(RestoreSequence::TopDown), ..RestoreSnapshot::new(id, snapshot.clone()) };
    let refused = jobs(&app).restore(ordered);
    assert_eq!(ended(&mut app, refused).progress.state, JobState::Failed);

    order(&mut app, dimension, ColumnPos::new(0, 0), RegionOrder::Pause);
    update(&mut app, 5);
    let job = jobs(&app).restore(RestoreSnapshot::new(id, snapshot));
    update(&mut app, 5);
    let mut entities = app.world_mut().query_filtered::<Entity, With<Job>>();
    let entity = entities.single(app.world()).unwrap();
    app.world_mut().despawn(entity);
    assert_eq!(ended(&mut app, job).progress.state, JobState::Cancelled);
    assert_eq!(entities.iter(app.world()).count(), 0);
}
