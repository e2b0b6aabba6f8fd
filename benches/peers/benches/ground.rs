//! Workload V1, compared with bevy_voxel_world: from nothing to 512 x 512 blocks around the viewer, generated, published
//! and meshed. `cargo bench --manifest-path benches/peers/Cargo.toml --bench ground`.
//!
//! Both get the same ground and the same frames, and start near the viewer. They run in alternating rounds. bevy_terrane also
//! writes the ground to disk, as always.

#[path = "../../worlds/square.rs"]
#[allow(missing_docs)]
mod square;

use bevy::camera::Camera;
use bevy::prelude::*;
use bevy::shader::Shader;
use bevy_terrane::prelude::Hills;
use bevy_voxel_world::prelude::*;
use square::{HALF, HEIGHT, Seen, app, terrane, watch};

const ROUNDS: usize = 3;
/// The edge length of a chunk in bevy_voxel_world, in blocks.
const CHUNK: f32 = 32.0;
/// The same including the neighbouring blocks, which its mesher reads.
const PADDED: usize = 34;

#[derive(Resource, Clone, Default)]
struct Ground;

impl VoxelWorldConfig for Ground {
    type MaterialIndex = u8;
    type ChunkUserBundle = ();

    /// The distance to the corners of the square, in chunks.
    fn spawning_distance(&self) -> u32 {
        (HALF.hypot(HALF) / CHUNK).ceil() as u32
    }

    fn chunk_despawn_strategy(&self) -> ChunkDespawnStrategy {
        ChunkDespawnStrategy::FarAway
    }

    fn chunk_spawn_strategy(&self) -> ChunkSpawnStrategy {
        ChunkSpawnStrategy::Close
    }

    fn voxel_lookup_delegate(&self) -> VoxelLookupDelegate<u8> {
        Box::new(|chunk, _, _| {
            let hills = Hills::seeded(42);
            let corner = chunk * CHUNK as i32 - 1;
            // Each height is computed once per chunk, and never for chunks of only air or only stone.
            let mut heights = vec![None; PADDED * PADDED];
            Box::new(move |block, _| {
                if i64::from(block.y) >= HEIGHT {
                    return WorldVoxel::Air;
                }
                if i64::from(block.y) < -HEIGHT {
                    return WorldVoxel::Solid(0);
                }
                let at = block - corner;
                let height = &mut heights[at.x as usize + at.z as usize * PADDED];
                let height = *height.get_or_insert_with(|| hills.height_at(block.x.into(), block.z.into()));
                if i64::from(block.y) <= height { WorldVoxel::Solid(1) } else { WorldVoxel::Air }
            })
        })
    }
}

fn voxel_world() -> App {
    let mut app = app();
    app.init_asset::<Shader>();
    app.add_plugins(VoxelWorldPlugin::with_config(Ground).with_material(StandardMaterial::default()));
    app.world_mut().spawn((Camera::default(), Transform::default(), VoxelWorldCamera::<Ground>::default()));
    app
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn main() {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let folder = tempfile::tempdir().expect("a folder for the world");
        let Seen { after, meshes } = watch(&mut terrane(folder.path()));
        println!("V1 bevy_terrane      {:>6.2} s, {meshes} meshes", after.as_secs_f64());
        ours.push(after.as_secs_f64());
        let Seen { after, meshes } = watch(&mut voxel_world());
        println!("V1 bevy_voxel_world  {:>6.2} s, {meshes} meshes", after.as_secs_f64());
        theirs.push(after.as_secs_f64());
    }
    let ratio = median(theirs) / median(ours);
    println!("V1 bevy_voxel_world takes {ratio:.1} times as long (medians of {ROUNDS}); goal: 20");
}
