//! When regions hand out by themselves what is unsaved: in turns, spread over the autosave period.
//!
//! Each region has a place of its own within a cycle of seven eighths of the period, and what they hand out is
//! committed at least each eighth of it. So nothing stays unsaved for longer than the period, and neither the
//! coordinator nor the disk is given more than a part of the world at a time.

use std::time::Duration;

/// When the next region has its turn.
#[derive(Debug)]
pub struct Autosave {
    cycle: Duration,
    /// The time within which what was handed out is committed.
    pub commit_within: Duration,
    /// Places that were given.
    places: u32,
}

/// When a region has its turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct SaveTurn {
    /// Its place within the cycle, in parts of 2^32; given when it is needed first.
    place: Option<u32>,
    due: Option<Duration>,
}

/// 2^32 divided by the golden ratio. Its multiples, modulo 2^32, are spread evenly however many there are (Knuth, "The Art
/// of Computer Programming" 3, 6.4).
const GOLDEN: u32 = 0x9E37_79B9;

impl Autosave {
    pub fn new(period: Duration) -> Self {
        let commit_within = period / 8;
        Self { cycle: period.saturating_sub(commit_within), commit_within, places: 0 }
    }

    /// Whether the region has its turn.
    pub fn is_due(&mut self, turn: &mut SaveTurn, now: Duration) -> bool {
        if turn.due.is_none() {
            self.end_turn(turn, now);
        }
        turn.due.is_some_and(|due| due <= now)
    }

    /// The region hands out everything now.
    pub fn end_turn(&mut self, turn: &mut SaveTurn, now: Duration) {
        let place = *turn.place.get_or_insert_with(|| {
            self.places = self.places.wrapping_add(1);
            self.places.wrapping_mul(GOLDEN)
        });
        let (now, cycle) = (now.as_nanos(), self.cycle.as_nanos().max(1));
        let offset = (cycle * u128::from(place)) >> u32::BITS;
        let next = offset + (now + cycle - offset) / cycle * cycle;
        turn.due = Some(Duration::from_nanos(u64::try_from(next).unwrap_or(u64::MAX)));
    }
}

impl SaveTurn {
    /// What the other one has not handed out is this one's now.
    pub fn merge(&mut self, other: Self) {
        self.place = self.place.or(other.place);
        self.due = [self.due, other.due].into_iter().flatten().min();
    }

    /// A part of the region has what the region has not handed out, and then a place of its own.
    pub fn part(self) -> Self {
        Self { place: None, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::CoordinatorConfig;
    use proptest::prelude::*;

    const PERIOD: Duration = Duration::from_secs(8);

    /// Has all turns taken as the clock goes on by `step` up to `end`. Gives how many there were at each step.
    fn run(
        autosave: &mut Autosave,
        turns: &mut [SaveTurn],
        from: Duration,
        step: Duration,
        end: Duration,
    ) -> Vec<usize> {
        let mut counts = Vec::new();
        let mut now = from;
        while now < end {
            let mut count = 0;
            for turn in turns.iter_mut() {
                if autosave.is_due(turn, now) {
                    autosave.end_turn(turn, now);
                    count += 1;
                }
            }
            counts.push(count);
            now += step;
        }
        counts
    }

    #[test]
    fn each_region_has_one_turn_in_a_cycle_and_they_are_spread_over_it() {
        for regions in [1, 2, 7, 35, 100, 1_000] {
            let mut autosave = Autosave::new(PERIOD);
            let mut turns = vec![SaveTurn::default(); regions];
            run(&mut autosave, &mut turns, Duration::ZERO, Duration::from_millis(50), Duration::from_secs(7));
            // Seven seconds are a cycle; in steps of 50 ms there are 140 of them.
            let end = Duration::from_secs(14);
            let counts = run(&mut autosave, &mut turns, Duration::from_secs(7), Duration::from_millis(50), end);
            assert_eq!(counts.iter().sum::<usize>(), regions);
            let most = counts.iter().max().copied().unwrap_or_default();
            assert!(most <= regions.div_ceil(140) + 1, "{most} of {regions} regions at once");
        }
    }

    proptest! {
        /// However regions come, merge and split, what changed is handed out within seven eighths of the period.
        #[test]
        fn no_region_waits_longer_than_a_cycle(
            steps in proptest::collection::vec((0..4_u8, any::<prop::sample::Index>(), 1..400_u64), 1..200),
        ) {
            let mut autosave = Autosave::new(PERIOD);
            let mut now = Duration::ZERO;
            // Each with the time since which it has something that it has not handed out.
            let mut regions = vec![(SaveTurn::default(), now)];
            for (kind, index, millis) in steps {
                let at = index.index(regions.len());
                match kind {
                    0 => regions.push((SaveTurn::default(), now)),
                    1 => regions.push((regions[at].0.part(), regions[at].1)),
                    2 if regions.len() > 1 => {
                        let (turn, since) = regions.remove(at);
                        let into = index.index(regions.len());
                        regions[into].0.merge(turn);
                        regions[into].1 = regions[into].1.min(since);
                    }
                    _ => {}
                }
                for (turn, since) in &mut regions {
                    if autosave.is_due(turn, now) {
                        autosave.end_turn(turn, now);
                        *since = now;
                    }
                    // It looks each 400 ms at the latest.
                    prop_assert!(now - *since <= Duration::from_millis(7_000 + 400));
                }
                now += Duration::from_millis(millis);
            }
        }
    }

    #[test]
    fn periods_of_any_length_are_borne() {
        for period in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            let mut autosave = Autosave::new(period);
            let mut turn = SaveTurn::default();
            for now in [Duration::ZERO, Duration::from_secs(1), Duration::MAX] {
                autosave.is_due(&mut turn, now);
                autosave.end_turn(&mut turn, now);
            }
        }
    }

    #[test]
    fn by_itself_everything_is_saved_within_five_seconds() {
        assert_eq!(CoordinatorConfig::default().autosave_period, Duration::from_secs(5));
    }
}
