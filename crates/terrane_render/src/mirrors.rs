//! The motion of mirrors between the places that are known of them.

use crate::chunk_meshes::RenderOrigin;
use bevy::prelude::*;
use bevy_terrane::simulation::Position;
use bevy_terrane::space::DimensionId;
use bevy_terrane::view::{DimensionClock, DimensionOpen, Mirror, OwnBody};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// The time that is shown of each dimension. It follows the dimension's clock evenly, however unevenly places arrive: it is so late that
/// nearly all of them are there in time.
#[derive(Resource, Default)]
pub(super) struct ShownClocks(FxHashMap<DimensionId, ShownClock>);

/// All times are in seconds.
#[derive(Clone, Copy)]
struct ShownClock {
    /// The time that has passed here, at the rate of the dimension's clock.
    now: f64,
    /// How far `now` was ahead of the clocks of places when they arrived, at least and at most: in the present span of time, and in the one
    /// before it.
    ahead: [(f64, f64); 2],
    began: f64,
    /// The shown clock.
    shown: f64,
}

const NOTHING: (f64, f64) = (f64::INFINITY, f64::NEG_INFINITY);

impl Default for ShownClock {
    fn default() -> Self {
        Self { now: 0.0, ahead: [NOTHING; 2], began: 0.0, shown: 0.0 }
    }
}

impl ShownClock {
    /// The rate at which the shown clock is set right, in seconds per second.
    const SET_RIGHT: f64 = 0.25;
    /// A span of time.
    const SPAN: f64 = 10.0;
    /// A clock that is off by so much has been set, or has stood still.
    const ANOTHER: f64 = 1.5;

    /// How far `now` is ahead of the clock of a place that arrives as late as any, and a bit more: few have been seen.
    fn latest(&self) -> f64 {
        let (least, most) = (self.ahead[0].0.min(self.ahead[1].0), self.ahead[0].1.max(self.ahead[1].1));
        most + 0.2 * (most - least)
    }

    /// Notes that a place of this clock has arrived.
    fn note(&mut self, clock: f64) {
        let ahead = self.now - clock;
        let earliest = self.ahead[0].0.min(self.ahead[1].0);
        if (ahead - earliest).abs() > Self::ANOTHER {
            *self = Self { now: self.now, ahead: [(ahead, ahead), NOTHING], began: self.now, shown: clock };
        }
        let (least, most) = &mut self.ahead[0];
        (*least, *most) = (least.min(ahead), most.max(ahead));
    }

    fn pass(&mut self, seconds: f64) {
        self.now += seconds;
        self.shown += seconds;
        if self.now >= self.began + Self::SPAN && self.ahead[0] != NOTHING {
            (self.ahead, self.began) = ([NOTHING, self.ahead[0]], self.now);
        }
        let most = Self::SET_RIGHT * seconds;
        if self.latest().is_finite() {
            self.shown += (self.now - self.latest() - self.shown).clamp(-most, most);
        }
    }
}

/// The known places of a mirror. It is shown one place late.
#[derive(Component)]
pub(super) struct Glide {
    /// Oldest first, each with the dimension's clock in seconds.
    places: VecDeque<(Position, f64)>,
    /// How late it is shown, in seconds: this follows the usual time between two places.
    late: f64,
}

impl Glide {
    /// Entities that move further at once are shown at their new place at once, in blocks.
    const JUMP: f32 = 32.0;
    const MOST: usize = 32;
    /// An entity of which nothing was known for more than this many periods has stood still.
    const REST: f64 = 4.5;
    /// The longest time between two places of an entity that moves.
    const LONGEST: f64 = 1.1;

    fn new(to: Position, clock: f64) -> Self {
        Self { places: [(to, clock)].into(), late: 0.0 }
    }

    /// The usual time between two places. Some places are left out if they arrive together.
    fn period(&self) -> f64 {
        let gaps = self.places.iter().zip(self.places.iter().skip(1)).map(|((_, from), (_, to))| to - from);
        gaps.rev().take(3).fold(Self::LONGEST, f64::min)
    }

    fn push(&mut self, to: Position, clock: f64) {
        let Some((last, known)) = self.places.back().copied() else { return };
        let is_far = last.dimension != to.dimension || to.relative_to(last.block).distance(last.offset) > Self::JUMP;
        if is_far || clock <= known {
            // The game has set the place, or the clock.
            *self = Self::new(to, clock);
            return;
        }
        let gap = clock - known;
        let period = self.period().min(gap);
        if gap > Self::REST * period || gap > Self::LONGEST {
            // It has stood still until a moment ago.
            self.places.push_back((last, clock - period));
        }
        if self.late == 0.0 {
            self.late = period;
        }
        self.places.push_back((to, clock));
        while self.places.len() > Self::MOST {
            self.places.pop_front();
        }
    }

    /// Where it is shown, `seconds` after the last time.
    fn at(&mut self, shown: f64, seconds: f64) -> Option<Position> {
        let most = ShownClock::SET_RIGHT * seconds;
        if self.late > 0.0 {
            self.late += (self.period() - self.late).clamp(-most, most);
        }
        let shown = shown - self.late;
        // The period is that of the last three.
        while self.places.len() > 4 && self.places[1].1 <= shown {
            self.places.pop_front();
        }
        let next = self.places.iter().position(|(_, clock)| *clock > shown).unwrap_or(self.places.len());
        let (from, began) = *self.places.get(next.saturating_sub(1))?;
        let Some((to, ends)) = self.places.get(next).copied().filter(|_| next > 0) else { return Some(from) };
        let way = to.relative_to(from.block) - from.offset;
        let mut at = from;
        at.translate(way * ((shown - began) / (ends - began)).clamp(0.0, 1.0) as f32);
        Some(at)
    }
}

/// Moves the mirrors that have a `Transform`.
pub(super) fn move_mirrors(
    mut commands: Commands,
    time: Res<Time>,
    origin: Res<RenderOrigin>,
    dimensions: Query<(&DimensionOpen, &DimensionClock)>,
    mut clocks: ResMut<ShownClocks>,
    mut mirrors: Query<(Entity, &Mirror, &mut Transform, Option<&mut Glide>)>,
) {
    for (id, clock) in &mut clocks.0 {
        let of_it = dimensions.iter().find(|(open, _)| open.id == *id).map(|(_, clock)| clock);
        let rate = of_it.map_or(1.0, |clock| if clock.paused { 0.0 } else { clock.rate });
        clock.pass(time.delta_secs_f64() * rate);
    }
    for (entity, mirror, mut transform, glide) in &mut mirrors {
        let (to, clock) = (mirror.current.0, mirror.current.1.as_secs_f64());
        let shown = clocks.0.entry(to.dimension).or_default();
        let place = match glide {
            Some(mut glide) => {
                if glide.places.back() != Some(&(to, clock)) {
                    shown.note(clock);
                    glide.push(to, clock);
                }
                glide.at(shown.shown, time.delta_secs_f64())
            }
            None => {
                shown.note(clock);
                commands.entity(entity).insert(Glide::new(to, clock));
                Some(to)
            }
        };
        let translation = place.unwrap_or(to).relative_to(origin.0);
        if transform.translation != translation {
            transform.translation = translation;
        }
    }
}

/// Places the mirrors that got a `Transform` in this frame.
pub(super) fn place_mirrors(
    origin: Res<RenderOrigin>,
    mut mirrors: Query<(&Mirror, &mut Transform), (Without<Glide>, Added<Transform>)>,
) {
    for (mirror, mut transform) in &mut mirrors {
        transform.translation = mirror.current.0.relative_to(origin.0);
    }
}

/// Places the bodies that the main world moves itself.
pub(super) fn place_own_bodies(
    origin: Res<RenderOrigin>,
    mut bodies: Query<(&Position, &mut Transform), With<OwnBody>>,
) {
    for (position, mut transform) in &mut bodies {
        let translation = position.relative_to(origin.0);
        if transform.translation != translation {
            transform.translation = translation;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bevy_terrane::space::{BlockPos, DimensionId};
    use std::time::Duration;
    use uuid::Uuid;

    const TICK: u64 = 50;

    fn at(x: f32) -> Position {
        let mut position =
            Position { dimension: DimensionId(1), block: BlockPos::new(1 << 40, 0, 0), offset: Vec3::ZERO };
        position.translate(Vec3::X * x);
        position
    }

    fn app() -> (App, Entity) {
        let mut app = App::new();
        app.init_resource::<Time>().init_resource::<ShownClocks>();
        app.insert_resource(RenderOrigin(BlockPos::new(1 << 40, 0, 0)));
        app.add_systems(Update, move_mirrors);
        let current = (at(0.0), Duration::ZERO);
        let mirror = Mirror { id: Uuid::nil(), previous: current, current };
        let entity = app.world_mut().spawn((mirror, Transform::default())).id();
        app.update();
        (app, entity)
    }

    fn tick(app: &mut App, entity: Entity, to: Position) {
        let mut mirror = app.world_mut().get_mut::<Mirror>(entity).unwrap();
        let clock = mirror.current.1 + Duration::from_millis(TICK);
        (mirror.previous, mirror.current) = (mirror.current, (to, clock));
    }

    fn shown_after(app: &mut App, entity: Entity, millis: u64) -> f32 {
        app.world_mut().resource_mut::<Time>().advance_by(Duration::from_millis(millis));
        app.update();
        app.world().get::<Transform>(entity).unwrap().translation.x
    }

    #[test]
    fn a_mirror_moves_evenly_between_ticks() {
        let (mut app, entity) = app();
        let mut shown = 0.0;
        for number in 1..=20 {
            tick(&mut app, entity, at(number as f32));
            // Ten frames a tick. The first shows the mirror where it was.
            for frame in 0..10 {
                let now = shown_after(&mut app, entity, if frame == 0 { 5 } else { TICK / 10 });
                if number > 2 {
                    assert!((now - shown - 0.1).abs() < 1e-3, "tick {number}, frame {frame}: {shown}, {now}");
                }
                shown = now;
            }
        }
        assert_eq!(shown_after(&mut app, entity, 2 * TICK), 20.0, "it ends at its newest position");
        assert_eq!(shown_after(&mut app, entity, 10 * TICK), 20.0);
    }

    #[test]
    fn a_late_or_early_tick_makes_no_jump() {
        let (mut app, entity) = app();
        let mut shown = 0.0;
        for (number, delay) in [50, 20, 80, 35, 65, 10, 50].into_iter().cycle().take(70).enumerate() {
            tick(&mut app, entity, at(number as f32 + 1.0));
            for _ in 0..delay / 5 {
                let now = shown_after(&mut app, entity, 5);
                assert!((-1e-3..=0.4).contains(&(now - shown)), "{shown}, {now}");
                shown = now;
            }
        }
    }

    #[test]
    fn a_teleported_mirror_and_one_in_another_dimension_jump() {
        let (mut app, entity) = app();
        tick(&mut app, entity, at(500.0));
        assert_eq!(shown_after(&mut app, entity, 1), 500.0);
        tick(&mut app, entity, Position { dimension: DimensionId(2), ..at(501.0) });
        assert_eq!(shown_after(&mut app, entity, 1), 501.0);
    }

    /// Promise, company: Places that arrive up to 100 ms late are shown without a jerk, at any rate of places.
    #[test]
    fn a_tenth_of_a_second_of_jitter_is_not_seen() {
        for period in [50, 100, 200, 1_000] {
            let (mut app, entity) = app();
            let (mut random, mut shown) = (7_u64, 0.0);
            let mut sent: VecDeque<(u64, u64)> = VecDeque::new();
            let mut slowest_and_fastest = (f32::MAX, 0.0_f32);
            for now in (0..60_000).step_by(10) {
                if now % period == 0 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let arrival = now + (random >> 33) % 101;
                    sent.push_back((arrival.max(sent.back().map_or(0, |(last, _)| *last)), now));
                }
                while let Some((_, clock)) = sent.pop_front_if(|(arrival, _)| *arrival <= now) {
                    let mut mirror = app.world_mut().get_mut::<Mirror>(entity).unwrap();
                    // Four blocks a second.
                    let place = (at(clock as f32 / 250.0), Duration::from_millis(clock));
                    (mirror.previous, mirror.current) = (mirror.current, place);
                }
                let next = shown_after(&mut app, entity, 10);
                if now > 20_000 {
                    let (slowest, fastest) = slowest_and_fastest;
                    slowest_and_fastest = (slowest.min(next - shown), fastest.max(next - shown));
                }
                shown = next;
            }
            let (slowest, fastest) = slowest_and_fastest;
            assert!(slowest > 0.02 && fastest < 0.06, "each {period} ms: {slowest} to {fastest} blocks in 10 ms");
        }
    }
}
