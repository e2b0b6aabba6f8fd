//! Columns are loaded around viewers, and evicted when the viewers leave.

use crate::support::*;
use bevy_terrane::prelude::*;

#[test]
fn the_disc_around_a_viewer_is_loaded_and_nothing_far_beyond() {
    let mut app = game(lockstep());
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 8.0, 8.0, 4);
    start(&mut app);
    update(&mut app, 40);

    let id = app.world().get::<DimensionOpen>(dimension).expect("open").id;
    let published = app.world().resource::<PublishedColumns>();
    let center = ColumnPos::new(0, 0);
    for x in -8..=8 {
        for z in -8..=8 {
            let column = ColumnPos::new(x, z);
            let distance = column.distance_squared(center);
            if distance <= 4 * 4 {
                assert!(published.column(id, column).is_some(), "{column} is missing");
            } else if distance > 6 * 6 {
                assert!(published.column(id, column).is_none(), "{column} is too far away");
            }
        }
    }
}

#[test]
fn what_a_viewer_leaves_behind_is_unloaded_and_comes_back_from_the_store() {
    let mut app = game(lockstep().with_autosave_period(std::time::Duration::from_millis(500)));
    listen::<ColumnChanged>(&mut app);
    let dimension = flat(&mut app);
    let viewer = viewer(&mut app, dimension, 0.0, 0.0, 2);
    start(&mut app);
    update(&mut app, 30);
    let generated = app.world().resource::<WorldStatistics>().generated;
    assert!(generated >= 13);

    move_viewer(&mut app, viewer, 16.0 * 40.0, 0.0);
    update(&mut app, 60);
    let home = BlockPos::new(0, 0, 0);
    assert_eq!(block_at(app.world_mut(), dimension, home), None);
    let mut changed = heard::<ColumnChanged>(&app).iter();
    assert!(changed.any(|changed| (changed.column, &changed.change) == (home.column(), &ColumnChange::Unloaded)));

    move_viewer(&mut app, viewer, 0.0, 0.0);
    update(&mut app, 60);
    let statistics = app.world().resource::<WorldStatistics>().clone();
    let grass = id_of(app.world(), "terrane:grass");
    assert_eq!(block_at(app.world_mut(), dimension, home), Some(grass));
    assert!(statistics.loaded >= 13, "loaded only {}", statistics.loaded);
    assert!(statistics.generated < 3 * generated, "ground was generated twice");
}

#[test]
fn dimensions_have_ground_of_their_own() {
    let mut app = game(lockstep());
    let overworld = flat(&mut app);
    let void = app.world_mut().spawn(Dimension::new("void", Void)).id();
    viewer(&mut app, overworld, 0.0, 0.0, 2);
    viewer(&mut app, void, 0.0, 0.0, 2);
    start(&mut app);
    update(&mut app, 30);

    let ground = BlockPos::new(0, 0, 0);
    let grass = id_of(app.world(), "terrane:grass");
    assert_eq!(block_at(app.world_mut(), overworld, ground), Some(grass));
    assert_eq!(block_at(app.world_mut(), void, ground), Some(BlockId::AIR));
    let ids: Vec<_> = [overworld, void].map(|entity| app.world().get::<DimensionOpen>(entity).unwrap().id).into();
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn a_dimension_of_a_taken_name_or_without_heights_is_refused() {
    let mut app = game(lockstep());
    listen::<DimensionFailed>(&mut app);
    let first = flat(&mut app);
    start(&mut app);
    update(&mut app, 3);
    let second = flat(&mut app);
    let empty = app.world_mut().spawn(Dimension::new("empty", Void).with_height(5..5)).id();
    update(&mut app, 3);

    assert!(app.world().get::<DimensionOpen>(first).is_some());
    let failed = heard::<DimensionFailed>(&app);
    assert_eq!(failed.iter().map(|failed| failed.entity).collect::<Vec<_>>(), [second, empty]);
    assert!(failed[0].error.to_string().contains("\"overworld\" is open already"));
    assert!(failed[1].error.to_string().contains("height range 5..5"));
}
