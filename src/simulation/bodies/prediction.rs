//! [`Prediction`]: a body that moves at once, and is corrected when its region has moved it.

use super::character::Intent;
use super::steering::{Steer, SteeredBody};
use super::{BodyState, Position};
use crate::body::BodyMover;
use bevy::prelude::*;
use std::collections::VecDeque;
use std::mem;

/// A body that is moved before its region has moved it, by steps that are sent there. The region moves it by the same steps, so both
/// agree while they have the same blocks. Where they do not, the body is set right and makes the steps again that the region has not made
/// yet, and the place where it is shown follows within a fraction of a second.
#[derive(Clone, Debug)]
pub struct Prediction {
    now: SteeredBody,
    /// Before the last step.
    before: BodyState,
    /// The steps that the region has not made, as far as is known, each with the body after it.
    steps: VecDeque<(Steer, BodyState)>,
    /// From the body to the place where it is shown, in blocks.
    error: Vec3,
}

impl Prediction {
    /// The steps that are remembered at most: those of three seconds of 20 ticks.
    const MOST: usize = 60;
    /// A body that is farther away from its place is shown there at once, in blocks.
    const JUMP: f32 = 8.0;
    /// The share of the error that fades in a second.
    const FADING: f32 = 12.0;

    /// A body as its region knows it.
    pub fn new(now: SteeredBody) -> Self {
        Self { before: now.state, now, steps: VecDeque::new(), error: Vec3::ZERO }
    }

    /// Moves the body by one step, and returns the step to be sent.
    pub fn step(&mut self, intent: Intent, mover: &mut BodyMover<'_>, seconds: f64) -> Steer {
        let step = Steer { number: self.now.number.saturating_add(1), intent };
        self.before = self.now.state;
        self.make(step, mover, seconds);
        if self.steps.len() == Self::MOST {
            self.steps.pop_front();
        }
        self.steps.push_back((step, self.now.state));
        step
    }

    fn make(&mut self, step: Steer, mover: &mut BodyMover<'_>, seconds: f64) {
        let SteeredBody { state, body, character, number } = &mut self.now;
        state.advance(body, Some((character, &step.intent)), mover, seconds);
        *number = step.number;
    }

    /// Sets the body right by what its region says.
    pub fn correct(&mut self, known: &SteeredBody, mover: &mut BodyMover<'_>, seconds: f64) {
        let mut predicted = None;
        while let Some((step, state)) = self.steps.front()
            && step.number <= known.number
        {
            predicted = (step.number == known.number).then_some(*state);
            self.steps.pop_front();
        }
        (self.now.body, self.now.character) = (known.body, known.character);
        // An answer from before the remembered steps, such as that of a body that waits, says nothing new.
        let is_new = predicted.is_some() || self.steps.is_empty() && known.state != self.now.state;
        if !is_new || predicted == Some(known.state) {
            return;
        }
        let shown = self.shown(1.0);
        let number = self.now.number;
        self.now = SteeredBody { number: known.number, ..*known };
        self.before = self.now.state;
        for (step, _) in mem::take(&mut self.steps) {
            self.before = self.now.state;
            self.make(step, mover, seconds);
            self.steps.push_back((step, self.now.state));
        }
        self.now.number = self.now.number.max(number);
        let place = self.now.state.position;
        let error = shown.relative_to(place.block) - place.offset;
        let is_near = error.length() < Self::JUMP && shown.dimension == place.dimension;
        self.error = if is_near { error } else { Vec3::ZERO };
        if !is_near {
            self.before = self.now.state;
        }
    }

    /// Lets the error fade for some seconds.
    pub fn fade(&mut self, seconds: f32) {
        self.error /= 1.0 + Self::FADING * seconds.max(0.0);
    }

    /// The body after the last step.
    pub fn state(&self) -> &BodyState {
        &self.now.state
    }

    /// The place where the body is shown, when this share of the time between two steps has passed since the last one.
    pub fn shown(&self, part: f32) -> Position {
        let to = self.now.state.position;
        let mut shown = self.before.position;
        if shown.dimension != to.dimension {
            return to;
        }
        let way = to.relative_to(shown.block) - shown.offset;
        shown.translate(way * part.clamp(0.0, 1.0) + self.error);
        shown
    }
}
