//! The published columns are meshed.

use crate::support::*;
use bevy::asset::AssetPlugin;
use bevy_terrane::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;
use terrane_render::{
    ChunkMaterial, ChunkMaterials, ChunkMesh, ChunkMeshProgress, ChunkRenderPlugin, FarMesh, FarMeshProgress,
    FarRenderPlugin, HiddenFarView, RenderOrigin,
};

fn app(plugin: ChunkRenderPlugin, has_assets: bool) -> (App, DimensionId, Entity) {
    let mut app = headless(lockstep());
    app.add_plugins((AssetPlugin::default(), plugin));
    if has_assets {
        app.init_asset::<Mesh>().init_asset::<StandardMaterial>();
    }
    start(&mut app);
    let dimension = spawn_dimension(&mut app, Dimension::new("test", Flat::new()).with_height(-64..64));
    let viewer = viewer(&mut app, dimension, 0.0, 0.0, 3);
    (app, dimension, viewer)
}

fn chunks(world: &mut World) -> BTreeSet<(i64, i64, i64)> {
    let mut meshes = world.query::<&ChunkMesh>();
    meshes.iter(world).map(|mesh| (mesh.chunk.x, mesh.chunk.y, mesh.chunk.z)).collect()
}

fn has_meshes(world: &World, meshes: usize) -> bool {
    let progress = *world.resource::<ChunkMeshProgress>();
    progress.is_done() && progress.meshes == meshes
}

fn published(world: &World) -> BTreeSet<(i64, i64)> {
    world.resource::<PublishedColumns>().iter().map(|(_, column)| (column.pos().x, column.pos().z)).collect()
}

/// The columns with all eight neighbors, by a check of every published column.
fn inner(world: &World) -> BTreeSet<(i64, i64)> {
    let published = published(world);
    let is_inner = |(x, z): &(i64, i64)| (-1..=1).all(|dx| (-1..=1).all(|dz| published.contains(&(x + dx, z + dz))));
    published.iter().copied().filter(is_inner).collect()
}

/// Waits until everything that the viewer needs is loaded and meshed, and returns the meshed columns.
fn settle(app: &mut App) -> BTreeSet<(i64, i64)> {
    let disc = (-3i64..=3).flat_map(|x| (-3i64..=3).map(move |z| (x, z))).filter(|(x, z)| x * x + z * z <= 9);
    let disc: BTreeSet<_> = disc.collect();
    update_until(app, "all is meshed", |world| {
        disc.is_subset(&published(world)) && has_meshes(world, inner(world).len())
    });
    inner(app.world())
}

/// Promise, features: `terrane_render` makes meshes for the published columns.
#[test]
fn meshes_come_follow_edits_and_go() {
    let (mut app, dimension, viewer) = app(ChunkRenderPlugin::default(), true);
    let inner = settle(&mut app);
    assert!(inner.len() >= 9);
    // The top of the terrain is at y = 0; nothing is visible below, at the sides or beyond.
    let surface: BTreeSet<_> = inner.iter().map(|(x, z)| (*x, 0, *z)).collect();
    assert_eq!(chunks(app.world_mut()), surface);
    let world = app.world_mut();
    let mut meshes = world.query::<(&ChunkMesh, &Transform, &Mesh3d, &MeshMaterial3d<ChunkMaterial>)>();
    let material = world.resource::<ChunkMaterials>().opaque.clone();
    for (mesh, transform, handle, shared) in meshes.iter(world) {
        assert_eq!(transform.translation, (IVec3::new(mesh.chunk.x as i32, 0, mesh.chunk.z as i32) * 16).as_vec3());
        assert_eq!(world.resource::<Assets<Mesh>>().get(&handle.0).unwrap().count_vertices(), 4);
        assert_eq!(shared.0, material);
    }

    // A block in the air, at the corner of four columns.
    let stone = world.resource::<BlockTypes>().id("terrane:stone").unwrap();
    world.write_message(SetBlock { dimension, position: BlockPos::new(0, 40, 0), block: stone });
    update_until(&mut app, "the block has a mesh", |world| chunks(world).contains(&(0, 2, 0)));
    update_until(&mut app, "nothing else has one", |world| has_meshes(world, inner.len() + 1));
    app.world_mut().write_message(SetBlock { dimension, position: BlockPos::new(0, 40, 0), block: BlockId::AIR });
    update_until(&mut app, "its mesh is gone", |world| !chunks(world).contains(&(0, 2, 0)));

    app.world_mut().insert_resource(RenderOrigin(BlockPos::new(16, 0, 0)));
    app.update();
    let world = app.world_mut();
    for (mesh, transform) in world.query::<(&ChunkMesh, &Transform)>().iter(world) {
        assert_eq!(transform.translation.x, (mesh.chunk.x * 16 - 16) as f32);
    }

    app.world_mut().despawn(viewer);
    update_until(&mut app, "all meshes are gone", |world| has_meshes(world, 0) && chunks(world).is_empty());
    assert!(app.world().resource::<Assets<Mesh>>().len() < 5, "meshes of equal size are one asset");
}

#[test]
fn a_hole_on_a_border_shows_the_next_chunk() {
    let (mut app, dimension, _) = app(ChunkRenderPlugin::default(), true);
    let inner = settle(&mut app);
    // From the chunk below the surface to the one below that.
    app.world_mut().write_message(SetBlock { dimension, position: BlockPos::new(0, -16, 5), block: BlockId::AIR });
    update_until(&mut app, "the hole has a mesh", |world| chunks(world).contains(&(0, -1, 0)));
    update_until(&mut app, "everything is meshed", |world| world.resource::<ChunkMeshProgress>().is_done());
    let expected = [(0, -1, 0), (0, -2, 0), (-1, -1, 0)];
    let found = chunks(app.world_mut());
    assert!(expected.iter().all(|chunk| found.contains(chunk)), "{found:?}");
    assert_eq!(found.len(), inner.len() + expected.len());
}

#[test]
fn other_dimensions_get_no_meshes() {
    let (mut app, _, _) = app(ChunkRenderPlugin { dimensions: vec!["nether".into()], ..default() }, true);
    update_until(&mut app, "the ground is there", |world| world.resource::<PublishedColumns>().len() >= 29);
    update(&mut app, 5);
    assert_eq!(*app.world().resource::<ChunkMeshProgress>(), ChunkMeshProgress::default());
}

#[test]
fn an_app_without_meshes_runs_on() {
    let (mut app, _, _) = app(ChunkRenderPlugin::default(), false);
    update_until(&mut app, "the ground is there", |world| world.resource::<PublishedColumns>().len() >= 29);
    assert!(chunks(app.world_mut()).is_empty());
}

/// Promise, meshes: What Bevy puts on an entity that is drawn travels with it, also in an app without a renderer.
#[test]
fn visibility_travels_from_region_to_region() {
    let mut app = headless(lockstep());
    app.add_plugins(ChunkRenderPlugin::default());
    let [dimension, other] = ["here", "there"].map(|name| spawn_dimension(&mut app, Dimension::new(name, Flat::new())));
    for dimension in [dimension, other] {
        viewer(&mut app, dimension, 0.0, 0.0, 1);
    }
    start(&mut app);
    update(&mut app, 10);
    spawn_in_region(&mut app, dimension, HERE, Visibility::Hidden);
    update(&mut app, 3);
    in_region(&mut app, dimension, HERE, move |world| {
        let mut hidden = world.query_filtered::<&mut Position, With<Visibility>>();
        hidden.single_mut(world).unwrap().dimension = other;
    });
    update(&mut app, 5);
    let there = ask_region(&mut app, other, HERE, |seen: Query<&Visibility>| seen.iter().copied().collect::<Vec<_>>());
    assert_eq!(there, [Visibility::Hidden]);
}

/// An app with a far view: ten columns around the viewer, of which five are loaded.
fn far_app() -> (App, DimensionId, Entity) {
    let mut app = App::new();
    app.add_plugins((MinimalPlugins, AssetPlugin::default(), lockstep(), ChunkRenderPlugin::default()))
        .add_plugins(FarRenderPlugin)
        .init_asset::<Mesh>()
        .init_asset::<StandardMaterial>();
    start(&mut app);
    let dimension = spawn_dimension(&mut app, Dimension::new("test", Flat::new()).with_height(-64..64));
    let view = FarView::new().with_radius(10).with_detail_radius(6);
    let viewer = Viewer::in_dimension(dimension).with_radius(10);
    let viewer = app.world_mut().spawn((viewer, view, Transform::default())).id();
    // Everything is generated, then only the middle stays loaded.
    update_until(&mut app, "the ground is generated", |world| world.resource::<PublishedColumns>().len() >= 317);
    app.world_mut().get_mut::<Viewer>(viewer).unwrap().radius = 3;
    update_until(&mut app, "only the middle is loaded", |world| world.resource::<PublishedColumns>().len() <= 81);
    (app, dimension, viewer)
}

fn update_until_calm(app: &mut App) {
    let mut calm = 0;
    update_until(app, "it is calm", |world| {
        let is_calm = world.resource::<FarMeshProgress>().is_done() && world.resource::<ChunkMeshProgress>().is_done();
        calm = if is_calm { calm + 1 } else { 0 };
        calm > 100
    });
}

/// The columns whose own chunks are drawn, and the columns that are drawn from the far view. In flat worlds every column has
/// something to show.
fn shown(world: &mut World) -> (BTreeSet<(i64, i64)>, BTreeSet<(i64, i64)>) {
    let drawn = chunks(world).into_iter().map(|(x, _, z)| (x, z)).collect();
    let mut far = BTreeSet::new();
    for (mesh, visibility) in world.query::<(&FarMesh, &Visibility)>().iter(world) {
        let corner = mesh.corner.column();
        match mesh.column {
            _ if *visibility == Visibility::Hidden => {}
            Some(column) => assert!(far.insert((column.x, column.z)), "{column} is shown twice"),
            None => {
                for (x, z) in (0..8).flat_map(|x| (0..8).map(move |z| (corner.x + x, corner.z + z))) {
                    assert!(far.insert((x, z)), "{x} {z} is shown twice");
                }
            }
        }
    }
    (drawn, far)
}

/// Promise, far view: A column is hidden from the far view exactly while its own chunks are drawn.
#[test]
fn a_column_is_seen_from_afar_exactly_while_its_chunks_are_not_drawn() {
    let (mut app, _, viewer) = far_app();
    update_until_calm(&mut app);
    // On a busy machine nothing may be queued before the first column has come.
    update_until(&mut app, "the first chunks are drawn", |world| shown(world).0.len() >= 9);
    update_until_calm(&mut app);
    let disc = |radius: i64, center: i64| {
        let disc = (-radius..=radius).flat_map(move |x| (-radius..=radius).map(move |z| (x, z)));
        disc.filter(move |(x, z)| x * x + z * z <= radius * radius).map(move |(x, z)| (x + center, z))
    };
    let (drawn, far) = shown(app.world_mut());
    assert!(drawn.len() >= 9, "{drawn:?}, {:?}", app.world().resource::<ChunkMeshProgress>());
    assert!(drawn.is_disjoint(&far), "both: {:?}", drawn.intersection(&far).collect::<Vec<_>>());
    assert!(disc(10, 0).all(|column| drawn.contains(&column) || far.contains(&column)), "there is no hole");

    // The same while the viewer walks: a column has its far mesh in the frame in which its chunks go.
    for step in 0..40 {
        move_viewer(&mut app, viewer, (step * 3) as f32, 0.0);
        app.update();
        std::thread::sleep(Duration::from_millis(2));
        let (drawn, far) = shown(app.world_mut());
        assert!(disc(5, 0).all(|column| drawn.contains(&column) || far.contains(&column)), "a hole in step {step}");
    }
    update_until(&mut app, "the viewer's ground is drawn", |world| {
        let drawn = shown(world).0;
        !drawn.contains(&(-2, 0)) && drawn.contains(&(7, 0))
    });
    update_until_calm(&mut app);
    let (drawn, far) = shown(app.world_mut());
    assert!(drawn.is_disjoint(&far) && !drawn.contains(&(-2, 0)) && drawn.contains(&(7, 0)));
}

#[test]
fn meshes_from_afar_go_with_their_listener_or_when_it_is_hidden() {
    let (mut app, _, viewer) = far_app();
    update_until_calm(&mut app);
    let meshes = |app: &App| app.world().resource::<FarMeshProgress>().meshes;
    assert!(meshes(&app) > 0);
    app.world_mut().entity_mut(viewer).insert(HiddenFarView);
    update_until(&mut app, "no mesh is seen", |world| world.resource::<FarMeshProgress>().meshes == 0);
    app.world_mut().entity_mut(viewer).remove::<HiddenFarView>();
    update_until(&mut app, "meshes are seen again", |world| world.resource::<FarMeshProgress>().meshes > 0);
    app.world_mut().insert_resource(RenderOrigin(BlockPos::new(0, 100, 0)));
    app.update();
    let world = app.world_mut();
    let mut far = world.query::<(&FarMesh, &Transform)>();
    assert!(far.iter(world).all(|(mesh, transform)| transform.translation.y == (mesh.corner.y - 100) as f32));
    app.world_mut().despawn(viewer);
    update_until(&mut app, "all meshes are gone", |world| world.query::<&FarMesh>().iter(world).next().is_none());
    update_until(&mut app, "their assets are gone", |world| world.resource::<Assets<Mesh>>().len() < 5);
}
