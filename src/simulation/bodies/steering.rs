//! How a world that predicts a body steers it in its region.

use super::character::{CharacterController, Intent};
use super::{BlockBody, BodyState};
use crate::simulation::letters::letter::Received;
use bevy::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// One step of a character, sent to its entity in its region. The steps of a body have numbers, 1 and up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Steer {
    /// The number of the step. A step that is not newer than the last one is dropped; 0 only announces that steps will come.
    pub number: u32,
    /// The wish of the character in this step.
    pub intent: Intent,
}

/// The steps that a body has yet to make. It makes one each tick, and catches up on steps that came late. While steps are late, the body
/// waits; if none come for half a second, it goes on by itself: it looks and flies as before, and stands still.
#[derive(Component, Clone, Debug, Default, PartialEq, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(opaque)]
#[reflect(Component, Default, Clone, Debug)]
pub struct Steering {
    waiting: VecDeque<Steer>,
    /// The last number that came.
    newest: u32,
    /// The last step that the body made, and its intent.
    made: Steer,
    /// The ticks that it has not used.
    unused: u8,
    /// The ticks since the last step came in time.
    silent: u8,
    /// The body after that step; `None` before the first tick.
    state: Option<SteeredBody>,
}

/// A steered body at the end of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteeredBody {
    /// The last step that it made.
    pub number: u32,
    /// Its intent in that step.
    pub intent: Intent,
    /// Where it is, and what it touches.
    pub state: BodyState,
    /// Its size and gravity.
    pub body: BlockBody,
    /// How it moves.
    pub character: CharacterController,
    /// The length of a step, in seconds: a tick of its region.
    pub step: f64,
    /// The height of the [`Floor`](crate::simulation::Floor) of its dimension.
    pub floor: i64,
}

impl Steering {
    /// The most steps that can wait, and the most ticks that can be made up for.
    const MOST: u8 = 10;

    pub(super) fn push(&mut self, step: Steer) {
        if step.number <= self.newest || !step.intent.look.is_finite() {
            return;
        }
        self.newest = step.number;
        if self.waiting.len() >= usize::from(Self::MOST) {
            self.waiting.pop_front();
        }
        self.waiting.push_back(step);
    }

    /// Takes the steps of this tick.
    pub(super) fn take_due(&mut self) -> Vec<Intent> {
        let ticks = self.unused + 1;
        let due = self.waiting.len().min(ticks.into());
        self.unused = (ticks - due as u8).min(Self::MOST);
        if due == 0 {
            self.silent = (self.silent + 1).min(Self::MOST);
            let Intent { look, flies, .. } = self.made.intent;
            let by_itself = Intent { look, flies, ..Intent::default() };
            return if self.silent == Self::MOST { vec![by_itself] } else { Vec::new() };
        }
        self.silent = 0;
        let steps = self.waiting.drain(..due).map(|step| (self.made = step, step.intent).1);
        steps.collect()
    }

    /// The number of the last step.
    pub(super) fn number(&self) -> u32 {
        self.made.number
    }

    pub(super) fn set_state(&mut self, state: SteeredBody) {
        self.state = Some(state);
    }

    /// The body at the end of the last tick.
    pub fn state(&self) -> Option<&SteeredBody> {
        self.state.as_ref()
    }
}

/// Takes in the steps that were sent to bodies of this region.
pub(crate) fn receive_steps(
    mut commands: Commands,
    mut steps: MessageReader<Received<Steer>>,
    mut bodies: Query<&mut Steering>,
    characters: Query<(), (With<CharacterController>, Without<Steering>)>,
) {
    for step in steps.read() {
        let Some(entity) = step.entity else { continue };
        if let Ok(mut steering) = bodies.get_mut(entity) {
            steering.push(step.message);
        } else if characters.contains(entity) {
            // Further steps of this tick find no component yet and are lost. The next ones have newer numbers.
            commands.entity(entity).insert(Steering::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(number: u32) -> Steer {
        Steer { number, intent: Intent { direction: Vec3::X * number as f32 / 100.0, ..Intent::default() } }
    }

    fn numbers(steering: &mut Steering) -> Vec<u32> {
        steering.take_due().iter().map(|intent| (intent.direction.x * 100.0).round() as u32).collect()
    }

    #[test]
    fn a_body_makes_one_step_a_tick_and_makes_up_for_late_ones() {
        let mut steering = Steering::default();
        (1..=3).for_each(|number| steering.push(step(number)));
        steering.push(step(2));
        let ticks: Vec<_> = (0..5).map(|_| numbers(&mut steering)).collect();
        assert_eq!(ticks, [vec![1], vec![2], vec![3], vec![], vec![]]);
        // Two ticks were not used.
        (4..=8).for_each(|number| steering.push(step(number)));
        let ticks: Vec<_> = (0..3).map(|_| numbers(&mut steering)).collect();
        assert_eq!(ticks, [vec![4, 5, 6], vec![7], vec![8]]);
    }

    #[test]
    fn more_steps_than_ticks_gain_nothing() {
        let mut steering = Steering::default();
        let mut made = 0;
        for tick in 0..100 {
            (0..5).for_each(|extra| steering.push(step(5 * tick + extra + 1)));
            made += steering.take_due().len();
        }
        assert_eq!(made, 100);
        assert!(steering.waiting.len() <= usize::from(Steering::MOST));
    }

    #[test]
    fn a_body_without_news_waits_half_a_second_and_then_goes_on_by_itself() {
        let mut steering = Steering::default();
        steering.push(step(1));
        assert_eq!(numbers(&mut steering), [1]);
        let look = Vec2::new(1.0, 0.5);
        steering.push(Steer { number: 2, intent: Intent { look, flies: true, ..step(2).intent } });
        assert_eq!(numbers(&mut steering), [2]);
        let ticks: Vec<usize> = (0..20).map(|_| steering.take_due().len()).collect();
        assert_eq!(steering.take_due(), [Intent { look, flies: true, ..Intent::default() }]);
        steering.push(Steer { number: 3, intent: Intent { look: Vec2::NAN, ..Intent::default() } });
        assert!(steering.waiting.is_empty(), "eyes that look nowhere");
        assert_eq!((ticks.iter().take_while(|steps| **steps == 0).count(), ticks[19]), (9, 1));
        (3..=30).for_each(|number| steering.push(step(number)));
        assert!(numbers(&mut steering).len() <= usize::from(Steering::MOST) + 1);
    }

    #[test]
    fn steps_that_come_in_fits_and_starts_are_all_made_and_no_others() {
        let mut steering = Steering::default();
        let mut made = Vec::new();
        // Half a second before the first, and then two in each second tick.
        (0..20).for_each(|_| drop(steering.take_due()));
        for pair in 0..40 {
            (1..=2).for_each(|one| steering.push(step(2 * pair + one)));
            made.extend(numbers(&mut steering));
            made.extend(numbers(&mut steering));
        }
        assert_eq!(made, (1..=80).collect::<Vec<_>>());
    }
}
