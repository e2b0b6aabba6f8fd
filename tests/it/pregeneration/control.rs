//! Progress, pauses and ends.

use super::*;
use bevy_terrane::view::{Job, JobKind};

#[test]
fn progress_rises_and_shows_the_time_left() {
    let generator = Counting { pace: Duration::from_micros(300), ..default() };
    let mut app =
        app(TerranePlugin { threads: ThreadSettings { generation: 1, ..default() }, ..TerranePlugin::in_memory() });
    let overworld = dimension(&mut app, &generator);
    let job = pregenerate(&mut app, overworld, disc(40));
    assert_eq!(progress(&app, job), JobProgress::default());
    start(&mut app);
    let (mut told, mut left) = (Vec::new(), Vec::new());
    update_until(&mut app, "it is finished", |world| {
        let progress = world.get::<JobProgress>(job).unwrap().clone();
        if told.last() != Some(&progress) {
            left.extend(progress.time_left().filter(|_| progress.state == JobState::Running));
            told.push(progress.clone());
        }
        progress.state == JobState::Finished
    });
    let total = disc(40).columns();
    assert!(told.len() > 4, "{told:?}");
    assert!(told[1..].iter().all(|progress| progress.total == total));
    assert!(told.is_sorted_by(|a, b| a.done <= b.done && a.elapsed <= b.elapsed));
    let last = told.last().unwrap();
    assert_eq!((u128::from(last.done), last.failed), (total, 0));
    // It cannot be faster than its generator; the rest depends on the machine.
    let rates: Vec<_> = told.iter().filter_map(|progress| progress.per_second).collect();
    assert!(!rates.is_empty() && rates.iter().all(|rate| *rate < 4_000.0), "{rates:?}");
    assert!(!left.is_empty() && left.last() < left.first(), "{left:?}");
    assert!(last.elapsed > Duration::from_secs(1), "{:?}", last.elapsed);
}

/// Updates until no column was generated in 20 updates in a row.
fn wait_until_nothing_is_made(app: &mut App, generator: &Counting) {
    let (mut calls, mut still) = (generator.count(), 0);
    update_until(app, "nothing is made", |_| {
        let before = std::mem::replace(&mut calls, generator.count());
        still = if calls == before { still + 1 } else { 0 };
        still >= 20
    });
}

/// Promise, pre-generation: A pre-generation can be paused, resumed and cancelled, and its end is reported.
#[test]
fn it_pauses_resumes_and_is_cancelled() {
    for mode in [TickMode::Lockstep, TickMode::Independent] {
        let (store, generator) = (Arc::new(MemoryStore::new()), Counting::default());
        let mut app = app(TerranePlugin {
            tick_mode: mode,
            pacing: Pacing { pregeneration: Some(32), ..default() },
            ..in_store(&store)
        });
        let overworld = dimension(&mut app, &generator);
        let job = pregenerate(&mut app, overworld, disc(200));
        start(&mut app);
        wait_for_done(&mut app, job, 100);
        control(&mut app, job, JobOrder::Pause);
        wait_for(&mut app, job, JobState::Paused);
        // Columns in flight still arrive.
        wait_until_nothing_is_made(&mut app, &generator);
        let (paused, calls) = (progress(&app, job), generator.count());
        assert_eq!(paused.per_second, None);
        wait_until_nothing_is_made(&mut app, &generator);
        assert_eq!(generator.count(), calls, "{mode:?}");
        assert_eq!(progress(&app, job).elapsed, paused.elapsed);

        control(&mut app, job, JobOrder::Resume);
        wait_for_done(&mut app, job, paused.done + 200);
        assert_eq!(state(&app, job), JobState::Running);
        control(&mut app, job, JobOrder::Cancel);
        wait_for(&mut app, job, JobState::Cancelled);
        wait_until_nothing_is_made(&mut app, &generator);
        let calls = generator.count();
        wait_until_nothing_is_made(&mut app, &generator);
        assert_eq!(generator.count(), calls);
        assert_eq!(heard::<JobEnded>(&app).len(), 1);
        // A cancelled job takes no more orders.
        control(&mut app, job, JobOrder::Resume);
        update(&mut app, 5);
        assert_eq!(state(&app, job), JobState::Cancelled);
        drop(app);
        assert_eq!(stored(&store).len() as u32, calls, "what was done stays");
        assert_eq!(remembered(&store), 0);
    }
}

#[test]
fn a_job_without_an_open_dimension_waits_and_can_be_controlled_too() {
    let generator = Counting::default();
    let mut app = app(lockstep());
    start(&mut app);
    let overworld = app.world().resource::<Dimensions>().id("overworld");
    let [paused, cancelled, waiting] = [3, 4, 5].map(|radius| pregenerate(&mut app, overworld, disc(radius)));
    control(&mut app, paused, JobOrder::Pause);
    control(&mut app, cancelled, JobOrder::Cancel);
    update(&mut app, 3);
    use JobState::*;
    assert_eq!([paused, cancelled, waiting].map(|job| state(&app, job)), [Paused, Cancelled, Waiting]);
    assert_eq!(heard::<JobEnded>(&app)[0].entity, cancelled);
    assert_eq!(dimension(&mut app, &generator), overworld);
    wait_for(&mut app, waiting, Finished);
    assert_eq!([paused, cancelled].map(|job| state(&app, job)), [Paused, Cancelled]);
    control(&mut app, paused, JobOrder::Resume);
    wait_for(&mut app, paused, Finished);
    assert_eq!(generator.calls().len(), columns(disc(5)).len());
}

#[test]
fn a_despawned_job_is_cancelled() {
    let generator = Counting::default();
    let mut app = app(TerranePlugin { pacing: Pacing { pregeneration: Some(16), ..default() }, ..lockstep() });
    let overworld = dimension(&mut app, &generator);
    let job = pregenerate(&mut app, overworld, disc(300));
    start(&mut app);
    wait_for_done(&mut app, job, 50);
    app.world_mut().despawn(job);
    update(&mut app, 10);
    let calls = generator.count();
    update(&mut app, 20);
    assert_eq!(generator.count(), calls);
    let ended = &heard::<JobEnded>(&app)[0];
    assert_eq!((ended.entity, ended.progress.state), (job, JobState::Cancelled));
}

#[test]
fn an_entity_whose_job_ended_can_be_another_and_one_that_is_a_job_cannot() {
    let generator = Counting::default();
    let mut app = app(lockstep());
    app.add_observer(|ended: On<JobEnded>, jobs: Query<&Pregeneration>, mut commands: Commands| {
        let Ok(Pregeneration { dimension, area }) = jobs.get(ended.entity) else { return };
        if *area == disc(3) {
            let next = Pregeneration { dimension: *dimension, area: disc(5) };
            commands.entity(ended.entity).remove::<Pregeneration>().insert(next);
        }
    });
    let overworld = dimension(&mut app, &generator);
    let job = pregenerate(&mut app, overworld, disc(3));
    let both = (Pregeneration { dimension: overworld, area: disc(2) }, FarView::in_dimension(overworld));
    let both = app.world_mut().spawn((both, Transform::default())).id();
    start(&mut app);
    update_until(&mut app, "both areas were generated", |world| world.resource::<Heard<JobEnded>>().0.len() == 3);
    assert_eq!(generator.calls().len(), columns(disc(5)).len());
    let states = heard::<JobEnded>(&app).iter().map(|ended| (ended.entity, ended.progress.state)).collect::<Vec<_>>();
    assert!(states.iter().all(|(_, state)| *state == JobState::Finished), "{states:?}");
    assert_eq!(states.iter().filter(|(entity, _)| *entity == job).count(), 2);
    // The far view starts when the entity is free.
    update(&mut app, 10);
    let jobs = app.world_mut().query::<&Job>().iter(app.world()).map(|job| job.kind).collect::<Vec<_>>();
    assert_eq!(jobs, [JobKind::FarView]);
    assert!(app.world().get::<Job>(both).is_some());
}

#[test]
fn one_that_is_wanted_again_with_its_dimension_is_the_same_job() {
    let generator = Counting::default();
    let mut app = app(TerranePlugin { pacing: Pacing { pregeneration: Some(16), ..default() }, ..lockstep() });
    let overworld = dimension(&mut app, &generator);
    let job = pregenerate(&mut app, overworld, disc(12));
    start(&mut app);
    wait_for_done(&mut app, job, 50);
    control(&mut app, job, JobOrder::Pause);
    wait_for(&mut app, job, JobState::Paused);
    despawn_dimension(&mut app, overworld);
    update_until(&mut app, "it is closed", |world| !world.resource::<Heard<DimensionClosed>>().0.is_empty());
    update(&mut app, 5);
    let overworld = dimension(&mut app, &generator);
    let again = pregenerate(&mut app, overworld, disc(12));
    update(&mut app, 20);
    assert_eq!(found_job(&mut app), again);
    assert_eq!(state(&app, again), JobState::Paused);
    control(&mut app, again, JobOrder::Resume);
    wait_for(&mut app, again, JobState::Finished);
    assert_eq!(app.world_mut().query::<&Job>().iter(app.world()).count(), 0);
}
