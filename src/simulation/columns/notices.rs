//! Neighbor updates: blocks that ask for it hear of changes beside them.
//!
//! An update is a scheduled tick of a kind of the crate's own, so it is stored, merges and splits like any other. If a neighbor is
//! not loaded, the changed block keeps a tick for that face, which looks again until the neighbor is there.

use super::block_ticks::{BlockTick, BlockTicks};
use super::blocks::RegionColumns;
use crate::block::BlockId;
use crate::space::{BlockPos, Face};
use bevy::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The kind of tick that becomes a [`BlockChanged`].
const CHANGED: &str = "terrane:changed";
/// The kinds of ticks that look again at a neighbor, in the order of [`Face::ALL`].
const LOOKS: [&str; 6] = [
    "terrane:look_west",
    "terrane:look_bottom",
    "terrane:look_north",
    "terrane:look_east",
    "terrane:look_top",
    "terrane:look_south",
];

/// The ticks until something that is not loaded is looked at again, and until the next update of a block in a loop.
pub const PATIENCE: u64 = 20;
/// Updates of a block are counted over so many ticks.
const WINDOW: u32 = 64;
/// A block that is updated more often in a window is in a loop of rules.
const LOOP: u32 = 30;
/// The most blocks whose updates are counted in a window. The budget bounds the others.
const MOST_COUNTED: usize = 1 << 16;

/// A block, or one of its six neighbors, changed in the tick before. Read it with `MessageReader<BlockChanged>` in a region.
///
/// Only blocks with the tag [`NOTICES`](crate::block::tags::NOTICES), in any layer, get it, once for all changes of a tick. If more are due in a
/// tick than [`GroundSettings::updates_per_tick`], the others follow in the next. A block whose neighbor is not loaded hears
/// of its change after it was loaded, also after a restart.
///
/// ```
/// use bevy_terrane::prelude::*;
/// use bevy_terrane::simulation::BlockChanged;
///
/// /// Torches (with the tag `terrane:notices`) break when the block below them is gone.
/// fn break_torches(mut changed: MessageReader<BlockChanged>, mut blocks: RegionBlocks, types: Res<BlockTypes>) -> Result {
///     for BlockChanged { block } in changed.read() {
///         let is_torch = Some(blocks.block(*block)?) == types.id("game:torch");
///         if is_torch && blocks.block(block.offset(0, -1, 0))? == BlockId::AIR {
///             blocks.set_block(*block, BlockId::AIR)?;
///         }
///     }
///     Ok(())
/// }
/// # App::new().add_systems(RegionTick, break_torches);
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockChanged {
    /// The block that hears of the change.
    pub block: BlockPos,
}

/// A block was updated again and again in a short time: probably two rules undo each other. Its next updates come more slowly. A
/// region writes it, and logs a warning, once for each block in 64 ticks.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleLoop {
    /// The place.
    pub block: BlockPos,
    /// The block that is there now.
    pub id: BlockId,
}

/// How much of a region's tick goes to ground that lives. Insert it in `add_region_plugins` to change it.
#[derive(Resource, Clone, Copy, Debug, PartialEq, Eq, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Resource, Clone, Default)]
pub struct GroundSettings {
    /// The most updates of blocks, and steps of liquids, in a region's tick. Those left over come first in the next tick.
    pub updates_per_tick: usize,
    /// The number of cells of each chunk that are drawn for [`RandomTick`](crate::simulation::RandomTick)s in a tick, of 4,096.
    pub random_ticks: u32,
}

impl Default for GroundSettings {
    fn default() -> Self {
        Self { updates_per_tick: 4_096, random_ticks: 3 }
    }
}

/// The updates of a region.
#[derive(Debug)]
pub struct Notices {
    changed: Arc<str>,
    looks: [Arc<str>; 6],
    /// The number of the window, and the updates of each block in it.
    window: u128,
    counts: BTreeMap<BlockPos, u32>,
}

impl Default for Notices {
    fn default() -> Self {
        Self { changed: CHANGED.into(), looks: LOOKS.map(Into::into), window: 0, counts: BTreeMap::new() }
    }
}

impl Notices {
    /// Schedules an update.
    fn schedule(&self, ticks: &mut BlockTicks, block: BlockPos) {
        let is_in_loop = self.counts.get(&block).is_some_and(|count| *count >= LOOP);
        ticks.schedule(block, self.changed.clone(), if is_in_loop { PATIENCE } else { 1 });
    }

    /// Counts an update. Returns `true` if it is the one that makes a loop.
    fn count(&mut self, block: BlockPos) -> bool {
        let is_full = self.counts.len() >= MOST_COUNTED;
        match self.counts.get_mut(&block) {
            Some(count) => {
                *count += 1;
                *count == LOOP
            }
            None if is_full => false,
            None => {
                self.counts.insert(block, 1);
                false
            }
        }
    }

    /// Begins a new window if the last one is over. Windows depend on the dimension's clock alone.
    fn begin(&mut self, clock: Duration, period: Duration) {
        let window = clock.as_nanos() / period.saturating_mul(WINDOW).as_nanos().max(1);
        if window != self.window {
            self.window = window;
            self.counts.clear();
        }
    }

    /// Takes over the counts of an absorbed region, which has the same clock.
    pub fn append(&mut self, other: Self) {
        if other.window > self.window {
            *self = other;
        } else if other.window == self.window {
            for (block, count) in other.counts {
                let known = self.counts.entry(block).or_default();
                *known = count.max(*known);
            }
        }
    }
}

/// The ticks that are due in a region.
#[derive(Debug, Default)]
pub struct DueTicks {
    pub ticks: Vec<BlockTick>,
    pub changed: Vec<BlockChanged>,
    pub loops: Vec<RuleLoop>,
}

impl RegionColumns {
    /// Announces that a block has changed: to itself and its neighbors.
    pub(super) fn notice_change(&mut self, changed: BlockPos) {
        if self.ground_types().is_none_or(|types| types.noticing.is_none()) {
            return;
        }
        let is_noticing = |block: BlockPos| Some(self.noticing(block)?.is_some());
        let here = is_noticing(changed);
        let neighbors =
            Face::ALL.map(|face| changed.checked_offset(face.normal()).map(|block| (block, is_noticing(block))));
        if here == Some(true) {
            self.notices.schedule(&mut self.ticks, changed);
        }
        for (number, (neighbor, is_noticing)) in neighbors.into_iter().enumerate().filter_map(|(n, it)| Some((n, it?)))
        {
            match is_noticing {
                Some(true) => self.notices.schedule(&mut self.ticks, neighbor),
                Some(false) => {}
                None if neighbor.column().exists() => {
                    self.ticks.schedule(changed, self.notices.looks[number].clone(), PATIENCE);
                }
                None => {}
            }
        }
    }

    /// Schedules an update of a block that could not decide yet, because something is not loaded.
    pub(crate) fn notice_later(&mut self, block: BlockPos) {
        self.ticks.schedule(block, self.notices.changed.clone(), PATIENCE);
    }

    /// Returns `true` if there are ticks, or counts of updates that may be over.
    pub(crate) fn awaits_ticks(&self) -> bool {
        !self.ticks.is_empty() || !self.notices.counts.is_empty()
    }

    /// Takes the ticks that are due, at most `limit` of the crate's own kinds.
    pub(crate) fn take_due(&mut self, limit: usize) -> DueTicks {
        let (clock, period) = self.ticks.clock();
        self.notices.begin(clock, period);
        let (ticks, own) = self.ticks.take_due(limit);
        let mut due = DueTicks { ticks, ..DueTicks::default() };
        for tick in own {
            if *tick.kind == *CHANGED {
                self.update(tick.block, &mut due);
            } else if let Some((face, kind)) = Face::ALL.into_iter().zip(LOOKS).find(|(_, kind)| *tick.kind == **kind) {
                self.look_again(tick.block, face, kind);
            } else {
                due.ticks.push(tick);
            }
        }
        due
    }

    fn update(&mut self, block: BlockPos, due: &mut DueTicks) {
        let Some(Some(id)) = self.noticing(block) else { return };
        due.changed.push(BlockChanged { block });
        if self.notices.count(block) {
            due.loops.push(RuleLoop { block, id });
        }
    }

    /// Looks at a neighbor of a changed block that was not loaded when it changed.
    fn look_again(&mut self, changed: BlockPos, face: Face, kind: &str) {
        let Some(neighbor) = changed.checked_offset(face.normal()) else { return };
        match self.noticing(neighbor) {
            Some(Some(_)) => self.notices.schedule(&mut self.ticks, neighbor),
            Some(None) => {}
            None => drop(self.ticks.schedule(changed, kind.into(), PATIENCE)),
        }
    }

    /// The first block of a cell that hears of changes; `None` if the cell is not loaded.
    fn noticing(&self, block: BlockPos) -> Option<Option<BlockId>> {
        let types = self.ground_types().and_then(|types| types.noticing.as_ref());
        let mut blocks = self.known_blocks(block)?;
        Some(blocks.find(|id| types.is_some_and(|types| types.contains(*id))))
    }
}
