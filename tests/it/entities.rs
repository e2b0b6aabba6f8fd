//! Entities travel between regions and are mirrored in the main world.

use crate::support::*;
use bevy_terrane::prelude::*;

#[test]
fn an_entity_of_a_region_is_mirrored_while_it_moves_and_until_it_is_despawned() {
    let mut app = game(lockstep());
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 3);
    start(&mut app);
    update(&mut app, 20);
    spawn_in_region(&mut app, dimension, BlockPos::new(0, 5, 0), walker("bob", 0.5));
    update(&mut app, 3);
    let before = walkers(app.world_mut());
    update(&mut app, 10);
    let after = walkers(app.world_mut());
    assert_eq!(after.len(), 1);
    assert_eq!(after[0].0, "bob");
    let moved = after[0].1.relative_to(before[0].1.block) - before[0].1.relative_to(before[0].1.block);
    assert_eq!(moved, Vec3::new(5.0, 0.0, 0.0));
    let mirror = *app.world_mut().query::<&Mirror>().single(app.world()).unwrap();
    assert_eq!(mirror.current.1 - mirror.previous.1, std::time::Duration::from_millis(50));

    let place = after[0].1.block;
    app.world_mut().commands().run_in_region(dimension, place, |region: &mut World| {
        let walker = region.query_filtered::<Entity, With<Walker>>().single(region).unwrap();
        region.despawn(walker);
    });
    app.world_mut().flush();
    update(&mut app, 3);
    assert!(walkers(app.world_mut()).is_empty());
    assert!(app.world().resource::<MirrorIndex>().is_empty());
}

#[test]
fn an_entity_that_jumps_to_another_region_arrives_whole_and_once() {
    #[derive(Component, Clone, PartialEq)]
    struct Luggage(Vec<u32>);
    #[derive(Component)]
    struct Jump(BlockPos);
    fn jump(mut commands: Commands, mut jumpers: Query<(Entity, &Jump, &mut Position)>) {
        for (entity, to, mut position) in &mut jumpers {
            *position = Position::new(position.dimension, to.0);
            commands.entity(entity).remove::<Jump>();
        }
    }
    let mut app = game(lockstep());
    app.register_region_component::<Luggage>().mirror_region_component::<Luggage>().add_region_plugins(|region| {
        region.add_systems(RegionTick, jump);
    });
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 2);
    viewer(&mut app, dimension, 16.0 * 100.0, 0.0, 2);
    start(&mut app);
    update(&mut app, 20);
    let there = BlockPos::new(16 * 100, 5, 3);
    app.world_mut().commands().run_in_region(dimension, BlockPos::new(0, 5, 0), move |region: &mut World| {
        let dimension = region.resource::<RegionInfo>().dimension;
        let position = Position::new(dimension, BlockPos::new(0, 5, 0));
        let parent = region.spawn((walker("jumper", 0.0), Luggage(vec![1, 2, 3]), Jump(there), position)).id();
        region.spawn((Name::new("rider"), ChildOf(parent)));
    });
    app.world_mut().flush();
    update(&mut app, 10);

    let found = walkers(app.world_mut());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].1.block, there);
    let luggage = app.world_mut().query_filtered::<&Luggage, With<Mirror>>().single(app.world()).unwrap().clone();
    assert!(luggage == Luggage(vec![1, 2, 3]));

    let seen = std::sync::Arc::new(std::sync::Mutex::new((0, 0)));
    let report = seen.clone();
    app.world_mut().commands().run_in_region(dimension, there, move |region: &mut World| {
        let riders = region.query::<(&Name, &ChildOf)>().iter(region).map(|(_, parent)| parent.parent()).collect::<Vec<_>>();
        let luggage = riders.iter().filter(|parent| region.get::<Luggage>(**parent).is_some()).count();
        *report.lock().unwrap() = (riders.len(), luggage);
    });
    app.world_mut().flush();
    update(&mut app, 3);
    assert_eq!(*seen.lock().unwrap(), (1, 1), "the child came along and hangs on its parent");
}

#[test]
fn an_entity_that_walks_to_where_nothing_is_loaded_waits_there() {
    let mut app = game(lockstep());
    let dimension = flat(&mut app);
    let camera = viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 20);
    // Sixteen blocks a tick: beyond the loaded ground within a few ticks.
    spawn_in_region(&mut app, dimension, BlockPos::new(0, 5, 0), walker("runner", 16.0));
    update(&mut app, 20);
    let gone = walkers(app.world_mut())[0].1.column();
    assert!(gone.x > 2, "it ran off to {gone}");
    let waiting = walkers(app.world_mut());
    update(&mut app, 20);
    assert_eq!(walkers(app.world_mut()), waiting, "nothing ticks where nothing is loaded");

    app.world_mut().get_mut::<Transform>(camera).unwrap().translation.x = (gone.x * 16) as f32;
    update(&mut app, 20);
    let found = walkers(app.world_mut());
    assert_eq!(found.len(), 1);
    assert!(found[0].1.column().x > gone.x, "it runs on as soon as it can");
}

#[test]
fn a_viewer_in_a_region_takes_its_ground_along() {
    let mut app = game(lockstep());
    let dimension = flat(&mut app);
    start(&mut app);
    update(&mut app, 3);
    spawn_in_region(&mut app, dimension, BlockPos::new(0, 5, 0), (walker("scout", 2.0), Viewer::new().with_radius(3)));
    update(&mut app, 400);
    let found = walkers(app.world_mut());
    assert_eq!(found.len(), 1);
    let column = found[0].1.column();
    assert!(column.x > 30, "it walked only to {column}");
    assert!(block_at(app.world_mut(), dimension, found[0].1.block).is_some(), "its ground is loaded");
    assert_eq!(block_at(app.world_mut(), dimension, BlockPos::new(0, 0, 0)), None, "its trail is not");
}
