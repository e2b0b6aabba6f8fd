//! The player: comes back where it left, and walks.

use super::{bag::Bag, chests, land, sheep};
use bevy::input::mouse::AccumulatedMouseMotion;
use bevy_terrane::prelude::*;
use bevy_terrane::view::{LogIn, PlayerLoggedIn};
use std::f32::consts::FRAC_PI_2;

/// The height of the eyes over the feet.
const EYES: f32 = 1.62;
/// Radians for each pixel of the mouse.
const TURN: f32 = 0.003;

/// The eyes of the player, children of its own body.
#[derive(Component)]
#[require(Camera3d)]
pub struct Eyes;

pub fn build(app: &mut App) {
    app.add_systems(Startup, open_eyes)
        .add_systems(Update, (log_in, arrive, (look.run_if(chests::are_closed), walk).chain().before(BodySystems)));
}

fn open_eyes(mut commands: Commands, dimensions: Res<Dimensions>) {
    let viewer = Viewer::in_dimension(dimensions.id(land::NAME)).with_radius(10);
    let [x, y, z] = [land::ARRIVAL.x, land::ARRIVAL.y, land::ARRIVAL.z].map(|at| at as f32);
    commands.spawn((Eyes, viewer, Transform::from_xyz(x, y, z)));
}

fn log_in(mut opened: MessageReader<DimensionOpened>, mut log_ins: MessageWriter<LogIn>) {
    for opened in opened.read() {
        log_ins.write(LogIn { name: "player".to_owned(), first_place: Some((opened.dimension, land::ARRIVAL)) });
    }
}

/// A new player gets a body, a bag and a flock of sheep in its region. In the main world, its own body carries the eyes.
fn arrive(mut commands: Commands, mut players: MessageReader<PlayerLoggedIn>, eyes: Single<Entity, With<Eyes>>) {
    for player in players.read() {
        if player.new {
            let equip = |mut player: EntityWorldMut| {
                let looks = Intent { look: Vec2::new(-2.4, -0.25), ..default() };
                player.insert((BlockBody::new(0.6, 1.8), CharacterController::default(), looks, Bag::new()));
            };
            commands.run_on_region_entity(player.id, 0, equip, |_, lost| error!("no body: {lost}"));
            sheep::settle(&mut commands, player.dimension);
        }
        let own = commands.spawn((OwnBody::new(player.id), Transform::default(), Visibility::default())).id();
        commands.entity(*eyes).insert((ChildOf(own), Transform::from_xyz(0.0, EYES, 0.0)));
    }
}

/// The mouse turns the view.
fn look(
    motion: Res<AccumulatedMouseMotion>,
    mut own: Single<&mut Intent, With<OwnBody>>,
    mut eyes: Single<&mut Transform, With<Eyes>>,
) {
    if motion.delta != Vec2::ZERO {
        own.look -= TURN * motion.delta;
        own.look.y = own.look.y.clamp(-FRAC_PI_2, FRAC_PI_2);
    }
    eyes.rotation = own.rotation();
}

/// W, A, S and D walk, Space jumps and swims up, Shift sneaks, Ctrl sprints.
fn walk(keys: Res<ButtonInput<KeyCode>>, mut own: Single<&mut Intent, With<OwnBody>>) {
    let pressed = |key: KeyCode| f32::from(u8::from(keys.pressed(key)));
    own.walk(pressed(KeyCode::KeyW) - pressed(KeyCode::KeyS), pressed(KeyCode::KeyD) - pressed(KeyCode::KeyA));
    own.jumps = keys.pressed(KeyCode::Space);
    own.sneaks = keys.pressed(KeyCode::ShiftLeft);
    own.sprints = keys.pressed(KeyCode::ControlLeft);
}
