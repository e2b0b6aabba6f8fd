//! Meshes for what is seen from afar.

mod ground;
mod mesher;
mod systems;
mod tiles;

use super::{ChunkMeshProgress, RenderOrigin, add_material};
use crate::space::{BlockPos, ColumnPos, DimensionId};
use bevy::prelude::*;
use bevy::transform::TransformSystems;
use systems::{FarMesher, apply, dispatch, hear, hide_drawn, move_meshes};

/// Draws what the [`FarView`](crate::view::FarView)s of the main world know: a top for each cell and walls between them, in
/// the colors of the block types, one mesh for 8 x 8 columns.
///
/// It is added after `DefaultPlugins` and [`ChunkRenderPlugin`](super::ChunkRenderPlugin). A column is hidden while its own
/// chunks are drawn; at a seam where the cells are one block wide, both meet without a step. So let the
/// [`detail_radius`](crate::view::FarView::detail_radius) reach two columns further than what is loaded, at least.
///
/// What has no top that is opaque, such as water that can be seen through, is drawn as if it was opaque. Trees are as wide
/// down to the ground as from above.
#[derive(Clone, Copy, Debug, Default)]
pub struct FarRenderPlugin;

/// A mesh of what is seen from afar. The entity also has `Mesh3d`, `MeshMaterial3d`, a `Transform` and a `Visibility`, and
/// comes and goes as the tile or column does.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct FarMesh {
    /// Its dimension.
    pub dimension: DimensionId,
    /// The column, if it is the mesh of a single one.
    pub column: Option<ColumnPos>,
    /// The block that the mesh counts from: the lowest of its tile along x and z, at the height of the tile's lowest cell.
    pub corner: BlockPos,
}

/// What this entity's [`FarView`](crate::view::FarView) knows is not drawn: in an app that both draws and serves others.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HiddenFarView;

/// How far the meshes of what is seen from afar are: tiles that are queued or in flight, and meshes, shown or hidden.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq, Deref)]
pub struct FarMeshProgress(pub ChunkMeshProgress);

impl Plugin for FarRenderPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<FarMeshProgress>().init_resource::<RenderOrigin>();
    }

    /// Here every other plugin has added its assets.
    fn finish(&self, app: &mut App) {
        if add_material(app, "FarRenderPlugin") {
            let moved = resource_changed::<RenderOrigin>;
            app.init_resource::<FarMesher>()
                .add_systems(PreUpdate, (hear, hide_drawn, apply, dispatch).chain().after(super::systems::dispatch))
                .add_systems(PostUpdate, move_meshes.run_if(moved).before(TransformSystems::Propagate));
        }
    }
}
