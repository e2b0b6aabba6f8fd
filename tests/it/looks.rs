//! Looks of blocks: from files, in code, and by meshers of the game.

use crate::support::process::{output, program};
use crate::support::*;
use bevy::asset::AssetPlugin;
use bevy::image::{CompressedImageFormats, ImageLoader};
use bevy::log::LogPlugin;
use bevy::mesh::MeshTag;
use bevy_terrane::prelude::*;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use terrane_render::*;

const STONE_ONLY: &str = r#"{ "test:stone": (all: "stone.png") }"#;

/// A white PNG of 2 x 2 pixels.
const PNG: [u8; 71] = [
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00, 0x00,
    0x02, 0x00, 0x00, 0x00, 0x02, 0x08, 0x06, 0x00, 0x00, 0x00, 0x72, 0xb6, 0x0d, 0x24, 0x00, 0x00, 0x00, 0x0e, 0x49,
    0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0xf8, 0x0f, 0x05, 0x0c, 0x30, 0x06, 0x00, 0x8f, 0x82, 0x0f, 0xf1, 0x21, 0xcd,
    0x18, 0x27, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];

/// A world of stone, with the assets of a folder.
fn app(assets: &Path, plugin: ChunkRenderPlugin) -> (App, DimensionId) {
    app_with((assets, false), plugin)
}

/// The same; with `true`, files that are saved are read again.
fn app_with((assets, watch): (&Path, bool), plugin: ChunkRenderPlugin) -> (App, DimensionId) {
    let mut app = headless(lockstep());
    let file_path = assets.display().to_string();
    let assets = AssetPlugin { file_path, watch_for_changes_override: Some(watch), ..default() };
    app.add_plugins(assets).init_asset::<Image>().register_asset_loader(ImageLoader::new(CompressedImageFormats::NONE));
    app.add_plugins(plugin).init_asset::<Mesh>();
    for name in ["test:stone", "test:glass", "test:mist"] {
        app.register_block(BlockType::new(name)).unwrap();
    }
    app.register_block(BlockType::new("test:lamp").with_light(12)).unwrap();
    start(&mut app);
    let ground = Flat::new().with_layers(-4, [("test:stone", 5)]);
    let dimension = spawn_dimension(&mut app, Dimension::new("test", ground).with_height(-64..64));
    viewer(&mut app, dimension, 0.0, 0.0, 3);
    (app, dimension)
}

fn with_looks(paths: &[&str]) -> ChunkRenderPlugin {
    ChunkRenderPlugin { looks: paths.iter().map(ToString::to_string).collect(), ..default() }
}

fn modes(world: &mut World) -> BTreeSet<u8> {
    world.query::<&ChunkMesh>().iter(world).map(|mesh| mesh.mode as u8).collect()
}

fn all_are(app: &mut App, what: &str, mode: RenderMode) {
    update_until(app, what, |world| modes(world) == BTreeSet::from([mode as u8]));
    update_until(app, "all is meshed", |world| world.resource::<ChunkMeshProgress>().is_done());
    assert_eq!(modes(app.world_mut()), BTreeSet::from([mode as u8]));
}

/// Promise, looks: A file of looks that changes while the game runs is read again, and the chunks in view change; a file with a
/// mistake leaves them as they were.
#[test]
fn a_file_of_looks_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("stone.png"), PNG).unwrap();
    let file = folder.path().join("my.looks.ron");
    fs::write(&file, STONE_ONLY).unwrap();
    let (mut app, _) = app(folder.path(), with_looks(&["my.looks.ron"]));
    all_are(&mut app, "the ground is drawn", RenderMode::Opaque);

    let change = |app: &mut App, text: &str| {
        fs::write(&file, text).unwrap();
        // The watcher of Bevy's feature `file_watcher` does the same.
        app.world().resource::<AssetServer>().reload("my.looks.ron");
    };
    change(&mut app, r#"{ "test:stone": (all: "stone.png", mode: CutOut) }"#);
    all_are(&mut app, "the ground has holes", RenderMode::CutOut);
    change(&mut app, r#"{ "test:stone": (all: "stone.png", mode: Blended, emission: 99) }"#);
    update(&mut app, 30);
    all_are(&mut app, "nothing changed", RenderMode::CutOut);
    change(&mut app, r#"{ "test:stone": (all: "stone.png", mode: Blended) }"#);
    all_are(&mut app, "the file is mended", RenderMode::Blended);
}

/// Promise, looks: The chunks in view change within a second after a file of looks was saved.
#[test]
fn a_saved_file_is_seen_within_a_second() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("stone.png"), PNG).unwrap();
    let file = folder.path().join("my.looks.ron");
    fs::write(&file, STONE_ONLY).unwrap();
    let (mut app, _) = app_with((folder.path(), true), with_looks(&["my.looks.ron"]));
    all_are(&mut app, "the ground is drawn", RenderMode::Opaque);
    for mode in [RenderMode::CutOut, RenderMode::Blended, RenderMode::Opaque] {
        fs::write(&file, format!(r#"{{ "test:stone": (all: "stone.png", mode: {mode:?}) }}"#)).unwrap();
        all_are(&mut app, "the saved look is seen", mode);
    }
}

#[test]
fn later_looks_win_and_a_game_adds_its_own() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("stone.png"), PNG).unwrap();
    fs::write(folder.path().join("a.looks.ron"), STONE_ONLY).unwrap();
    fs::write(folder.path().join("b.looks.ron"), r#"{ "test:stone": (mode: CutOut) }"#).unwrap();
    let (mut app, _) = app(folder.path(), with_looks(&["a.looks.ron", "b.looks.ron"]));
    all_are(&mut app, "the second file wins", RenderMode::CutOut);
    let look = BlockLook { mode: RenderMode::Blended, ..BlockLook::all("stone.png") };
    let own = BlockLooks { blocks: [("test:stone".to_owned(), look)].into() };
    let own = app.world_mut().resource_mut::<Assets<BlockLooks>>().add(own);
    app.world_mut().resource_mut::<ChunkLooks>().push(own);
    all_are(&mut app, "the game's look wins", RenderMode::Blended);
}

/// Promise, looks: A texture that is missing or has another size gives one warning that names block and file.
#[test]
fn a_missing_texture_gives_one_warning() {
    let mut program = program();
    program.args(["--exact", "looks::process_with_missing_textures", "--nocapture"]).env("TERRANE_TEST_LOOKS", "1");
    let output = output(&mut program);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    let warnings: Vec<_> = text.lines().filter(|line| line.contains("checkerboard")).collect();
    let of = |block: &str, file: &str| {
        let found: Vec<_> = warnings.iter().filter(|line| line.contains(block) && line.contains(file)).collect();
        assert_eq!(found.len(), 1, "{block}: {text}");
        (*found[0]).to_owned()
    };
    assert!(of("test:stone", "absent.png").contains("cannot be loaded"));
    assert!(of("test:glass", "stone.png").contains("has 2 x 2 pixels and not 2 x 4"));
    assert!(text.contains("wrong.looks.ron:2") && text.contains("test:mist"), "{text}");
    let misfits: Vec<_> = text.lines().filter(|line| line.contains("fit no block")).collect();
    assert!(misfits.len() == 1 && misfits[0].contains("WARN") && misfits[0].contains("misfits.looks.ron"), "{text}");
    assert!(misfits[0].contains("\"test:ston\" (is \"test:stone\" meant?)"), "{misfits:?}");
    assert!(misfits[0].contains("\"test:mist[level=99]\": the block has no properties"), "{misfits:?}");
}

/// Runs only in the process that the test above starts; otherwise it does nothing.
#[test]
fn process_with_missing_textures() {
    if std::env::var_os("TERRANE_TEST_LOOKS").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("stone.png"), PNG).unwrap();
    let misfits = r#"{ "test:stone": (all: "stone.png"), "test:ston": (), "test:mist[level=99]": () }"#;
    fs::write(folder.path().join("misfits.looks.ron"), misfits).unwrap();
    let looks = r#"{
        "test:mist": (all: "stone.png"),
        "test:stone": (all: "absent.png"),
        "test:glass": (all: (texture: "stone.png", frames: 2)),
    }"#;
    fs::write(folder.path().join("my.looks.ron"), looks).unwrap();
    fs::write(folder.path().join("wrong.looks.ron"), "{\n \"test:mist\": (al: 3)\n}").unwrap();
    let mut plain = App::new();
    plain.add_plugins(LogPlugin::default());
    let (mut app, dimension) =
        app(folder.path(), with_looks(&["misfits.looks.ron", "my.looks.ron", "wrong.looks.ron"]));
    all_are(&mut app, "the ground is drawn", RenderMode::Opaque);
    let stone = id_of(app.world(), "test:stone");
    app.world_mut().write_message(SetBlock { dimension, position: BlockPos::new(0, 40, 0), block: stone });
    update(&mut app, 30);
}

#[test]
fn a_single_block_is_drawn_and_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let (mut app, _) = app(folder.path(), ChunkRenderPlugin::default());
    all_are(&mut app, "the ground is drawn", RenderMode::Opaque);
    let stone = id_of(app.world(), "test:stone");
    let item = app.world_mut().spawn(BlockMesh(stone)).id();
    update(&mut app, 2);
    let corners = |app: &App, item: Entity| {
        let mesh = app.world().get::<Mesh3d>(item).map(|mesh| mesh.0.clone());
        mesh.map(|mesh| app.world().resource::<Assets<Mesh>>().get(&mesh).unwrap().count_vertices())
    };
    assert_eq!(corners(&app, item), Some(24), "six faces");
    let place = app.world().get::<MeshTag>(item).unwrap().0;
    app.world_mut().get_mut::<BlockMesh>(item).unwrap().0 = BlockId::AIR;
    update(&mut app, 2);
    assert_eq!(corners(&app, item), None);
    app.world_mut().despawn(item);
    update(&mut app, 5);
    let again = app.world_mut().spawn(BlockMesh(stone)).id();
    update(&mut app, 2);
    assert_eq!(app.world().get::<MeshTag>(again).unwrap().0, place, "its quads were given back");
    app.world_mut().entity_mut(again).remove::<BlockMesh>();
    update(&mut app, 2);
    assert_eq!(corners(&app, again), None, "an entity without quads must not show those of another");
}

/// How often an entity's light has changed.
#[derive(Resource, Default)]
struct Changes(usize);

/// Promise, looks: A single block has the light of its place, which changes as the block moves and as the place gets lighter or darker.
#[test]
fn a_single_block_has_the_light_of_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let (mut app, dimension) = app(folder.path(), ChunkRenderPlugin::default());
    app.init_resource::<Changes>().add_systems(
        First,
        |lights: Query<(), Changed<PlaceLight>>, mut changes: ResMut<Changes>| {
            changes.0 += lights.iter().count();
        },
    );
    all_are(&mut app, "the ground is drawn", RenderMode::Opaque);
    app.world_mut().spawn((Camera3d::default(), Viewer::in_dimension(dimension).with_radius(1), Transform::default()));
    let [stone, lamp] = ["test:stone", "test:lamp"].map(|name| id_of(app.world(), name));
    // A closed room of one cell, far from the wall of another.
    let middle = BlockPos::new(8, 10, 8);
    let set = |app: &mut App, position, block| {
        app.world_mut().write_message(SetBlock { dimension, position, block });
    };
    for (x, y, z) in (-1..=1).flat_map(|x| (-1..=1).flat_map(move |y| (-1..=1).map(move |z| (x, y, z)))) {
        if (x, y, z) != (0, 0, 0) {
            set(&mut app, middle.offset(x, y, z), stone);
        }
    }
    update(&mut app, 30);
    let item = app.world_mut().spawn((BlockMesh(stone), Transform::default())).id();
    // As propagation would set it. The middle of the block is half a block beyond.
    let place = |app: &mut App, x: i64, y: i64, z: i64| {
        let at = Vec3::new(x as f32, y as f32, z as f32) - Vec3::splat(0.1);
        app.world_mut().entity_mut(item).insert(GlobalTransform::from_translation(at));
        update(app, 2);
        let light = app.world().get::<PlaceLight>(item).unwrap();
        [light.sky, light.block]
    };
    assert_eq!(place(&mut app, 8, 13, 8), [15, 0], "under the sky");
    assert_eq!(place(&mut app, 8, 10, 8), [0, 0], "in the closed room");
    let changes = app.world().resource::<Changes>().0;
    assert_eq!(place(&mut app, 8, 10, 8), [0, 0]);
    update(&mut app, 10);
    assert_eq!(app.world().resource::<Changes>().0, changes, "nothing happened");
    assert_eq!(place(&mut app, 8, 11, 8), [15, 0], "in the roof it has the light above it");
    place(&mut app, 8, 10, 8);

    let light = |world: &World| world.get::<PlaceLight>(item).map(|light| [light.sky, light.block]);
    set(&mut app, middle.offset(0, 1, 0), BlockId::AIR);
    update_until(&mut app, "light falls into the room", |world| light(world) == Some([15, 0]));
    set(&mut app, middle.offset(0, 1, 0), lamp);
    update_until(&mut app, "a lamp lights the room", |world| light(world) == Some([0, 11]));
}

/// Promise, looks: A camera in a liquid sees its fog, and outside again what it saw before.
#[test]
fn a_camera_under_water_sees_its_fog() {
    let folder = tempfile::tempdir().unwrap();
    let (mut app, dimension) = app(folder.path(), ChunkRenderPlugin::default());
    all_are(&mut app, "the ground is drawn", RenderMode::Opaque);
    let viewer = Viewer::in_dimension(dimension).with_radius(1);
    let eye = GlobalTransform::from_xyz(0.5, 10.5, 0.5);
    let haze = DistanceFog { color: Color::srgb(1.0, 0.0, 0.0), ..default() };
    let dry = app.world_mut().spawn((Camera3d::default(), eye, viewer, Transform::default())).id();
    let hazy = app.world_mut().spawn((Camera3d::default(), eye, viewer, Transform::default(), haze)).id();
    let is_under = |world: &World, camera| world.get::<InsideLiquid>(camera).is_some();
    let color = |world: &World, camera| world.get::<DistanceFog>(camera).map(|fog| fog.color);
    let [water, air] = [id_of(app.world(), "terrane:water"), BlockId::AIR];
    let position = BlockPos::new(0, 10, 0);
    app.world_mut().write_message(SetBlock { dimension, position, block: water });
    update_until(&mut app, "both are under water", |world| is_under(world, dry) && is_under(world, hazy));
    assert_eq!(color(app.world(), dry), color(app.world(), hazy));
    assert_ne!(color(app.world(), hazy), Some(Color::srgb(1.0, 0.0, 0.0)));
    // The surface of water is two sixteenths below the top of its block.
    app.world_mut().entity_mut(dry).insert(GlobalTransform::from_xyz(0.5, 10.9, 0.5));
    update(&mut app, 2);
    assert!(!is_under(app.world(), dry) && color(app.world(), dry).is_none());
    app.world_mut().write_message(SetBlock { dimension, position, block: air });
    update_until(&mut app, "the water is gone", |world| !is_under(world, hazy));
    assert_eq!(color(app.world(), hazy), Some(Color::srgb(1.0, 0.0, 0.0)));
}

/// A mesher that only counts stone.
struct Counting {
    draws: bool,
}

#[derive(Component, Debug, PartialEq)]
struct Counted(ChunkPos, usize);

impl BlockMesher for Counting {
    fn draws(&self, block: &BlockType) -> bool {
        self.draws && self.reads(block)
    }

    fn reads(&self, block: &BlockType) -> bool {
        block.name() == "test:stone"
    }

    fn mesh(&self, chunk: ChunkPos, blocks: &PaddedBlocks, types: &BlockRegistry) -> Option<MeshPart> {
        let places = (0..16).flat_map(|x| (0..16).flat_map(move |y| (0..16).map(move |z| [x, y, z])));
        let count = places.filter(|place| self.reads(types.block(blocks.block(*place)))).count();
        (count > 0).then(|| MeshPart::new(Counted(chunk, count)))
    }
}

fn counted(world: &mut World, chunk: ChunkPos) -> Option<usize> {
    let mut parts = world.query::<&Counted>();
    let of_chunk: Vec<_> = parts.iter(world).filter(|part| part.0 == chunk).map(|part| part.1).collect();
    assert!(of_chunk.len() <= 1, "{of_chunk:?}");
    of_chunk.first().copied()
}

/// Promise, looks: A mesher of the game makes colliders of blocks that the crate draws, buried ones included.
#[test]
fn a_mesher_reads_what_the_crate_draws() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = ChunkRenderPlugin { meshers: vec![Arc::new(Counting { draws: false })], ..default() };
    let (mut app, dimension) = app(folder.path(), plugin);
    let below = ChunkPos::new(0, -1, 0);
    update_until(&mut app, "the ground is counted", |world| counted(world, below) == Some(16 * 16 * 4));
    update_until(&mut app, "the ground is drawn", |world| !modes(world).is_empty());
    app.world_mut().write_message(SetBlock { dimension, position: BlockPos::new(3, -2, 3), block: BlockId::AIR });
    update_until(&mut app, "the hole is counted", |world| counted(world, below) == Some(16 * 16 * 4 - 1));
}

/// Promise, looks: A mesher of the game draws the blocks that it wants, follows every change, and goes with the chunk.
#[test]
fn a_game_brings_its_own_mesher() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = ChunkRenderPlugin { meshers: vec![Arc::new(Counting { draws: true })], ..default() };
    let (mut app, dimension) = app(folder.path(), plugin);
    let below = ChunkPos::new(0, -1, 0);
    update_until(&mut app, "the ground is counted", |world| counted(world, below) == Some(16 * 16 * 4));
    assert!(modes(app.world_mut()).is_empty(), "the crate draws nothing of it");
    app.world_mut().write_message(SetBlock { dimension, position: BlockPos::new(3, -2, 3), block: BlockId::AIR });
    update_until(&mut app, "the hole is counted", |world| counted(world, below) == Some(16 * 16 * 4 - 1));
    let glass = id_of(app.world(), "test:glass");
    app.world_mut().write_message(SetBlock { dimension, position: BlockPos::new(3, 5, 3), block: glass });
    update_until(&mut app, "other blocks are drawn", |world| !modes(world).is_empty());
    let viewers: Vec<_> = app.world_mut().query_filtered::<Entity, With<Viewer>>().iter(app.world()).collect();
    viewers.into_iter().for_each(|viewer| app.world_mut().entity_mut(viewer).despawn());
    update_until(&mut app, "all parts are gone", |world| world.query::<&Counted>().iter(world).next().is_none());
}
