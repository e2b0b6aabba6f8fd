//! [`ChunkMaterial`]: a `StandardMaterial` whose vertices and colors come from quads and looks.

use super::RenderMode;
use super::quad_memory::CORNER;
use bevy::asset::embedded_asset;
use bevy::material::OpaqueRendererMethod;
use bevy::mesh::MeshVertexBufferLayoutRef;
use bevy::pbr::{
    ExtendedMaterial, MaterialExtension, MaterialExtensionKey, MaterialExtensionPipeline, MaterialPlugin,
    MeshPipelineKey,
};
use bevy::prelude::*;
use bevy::render::render_resource::{AsBindGroup, Buffer, RenderPipelineDescriptor, SpecializedMeshPipelineError};
use bevy::shader::{ShaderRef, load_shader_library};
use std::hash::Hash;

/// The material of chunks: a `StandardMaterial` that takes its vertices and its color from the chunks' quads and textures. The
/// properties of the `StandardMaterial` that are no textures apply to all chunks.
pub type ChunkMaterial = ExtendedMaterial<StandardMaterial, ChunkExtension>;

/// The part of a [`ChunkMaterial`] that reads quads and textures.
#[derive(Asset, AsBindGroup, Clone, Debug, TypePath)]
#[type_path = "terrane_render"]
pub struct ChunkExtension {
    #[storage(100, read_only, buffer)]
    pub(super) quads: Buffer,
    #[storage(101, read_only, buffer)]
    pub(super) faces: Buffer,
    #[texture(102, dimension = "2d_array")]
    #[sampler(103)]
    pub(super) textures: Handle<Image>,
    /// The first is 1 by day and 0 at night.
    #[uniform(104)]
    pub(super) daylight: Vec4,
}

const FORWARD: &str = "embedded://terrane_render/shaders/chunk_forward.wgsl";
const PREPASS: &str = "embedded://terrane_render/shaders/chunk_prepass.wgsl";

impl MaterialExtension for ChunkExtension {
    fn vertex_shader() -> ShaderRef {
        FORWARD.into()
    }

    fn fragment_shader() -> ShaderRef {
        FORWARD.into()
    }

    fn prepass_vertex_shader() -> ShaderRef {
        PREPASS.into()
    }

    fn prepass_fragment_shader() -> ShaderRef {
        PREPASS.into()
    }

    fn specialize(
        _pipeline: &MaterialExtensionPipeline,
        descriptor: &mut RenderPipelineDescriptor,
        layout: &MeshVertexBufferLayoutRef,
        key: MaterialExtensionKey<Self>,
    ) -> Result<(), SpecializedMeshPipelineError> {
        // What overlaps would be blended twice.
        if key.mesh_key.intersection(MeshPipelineKey::BLEND_RESERVED_BITS) != MeshPipelineKey::BLEND_ALPHA {
            descriptor.vertex.shader_defs.push("OVERLAPPING".into());
        }
        descriptor.vertex.buffers = vec![layout.0.get_layout(&[CORNER.at_shader_location(0)])?];
        Ok(())
    }
}

/// The materials of all chunks, by render mode. A game may change their `base`.
#[derive(Resource, Clone, Debug, Default, PartialEq, Eq, Reflect)]
#[type_path = "terrane_render"]
#[reflect(Resource, Clone, Default)]
pub struct ChunkMaterials {
    /// For [`RenderMode::Opaque`].
    pub opaque: Handle<ChunkMaterial>,
    /// For [`RenderMode::CutOut`].
    pub cut_out: Handle<ChunkMaterial>,
    /// For [`RenderMode::Blended`].
    pub blended: Handle<ChunkMaterial>,
}

impl ChunkMaterials {
    /// The material of a mode.
    pub fn of(&self, mode: RenderMode) -> &Handle<ChunkMaterial> {
        match mode {
            RenderMode::Opaque => &self.opaque,
            RenderMode::CutOut => &self.cut_out,
            RenderMode::Blended => &self.blended,
        }
    }
}

/// Adds an extension of the game's own to the materials of all chunks. Add it after `ChunkRenderPlugin`. To change the extension
/// later, change the assets of the type `ExtendedMaterial<ChunkMaterial, E>`.
///
/// The extension's fragment shader gets the `VertexOutput` of `terrane_render::chunk_fragment`, whose `pbr_input` has the color of the
/// block's texture. Its bindings may have the numbers from 110 on.
#[derive(Clone, Debug, Default)]
pub struct ChunkMaterialExtensionPlugin<E>(pub E);

/// The extended materials, by render mode.
#[derive(Resource)]
struct Extended<E: MaterialExtension> {
    extension: E,
    handles: [Handle<ExtendedMaterial<ChunkMaterial, E>>; 3],
}

impl<E: MaterialExtension> Plugin for ChunkMaterialExtensionPlugin<E>
where
    ExtendedMaterial<ChunkMaterial, E>: Material,
    <ExtendedMaterial<ChunkMaterial, E> as AsBindGroup>::Data: PartialEq + Eq + Hash + Clone,
{
    fn build(&self, app: &mut App) {
        app.add_plugins(MaterialPlugin::<ExtendedMaterial<ChunkMaterial, E>>::default());
        let materials = app.world().resource::<Assets<ExtendedMaterial<ChunkMaterial, E>>>();
        let handles = RenderMode::ALL.map(|_| materials.reserve_handle());
        app.insert_resource(Extended { extension: self.0.clone(), handles })
            .add_systems(PostUpdate, follow_materials::<E>)
            .add_observer(extend_material::<E>);
    }
}

/// Takes over each change of the chunks' own materials.
fn follow_materials<E: MaterialExtension>(
    mut changed: MessageReader<AssetEvent<ChunkMaterial>>,
    own: Res<ChunkMaterials>,
    known: Res<Assets<ChunkMaterial>>,
    extended: Res<Extended<E>>,
    mut materials: ResMut<Assets<ExtendedMaterial<ChunkMaterial, E>>>,
) {
    let changed: Vec<_> = changed.read().collect();
    for (mode, handle) in RenderMode::ALL.into_iter().zip(&extended.handles) {
        let own = own.of(mode);
        let is_changed = changed.iter().any(|event| event.is_added(own) || event.is_modified(own));
        if let Some(base) = known.get(own).filter(|_| is_changed) {
            // The game may have changed the extension.
            let extension = materials.get(handle).map_or(&extended.extension, |material| &material.extension).clone();
            let material = ExtendedMaterial { base: base.clone(), extension };
            // The handles are kept, so their assets can be inserted.
            let _ = materials.insert(handle.id(), material);
        }
    }
}

/// Replaces the material of a chunk or a block by the extended one.
fn extend_material<E: MaterialExtension>(
    inserted: On<Insert, MeshMaterial3d<ChunkMaterial>>,
    materials: Query<&MeshMaterial3d<ChunkMaterial>>,
    own: Res<ChunkMaterials>,
    extended: Res<Extended<E>>,
    mut commands: Commands,
) {
    let Ok(material) = materials.get(inserted.entity) else { return };
    if let Some(number) = RenderMode::ALL.into_iter().position(|mode| own.of(mode) == &material.0) {
        let extended = MeshMaterial3d(extended.handles[number].clone());
        commands.entity(inserted.entity).remove::<MeshMaterial3d<ChunkMaterial>>().insert(extended);
    }
}

/// Adds the shaders.
pub(super) fn add_shaders(app: &mut App) {
    load_shader_library!(app, "shaders/chunk.wgsl");
    load_shader_library!(app, "shaders/chunk_fragment.wgsl");
    embedded_asset!(app, "shaders/chunk_forward.wgsl");
    embedded_asset!(app, "shaders/chunk_prepass.wgsl");
}

/// The `StandardMaterial` of chunks: white and rough.
pub(super) fn base(mode: RenderMode) -> StandardMaterial {
    let (alpha_mode, cull_mode) = match mode {
        RenderMode::Opaque => (AlphaMode::Opaque, Some(bevy::render::render_resource::Face::Back)),
        RenderMode::CutOut => (AlphaMode::Mask(0.5), None),
        RenderMode::Blended => (AlphaMode::Blend, None),
    };
    StandardMaterial {
        base_color: Color::WHITE,
        emissive: LinearRgba::WHITE,
        perceptual_roughness: 1.0,
        reflectance: 0.1,
        alpha_mode,
        cull_mode,
        opaque_render_method: OpaqueRendererMethod::Forward,
        ..default()
    }
}
