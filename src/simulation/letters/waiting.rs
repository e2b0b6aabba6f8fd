//! Letters that wait in a region for their delay.

use crate::simulation::columns::block_ticks::{due_after, ticks_until};
use crate::simulation::letters::letter::Letter;
use std::collections::BTreeMap;
use std::mem;
use std::time::Duration;

/// The letters that wait in a region world.
#[derive(Default)]
pub struct WaitingLetters {
    /// By due time on the dimension's clock, then in the order of arrival.
    letters: BTreeMap<(Duration, u64), Letter>,
    /// The number of letters that have arrived.
    arrivals: u64,
    /// The dimension's clock at the last task, and the time from one tick to the next.
    clock: Duration,
    period: Duration,
}

impl WaitingLetters {
    /// Sets the dimension's clock, and the time from one tick to the next.
    pub fn set_clock(&mut self, clock: Duration, period: Duration) {
        (self.clock, self.period) = (clock, period);
    }

    /// Stores letters until they are due.
    pub fn receive(&mut self, letters: impl IntoIterator<Item = Letter>) {
        for letter in letters {
            // Letters without a delay stay in the order of arrival, independent of the clock.
            let due = match letter.delay {
                0 => Duration::ZERO,
                delay => due_after(delay, self.clock, self.period),
            };
            self.keep_until(due, letter);
        }
    }

    fn keep_until(&mut self, due: Duration, letter: Letter) {
        self.arrivals += 1;
        self.letters.insert((due, self.arrivals), letter);
    }

    /// Takes all letters from a world with the same clock.
    pub fn append(&mut self, other: &mut Self) {
        for ((due, _), letter) in mem::take(&mut other.letters) {
            self.keep_until(due, letter);
        }
    }

    /// Returns `true` if no letter waits.
    pub fn is_empty(&self) -> bool {
        self.letters.is_empty()
    }

    /// Takes out the next letter that is due. The others survive a panic in its delivery.
    pub fn next_due(&mut self, clock: Duration) -> Option<Letter> {
        let next = self.letters.first_entry().filter(|next| next.key().0 <= clock)?;
        Some(next.remove())
    }

    /// Takes out the letters for which `wanted` returns `true`, each with its remaining ticks.
    pub fn take(&mut self, mut wanted: impl FnMut(&Letter) -> bool) -> Vec<Letter> {
        let taken = self.letters.extract_if(.., |_, letter| wanted(letter));
        taken.map(|((due, _), letter)| letter.with_delay(ticks_until(due, self.clock, self.period))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::letters::letter::{Address, LetterSender};
    use crate::space::{BlockPos, DimensionId};

    #[test]
    fn due_letters_come_in_the_order_of_time_and_arrival() {
        let mut waiting = WaitingLetters::default();
        let tick = Duration::from_millis(50);
        waiting.set_clock(tick * 2, tick);
        for (number, due) in [(1, 3), (2, 1), (3, 1), (4, 2)] {
            let to = Address::Place(DimensionId(0), BlockPos::new(number * 16, 0, 0));
            waiting.keep_until(tick * due, Letter::message(to, LetterSender::Main, number));
        }
        let places = |letters: Vec<Letter>| -> Vec<i64> {
            letters.iter().filter_map(|letter| Some(letter.column()?.1.x)).collect()
        };
        assert_eq!(places(std::iter::from_fn(|| waiting.next_due(tick * 2)).collect()), [2, 3, 4]);
        assert!(waiting.next_due(tick * 2).is_none());
        let left = waiting.take(|_| true);
        assert_eq!((left[0].delay, places(left)), (1, vec![1]));
    }
}
