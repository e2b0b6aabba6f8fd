//! Bevy's pointer events on blocks.

use crate::support::*;
use bevy::asset::AssetPlugin;
use bevy::camera::NormalizedRenderTarget;
use bevy::picking::backend::ray::{RayId, RayMap};
use bevy::picking::backend::{HitData, PointerHits};
use bevy::picking::pointer::{Location, PointerAction, PointerId, PointerInput};
use bevy::picking::{InteractionPlugin, PickingPlugin, PickingSystems, prelude::*};
use bevy_terrane::chunk::RayHit;
use bevy_terrane::prelude::*;
use bevy_terrane::space::Face;
use bevy_terrane::view::DimensionOpen;
use terrane_render::BlockPickingPlugin;

/// The pointer's ray. A window would make it from the place of the mouse.
#[derive(Resource)]
struct Aim(Entity, Ray3d);

/// The entities that were clicked, with what was hit.
#[derive(Resource, Default)]
struct Clicks(Vec<(Entity, HitData)>);

/// Flat ground whose highest blocks are at y = 0, with a pool, seen by a camera.
fn world(plugin: BlockPickingPlugin) -> (App, DimensionId, Entity) {
    let mut app = headless(lockstep());
    app.add_plugins((AssetPlugin::default(), PickingPlugin, InteractionPlugin, plugin));
    start(&mut app);
    let dimension = spawn_dimension(&mut app, Dimension::new("test", Flat::new()).with_height(-64..64));
    let camera = viewer(&mut app, dimension, 0.0, 0.0, 2);
    app.world_mut().entity_mut(camera).insert(Camera3d::default());
    update_until(&mut app, "the ground is loaded", |world| {
        world.resource::<PublishedColumns>().column(dimension, ColumnPos::new(0, 0)).is_some()
    });
    let water = app.world().resource::<BlockTypes>().id("terrane:water").unwrap();
    for y in 1..3 {
        app.world_mut().write_message(SetBlock { dimension, position: BlockPos::new(8, y, 8), block: water });
    }
    for _ in 0..5 {
        app.update();
    }
    app.init_resource::<Clicks>().insert_resource(Aim(camera, Ray3d::new(Vec3::new(8.25, 20.0, 8.5), Dir3::NEG_Y)));
    let aim = |aim: Res<Aim>, mut rays: ResMut<RayMap>| {
        rays.map.insert(RayId::new(aim.0, PointerId::Mouse), aim.1);
    };
    app.add_systems(PreUpdate, aim.after(PickingSystems::ProcessInput).before(PickingSystems::Backend));
    app.add_observer(|click: On<Pointer<Click>>, mut clicks: ResMut<Clicks>| {
        clicks.0.push((click.entity, click.hit.clone()));
    });
    app.world_mut().spawn(PointerId::Mouse);
    (app, dimension, camera)
}

/// Clicks, and returns what was hit first.
fn click(app: &mut App) -> Option<(Entity, HitData)> {
    let target = NormalizedRenderTarget::None { width: 1, height: 1 };
    let location = Location { target, position: Vec2::ZERO };
    for action in [PointerAction::Press(PointerButton::Primary), PointerAction::Release(PointerButton::Primary)] {
        app.world_mut().write_message(PointerInput::new(PointerId::Mouse, location.clone(), action));
        app.update();
    }
    std::mem::take(&mut app.world_mut().resource_mut::<Clicks>().0).into_iter().next()
}

/// Clicks, and returns the block.
fn clicked_block(app: &mut App) -> Option<BlockPos> {
    Some(click(app)?.1.extra_as::<RayHit>()?.block)
}

/// Promise, features: Bevy's pointer events reach the dimension's entity with the block that is hit.
#[test]
fn a_click_reaches_the_block_below_the_pointer() {
    let (mut app, dimension, _) = world(BlockPickingPlugin::default());
    let entity =
        app.world_mut().query::<(Entity, &DimensionOpen)>().single(app.world()).map(|(entity, _)| entity).unwrap();
    let (target, hit) = click(&mut app).unwrap();
    let block = hit.extra_as::<RayHit>().unwrap();
    assert_eq!(target, entity);
    assert_eq!((block.block, block.face), (BlockPos::new(8, 0, 8), Some(Face::Top)), "water lets the pointer pass");
    assert_eq!((hit.position, hit.normal), (Some(Vec3::new(8.25, 1.0, 8.5)), Some(Vec3::Y)));
    // The block goes, and the one below is hit.
    app.world_mut().write_message(SetBlock { dimension, position: block.block, block: BlockId::AIR });
    app.update();
    assert_eq!(clicked_block(&mut app), Some(BlockPos::new(8, -1, 8)));
}

#[test]
fn the_game_chooses_blocks_and_reach() {
    let (mut app, ..) = world(BlockPickingPlugin { is_picked: |_| true, ..default() });
    assert_eq!(clicked_block(&mut app), Some(BlockPos::new(8, 2, 8)), "water is picked");

    let (mut app, ..) = world(BlockPickingPlugin { reach: 18.9, ..default() });
    assert_eq!(clicked_block(&mut app), None);
    app.world_mut().resource_mut::<Aim>().1.origin.y = 19.8;
    assert_eq!(clicked_block(&mut app), Some(BlockPos::new(8, 0, 8)));
}

#[test]
fn a_mesh_before_the_block_is_clicked_instead() {
    for (distance, is_before) in [(3.0, true), (30.0, false)] {
        let (mut app, _, camera) = world(BlockPickingPlugin::default());
        let mesh = app.world_mut().spawn_empty().id();
        let mesh_backend = move |mut hits: MessageWriter<PointerHits>| {
            let hit = HitData::new(camera, distance, None, None);
            hits.write(PointerHits::new(PointerId::Mouse, vec![(mesh, hit)], 0.0));
        };
        app.add_systems(PreUpdate, mesh_backend.in_set(PickingSystems::Backend));
        let (target, hit) = click(&mut app).unwrap();
        assert_eq!((target == mesh, hit.extra_as::<RayHit>().is_none()), (is_before, is_before), "{distance}");
    }
}
