//! Faces that meet without gaps.

use crate::rounds;
use crate::studio::{Paint, Scene, Studio};
use bevy::prelude::*;
use bevy_terrane::block::BlockShape;
use bevy_terrane::prelude::*;
use std::sync::Arc;
use terrane_render::{ChunkRenderPlugin, RenderMode};

const SIZE: UVec2 = UVec2::new(1_280, 720);

fn noise(place: [i64; 3], seed: u64) -> u64 {
    let mixed =
        place.iter().fold(seed, |sum, axis| (sum ^ *axis as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29));
    mixed.wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 32
}

/// A closed room in the rock with pillars, slabs and stairs, of three kinds of stone.
fn room(place: [i64; 3]) -> usize {
    let [x, y, z] = place;
    let kind = 1 + (noise(place.map(|axis| axis >> 1), 1) % 4).saturating_sub(1) as usize;
    let is_inside = (-20..24).contains(&x) && (3..21).contains(&y) && (-20..24).contains(&z);
    let is_pillar = noise([x >> 1, 0, z >> 1], 2).is_multiple_of(30);
    match is_inside && !is_pillar {
        false => kind,
        true if y == 3 && noise(place, 3).is_multiple_of(20) => 4 + noise(place, 4) as usize % 2,
        true if noise(place, 5).is_multiple_of(200) => kind,
        true => 0,
    }
}

fn paints() -> Vec<Paint> {
    let slab = BlockType::new("test:slab").with_shape(BlockShape::slab());
    let stairs = BlockType::new("test:stairs").with_shape(BlockShape::stairs());
    let stones = ["a", "b", "c"].map(|name| BlockType::new(format!("test:{name}")));
    let colors = [[30, 90, 30], [30, 120, 40], [20, 80, 60], [60, 110, 40], [40, 100, 20]];
    let blocks = stones.into_iter().chain([slab, stairs]);
    let paint = |(block, [red, green, blue]): (BlockType, [u8; 3])| {
        Paint::new(block.with_color([red, green, blue]), [red, green, blue, 255], RenderMode::Opaque)
    };
    blocks.zip(colors).map(paint).collect()
}

/// The views of the room, at places with air around them.
fn views() -> impl Iterator<Item = Transform> {
    let open = |place: [i64; 3]| {
        (-1..=1)
            .all(|dx| (-1..=1).all(|dy| (-1..=1).all(|dz| room([place[0] + dx, place[1] + dy, place[2] + dz]) == 0)))
    };
    let part = |number: i64, seed: u64| noise([number, 0, 0], seed) as f32 / (1u64 << 32) as f32;
    let views = (0..).map(move |number| {
        let place = [part(number, 11) * 44.0 - 20.0, part(number, 12) * 18.0 + 3.0, part(number, 13) * 44.0 - 20.0];
        let way = Vec3::new(part(number, 14), part(number, 15), part(number, 16)) * 2.0 - 1.0;
        (place, way)
    });
    views
        .filter(move |(place, _)| open(place.map(|axis| axis.floor() as i64)))
        .map(|(place, way)| Transform::from_translation(Vec3::from(place)).looking_to(way, Vec3::Y))
}

/// The number of pixels in which nothing shows, wholly or in part.
fn holes(picture: &[u8]) -> usize {
    // The rock is green, what is behind it is not.
    picture.as_chunks::<4>().0.iter().filter(|[red, green, blue, _]| red > green || blue > green).count()
}

fn check(name: &'static str, msaa: Msaa, origin: BlockPos) {
    let mut studio = Studio::new(name, SIZE, (paints(), Arc::new(room) as Scene), ChunkRenderPlugin::default(), msaa);
    studio.set_origin(origin);
    let moved = Vec3::new(origin.x as f32, origin.y as f32, origin.z as f32);
    let found: Vec<usize> = views()
        .take(rounds(20))
        .map(|view| holes(&studio.shoot(view.with_translation(view.translation - moved))))
        .collect();
    let sum: usize = found.iter().sum();
    assert!(
        sum == 0,
        "{sum} holes in {} of {} pictures: {found:?}",
        found.iter().filter(|holes| **holes > 0).count(),
        found.len()
    );
}

/// Promise, looks: No single pixels open between joined faces, with and without MSAA, also far from the origin.
#[test]
fn a_closed_room_has_no_holes() {
    check("seams", Msaa::Off, BlockPos::new(0, 0, 0));
}

/// Promise, looks: No single pixels open between joined faces, with and without MSAA, also far from the origin.
#[test]
fn a_closed_room_has_no_holes_with_msaa() {
    check("seams-msaa", Msaa::Sample4, BlockPos::new(0, 0, 0));
}

/// Promise, looks: No single pixels open between joined faces, with and without MSAA, also far from the origin.
#[test]
fn a_closed_room_has_no_holes_far_from_the_origin() {
    check("seams-far", Msaa::Off, BlockPos::new(-40_000, 0, 70_000));
}
