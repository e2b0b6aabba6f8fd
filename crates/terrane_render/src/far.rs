//! Meshes for far views.

mod mesher;
mod systems;
mod tiles;

use super::{add_looks, has_renderer};
use crate::chunk_meshes::{ChunkMeshProgress, RenderOrigin};
use bevy::prelude::*;
use bevy::transform::TransformSystems;
use bevy_terrane::space::{BlockPos, ColumnPos, DimensionId};
use systems::{FarMesher, apply, dispatch, hear, hide_drawn, move_meshes};

/// Draws the summaries of the main world's [`FarView`](bevy_terrane::view::FarView)s: a top for each cell and walls between them, in
/// the colors of the block types, with one mesh for 8 x 8 columns.
///
/// Add it after `DefaultPlugins` and [`ChunkRenderPlugin`](super::ChunkRenderPlugin). A column is hidden while its own
/// chunks are drawn; at a seam where the cells are one block wide, both meet without a step. So the
/// [`detail_radius`](bevy_terrane::view::FarView::detail_radius) should reach at least two columns further than the loaded columns.
///
/// Cells without an opaque top, such as transparent water, are drawn as if they were opaque. Trees are as wide at the
/// bottom as seen from above.
#[derive(Clone, Copy, Debug, Default)]
pub struct FarRenderPlugin;

/// A mesh of a far view. The entity also has `Mesh3d`, `MeshMaterial3d`, a `Transform` and a `Visibility`, and exists as
/// long as its tile or column.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, Reflect)]
#[type_path = "terrane_render"]
#[reflect(Component, Clone)]
pub struct FarMesh {
    /// The dimension.
    pub dimension: DimensionId,
    /// The column, if the mesh has only one.
    pub column: Option<ColumnPos>,
    /// The origin of the mesh: the lowest block of its tile along x and z, at the height of the tile's lowest cell.
    pub corner: BlockPos,
}

/// Marks a [`FarView`](bevy_terrane::view::FarView) that is not drawn, in an app that both draws and serves clients.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq, Reflect)]
#[type_path = "terrane_render"]
#[reflect(Component, Clone, Default)]
pub struct HiddenFarView;

/// The material of all far views: white, rough, colored by the vertices. To use another one, insert the resource before the app
/// starts, or change the asset.
#[derive(Resource, Clone, Debug, Default, PartialEq, Eq, Deref, Reflect)]
#[type_path = "terrane_render"]
#[reflect(Resource, Clone, Default)]
pub struct FarMaterial(pub Handle<StandardMaterial>);

/// The progress of the far views' meshes: tiles that are queued or in flight, and meshes, shown or hidden.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq, Deref, Reflect)]
#[type_path = "terrane_render"]
#[reflect(Resource, Clone, Default)]
pub struct FarMeshProgress(pub ChunkMeshProgress);

impl Plugin for FarRenderPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<FarMeshProgress>().init_resource::<RenderOrigin>();
        app.register_type::<FarMaterial>()
            .register_type::<FarMesh>()
            .register_type::<FarMeshProgress>()
            .register_type::<HiddenFarView>()
            .register_type::<RenderOrigin>();
        add_looks(app);
    }

    /// Runs when every other plugin has added its assets.
    fn finish(&self, app: &mut App) {
        if !has_renderer(app, "FarRenderPlugin") {
            return;
        }
        if !app.world().contains_resource::<FarMaterial>()
            && let Some(mut materials) = app.world_mut().get_resource_mut::<Assets<StandardMaterial>>()
        {
            let material = materials.add(StandardMaterial { perceptual_roughness: 1.0, reflectance: 0.1, ..default() });
            app.insert_resource(FarMaterial(material));
        }
        let moved = resource_changed::<RenderOrigin>;
        app.init_resource::<FarMesher>()
            .add_systems(PreUpdate, (hear, hide_drawn, apply, dispatch).chain().after(super::systems::dispatch))
            .add_systems(PostUpdate, move_meshes.run_if(moved).before(TransformSystems::Propagate));
    }
}
