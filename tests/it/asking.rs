//! Queries of a game about its regions, from outside and from within.

use crate::support::*;
use bevy::ecs::system::RunSystemOnce;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::{ColumnError, ColumnReady, RegionColumns};
use bevy_terrane::view::TimeWindow;
use std::sync::{Arc, Mutex};

const THERE: BlockPos = BlockPos::new(16 * 100, 5, 0);

/// Promise, clocks and faults: `Regions` shows the owner of a place, and each region's entities, columns and TPS.
#[test]
fn the_main_world_sees_all_regions_and_the_owner_of_a_place() {
    let mut app = game(lockstep());
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 2);
    start(&mut app);
    update(&mut app, 20);
    let scout = (walker("scout", 0.0), Viewer::new().with_radius(2));
    app.world_mut().commands().spawn_in_region(dimension, THERE, scout);
    update(&mut app, 120);
    let look = move |regions: Regions| {
        assert_eq!(regions.iter().count(), 2);
        let (here, there) = (regions.at(dimension, HERE).unwrap(), regions.at(dimension, THERE).unwrap());
        assert_ne!(here.region, there.region);
        assert!(regions.at(dimension, BlockPos::new(16 * 50, 0, 0)).is_none());
        assert_eq!(regions.get(there.dimension, there.region), Some(there));
        assert_eq!((here.entities, here.viewers, there.entities, there.viewers), (0, 0, 1, 1));
        // At most a disc of radius 2 and the two columns beyond it.
        assert!((13..=49).contains(&there.columns), "{}", there.columns);
        let (low, high) = there.bounds().unwrap();
        assert!(low.x <= 100 >> 2 && 100 >> 2 <= high.x && low.z <= 0 && 0 <= high.z);
        for window in TimeWindow::ALL {
            let rate = here.window(window).ticks_per_second.unwrap();
            assert!((19.0..=21.0).contains(&rate), "{window:?}: {rate}");
        }
    };
    app.world_mut().run_system_once(look).unwrap();
}

#[test]
fn a_column_of_an_owned_section_is_there_within_the_tick() {
    let mut app = game(lockstep());
    listen::<ColumnChanged>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 0);
    start(&mut app);
    update(&mut app, 20);
    // Column 3 is in the section of column 0; a viewer with radius 0 loads only the latter.
    let (beside, far) = (BlockPos::new(16 * 3, -1, 0), BlockPos::new(16 * 50, -1, 0));
    let was_air = ask_region(&mut app, dimension, HERE, move |region: &mut World| {
        let mut blocks = region.resource_mut::<RegionColumns>();
        assert!(blocks.is_owned(beside.column()) && !blocks.is_owned(far.column()));
        assert!(!blocks.contains(beside.column()));
        blocks.load(beside).unwrap();
        let was_air = blocks.block(beside).unwrap() == BlockId::AIR;
        blocks.set_block(beside, BlockId::AIR).unwrap();
        assert!(matches!(blocks.load(far), Err(ColumnError::NotOwned(column)) if column == far.column()));
        was_air
    });
    assert!(!was_air);
    update(&mut app, 2);
    let id = dimension;
    let mut changed = heard::<ColumnChanged>(&app).iter();
    assert!(changed.any(|changed| {
        (changed.dimension, changed.column, &changed.change) == (id, beside.column(), &ColumnChange::Loaded)
    }));
    assert_eq!(block_at(app.world_mut(), dimension, beside), Some(BlockId::AIR), "as it was changed within the tick");
    // No viewer holds it, so it is unloaded again; its changes stay.
    update(&mut app, 40);
    assert_eq!(block_at(app.world_mut(), dimension, beside), None);
    viewer(&mut app, dimension, 16.0 * 3.0, 0.0, 1);
    update(&mut app, 20);
    assert_eq!(block_at(app.world_mut(), dimension, beside), Some(BlockId::AIR));
}

#[test]
fn a_column_fetched_within_a_tick_has_its_newest_blocks_and_its_entities_once() {
    let mut app =
        game(TerranePlugin { saving: SaveSettings::every(std::time::Duration::from_secs(3600)), ..lockstep() });
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 0);
    let camera = viewer(&mut app, dimension, 16.0 * 3.0, 0.0, 0);
    start(&mut app);
    update(&mut app, 20);
    let beside = BlockPos::new(16 * 3, -1, 0);
    let bundle = walker("ann", 0.0);
    app.world_mut().commands().spawn_in_region(dimension, beside, bundle);
    app.world_mut().write_message(SetBlock { dimension, position: beside, block: BlockId::AIR });
    update(&mut app, 3);
    // The column is evicted, and nothing has been saved since.
    app.world_mut().despawn(camera);
    update(&mut app, 20);
    assert_eq!(block_at(app.world_mut(), dimension, beside), None);
    for _ in 0..2 {
        let is_air = ask_region(&mut app, dimension, HERE, move |region: &mut World| {
            let mut blocks = region.resource_mut::<RegionColumns>();
            blocks.load(beside).unwrap();
            blocks.block(beside).unwrap() == BlockId::AIR
        });
        assert!(is_air);
    }
    viewer(&mut app, dimension, 16.0 * 3.0, 0.0, 0);
    update(&mut app, 10);
    assert_eq!(walkers(app.world_mut()).len(), 1);
    assert_eq!(block_at(app.world_mut(), dimension, beside), Some(BlockId::AIR));
}

/// Asks for columns and keeps the answers.
#[derive(Resource, Clone, Default)]
struct Found(Arc<Mutex<Vec<String>>>);

#[test]
fn a_requested_column_is_reported_when_it_is_loaded() {
    fn hear(mut ready: MessageReader<Received<ColumnReady>>, found: Res<Found>, blocks: RegionBlocks) {
        for message in ready.read() {
            let column = message.message.column;
            assert!(blocks.columns().contains(&column));
            found.0.lock().unwrap().push(column.to_string());
        }
    }
    let mut app = game(lockstep());
    let found = Found::default();
    let kept = found.clone();
    app.add_region_plugins(move |region| {
        region.insert_resource(kept.clone()).add_systems(RegionTick, hear);
    });
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 20);
    let column = ColumnPos::new(40, -7);
    app.world_mut().commands().run_in_region(dimension, HERE, move |region: &mut World| {
        region.resource_mut::<Post>().request_column(column);
    });
    update(&mut app, 20);
    assert_eq!(*found.0.lock().unwrap(), [column.to_string()]);
}

/// Promise, clocks and faults: In strict mode, an access outside of the own region is an error that names the owner.
#[test]
fn in_strict_mode_an_access_outside_of_the_region_is_an_error_that_names_the_owner() {
    for is_strict in [false, true] {
        let plugin = TerranePlugin::in_memory();
        let mut app = game(if is_strict {
            TerranePlugin { faults: FaultSettings { strict: true, ..default() }, ..plugin }
        } else {
            plugin
        });
        listen::<RegionHalted>(&mut app);
        let dimension = flat(&mut app);
        viewer(&mut app, dimension, 0.0, 0.0, 1);
        viewer(&mut app, dimension, THERE.x as f32, 0.0, 1);
        start(&mut app);
        update_until(&mut app, "both regions are loaded", |world| {
            block_at(world, dimension, HERE).is_some() && block_at(world, dimension, THERE).is_some()
        });
        let found = Found::default();
        let seen = found.clone();
        app.world_mut().commands().run_in_region(dimension, HERE, move |region: &mut World| {
            // The system ignores the error.
            let error = region.resource::<RegionColumns>().block(THERE).unwrap_err();
            seen.0.lock().unwrap().push(error.to_string());
        });
        update_until(&mut app, "it was tried", |_| !found.0.lock().unwrap().is_empty());
        let error = found.0.lock().unwrap()[0].clone();
        if is_strict {
            update_until(&mut app, "it halts", |world| !world.resource::<Heard<RegionHalted>>().0.is_empty());
            let reason = heard::<RegionHalted>(&app)[0].fault.reason.clone();
            assert!(error.contains("which region ") && error.contains(" owns"), "{error}");
            assert!(reason.contains(&error), "{reason}");
        } else {
            assert!(error.contains("does not own"), "{error}");
            update(&mut app, 20);
            assert!(heard::<RegionHalted>(&app).is_empty());
        }
    }
}
