//! The fog of cameras that are inside of a liquid.

use super::SeenDimension;
use super::looks::{Form, LooksInUse, liquid_height};
use crate::chunk_meshes::RenderOrigin;
use bevy::camera::ClearColorConfig;
use bevy::prelude::*;
use bevy_terrane::simulation::Position;
use bevy_terrane::view::PublishedBlocks;

/// Marks a camera that is inside of a liquid and sees its [fog](super::BlockLook::fog). It has what the camera had before.
#[derive(Component, Clone, Debug, Reflect)]
#[type_path = "terrane_render"]
#[reflect(opaque)]
#[reflect(Component, Clone)]
pub struct InsideLiquid {
    fog: Option<DistanceFog>,
    clear_color: ClearColorConfig,
}

/// The part of a block that is below the surface, in blocks.
fn liquid_depth(form: &Form, is_surface: bool) -> f32 {
    match form {
        Form::Liquid(level) if is_surface => f32::from(liquid_height(*level)) / 16.0,
        _ => 1.0,
    }
}

/// Gives cameras inside of a block with [fog](super::BlockLook::fog) that fog, and takes it away outside.
pub(super) fn fog_inside_liquids(
    mut cameras: Query<
        (Entity, &mut Camera, &GlobalTransform, Option<&DistanceFog>, Option<&InsideLiquid>),
        With<Camera3d>,
    >,
    seen: SeenDimension,
    blocks: PublishedBlocks,
    looks: Res<LooksInUse>,
    origin: Res<RenderOrigin>,
    mut commands: Commands,
) {
    let Some((table, _)) = looks.table() else { return };
    for (entity, mut camera, transform, fog, ashore) in &mut cameras {
        let Some(dimension) = seen.by(entity) else { continue };
        let mut eye = Position { dimension, block: origin.0, offset: Vec3::ZERO };
        eye.translate(transform.translation());
        let at = |block| blocks.block(dimension, block);
        let inside = at(eye.block).and_then(|block| {
            let is_surface =
                at(eye.block.offset(0, 1, 0)).is_none_or(|above| table.of(above).name != table.of(block).name);
            let depth = liquid_depth(&table.of(block).form, is_surface);
            table.fog(block).filter(|_| eye.offset.y <= depth)
        });
        let mut entity = commands.entity(entity);
        match (inside, ashore) {
            (Some(([red, green, blue], distance)), _) => {
                let color = Color::srgb_u8(red, green, blue);
                if ashore.is_none() {
                    entity.insert(InsideLiquid { fog: fog.cloned(), clear_color: camera.clear_color });
                    camera.clear_color = ClearColorConfig::Custom(color);
                }
                let falloff = FogFalloff::from_visibility_color(distance, color);
                entity.insert(DistanceFog { color, falloff, ..default() });
            }
            (None, Some(InsideLiquid { fog, clear_color })) => {
                camera.clear_color = *clear_color;
                match fog {
                    Some(fog) => entity.insert(fog.clone()),
                    None => entity.remove::<DistanceFog>(),
                };
                entity.remove::<InsideLiquid>();
            }
            (None, None) => {}
        }
    }
}
