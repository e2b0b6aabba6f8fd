//! The tickets that keep ground loaded, the ground of each, and where viewers are heading.

use crate::coordinator::demand::outlook::Outlook;
use crate::simulation::ViewerRadii;
use crate::space::{BATCH_SIZE, ColumnPos};
use std::time::Duration;

/// Columns are released this many columns beyond the radius at which they are loaded, so that a step back loads nothing again.
pub const HOLD_MARGIN: u32 = 2;

#[derive(Clone, Debug)]
pub struct ViewerState {
    pub center: ColumnPos,
    /// The height in chunks; 0 unless the dimension is sparse.
    pub height: i64,
    pub radii: ViewerRadii,
    pub heading: Heading,
    /// The columns to load in its range.
    pub to_load: Outlook,
    /// The columns to generate in its range.
    pub to_generate: Outlook,
    /// The last turn in which something was ordered in its range.
    pub served: u64,
}

impl ViewerState {
    /// The radius within which columns are loaded for it together with others of their batch.
    ///
    /// A batch is read as a whole, even for a single column of it. A walking viewer would have each batch read four times if
    /// it did not take along the columns that it keeps anyway. But around a disc smaller than a batch, that would be most of
    /// the ground: seven more columns, on average, for the one column of radius 0.
    pub fn takes_along(&self) -> u32 {
        self.radii.load + if self.radii.load < BATCH_SIZE as u32 { 0 } else { HOLD_MARGIN }
    }

    /// Returns `true` if it needs the column generated.
    pub fn reaches(&self, column: ColumnPos) -> bool {
        column.distance_squared(self.center) <= u128::from(self.radii.generation).pow(2)
    }

    /// Returns `true` if it generates ground beyond its load radius.
    pub fn generates_further(&self) -> bool {
        self.radii.generation > self.radii.load
    }
}

/// The columns of the disc `new` that are not in the disc `old`, z outer, x inner, ascending.
pub fn disc_difference(
    (center, radius): (ColumnPos, i64),
    old: Option<(ColumnPos, i64)>,
) -> impl Iterator<Item = ColumnPos> {
    let within = move |column: ColumnPos, center: ColumnPos, radius: i64| {
        column.distance_squared(center) <= (radius * radius) as u128
    };
    (-radius..=radius)
        .flat_map(move |z| (-radius..=radius).map(move |x| (x, z)))
        .filter(move |(x, z)| x * x + z * z <= radius * radius)
        .filter_map(move |(x, z)| Some(ColumnPos::new(center.x.checked_add(x)?, center.z.checked_add(z)?)))
        .filter(move |&column| old.is_none_or(|(center, radius)| !within(column, center, radius)))
}

/// The time ahead for which a viewer is expected to keep its course, in seconds.
const LEAD: f64 = 4.0;
/// The share of a new move in the smoothed speed.
const SMOOTHING: f64 = 0.5;
/// A longer move, in columns, is a jump and says nothing about the heading.
const LEAP: u128 = 16;

/// The time in milliseconds for which a viewer that stopped is still expected to move on, and the step of that estimate.
const STEP: u128 = 250;

/// Where a viewer is heading, estimated from its moves: its speed in columns per second. A plain data structure.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Heading {
    speed: (f64, f64),
    moved_at: Option<Duration>,
}

impl Heading {
    /// Notes that the viewer went from one column to another.
    pub fn note(&mut self, from: ColumnPos, to: ColumnPos, now: Duration) {
        let Some(before) = self.moved_at.replace(now) else { return };
        if from.distance_squared(to) > LEAP * LEAP {
            self.speed = (0.0, 0.0);
            return;
        }
        // Two moves at the same moment are one; a step over a corner consists of two.
        let seconds = now.saturating_sub(before).as_secs_f64().max(0.05);
        let part = |old: f64, from: i64, to: i64| {
            let new = to.wrapping_sub(from) as f64 / seconds;
            old + (new - old) * SMOOTHING
        };
        self.speed = (part(self.speed.0, from.x, to.x), part(self.speed.1, from.z, to.z));
    }

    /// The expected place in a few seconds, at most `most` columns from here; `None` if that is here. A viewer that has not moved
    /// for a while has a speed of at most one column in that time.
    pub fn ahead(&self, center: ColumnPos, now: Duration, most: u32) -> Option<ColumnPos> {
        // Time advances in steps, so that the search around the place ahead is not repeated each time.
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

    /// Walks along x at this speed in columns per second for ten seconds. Returns the place and the time.
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
    fn a_viewer_that_stops_loses_its_heading() {
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
