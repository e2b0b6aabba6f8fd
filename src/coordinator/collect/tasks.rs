//! Ends the tasks of regions in the regionizer.

use crate::coordinator::mail::queue::MailQueue;
use crate::coordinator::regions::RegionSlot;
use crate::coordinator::schedule::deadlines::Running;
use crate::coordinator::surroundings::Surroundings;
use crate::coordinator::threads::exchange::Inbound;
use crate::coordinator::threads::regions::TaskDone;
use crate::region::{RegionId, RegionPart, RegionState};
use crate::simulation::{Inbox, Letter, Undeliverable};
use crate::space::DimensionId;
use bevy::prelude::*;
use rustc_hash::FxHashSet;
use std::iter;
use std::mem;
use std::time::Duration;

/// Ends the tasks that came back.
pub fn finish_tasks(mut inbound: ResMut<Inbound>, mut world: Surroundings) {
    world.finish_all(inbound.tasks.get());
    world.halt_ordered();
    world.deadlines.hand_over(&world.threads);
}

impl Surroundings<'_> {
    /// Ends tasks in a fixed order.
    pub fn finish_all(&mut self, tasks: &mut Vec<TaskDone>) {
        tasks.sort_unstable_by_key(|done| (done.dimension, done.region));
        tasks.drain(..).for_each(|done| self.finish(done));
    }

    pub fn finish(&mut self, done: TaskDone) {
        let TaskDone { dimension: id, region, took, outcome } = done;
        let Some(running) = self.deadlines.running.remove(&(id, region)) else { return };
        let Running { mut slot, is_tick, saves, parts: waiting, load, .. } = running;
        self.deadlines.load -= load;
        let mut left = FxHashSet::default();
        let parts = match outcome {
            Ok((worlds, outbox)) => {
                if is_tick {
                    self.note_tick(id, &mut slot, took);
                }
                if let Some(round) = saves {
                    self.saves.note_handed_out(id, region, round);
                }
                slot.parked.get().worlds = worlds;
                outbox.map_or_else(Vec::new, |outbox| {
                    left.extend(outbox.left.iter().map(|loaded| loaded.column.pos()));
                    slot.numbers = outbox.numbers;
                    self.route(id, region, outbox)
                })
            }
            Err(fault) => self.fall(id, region, &mut slot, &waiting, *fault),
        };
        self.hand_to_parts(id, parts);
        let parts = self.take_parts(id, waiting);
        for (region, mut slot) in iter::once((region, slot)).chain(parts) {
            let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
            let stand_ins = dimension.regions.waiting.get();
            if !stand_ins.is_empty()
                && let Some(waiting) = stand_ins.remove(&region)
            {
                slot.parked.get().inbox().append(waiting);
            }
            if !left.is_empty()
                && let Some(inbox) = &mut slot.parked.get().inbox
            {
                // Letters and entities for columns that the region evicted in the meantime follow these columns.
                let astray = inbox.split_off(|column| left.contains(&column));
                let refused = dimension.send_on(astray);
                self.publisher.refuse_all(dimension.time.real_now, refused);
            }
            self.end_tick(id, region, slot);
        }
    }

    fn note_tick(&mut self, id: DimensionId, slot: &mut RegionSlot, took: Duration) {
        let Some(dimension) = self.dimensions.open.get(&id) else { return };
        let now = dimension.time.real_now;
        slot.history.push(now, took);
        slot.history.refresh(now);
        self.publisher.totals.tick(now, took);
        let period = dimension.time.real_period(slot.control.ticks_per_second);
        self.deadlines.note_tick_share(slot.note_tick_share(took, period));
    }

    /// Hands each part of a split its share of the world.
    fn hand_to_parts(&mut self, id: DimensionId, parts: Vec<(RegionId, Inbox)>) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        for (part, inbox) in parts {
            match self.deadlines.running.get_mut(&(id, part)) {
                Some(running) => running.slot.parked.get().inbox().append(inbox),
                None => dimension.inbox(part).append(inbox),
            }
        }
    }

    /// Takes back the parts of a split, which waited with their region and have not run.
    fn take_parts(&mut self, id: DimensionId, parts: Vec<RegionId>) -> Vec<(RegionId, Box<RegionSlot>)> {
        let slot_of = |part| Some((part, self.deadlines.running.remove(&(id, part))?.slot));
        parts.into_iter().filter_map(slot_of).collect()
    }

    /// Gives a region back to the regionizer, plans its next tick, and begins a split.
    fn end_tick(&mut self, id: DimensionId, region: RegionId, mut slot: Box<RegionSlot>) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let may_have_letters = slot.parked.get().inbox.is_some() || !dimension.regions.waiting.get().is_empty();
        if may_have_letters && dimension.regions.regionizer.columns(region).next().is_none() {
            let letters = mem::take(&mut slot.parked.get().inbox().letters);
            // Letters to itself came back to it.
            let back = dimension.regions.waiting.get().remove(&region).map(|inbox| inbox.letters).unwrap_or_default();
            end_letters(id, letters, back, &mut self.post);
        }
        let split_off = dimension.end_task(region, slot);
        dimension.note_region_events(&mut self.deadlines, &mut self.saves, &self.directory, &mut self.publisher);
        if !split_off.is_empty() {
            return self.begin_split(id, region, split_off);
        }
        let is_waiting = dimension.regions.regionizer.state(region) == Some(RegionState::Transient);
        if let Some(slot) = dimension.regions.regionizer.data(region).filter(|_| !is_waiting) {
            self.deadlines.plan(slot.due, id, region);
        }
    }

    /// Begins a split. Until the worlds are apart, the region and its parts count as ticking, so they neither tick nor change.
    fn begin_split(&mut self, id: DimensionId, region: RegionId, split_off: Vec<RegionId>) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let Some(mut slot) = dimension.regions.regionizer.try_begin_tick(region) else { return };
        for part in &split_off {
            if let Some(slot) = dimension.regions.regionizer.try_begin_tick(*part) {
                self.deadlines.running.insert((id, *part), Running::waiting(slot));
            }
        }
        let parts = mem::take(&mut slot.parts);
        let mut running = Running { parts: split_off, ..Running::waiting(slot) };
        let parked = running.slot.parked.get();
        if parked.worlds.is_empty() {
            let inbox = parked.take_inbox();
            self.deadlines.running.insert((id, region), running);
            return self.split_inbox(id, region, inbox, parts);
        }
        self.deadlines.begin_split(dimension, region, running, parts, &mut self.saves);
    }

    /// Divides a region that never ticked and is only an inbox.
    fn split_inbox(&mut self, id: DimensionId, region: RegionId, mut inbox: Inbox, parts: Vec<RegionPart>) {
        for part in parts {
            let mut taken = inbox.split_off(|column| part.contains(column));
            taken.resources = inbox.split_resources(&part);
            if let Some(running) = self.deadlines.running.get_mut(&(id, part.id)) {
                running.slot.parked.get().inbox().append(taken);
            }
        }
        let Some(Running { mut slot, parts, .. }) = self.deadlines.running.remove(&(id, region)) else { return };
        slot.parked.get().inbox().append(inbox);
        let parts = self.take_parts(id, parts);
        for (region, slot) in iter::once((region, slot)).chain(parts) {
            self.end_tick(id, region, slot);
        }
    }
}

/// Returns or forwards letters to a region that ends with this tick.
fn end_letters(id: DimensionId, letters: Vec<Letter>, back: Vec<Letter>, post: &mut MailQueue) {
    for letter in letters {
        let reason = match (letter.column(), letter.entity()) {
            (_, Some(entity)) => Undeliverable::NoSuchEntity(entity),
            (Some((_, column)), _) => Undeliverable::Unloaded(column),
            (None, None) if letter.returned.is_some() => Undeliverable::DimensionNotOpen(id),
            // The letter was for all regions that exist.
            (None, None) => continue,
        };
        post.give_back(letter, reason);
    }
    back.into_iter().for_each(|letter| post.give_back(letter, Undeliverable::DimensionNotOpen(id)));
}
