//! Jobs continue after a restart or a crash, wait with their dimension, and survive damage.

use super::*;

/// Promise, pre-generation: A pre-generation resumes where it stopped, after a restart or a crash.
#[test]
fn a_pregeneration_continues_after_a_restart_paused_or_not() {
    let area = disc(20);
    let total = columns(area).len() as u64;
    // Progress is reported four times a second, so the job must not be too fast.
    for (mode, pace) in [(TickMode::Lockstep, Duration::ZERO), (TickMode::Independent, Duration::from_millis(2))] {
        for spawns_again in [false, true] {
            let store = Arc::new(MemoryStore::new());
            let generator = Counting { pace, ..default() };
            let plugin = || TerranePlugin {
                tick_mode: mode,
                threads: ThreadSettings { generation: 1, ..default() },
                pacing: Pacing { pregeneration: Some(64), ..default() },
                ..in_store(&store)
            };
            let mut first = app(plugin());
            let overworld = dimension(&mut first, &generator);
            let job = pregenerate(&mut first, overworld, area);
            start(&mut first);
            wait_for_done(&mut first, job, total / 3);
            control(&mut first, job, JobOrder::Pause);
            wait_for(&mut first, job, JobState::Paused);
            let before = progress(&first, job);
            drop(first);
            assert_eq!(remembered(&store), 1);
            let durable = [(stored(&store), generator.calls())];

            let mut second = app(plugin());
            let overworld = dimension(&mut second, &generator);
            let again = spawns_again.then(|| pregenerate(&mut second, overworld, area));
            start(&mut second);
            let job = found_job(&mut second);
            assert!(again.is_none_or(|again| again == job));
            assert_eq!(second.world().get::<Pregeneration>(job), Some(&Pregeneration { dimension: overworld, area }));
            wait_for_done(&mut second, job, 1);
            let after = progress(&second, job);
            assert_eq!((after.state, after.total), (JobState::Paused, total.into()));
            assert!(after.done >= before.done && after.elapsed >= before.elapsed, "{before:?} {after:?}");
            control(&mut second, job, JobOrder::Resume);
            wait_for(&mut second, job, JobState::Running);
            wait_for_done(&mut second, job, total * 2 / 3);
            drop(second);
            let durable = durable.into_iter().chain([(stored(&store), generator.calls())]);

            let mut third = app(plugin());
            dimension(&mut third, &generator);
            start(&mut third);
            let job = found_job(&mut third);
            wait_for_done(&mut third, job, 1);
            assert!(progress(&third, job).done >= total * 2 / 3);
            wait_for(&mut third, job, JobState::Finished);
            drop(third);
            // Only columns in flight at the end of a session are generated again.
            let calls = generator.calls();
            assert!(calls.values().sum::<u32>() <= columns(area).len() as u32 + 2 * 64, "{mode:?}");
            for (durable, before) in durable {
                assert!(durable.iter().all(|column| calls[column] == before[column]), "{mode:?}");
            }
            assert_eq!((stored(&store), remembered(&store)), (columns(area), 0));
        }
    }
}

/// Promise, pre-generation: A pre-generation resumes where it stopped, after a restart or a crash.
#[test]
fn a_crash_loses_no_stored_column_and_repeats_none() {
    let area = ColumnArea::Square { center: CENTER, radius: 14 };
    let (store, generator) = (Arc::new(MemoryStore::new()), Counting::default());
    let quick = |plugin: TerranePlugin| TerranePlugin {
        tick_mode: TickMode::Lockstep,
        saving: SaveSettings::every(Duration::from_millis(150)),
        ..plugin
    };
    let mut living =
        app(TerranePlugin { pacing: Pacing { pregeneration: Some(48), ..default() }, ..quick(in_store(&store)) });
    let overworld = dimension(&mut living, &generator);
    let job = pregenerate(&mut living, overworld, area);
    start(&mut living);
    let mut crashes = Vec::new();
    for pass in 0..400 {
        living.update();
        if pass % 7 == 3 {
            crashes.push((Arc::new(store.snapshot()), stored(&store)));
        }
        if state(&living, job) == JobState::Finished {
            break;
        }
    }
    wait_for(&mut living, job, JobState::Finished);
    let begun = crashes.iter().filter(|(_, done)| !done.is_empty() && done.len() < columns(area).len()).count();
    assert!(begun > 3, "{begun} of {}", crashes.len());
    for (crashed, durable) in crashes {
        if remembered(&crashed) == 0 {
            // It crashed before the job was saved, or after its end.
            assert!(durable.is_empty() || durable == columns(area));
            continue;
        }
        let generator = Counting::default();
        let mut next = app(quick(in_store(&crashed)));
        dimension(&mut next, &generator);
        start(&mut next);
        let job = found_job(&mut next);
        assert!(progress(&next, job).done >= durable.len() as u64);
        wait_for(&mut next, job, JobState::Finished);
        drop(next);
        let expected = columns(area).difference(&durable).map(|column| (*column, 1)).collect();
        assert_eq!(generator.calls(), expected, "each that was not durable, once");
        assert_eq!((stored(&crashed), remembered(&crashed)), (columns(area), 0));
    }
}

#[test]
fn it_waits_with_its_dimension_and_goes_with_it() {
    for mode in [TickMode::Lockstep, TickMode::Independent] {
        let (store, generator) = (Arc::new(MemoryStore::new()), Counting::default());
        let mut app = app(TerranePlugin {
            tick_mode: mode,
            pacing: Pacing { pregeneration: Some(16), ..default() },
            ..in_store(&store)
        });
        let area = disc(60);
        let overworld = dimension(&mut app, &generator);
        let job = pregenerate(&mut app, overworld, area);
        start(&mut app);
        wait_for_done(&mut app, job, 100);
        let before = progress(&app, job);
        despawn_dimension(&mut app, overworld);
        update_until(&mut app, "it is closed", |world| !world.resource::<Heard<DimensionClosed>>().0.is_empty());
        assert!(app.world().get_entity(job).is_err(), "it went with its dimension");
        assert!(heard::<JobEnded>(&app).is_empty());

        let overworld = dimension(&mut app, &generator);
        let job = found_job(&mut app);
        assert!(progress(&app, job).done >= before.done, "{mode:?}");
        app.world().resource::<Dimensions>().remove(overworld);
        update_until(&mut app, "it is removed", |world| !world.resource::<Heard<DimensionRemoved>>().0.is_empty());
        assert_eq!(state(&app, job), JobState::Cancelled);
        assert_eq!(heard::<JobEnded>(&app).len(), 1);
        let fresh = spawn_dimension(&mut app, Dimension::new("overworld", Void));
        update_until(&mut app, "a new one is open", |world| is_open(world, fresh));
        update(&mut app, 10);
        assert_eq!(app.world_mut().query::<&Pregeneration>().iter(app.world()).count(), 1, "the old one alone");
        assert!(generator.calls().values().all(|calls| *calls == 1));
    }
}

/// A world with an unfinished job, whose dimension was told to close while nothing can be stored, and its disk.
fn closing_with_a_job(mode: TickMode) -> (App, Entity, Disk) {
    let disk = Disk::default();
    let mut app = app(TerranePlugin {
        tick_mode: mode,
        pacing: Pacing { pregeneration: Some(16), ..default() },
        ..disk.plugin()
    });
    let overworld = dimension(&mut app, &Counting::default());
    let job = pregenerate(&mut app, overworld, disc(60));
    start(&mut app);
    wait_for_done(&mut app, job, 100);
    disk.set_full(true);
    despawn_dimension(&mut app, overworld);
    update(&mut app, 5);
    assert!(heard::<DimensionClosed>(&app).is_empty(), "it cannot be saved");
    assert!(app.world().get_entity(job).is_ok());
    (app, job, disk)
}

/// Lets the dimension close and opens it again. Returns the states of the jobs after that.
fn jobs_when_opened_again(app: &mut App, disk: &Disk) -> Vec<JobState> {
    disk.set_full(false);
    update_until(app, "it is closed", |world| !world.resource::<Heard<DimensionClosed>>().0.is_empty());
    let overworld = dimension(app, &Counting::default());
    update_until(app, "it is open again", |world| is_open(world, overworld));
    update(app, 20);
    app.world_mut().query::<&JobProgress>().iter(app.world()).map(|progress| progress.state).collect()
}

#[test]
fn a_job_cancelled_while_its_dimension_closes_does_not_come_back() {
    for mode in [TickMode::Lockstep, TickMode::Independent] {
        for is_despawned in [true, false] {
            let (mut app, job, disk) = closing_with_a_job(mode);
            match is_despawned {
                true => drop(app.world_mut().despawn(job)),
                false => control(&mut app, job, JobOrder::Cancel),
            }
            update(&mut app, 5);
            let states = jobs_when_opened_again(&mut app, &disk);
            assert!(states.iter().all(|state| *state == JobState::Cancelled), "{states:?}");
            assert_eq!(heard::<JobEnded>(&app).len(), 1);
            assert_eq!(heard::<JobEnded>(&app)[0].entity, job);
        }
    }
}

#[test]
fn a_job_paused_while_its_dimension_closes_stays_paused() {
    let (mut app, job, disk) = closing_with_a_job(TickMode::Lockstep);
    control(&mut app, job, JobOrder::Pause);
    update(&mut app, 5);
    assert_eq!(jobs_when_opened_again(&mut app, &disk), [JobState::Paused]);
}

#[test]
fn a_job_despawned_with_its_dimension_continues() {
    let (disk, generator) = (Disk::default(), Counting::default());
    let mut app = app(TerranePlugin {
        tick_mode: TickMode::Lockstep,
        pacing: Pacing { pregeneration: Some(16), ..default() },
        ..disk.plugin()
    });
    let overworld = dimension(&mut app, &generator);
    let job = pregenerate(&mut app, overworld, disc(60));
    start(&mut app);
    wait_for_done(&mut app, job, 100);
    app.world_mut().despawn(job);
    despawn_dimension(&mut app, overworld);
    assert_eq!(jobs_when_opened_again(&mut app, &disk), [JobState::Running]);
}

#[test]
fn a_damaged_job_is_forgotten_and_its_ground_is_not() {
    use bevy_terrane::storage::{Durability, Family, KeyValueStore, WriteBatch, keys};
    let (store, generator) = (Arc::new(MemoryStore::new()), Counting::default());
    let plugin = || TerranePlugin {
        tick_mode: TickMode::Lockstep,
        pacing: Pacing { pregeneration: Some(16), ..default() },
        ..in_store(&store)
    };
    let mut first = app(plugin());
    let overworld = dimension(&mut first, &generator);
    let jobs = [disc(30), disc(40)].map(|area| pregenerate(&mut first, overworld, area));
    start(&mut first);
    wait_for_done(&mut first, jobs[0], 200);
    drop(first);
    let key = keys::pregeneration_key(DimensionId(0), 1);
    let mut value = store.get(Family::Meta, &key).unwrap().expect("the first job");
    *value.last_mut().unwrap() ^= 1;
    let mut damage = WriteBatch::default();
    damage.put(Family::Meta, key, value);
    store.write(damage, Durability::Process).unwrap();

    let mut second = app(plugin());
    let overworld = dimension(&mut second, &generator);
    start(&mut second);
    let job = found_job(&mut second);
    assert_eq!(second.world().get::<Pregeneration>(job).unwrap().area, disc(40));
    wait_for_done(&mut second, job, 200);
    // A new job does not get the number of an existing one.
    pregenerate(&mut second, overworld, disc(50));
    update(&mut second, 10);
    drop(second);
    assert_eq!(remembered(&store), 2);
}
