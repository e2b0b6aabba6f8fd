//! [`Legs`]: the steps of a character from waypoint to waypoint.
//!
//! A walker stays on the straight line between two waypoints, since a path promises room and ground only there. It brakes where the path
//! turns, falls or ends, and counts a waypoint as reached when it stands, floats or hangs at its height.

use super::super::character::{CharacterController, Intent, is_swimming};
use super::super::{BlockBody, BodyState};
use crate::path::{Path, SWIMS_FROM, Waypoint};
use crate::simulation::paths::waypoint;
use bevy::math::DVec2;
use bevy::prelude::*;

/// A character with a body.
pub struct Legs<'a> {
    pub body: &'a BlockBody,
    pub character: &'a CharacterController,
    /// The share of its speeds.
    pub pace: f32,
}

/// A step of a walk.
pub struct Step {
    /// The direction of the intent.
    pub direction: Vec3,
    pub jumps: bool,
    /// Where it goes, along x and z; zero if it stands.
    pub heading: Vec2,
}

/// A waypoint that the walker goes to, in blocks as seen from the body.
struct Leg {
    /// To the waypoint before, along x and z.
    from: DVec2,
    /// To the waypoint.
    to: DVec2,
    /// The height of the waypoint, and that of the one before.
    height: f32,
    height_before: f32,
    /// The walker may pass the waypoint at full speed.
    is_straight: bool,
}

/// Where the body is beside its leg, in blocks along x and z.
struct Line {
    /// The rest of the way along the line.
    rest: DVec2,
    /// The way from the body straight to the line, which may begin farther ahead.
    across: DVec2,
    /// The way from the body to the nearest point of the leg.
    back: DVec2,
}

/// A walker is at a waypoint on its way straight ahead within this distance.
const NEAR: f64 = 0.3;
/// How exactly a floor is at its height.
const EVEN: f32 = 0.1;
/// A walker that is so far above a floor falls onto it and does not step down.
const FALLS_FROM: f32 = 0.7;
/// The share of its height that a floating walker keeps in the liquid: a little more than it needs to swim.
const FLOATS_AT: f64 = SWIMS_FROM as f64 + 0.05;
/// The share of a distance that a walker covers in a second when it comes to rest.
const APPROACH: f64 = 5.0;

impl Leg {
    /// The way to a waypoint by its number.
    fn new(path: &Path, number: usize, at: &Waypoint) -> Option<Self> {
        let way = |number: usize| path.waypoints.get(number).map(|point| at.to(point));
        let [x, height, z] = way(number)?;
        let [before_x, height_before, before_z] = way(number.wrapping_sub(1)).unwrap_or([x, height, z]);
        let (from, to) = (DVec2::new(before_x.into(), before_z.into()), DVec2::new(x.into(), z.into()));
        let is_straight = height > height_before - FALLS_FROM
            && to.distance_squared(from) > 0.5
            && way(number + 1)
                .is_some_and(|[x, _, z]| (DVec2::new(x.into(), z.into()) - to).distance_squared(to - from) < 1e-3);
        Some(Self { from, to, height, height_before, is_straight })
    }

    fn line(&self) -> Line {
        let line = self.to - self.from;
        let length = line.length();
        if length < 1e-3 {
            return Line { rest: DVec2::ZERO, across: self.to, back: self.to };
        }
        let ahead = line / length;
        let gone = (-self.from).dot(ahead);
        let back = self.from + ahead * gone.clamp(0.0, length);
        Line { rest: ahead * (length - gone), across: self.from + ahead * gone, back }
    }

    /// Returns `true` if it leads straight down.
    fn dives(&self) -> bool {
        self.to.distance_squared(self.from) < 1e-3 && self.height < self.height_before
    }
}

impl Legs<'_> {
    /// The space between the body and the sides of its cells.
    fn room(&self) -> f64 {
        let width = f64::from(self.body.width);
        ((width + 1.0 / 32.0).ceil().max(1.0) - width) / 2.0
    }

    /// The rest of the way along the line to where the body touches the sides of the cells at the next waypoint.
    fn rest_before(&self, line: &Line) -> DVec2 {
        let ahead = line.rest.normalize_or_zero();
        line.rest - ahead * ((1.004 - self.room()) / ahead.abs().max_element().max(0.5))
    }

    /// The distance from a wall at which it jumps, to be there at the top of the jump.
    fn takeoff(&self, line: &Line, state: &BodyState) -> f64 {
        let time = (2.0 * self.character.jump_height.max(0.0) / self.body.gravity.max(1.0)).sqrt();
        let velocity = DVec2::new(state.velocity.x.into(), state.velocity.z.into());
        velocity.dot(line.rest.normalize_or_zero()) * f64::from(time)
    }

    /// The distance from a waypoint at which the walker may turn.
    fn nearness(&self) -> f64 {
        self.room().clamp(0.03, NEAR)
    }

    /// How high the feet of a floating body are above the lowest block with enough of the liquid.
    fn draft(&self) -> f32 {
        (1.0 - SWIMS_FROM * self.body.height).max(0.0)
    }

    fn is_astray(&self, line: &Line) -> bool {
        line.across.length() > self.nearness() + 0.05
    }

    /// Returns `true` if the body is at a waypoint, in a place where it can go on from.
    fn is_at(&self, path: &Path, number: usize, state: &BodyState) -> bool {
        let contact = &state.grounded.0;
        let Some(leg) = Leg::new(path, number, &waypoint(&state.position)) else { return false };
        let (below, above) = if is_swimming(contact) {
            (if leg.dives() { 0.3 } else { self.draft() + 0.25 }, 0.25)
        } else if contact.ground {
            (EVEN, EVEN)
        } else if contact.climbable {
            (0.35, EVEN)
        } else {
            return false;
        };
        // On its way straight ahead, a fast walker runs over a dip.
        let (near, below) = if leg.is_straight { (NEAR, below.max(FALLS_FROM)) } else { (self.nearness(), below) };
        (-below..=above).contains(&leg.height) && leg.to.length() <= near
    }

    /// Passes the waypoints that the walker has reached.
    pub fn pass_waypoints(&self, path: &mut Path, state: &BodyState) {
        // A fast walker may miss one.
        while let Some(passed) = (path.next..path.next + 2).find(|number| self.is_at(path, *number, state)) {
            path.next = passed + 1;
        }
    }

    /// The distance to the next waypoint, in blocks; `None` at the end of the path.
    pub fn distance(&self, path: &Path, state: &BodyState) -> Option<f32> {
        let way = waypoint(&state.position).to(path.waypoints.get(path.next)?);
        Some(Vec3::from_array(way).length())
    }

    /// The step towards the next waypoint, for a tick of some seconds.
    pub fn step(&self, path: &Path, state: &BodyState, seconds: f32) -> Step {
        let still = Step { direction: Vec3::ZERO, jumps: false, heading: Vec2::ZERO };
        let Some(leg) = Leg::new(path, path.next, &waypoint(&state.position)) else { return still };
        let contact = &state.grounded.0;
        let line = leg.line();
        // While it leaves a cell, it stays at the height at which the way is free.
        let height = if line.rest.length() > 0.5 { leg.height.max(leg.height_before) } else { leg.height };
        if is_swimming(contact) {
            self.swim(&leg, &line, height, state, seconds)
        } else if contact.climbable && self.character.climb > 0.0 {
            self.climb(&leg, &line, height, state, seconds)
        } else {
            let rise = if contact.ground { self.body.step_height } else { 0.0 };
            // A body that is lower than its jump may find no wall there, but room below the floor that it goes to.
            let is_low = leg.height > self.body.height.max(rise) && leg.height <= self.character.jump_height;
            let before = self.rest_before(&line);
            let is_near = before.dot(line.rest) <= self.takeoff(&line, state) * line.rest.length();
            // Straight on, a rise of two steps may be stairs. A wide body jumps up these, since it may slip off its floor before.
            let may_be_stairs =
                self.body.width <= 1.0 && leg.height <= 2.0 * rise && line.rest.abs().min_element() < 1e-3;
            let starts = is_near && !self.is_astray(&line) && (is_low || !may_be_stairs);
            let jumps = (contact.wall || starts) && (contact.ground || contact.submerged > 0.0) && leg.height > rise;
            let rest = if is_low { before } else { line.rest };
            let leg = Leg { is_straight: leg.is_straight && !is_low, ..leg };
            self.toward(&leg, &Line { rest, ..line }, jumps, state, seconds)
        }
    }

    fn swim(&self, leg: &Leg, line: &Line, height: f32, state: &BodyState, seconds: f32) -> Step {
        let contact = &state.grounded.0;
        // After a plunge, it is below the bank that it goes to, and rises where the way up is free.
        let is_deep = contact.submerged >= 1.0 && leg.height_before > 0.3 && leg.height > leg.height_before - EVEN;
        if is_deep || contact.ceiling && leg.height > 0.3 {
            let back = Line { rest: leg.from, across: DVec2::ZERO, back: leg.from };
            return self.toward(&Leg { is_straight: false, ..*leg }, &back, true, state, seconds);
        }
        let is_barred = contact.wall || contact.ceiling;
        // It floats, unless the path leads down, straight up, or under something.
        let leads_up = leg.height > 0.25 && line.rest.length() < 0.5;
        let floats = !leg.dives() && !leads_up && !is_barred && height > -self.draft();
        let rises = height > 0.05 && !floats;
        let mut step = self.toward(leg, line, rises, state, seconds);
        if floats {
            step.direction.y = self.floating(state, seconds);
        } else if !rises {
            // A wall may be the edge of the floor that it goes to.
            let way = if contact.wall { height + 1.0 / 256.0 } else { height };
            step.direction.y = self.vertical(way.into(), state, seconds);
        }
        step
    }

    /// The direction up or down in which a swimmer keeps its head out of the liquid, without bobbing.
    fn floating(&self, state: &BodyState, seconds: f32) -> f32 {
        let way = (state.grounded.submerged - FLOATS_AT) * f64::from(self.body.height);
        self.vertical(way, state, seconds)
    }

    /// The direction in which a swimmer goes up or down so far.
    fn vertical(&self, way: f64, state: &BodyState, seconds: f32) -> f32 {
        let contact = &state.grounded.0;
        let (speed, rate) = self.character.gait(contact, &Intent::default());
        let velocity = [state.velocity.y.into(), contact.drift[1]];
        // No speed, a negative one and NaN give no direction.
        let top = speed.max(0.0);
        wish((3.0 * way).clamp(-top, top), velocity, speed, rate, seconds).clamp(-1.0, 1.0) as f32
    }

    /// Stands, or floats.
    pub fn standing(&self, state: &BodyState, look: Vec2, seconds: f32) -> Intent {
        let up = if is_swimming(&state.grounded) { self.floating(state, seconds) } else { 0.0 };
        Intent { look, direction: Vec3::Y * up, ..Intent::default() }
    }

    fn climb(&self, leg: &Leg, line: &Line, height: f32, state: &BodyState, seconds: f32) -> Step {
        let contact = &state.grounded.0;
        // From an edge it goes up a ladder in the air before it falls past it.
        let lowest = match contact.ground {
            true if line.rest.length() > 0.5 || leg.dives() => 0.01,
            true => -0.01,
            // It holds on before it slides out of the ladder.
            false => -EVEN.max(seconds * self.character.climb.max(-state.velocity.y)),
        };
        let rises = height > lowest;
        // Below the floor at the side, it would slide off along a corner.
        let is_beside = line.rest.length() > 0.5;
        let rest = if leg.height > EVEN && !contact.ground && is_beside { self.rest_before(line) } else { line.rest };
        let leg = &Leg { is_straight: leg.is_straight && rest == line.rest, ..*leg };
        let line = &Line { rest, ..*line };
        let mut step = self.toward(leg, line, rises, state, seconds);
        // A character that walks against a wall on a ladder climbs.
        let is_below = !rises && height <= -EVEN && line.rest.length() < NEAR;
        if height <= 0.01 && !contact.ground && (contact.wall || is_below && line.across.length() < NEAR) {
            step.direction = Vec3::ZERO;
            step.jumps &= !contact.wall;
        }
        step
    }

    /// A step along the line of the leg, and back to it.
    fn toward(&self, leg: &Leg, line: &Line, jumps: bool, state: &BodyState, seconds: f32) -> Step {
        let contact = &state.grounded.0;
        let (top, rate) = self.character.gait(contact, &Intent::default());
        let speed = top * f64::from(self.pace.clamp(0.0, 1.0));
        let approach = APPROACH.min(0.5 / f64::from(seconds.max(1e-3)));
        let is_carried = contact.ground || contact.climbable || is_swimming(contact);
        let wanted = if is_carried && self.is_astray(line) {
            line.back * approach
        } else if leg.is_straight {
            line.rest.normalize_or_zero() * speed + line.across * approach
        } else {
            (line.rest * approach).clamp_length_max(speed) + line.across * approach
        };
        let wanted = wanted.clamp_length_max(speed);
        let (velocity, drift) = (state.velocity.as_dvec3(), contact.drift);
        let direction = DVec2::new(
            wish(wanted.x, [velocity.x, drift[0]], top, rate, seconds),
            wish(wanted.y, [velocity.z, drift[2]], top, rate, seconds),
        );
        let direction = direction.clamp_length_max(1.0).as_vec2();
        let heading = if wanted.length() > 0.1 * speed { wanted.as_vec2() } else { Vec2::ZERO };
        Step { direction: Vec3::new(direction.x, 0.0, direction.y), jumps, heading }
    }
}

/// The part of a direction with which a velocity becomes `wanted` within a tick in a current, as far as the body can.
fn wish(wanted: f64, [velocity, drift]: [f64; 2], speed: f64, rate: f64, seconds: f32) -> f64 {
    let share = rate * f64::from(seconds);
    let share = share / (1.0 + share);
    let wish = (velocity + (wanted - velocity) / share - drift) / speed;
    if wish.is_finite() { wish } else { 0.0 }
}
