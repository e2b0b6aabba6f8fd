//! Areas are generated and stored without being loaded, and go on where they were.

use crate::failing_store::FullDisk;
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::storage::{MemoryStore, WorldStore};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Flat ground that counts how often each column is asked for, and fails where it is told to.
#[derive(Clone, Default)]
struct Counting {
    calls: Arc<Mutex<BTreeMap<ColumnPos, u32>>>,
    order: Arc<Mutex<Vec<ColumnPos>>>,
    bad: Arc<Mutex<BTreeSet<ColumnPos>>>,
    /// So often a bad column fails before it comes after all.
    failures: Option<u32>,
    pace: Duration,
}

impl Counting {
    fn calls(&self) -> BTreeMap<ColumnPos, u32> {
        self.calls.lock().unwrap().clone()
    }

    fn count(&self) -> u32 {
        self.calls().values().sum()
    }
}

impl Generator for Counting {
    fn identity(&self) -> GeneratorIdentity {
        GeneratorIdentity { name: "counting".into(), version: 1, seed: 0 }
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        let column = request.column;
        std::thread::sleep(self.pace);
        let calls = {
            let mut calls = self.calls.lock().unwrap();
            let calls = calls.entry(column).or_default();
            *calls += 1;
            *calls
        };
        self.order.lock().unwrap().push(column);
        let is_bad = self.bad.lock().unwrap().contains(&column);
        if is_bad && self.failures.is_none_or(|failures| calls <= failures) {
            assert!(calls != 2, "a generator may panic");
            return Err(GenerateError::Failed { column, reason: "no ground here".into() });
        }
        Flat::new().generate(request)
    }
}

const CENTER: ColumnPos = ColumnPos::new(-37, 91);

fn disc(radius: u32) -> ColumnArea {
    ColumnArea::Disc { center: CENTER, radius }
}

/// Every column of an area, by its definition.
fn columns(area: ColumnArea) -> BTreeSet<ColumnPos> {
    let (min, max) = area.bounds().expect("columns");
    let all = (min.z..=max.z).flat_map(|z| (min.x..=max.x).map(move |x| ColumnPos::new(x, z)));
    all.filter(|column| area.contains(*column)).collect()
}

/// A world in this store, or as it was left there.
fn app(plugin: TerranePlugin) -> App {
    let mut app = game(plugin);
    listen::<PregenerationEnded>(&mut app);
    listen::<ColumnFailed>(&mut app);
    listen::<RegionCreated>(&mut app);
    listen::<DimensionClosed>(&mut app);
    listen::<DimensionRemoved>(&mut app);
    app
}

fn in_store(store: &Arc<MemoryStore>) -> TerranePlugin {
    TerranePlugin::stored_in(StorageConfig::Custom(store.clone()))
}

fn dimension(app: &mut App, generator: &Counting) -> Entity {
    app.world_mut().spawn(Dimension::new("overworld", generator.clone()).with_height(-16..16)).id()
}

fn pregenerate(app: &mut App, dimension: Entity, area: ColumnArea) -> Entity {
    app.world_mut().spawn(Pregeneration { dimension, area }).id()
}

fn control(app: &mut App, pregeneration: Entity, order: PregenerationOrder) {
    app.world_mut().write_message(ControlPregeneration { pregeneration, order });
}

fn progress(app: &App, job: Entity) -> PregenerationProgress {
    app.world().get::<PregenerationProgress>(job).expect("a pre-generation").clone()
}

fn state(app: &App, job: Entity) -> PregenerationState {
    progress(app, job).state
}

fn wait_for(app: &mut App, job: Entity, state: PregenerationState) {
    update_until(app, &format!("it is {state:?}"), |world| {
        world.get::<PregenerationProgress>(job).is_some_and(|progress| progress.state == state)
    });
}

/// Updates until so many columns are done at least.
fn wait_for_done(app: &mut App, job: Entity, done: u64) {
    update_until(app, &format!("{done} are done"), |world| {
        world.get::<PregenerationProgress>(job).is_some_and(|progress| progress.done >= done)
    });
}

/// Which columns the store says that it holds.
fn stored(store: &MemoryStore) -> BTreeSet<ColumnPos> {
    let world = WorldStore::from_store(Box::new(store.snapshot())).unwrap();
    let mut columns = BTreeSet::new();
    for (tile, masks) in world.stored_tiles(DimensionId(0)).unwrap() {
        for (batch, mask) in tile.batches().zip(masks) {
            columns.extend((0..16).filter(|bit| mask >> bit & 1 == 1).map(|bit| batch.column(bit)));
        }
    }
    columns
}

/// The jobs that the store remembers.
fn remembered(store: &MemoryStore) -> usize {
    let world = WorldStore::from_store(Box::new(store.snapshot())).unwrap();
    world.pregenerations(DimensionId(0)).unwrap().len()
}

#[test]
fn each_shape_is_generated_exactly_and_stored_without_a_region() {
    let areas = [
        disc(9),
        disc(0),
        ColumnArea::Square { center: CENTER, radius: 5 },
        ColumnArea::Box { min: ColumnPos::new(-3, 2), max: ColumnPos::new(17, 9) },
        ColumnArea::Square { center: ColumnPos::new(i64::MAX >> 4, i64::MIN >> 4), radius: 3 },
    ];
    for mode in [TickMode::Lockstep, TickMode::Independent] {
        for area in areas {
            let (store, generator) = (Arc::new(MemoryStore::new()), Counting::default());
            let mut app = app(in_store(&store).with_tick_mode(mode));
            let overworld = dimension(&mut app, &generator);
            let job = pregenerate(&mut app, overworld, area);
            start(&mut app);
            wait_for(&mut app, job, PregenerationState::Finished);
            update(&mut app, 3);
            let expected = columns(area);
            let progress = progress(&app, job);
            assert_eq!((progress.done, progress.total), (expected.len() as u64, expected.len() as u128), "{area}");
            assert_eq!((progress.failed, progress.remaining(), progress.fraction()), (0, 0, 1.0));
            let ended = heard::<PregenerationEnded>(&app);
            assert_eq!(ended.len(), 1);
            assert_eq!((ended[0].pregeneration, ended[0].area, &ended[0].progress), (job, area, &progress));
            // Nothing was loaded for it.
            assert!(heard::<RegionCreated>(&app).is_empty());
            assert!(app.world().resource::<PublishedColumns>().is_empty());
            drop(app);
            assert_eq!(stored(&store), expected);
            assert_eq!(remembered(&store), 0, "what is finished is forgotten");
            assert_eq!(generator.calls(), expected.into_iter().map(|column| (column, 1)).collect());
        }
    }
}

#[test]
fn what_was_generated_is_loaded_when_a_viewer_comes() {
    let generator = Counting::default();
    let mut app = app(lockstep());
    let overworld = dimension(&mut app, &generator);
    let job = pregenerate(&mut app, overworld, disc(6));
    start(&mut app);
    wait_for(&mut app, job, PregenerationState::Finished);
    let before = generator.count();
    viewer(&mut app, overworld, CENTER.x as f32 * 16.0, CENTER.z as f32 * 16.0, 4);
    let ground = CENTER.chunk(-1).min_block();
    update_until(&mut app, "the ground is there", |world| block_at(world, overworld, ground).is_some());
    update(&mut app, 10);
    assert_eq!(generator.count(), before, "nothing is generated again");
}

#[test]
fn batches_come_nearest_first() {
    let generator = Counting::default();
    let mut app = app(lockstep().with_generation_threads(1));
    let overworld = dimension(&mut app, &generator);
    let job = pregenerate(&mut app, overworld, disc(20));
    start(&mut app);
    wait_for(&mut app, job, PregenerationState::Finished);
    let expected: Vec<_> = disc(20).batches().map(|(batch, _)| batch).collect();
    let mut found: Vec<_> = generator.order.lock().unwrap().iter().map(|column| column.batch()).collect();
    found.dedup();
    assert_eq!(found, expected);
}

#[test]
fn the_same_happens_every_time_in_lockstep() {
    let run = || {
        let generator = Counting::default();
        generator.bad.lock().unwrap().insert(CENTER);
        let mut app = app(lockstep().with_generation_threads(1));
        let overworld = dimension(&mut app, &generator);
        let jobs = [disc(12), ColumnArea::Square { center: ColumnPos::new(0, 0), radius: 6 }]
            .map(|area| pregenerate(&mut app, overworld, area));
        viewer(&mut app, overworld, 0.0, 0.0, 3);
        start(&mut app);
        let mut told = Vec::new();
        for _ in 0..120 {
            app.update();
            told.push(jobs.map(|job| progress(&app, job)));
        }
        assert!(told[119].iter().all(|progress| progress.state == PregenerationState::Finished), "{:?}", told[119]);
        (told, generator.order.lock().unwrap().clone())
    };
    assert!(run() == run());
}

#[test]
fn progress_rises_and_tells_how_long_it_takes() {
    let generator = Counting { pace: Duration::from_micros(300), ..default() };
    let mut app = app(TerranePlugin::in_memory().with_generation_threads(1));
    let overworld = dimension(&mut app, &generator);
    let job = pregenerate(&mut app, overworld, disc(40));
    assert_eq!(progress(&app, job), PregenerationProgress::default());
    start(&mut app);
    let (mut told, mut left) = (Vec::new(), Vec::new());
    update_until(&mut app, "it is finished", |world| {
        let progress = world.get::<PregenerationProgress>(job).unwrap().clone();
        if told.last() != Some(&progress) {
            left.extend(progress.time_left().filter(|_| progress.state == PregenerationState::Running));
            told.push(progress.clone());
        }
        progress.state == PregenerationState::Finished
    });
    let total = disc(40).columns();
    assert!(told.len() > 4, "{told:?}");
    assert!(told[1..].iter().all(|progress| progress.total == total));
    assert!(told.is_sorted_by(|a, b| a.done <= b.done && a.elapsed <= b.elapsed));
    let last = told.last().unwrap();
    assert_eq!((u128::from(last.done), last.failed), (total, 0));
    // It cannot be faster than its generator; how much slower depends on the machine.
    let rates: Vec<_> = told.iter().filter_map(|progress| progress.columns_per_second).collect();
    assert!(!rates.is_empty() && rates.iter().all(|rate| *rate < 4_000.0), "{rates:?}");
    assert!(!left.is_empty() && left.last() < left.first(), "{left:?}");
    assert!(last.elapsed > Duration::from_secs(1), "{:?}", last.elapsed);
}

#[test]
fn it_pauses_resumes_and_is_cancelled() {
    for mode in [TickMode::Lockstep, TickMode::Independent] {
        let (store, generator) = (Arc::new(MemoryStore::new()), Counting::default());
        let mut app = app(in_store(&store).with_tick_mode(mode).with_pregeneration_in_flight(32));
        let overworld = dimension(&mut app, &generator);
        let job = pregenerate(&mut app, overworld, disc(200));
        start(&mut app);
        wait_for_done(&mut app, job, 100);
        control(&mut app, job, PregenerationOrder::Pause);
        wait_for(&mut app, job, PregenerationState::Paused);
        // What was on its way comes.
        update_for(&mut app, Duration::from_millis(100));
        let (paused, calls) = (progress(&app, job), generator.count());
        assert_eq!(paused.columns_per_second, None);
        update_for(&mut app, Duration::from_millis(300));
        assert_eq!(generator.count(), calls, "{mode:?}");
        assert_eq!(progress(&app, job).elapsed, paused.elapsed);

        control(&mut app, job, PregenerationOrder::Resume);
        wait_for_done(&mut app, job, paused.done + 200);
        assert_eq!(state(&app, job), PregenerationState::Running);
        control(&mut app, job, PregenerationOrder::Cancel);
        wait_for(&mut app, job, PregenerationState::Cancelled);
        update_for(&mut app, Duration::from_millis(100));
        let calls = generator.count();
        update_for(&mut app, Duration::from_millis(200));
        assert_eq!(generator.count(), calls);
        assert_eq!(heard::<PregenerationEnded>(&app).len(), 1);
        // There is nothing left to be told.
        control(&mut app, job, PregenerationOrder::Resume);
        update(&mut app, 5);
        assert_eq!(state(&app, job), PregenerationState::Cancelled);
        drop(app);
        assert_eq!(stored(&store).len() as u32, calls, "what was done stays");
        assert_eq!(remembered(&store), 0);
    }
}

fn update_for(app: &mut App, time: Duration) {
    let until = std::time::Instant::now() + time;
    while std::time::Instant::now() < until {
        app.update();
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_job_without_an_open_dimension_waits_and_can_be_controlled_too() {
    let generator = Counting::default();
    let mut app = app(lockstep());
    start(&mut app);
    let overworld = app.world_mut().spawn_empty().id();
    let [paused, cancelled, waiting] = [3, 4, 5].map(|radius| pregenerate(&mut app, overworld, disc(radius)));
    control(&mut app, paused, PregenerationOrder::Pause);
    control(&mut app, cancelled, PregenerationOrder::Cancel);
    update(&mut app, 3);
    use PregenerationState::*;
    assert_eq!([paused, cancelled, waiting].map(|job| state(&app, job)), [Paused, Cancelled, Waiting]);
    assert_eq!(heard::<PregenerationEnded>(&app)[0].pregeneration, cancelled);
    app.world_mut().entity_mut(overworld).insert(Dimension::new("overworld", generator.clone()).with_height(-16..16));
    wait_for(&mut app, waiting, Finished);
    assert_eq!([paused, cancelled].map(|job| state(&app, job)), [Paused, Cancelled]);
    control(&mut app, paused, PregenerationOrder::Resume);
    wait_for(&mut app, paused, Finished);
    assert_eq!(generator.calls().len(), columns(disc(5)).len());
}

#[test]
fn a_despawned_job_is_cancelled() {
    let generator = Counting::default();
    let mut app = app(lockstep().with_pregeneration_in_flight(16));
    let overworld = dimension(&mut app, &generator);
    let job = pregenerate(&mut app, overworld, disc(300));
    start(&mut app);
    wait_for_done(&mut app, job, 50);
    app.world_mut().despawn(job);
    update(&mut app, 10);
    let calls = generator.count();
    update(&mut app, 20);
    assert_eq!(generator.count(), calls);
    let ended = &heard::<PregenerationEnded>(&app)[0];
    assert_eq!((ended.pregeneration, ended.progress.state), (job, PregenerationState::Cancelled));
}

#[test]
fn it_goes_on_after_a_restart_paused_or_not() {
    let area = disc(20);
    let total = columns(area).len() as u64;
    // Progress is told four times a second: not so fast that it is over before that is seen.
    for (mode, pace) in [(TickMode::Lockstep, Duration::ZERO), (TickMode::Independent, Duration::from_millis(2))] {
        for spawns_again in [false, true] {
            let store = Arc::new(MemoryStore::new());
            let generator = Counting { pace, ..default() };
            let plugin =
                || in_store(&store).with_tick_mode(mode).with_generation_threads(1).with_pregeneration_in_flight(64);
            let mut first = app(plugin());
            let overworld = dimension(&mut first, &generator);
            let job = pregenerate(&mut first, overworld, area);
            start(&mut first);
            wait_for_done(&mut first, job, total / 3);
            control(&mut first, job, PregenerationOrder::Pause);
            wait_for(&mut first, job, PregenerationState::Paused);
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
            assert_eq!((after.state, after.total), (PregenerationState::Paused, total.into()));
            assert!(after.done >= before.done && after.elapsed >= before.elapsed, "{before:?} {after:?}");
            control(&mut second, job, PregenerationOrder::Resume);
            wait_for(&mut second, job, PregenerationState::Running);
            wait_for_done(&mut second, job, total * 2 / 3);
            drop(second);
            let durable = durable.into_iter().chain([(stored(&store), generator.calls())]);

            let mut third = app(plugin());
            dimension(&mut third, &generator);
            start(&mut third);
            let job = found_job(&mut third);
            wait_for_done(&mut third, job, 1);
            assert!(progress(&third, job).done >= total * 2 / 3);
            wait_for(&mut third, job, PregenerationState::Finished);
            drop(third);
            // What was being generated when a session ended is generated again, and nothing else.
            let calls = generator.calls();
            assert!(calls.values().sum::<u32>() <= columns(area).len() as u32 + 2 * 64, "{mode:?}");
            for (durable, before) in durable {
                assert!(durable.iter().all(|column| calls[column] == before[column]), "{mode:?}");
            }
            assert_eq!((stored(&store), remembered(&store)), (columns(area), 0));
        }
    }
}

/// The one job that there is, once there is one.
fn found_job(app: &mut App) -> Entity {
    let mut found = None;
    update_until(app, "the job is found", |world| {
        found = world.query_filtered::<Entity, With<Pregeneration>>().iter(world).next();
        found.is_some()
    });
    update(app, 5);
    let jobs = app.world_mut().query::<&Pregeneration>().iter(app.world()).count();
    assert_eq!(jobs, 1);
    found.unwrap()
}

#[test]
fn a_crash_loses_no_stored_column_and_repeats_none() {
    let area = ColumnArea::Square { center: CENTER, radius: 14 };
    let (store, generator) = (Arc::new(MemoryStore::new()), Counting::default());
    let quick = |plugin: TerranePlugin| {
        plugin.with_tick_mode(TickMode::Lockstep).with_autosave_period(Duration::from_millis(150))
    };
    let mut living = app(quick(in_store(&store)).with_pregeneration_in_flight(48));
    let overworld = dimension(&mut living, &generator);
    let job = pregenerate(&mut living, overworld, area);
    start(&mut living);
    let mut crashes = Vec::new();
    for pass in 0..400 {
        living.update();
        if pass % 7 == 3 {
            crashes.push((Arc::new(store.snapshot()), stored(&store)));
        }
        if state(&living, job) == PregenerationState::Finished {
            break;
        }
    }
    wait_for(&mut living, job, PregenerationState::Finished);
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
        wait_for(&mut next, job, PregenerationState::Finished);
        drop(next);
        let expected = columns(area).difference(&durable).map(|column| (*column, 1)).collect();
        assert_eq!(generator.calls(), expected, "each that was not durable, once");
        assert_eq!((stored(&crashed), remembered(&crashed)), (columns(area), 0));
    }
}

#[test]
fn columns_that_fail_are_tried_again_then_told_of_and_stop_nothing() {
    let area = disc(10);
    let bad: BTreeSet<_> = [CENTER, CENTER.offset(10, 0), CENTER.offset(-3, 4)].into();
    for mode in [TickMode::Lockstep, TickMode::Independent] {
        let (store, generator) = (Arc::new(MemoryStore::new()), Counting::default());
        *generator.bad.lock().unwrap() = bad.clone();
        let mut app = app(in_store(&store).with_tick_mode(mode));
        let overworld = dimension(&mut app, &generator);
        let job = pregenerate(&mut app, overworld, area);
        start(&mut app);
        wait_for_done(&mut app, job, columns(area).len() as u64 - 3);
        wait_for(&mut app, job, PregenerationState::Finished);
        update(&mut app, 2);
        let progress = progress(&app, job);
        assert_eq!((progress.done + 3, progress.failed, progress.remaining()), (columns(area).len() as u64, 3, 0));
        let failed: BTreeSet<_> = heard::<ColumnFailed>(&app).iter().map(|failed| failed.column).collect();
        assert_eq!((failed, heard::<ColumnFailed>(&app).len()), (bad.clone(), 3));
        assert!(heard::<ColumnFailed>(&app).iter().all(|failed| failed.error.contains("no ground here")));
        for (column, calls) in generator.calls() {
            assert_eq!(calls, if bad.contains(&column) { 3 } else { 1 }, "{column}");
        }
        // They are missing, not done: the next job tries them again.
        generator.bad.lock().unwrap().clear();
        let job = pregenerate(&mut app, overworld, area);
        wait_for(&mut app, job, PregenerationState::Finished);
        assert_eq!(self::progress(&app, job).remaining(), 0);
        drop(app);
        assert_eq!(stored(&store), columns(area));
    }
}

#[test]
fn a_column_that_fails_twice_is_done_in_the_end() {
    let generator = Counting { failures: Some(2), ..default() };
    generator.bad.lock().unwrap().insert(CENTER);
    let mut app = app(lockstep());
    let overworld = dimension(&mut app, &generator);
    let job = pregenerate(&mut app, overworld, disc(2));
    start(&mut app);
    wait_for(&mut app, job, PregenerationState::Finished);
    assert_eq!((progress(&app, job).failed, progress(&app, job).done), (0, 13));
    assert!(heard::<ColumnFailed>(&app).is_empty());
}

#[test]
fn a_generator_that_fails_everywhere_comes_to_an_end_too() {
    let area = disc(24);
    let generator = Counting::default();
    *generator.bad.lock().unwrap() = columns(area);
    let mut app = app(lockstep());
    let overworld = dimension(&mut app, &generator);
    let job = pregenerate(&mut app, overworld, area);
    start(&mut app);
    wait_for(&mut app, job, PregenerationState::Finished);
    let total = columns(area).len() as u64;
    assert_eq!((progress(&app, job).failed, progress(&app, job).done), (total, 0));
    assert_eq!(generator.count() as u64, 3 * total);
}

#[test]
fn jobs_of_a_dimension_run_one_after_the_other_and_dimensions_beside_each_other() {
    let [first, second] = [0, 1].map(|_| Counting::default());
    let mut app = app(lockstep().with_pregeneration_in_flight(32));
    let overworld = dimension(&mut app, &first);
    let other = app.world_mut().spawn(Dimension::new("other", second.clone()).with_height(-16..16)).id();
    let jobs = [disc(12), disc(14)].map(|area| pregenerate(&mut app, overworld, area));
    let beside = pregenerate(&mut app, other, disc(14));
    start(&mut app);
    wait_for_done(&mut app, jobs[0], 100);
    use PregenerationState::*;
    assert_eq!([jobs[0], jobs[1], beside].map(|job| state(&app, job)), [Running, Waiting, Running]);
    let (here, there) = (first.count(), second.count());
    assert!(there > here / 2 && here > there / 2, "{here} and {there}");
    // The second sees what the first does for it.
    update(&mut app, 6);
    assert!(progress(&app, jobs[1]).done >= 100);

    control(&mut app, jobs[0], PregenerationOrder::Pause);
    wait_for(&mut app, jobs[0], Paused);
    wait_for(&mut app, jobs[1], Finished);
    control(&mut app, jobs[0], PregenerationOrder::Resume);
    wait_for(&mut app, jobs[0], Finished);
    wait_for(&mut app, beside, Finished);
    assert_eq!(first.calls(), columns(disc(14)).into_iter().map(|column| (column, 1)).collect());
}

#[test]
fn viewers_come_first() {
    let generator = Counting { pace: Duration::from_millis(1), ..default() };
    let plugin = TerranePlugin::in_memory().with_generation_threads(1).with_columns_in_flight(32);
    let mut app = app(plugin.with_pregeneration_in_flight(32));
    let overworld = dimension(&mut app, &generator);
    let job = pregenerate(&mut app, overworld, disc(100));
    start(&mut app);
    wait_for_done(&mut app, job, 100);
    // A thousand blocks away from the job.
    let (place, radius) = (ColumnPos::new(1_000, 1_000), 10);
    let near = ColumnArea::Disc { center: place, radius };
    let seen = generator.order.lock().unwrap().len();
    viewer(&mut app, overworld, place.x as f32 * 16.0, place.z as f32 * 16.0, radius);
    update_until(&mut app, "the viewer has its ground", |world| {
        let id = world.get::<DimensionOpen>(overworld).unwrap().id;
        let published = world.resource::<PublishedColumns>();
        columns(near).iter().all(|column| published.column(id, *column).is_some())
    });
    let order = generator.order.lock().unwrap()[seen..].to_vec();
    let wanted = order.iter().filter(|column| near.contains(**column)).count();
    let last = order.iter().rposition(|column| near.contains(*column)).unwrap();
    let between = order[..last].iter().filter(|column| !near.contains(**column)).count();
    assert_eq!(wanted, columns(near).len());
    // What was on order already, what was ordered until the coordinator heard of the viewer, and what fills the last gap.
    assert!(between <= 200, "{between} columns of the job came before {wanted} of the viewer");
    wait_for_done(&mut app, job, 200);
}

#[test]
fn a_viewer_takes_along_what_is_on_its_way_into_the_store() {
    let generator = Counting { pace: Duration::from_micros(200), ..default() };
    for mode in [TickMode::Lockstep, TickMode::Independent] {
        generator.calls.lock().unwrap().clear();
        let mut app = app(TerranePlugin::in_memory().with_tick_mode(mode));
        let overworld = dimension(&mut app, &generator);
        let area = ColumnArea::Disc { center: ColumnPos::new(0, 0), radius: 12 };
        let job = pregenerate(&mut app, overworld, area);
        viewer(&mut app, overworld, 8.0, 8.0, 8);
        start(&mut app);
        wait_for(&mut app, job, PregenerationState::Finished);
        let within = columns(ColumnArea::Disc { center: ColumnPos::new(0, 0), radius: 8 });
        update_until(&mut app, "the viewer has its ground", |world| {
            let id = world.get::<DimensionOpen>(overworld).unwrap().id;
            let published = world.resource::<PublishedColumns>();
            within.iter().all(|column| published.column(id, *column).is_some())
        });
        assert!(generator.calls().values().all(|calls| *calls == 1), "{:?}", generator.calls());
        assert_eq!(u128::from(progress(&app, job).done), area.columns());
    }
}

#[test]
fn it_waits_with_its_dimension_and_goes_with_it() {
    for mode in [TickMode::Lockstep, TickMode::Independent] {
        let (store, generator) = (Arc::new(MemoryStore::new()), Counting::default());
        let mut app = app(in_store(&store).with_tick_mode(mode).with_pregeneration_in_flight(16));
        let area = disc(60);
        let overworld = dimension(&mut app, &generator);
        let job = pregenerate(&mut app, overworld, area);
        start(&mut app);
        wait_for_done(&mut app, job, 100);
        let before = progress(&app, job);
        app.world_mut().despawn(overworld);
        update_until(&mut app, "it is closed", |world| !world.resource::<Heard<DimensionClosed>>().0.is_empty());
        assert!(app.world().get_entity(job).is_err(), "it went with its dimension");
        assert!(heard::<PregenerationEnded>(&app).is_empty());

        let overworld = dimension(&mut app, &generator);
        let job = found_job(&mut app);
        assert!(progress(&app, job).done >= before.done, "{mode:?}");
        app.world_mut().write_message(RemoveDimension { dimension: overworld });
        update_until(&mut app, "it is removed", |world| !world.resource::<Heard<DimensionRemoved>>().0.is_empty());
        assert_eq!(state(&app, job), PregenerationState::Cancelled);
        assert_eq!(heard::<PregenerationEnded>(&app).len(), 1);
        let fresh = app.world_mut().spawn(Dimension::new("overworld", Void)).id();
        update_until(&mut app, "a new one is open", |world| world.get::<DimensionOpen>(fresh).is_some());
        update(&mut app, 10);
        assert_eq!(app.world_mut().query::<&Pregeneration>().iter(app.world()).count(), 1, "the old one alone");
        assert!(generator.calls().values().all(|calls| *calls == 1));
    }
}

/// A world whose dimension was told to close while nothing can be stored, with a job that is not done, and the switch.
fn closing_with_a_job(mode: TickMode) -> (App, Entity, Arc<AtomicBool>) {
    let is_full = Arc::<AtomicBool>::default();
    let disk = Arc::new(FullDisk { is_full: is_full.clone(), ..default() });
    let plugin = TerranePlugin::stored_in(StorageConfig::Custom(disk)).with_tick_mode(mode);
    let mut app = app(plugin.with_pregeneration_in_flight(16));
    let overworld = dimension(&mut app, &Counting::default());
    let job = pregenerate(&mut app, overworld, disc(60));
    start(&mut app);
    wait_for_done(&mut app, job, 100);
    is_full.store(true, Ordering::SeqCst);
    app.world_mut().despawn(overworld);
    update(&mut app, 5);
    assert!(heard::<DimensionClosed>(&app).is_empty(), "it cannot be saved");
    assert!(app.world().get_entity(job).is_ok());
    (app, job, is_full)
}

/// Lets the dimension close and opens it again. Gives what jobs there are then.
fn jobs_when_opened_again(app: &mut App, is_full: &AtomicBool) -> Vec<PregenerationState> {
    is_full.store(false, Ordering::SeqCst);
    update_until(app, "it is closed", |world| !world.resource::<Heard<DimensionClosed>>().0.is_empty());
    let overworld = dimension(app, &Counting::default());
    update_until(app, "it is open again", |world| world.get::<DimensionOpen>(overworld).is_some());
    update(app, 20);
    app.world_mut().query::<&PregenerationProgress>().iter(app.world()).map(|progress| progress.state).collect()
}

#[test]
fn what_is_cancelled_while_its_dimension_closes_does_not_come_back() {
    for mode in [TickMode::Lockstep, TickMode::Independent] {
        for is_despawned in [true, false] {
            let (mut app, job, is_full) = closing_with_a_job(mode);
            match is_despawned {
                true => drop(app.world_mut().despawn(job)),
                false => control(&mut app, job, PregenerationOrder::Cancel),
            }
            update(&mut app, 5);
            let states = jobs_when_opened_again(&mut app, &is_full);
            assert!(states.iter().all(|state| *state == PregenerationState::Cancelled), "{states:?}");
            assert_eq!(heard::<PregenerationEnded>(&app).len(), 1);
            assert_eq!(heard::<PregenerationEnded>(&app)[0].pregeneration, job);
        }
    }
}

#[test]
fn what_is_paused_while_its_dimension_closes_is_paused_when_it_comes_back() {
    let (mut app, job, is_full) = closing_with_a_job(TickMode::Lockstep);
    control(&mut app, job, PregenerationOrder::Pause);
    update(&mut app, 5);
    assert_eq!(jobs_when_opened_again(&mut app, &is_full), [PregenerationState::Paused]);
}

#[test]
fn what_is_despawned_together_with_its_dimension_goes_on() {
    let (store, generator) = (Arc::new(MemoryStore::new()), Counting::default());
    let mut app = app(in_store(&store).with_tick_mode(TickMode::Lockstep).with_pregeneration_in_flight(16));
    let overworld = dimension(&mut app, &generator);
    let job = pregenerate(&mut app, overworld, disc(60));
    start(&mut app);
    wait_for_done(&mut app, job, 100);
    app.world_mut().despawn(job);
    app.world_mut().despawn(overworld);
    assert_eq!(jobs_when_opened_again(&mut app, &AtomicBool::default()), [PregenerationState::Running]);
}

#[test]
fn a_store_that_cannot_keep_up_holds_it_back() {
    let is_full = Arc::<AtomicBool>::default();
    let disk = Arc::new(FullDisk { is_full: is_full.clone(), ..default() });
    let plugin = TerranePlugin::stored_in(StorageConfig::Custom(disk)).with_tick_mode(TickMode::Lockstep);
    let generator = Counting::default();
    let mut app = app(plugin.with_pregeneration_in_flight(4_096));
    let overworld = dimension(&mut app, &generator);
    start(&mut app);
    update(&mut app, 2);
    is_full.store(true, Ordering::SeqCst);
    let job = pregenerate(&mut app, overworld, disc(300));
    let mut before = 1;
    update_until(&mut app, "it holds", |_| {
        let calls = generator.count();
        std::mem::replace(&mut before, calls) == calls && calls > 10_000
    });
    update(&mut app, 20);
    let held = progress(&app, job);
    // 65,536 things may wait for the store: here a column is a chunk and a summary.
    assert!((20_000..50_000).contains(&held.done), "{}", held.done);
    is_full.store(false, Ordering::SeqCst);
    wait_for_done(&mut app, job, held.done + 10_000);
}

#[test]
fn a_damaged_job_is_forgotten_and_its_ground_is_not() {
    use bevy_terrane::storage::{Durability, Family, KeyValueStore, WriteBatch, keys};
    let (store, generator) = (Arc::new(MemoryStore::new()), Counting::default());
    let plugin = || in_store(&store).with_tick_mode(TickMode::Lockstep).with_pregeneration_in_flight(16);
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
    // A new one does not get the number of one that is there.
    pregenerate(&mut second, overworld, disc(50));
    update(&mut second, 10);
    drop(second);
    assert_eq!(remembered(&store), 2);
}
