//! [`BlockMesh`]: a single block of the main world, such as an item, a hand or a falling block.

use super::RenderMode;
use super::looks::LooksInUse;
use super::material::ChunkMaterials;
use super::mesher;
use super::quad_memory::{QuadMemory, QuadRange};
use crate::block::BlockId;
use bevy::light::NotShadowCaster;
use bevy::mesh::MeshTag;
use bevy::prelude::*;

/// Draws one block, with its look and all its faces. Its lowest corner is at the entity's origin, and it is one unit wide: use the
/// `Transform` to move, turn and scale it.
///
/// The plugin inserts `Mesh3d`, `MeshTag`, `MeshMaterial3d` and `Aabb`, and updates them when the block or its look changes.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(opaque)]
#[reflect(Component, Clone)]
#[require(Transform, Visibility)]
pub struct BlockMesh(pub BlockId);

/// The quads of a [`BlockMesh`], with the version of the looks that they have.
#[derive(Component)]
pub(super) struct BlockQuads(#[expect(dead_code, reason = "held until it is dropped")] Option<QuadRange>, u64);

/// Makes the meshes of new and changed blocks.
pub(super) fn mesh_blocks(
    blocks: Query<(Entity, Ref<BlockMesh>, Option<&BlockQuads>)>,
    looks: Res<LooksInUse>,
    materials: Res<ChunkMaterials>,
    mut memory: ResMut<QuadMemory>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut commands: Commands,
) {
    let Some((table, version)) = looks.table() else { return };
    for (entity, block, quads) in &blocks {
        if quads.is_some_and(|quads| quads.1 == version) && !block.is_changed() {
            continue;
        }
        // A look has one mode, and so all quads of a block do.
        let meshed = mesher::mesh_block(block.0, table);
        let of_mode = meshed
            .and_then(|meshed| RenderMode::ALL.into_iter().zip(meshed).find(|(_, quads)| !quads.quads.is_empty()));
        let range = of_mode.as_ref().and_then(|(_, quads)| memory.store(&quads.quads));
        let mut entity = commands.entity(entity);
        match (of_mode, &range) {
            (Some((mode, quads)), Some(range)) => {
                let mesh = Mesh3d(memory.mesh(range, &mut meshes));
                entity.try_insert((
                    mesh,
                    MeshTag(range.first),
                    quads.aabb(),
                    MeshMaterial3d(materials.of(mode).clone()),
                ));
                match mode {
                    RenderMode::Blended => entity.try_insert(NotShadowCaster),
                    RenderMode::Opaque | RenderMode::CutOut => entity.try_remove::<NotShadowCaster>(),
                };
            }
            _ => {
                entity.try_remove::<Mesh3d>();
            }
        }
        entity.try_insert(BlockQuads(range, version));
    }
}

/// A block that is not drawn any more shows nothing, and gives its quads back.
pub(super) fn remove_mesh(removed: On<Remove, BlockMesh>, mut commands: Commands) {
    commands.entity(removed.entity).try_remove::<(BlockQuads, Mesh3d)>();
}
