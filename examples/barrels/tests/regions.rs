//! avian in each region world: `region.add_plugins(..)` works. A body in a region has a partner that avian moves, because entities that
//! travel between regions should not carry the engine's twenty components. Distances are from the place of the first body, since
//! avian computes in `f32`; a game has to move this origin along.

use avian3d::prelude::{AngularVelocity, Collider, LinearVelocity, PhysicsPlugins, PhysicsSystems, RigidBody};
use bevy::prelude::*;
use bevy_terrane::block::BlockId;
use bevy_terrane::chunk::Chunk;
use bevy_terrane::generation::Flat;
use bevy_terrane::plugin::{TerraneAppExt, TerranePlugin, ThreadSettings};
use bevy_terrane::simulation::{BlockTypes, Position, RegionBlocks, RegionTick, Viewer};
use bevy_terrane::space::{BlockPos, ChunkPos, DimensionId};
use bevy_terrane::testing::*;
use bevy_terrane::view::{Dimension, Mirror, Regions};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A ball that travels and is saved.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, TypePath)]
#[require(Position)]
struct Ball {
    velocity: Vec3,
    spin: Vec3,
}

const RADIUS: f32 = 0.4;

/// The body of the ball, which stays in its region.
#[derive(Component)]
struct Partner(Entity);

/// The origin of avian's space in this region, and the ground that has colliders.
#[derive(Resource, Default)]
struct Physics {
    origin: Option<BlockPos>,
    /// Balls that need a partner.
    new: Vec<Entity>,
    ground: BTreeMap<ChunkPos, (Chunk, Entity)>,
}

fn add_physics(region: &mut SubApp) {
    region
        .add_plugins(PhysicsPlugins::new(RegionTick))
        .init_resource::<Physics>()
        .add_systems(RegionTick, (pair, update_ground).chain().before(PhysicsSystems::First))
        .add_systems(RegionTick, take_places.after(PhysicsSystems::Last))
        .add_observer(arrive)
        .add_observer(part);
}

/// A ball is new here: spawned, loaded, or from another region. `Added` would miss the last, because change ticks travel too.
fn arrive(new: On<Add, Ball>, mut physics: ResMut<Physics>) {
    physics.new.push(new.entity);
}

/// New balls get a partner.
fn pair(mut commands: Commands, mut physics: ResMut<Physics>, balls: Query<(Entity, &Ball, &Position)>) {
    let new = std::mem::take(&mut physics.new);
    for (entity, ball, position) in balls.iter_many(new) {
        let origin = *physics.origin.get_or_insert(position.block);
        commands.spawn((
            Partner(entity),
            (RigidBody::Dynamic, Collider::sphere(RADIUS)),
            (LinearVelocity(ball.velocity), AngularVelocity(ball.spin)),
            Transform::from_translation(position.relative_to(origin)),
        ));
    }
}

/// The partner goes with its ball.
fn part(gone: On<Remove, Ball>, partners: Query<(Entity, &Partner)>, mut commands: Commands) {
    for (partner, _) in partners.iter().filter(|(_, partner)| partner.0 == gone.entity) {
        commands.entity(partner).despawn();
    }
}

/// The chunks around each ball have colliders, made again after a change.
fn update_ground(
    mut commands: Commands,
    mut physics: ResMut<Physics>,
    balls: Query<&Position, With<Ball>>,
    (blocks, types): (RegionBlocks, Res<BlockTypes>),
) {
    let Some(origin) = physics.origin else { return };
    let near = |position: &Position| [-1, 1].map(|y| position.block.offset(0, 2 * y, 0).chunk());
    let near: BTreeSet<ChunkPos> = balls.iter().flat_map(near).collect();
    for pos in near.iter().copied() {
        let Some(Some(chunk)) = blocks.loaded_chunk(pos) else { continue };
        if physics.ground.get(&pos).is_some_and(|(before, _)| before == chunk) {
            continue;
        }
        let cells = (0..16).flat_map(|x| (0..16).flat_map(move |y| (0..16).map(move |z| [x, y, z])));
        let is_solid = |cell: &[usize; 3]| types.block(chunk.block(*cell)).is_solid();
        let cells: Vec<IVec3> =
            cells.filter(is_solid).map(|cell| IVec3::from(cell.map(|along| along as i32))).collect();
        let corner = Position { dimension: DimensionId::default(), block: pos.min_block(), offset: Vec3::ZERO };
        let place = Transform::from_translation(corner.relative_to(origin));
        let entity = if cells.is_empty() {
            commands.spawn_empty().id()
        } else {
            commands.spawn((RigidBody::Static, Collider::voxels(Vec3::ONE, &cells), place)).id()
        };
        if let Some((_, old)) = physics.ground.insert(pos, (chunk.clone(), entity)) {
            commands.entity(old).despawn();
        }
    }
    physics.ground.retain(|pos, (_, entity)| {
        near.contains(pos) || {
            commands.entity(*entity).despawn();
            false
        }
    });
}

/// Balls are where their partners are.
fn take_places(
    physics: Res<Physics>,
    partners: Query<(&Partner, &Transform, &LinearVelocity, &AngularVelocity)>,
    mut balls: Query<(&mut Ball, &mut Position)>,
) {
    let Some(origin) = physics.origin else { return };
    for (partner, transform, velocity, spin) in &partners {
        if let Ok((mut ball, mut position)) = balls.get_mut(partner.0) {
            *ball = Ball { velocity: velocity.0, spin: spin.0 };
            *position = Position { block: origin, offset: Vec3::ZERO, ..*position };
            position.translate(transform.translation);
        }
    }
}

fn world(plugin: TerranePlugin) -> (App, DimensionId) {
    let mut app = headless(plugin);
    app.register_saved_component::<Ball>().mirror_region_component::<Ball>().add_region_plugins(add_physics);
    let ground = Flat::new().with_layers(-40, [("terrane:stone", 41)]);
    let dimension = spawn_dimension(&mut app, Dimension::new("test", ground).with_height(-64..64));
    (app, dimension)
}

/// The balls by x, with their places relative to a block.
fn balls(world: &mut World, origin: BlockPos) -> Vec<(Vec3, Ball)> {
    let mut mirrors = world.query_filtered::<(&Position, &Ball), With<Mirror>>();
    let mut balls: Vec<_> = mirrors.iter(world).map(|(position, ball)| (position.relative_to(origin), *ball)).collect();
    balls.sort_by(|one, other| one.0.x.total_cmp(&other.0.x));
    balls
}

const FAR: i64 = 1 << 40;

/// Promise, physics: A physics engine runs in each region world, at any distance from the origin, across merges.
#[test]
fn bodies_rest_on_the_ground_of_their_region_however_far_away() {
    let (mut app, dimension) = world(lockstep());
    start(&mut app);
    let block = BlockPos::new(FAR, 3, 7);
    app.world_mut().spawn((Viewer::in_dimension(dimension).with_radius(2), Position::new(dimension, block)));
    spawn_in_region(&mut app, dimension, block, Ball::default());
    update_until(&mut app, "it rests", |world| {
        balls(world, block)
            .first()
            .is_some_and(|(place, ball)| (place.y - (RADIUS - 2.0)).abs() < 0.03 && ball.velocity.length() < 0.02)
    });
    // The ground below it is dug out.
    let dug = ask_region(&mut app, dimension, block, move |mut blocks: RegionBlocks| {
        blocks.set_block(BlockPos::new(FAR, 0, 7), BlockId::AIR).is_ok()
    });
    assert!(dug);
    update_until(&mut app, "it falls into the hole", |world| {
        balls(world, block).first().is_some_and(|(place, _)| (place.y - (RADIUS - 3.0)).abs() < 0.03)
    });
}

/// Two balls, in regions of their own, of which one rolls; then the regions merge. Returns all places on the way.
fn rolling(threads: usize) -> Vec<Vec<(Vec3, Ball)>> {
    let (mut app, dimension) =
        world(TerranePlugin { threads: ThreadSettings { regions: threads, ..default() }, ..lockstep() });
    start(&mut app);
    let viewers = [-2_000.5, 2_000.5].map(|x| viewer(&mut app, dimension, x, 0.5, 3));
    for (x, velocity) in [(-2_000, Vec3::X * 2.0), (2_000, Vec3::ZERO)] {
        let ball = Ball { velocity, spin: Vec3::ZERO };
        spawn_in_region(&mut app, dimension, BlockPos::new(x, 2, 0), ball);
    }
    update_until(&mut app, "both are there", |world| balls(world, BlockPos::default()).len() == 2);
    let mut seen = Vec::new();
    let mut follow = |app: &mut App| {
        for _ in 0..60 {
            update(app, 1);
            seen.push(balls(app.world_mut(), BlockPos::default()));
        }
    };
    follow(&mut app);
    // The ground between them is loaded, so the regions merge while one ball rolls.
    app.world_mut().despawn(viewers[1]);
    viewer(&mut app, dimension, 0.5, 0.5, 130);
    update_until(&mut app, "there is one region", |world| {
        world.run_system_cached(|regions: Regions| regions.iter().count()).is_ok_and(|regions| regions == 1)
    });
    follow(&mut app);
    seen
}

/// Promise, physics: A physics engine runs in each region world, at any distance from the origin, across merges.
#[test]
fn bodies_keep_rolling_when_regions_merge_and_are_the_same_on_one_and_two_threads() {
    let one = rolling(1);
    let last = one.last().unwrap();
    assert_eq!(last.len(), 2);
    let merged = &one[60];
    assert!(last[0].0.x > merged[0].0.x + 0.5, "it rolls on: {merged:?}, {last:?}");
    assert!(last.iter().all(|(place, _)| (place.y - (1.0 + RADIUS)).abs() < 0.05), "{last:?}");
    let two = rolling(2);
    assert_eq!(one.len(), two.len());
    assert!(one == two, "the runs differ");
}
