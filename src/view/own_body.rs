//! The player's own body, which the main world moves before its region does, and the bodies that other entities follow.

use super::{Dimension, DimensionClock, Mirror, MirrorIndex, PublishedColumns};
use crate::body::BodyMover;
use crate::simulation::{BodyState, BodyTypes, Intent, Position, Prediction, Steer, SteeredBody, Steering};
use crate::space::ChunkPos;
use bevy::ecs::system::SystemParam;
use bevy::prelude::*;
use std::iter;
use std::time::Duration;
use uuid::Uuid;

/// The body that a player controls: put it on the player's camera, or on its parent. As soon as the entity's [`Intent`] changes, the
/// body moves, by the same steps as in its region, and among the blocks as the main world shows them. The body is where it is
/// [shown](Prediction::shown), in the entity's [`Position`] and, with `ChunkRenderPlugin`, in its `Transform`.
///
/// In its region, the body's entity has a [`CharacterController`](crate::simulation::CharacterController). Until it is known here, the
/// body does not move.
///
/// When the body becomes known, [`Intent::look`] is set to where it looked last.
///
/// On a client of a server, the body of the entity that [acts](crate::view::ChunkSyncPeer::with_actor) for the client works the same.
///
/// ```
/// use bevy_terrane::prelude::*;
/// use bevy_terrane::view::PlayerLoggedIn;
///
/// fn control(mut commands: Commands, mut logged_in: MessageReader<PlayerLoggedIn>) {
///     for player in logged_in.read() {
///         commands.spawn((OwnBody::new(player.id), Camera3d::default()));
///     }
/// }
/// # use bevy::camera::Camera3d;
/// # bevy::ecs::system::assert_is_system(control);
/// ```
#[derive(Component, Clone, Debug, Reflect)]
#[type_path = "bevy_terrane"]
#[require(Intent, Position)]
#[reflect(opaque)]
#[reflect(Component, Clone, Debug)]
pub struct OwnBody {
    id: Uuid,
    prediction: Option<Prediction>,
    /// The newest that is known of it, if it was not looked at yet.
    known: Option<SteeredBody>,
    /// The real time since the last step.
    since: Duration,
    /// A jump that was wished for since the last step, and may be over.
    jumps: bool,
}

impl OwnBody {
    /// The body of the entity with this stable id.
    pub fn new(id: Uuid) -> Self {
        Self { id, prediction: None, known: None, since: Duration::ZERO, jumps: false }
    }

    /// The stable id of its entity.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// The body after its last step; `None` until its region has told of it.
    pub fn state(&self) -> Option<&BodyState> {
        self.prediction.as_ref().map(Prediction::state)
    }

    /// Tells what its region, or a server, knows of the body.
    pub fn set_known(&mut self, known: SteeredBody) {
        self.known = Some(known);
    }
}

/// A step that an [`OwnBody`] has made. It is sent to the body's region, or to the server that has it.
#[derive(Message, Clone, Copy, Debug, PartialEq)]
pub struct OwnStep {
    /// The stable id of the body's entity.
    pub id: Uuid,
    /// The step.
    pub step: Steer,
}

/// The plugin's tick rate.
#[derive(Resource, Clone, Copy)]
pub(crate) struct MainTicks {
    pub clock: DimensionClock,
    /// Each update is a tick.
    pub is_lockstep: bool,
}

/// The steps that a slow frame makes up for.
const MOST_STEPS: u32 = 5;
/// The limits of the real time between two steps.
const FASTEST_STEP: Duration = Duration::from_millis(1);
const SLOWEST_STEP: Duration = Duration::from_secs(60);

/// Takes in what the regions know of own bodies.
pub(crate) fn know_own_bodies(
    index: Res<MirrorIndex>,
    mirrors: Query<&Steering, (With<Mirror>, Changed<Steering>)>,
    mut bodies: Query<&mut OwnBody>,
) {
    for mut own in &mut bodies {
        let steering = index.entity(own.id).and_then(|mirror| mirrors.get(mirror).ok());
        if let Some(known) = steering.and_then(Steering::state) {
            own.set_known(*known);
        }
    }
}

/// Moves own bodies on to this frame.
pub(crate) fn move_own_bodies(
    time: Res<Time<Real>>,
    types: Option<Res<BodyTypes>>,
    columns: Res<PublishedColumns>,
    ticks: Res<MainTicks>,
    dimensions: Query<(&Dimension, &DimensionClock)>,
    mut bodies: Query<(&mut OwnBody, &mut Position, &mut Intent)>,
    mut steps: MessageWriter<OwnStep>,
) {
    let Some(types) = types else { return };
    for (mut own, mut position, mut intent) in &mut bodies {
        let own = own.bypass_change_detection();
        let known = own.known.take();
        // Where it is known to be, since the game may have moved it to another dimension.
        let predicted = own.prediction.as_ref().map(|body| body.state().position.dimension);
        let dimension = known.map(|known| known.state.position.dimension).or(predicted).unwrap_or_default();
        let clock =
            dimensions.iter().find(|(it, _)| it.id() == Some(dimension)).map_or(ticks.clock, |(_, clock)| *clock);
        let step = own.prediction.as_ref().map_or(clock.period().as_secs_f64(), Prediction::step_seconds);
        let rate = if clock.rate > 0.0 && clock.rate.is_finite() { clock.rate } else { 1.0 };
        let period = Duration::try_from_secs_f64(step / rate).unwrap_or(SLOWEST_STEP).clamp(FASTEST_STEP, SLOWEST_STEP);
        let chunk = |pos: ChunkPos| columns.column(dimension, pos.column())?.loaded_chunk(pos.y);
        let floor = known.map(|known| known.floor).or(own.prediction.as_ref().map(Prediction::floor));
        let mut mover = BodyMover::new(&types, &chunk).with_floor(floor.unwrap_or(i64::MIN));

        own.jumps |= intent.jumps;
        let passed = if ticks.is_lockstep { period } else { time.delta() };
        own.since = (own.since + passed).min(period * MOST_STEPS);
        let Some(body) = &mut own.prediction else {
            own.prediction = known.map(Prediction::new);
            if let Some(body) = &own.prediction {
                intent.look = body.intent().look;
            }
            if own.since >= period && known.is_none() {
                own.since = Duration::ZERO;
                steps.write(OwnStep { id: own.id, step: Steer { number: 0, intent: *intent } });
            }
            continue;
        };
        if let Some(known) = known {
            body.correct(&known, &mut mover);
        }
        while own.since >= period {
            own.since -= period;
            if clock.paused {
                continue;
            }
            let step = body.step(Intent { jumps: own.jumps, ..*intent }, &mut mover);
            own.jumps = intent.jumps;
            steps.write(OwnStep { id: own.id, step });
        }
        body.fade(passed.as_secs_f32());
        let part = if ticks.is_lockstep { 1.0 } else { own.since.div_duration_f32(period) };
        position.set_if_neq(body.shown(part));
    }
}

/// Finds the body that an entity follows: the [`OwnBody`] or the [`Mirror`] that the entity itself is, or the nearest of its parents.
/// An entity that follows a body is in the body's dimension, also after a portal.
#[derive(SystemParam)]
pub struct FollowedBodies<'w, 's> {
    bodies: Query<'w, 's, (&'static Position, Option<&'static OwnBody>), Or<(With<OwnBody>, With<Mirror>)>>,
    parents: Query<'w, 's, &'static ChildOf>,
}

impl FollowedBodies<'_, '_> {
    /// Where the body is; `None` if the entity follows none, or if its region has not told of it yet.
    pub fn position(&self, entity: Entity) -> Option<Position> {
        let mut with_parents = iter::once(entity).chain(self.parents.iter_ancestors(entity));
        let (position, own) = with_parents.find_map(|entity| self.bodies.get(entity).ok())?;
        own.is_none_or(|own| own.state().is_some()).then_some(*position)
    }

    /// Returns `true` if the entity follows a body, known or not.
    pub fn is_follower(&self, entity: Entity) -> bool {
        iter::once(entity).chain(self.parents.iter_ancestors(entity)).any(|entity| self.bodies.contains(entity))
    }
}
