//! How ground is generated in a dimension: the game's settings, the coordinator's state, the turns of viewers, and the limit
//! per second.

use crate::coordinator::demand::failures::Failures;
use crate::coordinator::figures::totals::RecentRate;
use crate::coordinator::messages::generation::DimensionGeneration;
use std::time::Duration;

/// The coordinator's state of the generation of one dimension.
#[derive(Default)]
pub struct GenerationState {
    pub settings: DimensionGeneration,
    pub turns: Turns,
    pub failures: Failures,
    /// Columns that were generated since the dimension was opened.
    pub generated: u64,
    pub rate: RecentRate,
    pub bucket: TokenBucket,
}

impl GenerationState {
    pub fn new(settings: DimensionGeneration) -> Self {
        Self { settings, ..Self::default() }
    }

    /// The number of columns that may still be begun now.
    pub fn allowance(&mut self, now: Duration) -> usize {
        let available = self.bucket.available(self.settings.columns_per_second, now);
        if self.settings.paused { 0 } else { available }
    }

    /// The part of the way ahead that does not count.
    pub fn heading_weight(&self) -> f64 {
        let weight = self.settings.heading_weight;
        if weight > 0.0 { weight.min(1.0) } else { 0.0 }
    }
}

/// One out of this many orders goes to the viewer that has waited longest.
const ROUND: u64 = 4;

/// The turns of the viewers of one dimension: the nearest work over all viewers comes first, and now and then the viewer that has
/// waited longest. A plain data structure.
///
/// With the nearest work alone, a crowd that keeps moving would starve a lone viewer whose ground is farther away. So every
/// [`ROUND`]th order goes to the viewer that has waited longest. An order serves every viewer that has it in range, so a crowd
/// in one place takes one turn together. Of n viewers with work, each is served at least once in n times [`ROUND`] orders,
/// however near the work of the others is; viewers that share their range count as one.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    turn: u64,
}

impl Turns {
    /// Returns `true` if the next turn goes to the viewer that has waited longest.
    pub fn is_round(&self) -> bool {
        (self.turn + 1).is_multiple_of(ROUND)
    }

    /// The rank of a viewer with work: the lowest is served next, and the nearest of equal ones. `served` is the turn in
    /// which it was last served.
    pub fn rank(&self, served: u64) -> u64 {
        if self.is_round() { served } else { 0 }
    }

    /// Ends a turn with an order. Returns the turn's number, which the served viewers note.
    pub fn end_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }
}

/// The part of a second for which unused tokens are kept.
const BURST: f64 = 0.25;

/// The number of things that may begin now under a rate limit.
#[derive(Clone, Debug, Default)]
pub struct TokenBucket {
    tokens: f64,
    filled: Option<Duration>,
}

impl TokenBucket {
    /// The tokens at `now`; unlimited without a limit. A limit that is not a positive number gives none.
    pub fn available(&mut self, per_second: Option<f64>, now: Duration) -> usize {
        let Some(per_second) = per_second else {
            self.filled = None;
            return usize::MAX;
        };
        let per_second = if per_second > 0.0 { per_second } else { 0.0 };
        // A slow stream keeps one token and the begun part of the next.
        let most = (per_second * BURST).max(2.0);
        let before = self.filled.replace(now);
        // A new limit begins with a full bucket.
        let gained = before.map_or(most, |before| per_second * now.saturating_sub(before).as_secs_f64());
        self.tokens = if per_second > 0.0 { (self.tokens + gained).min(most) } else { 0.0 };
        self.tokens as usize
    }

    /// Returns `true` if nothing may begin now.
    pub fn is_empty(&self) -> bool {
        self.filled.is_some() && self.tokens < 1.0
    }

    /// Takes tokens for things that began.
    pub fn take(&mut self, tokens: usize) {
        if self.filled.is_some() {
            self.tokens -= tokens as f64;
        }
    }

    /// Returns tokens for things that began and were cancelled.
    pub fn give_back(&mut self, tokens: usize) {
        if self.filled.is_some() {
            self.tokens += tokens as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs this number of turns; `wants` has the distance of each viewer's work, and `serves` returns the viewers that an order serves.
    fn serve(turns: u64, wants: &[f64], serves: impl Fn(usize, usize) -> bool) -> Vec<u64> {
        let mut order = Turns::default();
        let mut served = vec![0; wants.len()];
        let mut count = vec![0; wants.len()];
        for _ in 0..turns {
            let before = |a: &usize, b: &usize| {
                let rank = |of: &usize| order.rank(served[*of]);
                rank(a).cmp(&rank(b)).then(wants[*a].total_cmp(&wants[*b]))
            };
            let chosen = (0..wants.len()).min_by(before).unwrap();
            count[chosen] += 1;
            let turn = order.end_turn();
            (0..served.len()).filter(|other| serves(chosen, *other)).for_each(|other| served[other] = turn);
        }
        count
    }

    /// Promise, worlds: Columns are generated nearest first over all viewers and dimensions, and no viewer starves.
    #[test]
    fn the_nearest_viewer_is_first_and_none_starves() {
        let count = serve(400, &[1.0, 50.0, 90.0, 2.0], |a, b| a == b);
        assert_eq!(count.iter().sum::<u64>(), 400);
        assert!(count[0] >= 300, "{count:?}");
        assert!(count[1..].iter().all(|count| *count >= 400 / 16 - 1), "{count:?}");
    }

    #[test]
    fn a_crowd_in_one_place_takes_one_turn_together() {
        // A hundred viewers with work at their feet, and one with work far away.
        let mut wants = vec![1.0; 100];
        wants.push(70.0);
        let count = serve(800, &wants, |chosen, other| (chosen < 100) == (other < 100));
        assert!(count[100] >= 800 / 8 - 1, "{}", count[100]);
    }

    fn begun(per_second: f64, times: impl Iterator<Item = Duration>) -> usize {
        let mut bucket = TokenBucket::default();
        let mut begun = 0;
        for now in times {
            let tokens = bucket.available(Some(per_second), now);
            bucket.take(tokens);
            begun += tokens;
        }
        begun
    }

    #[test]
    fn over_a_while_as_many_begin_as_are_allowed_however_often_it_is_asked() {
        for (per_second, millis) in [(10.0, 50), (10.0, 7), (3.0, 100), (0.5, 50), (1_000.0, 50), (7.5, 1)] {
            let times = (0..=60_000 / millis).map(|step| Duration::from_millis(step * millis));
            let expected = per_second * 60.0;
            let found = begun(per_second, times) as f64;
            assert!((found - expected).abs() <= expected.mul_add(0.01, 2.0), "{per_second} each {millis}: {found}");
        }
    }

    #[test]
    fn unused_budget_is_kept_for_a_quarter_of_a_second() {
        let mut bucket = TokenBucket::default();
        assert_eq!(bucket.available(Some(100.0), Duration::ZERO), 25);
        assert_eq!(bucket.available(Some(100.0), Duration::from_secs(60)), 25);
        bucket.take(25);
        assert_eq!(bucket.available(Some(100.0), Duration::from_secs(60)), 0);
        bucket.give_back(5);
        assert_eq!(bucket.available(Some(100.0), Duration::from_secs(60)), 5);
    }

    #[test]
    fn no_limit_is_none_and_nonsense_lets_nothing_through() {
        let mut bucket = TokenBucket::default();
        assert_eq!(bucket.available(None, Duration::ZERO), usize::MAX);
        bucket.take(1_000_000);
        assert_eq!(bucket.available(Some(4.0), Duration::from_secs(1)), 2);
        for nothing in [0.0, -1.0, f64::NAN] {
            assert_eq!(bucket.available(Some(nothing), Duration::from_secs(2)), 0);
        }
        assert_eq!(bucket.available(Some(f64::INFINITY), Duration::from_secs(3)), usize::MAX);
    }
}
