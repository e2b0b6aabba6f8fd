//! Meshes for the columns that are published to the main world.
//!
//! [`ChunkRenderPlugin`] gives every chunk that shows a face one entity with one vertex-colored mesh, in the colors of
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
//! * A column is meshed once the eight columns around it are published, so the outermost ring of what is loaded stays
//!   unseen. Faces between two chunks, faces of ground that is enclosed on all sides, and the underside of the world
//!   cost nothing.
//! * Block types that are not opaque are not drawn, and hide nothing.
//! * Colors are baked with a little light by direction and a little shade in corners. Lights, shadows, fog and the sky
//!   are the game's.
//! * What a frame's columns changed can be seen in that frame: meshes are made and shown in `PreUpdate`.
//! * All chunks share one material, [`ChunkMaterial`], which the game may replace.
//! * Without `Assets<Mesh>`, as in a server without a renderer, the plugin says so in the log and does nothing.
//!
//! [`FarRenderPlugin`] draws what is generated and not loaded: what the [`FarView`](crate::view::FarView)s know.
//!
//! # Far from the origin
//!
//! An entity stands at its chunk's lowest block, as `f32`. Within 2^20 blocks of the origin positions are exact to a
//! sixteenth of a block; from 2^24 on, blocks can no longer be told apart. A game with a larger world keeps its camera
//! near [`RenderOrigin`] and moves that along.

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

/// Makes and shows meshes for the columns that are published to the main world. See the [module](self).
///
/// It is added after `DefaultPlugins`.
#[derive(Clone, Debug, Default)]
pub struct ChunkRenderPlugin {
    dimensions: Option<Vec<String>>,
}

impl ChunkRenderPlugin {
    /// Only the dimensions with these names. All of them by default.
    pub fn with_dimensions<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.dimensions = Some(names.into_iter().map(Into::into).collect());
        self
    }
}

/// The mesh of a chunk. The entity also has `Mesh3d`, `MeshMaterial3d` and a `Transform`; it comes and goes as the
/// chunk does.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkMesh {
    /// The chunk's dimension.
    pub dimension: DimensionId,
    /// The chunk.
    pub chunk: ChunkPos,
}

/// How far the meshes are. Nothing is queued before the first column arrives, nor at the outermost ring of what is
/// loaded; so the view is complete when the simulation has no columns
/// [remaining](crate::view::WorldStatistics::remaining) and this says [`is_done`](Self::is_done).
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkMeshProgress {
    /// Chunks that wait for a mesh; some of them may turn out to need none.
    pub queued: usize,
    /// Meshes in the making, or made and not shown yet.
    pub in_flight: usize,
    /// Meshes that are shown.
    pub meshes: usize,
}

impl ChunkMeshProgress {
    /// Whether nothing is queued and nothing in flight.
    pub fn is_done(&self) -> bool {
        self.queued == 0 && self.in_flight == 0
    }
}

/// The block that is at the origin of the main world's space. Set it to move all meshes.
///
/// Viewers of the main world that are placed by a `Transform` alone are not moved with it: give them a
/// [`Position`].
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq, Deref, DerefMut)]
pub struct RenderOrigin(pub BlockPos);

impl RenderOrigin {
    /// At the lowest corner of a block.
    fn place(self, block: BlockPos) -> Transform {
        let corner = Position { dimension: default(), block, offset: Vec3::ZERO };
        Transform::from_translation(corner.relative_to(self.0))
    }
}

/// The material of all chunks: white, rough, colored by the vertices. Insert it before the app starts, or change the
/// asset, to have another one.
#[derive(Resource, Clone, Debug, Default, PartialEq, Eq, Deref)]
pub struct ChunkMaterial(pub Handle<StandardMaterial>);

/// Adds the material of all chunks, if the game has not inserted one. Without a renderer this says so, and returns `false`.
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

    /// Here every other plugin has added its assets.
    fn finish(&self, app: &mut App) {
        if add_material(app, "ChunkRenderPlugin") {
            let moved = resource_changed::<RenderOrigin>;
            app.insert_resource(ChunkMesher::new(self.dimensions.clone()))
                .add_systems(PreUpdate, (hear, apply, dispatch).chain())
                .add_systems(PostUpdate, move_meshes.run_if(moved).before(TransformSystems::Propagate));
        }
    }
}
