//! Bodies in regions: they stand, are saved, cross between regions, and move the same on one and on two threads. An own body in the
//! main world moves before its region does.

use crate::support::*;
use bevy::ecs::system::RunSystemOnce;
use bevy_terrane::liquid::liquid_states;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::{BodyState, SplitMix64};
use bevy_terrane::storage::MemoryStore;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use uuid::Uuid;

const SHEEP: Uuid = Uuid::from_u128(24);

/// Whether a sheep is a sheep does not matter; it is mirrored, so that tests see where it is.
#[derive(Component, Clone, PartialEq, Debug, Serialize, Deserialize, TypePath)]
struct Sheep;

fn world(plugin: TerranePlugin) -> (App, DimensionId) {
    let mut app = game(plugin);
    app.add_plugins(BodyPlugin).register_saved_component::<Sheep>().mirror_region_component::<Sheep>();
    app.mirror_region_component::<BodyVelocity>().mirror_region_component::<Grounded>();
    let dimension = flat(&mut app);
    (app, dimension)
}

/// The mirrored sheep: its position, velocity and contact.
fn sheep(app: &mut App, id: Uuid) -> (Position, Vec3, Grounded) {
    let mut mirrors = app.world_mut().query::<(&Mirror, &Position, &BodyVelocity, &Grounded)>();
    let found = mirrors.iter(app.world()).find(|(mirror, ..)| mirror.id == id).expect("the sheep is mirrored");
    (*found.1, found.2.0, *found.3)
}

fn is_mirrored(world: &mut World, id: Uuid) -> bool {
    world.query::<(&Mirror, &Grounded)>().iter(world).any(|(mirror, _)| mirror.id == id)
}

fn height(position: &Position) -> f32 {
    position.block.y as f32 + position.offset.y
}

/// The first free height over flat ground.
fn ground(app: &mut App, dimension: DimensionId) -> i64 {
    let surface = move |blocks: PublishedBlocks| blocks.surface(dimension, 3, 3);
    app.world_mut().run_system_once(surface).ok().flatten().expect("the ground is published").y + 1
}

/// Promise, bodies: A body stands on the ground of its region, and does so after a restart.
#[test]
fn a_body_falls_onto_the_ground_and_is_saved() {
    let store = Arc::new(MemoryStore::new());
    let open = |store: &Arc<MemoryStore>| {
        let (mut app, dimension) = world(lockstep_on(store));
        viewer(&mut app, dimension, 0.0, 0.0, 2);
        start(&mut app);
        (app, dimension)
    };
    let (mut app, dimension) = open(&store);
    update_until(&mut app, "the ground is there", |world| {
        world.resource::<PublishedColumns>().column(dimension, ColumnPos::new(0, 0)).is_some()
    });
    let floor = ground(&mut app, dimension);
    let body = BlockBody { step_height: 0.3, ..BlockBody::new(0.9, 1.3) };
    spawn_in_region(&mut app, dimension, BlockPos::new(3, floor + 5, 3), (Sheep, body, StableId(SHEEP)));
    update_until(&mut app, "the sheep is there", |world| is_mirrored(world, SHEEP));
    assert!(!sheep(&mut app, SHEEP).2.ground);
    update(&mut app, 40);
    let (position, velocity, grounded) = sheep(&mut app, SHEEP);
    assert!(grounded.ground && velocity == Vec3::ZERO && (height(&position) - floor as f32).abs() < 0.01);
    save(&mut app);
    let (mut app, dimension) = reopen(app, || open(&store));
    update_until(&mut app, "the sheep is back", |world| is_mirrored(world, SHEEP));
    update(&mut app, 5);
    let again = sheep(&mut app, SHEEP);
    assert!(again.0 == position && again.2.ground);
    let stored = ask_region(&mut app, dimension, position.block, |bodies: Query<&BlockBody>| bodies.single().copied());
    assert_eq!(stored.ok(), Some(body));
    // The ground is taken away from below it.
    for y in [floor - 1, floor - 2] {
        let position = position.block;
        let hole = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 0), (0, 1), (1, -1), (1, 0), (1, 1)];
        for (x, z) in hole {
            let position = BlockPos::new(position.x + x, y, position.z + z);
            app.world_mut().write_message(SetBlock { dimension, position, block: BlockId::AIR });
        }
    }
    update(&mut app, 30);
    assert!((height(&sheep(&mut app, SHEEP).0) - (floor - 2) as f32).abs() < 0.01);
}

/// Promise, bodies: In lockstep, bodies move the same on one thread and on two.
#[test]
fn bodies_move_the_same_on_one_thread_and_on_two() {
    let run = |threads: usize| {
        let plugin =
            TerranePlugin { threads: ThreadSettings { regions: threads, ..ThreadSettings::default() }, ..lockstep() };
        let (mut app, dimension) = world(plugin);
        app.add_region_plugins(|region| {
            let jump = |mut bodies: Query<(&mut BodyVelocity, &Grounded, &StableId)>, time: Res<Time>| {
                for (mut velocity, grounded, id) in &mut bodies {
                    if grounded.ground {
                        let mut random = SplitMix64::new(id.0.as_u128() as u64 ^ time.elapsed().as_millis() as u64);
                        velocity.0 = Vec3::new(random.unit() - 0.5, random.unit(), random.unit() - 0.5) * 12.0;
                    }
                }
            };
            region.add_systems(RegionTick, jump.before(BodySystems));
        });
        // Two regions.
        for x in [0.0, 2_000.0] {
            viewer(&mut app, dimension, x, 0.0, 2);
        }
        start(&mut app);
        update(&mut app, 60);
        for number in 0..40 {
            let block = BlockPos::new(2_000 * (number % 2) + 3 + number / 8, 20, 3 + number % 7);
            let id = StableId(Uuid::from_u128(number as u128 + 1));
            spawn_in_region(&mut app, dimension, block, (Sheep, BlockBody::new(0.9, 1.3), id));
        }
        update(&mut app, 120);
        (1..=40).map(|number| sheep(&mut app, Uuid::from_u128(number)).0).collect::<Vec<_>>()
    };
    let (one, two) = (run(1), run(2));
    assert_eq!(one, two);
    assert!(one.iter().collect::<Vec<_>>().windows(2).any(|pair| pair[0].offset != pair[1].offset));
}

/// Promise, bodies: A body that crosses into another region keeps its velocity.
#[test]
fn a_body_keeps_its_velocity_over_regions() {
    let (mut app, dimension) = world(lockstep());
    listen::<bevy_terrane::view::RegionMerged>(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 2);
    viewer(&mut app, dimension, 600.0, 0.0, 2);
    start(&mut app);
    update(&mut app, 60);
    // It hovers, and carries its own ground with it.
    let body = BlockBody { gravity: 0.0, ..BlockBody::new(0.9, 1.3) };
    let flies = (Sheep, body, BodyVelocity(Vec3::X * 90.0), StableId(SHEEP), Viewer::new().with_radius(3));
    spawn_in_region(&mut app, dimension, BlockPos::new(3, 100, 3), flies);
    update_until(&mut app, "the sheep is there", |world| is_mirrored(world, SHEEP));
    let mut last = sheep(&mut app, SHEEP);
    let mut held = 0;
    while last.0.block.x < 590 {
        update(&mut app, 1);
        let now = sheep(&mut app, SHEEP);
        held += usize::from(now.2.is_held);
        assert!(held < 400, "its ground does not come: {now:?}");
        // Only the air slows it down.
        assert!(now.1.x <= last.1.x && now.1.x > last.1.x * 0.994, "{} to {}", last.1.x, now.1.x);
        assert!(now.0.relative_to(last.0.block).x - last.0.offset.x < 4.6);
        last = now;
    }
    assert!(!heard::<bevy_terrane::view::RegionMerged>(&app).is_empty(), "it met the other region");
}

/// An own body, and the entity that it stands for.
fn own_world(plugin: TerranePlugin) -> (App, DimensionId, Entity) {
    let (mut app, dimension) = world(plugin);
    viewer(&mut app, dimension, 0.0, 0.0, 4);
    start(&mut app);
    update_until(&mut app, "the ground is there", |world| {
        world.resource::<PublishedColumns>().column(dimension, ColumnPos::new(0, 0)).is_some()
    });
    let floor = ground(&mut app, dimension);
    let person = (Sheep, BlockBody::new(0.6, 1.8), CharacterController::default(), StableId(SHEEP));
    spawn_in_region(&mut app, dimension, BlockPos::new(3, floor, 3), person);
    let own = app.world_mut().spawn(OwnBody::new(SHEEP)).id();
    update_until(&mut app, "the body is known", |world| {
        world.get::<OwnBody>(own).is_some_and(|own| own.state().is_some())
    });
    (app, dimension, own)
}

fn intend(app: &mut App, own: Entity, intent: Intent) {
    *app.world_mut().get_mut::<Intent>(own).unwrap() = intent;
}

fn state(app: &App, own: Entity) -> (Position, Vec3) {
    let own = app.world().get::<OwnBody>(own).unwrap();
    let state = own.state().unwrap();
    (state.position, state.velocity.0)
}

/// Promise, bodies: The player's own body moves with the update in which it is told to, and its region follows.
#[test]
fn an_own_body_moves_at_once_and_its_region_follows() {
    let (mut app, _, own) = own_world(lockstep());
    let start = state(&app, own).0;
    intend(&mut app, own, Intent { direction: Vec3::X, sprints: true, ..Intent::default() });
    update(&mut app, 1);
    let first = state(&app, own);
    assert!(first.1.x > 1.0 && first.0.offset.x > start.offset.x, "at once: {first:?}");
    let mut last = first.0;
    for _ in 0..40 {
        update(&mut app, 1);
        let now = state(&app, own).0;
        let step = now.relative_to(last.block).x - last.offset.x;
        assert!((0.0..0.3).contains(&step), "no jerk: {step}");
        last = now;
    }
    intend(&mut app, own, Intent::default());
    update(&mut app, 30);
    let there = sheep(&mut app, SHEEP).0;
    assert_eq!(state(&app, own).0, there, "both agree to the last bit");
    assert!(there.block.x > start.block.x + 8);
    assert_eq!(*app.world().get::<Position>(own).unwrap(), there);
}

/// Promise, bodies: An own body that a stream carries along agrees with its region to the bit.
#[test]
fn an_own_body_in_a_stream_agrees_with_its_region() {
    let mut app = game(lockstep());
    app.add_plugins(BodyPlugin).register_saved_component::<Sheep>().mirror_region_component::<Sheep>();
    app.mirror_region_component::<BodyVelocity>().mirror_region_component::<Grounded>();
    app.register_block_states(liquid_states(BlockType::new("game:water").transparent())).unwrap();
    let dimension = spawn_dimension(&mut app, Dimension::new("overworld", Void));
    viewer(&mut app, dimension, 0.0, 0.0, 4);
    start(&mut app);
    update(&mut app, 20);
    // A chute to the east, two blocks wide and deep.
    let stream = |mut blocks: RegionBlocks, types: Res<BlockTypes>| {
        let stone = types.id("terrane:stone").unwrap();
        for x in 0..8_i64 {
            let water = types.state("game:water", &[("level", &(8 - x).to_string())]).unwrap();
            for (z, y) in (2..6).flat_map(|z| (9..12).map(move |y| (z, y))) {
                let is_bank = y == 9 || z == 2 || z == 5;
                let block = if is_bank { stone } else { water };
                blocks.set_block(BlockPos::new(x, y, z), block).unwrap();
            }
        }
    };
    ask_region(&mut app, dimension, BlockPos::new(3, 9, 3), stream);
    let person = (Sheep, BlockBody::new(0.6, 1.8), CharacterController::default(), StableId(SHEEP));
    spawn_in_region(&mut app, dimension, BlockPos::new(1, 10, 3), person);
    let own = app.world_mut().spawn(OwnBody::new(SHEEP)).id();
    update_until(&mut app, "the body is known", |world| {
        world.get::<OwnBody>(own).is_some_and(|own| own.state().is_some())
    });
    // The body in the main world is ahead of the mirror by some updates.
    let (mut ahead, mut fastest) = (Vec::<(Position, Vec3, Grounded)>::new(), 0.0_f64);
    for tick in 0..400 {
        if ahead.last().is_some_and(|(place, ..)| place.block.y < -20) {
            break;
        }
        // Where the stream ends it still stands on the edge, and walks over it.
        let direction = Vec3::new(0.1, 0.0, 0.3 * (tick as f32).sin());
        intend(&mut app, own, Intent { direction, ..Intent::default() });
        update(&mut app, 1);
        let BodyState { position, velocity, grounded } = *app.world().get::<OwnBody>(own).unwrap().state().unwrap();
        ahead.push((position, velocity.0, grounded));
        fastest = fastest.max(grounded.drift[0]);
        let known = sheep(&mut app, SHEEP);
        assert!(tick < 10 || ahead.contains(&known), "tick {tick}: the region has it at {known:?}");
    }
    let place = ahead.last().unwrap().0;
    assert!(fastest > 0.7 && place.block.y < -20 && place.block.x >= 8, "{fastest} {place:?}");
}

/// An own body among blocks that the player has just placed, and others that only the region knows.
#[test]
fn an_own_body_stands_on_a_block_that_was_just_placed() {
    let (mut app, dimension, own) = own_world(lockstep());
    let start = state(&app, own).0;
    let block = id_of(app.world(), "terrane:stone");
    intend(&mut app, own, Intent { jumps: true, ..Intent::default() });
    update(&mut app, 5);
    intend(&mut app, own, Intent::default());
    app.world_mut().write_message(SetBlock { dimension, position: start.block, block });
    update(&mut app, 40);
    let now = state(&app, own).0;
    assert_eq!(now.block, start.block.offset(0, 1, 0));
    assert_eq!(now, sheep(&mut app, SHEEP).0);
}

/// Promise, bodies: An own body follows a region that ticks on its own clock.
#[test]
fn an_own_body_agrees_with_a_region_that_ticks_by_itself() {
    let (mut app, _, own) = own_world(TerranePlugin { tick_mode: TickMode::Independent, ..lockstep() });
    intend(&mut app, own, Intent { direction: Vec3::new(0.6, 0.0, 0.8), ..Intent::default() });
    let start = state(&app, own).0;
    update_until(&mut app, "it has walked", |world| {
        let place = world.get::<OwnBody>(own).unwrap().state().unwrap().position;
        place.relative_to(start.block).length() > 4.0
    });
    intend(&mut app, own, Intent::default());
    update_until(&mut app, "both agree", |world| {
        let own = *world.get::<OwnBody>(own).unwrap().state().unwrap();
        let mut mirrors = world.query::<(&Mirror, &Position)>();
        let known = mirrors.iter(world).find(|(mirror, _)| mirror.id == SHEEP).map(|(_, position)| *position);
        own.velocity.0 == Vec3::ZERO && known == Some(own.position)
    });
}
