//! Bodies of avian on published ground, without a window.

use avian3d::prelude::*;
use barrels::ground::{GroundMesher, GroundPlugin, GroundShape};
use bevy::image::{CompressedImageFormats, ImageLoader};
use bevy::prelude::*;
use bevy::time::TimeUpdateStrategy;
use bevy_terrane::block::{BlockShape, BlockType};
use bevy_terrane::generation::Flat;
use bevy_terrane::plugin::TerraneAppExt;
use bevy_terrane::simulation::BlockTypes;
use bevy_terrane::space::{BlockPos, DimensionId};
use bevy_terrane::testing::{headless, lockstep, spawn_dimension, start, update, update_until, viewer};
use bevy_terrane::view::{Dimension, SetBlock};
use std::sync::Arc;
use std::time::Duration;
use terrane_render::{ChunkMeshProgress, ChunkRenderPlugin};

/// Flat ground, whose top is at y = 1, in view of a viewer.
fn app() -> (App, DimensionId, Entity) {
    let mut app = headless(lockstep());
    app.add_plugins((TransformPlugin, AssetPlugin::default())).init_asset::<Mesh>().init_asset::<Image>();
    app.register_asset_loader(ImageLoader::new(CompressedImageFormats::NONE));
    app.add_plugins(ChunkRenderPlugin { meshers: vec![Arc::new(GroundMesher)], ..default() })
        .add_plugins((PhysicsPlugins::default(), GroundPlugin))
        .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_secs(1) / 64));
    app.register_block(BlockType::new("test:slab").with_shape(BlockShape::slab())).unwrap();
    start(&mut app);
    let ground = Flat::new().with_layers(-40, [("terrane:stone", 41)]);
    let dimension = spawn_dimension(&mut app, Dimension::new("test", ground).with_height(-64..64));
    let viewer = viewer(&mut app, dimension, 0.0, 0.0, 5);
    (app, dimension, viewer)
}

/// The same, once the ground is meshed.
fn meshed_app() -> (App, DimensionId, Entity) {
    let (mut app, dimension, viewer) = app();
    update_until(&mut app, "all is meshed", |world| {
        let progress = world.resource::<ChunkMeshProgress>();
        progress.is_done() && progress.meshes > 0
    });
    (app, dimension, viewer)
}

fn ball(app: &mut App, place: Vec3) -> Entity {
    app.world_mut()
        .spawn((RigidBody::Dynamic, Collider::sphere(0.4), Friction::new(1.0), Transform::from_translation(place)))
        .id()
}

fn place(world: &World, body: Entity) -> Vec3 {
    world.get::<Transform>(body).unwrap().translation
}

fn rests_at(app: &mut App, body: Entity, height: f32) {
    update_until(app, "it rests", |world| {
        let is_still = world.get::<LinearVelocity>(body).unwrap().length() < 0.02;
        is_still && (place(world, body).y - height).abs() < 0.03
    });
}

/// Places a block, by name.
fn set(app: &mut App, dimension: DimensionId, position: BlockPos, name: &str) {
    let block = app.world().resource::<BlockTypes>().id(name).unwrap();
    app.world_mut().write_message(SetBlock { dimension, position, block });
}

/// Promise, physics: A mesher of the game makes colliders of the ground. They follow edits, and go with their column.
#[test]
fn a_body_falls_rests_on_blocks_and_falls_again_when_they_are_dug_out() {
    let (mut app, dimension, _) = app();
    // It is spawned before its ground is there.
    let body = ball(&mut app, Vec3::new(3.5, 4.0, 3.5));
    update(&mut app, 3);
    assert_eq!(place(app.world(), body).y, 4.0, "it is held");
    rests_at(&mut app, body, 1.4);
    update(&mut app, 200);
    for x in 2..5 {
        for z in 2..5 {
            set(&mut app, dimension, BlockPos::new(x, 0, z), "terrane:air");
        }
    }
    rests_at(&mut app, body, 0.4);
}

/// Promise, physics: A mesher of the game makes colliders of the ground. They follow edits, and go with their column.
#[test]
fn a_sleeping_body_falls_when_the_last_block_of_its_chunk_is_dug_out() {
    let (mut app, dimension, _) = meshed_app();
    let alone = BlockPos::new(5, 20, 5);
    set(&mut app, dimension, alone, "terrane:stone");
    update(&mut app, 30);
    let body = ball(&mut app, Vec3::new(5.5, 21.4, 5.5));
    update_until(&mut app, "it sleeps", |world| world.get::<Sleeping>(body).is_some());
    assert!(place(app.world(), body).y > 21.0);
    set(&mut app, dimension, alone, "terrane:air");
    rests_at(&mut app, body, 1.4);
}

#[test]
fn a_body_rests_on_a_slab_and_between_chunks() {
    let (mut app, dimension, _) = meshed_app();
    for z in 3..6 {
        for x in 14..18 {
            set(&mut app, dimension, BlockPos::new(x, 1, z), "test:slab");
        }
    }
    update(&mut app, 30);
    let bodies = [ball(&mut app, Vec3::new(15.5, 3.0, 4.5)), ball(&mut app, Vec3::new(0.0, 3.0, 16.0))];
    rests_at(&mut app, bodies[0], 1.9);
    rests_at(&mut app, bodies[1], 1.4);
}

/// Promise, physics: A rolling body does not stumble over the seams between chunks.
#[test]
fn a_rolling_body_does_not_stumble_over_seams() {
    let (mut app, ..) = meshed_app();
    let body = ball(&mut app, Vec3::new(-20.0, 1.45, 8.3));
    rests_at(&mut app, body, 1.4);
    let speed = Vec3::new(6.0, 0.0, 0.2);
    app.world_mut().entity_mut(body).insert((LinearVelocity(speed), AngularVelocity(Vec3::new(0.0, 0.0, -15.0))));
    for _ in 0..300 {
        app.update();
        let (place, velocity) = (place(app.world(), body), app.world().get::<LinearVelocity>(body).unwrap().0);
        assert!(velocity.y.abs() < 0.25 && (place.y - 1.4).abs() < 0.05, "at {place} with {velocity}");
    }
    assert!(place(app.world(), body).x > 0.0, "it crossed a border: {}", place(app.world(), body));
}

/// The chunks with a collider.
fn solid(world: &mut World) -> usize {
    world.query_filtered::<&GroundShape, With<RigidBody>>().iter(world).count()
}

/// Promise, physics: A mesher of the game makes colliders of the ground. They follow edits, and go with their column.
#[test]
fn only_the_ground_around_bodies_has_colliders_and_it_goes_with_its_column() {
    let (mut app, _, viewer) = meshed_app();
    assert_eq!(solid(app.world_mut()), 0);
    let body = ball(&mut app, Vec3::new(8.0, 1.4, 8.0));
    update_until(&mut app, "there is ground", |world| solid(world) > 0);
    assert!(solid(app.world_mut()) <= 8, "{}", solid(app.world_mut()));
    rests_at(&mut app, body, 1.4);
    app.world_mut().despawn(viewer);
    update_until(&mut app, "the ground is gone", |world| world.query::<&GroundShape>().iter(world).next().is_none());
    update(&mut app, 100);
    assert!((place(app.world(), body).y - 1.4).abs() < 0.05, "it is held");
    assert_eq!(app.world_mut().query::<&Collider>().iter(app.world()).count(), 1, "only its own is left");
}
