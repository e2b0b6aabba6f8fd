//! When a server may be taken for dead, and when it must take itself for dead.

use super::Sign;
use std::collections::BTreeMap;
use std::time::Duration;

/// Watches the heartbeats of other servers. All times are of this server's own monotonic clock.
#[derive(Debug)]
pub struct Watch {
    term: Duration,
    /// The last heartbeat of each server and the time since which it has not changed.
    unchanged: BTreeMap<u64, (Vec<u8>, Duration)>,
    last_read: Option<Duration>,
}

impl Watch {
    /// The largest part of a term that may pass from one reading to the next.
    const MOST_READINGS_APART: u32 = 4;

    /// A watch that waits for this long before it takes a silent server for dead.
    pub fn new(term: Duration) -> Self {
        Self { term, unchanged: BTreeMap::new(), last_read: None }
    }

    /// Takes a reading that was requested at `asked` and arrived at `now`. Returns the servers whose heartbeat has not
    /// changed for a whole term.
    ///
    /// Readings must follow each other within a quarter of a term. After a longer pause all terms start again: the
    /// database may have been unreachable meanwhile, for the other servers too.
    pub fn read(&mut self, asked: Duration, now: Duration, signs: &[Sign]) -> Vec<Sign> {
        let most = self.term / Self::MOST_READINGS_APART;
        if self.last_read.is_none_or(|last| now.saturating_sub(last) > most) {
            self.unchanged.clear();
        }
        self.last_read = Some(now);
        let before = std::mem::take(&mut self.unchanged);
        let mut silent = Vec::new();
        for sign in signs {
            // A heartbeat was current at some time between the request and the arrival of its reading.
            let since = match before.get(&sign.incarnation) {
                Some((beat, since)) if *beat == sign.beat => *since,
                _ => now,
            };
            if asked.checked_sub(since).is_some_and(|silence| silence >= self.term) {
                silent.push(sign.clone());
            }
            self.unchanged.insert(sign.incarnation, (sign.beat.clone(), since));
        }
        silent
    }

    /// Notes that a reading failed. All terms start again.
    pub fn failed(&mut self) {
        self.unchanged.clear();
    }
}

/// The time until which a server may assume that no other one has ended it.
#[derive(Clone, Debug)]
pub struct Lease {
    length: Duration,
    until: Duration,
}

impl Lease {
    /// The lease of a server that asked to join at this time of its own monotonic clock. It lasts for half of the
    /// [watch](Watch)'s term, so the clocks of two servers may differ in speed by that much.
    pub fn new(term: Duration, joined: Duration) -> Self {
        let length = term / 2;
        Self { length, until: joined + length }
    }

    /// Notes a heartbeat that was sent at this time and has been confirmed since.
    pub fn beaten(&mut self, sent: Duration) {
        self.until = self.until.max(sent + self.length);
    }

    /// Returns `true` if the server may go on. Otherwise it must stop its ticks and everything that it sends until the
    /// next heartbeat is confirmed.
    pub fn holds(&self, now: Duration) -> bool {
        now < self.until
    }
}
