//! The record of a region's ticks over the last minute, small enough for ten thousand regions.
//!
//! Time is cut into slots of one second of the coordinator's clock. A slot knows how many ticks ended in it, how long the
//! region ticked in it, and its longest tick. Samples of the tick times are in one ring for all slots. A history takes at
//! most 4 KiB, at any tick rate.

#[cfg(test)]
mod tests;

use crate::coordinator::messages::statistics::{TickWindow, TimeWindow};
use crate::simulation::SplitMix64;
use bevy::prelude::*;
use std::collections::VecDeque;
use std::time::Duration;

/// The slots that a minute can touch: 60 seconds, and the one that has just begun.
const SLOTS: usize = 61;
/// The tick times that are kept per second: slightly more than there are at 20 ticks a second.
const SAMPLES_PER_SLOT: usize = 24;
const MAX_SAMPLES: usize = SLOTS * SAMPLES_PER_SLOT;
/// The initial capacity of the ring of samples.
const FIRST_SAMPLES: usize = 32;

const NANOS_PER_SECOND: u32 = 1_000_000_000;
/// The shortest time for a meaningful rate.
const LEAST_HISTORY: Duration = Duration::from_millis(500);

/// A region's ticks over the last minute, and their total number. A part of a split region begins with a copy.
///
/// The clock may be unreliable. If it jumps ahead, the gap counts as idle time. If it jumps back, everything happens at the
/// latest time seen so far, until the clock reaches it again.
#[derive(Clone, Debug, Default)]
pub struct TickHistory {
    total: u64,
    /// The end of the first tick and of the last one; `None` before the first.
    span: Option<(Duration, Duration)>,
    /// The newest slots without gaps, newest last; at most [`SLOTS`].
    slots: VecDeque<Slot>,
    /// The samples in the order of their slots; within a slot they are unordered.
    samples: VecDeque<u16>,
    windows: [TickWindow; 3],
    /// The time at which each window is next computed; `None` before the first time.
    due: [Option<Duration>; 3],
    /// How much earlier than others its windows are computed, in 2^32ths of their periods. Otherwise regions that were made
    /// together would all be computed in the same pass every few seconds.
    phase: u32,
}

/// A slot of one second.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// The time spent ticking, in nanoseconds; at most the whole second.
    busy: u32,
    /// The number of ticks that ended in it.
    ticks: u32,
    /// The longest of them.
    worst: u16,
    /// The number of its samples in `samples`.
    sampled: u16,
}

impl TickHistory {
    /// The number of ticks since the region was made.
    pub fn ticks(&self) -> u64 {
        self.total
    }

    /// Notes a tick that ended at this time of the coordinator's clock.
    pub fn push(&mut self, ended: Duration, took: Duration) {
        self.total = self.total.saturating_add(1);
        let (before, first, last) = match self.span {
            None => {
                // The duration varies by nanoseconds even if many ticks end in one pass.
                self.phase = SplitMix64::new((ended.as_nanos() ^ took.as_nanos()) as u64).next_u64() as u32;
                (ended, ended, ended)
            }
            Some((first, last)) => (last, first, ended.max(last)),
        };
        self.span = Some((first, last));
        self.advance(last.as_secs().saturating_sub(before.as_secs()));
        self.spend(last.saturating_sub(took).max(first), last);
        self.count(quantised(took));
    }

    /// Computes the window that ends now, in time proportional to its kept ticks, at most those of a minute.
    /// [`windows`](Self::windows) returns recent windows without computing.
    pub fn window(&self, now: Duration, window: TimeWindow) -> TickWindow {
        let Some((first, last)) = self.span else { return TickWindow::default() };
        let now = now.max(last);
        let edge = first_edge_from(now.saturating_sub(window.length()));
        let (begins, is_young) = (Duration::from_secs(edge).max(first), edge <= first.as_secs());
        let length = now.saturating_sub(begins);

        let inside = last.as_secs().checked_sub(edge).map_or(0, |newest| newest.saturating_add(1));
        let inside = usize::try_from(inside).unwrap_or(usize::MAX);
        let (mut all, mut busy, mut sampled) = (Slot::default(), 0, 0);
        for slot in self.slots.iter().rev().take(inside) {
            all.ticks = all.ticks.saturating_add(slot.ticks);
            all.worst = all.worst.max(slot.worst);
            busy += u64::from(slot.busy);
            sampled += usize::from(slot.sampled);
        }
        // Time counts from the end of the first tick, so the first tick is not counted.
        let counted = all.ticks.saturating_sub(u32::from(is_young));
        let rate = (length >= LEAST_HISTORY).then(|| f64::from(counted) / length.as_secs_f64());
        let share = if length.is_zero() { 0.0 } else { Duration::from_nanos(busy).div_duration_f64(length) };
        let [median, p95] = self.median_and_p95(sampled);
        TickWindow {
            ticks_per_second: rate,
            median,
            p95,
            worst: expanded(all.worst),
            utilisation: share.min(1.0),
            ticks: all.ticks,
        }
    }

    /// Recomputes the cached windows that are old: the shortest once a second, the next every two seconds, the longest every
    /// five. Returns `true` if there was one.
    pub fn refresh(&mut self, now: Duration) -> bool {
        if self.span.is_none() {
            return false;
        }
        let mut refreshed = false;
        for (index, window) in TimeWindow::ALL.into_iter().enumerate() {
            let period = window.refresh_period();
            // After a jump back of the clock, cached windows would otherwise stay until the clock reaches that time again.
            if self.due[index].is_none_or(|due| now >= due || due.saturating_sub(now) > period) {
                self.windows[index] = self.window(now, window);
                self.due[index] = Some(self.next_due(now, period));
                refreshed = true;
            }
        }
        refreshed
    }

    /// The windows at their last [refresh](Self::refresh), in the order of [`TimeWindow::ALL`].
    pub fn windows(&self) -> &[TickWindow; 3] {
        &self.windows
    }

    /// The next time after `now` for something that is due once per period.
    fn next_due(&self, now: Duration, period: Duration) -> Duration {
        let (period, phase) = (period.as_nanos(), u128::from(self.phase));
        let since_due = (now.as_nanos() + ((period * phase) >> u32::BITS)) % period;
        now.saturating_add(Duration::from_nanos((period - since_due) as u64))
    }

    /// Appends slots for this many more seconds.
    fn advance(&mut self, seconds: u64) {
        if self.slots.is_empty() {
            self.slots.push_back(Slot::default());
        }
        // After this many, no old slot is left.
        for _ in 0..seconds.min(SLOTS as u64) {
            if self.slots.len() == SLOTS
                && let Some(oldest) = self.slots.pop_front()
            {
                self.samples.drain(..usize::from(oldest.sampled).min(self.samples.len()));
            }
            self.slots.push_back(Slot::default());
        }
    }

    /// Adds the time between the two to the slots that it covers; `end` is in the newest slot.
    fn spend(&mut self, start: Duration, end: Duration) {
        // A region's ticks do not overlap, so in total each slot is visited once, plus once per tick.
        let seconds = end.as_secs().saturating_sub(start.as_secs());
        for (slot, age) in self.slots.iter_mut().rev().zip(0..=seconds) {
            let from = if age == seconds { start.subsec_nanos() } else { 0 };
            let until = if age == 0 { end.subsec_nanos() } else { NANOS_PER_SECOND };
            slot.busy = slot.busy.saturating_add(until.saturating_sub(from)).min(NANOS_PER_SECOND);
        }
    }

    /// Counts a tick of this time in the newest slot.
    fn count(&mut self, time: u16) {
        let Some(slot) = self.slots.back_mut() else { return };
        slot.ticks = slot.ticks.saturating_add(1);
        slot.worst = slot.worst.max(time);
        if usize::from(slot.sampled) < SAMPLES_PER_SLOT {
            slot.sampled += 1;
            make_room(&mut self.samples);
            self.samples.push_back(time);
            return;
        }
        // Each tick of the slot must be kept with the same probability: the n-th takes one of n places at random, and only the
        // first few of these exist.
        let place = SplitMix64::new(self.total).below(slot.ticks) as usize;
        if place < SAMPLES_PER_SLOT
            && let Some(sample) = self.samples.iter_mut().rev().nth(place)
        {
            *sample = time;
        }
    }

    /// The median and the 95th percentile of the newest `count` samples.
    fn median_and_p95(&self, count: usize) -> [Duration; 2] {
        let mut times: Vec<u16> = self.samples.range(self.samples.len().saturating_sub(count)..).copied().collect();
        if times.is_empty() {
            return [Duration::ZERO; 2];
        }
        let (median_at, p95_at) = (times.len() / 2, (times.len() * 95).div_ceil(100) - 1);
        let (below, p95, _) = times.select_nth_unstable(p95_at);
        let p95 = *p95;
        let median = if median_at < below.len() { *below.select_nth_unstable(median_at).1 } else { p95 };
        [median, p95].map(expanded)
    }
}

/// The number of the first whole second at or after this time.
fn first_edge_from(time: Duration) -> u64 {
    time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0))
}

/// Makes room for one more sample, unlike automatic growth never beyond the maximum.
fn make_room(samples: &mut VecDeque<u16>) {
    let length = samples.len();
    if length == samples.capacity() {
        samples.reserve_exact(length.max(FIRST_SAMPLES).min(MAX_SAMPLES.saturating_sub(length)));
    }
}

/// A time in 16 bits that sort as the times do: nanoseconds with 11 significant bits, as a floating-point number.
fn quantised(time: Duration) -> u16 {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let shift = nanos.checked_ilog2().unwrap_or(0).saturating_sub(10);
    // With a shift, the highest of the 11 bits is always set and so adds one to it.
    (u64::from(shift << 10) + (nanos >> shift)) as u16
}

/// The middle of the times that are quantised to this value.
fn expanded(time: u16) -> Duration {
    let shift = u64::from(time >> 10).saturating_sub(1);
    let significant = u64::from(time) - (shift << 10);
    Duration::from_nanos((significant << shift) + ((1 << shift) >> 1))
}
