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
    /// What the region told last.
    known: BodyState,
    /// The steps that the region has not made, as far as is known, each with the body after it.
    steps: VecDeque<(Steer, BodyState)>,
    /// From the body to the place where it is shown, in blocks.
    error: Vec3,
}

impl Prediction {
    /// The time for which steps may stay without an answer, in seconds.
    const PATIENCE: f64 = 3.0;
    /// A body that is farther away from its place is shown there at once, in blocks.
    const JUMP: f32 = 4.0;
    /// The rate at which the error fades, per second.
    const FADING: f32 = 12.0;

    /// A body as its region knows it.
    pub fn new(now: SteeredBody) -> Self {
        Self { before: now.state, known: now.state, now, steps: VecDeque::new(), error: Vec3::ZERO }
    }

    /// Moves the body by one step, and returns the step to be sent.
    ///
    /// After three seconds without an answer to any step, the body is back where its region last had it.
    pub fn step(&mut self, intent: Intent, mover: &mut BodyMover<'_>) -> Steer {
        let step = Steer { number: self.now.number.saturating_add(1), intent };
        self.before = self.now.state;
        self.make(step, mover);
        let most = (Self::PATIENCE / self.now.step).clamp(10.0, 1_000.0);
        if self.steps.len() as f64 >= most {
            self.steps.clear();
            let shown = self.shown(1.0);
            self.now.state = self.known;
            self.before = self.known;
            self.show_from(shown);
            return step;
        }
        self.steps.push_back((step, self.now.state));
        step
    }

    fn make(&mut self, step: Steer, mover: &mut BodyMover<'_>) {
        let SteeredBody { number, intent, state, body, character, step: seconds, .. } = &mut self.now;
        state.advance(body, Some((character, &step.intent)), mover, *seconds);
        (*number, *intent) = (step.number, step.intent);
    }

    /// Sets the body right by what its region says.
    pub fn correct(&mut self, known: &SteeredBody, mover: &mut BodyMover<'_>) {
        let mut predicted = None;
        while let Some((step, state)) = self.steps.front()
            && step.number <= known.number
        {
            predicted = (step.number == known.number).then_some(*state);
            self.steps.pop_front();
        }
        let SteeredBody { body, character, step, floor, .. } = *known;
        self.now = SteeredBody { body, character, step, floor, ..self.now };
        // A body that waits for steps is where it was. If it moved without one, as when the game moves it, that is news.
        let is_as_predicted = known.state == predicted.unwrap_or(self.known);
        self.known = known.state;
        if is_as_predicted {
            return;
        }
        let shown = self.shown(1.0);
        let number = self.now.number;
        self.now = SteeredBody { number: known.number, ..*known };
        self.before = self.now.state;
        for (step, _) in mem::take(&mut self.steps) {
            self.before = self.now.state;
            self.make(step, mover);
            self.steps.push_back((step, self.now.state));
        }
        self.now.number = self.now.number.max(number);
        self.show_from(shown);
    }

    /// Lets the shown place follow from where it was, unless that is far away.
    fn show_from(&mut self, shown: Position) {
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

    /// The intent of the last step.
    pub fn intent(&self) -> Intent {
        self.now.intent
    }

    /// The length of a step.
    pub(crate) fn step_seconds(&self) -> f64 {
        self.now.step
    }

    /// The floor of its dimension, as far as is known: for [`BodyMover::with_floor`].
    pub fn floor(&self) -> i64 {
        self.now.floor
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{BlockId, BlockRegistry, BlockType};
    use crate::body::BodyTable;
    use crate::chunk::Chunk;
    use crate::liquid::liquid_states;
    use crate::simulation::{BlockBody, CharacterController, SplitMix64, Steering};
    use crate::space::{BlockPos, ChunkPos, DimensionId};

    const TICK: f64 = 0.05;
    const FLOOR: i64 = -20;

    /// Two worlds with stone at y = 0: that of the region, and that of the player.
    struct Worlds {
        table: BodyTable,
        stone: BlockId,
        region: Chunk,
        player: Chunk,
    }

    impl Worlds {
        fn new() -> Self {
            Self::with(|_, stone, [_, y, _]| if y == 0 { stone } else { BlockId::AIR })
        }

        /// Both worlds with these blocks in each chunk at the height 0: streams of water have the eight ids of `water`, from a source
        /// down to the level 1.
        fn with(block: impl Fn([BlockId; 8], BlockId, [usize; 3]) -> BlockId) -> Self {
            let mut types = BlockRegistry::new();
            let stone = types.register(BlockType::new("game:stone")).unwrap();
            let water = types.register_states(liquid_states(BlockType::new("game:water"))).unwrap();
            let water = std::array::from_fn(|step| water[step]);
            let ground = Chunk::from_fn(|at| block(water, stone, at));
            Self { table: BodyTable::new(&types), stone, region: ground.clone(), player: ground }
        }

        fn among<R>(&self, chunk: &Chunk, run: impl FnOnce(&mut BodyMover<'_>) -> R) -> R {
            let floor = |pos: ChunkPos| Some((pos.y == 0).then_some(chunk));
            run(&mut BodyMover::new(&self.table, &floor).with_floor(FLOOR))
        }
    }

    /// The body in its region, and the steps and news that are on their way, each with the time at which it arrives.
    struct Region {
        body: SteeredBody,
        steering: Steering,
        steps: VecDeque<(usize, Steer)>,
        news: VecDeque<(usize, SteeredBody)>,
    }

    impl Region {
        fn new() -> Self {
            let position = Position::new(DimensionId(1), BlockPos::new(8, 1, 8));
            let state = BodyState { position, ..BodyState::default() };
            let (body, character) = (BlockBody::new(0.6, 1.8), CharacterController::default());
            let (number, intent) = (0, Intent::default());
            let body = SteeredBody { number, intent, state, body, character, step: TICK, floor: FLOOR };
            Self { body, steering: Steering::default(), steps: VecDeque::new(), news: VecDeque::new() }
        }

        fn tick(&mut self, now: usize, delay: usize, worlds: &Worlds) {
            while let Some((at, step)) = self.steps.front().copied()
                && at <= now
            {
                self.steering.push(step);
                self.steps.pop_front();
            }
            let SteeredBody { state, body, character, .. } = &mut self.body;
            worlds.among(&worlds.region, |mover| {
                for intent in self.steering.take_due() {
                    state.advance(body, Some((character, &intent)), mover, TICK);
                }
            });
            let (number, intent) = (self.steering.number(), Intent::default());
            self.steering.set_state(SteeredBody { number, intent, ..self.body });
            let known = self.steering.state().copied();
            self.news.extend(known.map(|known| (now + delay, known)));
        }
    }

    fn place(position: &Position) -> Vec3 {
        position.relative_to(BlockPos::new(0, 0, 0))
    }

    /// A player who walks about. Returns the longest way that the shown place made in a tick, the place in the end, here and in
    /// the region, and in how many ticks the body was shown elsewhere because it had been corrected.
    fn play(
        worlds: &mut Worlds,
        ticks: usize,
        seed: u64,
        mut each: impl FnMut(usize, &mut Worlds, &mut Region),
    ) -> (f32, [Vec3; 2], usize) {
        let mut random = SplitMix64::new(seed);
        let mut region = Region::new();
        let mut own = Prediction::new(region.body);
        let (mut longest, mut last) = (0.0_f32, place(&own.shown(1.0)));
        let mut intent = Intent::default();
        let (mut sent, mut told, mut corrected) = (0, 0, 0);
        for now in 0..ticks {
            each(now, worlds, &mut region);
            // In the end it stands still.
            if now + 40 > ticks {
                intent = Intent::default();
            } else if random.below(7) == 0 {
                let turn = (random.next_u64() % 360) as f32;
                let direction = Vec3::new(turn.to_radians().cos(), 0.0, turn.to_radians().sin());
                intent = Intent { direction, jumps: random.below(4) == 0, ..Intent::default() };
            }
            while let Some((at, known)) = region.news.front().copied()
                && at <= now
            {
                worlds.among(&worlds.player, |mover| own.correct(&known, mover));
                region.news.pop_front();
            }
            corrected += usize::from(own.error != Vec3::ZERO);
            let step = worlds.among(&worlds.player, |mover| own.step(intent, mover));
            // Steps and news take 1 to 6 ticks, and do not overtake each other.
            sent = sent.max(now + 1 + (random.next_u64() % 4) as usize);
            region.steps.push_back((sent, step));
            told = told.max(now + 1 + (random.next_u64() % 3) as usize);
            region.tick(now, told - now, worlds);
            own.fade(TICK as f32);
            let shown = place(&own.shown(1.0));
            longest = longest.max(shown.distance(last));
            last = shown;
        }
        (longest, [last, place(&region.body.state.position)], corrected)
    }

    /// Promise, bodies: An own body moves at once and needs no correction, however late its steps and the news of its region are.
    #[test]
    fn with_the_same_blocks_nothing_is_corrected() {
        for seed in 0..20 {
            let (longest, [shown, known], corrected) = play(&mut Worlds::new(), 300, seed, |_, _, _| {});
            assert_eq!((shown, corrected), (known, 0));
            assert!(longest < 0.55, "as fast as it walks and jumps: {longest}");
        }
    }

    /// Promise, bodies: In flowing water, in falls, and on the floor of its dimension, an own body agrees with its region to the bit.
    #[test]
    fn in_streams_and_below_the_world_nothing_is_corrected() {
        // Streams to the east, two blocks deep, between banks.
        let streams = || {
            Worlds::with(|water, stone, [x, y, z]| match y {
                0 => stone,
                1 | 2 if z % 8 > 1 => water[x % 8],
                1 => stone,
                _ => BlockId::AIR,
            })
        };
        // Islands, from which one falls.
        let is_island = |[x, y, z]: [usize; 3]| y == 0 && x > 4 && z > 4;
        let islands = || Worlds::with(|_, stone, at| if is_island(at) { stone } else { BlockId::AIR });
        let (mut drifted, mut fallen) = (0.0_f32, 0);
        for seed in 0..20 {
            let mut fastest = 0.0_f32;
            // In a stream it never rests, and its region is always some ticks behind.
            let (_, _, corrected) = play(&mut streams(), 300, seed, |_, _, region| {
                let drift = region.body.state.grounded.drift;
                fastest = fastest.max(drift[0] as f32);
            });
            assert_eq!(corrected, 0);
            drifted = drifted.max(fastest);
            let (_, [shown, known], corrected) = play(&mut islands(), 300, seed, |_, _, _| {});
            assert_eq!((shown, corrected), (known, 0));
            fallen += usize::from((known.y - FLOOR as f32).abs() < 0.01);
        }
        assert!(drifted > 1.0 && fallen > 5, "{drifted} {fallen}");
    }

    /// Promise, bodies: An own body that was predicted wrongly is set right without a jerk.
    #[test]
    fn a_wrong_prediction_is_set_right_smoothly() {
        let mut wrong = 0;
        for seed in 0..20 {
            let mut worlds = Worlds::new();
            let wall = |chunk: &mut Chunk, block: BlockId| {
                for (along, y) in (3..13).flat_map(|along| [1, 2].map(move |y| (along, y))) {
                    for at in [[along, y, 5], [along, y, 11], [5, y, along], [11, y, along]] {
                        chunk.set_block(at, block);
                    }
                }
            };
            // The region has a wall of which the player learns later.
            let (longest, [shown, known], corrected) = play(&mut worlds, 400, seed, |now, worlds, _| {
                let block = if (50..200).contains(&now) { worlds.stone } else { BlockId::AIR };
                wall(&mut worlds.region, block);
                let block = if (60..205).contains(&now) { worlds.stone } else { BlockId::AIR };
                wall(&mut worlds.player, block);
            });
            assert!(shown.distance(known) < 0.01, "{shown} {known}");
            wrong += corrected;
            assert!(longest < 1.9, "a step, and the part of an error that fades in a tick: {longest}");
        }
        assert!(wrong > 0, "no wall was in the way");
    }

    #[test]
    fn a_body_without_answers_does_not_walk_away() {
        let worlds = Worlds::new();
        let start = Region::new().body;
        let mut own = Prediction::new(start);
        let east = Intent { direction: Vec3::X, ..Intent::default() };
        let mut farthest = 0.0_f32;
        for number in 1..=1_000 {
            let step = worlds.among(&worlds.player, |mover| own.step(east, mover));
            assert_eq!(step.number, number, "the steps are counted on");
            farthest = farthest.max(place(&own.shown(1.0)).distance(place(&start.state.position)));
        }
        assert!((5.0..13.5).contains(&farthest), "three seconds of walking: {farthest}");
    }

    /// Promise, bodies: An own body follows its region when that moves it without a step.
    #[test]
    fn a_body_that_is_moved_without_a_step_follows() {
        let worlds = Worlds::new();
        let mut known = Region::new().body;
        let mut own = Prediction::new(known);
        let still = Intent::default();
        for _ in 0..5 {
            worlds.among(&worlds.player, |mover| own.step(still, mover));
        }
        known.state.position.block.x += 2;
        worlds.among(&worlds.player, |mover| own.correct(&known, mover));
        assert_eq!(own.state().position, known.state.position);
        let behind = place(&own.shown(1.0)).distance(place(&known.state.position));
        assert!((1.9..2.1).contains(&behind), "it is shown where it was, and follows: {behind}");
        (0..40).for_each(|_| own.fade(TICK as f32));
        assert!(place(&own.shown(1.0)).distance(place(&known.state.position)) < 0.01);
    }

    #[test]
    fn a_body_that_the_game_moves_far_away_is_there_at_once() {
        let (longest, [shown, known], _) = play(&mut Worlds::new(), 200, 1, |now, _, region| {
            if now == 100 {
                region.body.state.position.block = BlockPos::new(1_000, 1, 8);
            }
        });
        assert_eq!(shown, known);
        assert!(longest > 900.0 && known.x > 900.0);
    }
}
