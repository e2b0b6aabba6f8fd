//! Colliders of the ground, around the bodies that move.

use avian3d::parry::shape::{SharedShape, Voxels};
use avian3d::prelude::{Collider, RigidBody, RigidBodyDisabled, Sleeping, WakeBody};
use bevy::prelude::*;
use bevy_terrane::block::{BlockRegistry, BlockType};
use bevy_terrane::space::{ChunkPos, Face, FaceSet};
use std::collections::HashSet;
use terrane_render::{BlockMesher, MeshPart, PaddedBlocks};

/// The edge of a chunk, in blocks.
const CHUNK: i32 = 16;
/// A body has ground up to this many blocks around its middle.
const REACH: f32 = 8.0;

/// Adds colliders of the ground around each dynamic body, and holds bodies that have no ground yet. Add [`GroundMesher`] to
/// `ChunkRenderPlugin::meshers` too. There is one dimension, and `RenderOrigin` stays at 0.
pub struct GroundPlugin;

impl Plugin for GroundPlugin {
    fn build(&self, app: &mut App) {
        // A chunk that has changed got its new shape in `PreUpdate`, and needs its collider before the next step.
        app.add_systems(Last, (update_colliders, hold_bodies)).add_observer(wake_bodies);
    }
}

/// Makes a shape of the solid blocks of each chunk, in the queue and on the threads of the meshes. The crate still draws the blocks.
pub struct GroundMesher;

/// The shape of a chunk's solid blocks, from the chunk's lowest corner. It becomes a collider while a body is near.
#[derive(Component, Clone)]
pub struct GroundShape {
    chunk: IVec3,
    cubes: Option<Collider>,
    boxes: Option<Collider>,
}

impl BlockMesher for GroundMesher {
    fn draws(&self, _: &BlockType) -> bool {
        false
    }

    fn reads(&self, block: &BlockType) -> bool {
        block.is_solid()
    }

    fn mesh(&self, chunk: ChunkPos, blocks: &PaddedBlocks, types: &BlockRegistry) -> Option<MeshPart> {
        let (mut cubes, mut around, mut boxes) = (Vec::new(), Vec::new(), Vec::new());
        let padded = || -1..=CHUNK;
        for place in padded().flat_map(|x| padded().flat_map(move |y| padded().map(move |z| IVec3::new(x, y, z)))) {
            let block = types.block(blocks.block(place.to_array()));
            let is_own = place.min_element() >= 0 && place.max_element() < CHUNK;
            if !block.is_solid() {
                continue;
            }
            if block.shape().is_cube() {
                if is_own { cubes.push(place) } else { around.push(place) }
            } else if is_own {
                let beside = |side: Face| types.block(blocks.block((place + normal(side)).to_array())).shape();
                let joins: FaceSet =
                    Face::SIDES.into_iter().filter(|side| block.shape().joins(beside(*side), *side)).collect();
                boxes.extend(block.shape().boxes(joins).map(|part| {
                    let [min, max] = [part.min, part.max].map(|corner| Vec3::from(corner.map(f32::from)) / 16.0);
                    let size = max - min;
                    (place.as_vec3() + (min + max) / 2.0, Quat::IDENTITY, Collider::cuboid(size.x, size.y, size.z))
                }));
            }
        }
        if cubes.is_empty() && boxes.is_empty() {
            return None;
        }
        Some(MeshPart::new(GroundShape {
            chunk: IVec3::new(chunk.x as i32, chunk.y as i32, chunk.z as i32),
            cubes: (!cubes.is_empty()).then(|| voxels(&cubes, &around)),
            boxes: (!boxes.is_empty()).then(|| Collider::compound(boxes)),
        }))
    }
}

/// Cubes that know the cubes around their chunk, so that bodies do not stumble over the seams between chunks.
fn voxels(cubes: &[IVec3], around: &[IVec3]) -> Collider {
    let mut shape = Voxels::new(Vec3::ONE, cubes);
    shape.combine_voxel_states(&mut Voxels::new(Vec3::ONE, around), IVec3::ZERO);
    Collider::from(SharedShape::new(shape))
}

fn normal(side: Face) -> IVec3 {
    IVec3::from(side.normal().map(|along| along as i32))
}

/// The chunk at a place of the main world.
fn chunk_at(place: Vec3) -> IVec3 {
    (place / CHUNK as f32).floor().as_ivec3()
}

/// The chunks up to [`REACH`] from a place.
fn chunks_around(place: Vec3) -> impl Iterator<Item = IVec3> {
    let [low, high] = [-REACH, REACH].map(|reach| chunk_at(place + reach));
    let layers = (low.y..=high.y).flat_map(move |y| (low.z..=high.z).map(move |z| (y, z)));
    layers.flat_map(move |(y, z)| (low.x..=high.x).map(move |x| IVec3::new(x, y, z)))
}

/// Chunks get their collider when a body comes near, and lose it when the last one has gone.
fn update_colliders(
    mut commands: Commands,
    bodies: Query<(&Transform, &RigidBody)>,
    ground: Query<(Entity, &GroundShape, Has<RigidBody>)>,
) {
    let dynamic = bodies.iter().filter(|(_, body)| body.is_dynamic());
    let near: HashSet<IVec3> = dynamic.flat_map(|(transform, _)| chunks_around(transform.translation)).collect();
    for (entity, shape, has_collider) in &ground {
        let mut entity = commands.entity(entity);
        match (near.contains(&shape.chunk), has_collider) {
            (true, false) => {
                entity.insert(RigidBody::Static).with_children(|parts| {
                    for collider in [&shape.cubes, &shape.boxes].into_iter().flatten() {
                        parts.spawn((collider.clone(), Transform::default()));
                    }
                });
            }
            (false, true) => {
                entity.remove::<RigidBody>().despawn_related::<Children>();
            }
            _ => {}
        }
    }
}

/// Bodies that sleep wake up when the ground near them changes or goes.
fn wake_bodies(
    gone: On<Remove, GroundShape>,
    ground: Query<&GroundShape>,
    bodies: Query<(Entity, &Transform), With<Sleeping>>,
    mut commands: Commands,
) {
    let Ok(shape) = ground.get(gone.entity) else { return };
    for (body, transform) in &bodies {
        if chunks_around(transform.translation).any(|chunk| chunk == shape.chunk) {
            commands.queue(WakeBody(body));
        }
    }
}

/// Marks a body that is held by [`hold_bodies`].
#[derive(Component)]
struct Held;

/// A body is held where it is while its column of chunks has no shape at all: the ground is not meshed yet, it is no longer loaded, or there
/// are no solid blocks.
fn hold_bodies(
    mut commands: Commands,
    bodies: Query<(Entity, &Transform, &RigidBody, Has<Held>)>,
    ground: Query<&GroundShape>,
) {
    let known: HashSet<IVec2> = ground.iter().map(|shape| shape.chunk.xz()).collect();
    for (body, transform, kind, is_held) in &bodies {
        let has_ground = !kind.is_dynamic() || known.contains(&chunk_at(transform.translation).xz());
        match (has_ground, is_held) {
            (true, true) => commands.entity(body).remove::<(Held, RigidBodyDisabled)>(),
            (false, false) => commands.entity(body).insert((Held, RigidBodyDisabled)),
            _ => continue,
        };
    }
}
