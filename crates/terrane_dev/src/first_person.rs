//! A player in first person.

use bevy::input::mouse::AccumulatedMouseMotion;
use bevy::prelude::*;
use bevy::window::{CursorGrabMode, CursorOptions, PrimaryWindow};
use bevy_terrane::simulation::{BlockBody, BodySystems, BodyTypes, CharacterController, Intent, Position, Viewer};
use bevy_terrane::view::{
    Dimension, DimensionOpen, LogIn, LogInRefused, OwnBody, PlayerLoggedIn, PublishedBlocks, RegionCommands,
};
use std::f32::consts::FRAC_PI_2;

/// Radians per pixel of mouse movement.
const TURN: f32 = 0.003;

/// A player that walks through the world and sees it with its own eyes. Spawn it with a [`Viewer`] of the main world, and add the
/// [`BodyPlugin`](bevy_terrane::plugin::BodyPlugin):
///
/// ```
/// use terrane_dev::FirstPerson;
/// use bevy_terrane::prelude::*;
///
/// fn start(mut commands: Commands, dimensions: Res<Dimensions>) {
///     commands.spawn(Dimension::new("overworld", Hills::seeded(42)));
///     let viewer = Viewer::in_dimension(dimensions.id("overworld")).with_radius(12);
///     commands.spawn((FirstPerson::new("player"), viewer));
/// }
/// # bevy::ecs::system::assert_is_system(start);
/// ```
///
/// Once the ground at its `Transform` is loaded, it logs in under its name. A new player stands there on the highest block and looks
/// where the `Transform` looks; any other is where it left. Then the entity has an [`OwnBody`] and its [`Position`]. A child of the entity
/// has the camera. In its region, the player has a [`BlockBody`], a [`CharacterController`] and a `Viewer` with the same radii, so it can
/// also go through a portal: camera and viewers follow the body.
///
/// On a client of a server, the player is on the entity of the connection instead, without a `Viewer`. It does not log in here, and its name
/// is not used: [`FirstPerson::default`]. The server gives it its body.
///
/// W, A, S and D or the arrow keys walk, Space jumps and swims up, Shift sneaks and Ctrl sprints. A click into the window holds the
/// mouse, which then turns the view, and Escape frees it.
#[derive(Component, Clone, Debug, PartialEq, Reflect)]
#[type_path = "terrane_dev"]
#[require(Intent, Transform, Visibility)]
#[reflect(Component, Clone)]
pub struct FirstPerson {
    /// The name under which the player logs in and is saved.
    pub name: String,
    /// The height of the eyes over the feet, in blocks; 1.62 by default.
    pub eye_height: f32,
    /// `false` while keys and mouse do not move the player, such as in a menu. Then the mouse is free.
    pub takes_input: bool,
}

impl Default for FirstPerson {
    fn default() -> Self {
        Self { name: String::new(), eye_height: 1.62, takes_input: true }
    }
}

impl FirstPerson {
    /// A player of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Where the eyes of the body at this position are, such as for a ray along the look of its [`Intent`].
    pub fn eyes(&self, body: &Position) -> Position {
        let mut eyes = *body;
        eyes.translate(Vec3::Y * self.eye_height);
        eyes
    }
}

/// Logs [`FirstPerson`]s in, and moves them by keys and mouse. [`DevPlugins`](super::DevPlugins) adds it; a test without a window
/// adds it itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstPersonPlugin;

impl Plugin for FirstPersonPlugin {
    fn build(&self, app: &mut App) {
        let steer = (hold_cursor, look, walk, turn_eyes).chain().before(BodySystems);
        let systems = (log_in, arrive, report_refusal, steer).run_if(any_with_component::<FirstPerson>);
        app.register_type::<FirstPerson>().add_observer(open_eyes).add_systems(Update, systems);
    }
}

/// The eyes of a [`FirstPerson`], a child of its entity.
#[derive(Component)]
#[require(Camera3d)]
pub(super) struct Eyes;

/// Marks a player that has begun to log in.
#[derive(Component)]
struct LogsIn;

fn open_eyes(
    added: On<Add, FirstPerson>,
    mut players: Query<(&FirstPerson, &mut Transform, &mut Intent)>,
    mut commands: Commands,
) {
    let Ok((player, mut transform, mut intent)) = players.get_mut(added.entity) else { return };
    let (yaw, pitch, _) = transform.rotation.to_euler(EulerRot::YXZ);
    intent.look = Vec2::new(yaw, pitch);
    transform.rotation = Quat::IDENTITY;
    let eyes = Transform::from_xyz(0.0, player.eye_height, 0.0).with_rotation(intent.rotation());
    commands.spawn((Eyes, eyes, ChildOf(added.entity)));
}

/// Logs players in once the ground at their place is loaded and all dimensions are open, since a player may be in any of them.
fn log_in(
    mut commands: Commands,
    players: Query<(Entity, &FirstPerson, Option<&Viewer>, &Transform), Without<LogsIn>>,
    dimensions: Query<Has<DimensionOpen>, With<Dimension>>,
    blocks: PublishedBlocks,
    bodies: Option<Res<BodyTypes>>,
    mut log_ins: MessageWriter<LogIn>,
) {
    if bodies.is_none() {
        error_once!("a FirstPerson does not walk without BodyPlugin: add it after TerranePlugin");
    }
    // A client of a server has no dimension of its own.
    if dimensions.is_empty() || dimensions.iter().any(|is_open| !is_open) {
        return;
    }
    for (entity, player, viewer, transform) in &players {
        let Some(dimension) = viewer.and_then(Viewer::dimension) else {
            warn_once!(
                "{entity} is a FirstPerson without a Viewer, so it does not log in: add Viewer::in_dimension(id)"
            );
            continue;
        };
        let place = Position::from_translation(dimension, transform.translation);
        if blocks.column(dimension, place.column()).is_some() {
            let ground = blocks.surface(dimension, place.block.x, place.block.z);
            let first = ground.map_or(place.block, |ground| ground.offset(0, 1, 0));
            log_ins.write(LogIn { name: player.name.clone(), first_place: Some((dimension, first)) });
            commands.entity(entity).insert(LogsIn);
        }
    }
}

/// The player has arrived in its region: it has a body there, which the main world moves.
fn arrive(
    mut commands: Commands,
    mut logged_in: MessageReader<PlayerLoggedIn>,
    players: Query<(Entity, &FirstPerson, &Viewer, &Intent), With<LogsIn>>,
) {
    for PlayerLoggedIn { name, id, dimension, block, .. } in logged_in.read() {
        let Some((entity, _, viewer, intent)) = players.iter().find(|(_, player, ..)| player.name == *name) else {
            continue;
        };
        let looks = Intent { look: intent.look, ..default() };
        let follows = Viewer::new().with_radius(viewer.radius).with_generation_radius(viewer.generation_radius);
        let follows = follows.with_vertical_radius(viewer.vertical_radius);
        let give_body = move |mut player: EntityWorldMut| {
            // A player of an earlier session has its body.
            if !player.contains::<CharacterController>() {
                player.insert((BlockBody::new(0.6, 1.8), CharacterController::default(), looks));
            }
            player.insert(follows);
        };
        commands.run_on_region_entity(*id, 0, give_body, |_, lost| error!("the player has no body: {lost}"));
        commands.entity(entity).insert((OwnBody::new(*id), Position::new(*dimension, *block)));
    }
}

fn report_refusal(mut refused: MessageReader<LogInRefused>) {
    for LogInRefused { name, reason } in refused.read() {
        error!("{name:?} cannot log in: {reason}");
    }
}

/// A click into the window holds the cursor; Escape frees it, and so does a player that takes no input.
fn hold_cursor(
    (mouse, keys): (Res<ButtonInput<MouseButton>>, Res<ButtonInput<KeyCode>>),
    players: Query<&FirstPerson>,
    mut cursor: Query<&mut CursorOptions, With<PrimaryWindow>>,
) {
    let (Some(player), Ok(mut cursor)) = (players.iter().next(), cursor.single_mut()) else { return };
    let is_held = cursor.grab_mode != CursorGrabMode::None;
    let frees = keys.just_pressed(KeyCode::Escape) || !player.takes_input;
    if is_held && frees {
        (cursor.grab_mode, cursor.visible) = (CursorGrabMode::None, true);
    } else if !is_held && !frees && mouse.just_pressed(MouseButton::Left) {
        (cursor.grab_mode, cursor.visible) = (CursorGrabMode::Locked, false);
    }
}

/// The held mouse turns the view. Without a window it always does.
fn look(
    motion: Res<AccumulatedMouseMotion>,
    cursor: Query<&CursorOptions, With<PrimaryWindow>>,
    mut players: Query<(&FirstPerson, &mut Intent)>,
) {
    let is_free = cursor.single().is_ok_and(|cursor| cursor.grab_mode == CursorGrabMode::None);
    if is_free || motion.delta == Vec2::ZERO {
        return;
    }
    for (_, mut intent) in players.iter_mut().filter(|(player, _)| player.takes_input) {
        intent.look -= TURN * motion.delta;
        intent.look.y = intent.look.y.clamp(-FRAC_PI_2, FRAC_PI_2);
    }
}

/// An intent holds until it is changed, so a player that takes no input gets that of standing still.
fn walk(keys: Res<ButtonInput<KeyCode>>, mut players: Query<(&FirstPerson, &mut Intent)>) {
    for (player, mut intent) in &mut players {
        let pressed = |any: [KeyCode; 2]| player.takes_input && keys.any_pressed(any);
        let axis = |one, other| f32::from(i8::from(pressed(one)) - i8::from(pressed(other)));
        let ahead = axis([KeyCode::KeyW, KeyCode::ArrowUp], [KeyCode::KeyS, KeyCode::ArrowDown]);
        let right = axis([KeyCode::KeyD, KeyCode::ArrowRight], [KeyCode::KeyA, KeyCode::ArrowLeft]);
        intent.walk(ahead, right);
        intent.jumps = pressed([KeyCode::Space; 2]);
        intent.sneaks = pressed([KeyCode::ShiftLeft, KeyCode::ShiftRight]);
        intent.sprints = pressed([KeyCode::ControlLeft, KeyCode::ControlRight]);
    }
}

/// The eyes turn with the look.
fn turn_eyes(
    players: Query<(&Intent, &Children), (With<FirstPerson>, Changed<Intent>)>,
    mut eyes: Query<&mut Transform, With<Eyes>>,
) {
    for (intent, children) in &players {
        let mut own = eyes.iter_many_mut(children);
        while let Some(mut eyes) = own.fetch_next() {
            eyes.rotation = intent.rotation();
        }
    }
}
