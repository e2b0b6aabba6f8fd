//! The meshes of chunks, their progress, and the origin of their places.

use crate::looks::RenderMode;
use bevy::prelude::*;
use bevy_terrane::simulation::Position;
use bevy_terrane::space::{BlockPos, ChunkPos, DimensionId};

/// The quads of a chunk with one render mode. The entity also has `Mesh3d`, `MeshTag`, `MeshMaterial3d` and a `Transform`, and
/// exists as long as the chunk has such quads. Its `Mesh3d` only counts corners: it has no positions.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, Reflect)]
#[type_path = "terrane_render"]
#[reflect(Component, Clone)]
pub struct ChunkMesh {
    /// The chunk's dimension.
    pub dimension: DimensionId,
    /// The chunk.
    pub chunk: ChunkPos,
    /// How the quads are drawn.
    pub mode: RenderMode,
}

/// The progress of the meshes. Nothing is queued before the first column arrives, nor in the outermost ring of loaded
/// columns. So the view is complete when the simulation has no columns
/// [remaining](bevy_terrane::view::WorldStatistics::remaining) and [`is_done`](Self::is_done) returns `true`.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq, Reflect)]
#[type_path = "terrane_render"]
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
#[type_path = "terrane_render"]
#[reflect(Resource, Clone, Default)]
pub struct RenderOrigin(pub BlockPos);

impl RenderOrigin {
    /// The transform of a block's lowest corner.
    pub(super) fn place(self, block: BlockPos) -> Transform {
        let corner = Position { dimension: default(), block, offset: Vec3::ZERO };
        Transform::from_translation(corner.relative_to(self.0))
    }
}
