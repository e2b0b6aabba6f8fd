//! The generated columns, their order, and other work at the same time.

use super::*;
use bevy_terrane::view::JobKind;

/// Promise, pre-generation: The columns of a pre-generation are generated and stored without being loaded.
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
            let mut app = app(TerranePlugin { tick_mode: mode, ..in_store(&store) });
            let overworld = dimension(&mut app, &generator);
            let job = pregenerate(&mut app, overworld, area);
            start(&mut app);
            wait_for(&mut app, job, JobState::Finished);
            update(&mut app, 3);
            let expected = columns(area);
            let progress = progress(&app, job);
            assert_eq!((progress.done, progress.total), (expected.len() as u64, expected.len() as u128), "{area}");
            assert_eq!((progress.failed, progress.remaining(), progress.fraction()), (0, 0, 1.0));
            let ended = heard::<JobEnded>(&app);
            assert_eq!(ended.len(), 1);
            let kind = JobKind::Pregeneration(Pregeneration { dimension: overworld, area });
            assert_eq!((ended[0].entity, ended[0].job.kind, &ended[0].progress), (job, kind, &progress));
            // No column was loaded for it.
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
fn pregenerated_columns_load_when_a_viewer_comes() {
    let generator = Counting::default();
    let mut app = app(lockstep());
    let overworld = dimension(&mut app, &generator);
    let job = pregenerate(&mut app, overworld, disc(6));
    start(&mut app);
    wait_for(&mut app, job, JobState::Finished);
    let before = generator.count();
    viewer(&mut app, overworld, CENTER.x as f32 * 16.0, CENTER.z as f32 * 16.0, 4);
    let ground = CENTER.chunk(-1).min_block();
    update_until(&mut app, "the ground is there", |world| block_at(world, overworld, ground).is_some());
    update(&mut app, 10);
    assert_eq!(generator.count(), before, "nothing is generated again");
}

/// Promise, pre-generation: A pre-generation goes from the centre outwards.
#[test]
fn batches_come_nearest_first() {
    let generator = Counting::default();
    let mut app = app(TerranePlugin { threads: ThreadSettings { generation: 1, ..default() }, ..lockstep() });
    let overworld = dimension(&mut app, &generator);
    let job = pregenerate(&mut app, overworld, disc(20));
    start(&mut app);
    wait_for(&mut app, job, JobState::Finished);
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
        let mut app = app(TerranePlugin { threads: ThreadSettings { generation: 1, ..default() }, ..lockstep() });
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
        assert!(told[119].iter().all(|progress| progress.state == JobState::Finished), "{:?}", told[119]);
        (told, generator.order.lock().unwrap().clone())
    };
    assert!(run() == run());
}

#[test]
fn jobs_of_a_dimension_run_one_after_the_other_and_dimensions_beside_each_other() {
    let [first, second] = [0, 1].map(|_| Counting::default());
    let mut app = app(TerranePlugin { pacing: Pacing { pregeneration: Some(32), ..default() }, ..lockstep() });
    let overworld = dimension(&mut app, &first);
    let other = spawn_dimension(&mut app, Dimension::new("other", second.clone()).with_height(-16..16));
    let jobs = [disc(12), disc(14)].map(|area| pregenerate(&mut app, overworld, area));
    let beside = pregenerate(&mut app, other, disc(14));
    start(&mut app);
    wait_for_done(&mut app, jobs[0], 100);
    use JobState::*;
    assert_eq!([jobs[0], jobs[1], beside].map(|job| state(&app, job)), [Running, Waiting, Running]);
    let (here, there) = (first.count(), second.count());
    assert!(there > here / 2 && here > there / 2, "{here} and {there}");
    // The second job counts the columns of the first.
    update(&mut app, 6);
    assert!(progress(&app, jobs[1]).done >= 100);

    control(&mut app, jobs[0], JobOrder::Pause);
    wait_for(&mut app, jobs[0], Paused);
    wait_for(&mut app, jobs[1], Finished);
    control(&mut app, jobs[0], JobOrder::Resume);
    wait_for(&mut app, jobs[0], Finished);
    wait_for(&mut app, beside, Finished);
    assert_eq!(first.calls(), columns(disc(14)).into_iter().map(|column| (column, 1)).collect());
}

/// Promise, pre-generation: Viewers' columns take precedence over a pre-generation.
#[test]
fn viewers_come_first() {
    let generator = Counting { pace: Duration::from_millis(1), ..default() };
    let pacing = Pacing { pregeneration: Some(32), ..Pacing::fixed(32) };
    let mut app = app(TerranePlugin {
        threads: ThreadSettings { generation: 1, ..default() },
        pacing,
        ..TerranePlugin::in_memory()
    });
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
        let id = overworld;
        let published = world.resource::<PublishedColumns>();
        columns(near).iter().all(|column| published.column(id, *column).is_some())
    });
    let order = generator.order.lock().unwrap()[seen..].to_vec();
    let wanted = order.iter().filter(|column| near.contains(**column)).count();
    let last = order.iter().rposition(|column| near.contains(*column)).unwrap();
    let between = order[..last].iter().filter(|column| !near.contains(**column)).count();
    assert_eq!(wanted, columns(near).len());
    // Columns in flight, columns ordered before the coordinator knew of the viewer, and columns that fill the last gap.
    assert!(between <= 200, "{between} columns of the job came before {wanted} of the viewer");
    wait_for_done(&mut app, job, 200);
}

#[test]
fn a_viewer_gets_columns_that_are_still_being_stored() {
    let generator = Counting { pace: Duration::from_micros(200), ..default() };
    for mode in [TickMode::Lockstep, TickMode::Independent] {
        generator.calls.lock().unwrap().clear();
        let mut app = app(TerranePlugin { tick_mode: mode, ..TerranePlugin::in_memory() });
        let overworld = dimension(&mut app, &generator);
        let area = ColumnArea::Disc { center: ColumnPos::new(0, 0), radius: 12 };
        let job = pregenerate(&mut app, overworld, area);
        viewer(&mut app, overworld, 8.0, 8.0, 8);
        start(&mut app);
        wait_for(&mut app, job, JobState::Finished);
        let within = columns(ColumnArea::Disc { center: ColumnPos::new(0, 0), radius: 8 });
        update_until(&mut app, "the viewer has its ground", |world| {
            let id = overworld;
            let published = world.resource::<PublishedColumns>();
            within.iter().all(|column| published.column(id, *column).is_some())
        });
        assert!(generator.calls().values().all(|calls| *calls == 1), "{:?}", generator.calls());
        assert_eq!(u128::from(progress(&app, job).done), area.columns());
    }
}

/// Promise, pre-generation: A pre-generation slows down when the store cannot keep up.
#[test]
fn a_slow_store_slows_a_pregeneration_down() {
    let disk = Disk::default();
    let plugin = TerranePlugin { tick_mode: TickMode::Lockstep, ..disk.plugin() };
    let generator = Counting::default();
    let mut app = app(TerranePlugin { pacing: Pacing { pregeneration: Some(4_096), ..default() }, ..plugin });
    let overworld = dimension(&mut app, &generator);
    start(&mut app);
    update(&mut app, 2);
    disk.set_full(true);
    let job = pregenerate(&mut app, overworld, disc(300));
    let mut before = 1;
    update_until(&mut app, "it holds", |_| {
        let calls = generator.count();
        std::mem::replace(&mut before, calls) == calls && calls > 10_000
    });
    update(&mut app, 20);
    let held = progress(&app, job);
    // 65,536 things may wait for the store; here a column is a chunk and a summary.
    assert!((20_000..50_000).contains(&held.done), "{}", held.done);
    disk.set_full(false);
    wait_for_done(&mut app, job, held.done + 1_000);
}
