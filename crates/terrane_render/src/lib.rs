#![doc = include_str!("../README.md")]
//!
//! # What is drawn
//!
//! * A column is meshed once the eight columns around it are published and all nine are lit, so the outermost ring of loaded columns stays
//!   invisible. Faces between two chunks, faces of blocks that are enclosed on all sides, and the underside of the world
//!   cost nothing.
//! * A chunk has up to three entities, one for each [`RenderMode`] that occurs in it. A quad takes 16 bytes of the graphics card.
//! * A cube that is not opaque and has no look is not drawn, and hides nothing.
//! * The [light](bevy_terrane::light) of the sky and of blocks is part of the meshes, smooth at the corners. Sky light scales what the lights of
//!   the game give. The light of blocks is added, and outshone by [daylight](bevy_terrane::view::PublishedColumns::daylight).
//! * A little shade of sides and corners is baked into the colors. Lights, shadows, fog and the sky are up to the game.
//! * Changes of a frame's columns can be visible in the same frame: meshes are made and shown in `PreUpdate`.
//! * Blended quads are drawn from far to near, exactly for the first active camera if they are along the axes, and chunks for each
//!   camera.
//! * Faces that are not blended reach a fraction of a pixel beyond their edges, so that no gaps of single pixels open between them.
//! * All chunks share three [`ChunkMaterials`], whose properties the game may change.
//! * A [`Mirror`](bevy_terrane::view::Mirror) with a `Transform` is moved smoothly between the ticks of its region, one tick late.
//! * A [`BlockMesh`] is drawn in the [light of its place](PlaceLight), and so are meshes with a [`LitMaterial`].
//! * Without `Assets<Mesh>`, as on a server without a renderer, the plugin logs this and does nothing.
//!
//! [`FarRenderPlugin`] draws generated columns that are not loaded, from the [`FarView`](bevy_terrane::view::FarView)s.
//!
//! # Far from the origin
//!
//! An entity stands at its chunk's lowest block, as `f32`. Within 2^20 blocks of the origin positions are exact to a
//! sixteenth of a block; from 2^24 on, blocks can no longer be told apart. A game with a larger world keeps its camera
//! near [`RenderOrigin`] and moves the origin along.

mod back_to_front;
mod block_mesh;
mod block_mesher;
mod chunk_meshes;
mod far;
mod liquid_fog;
mod looks;
mod material;
mod mesher;
mod mirrors;
mod neighborhood;
mod picking;
mod place_light;
mod quad_memory;
mod quads;
mod queue;
mod systems;

pub use block_mesh::BlockMesh;
pub use block_mesher::{BlockMesher, MeshPart};
pub use chunk_meshes::{ChunkMesh, ChunkMeshProgress, RenderOrigin};
pub use far::{FarMaterial, FarMesh, FarMeshProgress, FarRenderPlugin, HiddenFarView};
pub use liquid_fog::InsideLiquid;
pub use looks::{
    BlockLook, BlockLooks, BlockLooksError, BlockLooksLoader, ChunkLooks, FaceLook, FaceOverlay, LookQuad, QuadSide,
    RenderMode,
};
pub use material::{ChunkExtension, ChunkMaterial, ChunkMaterialExtensionPlugin, ChunkMaterials};
pub use neighborhood::PaddedBlocks;
pub use picking::BlockPickingPlugin;
pub use place_light::{LitExtension, LitMaterial, PlaceLight};

use bevy::camera::primitives::Aabb;
use bevy::camera::visibility::{NoAutoAabb, NoFrustumCulling, RenderLayers, VisibilityClass, VisibilityRange};
use bevy::diagnostic::{Diagnostic, DiagnosticPath, Diagnostics, RegisterDiagnostic};
use bevy::pbr::{MaterialPlugin, PbrPlugin};
use bevy::prelude::*;
use bevy::render::renderer::{RenderDevice, RenderQueue};
use bevy::time::common_conditions::on_timer;
use bevy::transform::TransformSystems;
use bevy_terrane::plugin::TerraneAppExt;
use block_mesher::Meshing;
use looks::{LooksInUse, collect_looks, update_looks};
use quad_memory::QuadMemory;
use std::sync::Arc;
use std::time::Duration;
use systems::{ChunkMesher, apply, dispatch, hear, move_meshes, update_materials};
pub use systems::{SeenDimension, chunk_quads};

/// Makes and shows meshes for the published columns. See the [module](self).
///
/// Add it after `DefaultPlugins`.
#[derive(Clone, Debug)]
pub struct ChunkRenderPlugin {
    /// The names of the dimensions that are drawn; if empty, all are.
    pub dimensions: Vec<String>,
    /// The asset paths of files of [looks](BlockLooks), later ones over earlier ones.
    pub looks: Vec<String>,
    /// Meshers of the game's own, for some blocks or for all.
    pub meshers: Vec<Arc<dyn BlockMesher>>,
    /// `true` to shade the corners between blocks.
    pub ambient_occlusion: bool,
}

impl ChunkRenderPlugin {
    /// The bytes on the graphics card for the meshes of chunks, among Bevy's diagnostics.
    pub const MESH_BYTES: DiagnosticPath = DiagnosticPath::const_new("terrane/mesh_bytes");
}

/// Measures [`ChunkRenderPlugin::MESH_BYTES`].
fn measure(memory: Res<QuadMemory>, mut diagnostics: Diagnostics) {
    diagnostics.add_measurement(&ChunkRenderPlugin::MESH_BYTES, || memory.bytes() as f64);
}

impl Default for ChunkRenderPlugin {
    /// All dimensions, the basic blocks' looks, and ambient occlusion.
    fn default() -> Self {
        Self { dimensions: Vec::new(), looks: Vec::new(), meshers: Vec::new(), ambient_occlusion: true }
    }
}

/// Logs a missing renderer, and returns `false` then.
fn has_renderer(app: &App, plugin: &str) -> bool {
    let has_renderer = app.world().contains_resource::<Assets<Mesh>>();
    if !has_renderer {
        error!("there is no `Assets<Mesh>`, so {plugin} draws nothing: it needs a renderer; without one, leave it out");
    }
    has_renderer
}

/// Adds the looks of blocks, once.
fn add_looks(app: &mut App) {
    if app.world().contains_resource::<LooksInUse>() {
        return;
    }
    app.init_resource::<LooksInUse>().init_resource::<ChunkLooks>();
    app.add_message::<AssetEvent<BlockLooks>>().add_message::<AssetEvent<Image>>();
    if app.world().contains_resource::<AssetServer>() {
        app.init_asset::<BlockLooks>().register_asset_loader(BlockLooksLoader);
        looks::add_basic_looks(app);
    }
    app.add_systems(PreUpdate, (collect_looks, update_looks).chain());
}

/// Registers Bevy's components of visible entities, so that they travel from region to region.
fn register_visibility(app: &mut App) {
    app.register_region_component::<Visibility>()
        .register_region_component::<InheritedVisibility>()
        .register_region_component::<ViewVisibility>()
        .register_region_component::<VisibilityClass>()
        .register_region_component::<VisibilityRange>()
        .register_region_component::<RenderLayers>()
        .register_region_component::<NoFrustumCulling>()
        .register_region_component::<NoAutoAabb>()
        .register_region_component::<Aabb>();
}

impl Plugin for ChunkRenderPlugin {
    fn build(&self, app: &mut App) {
        app.register_type::<BlockMesh>()
            .register_type::<ChunkLooks>()
            .register_type::<ChunkMaterials>()
            .register_type::<ChunkMesh>()
            .register_type::<ChunkMeshProgress>()
            .register_type::<InsideLiquid>()
            .register_type::<PlaceLight>()
            .register_type::<RenderOrigin>();
        register_visibility(app);
        app.init_resource::<ChunkMeshProgress>().init_resource::<RenderOrigin>();
        add_looks(app);
        if let Some(server) = app.world().get_resource::<AssetServer>() {
            let looks: Vec<_> = self.looks.iter().map(|path| server.load(path)).collect();
            app.world_mut().resource_mut::<ChunkLooks>().extend(looks);
        }
        if app.is_plugin_added::<PbrPlugin>() {
            material::add_shaders(app);
            place_light::add(app);
            back_to_front::add_chunk_order(app);
            app.add_plugins(MaterialPlugin::<ChunkMaterial>::default());
        }
    }

    /// Runs when every other plugin has added its assets.
    fn finish(&self, app: &mut App) {
        if !has_renderer(app, "ChunkRenderPlugin") {
            return;
        }
        if app.is_plugin_added::<PbrPlugin>() && !app.is_plugin_added::<MaterialPlugin<ChunkMaterial>>() {
            error!("ChunkRenderPlugin draws nothing, because it was added before Bevy's plugins: add it after them");
        }
        let world = app.world_mut();
        let gpu = world.get_resource::<RenderDevice>().cloned().zip(world.get_resource::<RenderQueue>().cloned());
        world.insert_resource(QuadMemory::new(gpu));
        let (meshers, ambient_occlusion) = (self.meshers.clone().into(), self.ambient_occlusion);
        world.insert_resource(Meshing { meshers, ambient_occlusion });
        world.insert_resource(ChunkMesher::new(self.dimensions.clone()));
        if !world.contains_resource::<ChunkMaterials>() {
            let handle =
                |_| world.get_resource::<Assets<ChunkMaterial>>().map(Assets::reserve_handle).unwrap_or_default();
            let [opaque, cut_out, blended] = RenderMode::ALL.map(handle);
            world.insert_resource(ChunkMaterials { opaque, cut_out, blended });
        }
        let moved = resource_changed::<RenderOrigin>;
        app.register_diagnostic(Diagnostic::new(Self::MESH_BYTES).with_suffix(" bytes"));
        app.add_systems(Update, measure.run_if(on_timer(Duration::from_secs(1))));
        app.add_systems(PreUpdate, (hear, apply, dispatch, update_materials).chain().after(update_looks))
            .add_systems(PostUpdate, move_meshes.run_if(moved).before(TransformSystems::Propagate))
            .init_resource::<mirrors::ShownClocks>()
            .add_systems(PreUpdate, mirrors::move_mirrors)
            .add_systems(
                PostUpdate,
                (block_mesh::mesh_blocks, mirrors::place_mirrors, mirrors::place_own_bodies)
                    .before(TransformSystems::Propagate),
            )
            .add_systems(
                PostUpdate,
                (
                    back_to_front::sort_blended,
                    liquid_fog::fog_inside_liquids,
                    (place_light::light_places, (block_mesh::relight_blocks, place_light::tag_lit_meshes)).chain(),
                )
                    .after(TransformSystems::Propagate),
            )
            .add_observer(block_mesh::remove_mesh);
    }
}
