//! Columns that cannot be generated.

use super::*;
use bevy_terrane::simulation::ColumnError;

/// Promise, pre-generation: A column that fails three times is reported and counted, and does not stop its pre-generation.
#[test]
fn failing_columns_are_retried_then_reported_and_stop_nothing() {
    let area = disc(10);
    let bad: BTreeSet<_> = [CENTER, CENTER.offset(10, 0), CENTER.offset(-3, 4)].into();
    for mode in [TickMode::Lockstep, TickMode::Independent] {
        let (store, generator) = (Arc::new(MemoryStore::new()), Counting::default());
        *generator.bad.lock().unwrap() = bad.clone();
        let mut app = app(TerranePlugin { tick_mode: mode, ..in_store(&store) });
        let overworld = dimension(&mut app, &generator);
        let job = pregenerate(&mut app, overworld, area);
        start(&mut app);
        wait_for_done(&mut app, job, columns(area).len() as u64 - 3);
        wait_for(&mut app, job, JobState::Finished);
        update(&mut app, 2);
        let progress = progress(&app, job);
        assert_eq!((progress.done + 3, progress.failed, progress.remaining()), (columns(area).len() as u64, 3, 0));
        let failed: BTreeSet<_> = heard::<ColumnFailed>(&app).iter().map(|failed| failed.column).collect();
        assert_eq!((failed, heard::<ColumnFailed>(&app).len()), (bad.clone(), 3));
        let is_generator = |failed: &ColumnFailed| matches!(failed.error, ColumnError::Generate { .. });
        assert!(heard::<ColumnFailed>(&app).iter().all(is_generator));
        for (column, calls) in generator.calls() {
            assert_eq!(calls, if bad.contains(&column) { 3 } else { 1 }, "{column}");
        }
        // They are missing, not done, so the next job tries them again.
        generator.bad.lock().unwrap().clear();
        let job = pregenerate(&mut app, overworld, area);
        wait_for(&mut app, job, JobState::Finished);
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
    wait_for(&mut app, job, JobState::Finished);
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
    wait_for(&mut app, job, JobState::Finished);
    let total = columns(area).len() as u64;
    assert_eq!((progress(&app, job).failed, progress(&app, job).done), (total, 0));
    assert_eq!(generator.count() as u64, 3 * total);
}
