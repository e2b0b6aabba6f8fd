//! Inspectors, scenes and remote tools see the crate's components and resources through Bevy's reflection.

use crate::support::*;
use bevy::asset::AssetPlugin;
use bevy::ecs::reflect::{AppTypeRegistry, ReflectComponent};
use bevy::reflect::GetPath;
use bevy_terrane::prelude::*;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use terrane_render::{ChunkRenderPlugin, FarRenderPlugin};

/// The names that the text of a room exports, those of private types re-exported from other modules included.
fn exported(text: &str) -> BTreeSet<String> {
    let uses = text.split("\npub use ").skip(1).filter_map(|rest| rest.split(';').next());
    let reexported =
        uses.flat_map(|list| list.rsplit("::").next().unwrap_or_default().split(['{', '}', ',', ' ', '\n']));
    let defined = text.lines().filter_map(|line| line.strip_prefix("pub struct ")?.split([';', '(', ' ', '<']).next());
    reexported.chain(defined).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The components and resources that a source file defines.
fn defined(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let traits = line.strip_prefix("#[derive(").and_then(|rest| rest.strip_suffix(")]")).unwrap_or_default();
        if traits.split(", ").any(|it| it == "Component" || it == "Resource") {
            let item = lines.find(|line| line.contains("struct ") || line.contains("enum ")).unwrap_or_default();
            let item = item.strip_prefix("pub struct ").or(item.strip_prefix("pub enum "));
            names.extend(item.and_then(|item| item.split([';', '(', ' ', '<']).next()).map(str::to_owned));
        }
    }
    names
}

fn collect_rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The public components and resources of the crate in `folder`, which `rooms` export.
fn public_types(folder: &str, rooms: &[&str]) -> BTreeSet<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let public: BTreeSet<String> =
        rooms.iter().flat_map(|room| exported(&fs::read_to_string(source.join(room)).unwrap())).collect();
    let mut files = Vec::new();
    collect_rust_files(&source, &mut files);
    let all = files.iter().flat_map(|file| defined(&fs::read_to_string(file).unwrap()));
    all.filter(|name| public.contains(name)).collect()
}

/// Promise, plugin: All public components and resources have reflection, and the plugins register them.
#[test]
fn every_public_component_and_resource_is_registered() {
    // `view` re-exports the messages of the coordinator.
    let rooms = ["coordinator/messages.rs", "plugin.rs", "simulation.rs", "testing.rs", "view.rs"];
    let mut of_worlds = public_types("src", &rooms);
    // A generic type is registered with its parameter, by the game.
    assert!(of_worlds.remove("Heard"));
    assert!(of_worlds.len() >= 35 && of_worlds.contains("Viewer") && of_worlds.contains("RegionColumns"));
    let of_meshes = public_types("crates/terrane_render/src", &["lib.rs"]);
    assert!(of_meshes.len() >= 10 && of_meshes.contains("ChunkMesh"), "{of_meshes:?}");
    let helpers = public_types("crates/terrane_dev/src", &["lib.rs"]);

    let mut app = game(lockstep());
    app.add_plugins((AssetPlugin::default(), ChunkRenderPlugin::default(), FarRenderPlugin));
    // The plugins of `terrane_dev`, which need a window, register their own.
    app.register_type::<terrane_dev::FlyCamera>()
        .register_type::<terrane_dev::FirstPerson>()
        .register_type::<terrane_dev::Pictures>();
    let registry = app.world().resource::<AppTypeRegistry>().read();
    for (of, expected) in [("bevy_terrane", of_worlds), ("terrane_render", of_meshes), ("terrane_dev", helpers)] {
        let registered = |name: &String| {
            let found = registry.get_with_type_path(&format!("{of}::{name}"));
            found.is_some_and(|found| found.data::<ReflectComponent>().is_some())
        };
        let missing: Vec<_> = expected.iter().filter(|name| !registered(name)).collect();
        assert!(missing.is_empty(), "their plugin must register these types of {of}: {missing:?}");
    }
}

#[test]
fn an_inspector_reads_and_changes_a_viewer_by_names() {
    let mut app = game(lockstep());
    let dimension = flat(&mut app);
    let viewer = viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 5);

    let registry = app.world().resource::<AppTypeRegistry>().clone();
    let registry = registry.read();
    let component = |path| registry.get_with_type_path(path).unwrap().data::<ReflectComponent>().unwrap();
    let open = component("bevy_terrane::DimensionOpen");
    let entity = dimension_entity(app.world_mut(), dimension);
    let id = open.reflect(app.world().entity(entity)).unwrap();
    assert_eq!(id.path::<u64>(".id.0"), Ok(&dimension.0));

    let mut entity = app.world_mut().entity_mut(viewer);
    let mut viewer = component("bevy_terrane::Viewer").reflect_mut(&mut entity).unwrap();
    assert_eq!(*viewer.path::<u32>(".radius").unwrap(), 1);
    *viewer.path_mut::<u32>(".radius").unwrap() = 3;
    drop(registry);
    update_until(&mut app, "the larger disc is loaded", |world| {
        world.resource::<PublishedColumns>().column(dimension, ColumnPos::new(3, 0)).is_some()
    });
}
