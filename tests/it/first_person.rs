//! The player in first person of `terrane_dev`: it logs in where it looks, walks, and goes through portals with camera and viewers.

use crate::support::*;
use bevy::ecs::system::RunSystemOnce;
use bevy::input::mouse::AccumulatedMouseMotion;
use bevy_terrane::prelude::*;
use bevy_terrane::storage::MemoryStore;
use std::sync::Arc;
use terrane_dev::{FirstPerson, FirstPersonPlugin};
use terrane_render::{RenderOrigin, SeenDimension};

/// A flat world and a moon, with a player.
fn open(store: &Arc<MemoryStore>) -> (App, [DimensionId; 2], Entity) {
    let mut app = headless(lockstep_on(store));
    app.add_plugins((BodyPlugin, FirstPersonPlugin))
        .init_resource::<RenderOrigin>()
        .init_resource::<ButtonInput<KeyCode>>()
        .init_resource::<ButtonInput<MouseButton>>()
        .init_resource::<AccumulatedMouseMotion>();
    let dimensions = [flat(&mut app), spawn_dimension(&mut app, Dimension::new("moon", Flat::new()))];
    start(&mut app);
    let viewer = Viewer::in_dimension(dimensions[0]).with_radius(2);
    let place = Transform::from_xyz(3.5, 100.0, 3.5).looking_to(Vec3::X, Vec3::Y);
    let player = app.world_mut().spawn((FirstPerson::new("player"), viewer, place)).id();
    app.world_mut().flush();
    let eyes = app.world_mut().query_filtered::<&ChildOf, With<Camera3d>>().single(app.world()).unwrap().parent();
    assert_eq!(eyes, player, "the camera is there at once");
    update_until(&mut app, "the body is known", |world| {
        world.get::<OwnBody>(player).is_some_and(|own| own.state().is_some())
    });
    update(&mut app, 5);
    (app, dimensions, player)
}

fn seen(app: &mut App) -> Option<DimensionId> {
    app.world_mut().run_system_once(|seen: SeenDimension| seen.id()).unwrap()
}

fn place(app: &App, player: Entity) -> Position {
    *app.world().get::<Position>(player).unwrap()
}

fn press(app: &mut App, key: KeyCode, ticks: usize) {
    app.world_mut().resource_mut::<ButtonInput<KeyCode>>().press(key);
    update(app, ticks);
    app.world_mut().resource_mut::<ButtonInput<KeyCode>>().release(key);
    update(app, 10);
}

/// Promise, bodies: A player in first person stands on the ground at its place, walks by keys where it looks, and stands still in a menu.
#[test]
fn a_player_walks_where_it_looks() {
    let (mut app, [overworld, _], player) = open(&Arc::default());
    let start = place(&app, player);
    assert_eq!(
        (start.dimension, start.block),
        (overworld, BlockPos::new(3, 1, 3)),
        "on the ground, whose top is y = 0"
    );
    assert_eq!(seen(&mut app), Some(overworld));
    press(&mut app, KeyCode::KeyW, 20);
    let walked = place(&app, player).block;
    assert!(walked.x > 5 && walked.z == 3, "{walked:?}");
    app.world_mut().resource_mut::<AccumulatedMouseMotion>().delta.x = std::f32::consts::FRAC_PI_2 / 0.003;
    app.update();
    app.world_mut().resource_mut::<AccumulatedMouseMotion>().delta.x = 0.0;
    press(&mut app, KeyCode::KeyW, 20);
    let south = place(&app, player).block;
    assert!(south.x == walked.x && south.z > 5, "the mouse to the right turned it to the south: {south:?}");
    let eyes = *app.world_mut().query_filtered::<&Transform, With<Camera3d>>().single(app.world()).unwrap();
    assert!(eyes.forward().z > 0.99 && eyes.translation == Vec3::new(0.0, 1.62, 0.0), "{eyes:?}");

    app.world_mut().get_mut::<FirstPerson>(player).unwrap().takes_input = false;
    press(&mut app, KeyCode::KeyW, 20);
    assert_eq!(place(&app, player).block, south);
}

/// Promise, bodies: A camera that follows a body counts as in the dimension of the body, also after a portal, and so do viewers beside it.
#[test]
fn camera_and_viewers_follow_a_body_through_a_portal() {
    let store = Arc::default();
    let (mut app, [overworld, moon], player) = open(&store);
    let portal = place(&app, player).block;
    in_region(&mut app, overworld, portal, move |region: &mut World| {
        let mut players = region.query_filtered::<&mut Position, With<Player>>();
        players.single_mut(region).map(|mut position| position.dimension = moon).unwrap();
    });
    update_until(&mut app, "the body is on the moon", |world| {
        world.get::<Position>(player).is_some_and(|position| position.dimension == moon)
    });
    assert_eq!(seen(&mut app), Some(moon));
    update_until(&mut app, "no ground of the first dimension is loaded", |world| {
        let viewers = &world.resource::<WorldStatistics>().viewers;
        viewers.len() == 2 && viewers.iter().all(|(dimension, ..)| *dimension == moon)
    });
    press(&mut app, KeyCode::KeyW, 20);
    let there = place(&app, player);
    assert!(there.dimension == moon && there.block.x > portal.x, "it walks on");

    // After a restart it is on the moon, although its viewer begins in the first dimension.
    save(&mut app);
    let (mut app, _, player) = reopen(app, || open(&store));
    assert_eq!(place(&app, player).block, there.block);
    assert_eq!(seen(&mut app), Some(moon));
}
