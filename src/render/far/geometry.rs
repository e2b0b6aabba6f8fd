//! Faces as triangles with colors.

use bevy::asset::RenderAssetUsages;
use bevy::mesh::{Indices, PrimitiveTopology};
use bevy::prelude::*;

/// The faces of a mesh as triangles.
#[derive(Debug, Default)]
pub(super) struct Geometry {
    pub positions: Vec<[f32; 3]>,
    pub normals: Vec<[f32; 3]>,
    pub colors: Vec<[f32; 4]>,
    pub indices: Vec<u32>,
}

/// The light of a corner by its openness, as in `chunk.wgsl`: 0 between two walls, 3 in the open.
pub(super) const CORNER_LIGHT: [f32; 4] = [0.5, 0.68, 0.84, 1.0];

/// The part of the sun's light that is baked, as in `chunk.wgsl`, by the side: west, down, north, east, up, south.
pub(super) fn side_light(side: usize) -> f32 {
    match side {
        4 => 1.0,
        1 => 0.5,
        0 | 3 => 0.8,
        _ => 0.7,
    }
}

impl Geometry {
    /// Adds a face with this normal and its corners counterclockwise as seen from the front.
    pub fn push_quad(&mut self, corners: [[f32; 3]; 4], normal: [f32; 3], colors: [[f32; 4]; 4]) {
        let start = self.positions.len() as u32;
        self.positions.extend(corners);
        self.normals.extend([normal; 4]);
        let light = |corner: usize| colors[corner][0] + colors[corner][1] + colors[corner][2];
        // The face is divided along the brighter diagonal, so that a dark corner stays a corner.
        let triangles =
            if light(0) + light(2) >= light(1) + light(3) { [0, 1, 2, 0, 2, 3] } else { [0, 1, 3, 1, 2, 3] };
        self.colors.extend(colors);
        self.indices.extend(triangles.map(|corner| start + corner));
    }

    /// The mesh, kept by the renderer only.
    pub fn into_mesh(self) -> Mesh {
        Mesh::new(PrimitiveTopology::TriangleList, RenderAssetUsages::RENDER_WORLD)
            .with_inserted_attribute(Mesh::ATTRIBUTE_POSITION, self.positions)
            .with_inserted_attribute(Mesh::ATTRIBUTE_NORMAL, self.normals)
            .with_inserted_attribute(Mesh::ATTRIBUTE_COLOR, self.colors)
            .with_inserted_indices(Indices::U32(self.indices))
    }
}
