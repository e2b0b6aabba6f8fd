//! Schedules autosaves: regions hand out their unsaved state in turns, spread over the autosave period.
//!
//! Each region has its own place in a cycle of seven eighths of the period. The pending save is committed at least once in
//! each eighth of the period. So nothing stays unsaved for longer than the period, and neither the coordinator nor the disk
//! receives more than a part of the world at a time.

use crate::region::RegionId;
use crate::space::DimensionId;
use std::time::Duration;

/// The schedule of the regions' turns.
#[derive(Debug, Default)]
pub struct Autosave {
    cycle: Duration,
    /// The time within which the pending save is committed.
    pub commit_within: Duration,
}

/// 2^64 divided by the golden ratio. Its multiples, modulo 2^64, are spread evenly however many there are (Knuth, "The Art
/// of Computer Programming" 3, 6.4).
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

impl Autosave {
    pub fn new(period: Duration) -> Self {
        let commit_within = period / 8;
        Self { cycle: period.saturating_sub(commit_within), commit_within }
    }

    /// Returns `true` if it is the region's turn. A region without a turn gets one at the first call.
    pub fn is_due(&self, due: &mut Option<Duration>, region: (DimensionId, RegionId), now: Duration) -> bool {
        *due.get_or_insert_with(|| self.next_turn(region, now)) <= now
    }

    /// The region's next turn, if it hands out everything now.
    pub fn next_turn(&self, (dimension, region): (DimensionId, RegionId), now: Duration) -> Duration {
        // The regions of each dimension start with the same numbers.
        let place = (region.index().wrapping_add(dimension.0 << 40).wrapping_mul(GOLDEN)) >> u32::BITS;
        let (now, cycle) = (now.as_nanos(), self.cycle.as_nanos().max(1));
        let offset = (cycle * u128::from(place)) >> u32::BITS;
        let next = offset + (now + cycle - offset) / cycle * cycle;
        Duration::from_nanos(u64::try_from(next).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::messages::settings::TerranePlugin;
    use proptest::prelude::*;

    const PERIOD: Duration = Duration::from_secs(8);

    fn region(number: usize) -> (DimensionId, RegionId) {
        (DimensionId(7), RegionId::new(number as u64))
    }

    /// Takes all turns while the clock advances by `step` up to `end`. Returns the number of turns at each step.
    fn run(
        autosave: &Autosave,
        turns: &mut [Option<Duration>],
        from: Duration,
        step: Duration,
        end: Duration,
    ) -> Vec<usize> {
        let mut counts = Vec::new();
        let mut now = from;
        while now < end {
            let mut count = 0;
            for (number, turn) in turns.iter_mut().enumerate() {
                if autosave.is_due(turn, region(number), now) {
                    *turn = Some(autosave.next_turn(region(number), now));
                    count += 1;
                }
            }
            counts.push(count);
            now += step;
        }
        counts
    }

    /// Promise, crashes: Autosave saves the regions in turns, spread over its period.
    #[test]
    fn each_region_has_one_turn_in_a_cycle_and_they_are_spread_over_it() {
        for regions in [1, 2, 7, 35, 100, 1_000] {
            let autosave = Autosave::new(PERIOD);
            let mut turns = vec![None; regions];
            run(&autosave, &mut turns, Duration::ZERO, Duration::from_millis(50), Duration::from_secs(7));
            // A cycle of seven seconds has 140 steps of 50 ms.
            let end = Duration::from_secs(14);
            let counts = run(&autosave, &mut turns, Duration::from_secs(7), Duration::from_millis(50), end);
            assert_eq!(counts.iter().sum::<usize>(), regions);
            let most = counts.iter().max().copied().unwrap_or_default();
            assert!(most <= regions.div_ceil(140) + 1, "{most} of {regions} regions at once");
        }
    }

    proptest! {
        /// Every change is handed out within seven eighths of the period, even if regions are created, merge and split.
        #[test]
        fn no_region_waits_longer_than_a_cycle(
            steps in proptest::collection::vec((0..4_u8, any::<prop::sample::Index>(), 1..400_u64), 1..200),
        ) {
            let autosave = Autosave::new(PERIOD);
            let mut now = Duration::ZERO;
            // Each region with its number and the time of its first change that was not handed out.
            let mut regions = vec![(None, 0, now)];
            let mut made = 0;
            for (kind, index, millis) in steps {
                let at = index.index(regions.len());
                made += 1;
                match kind {
                    0 => regions.push((None, made, now)),
                    1 => regions.push((regions[at].0, made, regions[at].2)),
                    2 if regions.len() > 1 => {
                        let (turn, _, since) = regions.remove(at);
                        let into = index.index(regions.len());
                        regions[into].0 = [regions[into].0, turn].into_iter().flatten().min();
                        regions[into].2 = regions[into].2.min(since);
                    }
                    _ => {}
                }
                for (turn, number, since) in &mut regions {
                    if autosave.is_due(turn, region(*number), now) {
                        *turn = Some(autosave.next_turn(region(*number), now));
                        *since = now;
                    }
                    // A region checks at least every 400 ms.
                    prop_assert!(now - *since <= Duration::from_millis(7_000 + 400));
                }
                now += Duration::from_millis(millis);
            }
        }
    }

    #[test]
    fn periods_of_any_length_are_borne() {
        for period in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            let autosave = Autosave::new(period);
            let mut turn = None;
            for now in [Duration::ZERO, Duration::from_secs(1), Duration::MAX] {
                autosave.is_due(&mut turn, region(3), now);
                turn = Some(autosave.next_turn(region(3), now));
            }
        }
    }

    /// Promise, crashes: The autosave period is five seconds by default.
    #[test]
    fn by_itself_everything_is_saved_within_five_seconds() {
        assert_eq!(TerranePlugin::default().saving.autosave_period, Duration::from_secs(5));
    }
}
