//! Smooth ground instead of cubes: a mesher of the game's own, with surface nets over the ground of `Hills`.

use bevy::asset::{RenderAssetUsages, uuid_handle};
use bevy::mesh::{Indices, PrimitiveTopology};
use bevy_terrane::prelude::*;
use fast_surface_nets::ndshape::{ConstShape, ConstShape3u32};
use fast_surface_nets::{SurfaceNetsBuffer, surface_nets};
use std::sync::Arc;
use terrane_dev::{DevPlugins, FlyCamera, SkyPlugin};
use terrane_render::{BlockMesher, ChunkRenderPlugin, MeshPart, PaddedBlocks};

/// A chunk and one block around it.
type Samples = ConstShape3u32<18, 18, 18>;

const GROUND: Handle<StandardMaterial> = uuid_handle!("b7d0a1f6-6f0f-4a7e-9c37-1d1f0c7a6e21");

fn main() -> AppExit {
    let mut app = App::new();
    app.add_plugins((DevPlugins::new("smooth"), SkyPlugin::default()))
        .add_plugins(TerranePlugin::at("target/examples/smooth/world"));
    app.add_plugins(ChunkRenderPlugin { meshers: vec![Arc::new(Smooth)], ..default() })
        .add_systems(Startup, start)
        .run()
}

fn start(
    mut commands: Commands,
    dimensions: Res<Dimensions>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) -> Result {
    materials.insert(&GROUND, StandardMaterial { perceptual_roughness: 0.95, reflectance: 0.1, ..default() })?;
    commands.spawn(Dimension::new("overworld", Hills::seeded(42)));
    let viewer = Viewer::in_dimension(dimensions.id("overworld")).with_radius(12);
    let view = Transform::from_xyz(0.0, 60.0, 0.0).looking_to(Vec3::new(0.6, -0.35, 1.0), Vec3::Y);
    commands.spawn((FlyCamera::default(), viewer, view));
    Ok(())
}

/// Draws opaque blocks as a smooth surface. Water is left to the crate's own mesher.
struct Smooth;

impl BlockMesher for Smooth {
    fn draws(&self, block: &BlockType) -> bool {
        block.is_opaque()
    }

    fn mesh(&self, _: ChunkPos, blocks: &PaddedBlocks, types: &BlockRegistry) -> Option<MeshPart> {
        let block = |place: [i32; 3]| types.block(blocks.block(place));
        let sample = |sample: u32| block(Samples::delinearize(sample).map(|axis| axis as i32 - 1));
        let distances: Vec<f32> =
            (0..Samples::SIZE).map(|place| if sample(place).is_opaque() { -1.0 } else { 1.0 }).collect();
        let mut net = SurfaceNetsBuffer::default();
        surface_nets(&distances, &Samples {}, [0; 3], [17; 3], &mut net);
        if net.indices.is_empty() {
            return None;
        }
        // A corner of the net lies between eight samples; the highest ground among them gives its color.
        let corners = net.surface_points.iter().map(|[x, y, z]| {
            let near =
                [0, 1].into_iter().flat_map(|dy| [0, 1].into_iter().flat_map(move |dx| [0, 1].map(|dz| [dx, dy, dz])));
            let place = |[dx, dy, dz]: [i32; 3]| [*x as i32 + dx - 1, *y as i32 + dy - 1, *z as i32 + dz - 1];
            near.filter_map(|step| color(types, blocks.block(place(step)))).next_back().unwrap_or([1.0; 4])
        });
        let colors: Vec<_> = corners.collect();
        // Samples are in the middle of blocks.
        let positions: Vec<_> = net.positions.iter().map(|place| place.map(|axis| axis - 0.5)).collect();
        let normals: Vec<_> =
            net.normals.iter().map(|normal| Vec3::from(*normal).normalize_or_zero().to_array()).collect();
        let mesh = Mesh::new(PrimitiveTopology::TriangleList, RenderAssetUsages::RENDER_WORLD)
            .with_inserted_attribute(Mesh::ATTRIBUTE_POSITION, positions)
            .with_inserted_attribute(Mesh::ATTRIBUTE_NORMAL, normals)
            .with_inserted_attribute(Mesh::ATTRIBUTE_COLOR, colors)
            .with_inserted_indices(Indices::U32(net.indices));
        Some(MeshPart::mesh(mesh, MeshMaterial3d(GROUND)))
    }
}

/// The linear color of a block that is drawn. Below the world there is a block that no registry has.
fn color(types: &BlockRegistry, block: BlockId) -> Option<[f32; 4]> {
    let is_known = types.contains(block);
    let block = types.block(block);
    let [red, green, blue] = if is_known { block.color() } else { [128; 3] };
    block.is_opaque().then(|| Color::srgb_u8(red, green, blue).to_linear().to_f32_array())
}
