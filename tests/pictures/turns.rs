//! Textures that turn differently on each block.

use crate::studio::{Paint, Scene, Studio};
use bevy::camera::{OrthographicProjection, Projection, ScalingMode};
use bevy::prelude::*;
use bevy_terrane::prelude::*;
use std::sync::Arc;
use terrane_render::{ChunkRenderPlugin, RenderMode};

/// Blocks along a side of the picture, and pixels along a side of a block.
const BLOCKS: usize = 64;
const PIXELS: usize = 16;

/// The colors of the texture's quarters.
const QUARTERS: [[u8; 3]; 4] = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 0]];

/// The turn of each block of the ground, by x and z.
fn turns(studio: &mut Studio, origin: BlockPos) -> Vec<[usize; BLOCKS]> {
    studio.set_origin(origin);
    let middle = Vec3::new(-origin.x as f32, 30.0 - origin.y as f32, -origin.z as f32);
    let picture = studio.shoot(Transform::from_translation(middle).looking_to(Vec3::NEG_Y, Vec3::NEG_Z));
    let color = |x: usize, z: usize| {
        let (x, z) = (x * PIXELS + PIXELS / 4, z * PIXELS + PIXELS / 4);
        &picture[(z * BLOCKS * PIXELS + x) * 4..][..3]
    };
    let turn = |x, z| QUARTERS.iter().position(|quarter| quarter == color(x, z)).expect("a quarter of the texture");
    (0..BLOCKS).map(|x| std::array::from_fn(|z| turn(x, z))).collect()
}

/// Promise, looks: Textures with `random_turn` turn by the place of a block in the world, without a pattern, wherever the origin of the
/// main world's space is.
#[test]
fn textures_turn_by_the_place_in_the_world() {
    let texture = (0..256).map(|pixel| {
        let [red, green, blue] = QUARTERS[usize::from(pixel % 16 >= 8) + 2 * usize::from(pixel / 16 >= 8)];
        [red, green, blue, 255]
    });
    let block = BlockType::new("test:ground");
    let ground = Paint { block, pixels: texture.collect(), mode: RenderMode::Opaque, random_turn: true };
    let projection = OrthographicProjection {
        scaling_mode: ScalingMode::Fixed { width: BLOCKS as f32, height: BLOCKS as f32 },
        ..OrthographicProjection::default_3d()
    };
    let camera = (Projection::Orthographic(projection), Msaa::Off);
    let size = UVec2::splat((BLOCKS * PIXELS) as u32);
    let scene = (vec![ground], Arc::new(|[_, y, _]: [i64; 3]| usize::from(y < 0)) as Scene);
    let mut studio = Studio::new("turns", size, scene, ChunkRenderPlugin::default(), camera);
    let turns_here = turns(&mut studio, BlockPos::new(0, 0, 0));
    for (x, z) in [(1, 0), (0, 1), (16, 0), (0, 16), (32, 0), (16, 16), (0, 32), (32, 32)] {
        let places = (0..BLOCKS - x).flat_map(|at_x| (0..BLOCKS - z).map(move |at_z| [at_x, at_z]));
        let (all, equal) = places.fold((0, 0), |(all, equal), [at_x, at_z]| {
            (all + 1, equal + usize::from(turns_here[at_x][at_z] == turns_here[at_x + x][at_z + z]))
        });
        // A quarter, within six standard deviations.
        let most = all as f64 * 0.25 + 6.0 * (all as f64 * 0.25 * 0.75).sqrt();
        assert!((equal as f64) < most, "{equal} of {all} blocks are turned like the one {x}, {z} away");
    }
    for turn in 0..4 {
        let blocks = turns_here.iter().flatten().filter(|other| **other == turn).count();
        assert!((900..1150).contains(&blocks), "{blocks} blocks are turned by {turn} quarters");
    }
    assert!(turns(&mut studio, BlockPos::new(-5, 3, 21)) == turns_here, "the origin turns textures");
}
