//! Where a viewer is heading, found out from its moves.

use crate::space::ColumnPos;
use std::time::Duration;

/// The time for which a viewer is taken to go on as it goes.
const LEAD: f64 = 4.0;
/// How much of the speed that is known a new move replaces.
const SMOOTHING: f64 = 0.5;
/// A move of more columns than this is no walk: where it leads says nothing.
const LEAP: u128 = 16;

/// For so many milliseconds a viewer that does not move is taken to go on as it went.
const STEP: u128 = 250;

/// The speed of a viewer, in columns a second. A plain data structure.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Heading {
    speed: (f64, f64),
    moved_at: Option<Duration>,
}

impl Heading {
    /// The viewer went from one column to another.
    pub fn note(&mut self, from: ColumnPos, to: ColumnPos, now: Duration) {
        let Some(before) = self.moved_at.replace(now) else { return };
        if from.distance_squared(to) > LEAP * LEAP {
            self.speed = (0.0, 0.0);
            return;
        }
        // Two moves in the same moment are one; a step over a corner is two of them.
        let seconds = now.saturating_sub(before).as_secs_f64().max(0.05);
        let part = |old: f64, from: i64, to: i64| {
            let new = to.wrapping_sub(from) as f64 / seconds;
            old + (new - old) * SMOOTHING
        };
        self.speed = (part(self.speed.0, from.x, to.x), part(self.speed.1, from.z, to.z));
    }

    /// Where it will be in a few seconds, at most `most` columns from here; `None` if that is here. Who has not moved for
    /// a while is no faster than a column in that time.
    pub fn ahead(&self, center: ColumnPos, now: Duration, most: u32) -> Option<ColumnPos> {
        // In steps, so that what was found from there is not searched for anew each time.
        let still = (now.saturating_sub(self.moved_at?).as_millis() / STEP) as f64 * STEP as f64 / 1000.0;
        let speed = self.speed.0.hypot(self.speed.1);
        let likely = if still > 0.0 { speed.min(1.0 / still) } else { speed };
        let way = (likely * LEAD).min(f64::from(most));
        if way < 1.0 {
            return None;
        }
        let step = |speed_on_axis: f64| (speed_on_axis / speed * way).round() as i64;
        let (x, z) = (step(self.speed.0), step(self.speed.1));
        Some(ColumnPos::new(center.x.checked_add(x)?, center.z.checked_add(z)?)).filter(|ahead| *ahead != center)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// Walks along x with so many columns a second for ten seconds, and gives where it is and when.
    fn walk(heading: &mut Heading, speed: i64) -> (ColumnPos, Duration) {
        let mut place = ColumnPos::new(0, 0);
        let mut now = Duration::ZERO;
        for step in 1..=10 * speed {
            now = seconds(step as f64 / speed as f64);
            let next = ColumnPos::new(step, 0);
            heading.note(place, next, now);
            place = next;
        }
        (place, now)
    }

    #[test]
    fn it_looks_a_few_seconds_ahead_and_not_too_far() {
        let mut heading = Heading::default();
        let (place, now) = walk(&mut heading, 2);
        assert_eq!(heading.ahead(place, now, 100), Some(ColumnPos::new(place.x + 8, 0)));
        assert_eq!(heading.ahead(place, now, 5), Some(ColumnPos::new(place.x + 5, 0)));
        assert_eq!(heading.ahead(place, now, 0), None);
    }

    #[test]
    fn who_stops_heads_nowhere_after_a_while() {
        let mut heading = Heading::default();
        let (place, now) = walk(&mut heading, 2);
        assert_eq!(heading.ahead(place, now + seconds(1.0), 100), Some(ColumnPos::new(place.x + 4, 0)));
        assert_eq!(heading.ahead(place, now + seconds(5.0), 100), None);
    }

    #[test]
    fn it_changes_four_times_a_second_at_most() {
        let mut heading = Heading::default();
        let (place, now) = walk(&mut heading, 2);
        let ahead = |milliseconds| heading.ahead(place, now + Duration::from_millis(milliseconds), 100);
        let seen: Vec<_> = (0..4_000).map(ahead).collect();
        assert!(seen.chunks(250).all(|quarter| quarter.iter().all(|ahead| *ahead == quarter[0])), "{seen:?}");
        assert!(seen[0].is_some() && seen[3_999].is_some() && seen[0] != seen[3_999]);
    }

    #[test]
    fn a_leap_is_no_walk_and_the_edge_of_the_world_is_no_trouble() {
        let mut heading = Heading::default();
        let (place, now) = walk(&mut heading, 4);
        let there = ColumnPos::new(1 << 40, 0);
        heading.note(place, there, now + seconds(0.1));
        assert_eq!(heading.ahead(there, now + seconds(0.1), 100), None);
        let mut heading = Heading::default();
        let (_, now) = walk(&mut heading, 4);
        assert_eq!(heading.ahead(ColumnPos::new(i64::MAX, 0), now, 100), None);
        heading.note(ColumnPos::new(i64::MIN, 0), ColumnPos::new(i64::MAX, 0), now);
        assert_eq!(Heading::default().ahead(place, now, 100), None);
    }
}
