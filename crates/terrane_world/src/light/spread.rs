//! The work of a [`LightMap`]: cells fall and rise, a chunk and a level at a time.

use super::cells::{Cells, ROW, WORDS, step, step_all, step_out, upright};
use super::levels::{Planes, below, equal, lit, planes_of, replace, set};
use super::map::{NONE, Slot};
use super::optics::ChunkOptics;
use super::pending::Phase;
use super::{Channel, LightBlocks, LightMap, LightTable, MAX_LEVEL};
use crate::space::Face;
use std::mem;

impl LightMap {
    /// Works off announced changes, in at most this many steps. Returns `true` once the light is up to date.
    ///
    /// A step visits the edited cells of one chunk, or one chunk at one level of light, and takes about 1 us. A chunk that
    /// this call visits for the first time counts as eight more. The light can be read between two calls. It may then be too
    /// low where it had to fall, or too high where it still has to.
    ///
    /// `blocks` must be as announced.
    pub fn advance(&mut self, table: &LightTable, blocks: &impl LightBlocks, steps: usize) -> bool {
        if self.is_settled() {
            return true;
        }
        let view = BlockView { table, blocks, seen: Vec::new(), new: 0 };
        let mut spread = Spread { map: self, view, steps, inside: Cells::new(), outside: Cells::new() };
        for channel in Channel::ALL {
            spread.drop_edited(channel);
            // All fallen cells come before any rising one.
            let _ = spread.run(channel, Phase::Fall) && spread.run(channel, Phase::Rise);
        }
        spread.finish();
        self.is_settled()
    }
}

/// The first visit of a chunk counts as so many steps: most of its time goes into memory.
const FIRST_VISIT: usize = 8;

/// Cells rise in so many chunks at a time, until nothing is left in these. So a call that runs out of steps has finished some
/// chunks, and not begun others, instead of a part of each.
const RISING: usize = 16;

/// One call of [`LightMap::advance`].
struct Spread<'a, B> {
    map: &'a mut LightMap,
    view: BlockView<'a, B>,
    /// The steps left.
    steps: usize,
    /// Empty between steps, like `outside`.
    inside: Cells,
    outside: Cells,
}

struct BlockView<'a, B> {
    table: &'a LightTable,
    blocks: &'a B,
    /// The slots that have optics now.
    seen: Vec<u32>,
    /// The number of those that have not been counted as steps.
    new: usize,
}

impl<B: LightBlocks> BlockView<'_, B> {
    /// The number of steps that a visit counts as.
    fn steps(&mut self) -> usize {
        1 + FIRST_VISIT * mem::take(&mut self.new)
    }

    /// Learns what some words of a chunk do to light, one bit each.
    #[inline]
    fn see(&mut self, index: u32, slot: &mut Slot, words: u64) {
        let knows = |optics: &ChunkOptics| optics.knows(if optics.has_closed_faces() { u64::MAX } else { words });
        if slot.optics.as_ref().is_none_or(|optics| !knows(optics)) {
            self.learn(index, slot, words);
        }
    }

    fn learn(&mut self, index: u32, slot: &mut Slot, words: u64) {
        let chunk = self.blocks.chunk(slot.pos);
        let (seen, new) = (&mut self.seen, &mut self.new);
        let optics = slot.optics.get_or_insert_with(|| {
            seen.push(index);
            *new += 1;
            Box::new(ChunkOptics::new(self.table, chunk))
        });
        // A step within a chunk asks for the closed faces of words that it has not reached yet.
        let words = if optics.has_closed_faces() { u64::MAX } else { words };
        optics.learn(words, self.table, chunk);
    }
}

/// A step from a chunk into itself or into a neighbor.
#[derive(Clone, Copy)]
struct Arrival {
    channel: Channel,
    phase: Phase,
    /// The level of the cells that the step came from.
    level: u8,
    /// The face through which it came from a neighbor. Within a chunk, closed faces are considered before.
    entry: Option<Face>,
    /// It came down from full sky light.
    is_from_sky: bool,
}

impl<B: LightBlocks> Spread<'_, B> {
    /// Lets edited cells fall to their base, a chunk at a step, in about half of the steps. Cells that are left wait, as if they were
    /// edited later.
    fn drop_edited(&mut self, channel: Channel) {
        let kept = self.steps / 2;
        for index in self.map.active.iter().copied() {
            let slot = &mut self.map.slots[index as usize];
            let edited = slot.pending[channel as usize].as_ref().map_or(0, |pending| pending.edited.used());
            if edited == 0 {
                continue;
            }
            if self.steps <= kept {
                return;
            }
            self.view.see(index, slot, edited);
            self.steps = self.steps.saturating_sub(self.view.steps());
            if slot.drop_edited(channel) && !mem::replace(&mut slot.is_changed, true) {
                self.map.changed.push(index);
            }
        }
    }

    /// Does all steps of a phase, in some chunks at a time from the highest level down. Returns `false` if work is left.
    fn run(&mut self, channel: Channel, phase: Phase) -> bool {
        let levels = |map: &LightMap, slot: u32| {
            let pending = map.slots[slot as usize].pending[channel as usize].as_ref();
            pending.map_or(0, |pending| pending.levels(phase))
        };
        // Before any cell rises, all have to fall.
        let most = if phase == Phase::Fall { usize::MAX } else { RISING };
        let mut first = 0;
        loop {
            let all = self.map.active.iter().skip(first).take(most).fold(0, |all, slot| all | levels(self.map, *slot));
            let Some(level) = all.checked_ilog2() else {
                first = first.saturating_add(most);
                if first >= self.map.active.len() {
                    // Light may have flowed back to earlier chunks.
                    if self.map.active.iter().all(|slot| levels(self.map, *slot) == 0) {
                        return true;
                    }
                    first = 0;
                }
                continue;
            };
            let mut place = first;
            // A visit may append chunks, which may have cells of the same level.
            while place - first < most
                && let Some(&index) = self.map.active.get(place)
            {
                if levels(self.map, index) >> level & 1 != 0 {
                    if self.steps == 0 {
                        return false;
                    }
                    self.visit(index, channel, phase, level as u8);
                    self.steps = self.steps.saturating_sub(self.view.steps());
                }
                place += 1;
            }
        }
    }

    /// Takes the cells of a chunk with work at a level, and does it.
    fn visit(&mut self, index: u32, channel: Channel, phase: Phase, level: u8) {
        let slot = &mut self.map.slots[index as usize];
        let Some(pending) = &mut slot.pending[channel as usize] else { return };
        let levels = slot.light.channel(channel);
        let mut cells = pending.take(phase, level, |word| levels.word(word));
        if cells.is_empty() || (phase == Phase::Rise && level == 1) {
            return;
        }
        let is_full_sky = channel == Channel::Sky && level == MAX_LEVEL;
        self.view.see(index, slot, if is_full_sky { upright(cells.used()) } else { cells.used() });
        if is_full_sky && slot.fall_through(phase, &mut cells) && !mem::replace(&mut slot.is_changed, true) {
            self.map.changed.push(index);
        }
        let neighbors = slot.neighbors;
        for face in Face::ALL {
            let slot = &self.map.slots[index as usize];
            let Some(optics) = &slot.optics else { return };
            // When light falls, closed faces only make fewer cells fall, and an old block may not have had them.
            let are_closed = phase == Phase::Rise && optics.has_closed_faces();
            let exit = |word| if are_closed { optics.closed_to_exit(channel, face, word) } else { 0 };
            if are_closed {
                let entry = |word| optics.closed_to_entry(face.opposite(), word);
                for (word, cells) in cells.iter() {
                    let enter = |word, cells| self.inside.insert(word, cells & !entry(word));
                    step(face, word, cells & !exit(word), enter, |_, _| {});
                }
            } else if face == Face::West {
                step_all(&cells, &mut self.inside);
            }
            let neighbor = neighbors[face as usize];
            if neighbor == NONE {
                continue;
            }
            step_out(face, &cells, exit, &mut self.outside);
            if !self.outside.is_empty() {
                let is_from_sky = is_full_sky && face == Face::Bottom;
                let entry = Some(face.opposite());
                let arrival = Arrival { channel, phase, level, entry, is_from_sky };
                arrive(self.map, &mut self.view, neighbor, arrival, &self.outside);
                self.outside.clear();
            }
        }
        let arrival = Arrival { channel, phase, level, entry: None, is_from_sky: false };
        arrive(self.map, &mut self.view, index, arrival, &self.inside);
        self.inside.clear();
    }

    /// Frees the memory of chunks without further work.
    fn finish(self) {
        for index in self.view.seen {
            self.map.slots[index as usize].optics = None;
        }
        let slots = &mut self.map.slots;
        self.map.active.retain(|index| {
            let slot = &mut slots[*index as usize];
            for pending in &mut slot.pending {
                pending.take_if(|pending| pending.is_empty());
            }
            slot.is_active = slot.pending.iter().any(Option::is_some);
            if !slot.is_active {
                Channel::ALL.into_iter().for_each(|channel| slot.light.channel_mut(channel).compact());
            }
            slot.is_active
        });
    }
}

/// Lets cells of a chunk fall or rise after a step to them.
fn arrive(map: &mut LightMap, view: &mut BlockView<'_, impl LightBlocks>, index: u32, arrival: Arrival, cells: &Cells) {
    let slot = &mut map.slots[index as usize];
    view.see(index, slot, cells.used());
    let (is_changed, has_work) = match arrival.phase {
        Phase::Rise => {
            let has_risen = slot.rise(arrival, cells);
            (has_risen, has_risen)
        }
        Phase::Fall => slot.fall(arrival, cells),
    };
    if is_changed && !mem::replace(&mut slot.is_changed, true) {
        map.changed.push(index);
    }
    if has_work {
        map.activate(index);
    }
}

impl Slot {
    /// Lets the edited cells fall to their base. Returns `true` if a level has changed.
    fn drop_edited(&mut self, channel: Channel) -> bool {
        let (Some(optics), Some(pending)) = (&self.optics, &mut self.pending[channel as usize]) else { return false };
        let levels = self.light.channel_mut(channel);
        let mut is_changed = false;
        for (word, cells) in mem::replace(&mut pending.edited, Cells::new()).iter() {
            let (now, base) = (levels.word(word), optics.base(channel, self.is_below_sky, word));
            // Dark cells count as fallen from 1, so that their neighbors rise.
            let mut from = now;
            from[0] |= !lit(&now);
            pending.fall(word, cells, &from);
            pending.rise(word, cells & lit(&base), &base);
            if (0..4).any(|plane| (now[plane] ^ base[plane]) & cells != 0) {
                replace(&mut levels.planes_mut()[word], cells, &base);
                is_changed = true;
            }
        }
        is_changed
    }

    /// Adds the cells of this chunk that full sky light reaches straight down from `cells`, or no longer reaches. Returns
    /// `true` if there are any.
    fn fall_through(&mut self, phase: Phase, cells: &mut Cells) -> bool {
        let (Some(optics), Some(pending)) = (&self.optics, &mut self.pending[Channel::Sky as usize]) else {
            return false;
        };
        let levels = &mut self.light.sky;
        let mut is_changed = false;
        let bottom_words = (0..WORDS).step_by(4).filter(|word| cells.used() >> word & 0xF != 0).collect::<Vec<_>>();
        for bottom in bottom_words {
            // The cells of the row above from which light falls.
            let mut falling = 0;
            for word in (bottom..bottom + 4).rev() {
                let full = equal(&levels.word(word), MAX_LEVEL);
                let (enterable, exits) = match phase {
                    Phase::Rise => (
                        optics.free[word] & !full & !optics.closed_to_entry(Face::Top, word),
                        !optics.closed_to_exit(Channel::Sky, Face::Bottom, word),
                    ),
                    Phase::Fall => (optics.free[word] & full, u64::MAX),
                };
                let (from, mut reached) = (cells.word(word), 0);
                for shift in [48, 32, 16, 0] {
                    let row = falling & enterable >> shift;
                    reached |= row << shift;
                    falling = (from >> shift | row) & exits >> shift & ROW;
                }
                if reached != 0 {
                    let level = if phase == Phase::Rise { MAX_LEVEL } else { 0 };
                    set(&mut levels.planes_mut()[word], reached, level);
                    pending.rising.remove(word, reached);
                    cells.insert(word, reached);
                    is_changed = true;
                }
            }
        }
        is_changed
    }

    /// Raises the cells that can have more light from a neighbor. Returns `true` if there are any.
    fn rise(&mut self, arrival: Arrival, cells: &Cells) -> bool {
        let Some(optics) = &self.optics else { return false };
        let entering = |(word, cells): (usize, u64)| {
            let closed = arrival.entry.map_or(0, |face| optics.closed_to_entry(face, word));
            (word, cells & !closed)
        };
        let levels = self.light.channel_mut(arrival.channel);
        let mut has_risen =
            cells.iter().map(entering).map(|(word, cells)| raised(optics, arrival, word, cells, &levels.word(word)).0);
        if has_risen.all(|risen| risen == 0) {
            // Shared levels are not copied in vain.
            return false;
        }
        let levels = levels.planes_mut();
        let pending = self.pending[arrival.channel as usize].get_or_insert_default();
        for (word, cells) in cells.iter().map(entering) {
            let (risen, planes) = raised(optics, arrival, word, cells, &levels[word]);
            levels[word] = planes;
            pending.rise(word, risen, &planes);
        }
        true
    }

    /// Lets the cells fall that a neighbor may have lit, and the others rise. Returns whether a level has changed, and
    /// whether there is more work.
    fn fall(&mut self, arrival: Arrival, cells: &Cells) -> (bool, bool) {
        let Some(optics) = &self.optics else { return (false, false) };
        let levels = self.light.channel_mut(arrival.channel);
        let falling = |word, cells, now: &Planes| {
            let base = optics.base(arrival.channel, self.is_below_sky, word);
            (cells & may_be_lit_by(optics, arrival, word, now) & below(&base, now), base)
        };
        let mut has_work = false;
        if !cells.iter().any(|(word, cells)| falling(word, cells, &levels.word(word)).0 != 0) {
            // Shared levels are not copied in vain.
            for (word, cells) in cells.iter() {
                let now = levels.word(word);
                let bright = cells & lit(&now);
                if bright != 0 {
                    self.pending[arrival.channel as usize].get_or_insert_default().rise(word, bright, &now);
                    has_work = true;
                }
            }
            return (false, has_work);
        }
        let planes = levels.planes_mut();
        let pending = self.pending[arrival.channel as usize].get_or_insert_default();
        for (word, cells) in cells.iter() {
            let now = &mut planes[word];
            let cells = cells & lit(now);
            let (fallen, base) = falling(word, cells, now);
            pending.fall(word, fallen, now);
            replace(now, fallen, &base);
            pending.rise(word, cells & lit(now), now);
        }
        (true, true)
    }
}

/// The cells of a word that rise, and all levels of the word afterwards.
#[inline(always)]
fn raised(optics: &ChunkOptics, arrival: Arrival, word: usize, cells: u64, now: &Planes) -> (u64, Planes) {
    let (level, mut planes) = (arrival.level, *now);
    let mut risen = cells & optics.open[word] & below(now, &planes_of(level - 1));
    set(&mut planes, risen, level - 1);
    if arrival.is_from_sky {
        let full = cells & optics.free[word] & !equal(now, MAX_LEVEL);
        set(&mut planes, full, MAX_LEVEL);
        risen |= full;
    }
    for (cost, dense) in &optics.dense {
        if level > *cost {
            let cells = cells & dense[word] & below(now, &planes_of(level - cost));
            set(&mut planes, cells, level - cost);
            risen |= cells;
        }
    }
    (risen, planes)
}

/// The cells of a word that a neighbor of the level may have lit.
#[inline(always)]
fn may_be_lit_by(optics: &ChunkOptics, arrival: Arrival, word: usize, now: &Planes) -> u64 {
    let level = arrival.level;
    let mut lit = optics.open[word] & below(now, &planes_of(level));
    if arrival.is_from_sky {
        lit |= optics.free[word];
    }
    for (cost, cells) in optics.dense.iter().filter(|(cost, _)| *cost < level) {
        lit |= cells[word] & below(now, &planes_of(level - cost + 1));
    }
    lit
}
