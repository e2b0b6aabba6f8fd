//! Meshes for the columns that the main world sees.
//!
//! [`ChunkRenderPlugin`] gives every chunk with a visible face one entity with one vertex-colored mesh, in the colors of
//! the [`BlockType`](crate::block::BlockType)s. Meshes are made on Bevy's `AsyncComputeTaskPool`, the chunks nearest to
//! a camera or a main-world viewer first, and follow every change of a block.
//!
//! ```no_run
//! use bevy_terrane::prelude::*;
//! use bevy_terrane::render::ChunkRenderPlugin;
//!
//! # let mut app = App::new();
//! // After DefaultPlugins and TerranePlugin:
//! app.add_plugins(ChunkRenderPlugin::default());
//! ```
//!
//! * A column is meshed once the eight columns around it are published, so the outermost ring of loaded columns stays
//!   invisible. Faces between two chunks, faces of blocks that are enclosed on all sides, and the underside of the world
//!   cost nothing.
//! * Block types that are not opaque are not drawn, and hide nothing.
//! * A little directional light and a little shade in corners are baked into the colors. Lights, shadows, fog and the sky
//!   are up to the game.
//! * Changes of a frame's columns can be visible in the same frame: meshes are made and shown in `PreUpdate`.
//! * All chunks share one material, [`ChunkMaterial`], which the game may replace.
//! * Without `Assets<Mesh>`, as on a server without a renderer, the plugin logs this and does nothing.
//!
//! [`FarRenderPlugin`] draws generated columns that are not loaded, from the [`FarView`](crate::view::FarView)s.
//!
//! # Far from the origin
//!
//! An entity stands at its chunk's lowest block, as `f32`. Within 2^20 blocks of the origin positions are exact to a
//! sixteenth of a block; from 2^24 on, blocks can no longer be told apart. A game with a larger world keeps its camera
//! near [`RenderOrigin`] and moves the origin along.

mod far;
mod looks;
mod mesher;
mod neighborhood;
mod queue;
mod systems;

pub use far::{FarMesh, FarMeshProgress, FarRenderPlugin, HiddenFarView};

use crate::simulation::Position;
use crate::space::{BlockPos, ChunkPos, DimensionId};
use bevy::prelude::*;
use bevy::transform::TransformSystems;
use systems::{ChunkMesher, apply, dispatch, hear, move_meshes};

/// Makes and shows meshes for the published columns. See the [module](self).
///
/// Add it after `DefaultPlugins`.
#[derive(Clone, Debug, Default)]
pub struct ChunkRenderPlugin {
    dimensions: Option<Vec<String>>,
}

impl ChunkRenderPlugin {
    /// Limits the plugin to the dimensions with these names. By default it draws all of them.
    pub fn with_dimensions<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.dimensions = Some(names.into_iter().map(Into::into).collect());
        self
    }
}

/// The mesh of a chunk. The entity also has `Mesh3d`, `MeshMaterial3d` and a `Transform`, and exists as long as the chunk
/// has a mesh.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Component, Clone)]
pub struct ChunkMesh {
    /// The chunk's dimension.
    pub dimension: DimensionId,
    /// The chunk.
    pub chunk: ChunkPos,
}

/// The progress of the meshes. Nothing is queued before the first column arrives, nor in the outermost ring of loaded
/// columns. So the view is complete when the simulation has no columns
/// [remaining](crate::view::WorldStatistics::remaining) and [`is_done`](Self::is_done) returns `true`.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Resource, Clone, Default)]
pub struct ChunkMeshProgress {
    /// The number of chunks that wait for a mesh; some of them may turn out to need none.
    pub queued: usize,
    /// The number of meshes that are being made or are not shown yet.
    pub in_flight: usize,
    /// The number of meshes that are shown.
    pub meshes: usize,
}

impl ChunkMeshProgress {
    /// Returns `true` if nothing is queued or in flight.
    pub fn is_done(&self) -> bool {
        self.queued == 0 && self.in_flight == 0
    }
}

/// The block at the origin of the main world's space. Set it to move all meshes.
///
/// Viewers of the main world that have only a `Transform` do not move with it: give them a
/// [`Position`].
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq, Deref, DerefMut, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Resource, Clone, Default)]
pub struct RenderOrigin(pub BlockPos);

impl RenderOrigin {
    /// The transform of a block's lowest corner.
    fn place(self, block: BlockPos) -> Transform {
        let corner = Position { dimension: default(), block, offset: Vec3::ZERO };
        Transform::from_translation(corner.relative_to(self.0))
    }
}

/// The material of all chunks: white, rough, colored by the vertices. To use another one, insert the resource before the
/// app starts, or change the asset.
#[derive(Resource, Clone, Debug, Default, PartialEq, Eq, Deref, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Resource, Clone, Default)]
pub struct ChunkMaterial(pub Handle<StandardMaterial>);

/// Adds the material of all chunks, if the game has not inserted one. Logs a missing renderer, and returns `false` then.
fn add_material(app: &mut App, plugin: &str) -> bool {
    if !app.world().contains_resource::<Assets<Mesh>>() {
        error!("there is no `Assets<Mesh>`, so {plugin} draws nothing: it needs a renderer; without one, leave it out");
        return false;
    }
    if app.world().contains_resource::<ChunkMaterial>() {
        return true;
    }
    let material =
        StandardMaterial { base_color: Color::WHITE, perceptual_roughness: 1.0, reflectance: 0.1, ..default() };
    let materials = app.world_mut().get_resource_mut::<Assets<StandardMaterial>>();
    if let Some(material) = materials.map(|mut materials| materials.add(material)) {
        app.insert_resource(ChunkMaterial(material));
    }
    true
}

impl Plugin for ChunkRenderPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<ChunkMeshProgress>().init_resource::<RenderOrigin>();
    }

    /// Runs when every other plugin has added its assets.
    fn finish(&self, app: &mut App) {
        if add_material(app, "ChunkRenderPlugin") {
            let moved = resource_changed::<RenderOrigin>;
            app.insert_resource(ChunkMesher::new(self.dimensions.clone()))
                .add_systems(PreUpdate, (hear, apply, dispatch).chain())
                .add_systems(PostUpdate, move_meshes.run_if(moved).before(TransformSystems::Propagate));
        }
    }
}
