//! [`Walk`]: a character walks along the path of its entity.

mod steps;
#[cfg(test)]
mod tests;

use super::character::{CharacterController, Intent};
use super::{BlockBody, BodyState, BodyVelocity, Grounded};
use crate::path::Path;
use crate::simulation::Position;
use crate::simulation::entities::StableId;
use crate::simulation::paths::PathTo;
use crate::space::BlockPos;
use bevy::prelude::*;
use serde::{Deserialize, Serialize};
use std::f32::consts::{PI, TAU};
use std::mem;
use steps::Legs;

/// Lets a character walk along the path of its [`PathTo`], with the speeds and jumps of its [`CharacterController`]: it steps, jumps, falls,
/// swims and climbs where the path leads. At the end it stands, keeps afloat in liquids, and [`WalkEnded`] is triggered.
/// [`WalkPlugin`](crate::plugin::WalkPlugin) is needed.
///
/// While the entity has a [`PathTo`], the walk sets its [`Intent`]. It is saved, and goes on after a restart.
///
/// ```
/// use bevy_terrane::plugin::WalkPlugin;
/// use bevy_terrane::prelude::*;
/// use bevy_terrane::simulation::{PathTo, Walk, WalkEnded};
///
/// #[derive(Component)]
/// struct Sheep;
///
/// fn call(mut commands: Commands, sheep: Query<(Entity, &BlockBody, &CharacterController), (With<Walk>, Without<PathTo>)>) {
///     for (sheep, body, character) in &sheep {
///         commands.entity(sheep).insert(PathTo::new(character.walker(body), BlockPos::new(5, 64, 0)));
///     }
/// }
///
/// fn report(ended: On<WalkEnded>) {
///     info!("{:?} at {}", ended.end, ended.goal);
/// }
///
/// # let mut app = App::new();
/// # app.add_plugins((MinimalPlugins, TerranePlugin::default()));
/// app.add_plugins((BodyPlugin, WalkPlugin::default())).add_region_plugins(|region| {
///     region.add_systems(RegionTick, call).add_observer(report);
/// });
/// ```
#[derive(Component, Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Reflect)]
#[type_path = "bevy_terrane"]
#[require(CharacterController)]
#[reflect(Component, Default, Clone)]
pub struct Walk {
    /// The share of its speeds at which the character walks, swims and climbs: 0 to 1.
    pub pace: f32,
    /// How fast its look turns towards its way, in radians per second.
    pub turn: f32,
    /// After so many seconds in which the character comes no nearer to the next point of its path, it asks for another path. If it gets no
    /// farther on that one, it is stuck.
    pub patience: f32,
    progress: Progress,
}

impl Default for Walk {
    /// At full speed, with half a turn in a second, and three seconds of patience.
    fn default() -> Self {
        Self { pace: 1.0, turn: PI, patience: 3.0, progress: Progress::default() }
    }
}

/// How near a walk has come to a waypoint.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Reflect)]
#[type_path = "bevy_terrane"]
struct Progress {
    /// The waypoint, by its number.
    next: u32,
    /// The least distance to it, in blocks.
    distance: f32,
    /// The seconds since the walk came nearer.
    waited: f32,
    /// The waypoints to be reached until the last delay is forgotten.
    on_trial: u8,
}

impl Default for Progress {
    /// From here, any distance to the first waypoint is progress.
    fn default() -> Self {
        Self { next: 0, distance: f32::MAX, waited: 0.0, on_trial: 0 }
    }
}

/// Triggered in its region for an entity whose [`Walk`] has ended.
#[derive(EntityEvent, Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkEnded {
    /// The entity in this region.
    pub entity: Entity,
    /// The goal of its [`PathTo`].
    pub goal: BlockPos,
    /// Where it ended.
    pub end: WalkEnd,
}

/// The end of a [`Walk`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkEnd {
    /// At the goal.
    Arrived,
    /// At the end of a path that leads only near the goal. To a goal that is far away, the entity can ask for the rest of the way from here.
    NoWay,
    /// Somewhere on the way, where something holds the character.
    Stuck,
}

/// What a walk does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Goes,
    /// It needs another path.
    Searches,
    Ends(WalkEnd),
}

impl Walk {
    /// The progress that is progress, in blocks.
    const LEAST: f32 = 1.0 / 16.0;
    /// A delay is forgotten after so many waypoints.
    const TRIAL: u8 = 8;

    /// Sets the next intent of a body on its path, for a tick of some seconds.
    fn advance(&mut self, path: &mut Path, legs: &Legs, state: &BodyState, intent: &mut Intent, seconds: f32) -> Next {
        legs.pass_waypoints(path, state);
        let Some(distance) = legs.distance(path, state) else {
            *intent = legs.standing(state, intent.look, seconds);
            return Next::Ends(if path.is_complete { WalkEnd::Arrived } else { WalkEnd::NoWay });
        };
        let step = legs.step(path, state, seconds);
        let look = turned(intent.look, step.heading, self.turn * seconds);
        *intent = Intent { direction: step.direction, look, jumps: step.jumps, ..Intent::default() };
        if self.progress.note(path.next as u32, distance) || state.grounded.is_held || legs.pace <= 0.0 {
            return Next::Goes;
        }
        self.progress.waited += seconds;
        if self.progress.waited < self.patience {
            return Next::Goes;
        }
        match mem::replace(&mut self.progress, Progress { on_trial: Self::TRIAL, ..Progress::default() }).on_trial {
            0 => Next::Searches,
            _ => Next::Ends(WalkEnd::Stuck),
        }
    }
}

impl Progress {
    /// Returns `true` if the walk has come nearer.
    fn note(&mut self, next: u32, distance: f32) -> bool {
        let is_nearer = next != self.next || distance < self.distance - Walk::LEAST;
        if is_nearer {
            let reached = next.saturating_sub(self.next).min(Walk::TRIAL.into()) as u8;
            let on_trial = self.on_trial.saturating_sub(reached);
            *self = Self { next, distance, waited: 0.0, on_trial };
        }
        is_nearer
    }
}

/// A look that has turned towards a heading, at most so far.
fn turned(look: Vec2, heading: Vec2, most: f32) -> Vec2 {
    if heading == Vec2::ZERO {
        return look;
    }
    let wanted = (-heading.x).atan2(-heading.y);
    let way = (wanted - look.x + PI).rem_euclid(TAU) - PI;
    let yaw = if way.abs() <= most { wanted } else { look.x + most.copysign(way) };
    Vec2::new(if yaw.is_finite() { yaw } else { wanted }, look.y)
}

type Walker = (
    Entity,
    &'static StableId,
    (&'static Position, &'static BodyVelocity, &'static Grounded),
    (&'static BlockBody, &'static CharacterController),
    &'static mut Walk,
    &'static mut PathTo,
    &'static mut Intent,
);

/// Lets the characters of a region walk along their paths.
pub(crate) fn walk(time: Res<Time>, mut walkers: Query<Walker>, mut commands: Commands) {
    let seconds = time.delta_secs();
    let mut ended = Vec::new();
    for (entity, id, (position, velocity, grounded), (body, character), mut walk, mut to, mut intent) in &mut walkers {
        let state = BodyState { position: *position, velocity: *velocity, grounded: *grounded };
        let legs = Legs { body, character, pace: walk.pace };
        let is_over = to.is_over();
        // A step on the path changes nothing that is saved, so that is only noted at its end.
        let Some(path) = to.bypass_change_detection().path_mut().filter(|_| !is_over) else {
            let standing = legs.standing(&state, intent.look, seconds);
            intent.set_if_neq(standing);
            continue;
        };
        let (mut moved, mut wish) = (*walk, *intent);
        let next = moved.advance(path, &legs, &state, &mut wish, seconds);
        intent.set_if_neq(wish);
        // A new path is on its way.
        if to.is_searching() {
            continue;
        }
        walk.set_if_neq(moved);
        match next {
            Next::Goes => {}
            Next::Searches => {
                let goal = to.goal();
                to.go_to(goal);
            }
            Next::Ends(end) => {
                to.end();
                walk.progress = Progress::default();
                ended.push((*id, WalkEnded { entity, goal: to.goal(), end }));
            }
        }
    }
    // In an order that does not depend on how the entities came here.
    ended.sort_unstable_by_key(|(id, _)| *id);
    ended.into_iter().for_each(|(_, ended)| commands.trigger(ended));
}
