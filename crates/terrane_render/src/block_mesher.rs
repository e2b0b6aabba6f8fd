//! [`BlockMesher`]: meshers of the game's own.

use super::PaddedBlocks;
use bevy::prelude::*;
use bevy_terrane::block::{BlockRegistry, BlockType};
use bevy_terrane::space::ChunkPos;
use std::fmt;
use std::sync::Arc;

/// A mesher of the game's own, for some blocks or for all: smooth ground, models, or colliders. Add it to
/// [`ChunkRenderPlugin::meshers`](super::ChunkRenderPlugin::meshers).
///
/// It runs in the queue of the crate's own mesher: on Bevy's `AsyncComputeTaskPool`, the nearest chunks first, again after each
/// change of a block that it gets.
pub trait BlockMesher: Send + Sync + 'static {
    /// Returns `true` for the blocks that this mesher draws. The crate's own mesher does not draw them, and they hide nothing from
    /// it. The method is called for each block type when the looks are read.
    fn draws(&self, block: &BlockType) -> bool;

    /// Returns `true` for the blocks from which this mesher makes something. By default these are the blocks that it draws. A mesher
    /// that makes colliders reads solid blocks and draws none.
    ///
    /// The mesher gets each chunk that is not empty and has such a block in it or around it. Chunks that are buried among opaque
    /// cubes of the crate's own mesher are left out.
    fn reads(&self, block: &BlockType) -> bool {
        self.draws(block)
    }

    /// Meshes a chunk. Around it there may be a block that is not registered, for which `types` returns an opaque cube. Returns
    /// `None` if there is nothing to make of the chunk.
    fn mesh(&self, chunk: ChunkPos, blocks: &PaddedBlocks, types: &BlockRegistry) -> Option<MeshPart>;
}

impl fmt::Debug for dyn BlockMesher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("BlockMesher")
    }
}

/// A mesh or a collider that a [`BlockMesher`] made of a chunk. It becomes an entity at the chunk's lowest corner, which exists until the chunk changes or
/// is unloaded.
pub struct MeshPart(Box<dyn FnOnce(&mut EntityWorldMut) + Send>);

impl MeshPart {
    /// An entity with these components, such as a collider.
    pub fn new(bundle: impl Bundle) -> Self {
        Self(Box::new(|entity| {
            entity.insert(bundle);
        }))
    }

    /// An entity with this mesh, in blocks from the chunk's lowest corner, and these components, such as `MeshMaterial3d`.
    pub fn mesh(mesh: Mesh, bundle: impl Bundle) -> Self {
        Self(Box::new(|entity| {
            let mesh = entity.world_scope(|world| world.resource_mut::<Assets<Mesh>>().add(mesh));
            entity.insert((Mesh3d(mesh), bundle));
        }))
    }

    pub(super) fn insert(self, entity: &mut EntityWorldMut) {
        (self.0)(entity);
    }
}

impl fmt::Debug for MeshPart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("MeshPart")
    }
}

/// How chunks are meshed.
#[derive(Resource, Clone, Debug)]
pub(super) struct Meshing {
    /// All meshers of the game.
    pub meshers: Arc<[Arc<dyn BlockMesher>]>,
    /// `true` if corners between blocks are shaded.
    pub ambient_occlusion: bool,
}
