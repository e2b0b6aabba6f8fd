//! Gizmos show the borders of regions and chunks, and what is in regions: bodies, paths and unsaved chunks.

use crate::support::*;
use bevy::asset::AssetPlugin;
use bevy::color::palettes::css::{LIME, RED, YELLOW};
use bevy::gizmos::{GizmoHandles, GizmoPlugin};
use bevy::mesh::skinning::SkinnedMeshInverseBindposes;
use bevy_terrane::path;
use bevy_terrane::plugin::LetterLimits;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::{PathPlugin, PathTo};
use bevy_terrane::view::{LetterLost, RegionOrder};
use std::any::TypeId;
use std::time::{Duration, Instant};
use terrane_gizmos::{BodyGizmos, ChunkGizmos, PathGizmos, RegionGizmos, TerraneGizmosPlugin, UnsavedGizmos};
use terrane_render::RenderOrigin;
use uuid::Uuid;

const THERE: BlockPos = BlockPos::new(8 + 16 * 200, 5, 8);
/// The floor of the flat ground.
const FLOOR: i64 = 1;

/// A body of a region that has no mirror and drifts along x.
#[derive(Component, Clone)]
struct Drift(f32);

fn drift(mut bodies: Query<(&Drift, &mut Position)>) {
    for (drift, mut position) in &mut bodies {
        assert!(drift.0.is_finite(), "nobody drifts so far");
        position.translate(Vec3::X * drift.0);
    }
}

/// A world with gizmos but without a screen, seen by a camera at (8, 0, 8).
fn world(plugin: TerranePlugin) -> (App, DimensionId, Entity) {
    let mut app = game(plugin);
    app.add_plugins((AssetPlugin::default(), TransformPlugin, BodyPlugin))
        .init_asset::<Mesh>()
        .init_asset::<SkinnedMeshInverseBindposes>()
        .add_plugins((GizmoPlugin, TerraneGizmosPlugin))
        .register_region_component::<Drift>()
        .add_region_plugins(|region| {
            region.add_plugins(PathPlugin::default()).add_systems(RegionTick, drift);
        });
    listen::<LetterLost>(&mut app);
    let dimension = flat(&mut app);
    let camera = viewer(&mut app, dimension, 8.0, 8.0, 3);
    app.world_mut().entity_mut(camera).insert(Camera3d::default());
    start(&mut app);
    update_until(&mut app, "the region is published", |world| {
        let statistics = world.resource::<WorldStatistics>();
        let here = statistics.region_at(dimension, HERE.column());
        statistics.remaining == 0 && here.is_some_and(|region| region.columns > 10)
    });
    (app, dimension, camera)
}

fn switch<Group: GizmoConfigGroup>(app: &mut App, on: bool) {
    app.world_mut().resource_mut::<GizmoConfigStore>().config_mut::<Group>().0.enabled = on;
}

/// The lines that a group has drawn in the last frame, with their color.
fn lines<Group: 'static>(world: &World) -> Vec<([Vec3; 2], LinearRgba)> {
    let handle = world.resource::<GizmoHandles>().handles().get(&TypeId::of::<Group>()).cloned().flatten();
    let Some(handle) = handle else { return Vec::new() };
    let buffer = world.resource::<Assets<GizmoAsset>>().get(&handle).expect("it is drawn").buffer();
    let list = buffer.list_positions.chunks_exact(2).zip(buffer.list_colors.chunks_exact(2));
    let strips = buffer.strip_positions.windows(2).zip(buffer.strip_colors.windows(2));
    // Between two strips is a point that is no number.
    let strips = strips.filter(|(ends, _)| ends.iter().all(|end| end.is_finite()));
    list.chain(strips).map(|(ends, colors)| ([ends[0], ends[1]], colors[0])).collect()
}

/// The lowest and the highest corner of each box.
fn boxes(world: &World) -> Vec<(Vec3, Vec3)> {
    let handle = world.resource::<GizmoHandles>().handles().get(&TypeId::of::<BodyGizmos>()).cloned().flatten();
    let Some(handle) = handle else { return Vec::new() };
    let buffer = world.resource::<Assets<GizmoAsset>>().get(&handle).expect("it is drawn").buffer();
    let strips = buffer.strip_positions.split(|point| !point.is_finite()).filter(|strip| !strip.is_empty());
    let bounds = |strip: &[Vec3]| {
        let [low, high] = [Vec3::min, Vec3::max].map(|choose| strip.iter().copied().reduce(choose).unwrap());
        (low, high)
    };
    strips.map(bounds).collect()
}

#[track_caller]
fn assert_box((low, high): (Vec3, Vec3), floor: Vec3, body: &BlockBody) {
    let half = Vec3::new(body.width / 2.0, 0.0, body.width / 2.0);
    let (wanted_low, wanted_high) = (floor - half, floor + half + Vec3::Y * body.height);
    assert!(low.abs_diff_eq(wanted_low, 1e-3) && high.abs_diff_eq(wanted_high, 1e-3), "{low} {high} {floor}");
}

fn region_of_point(world: &World, dimension: DimensionId, [x, z]: [f32; 2]) -> Option<RegionId> {
    let column = BlockPos::new(x.floor() as i64, 0, z.floor() as i64).column();
    region_at(world, dimension, column).map(|region| region.region)
}

/// Promise, gizmos: The borders of regions are around their sections, empty ones included.
#[test]
fn the_border_of_a_region_is_around_its_sections() {
    let (mut app, dimension, camera) = world(lockstep());
    viewer(&mut app, dimension, THERE.x as f32, 8.0, 1);
    update_until(&mut app, "there is another region", |world| region_at(world, dimension, THERE.column()).is_some());
    update(&mut app, 10);
    assert!(lines::<RegionGizmos>(app.world()).is_empty(), "it is off");
    switch::<RegionGizmos>(&mut app, true);
    app.update();

    let here = region_at(app.world(), dimension, HERE.column()).unwrap();
    let seen = lines::<RegionGizmos>(app.world());
    let is_inside = |x: f32, z: f32| region_of_point(app.world(), dimension, [x, z]) == Some(here.region);
    for ([from, to], _) in &seen {
        let middle = (*from + *to) / 2.0;
        let around = [(-1.0, -1.0), (-1.0, 1.0), (1.0, -1.0), (1.0, 1.0)];
        let inside = around.iter().filter(|(x, z)| is_inside(middle.x + x, middle.z + z)).count();
        assert!((1..4).contains(&inside), "{from} to {to} is not on the border");
    }
    // On each side of a near column that is on the border is a line at the height of the camera.
    let shift = app.world().resource::<WorldStatistics>().section_shift;
    let near = (-16..17).flat_map(|x| (-16..17).map(move |z| ColumnPos::new(x, z)));
    let mut sides = 0;
    for column in near.filter(|column| here.contains(column.section(shift))) {
        let middle = Vec3::new(column.x as f32, 0.0, column.z as f32) * 16.0 + Vec3::new(8.0, 0.0, 8.0);
        for (x, z) in [(-1, 0), (1, 0), (0, -1), (0, 1)] {
            if here.contains(column.offset(x, z).section(shift)) {
                continue;
            }
            sides += 1;
            let side = middle + Vec3::new(x as f32, 0.0, z as f32) * 8.0;
            let is_on = |[from, to]: [Vec3; 2]| {
                let nearest =
                    from + (to - from) * ((side - from).dot(to - from) / (to - from).length_squared()).clamp(0.0, 1.0);
                nearest.distance(side) < 0.1
            };
            assert!(seen.iter().any(|(line, _)| is_on(*line)), "no line beside {column} at {x}, {z}");
        }
    }
    assert!(sides > 8, "{sides}");
    let color = seen[0].1;
    assert!(seen.iter().all(|(_, of)| *of == color));

    // The other region has another color, and is seen from there only.
    move_viewer(&mut app, camera, THERE.x as f32, 8.0);
    app.update();
    let there = region_at(app.world(), dimension, THERE.column()).unwrap();
    assert_ne!(there.region, here.region);
    let seen = lines::<RegionGizmos>(app.world());
    assert!(!seen.is_empty() && seen.iter().all(|(_, of)| *of != color));
    assert!(seen.iter().flat_map(|(line, _)| line).all(|end| (end.x - THERE.x as f32).abs() < 18.0 * 16.0));
    switch::<RegionGizmos>(&mut app, false);
    app.update();
    assert!(lines::<RegionGizmos>(app.world()).is_empty());
}

/// Promise, gizmos: Gizmos are at their exact places far from the world's origin.
#[test]
fn far_from_the_origin_gizmos_are_exact() {
    let (mut app, dimension, camera) = world(lockstep());
    let origin = BlockPos::new((1 << 40) + 5, -3, -(1 << 40));
    app.insert_resource(RenderOrigin(origin));
    let place = Position { dimension, block: origin.offset(8, 8, 8), offset: Vec3::ZERO };
    app.world_mut().entity_mut(camera).insert((place, Transform::from_xyz(8.0, 8.0, 8.0)));
    switch::<ChunkGizmos>(&mut app, true);
    switch::<BodyGizmos>(&mut app, true);
    switch::<RegionGizmos>(&mut app, true);
    app.update();

    let seen = lines::<ChunkGizmos>(app.world());
    let [own, others] = [true, false].map(|is_own| {
        let of = seen.iter().filter(|(_, color)| (*color == YELLOW.into()) == is_own).map(|(line, _)| *line);
        of.collect::<Vec<_>>()
    });
    let bounds = |lines: &[[Vec3; 2]]| {
        let ends = || lines.iter().flatten().copied();
        (ends().reduce(Vec3::min).unwrap(), ends().reduce(Vec3::max).unwrap())
    };
    // The camera is at (13, 5, 8) of its chunk.
    let low = Vec3::new(-5.0, 3.0, 0.0);
    assert_eq!((own.len(), bounds(&own)), (12, (low, low + 16.0)));
    assert_eq!((others.len(), bounds(&others)), (300, (low - 64.0, low + 80.0)));

    let body = BlockBody::new(0.6, 1.8);
    spawn_in_region(&mut app, dimension, BlockPos::new(origin.x + 3, FLOOR, origin.z + 4), (body, Drift(0.0)));
    update_until(&mut app, "the body is seen", |world| !boxes(world).is_empty());
    let floor = Vec3::new(3.5, (FLOOR - origin.y) as f32, 4.5);
    assert_box(boxes(app.world())[0], floor, &body);
    update_until(&mut app, "the border is seen", |world| !lines::<RegionGizmos>(world).is_empty());
    let ends = lines::<RegionGizmos>(app.world()).into_iter().flat_map(|(line, _)| line);
    assert!(ends.into_iter().all(|end| end.abs().max_element() < 300.0));
}

/// Promise, gizmos: The box of a body is where its mirror is shown, and of other bodies where their region has told of them.
#[test]
fn bodies_are_shown_where_their_mirrors_are() {
    let (mut app, dimension, _) = world(lockstep());
    let (small, tall) = (BlockBody::new(0.5, 0.5), BlockBody::new(0.6, 1.8));
    spawn_in_region(&mut app, dimension, BlockPos::new(3, FLOOR, 3), (small, Drift(0.0)));
    let id = Uuid::from_u128(7);
    let ann = (StableId(id), tall, walker("ann", 0.05));
    spawn_in_region(&mut app, dimension, BlockPos::new(-30, FLOOR, 6), ann);
    spawn_in_region(&mut app, dimension, BlockPos::new(-30, FLOOR, 12), walker("no body", 0.0));
    update(&mut app, 10);
    assert!(boxes(app.world()).is_empty(), "they are off");
    switch::<BodyGizmos>(&mut app, true);
    update_until(&mut app, "both are seen", |world| boxes(world).len() == 2);

    let is_tall = |(low, high): &(Vec3, Vec3)| high.y - low.y > 1.0;
    let seen = |app: &App, wanted: bool| boxes(app.world()).into_iter().find(|found| is_tall(found) == wanted).unwrap();
    assert_box(seen(&app, false), Vec3::new(3.5, FLOOR as f32, 3.5), &small);
    let mirror = app.world().resource::<MirrorIndex>().entity(id).unwrap();
    for _ in 0..20 {
        app.update();
        let now = app.world().get::<Mirror>(mirror).unwrap().current.0;
        assert_box(seen(&app, true), now.relative_to(BlockPos::default()), &tall);
    }
    app.world_mut().entity_mut(mirror).insert(Transform::from_xyz(-20.0, 30.0, -5.0));
    app.update();
    assert_box(seen(&app, true), Vec3::new(-20.0, 30.0, -5.0), &tall);

    switch::<BodyGizmos>(&mut app, false);
    app.update();
    assert!(boxes(app.world()).is_empty());
}

/// Promise, gizmos: A region is asked four times a second, for which no ground is loaded.
#[test]
fn a_region_is_asked_four_times_a_second() {
    let (mut app, dimension, _) = world(lockstep());
    spawn_in_region(&mut app, dimension, BlockPos::new(-20, FLOOR, 3), (BlockBody::new(0.5, 0.5), Drift(0.003)));
    let columns = app.world().resource::<WorldStatistics>().columns;
    switch::<BodyGizmos>(&mut app, true);
    update_until(&mut app, "it is seen", |world| !boxes(world).is_empty());
    let began = Instant::now();
    let mut places = Vec::new();
    let mut updates = 0;
    update_until(&mut app, "the time is over", |world| {
        updates += 1;
        places.extend(boxes(world).first().map(|(low, _)| low.x));
        began.elapsed() > Duration::from_millis(1_600)
    });
    let periods = began.elapsed().as_millis() / 250;
    places.dedup();
    assert!(updates > 40, "the machine is too slow for this test: {updates} updates");
    assert!((3..=periods as usize + 2).contains(&places.len()), "{} answers in {periods} periods", places.len());
    assert_eq!(app.world().resource::<WorldStatistics>().columns, columns);
}

/// Promise, gizmos: The rest of an entity's path is shown, and whether it ends at the goal.
#[test]
fn paths_lead_to_their_goals() {
    let (mut app, dimension, _) = world(lockstep());
    let from = BlockPos::new(3, FLOOR, 3);
    let walk = move |goal| (StableId(Uuid::from_u128(1)), PathTo::new(path::Walker::default(), goal));
    spawn_in_region(&mut app, dimension, from, walk(BlockPos::new(9, FLOOR, 5)));
    update(&mut app, 10);
    assert!(lines::<PathGizmos>(app.world()).is_empty(), "they are off");
    switch::<PathGizmos>(&mut app, true);
    update_until(&mut app, "the path is seen", |world| !lines::<PathGizmos>(world).is_empty());
    let seen = lines::<PathGizmos>(app.world());
    let is_near = |point: Vec3, block: BlockPos| {
        let middle = Vec3::new(block.x as f32 + 0.5, block.y as f32, block.z as f32 + 0.5);
        point.distance(middle) < 0.2
    };
    assert!(is_near(seen[0].0[0], from) && is_near(seen[seen.len() - 1].0[1], BlockPos::new(9, FLOOR, 5)));
    assert!(seen.windows(2).all(|lines| lines[0].0[1] == lines[1].0[0]), "the path is whole");
    assert!(seen.iter().all(|(_, color)| *color == LIME.into()));

    in_region(&mut app, dimension, from, |world| {
        world.query::<&mut PathTo>().single_mut(world).unwrap().go_to(BlockPos::new(400, FLOOR, 5));
    });
    update_until(&mut app, "the way to a place out of reach is red", |world| {
        lines::<PathGizmos>(world).first().is_some_and(|(_, color)| *color == RED.into())
    });
}

/// Promise, gizmos: Chunks are shown from their change until their region hands them out to a save.
#[test]
fn changed_chunks_are_shown_until_they_are_saved() {
    let saving = SaveSettings::every(Duration::from_secs(3_600));
    let (mut app, dimension, _) = world(TerranePlugin { saving, ..lockstep() });
    save(&mut app);
    switch::<UnsavedGizmos>(&mut app, true);
    run_for(&mut app, Duration::from_millis(600));
    assert!(lines::<UnsavedGizmos>(app.world()).is_empty(), "nothing has changed");
    let stone = id_of(app.world(), "terrane:stone");
    app.world_mut().write_message(SetBlock { dimension, position: BlockPos::new(-20, 37, 3), block: stone });
    update_until(&mut app, "the chunk is seen", |world| !lines::<UnsavedGizmos>(world).is_empty());
    let ends: Vec<Vec3> = lines::<UnsavedGizmos>(app.world()).into_iter().flat_map(|(line, _)| line).collect();
    assert_eq!(ends.len(), 24);
    let [low, high] = [Vec3::min, Vec3::max].map(|choose| ends.iter().copied().reduce(choose).unwrap());
    assert_eq!((low, high), (Vec3::new(-32.0, 32.0, 0.0), Vec3::new(-16.0, 48.0, 16.0)));
    save(&mut app);
    update_until(&mut app, "it is saved", |world| lines::<UnsavedGizmos>(world).is_empty());
}

fn lost_letters(app: &App) -> usize {
    heard::<LetterLost>(app).len()
}

/// Promise, gizmos: A group that is off asks no region, and a halted region is not asked.
#[test]
fn groups_that_are_off_ask_no_region() {
    // A question is too large for these limits, so it is lost, and the loss is reported.
    let letters = LetterLimits { sender_bytes: 1, ..default() };
    let (mut app, dimension, _) = world(TerranePlugin { limits: Limits { letters, ..default() }, ..lockstep() });
    let wait = Duration::from_millis(600);
    switch::<RegionGizmos>(&mut app, true);
    switch::<ChunkGizmos>(&mut app, true);
    run_for(&mut app, wait);
    assert_eq!(lost_letters(&app), 0);
    let asks: [fn(&mut App, bool); 3] = [switch::<BodyGizmos>, switch::<PathGizmos>, switch::<UnsavedGizmos>];
    for switch in asks {
        let before = lost_letters(&app);
        switch(&mut app, true);
        update_until(&mut app, "a question is asked", |world| world.resource::<Heard<LetterLost>>().0.len() > before);
        switch(&mut app, false);
        update(&mut app, 3);
        let asked = lost_letters(&app);
        run_for(&mut app, wait);
        assert_eq!(lost_letters(&app), asked, "it is off");
    }
    order(&mut app, dimension, HERE.column(), RegionOrder::Halt);
    update_until(&mut app, "it halts", |world| region_at(world, dimension, HERE.column()).is_some_and(|at| at.halted));
    let asked = lost_letters(&app);
    switch::<BodyGizmos>(&mut app, true);
    run_for(&mut app, wait);
    assert_eq!(lost_letters(&app), asked, "it is halted");
}

/// Promise, gizmos: One question to a region is under way at a time.
#[test]
fn a_region_that_does_not_answer_is_not_asked_again() {
    // In lockstep, a panic would end the test.
    let (mut app, dimension, _) = world(TerranePlugin::in_memory());
    order(&mut app, dimension, HERE.column(), RegionOrder::Pause);
    update_until(&mut app, "it is paused", |world| {
        region_at(world, dimension, HERE.column()).is_some_and(|at| at.paused)
    });
    for on in [true, false, true] {
        switch::<BodyGizmos>(&mut app, on);
        run_for(&mut app, Duration::from_millis(600));
    }
    // All letters of a tick that panics are lost, and each loss is reported.
    spawn_in_region(&mut app, dimension, HERE, Drift(f32::NAN));
    update(&mut app, 3);
    order(&mut app, dimension, HERE.column(), RegionOrder::Resume);
    update_until(&mut app, "it halts", |world| region_at(world, dimension, HERE.column()).is_some_and(|at| at.halted));
    update(&mut app, 3);
    assert_eq!(lost_letters(&app), 2, "the question and the body");
}

/// Promise, gizmos: Gizmos are of the dimension that the camera sees.
#[test]
fn the_camera_sees_the_gizmos_of_its_dimension() {
    let (mut app, dimension, camera) = world(lockstep());
    let other = spawn_dimension(&mut app, Dimension::new("other", Void));
    viewer(&mut app, other, 8.0, 8.0, 3);
    update_until(&mut app, "the other is there", |world| region_at(world, other, HERE.column()).is_some());
    let (small, tall) = (
        BlockBody { gravity: 0.0, ..BlockBody::new(0.5, 0.5) },
        BlockBody { gravity: 0.0, ..BlockBody::new(0.6, 1.8) },
    );
    spawn_in_region(&mut app, dimension, BlockPos::new(3, FLOOR, 3), (small, Drift(0.0)));
    spawn_in_region(&mut app, other, BlockPos::new(3, FLOOR, 3), (tall, Drift(0.0)));
    switch::<BodyGizmos>(&mut app, true);
    let heights = |world: &World| boxes(world).iter().map(|(low, high)| high.y - low.y).collect::<Vec<_>>();
    update_until(&mut app, "the one is seen", |world| heights(world).len() == 1);
    run_for(&mut app, Duration::from_millis(600));
    assert!((heights(app.world())[0] - 0.5).abs() < 1e-3);
    app.world_mut().entity_mut(camera).insert(Viewer::in_dimension(other).with_radius(3));
    app.update();
    assert!(heights(app.world()).is_empty(), "the one is gone at once");
    update_until(&mut app, "the other is seen", |world| heights(world).len() == 1);
    assert!((heights(app.world())[0] - 1.8).abs() < 1e-3);
}
