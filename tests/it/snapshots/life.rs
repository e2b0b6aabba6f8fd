//! Jobs under realistic conditions: regions merge, split and halt, and players build, while columns are captured and restored.

use super::*;
use crate::faults::{bomb, restart, two_regions_with};
use bevy_terrane::simulation::{ColumnError, RegionColumns, SplitMix64};
use bevy_terrane::snapshot::{EditHistory, Recorded};
use bevy_terrane::view::{ColumnOutcome, ControlJob, RegionMerged, RegionSplit};
use std::sync::mpsc::channel;
use std::time::Duration;
use uuid::Uuid;

/// A row of forty columns.
const ROW: BlockBox = BlockBox { min: at(0, 16, 0), max: at(639, 47, 15) };

fn few(columns: usize, chunks: usize) -> SnapshotConfig {
    SnapshotConfig { columns, chunks, ..SnapshotConfig::default() }
}

/// An empty world with regions that split soon.
fn empty_world(plugin: TerranePlugin) -> (App, DimensionId, DimensionId) {
    let mut app = game(TerranePlugin { regionizer: parting_soon(), ..plugin });
    listen::<JobEnded>(&mut app);
    listen::<RegionMerged>(&mut app);
    listen::<RegionSplit>(&mut app);
    listen::<RegionHalted>(&mut app);
    app.add_region_plugins(|region| {
        region.add_systems(Update, turn_round::<0, 639>);
    });
    let dimension = flat(&mut app);
    start(&mut app);
    update_until(&mut app, "it is open", |world| is_open(world, dimension));
    let id = dimension;
    (app, dimension, id)
}

/// Two viewers for [`wander`].
fn wanderers(app: &mut App, dimension: DimensionId) -> [Entity; 2] {
    [0.0, 600.0].map(|x| viewer(app, dimension, x, 8.0, 1))
}

/// Two viewers approach each other and part again.
fn wander(world: &mut World, wanderers: [Entity; 2], step: i64) {
    let distance = (step % 100 - 50).abs() as f32 * 6.0;
    for (viewer, sign) in wanderers.into_iter().zip([-1.0, 1.0]) {
        world.get_mut::<Transform>(viewer).unwrap().translation.x = 320.0 + sign * distance;
    }
}

/// Sets blocks; their columns are loaded if necessary.
fn build(app: &mut App, dimension: DimensionId, blocks: impl IntoIterator<Item = (BlockPos, BlockId)>) {
    let (sender, built) = channel();
    let mut left = 0;
    for (place, block) in blocks {
        let sender = sender.clone();
        in_region(app, dimension, place, move |region| {
            region.resource_mut::<RegionColumns>().set_block(place, block).unwrap();
            sender.send(()).unwrap();
        });
        left += 1;
    }
    update_until(app, "it is built", |_| {
        left -= built.try_iter().count();
        left == 0
    });
}

/// Returns `true` if both have the same blocks and entities.
fn is_same(one: &Snapshot, other: &Snapshot) -> bool {
    one.is_complete() && other.is_complete() && EditHistory::new(usize::MAX).record(one, other) == Recorded::Unchanged
}

/// Two places in each column of the row.
fn torn() -> impl Iterator<Item = BlockPos> {
    ROW.columns().flat_map(|column| [20, 40].map(|y| column.chunk(0).min_block().offset(3, y, 5)))
}

#[test]
fn captures_and_restores_are_right_while_regions_merge_and_split() {
    let (mut app, dimension, id) = empty_world(TerranePlugin { snapshots: few(2, 2), ..lockstep() });
    let stone = id_of(app.world(), "terrane:stone");
    let wanderers = wanderers(&mut app, dimension);
    for number in 1..=20 {
        let guard = (walker(&format!("guard {number}"), 0.0), StableId(Uuid::from_u128(number)));
        spawn_in_region(&mut app, dimension, at(number as i64 * 31, 20, 9), guard);
    }
    update(&mut app, 40);
    let mut step = 0;
    let mut finish = |app: &mut App, job| {
        for _ in 0..3_000 {
            if heard::<JobEnded>(app).iter().any(|ended| ended.job.id == job) {
                break;
            }
            step += 1;
            wander(app.world_mut(), wanderers, step);
            app.update();
        }
        let ended = ended(app, job);
        assert_eq!(ended.progress.state, JobState::Finished);
        let is_done = |column: &ColumnOutcome| column.result == ColumnResult::Done;
        assert!(ended.outcome.columns.iter().all(is_done) && ended.outcome.columns.len() == 40);
        ended
    };
    let handle = jobs(&app);
    let first = handle.capture(CaptureSnapshot::new(id, ROW));
    let before = finish(&mut app, first).outcome.snapshot.clone().unwrap();
    assert_eq!(before.entities().count(), 20);
    for _ in 0..rounds(3) {
        build(&mut app, dimension, torn().map(|place| (place, stone)));
        let job = handle.restore(RestoreSnapshot::new(id, before.clone()));
        let ended = finish(&mut app, job);
        assert_eq!(ended.progress.chunks_changed, 80);
        let job = handle.capture(CaptureSnapshot::new(id, ROW));
        let after = finish(&mut app, job).outcome.snapshot.clone().unwrap();
        assert!(is_same(&before, &after));
    }
    let (merges, splits) = (heard::<RegionMerged>(&app).len(), heard::<RegionSplit>(&app).len());
    assert!(merges > 5 && splits > 2, "{merges} merges, {splits} splits");
}

#[test]
fn a_capture_and_a_restore_pause_and_resume() {
    let (mut app, dimension, id) = empty_world(TerranePlugin { snapshots: few(2, 100), ..lockstep() });
    let stone = id_of(app.world(), "terrane:stone");
    build(&mut app, dimension, [at(3, 20, 3), at(630, 20, 3)].map(|place| (place, stone)));
    let handle = jobs(&app);
    let run = |app: &mut App, job: JobId| {
        update_until(app, "a part is done", |world| {
            let mut jobs = world.query::<(&Job, &JobProgress)>();
            jobs.iter(world).any(|(of, progress)| of.id == job && progress.done >= 4)
        });
        let (entity, _) = app.world_mut().query::<(Entity, &Job)>().single(app.world()).unwrap();
        app.world_mut().write_message(ControlJob { entity, order: JobOrder::Pause });
        update(app, 20);
        let paused = app.world().get::<JobProgress>(entity).unwrap().clone();
        assert_eq!(paused.state, JobState::Paused);
        update(app, 40);
        assert_eq!(app.world().get::<JobProgress>(entity).unwrap().done, paused.done);
        app.world_mut().write_message(ControlJob { entity, order: JobOrder::Resume });
        let ended = ended(app, job);
        assert_eq!(ended.progress.state, JobState::Finished);
        ended.outcome
    };
    let captured = run(&mut app, handle.capture(CaptureSnapshot::new(id, ROW))).snapshot.clone().unwrap();
    assert_eq!(captured.columns().len(), 40);
    let job = handle.restore(RestoreSnapshot::new(id, captured));
    let restored = run(&mut app, job);
    assert!(restored.columns.iter().all(|column| column.result == ColumnResult::Done));
}

#[test]
fn an_entity_is_captured_once_while_regions_merge_split_load_and_unload() {
    for plugin in [
        lockstep(),
        TerranePlugin { clock: DimensionClock { ticks_per_second: 100.0, ..default() }, ..TerranePlugin::in_memory() },
    ] {
        let (mut app, dimension, id) = empty_world(TerranePlugin { snapshots: few(3, 100), ..plugin });
        let wanderers = wanderers(&mut app, dimension);
        let (sender, spawned) = channel();
        let count = 30;
        for number in 1..=count {
            let sender = sender.clone();
            let place = at(number * 21, 20, 9);
            in_region(&mut app, dimension, place, move |region| {
                let walker = walker(&format!("walker {number}"), (number % 13) as f32 * 2.0 - 12.0);
                region.spawn((Position::new(id, place), walker, StableId(Uuid::from_u128(number as u128))));
                sender.send(()).unwrap();
            });
        }
        let mut left = count;
        update_until(&mut app, "all are there", |_| {
            left -= spawned.try_iter().count() as i64;
            left == 0
        });
        let mut step = 0;
        for round in 0..rounds(4) {
            let job = jobs(&app).capture(CaptureSnapshot::new(id, ROW));
            update_until(&mut app, "the job has ended", |world| {
                step += 1;
                wander(world, wanderers, step);
                world.resource::<Heard<JobEnded>>().0.iter().any(|ended| ended.job.id == job)
            });
            let snapshot = ended(&mut app, job).outcome.snapshot.clone().unwrap();
            assert!(caught(&snapshot).into_iter().eq(1..=count as u128), "{round}: {:?}", caught(&snapshot));
        }
        let (merges, splits) = (heard::<RegionMerged>(&app).len(), heard::<RegionSplit>(&app).len());
        assert!(merges > 2, "{merges} merges, {splits} splits");
    }
}

/// Promise, snapshots: Players can build in a box while it is restored, and nothing outside of the box changes.
#[test]
fn while_players_build_in_the_box_each_chunk_is_old_new_or_built_and_nothing_outside_changes() {
    let (mut app, dimension, id) = world(TerranePlugin { snapshots: few(2, 1), ..lockstep() });
    let [stone, grass] = ["terrane:stone", "terrane:grass"].map(|name| id_of(app.world(), name));
    let area = BlockBox::new(at(-14, 50, -14), at(30, 77, 30));
    let everywhere = BlockBox::new(at(-16, 48, -16), at(31, 79, 31));
    let snapshot = capture(&mut app, CaptureSnapshot::new(id, area));
    let mut random = SplitMix64::new(7);
    let mut place = move || {
        at(i64::from(random.below(48)) - 16, i64::from(random.below(32)) + 48, i64::from(random.below(48)) - 16)
    };
    for _ in 0..rounds(3) {
        let old: BTreeMap<BlockPos, BlockId> = (0..400).map(|_| (place(), stone)).collect();
        set(&mut app, dimension, old.clone());
        let before = blocks(&mut app, dimension, &everywhere);
        let mut built: BTreeMap<BlockPos, BlockId> = BTreeMap::new();
        let job = jobs(&app).restore(RestoreSnapshot::new(id, snapshot.clone()));
        let mut ticks = 0;
        while !heard::<JobEnded>(&app).iter().any(|ended| ended.job.id == job) {
            for _ in 0..3 {
                let position = place();
                app.world_mut().write_message(SetBlock { dimension, position, block: grass });
                built.insert(position, grass);
            }
            app.update();
            ticks += 1;
            assert!(ticks < 500);
        }
        assert_eq!(ended(&mut app, job).progress.state, JobState::Finished);
        assert!(ticks > 9, "{ticks}");
        update(&mut app, 5);
        for (place, block) in blocks(&mut app, dimension, &everywhere) {
            let (was, wanted) = (before[&place], snapshot.block(place));
            let is_built = built.contains_key(&place);
            let is_right = match wanted {
                Some(wanted) => block == wanted || (is_built && block == grass),
                None => block == if is_built { grass } else { was },
            };
            assert!(is_right, "{place} is {block}, was {was}, and {wanted:?} is wanted");
        }
        // Once more, without building.
        restore(&mut app, RestoreSnapshot::new(id, snapshot.clone()));
        let after = capture(&mut app, CaptureSnapshot::new(id, area));
        assert!(is_same(&snapshot, &after));
    }
}

/// Promise, snapshots: The arena example brings the arena back as it was, bots included.
#[test]
fn independent_regions_restore_the_capture() {
    let plugin = TerranePlugin {
        clock: DimensionClock { ticks_per_second: 100.0, ..default() },
        snapshots: few(4, 2),
        ..TerranePlugin::in_memory()
    };
    let (mut app, dimension, id) = empty_world(plugin);
    let stone = id_of(app.world(), "terrane:stone");
    let wanderer = viewer(&mut app, dimension, 0.0, 8.0, 1);
    for number in 1..=10 {
        let guard = (walker(&format!("guard {number}"), 0.0), StableId(Uuid::from_u128(number)));
        spawn_in_region(&mut app, dimension, at(number as i64 * 60, 20, 9), guard);
    }
    let mut step = 0;
    let mut finish = |app: &mut App, job, builds: bool| {
        update_until(app, "the job has ended", |world| {
            step += 1;
            if let Some(mut place) = world.get_mut::<Transform>(wanderer) {
                place.translation.x = (step * 4 % 640) as f32;
            }
            if builds && step % 3 == 0 {
                let position = at(step * 37 % 640, 20, 11);
                world.write_message(SetBlock { dimension, position, block: stone });
            }
            world.resource::<Heard<JobEnded>>().0.iter().any(|ended| ended.job.id == job)
        });
        let ended = ended(app, job);
        assert_eq!(ended.progress.state, JobState::Finished);
        ended
    };
    let handle = jobs(&app);
    let job = handle.capture(CaptureSnapshot::new(id, ROW));
    let before = finish(&mut app, job, false).outcome.snapshot.clone().unwrap();
    assert_eq!(before.entities().count(), 10);
    build(&mut app, dimension, torn().map(|place| (place, stone)));
    let job = handle.restore(RestoreSnapshot::new(id, before.clone()));
    assert!(finish(&mut app, job, true).progress.chunks_changed >= 80);
    let job = handle.restore(RestoreSnapshot::new(id, before.clone()));
    finish(&mut app, job, false);
    let job = handle.capture(CaptureSnapshot::new(id, ROW));
    let after = finish(&mut app, job, false).outcome.snapshot.clone().unwrap();
    assert!(is_same(&before, &after));
}

#[test]
fn a_restore_continues_after_its_region_halts_and_restarts() {
    let plugin = TerranePlugin {
        snapshots: few(1, 1),
        clock: DimensionClock { ticks_per_second: 5.0, ..default() },
        ..crate::faults::plugin()
    };
    let (mut app, dimension, _, _) = two_regions_with(plugin, listen::<JobEnded>);
    let id = dimension;
    let stone = id_of(app.world(), "terrane:stone");
    let area = BlockBox::new(at(-16, 32, 0), at(31, 63, 15));
    let places: Vec<BlockPos> = [-10, 5, 20].into_iter().flat_map(|x| [40, 60].map(|y| at(x, y, 3))).collect();
    spawn_in_region(&mut app, dimension, at(5, 40, 5), (walker("guard", 0.0), StableId(Uuid::from_u128(1))));
    update_until(&mut app, "he is there", |world| walkers(world).len() == 1);
    let job = jobs(&app).capture(CaptureSnapshot::new(id, area));
    let snapshot = ended(&mut app, job).outcome.snapshot.clone().unwrap();
    assert_eq!(snapshot.entities().count(), 1);
    for place in &places {
        app.world_mut().write_message(SetBlock { dimension, position: *place, block: stone });
    }
    spawn_in_region(&mut app, dimension, at(-5, 40, 5), walker("raider", 0.0));
    update_until(&mut app, "it is torn", |world| {
        places.iter().all(|place| block_at(world, dimension, *place) == Some(stone)) && walkers(world).len() == 2
    });
    save(&mut app);
    let job = jobs(&app).restore(RestoreSnapshot::new(id, snapshot.clone()));
    // The first column has two chunks that differ, which is the budget of a tick.
    update_until(&mut app, "a column is restored", |world| block_at(world, dimension, places[0]) == Some(BlockId::AIR));
    assert_eq!(block_at(app.world_mut(), dimension, places[5]), Some(stone));
    bomb(&mut app, dimension);
    assert_eq!(heard::<RegionHalted>(&app).len(), 1);
    restart(&mut app, dimension);
    let ended = ended(&mut app, job);
    assert_eq!(ended.progress.state, JobState::Finished);
    assert!(ended.outcome.columns.iter().all(|column| column.result == ColumnResult::Done), "{:?}", ended.outcome);
    update_until(&mut app, "all is as it was", |world| {
        places.iter().all(|place| block_at(world, dimension, *place) == Some(BlockId::AIR))
            && walkers(world).iter().map(|(name, _)| name.as_str()).eq(["guard"])
    });
    let job = jobs(&app).capture(CaptureSnapshot::new(id, area));
    let after = super::ended(&mut app, job).outcome.snapshot.clone().unwrap();
    assert!(is_same(&snapshot, &after));
}

#[test]
fn a_region_that_halts_when_it_was_captured_does_not_hold_the_job_up() {
    for passes in 1..5 {
        let (mut app, dimension, id) = world(lockstep());
        spawn_in_region(&mut app, dimension, at(3, 20, 3), walker("guard", 0.0));
        update(&mut app, 10);
        let area = BlockBox::new(at(-16, 0, -16), at(31, 47, 31));
        let job = jobs(&app).capture(CaptureSnapshot::new(id, area));
        update(&mut app, passes);
        order(&mut app, dimension, ColumnPos::new(0, 0), RegionOrder::Halt);
        let ended = ended(&mut app, job);
        assert_eq!(ended.progress.state, JobState::Finished);
        assert!(ended.outcome.columns.iter().all(|column| column.result == ColumnResult::Done), "{passes}");
        assert_eq!(ended.outcome.snapshot.as_ref().unwrap().entities().count(), 1, "{passes}");
    }
}

#[test]
fn an_entity_of_a_column_being_fetched_counts_as_alive() {
    /// A place in the section of the first column that the viewer there does not hold.
    const BESIDE: BlockPos = at(16 * 3, 9, 0);
    let (mut app, dimension, id) = empty_world(lockstep());
    viewer(&mut app, dimension, 0.0, 0.0, 0);
    let area = BlockBox::new(at(0, 0, 0), at(15, 15, 15));
    let ann = StableId(Uuid::from_u128(1));
    spawn_in_region(&mut app, dimension, at(3, 9, 3), (walker("ann", 0.0), ann));
    update(&mut app, 20);
    let snapshot = capture(&mut app, CaptureSnapshot::new(id, area));
    assert_eq!(snapshot.entities().count(), 1);
    in_region(&mut app, dimension, at(3, 9, 3), |region| {
        let mut walkers = region.query_filtered::<&mut Position, With<Walker>>();
        walkers.single_mut(region).unwrap().block = BESIDE;
    });
    for passes in 0..14 {
        update_until(&mut app, "she is stored", |world| walkers(world).is_empty());
        update(&mut app, 200);
        assert_eq!(block_at(app.world_mut(), dimension, BESIDE), None, "{passes}");
        let job = jobs(&app).restore(RestoreSnapshot::new(id, snapshot.clone()));
        update(&mut app, passes);
        in_region(&mut app, dimension, HERE, |region| {
            region.resource_mut::<RegionColumns>().load(BESIDE).unwrap();
        });
        let ended = ended(&mut app, job);
        assert_eq!(ended.outcome.alive_elsewhere, 1, "{passes}");
        update(&mut app, 10);
        let (sender, found) = channel();
        in_region(&mut app, dimension, HERE, move |region| {
            let mut walkers = region.query_filtered::<&Position, With<Walker>>();
            sender.send(walkers.iter(region).map(|place| place.block).collect::<Vec<_>>()).unwrap();
        });
        update_until(&mut app, "the region answers", |_| match found.try_recv() {
            Ok(places) => {
                assert!(places.iter().all(|place| *place == BESIDE), "{passes}: {places:?}");
                true
            }
            Err(_) => false,
        });
    }
}

#[test]
fn of_a_sparse_dimension_the_heights_of_the_box_are_loaded_up_to_a_limit() {
    let mut app = game(lockstep());
    listen::<JobEnded>(&mut app);
    let heights = i64::MIN..i64::MAX;
    let dimension = spawn_dimension(&mut app, Dimension::new("shaft", Flat::new()).with_height(heights));
    start(&mut app);
    update_until(&mut app, "it is open", |world| is_open(world, dimension));
    let (id, stone) = (dimension, id_of(app.world(), "terrane:stone"));
    let area = BlockBox::new(at(-16, -100, 0), at(15, 100, 15));
    let snapshot = capture(&mut app, CaptureSnapshot::new(id, area));
    assert!(snapshot.is_complete(), "what nobody is near to is loaded for it");
    let places = [at(-3, -90, 3), at(3, 90, 3)];
    build(&mut app, dimension, places.map(|place| (place, stone)));
    let outcome = restore(&mut app, RestoreSnapshot::new(id, snapshot.clone()));
    let changed: Vec<_> = outcome.columns.iter().map(|column| column.changed.clone()).collect();
    assert_eq!(changed, [[-6], [5]]);
    assert!(is_same(&snapshot, &capture(&mut app, CaptureSnapshot::new(id, area))));

    let tall = |chunks: i64| BlockBox::new(at(0, 0, 0), at(15, chunks * 16 - 1, 15));
    let high = capture(&mut app, CaptureSnapshot::new(id, tall(1_024)));
    assert!(high.is_complete());
    let job = jobs(&app).capture(CaptureSnapshot::new(id, tall(1_025)));
    let ended = ended(&mut app, job);
    let outcome = &ended.outcome.columns[0];
    let too_high = ColumnError::TooManyHeights { column: outcome.column, limit: 1_024 };
    assert_eq!(outcome.result, ColumnResult::Failed(too_high));
}

#[test]
fn an_entity_that_goes_to_unloaded_ground_during_a_restore_is_not_restored_beside_itself() {
    let disk = Disk::default();
    let (mut app, dimension, id) = empty_world(TerranePlugin {
        saving: SaveSettings::every(Duration::from_secs(3_600)),
        tick_mode: TickMode::default(),
        ..disk.plugin()
    });
    let ann = Uuid::from_u128(7);
    let (inside, outside, far) = (at(8, 20, 8), at(40, 20, 8), at(400, 20, 8));
    viewer(&mut app, dimension, 8.0, 8.0, 3);
    let camera = viewer(&mut app, dimension, 400.0, 8.0, 0);
    update_until(&mut app, "all is loaded", |world| {
        [inside, outside, far].iter().all(|place| block_at(world, dimension, *place).is_some())
    });
    spawn_in_region(&mut app, dimension, inside, (walker("ann", 0.0), StableId(ann)));
    update_until(&mut app, "she is there", |world| walkers(world).len() == 1);
    let area = BlockBox { min: at(0, 16, 0), max: at(15, 31, 15) };
    let snapshot = capture(&mut app, CaptureSnapshot::new(id, area));
    assert_eq!(snapshot.entities().count(), 1);
    let go = |app: &mut App, to: BlockPos| {
        let go = move |mut ann: EntityWorldMut| ann.get_mut::<Position>().unwrap().block = to;
        app.world_mut().commands().run_on_region_entity(ann, 0, go, |_, reason| panic!("{reason}"));
        app.world_mut().flush();
        update_until(app, "she is there", |world| walkers(world).iter().any(|(_, at)| at.block == to));
    };
    go(&mut app, outside);
    save(&mut app);
    disk.answers().close();
    let job = jobs(&app).restore(RestoreSnapshot::new(id, snapshot));
    update_until(&mut app, "her place was asked for", |_| disk.answers().waiting() > 0);
    go(&mut app, far);
    app.world_mut().despawn(camera);
    update_until(&mut app, "her ground is unloaded", |world| block_at(world, dimension, far).is_none());
    save(&mut app);
    disk.answers().open();
    update_until(&mut app, "it ends", |world| {
        world.resource::<Heard<JobEnded>>().0.iter().any(|ended| ended.job.id == job)
    });
    assert_eq!(ended(&mut app, job).outcome.alive_elsewhere, 1);
    let [here, there] = [inside, far].map(|place| {
        ask_region(&mut app, dimension, place, |walkers: Query<(&Walker, &Position)>| {
            walkers.iter().map(|(_, position)| position.block).collect::<Vec<_>>()
        })
    });
    assert_eq!((here, there), (vec![], vec![far]));
}
