//! The player: a flying camera with hands.

use crate::menu::Menu;
use crate::{OVERWORLD, plant};
use bevy_terrane::prelude::*;
use terrane_dev::{FlyCamera, FlySystems};

/// The reach of the hands, in blocks.
const REACH: f64 = 60.0;

pub struct PlayerPlugin;

impl Plugin for PlayerPlugin {
    fn build(&self, app: &mut App) {
        let plays = |menu: Res<Menu>| !menu.is_open;
        app.add_systems(Startup, start)
            .add_systems(Update, use_hands.run_if(plays))
            .configure_sets(Update, FlySystems.run_if(plays));
    }
}

fn start(mut commands: Commands, dimensions: Res<Dimensions>) {
    let viewer = Viewer::in_dimension(dimensions.id(OVERWORLD)).with_radius(12);
    let view = Transform::from_xyz(0.0, 60.0, 0.0).looking_to(Vec3::new(0.6, -0.35, 1.0), Vec3::Y);
    commands.spawn((FlyCamera::default(), viewer, view));
}

fn use_hands(
    mouse: Res<ButtonInput<MouseButton>>,
    camera: Single<(&Transform, &Viewer)>,
    blocks: PublishedBlocks,
    mut edits: MessageWriter<SetBlock>,
    mut commands: Commands,
) {
    let (eye, viewer) = *camera;
    let Some(dimension) = viewer.dimension() else { return };
    let from = Position::from_translation(dimension, eye.translation);
    let Some(hit) = blocks.cast_ray(from, eye.forward(), REACH, |block| block != BlockId::AIR) else { return };
    if mouse.just_pressed(MouseButton::Left) {
        edits.write(SetBlock { dimension, position: hit.block, block: BlockId::AIR });
    } else if mouse.just_pressed(MouseButton::Middle) {
        plant(&mut commands, dimension, hit.before());
    }
}
