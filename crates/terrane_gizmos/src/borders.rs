//! The borders of regions and chunks, and the chunks with unsaved changes.

use crate::eyes::Eyes;
use crate::lines::{Wall, corner, edges, lattice, walls};
use crate::sight::Sights;
use crate::{ChunkGizmos, RegionGizmos, UnsavedGizmos};
use bevy::color::palettes::css::{ORANGE, YELLOW};
use bevy::prelude::*;
use bevy_terrane::region::RegionId;
use bevy_terrane::space::ChunkPos;
use bevy_terrane::view::WorldStatistics;

/// The borders of regions that are drawn, in chunks from the camera: along the ground, and up and down.
const REGION_RADIUS: i64 = 16;
const REGION_HEIGHT: i64 = 4;
/// The chunks around that of the camera whose edges are drawn.
const CHUNK_RADIUS: i64 = 4;
/// The walls of a region are so far inside of it, in blocks, that those of two neighbors are both seen.
const INSET: f32 = 0.05;
const CHUNK_COLOR: Color = Color::srgba(0.6, 0.8, 1.0, 0.4);

pub fn draw_regions(mut gizmos: Gizmos<RegionGizmos>, eyes: Eyes, statistics: Res<WorldStatistics>) {
    for eye in eyes.places() {
        let height = eye.block.chunk().y;
        for region in statistics.regions.iter().filter(|region| region.dimension == eye.dimension) {
            let color = region_color(region.region);
            let walls = walls(&region.sections, statistics.section_shift, eye.column(), REGION_RADIUS);
            for Wall { low, high, outward } in walls {
                let inward = Vec3::new(-outward.0 as f32, 0.0, -outward.1 as f32) * INSET;
                for [from, to] in lattice(low.chunk(height - REGION_HEIGHT), high.chunk(height + REGION_HEIGHT + 1)) {
                    let [from, to] = [from, to].map(|end| corner(end, eyes.origin()) + inward);
                    gizmos.line(from, to, color);
                }
            }
        }
    }
}

pub fn draw_chunks(mut gizmos: Gizmos<ChunkGizmos>, eyes: Eyes) {
    for eye in eyes.places() {
        let here = eye.block.chunk();
        let moved = |by: i64| ChunkPos::new(here.x + by, here.y + by, here.z + by);
        let around = lattice(moved(-CHUNK_RADIUS), moved(CHUNK_RADIUS + 1)).map(|line| (line, CHUNK_COLOR));
        // The edges of the camera's own chunk are drawn last, over the others.
        for ([from, to], color) in around.chain(edges(here).map(|line| (line, YELLOW.into()))) {
            gizmos.line(corner(from, eyes.origin()), corner(to, eyes.origin()), color);
        }
    }
}

pub fn draw_unsaved(mut gizmos: Gizmos<UnsavedGizmos>, eyes: Eyes, sights: Res<Sights>) {
    for chunk in sights.near(&eyes.places()).flat_map(|seen| &seen.unsaved) {
        for [from, to] in edges(*chunk) {
            gizmos.line(corner(from, eyes.origin()), corner(to, eyes.origin()), ORANGE);
        }
    }
}

/// The color that the overlay's map gives to a region: very different hues for consecutive ids.
fn region_color(region: RegionId) -> Color {
    /// The fractional part of the golden ratio, times 2^64. Wrapping multiplication keeps the fraction of every multiple.
    const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;
    let index = region.index();
    let hue = (index.wrapping_mul(GOLDEN_RATIO) >> 40) as f32 / (1 << 24) as f32;
    let saturation = if index.is_multiple_of(2) { 0.78 } else { 0.92 };
    // In egui, the red, green and blue of a hue are linear.
    let color = Srgba::from(Hsva::new(hue * 360.0, saturation, 0.85, 1.0));
    Color::linear_rgb(color.red, color.green, color.blue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_have_the_colors_of_the_overlay() {
        let of_overlay = [(0, [237, 120, 120]), (1, [74, 148, 237]), (2, [199, 237, 120]), (7, [90, 237, 74])];
        for (index, rgb) in of_overlay {
            let Srgba { red, green, blue, .. } = region_color(RegionId::new(index)).to_srgba();
            let found = [red, green, blue].map(|part| (part * 255.0).round() as u8);
            assert!(found.iter().zip(rgb).all(|(a, b)| a.abs_diff(b) <= 1), "{index}: {found:?}, {rgb:?}");
        }
    }
}
