//! Block ticks: scheduled for later, and stored with their chunks.

use crate::space::{BlockPos, ChunkPos, ColumnPos};
use crate::storage::StoredBlockTick;
use bevy::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// A scheduled tick of a block is due. Read it with `MessageReader<BlockTick>` in a region.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct BlockTick {
    /// The block.
    pub block: BlockPos,
    /// The kind of tick, named by the game. The kinds that begin with `terrane:` are the crate's own.
    pub kind: Arc<str>,
}

/// A tick that is waiting, in the order of time and place.
type Due = (Duration, BlockPos, Arc<str>);

/// The scheduled ticks of a region's blocks. They travel and are stored with their chunks. While a column is not loaded, time
/// stops for its ticks.
///
/// A system reads them with [`RegionColumns::ticks`](crate::simulation::RegionColumns::ticks).
#[derive(Debug, Default)]
pub struct BlockTicks {
    due: BTreeSet<Due>,
    /// Ticks of the crate's own kinds, of which only a limited number is taken at a time.
    own_due: BTreeSet<Due>,
    chunks: FxHashMap<ChunkPos, BTreeMap<(BlockPos, Arc<str>), Duration>>,
    unsaved: FxHashSet<ChunkPos>,
    /// The dimension's clock at this tick, and the time between two ticks.
    clock: Duration,
    period: Duration,
}

impl BlockTicks {
    /// Schedules a tick of `kind` for `block`, `delay` ticks from now. A waiting tick of the same kind is left unchanged. Returns
    /// `true` if the tick was scheduled.
    ///
    /// A tick for a column that is not loaded in this region is lost.
    pub(crate) fn schedule(&mut self, block: BlockPos, kind: Arc<str>, delay: u64) -> bool {
        let due = due_after(delay, self.clock, self.period);
        let chunk = self.chunks.entry(block.chunk()).or_default();
        if let Some(known) = chunk.get(&(block, kind.clone())).copied() {
            // A tick of the crate's own that waits for something must not delay one that is due.
            if !is_own(&kind) || known <= due {
                return false;
            }
            self.own_due.remove(&(known, block, kind.clone()));
        }
        self.chunks.entry(block.chunk()).or_default().insert((block, kind.clone()), due);
        self.due_of(&kind).insert((due, block, kind));
        self.unsaved.insert(block.chunk());
        true
    }

    fn due_of(&mut self, kind: &str) -> &mut BTreeSet<Due> {
        if is_own(kind) { &mut self.own_due } else { &mut self.due }
    }

    /// The number of ticks until the block tick of `kind` at `block`, if one is scheduled.
    pub fn scheduled(&self, block: BlockPos, kind: &str) -> Option<u64> {
        let due = self.chunks.get(&block.chunk())?.get(&(block, kind.into()))?;
        Some(ticks_until(*due, self.clock, self.period))
    }

    /// Cancels a scheduled tick. Returns `true` if there was one.
    pub(crate) fn cancel(&mut self, block: BlockPos, kind: &str) -> bool {
        let key = (block, Arc::<str>::from(kind));
        let Some(due) = self.chunks.get_mut(&block.chunk()).and_then(|chunk| chunk.remove(&key)) else { return false };
        self.due_of(kind).remove(&(due, key.0, key.1));
        self.unsaved.insert(block.chunk());
        true
    }

    /// The number of scheduled ticks.
    pub fn len(&self) -> usize {
        self.due.len() + self.own_due.len()
    }

    /// Returns `true` if no tick is scheduled.
    pub fn is_empty(&self) -> bool {
        self.due.is_empty() && self.own_due.is_empty()
    }

    /// Sets the clock from which new ticks and the remaining delays are counted.
    pub(crate) fn set_clock(&mut self, clock: Duration, period: Duration) {
        (self.clock, self.period) = (clock, period);
    }

    /// The dimension's clock at this tick, and the time between two ticks.
    pub(crate) fn clock(&self) -> (Duration, Duration) {
        (self.clock, self.period)
    }

    /// Cancels the ticks of some blocks of a chunk.
    pub(crate) fn cancel_in(&mut self, chunk: ChunkPos, is_gone: impl Fn(BlockPos) -> bool) {
        let scheduled = self.chunks.get(&chunk).into_iter().flat_map(BTreeMap::keys);
        // A look is for a neighbor, which may still be there.
        let is_look = |kind: &str| kind.starts_with("terrane:look");
        let gone = scheduled.filter(|(block, kind)| is_gone(*block) && !is_look(kind));
        let gone: Vec<_> = gone.cloned().collect();
        for (block, kind) in gone {
            self.cancel(block, &kind);
        }
    }

    /// Removes and returns the ticks that are due, by time and place: those of the game, and at most `limit` of the crate's own kinds.
    pub(crate) fn take_due(&mut self, limit: usize) -> (Vec<BlockTick>, Vec<BlockTick>) {
        let clock = self.clock;
        let Self { due, own_due, chunks, unsaved, .. } = self;
        let mut take = |due: &mut BTreeSet<Due>, limit: usize| {
            let mut ticks = Vec::new();
            while ticks.len() < limit
                && due.first().is_some_and(|(due, ..)| *due <= clock)
                && let Some((_, block, kind)) = due.pop_first()
            {
                if let Some(chunk) = chunks.get_mut(&block.chunk()) {
                    chunk.remove(&(block, kind.clone()));
                }
                unsaved.insert(block.chunk());
                ticks.push(BlockTick { block, kind });
            }
            ticks
        };
        (take(due, usize::MAX), take(own_due, limit))
    }

    /// Inserts the ticks that were stored with a column.
    pub(crate) fn insert(&mut self, ticks: Vec<StoredBlockTick>) {
        for StoredBlockTick { block, kind, remaining } in ticks {
            let was_unsaved = self.unsaved.contains(&block.chunk());
            self.schedule(block, kind, remaining);
            if !was_unsaved {
                self.unsaved.remove(&block.chunk());
            }
        }
    }

    /// The ticks of a chunk in their stored form.
    pub(crate) fn stored(&self, chunk: ChunkPos) -> Vec<StoredBlockTick> {
        let stored = |((block, kind), due): (&(BlockPos, Arc<str>), &Duration)| StoredBlockTick {
            block: *block,
            kind: kind.clone(),
            remaining: ticks_until(*due, self.clock, self.period),
        };
        self.chunks.get(&chunk).into_iter().flatten().map(stored).collect()
    }

    /// Takes the chunks whose stored ticks are out of date, except in columns whose stored ticks have not arrived yet.
    pub(crate) fn take_unsaved(&mut self, is_whole: impl Fn(ColumnPos) -> bool) -> Vec<ChunkPos> {
        self.chunks.retain(|_, ticks| !ticks.is_empty());
        let mut unsaved: Vec<_> = self.unsaved.extract_if(|chunk| is_whole(chunk.column())).collect();
        unsaved.sort_unstable();
        unsaved
    }

    /// Marks chunks for saving, because the remaining delays change all the time.
    pub(crate) fn save_chunks(&mut self, leaving: impl Fn(ChunkPos) -> bool) {
        let chunks = self.chunks.keys().filter(|chunk| leaving(**chunk));
        self.unsaved.extend(chunks);
    }

    /// Removes and returns the ticks of some chunks.
    pub(crate) fn take_chunks(&mut self, wanted: impl Fn(ChunkPos) -> bool) -> Vec<StoredBlockTick> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut chunks: Vec<_> = self.chunks.keys().filter(|chunk| wanted(**chunk)).copied().collect();
        chunks.sort_unstable();
        let mut taken = Vec::new();
        for chunk in chunks {
            taken.extend(self.stored(chunk));
            for ((block, kind), due) in self.chunks.remove(&chunk).into_iter().flatten() {
                self.due_of(&kind).remove(&(due, block, kind));
            }
            self.unsaved.remove(&chunk);
        }
        taken
    }

    /// Takes over the ticks of an absorbed region, which has the same dimension clock.
    pub(crate) fn append(&mut self, other: Self) {
        self.due.extend(other.due);
        self.own_due.extend(other.own_due);
        self.chunks.extend(other.chunks);
        self.unsaved.extend(other.unsaved);
    }
}

/// Returns `true` for the kinds of ticks that only the crate schedules.
fn is_own(kind: &str) -> bool {
    kind.starts_with("terrane:")
}

/// The time after `ticks` more ticks of `period`.
pub fn due_after(ticks: u64, clock: Duration, period: Duration) -> Duration {
    clock.saturating_add(period.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX)))
}

/// The number of ticks of `period` until `due`, rounded up.
pub fn ticks_until(due: Duration, clock: Duration, period: Duration) -> u64 {
    let ticks = due.saturating_sub(clock).as_nanos().div_ceil(period.as_nanos().max(1));
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(50);

    fn ticks() -> BlockTicks {
        let mut ticks = BlockTicks::default();
        ticks.set_clock(TICK * 100, TICK);
        ticks
    }

    #[test]
    fn ticks_come_when_they_are_due_and_once() {
        let mut ticks = ticks();
        let (here, there) = (BlockPos::new(1, 2, 3), BlockPos::new(100, 2, 3));
        assert!(ticks.schedule(here, "grow".into(), 2));
        assert!(!ticks.schedule(here, "grow".into(), 1), "the first stays as it is");
        assert!(ticks.schedule(here, "rot".into(), 1));
        assert!(ticks.schedule(there, "grow".into(), 1));
        assert_eq!(ticks.scheduled(here, "grow"), Some(2));
        assert!(ticks.cancel(there, "grow") && !ticks.cancel(there, "grow"));
        ticks.set_clock(TICK * 101, TICK);
        assert_eq!(ticks.take_due(0).0, [BlockTick { block: here, kind: "rot".into() }]);
        ticks.set_clock(TICK * 102, TICK);
        assert_eq!(ticks.take_due(0).0, [BlockTick { block: here, kind: "grow".into() }]);
        assert!(ticks.is_empty());
    }

    #[test]
    fn ticks_of_the_crate_wait_their_turn_and_those_of_the_game_do_not() {
        let mut ticks = ticks();
        let blocks = [5, 1, 4, 2, 3].map(|x| BlockPos::new(x, 0, 0));
        for block in blocks {
            ticks.schedule(block, "terrane:changed".into(), 1);
            ticks.schedule(block, "grow".into(), 1);
        }
        ticks.set_clock(TICK * 101, TICK);
        let (game, own) = ticks.take_due(2);
        assert_eq!((game.len(), own.iter().map(|tick| tick.block.x).collect::<Vec<_>>()), (5, vec![1, 2]));
        assert_eq!(ticks.len(), 3);
        ticks.schedule(BlockPos::new(0, 0, 0), "terrane:changed".into(), 0);
        ticks.set_clock(TICK * 102, TICK);
        let next = ticks.take_due(3).1;
        assert!(next.iter().map(|tick| tick.block.x).eq([0, 3, 4]), "by the time at which they were due: {next:?}");
    }

    #[test]
    fn a_tick_of_the_crate_that_waits_does_not_delay_an_earlier_one() {
        let mut ticks = ticks();
        let block = BlockPos::new(1, 0, 0);
        assert!(ticks.schedule(block, "terrane:changed".into(), 20));
        assert!(
            ticks.schedule(block, "terrane:changed".into(), 1) && !ticks.schedule(block, "terrane:changed".into(), 5)
        );
        assert_eq!((ticks.scheduled(block, "terrane:changed"), ticks.len()), (Some(1), 1));
        ticks.set_clock(TICK * 101, TICK);
        assert_eq!(ticks.take_due(9).1.len(), 1);
        assert!(ticks.is_empty());
    }

    #[test]
    fn a_look_at_a_neighbor_stays_when_the_ticks_of_a_block_are_cancelled() {
        let mut ticks = ticks();
        let block = BlockPos::new(1, 0, 0);
        for kind in ["terrane:look_east", "terrane:changed", "grow"] {
            ticks.schedule(block, kind.into(), 20);
        }
        ticks.cancel_in(block.chunk(), |_| true);
        assert_eq!((ticks.len(), ticks.scheduled(block, "terrane:look_east")), (1, Some(20)));
    }

    #[test]
    fn a_part_of_a_tick_counts_as_one() {
        assert_eq!(ticks_until(Duration::from_millis(101), Duration::ZERO, TICK), 3);
        assert_eq!(ticks_until(Duration::ZERO, Duration::from_secs(1), TICK), 0);
        assert_eq!(ticks_until(Duration::MAX, Duration::ZERO, Duration::ZERO), u64::MAX);
    }

    #[test]
    fn a_column_keeps_its_ticks_with_their_remaining_delays() {
        let mut from = ticks();
        let block = BlockPos::new(1, 2, 3);
        from.schedule(block, "grow".into(), 7);
        from.set_clock(TICK * 103, TICK);
        let taken = from.take_chunks(|chunk| chunk == block.chunk());
        assert_eq!(taken, [StoredBlockTick { block, kind: "grow".into(), remaining: 4 }]);
        assert!(from.is_empty() && from.take_unsaved(|_| true).is_empty());
        let mut to = ticks();
        to.insert(taken);
        assert_eq!(to.scheduled(block, "grow"), Some(4));
        assert!(to.take_unsaved(|_| true).is_empty(), "it is stored just so");
    }
}
