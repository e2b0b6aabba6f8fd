//! Inspectors, scenes and remote tools see the crate's components and resources through Bevy's reflection.

use crate::support::*;
use bevy::ecs::reflect::{AppTypeRegistry, ReflectComponent};
use bevy::reflect::GetPath;
use bevy_terrane::prelude::*;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

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

/// Promise, plugin: All public components and resources have reflection, and the plugin registers them.
#[test]
fn every_public_component_and_resource_is_registered() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    // `view` re-exports the messages of the coordinator.
    let rooms =
        ["coordinator/messages.rs", "dev.rs", "plugin.rs", "render.rs", "simulation.rs", "testing.rs", "view.rs"];
    let public: BTreeSet<String> =
        rooms.iter().flat_map(|room| exported(&fs::read_to_string(source.join(room)).unwrap())).collect();
    let mut files = Vec::new();
    collect_rust_files(&source, &mut files);
    let all = files.iter().flat_map(|file| defined(&fs::read_to_string(file).unwrap()));
    let mut expected: BTreeSet<String> = all.filter(|name| public.contains(name)).collect();
    if !cfg!(feature = "render") {
        expected.retain(|name| !["ChunkMaterial", "RenderOrigin"].contains(&name.as_str()) && !name.contains("Mesh"));
        expected.remove("HiddenFarView");
    }
    // A generic type is registered with its parameter, by the game.
    assert!(expected.remove("Heard"));
    assert!(expected.len() >= 35 && expected.contains("Viewer") && expected.contains("RegionColumns"), "{expected:?}");

    let mut app = game(lockstep());
    // The plugins of `dev`, which need a window, register their own.
    #[cfg(feature = "dev")]
    app.register_type::<bevy_terrane::dev::FlyCamera>()
        .register_type::<bevy_terrane::dev::FirstPerson>()
        .register_type::<bevy_terrane::dev::Pictures>();
    if !cfg!(feature = "dev") {
        expected.retain(|name| !["FlyCamera", "FirstPerson", "Pictures"].contains(&name.as_str()));
    }
    let registry = app.world().resource::<AppTypeRegistry>().read();
    let registered = |name: &String| {
        let found = registry.get_with_type_path(&format!("bevy_terrane::{name}"));
        found.is_some_and(|found| found.data::<ReflectComponent>().is_some())
    };
    let missing: Vec<_> = expected.iter().filter(|name| !registered(name)).collect();
    assert!(missing.is_empty(), "add them to src/plugin/reflection.rs: {missing:?}");
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
