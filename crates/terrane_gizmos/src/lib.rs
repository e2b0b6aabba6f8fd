#![doc = include_str!("../README.md")]

mod borders;
mod entities;
mod eyes;
mod lines;
mod sight;

use bevy::prelude::*;
use bevy::reflect::GetTypeRegistration;
use bevy::transform::TransformSystems;
use bevy_terrane::view::PublishedColumns;
use sight::Sights;
use terrane_render::RenderOrigin;

/// Draws the borders of regions: walls of lines around the sections of each region, empty sections included, up to 16 chunks away
/// from the camera. Each region has its color of the overlay's map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Reflect, GizmoConfigGroup)]
#[type_path = "terrane_gizmos"]
#[reflect(Clone, Default)]
pub struct RegionGizmos;

/// Draws the edges of chunks up to four chunks away from the camera's chunk, whose own edges are yellow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Reflect, GizmoConfigGroup)]
#[type_path = "terrane_gizmos"]
#[reflect(Clone, Default)]
pub struct ChunkGizmos;

/// Draws the boxes of entities with a [`BlockBody`](bevy_terrane::simulation::BlockBody), in white.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Reflect, GizmoConfigGroup)]
#[type_path = "terrane_gizmos"]
#[reflect(Clone, Default)]
pub struct BodyGizmos;

/// Draws the rest of the path of each entity with a [`PathTo`](bevy_terrane::simulation::PathTo): green if it ends at the goal, and red
/// if it only leads near it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Reflect, GizmoConfigGroup)]
#[type_path = "terrane_gizmos"]
#[reflect(Clone, Default)]
pub struct PathGizmos;

/// Draws the edges of chunks with changes that their region has not handed out to a save yet, in orange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Reflect, GizmoConfigGroup)]
#[type_path = "terrane_gizmos"]
#[reflect(Clone, Default)]
pub struct UnsavedGizmos;

/// Adds all gizmos, switched off. Add it after `DefaultPlugins`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TerraneGizmosPlugin;

impl Plugin for TerraneGizmosPlugin {
    fn build(&self, app: &mut App) {
        if !app.world().contains_resource::<Assets<GizmoAsset>>() {
            error!(
                "TerraneGizmosPlugin draws nothing: it must be added after DefaultPlugins, in an app with Bevy's GizmoPlugin"
            );
            return;
        }
        add_group::<RegionGizmos>(app);
        add_group::<ChunkGizmos>(app);
        add_group::<BodyGizmos>(app);
        add_group::<PathGizmos>(app);
        add_group::<UnsavedGizmos>(app);
        app.init_resource::<RenderOrigin>().init_resource::<Sights>().add_systems(
            PostUpdate,
            (
                borders::draw_regions.run_if(is_on::<RegionGizmos>),
                borders::draw_chunks.run_if(is_on::<ChunkGizmos>),
                (
                    sight::look_into_regions,
                    (
                        entities::draw_bodies.run_if(is_on::<BodyGizmos>),
                        entities::draw_paths.run_if(is_on::<PathGizmos>),
                        borders::draw_unsaved.run_if(is_on::<UnsavedGizmos>),
                    ),
                )
                    .chain(),
            )
                .after(TransformSystems::Propagate)
                .run_if(resource_exists::<PublishedColumns>),
        );
    }
}

fn add_group<Group: GizmoConfigGroup + GetTypeRegistration>(app: &mut App) {
    app.register_type::<Group>().insert_gizmo_config(Group::default(), GizmoConfig { enabled: false, ..default() });
}

fn is_on<Group: GizmoConfigGroup>(config: Res<GizmoConfigStore>) -> bool {
    is_enabled::<Group>(&config)
}

fn is_enabled<Group: GizmoConfigGroup>(config: &GizmoConfigStore) -> bool {
    config.get_config::<Group>().is_some_and(|(config, _)| config.enabled)
}
