//! With a window: a flying camera, and hands that break and place blocks.

use crate::arguments::Arguments;
use crate::fly::{Flying, fly, turn};
use crate::palette::Palette;
use crate::view::{self, Viewpoints};
use bevy_egui::PrimaryEguiContext;
use bevy_egui::input::{egui_wants_any_keyboard_input, egui_wants_any_pointer_input};
use bevy_terrane::prelude::*;

/// The reach of the hands, in blocks.
const REACH: f32 = 200.0;

/// Lets the player fly, dig and build.
pub struct HandsPlugin;

impl Plugin for HandsPlugin {
    fn build(&self, app: &mut App) {
        app.add_systems(Startup, spawn_camera).add_systems(
            Update,
            (
                fly.run_if(not(egui_wants_any_keyboard_input)),
                (turn, use_hands).run_if(not(egui_wants_any_pointer_input)),
            ),
        );
    }
}

/// Spawns the camera, which is the viewer that keeps the land around it loaded.
fn spawn_camera(
    mut commands: Commands,
    dimension: Single<Entity, With<Dimension>>,
    arguments: Res<Arguments>,
    viewpoints: Res<Viewpoints>,
) {
    let radius = arguments.radius;
    commands.spawn((
        view::camera(radius as f32 * 16.0 * 0.97),
        viewpoints.by_the_lake,
        Flying { speed: 40.0 },
        Viewer::in_dimension(*dimension).with_radius(radius),
        PrimaryEguiContext,
    ));
}

/// Breaks or places the block under the pointer.
fn use_hands(
    mouse: Res<ButtonInput<MouseButton>>,
    keys: Res<ButtonInput<KeyCode>>,
    window: Single<&Window>,
    camera: Single<(&Camera, &GlobalTransform)>,
    dimension: Single<Entity, With<Dimension>>,
    blocks: PublishedBlocks,
    palette: Res<Palette>,
    mut edits: MessageWriter<SetBlock>,
) {
    let breaks = mouse.just_pressed(MouseButton::Left);
    let places = mouse.just_pressed(MouseButton::Middle) || keys.just_pressed(KeyCode::KeyR);
    if !(breaks || places) {
        return;
    }
    let (camera, transform) = *camera;
    let pointed_at = window.cursor_position().and_then(|cursor| camera.viewport_to_world(transform, cursor).ok());
    let Some((hit, before)) = pointed_at.and_then(|ray| first_block(ray, &blocks, *dimension)) else { return };
    // Landmarks cannot be broken, because the next run checks them.
    let is_landmark = blocks.block(*dimension, hit).is_some_and(|block| palette.is_landmark(block));
    if breaks && !is_landmark {
        edits.write(SetBlock { dimension: *dimension, position: hit, block: BlockId::AIR });
    }
    if places {
        edits.write(SetBlock { dimension: *dimension, position: before, block: palette.stone });
    }
}

/// The first block on the ray that is not air, and the position before it. The search steps from one block boundary to the
/// next, so it misses no block.
fn first_block(ray: Ray3d, blocks: &PublishedBlocks, dimension: Entity) -> Option<(BlockPos, BlockPos)> {
    let direction = ray.direction.as_vec3();
    let mut cell = ray.origin.floor();
    let step = direction.signum();
    let per_block = direction.recip().abs();
    let first_border = cell + step.max(Vec3::ZERO);
    let mut border =
        ((first_border - ray.origin) / direction).map(|distance| if distance.is_nan() { f32::MAX } else { distance });
    let block_pos = |cell: Vec3| BlockPos::new(cell.x as i64, cell.y as i64, cell.z as i64);
    loop {
        let before = block_pos(cell);
        let axis = border.min_position();
        if border[axis] > REACH {
            return None;
        }
        cell[axis] += step[axis];
        border[axis] += per_block[axis];
        if blocks.block(dimension, block_pos(cell)).is_some_and(|block| block != BlockId::AIR) {
            return Some((block_pos(cell), before));
        }
    }
}
