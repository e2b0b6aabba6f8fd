//! What the end of a region's task means for the regionizer.

use crate::coordinator::clocks::control::{ControlRegion, RegionOrder};
use crate::coordinator::desk::Desk;
use crate::coordinator::dispatch::Running;
use crate::coordinator::events::{RegionCreated, RegionDestroyed, RegionMerged, RegionSplit};
use crate::coordinator::region_slot::RegionSlot;
use crate::coordinator::threads::TaskDone;
use crate::region::{RegionEvent, RegionId, RegionPart, RegionState};
use crate::simulation::{Inbox, Letter, RegionShare, Task, Undeliverable};
use crate::space::{ColumnPos, DimensionId};
use bevy::prelude::*;
use rustc_hash::FxHashSet;
use std::mem;
use std::time::Duration;

impl Desk<'_> {
    /// Ends the tasks that came back, in a fixed order.
    pub fn finish_tasks(&mut self) {
        let mut tasks = mem::take(self.inbound.tasks.get());
        tasks.sort_by_key(|done| (done.dimension, done.region));
        for done in tasks {
            self.finish_task(done);
        }
    }

    pub fn finish_task(&mut self, done: TaskDone) {
        let TaskDone { dimension: id, region, took, outcome } = done;
        let Some(running) = self.deadlines.running.remove(&(id, region)) else { return };
        let Running { mut slot, is_tick, saves, parts: waiting, load, .. } = running;
        self.deadlines.load -= load;
        let mut left = FxHashSet::default();
        let parts = match outcome {
            Ok((world, outbox)) => {
                left.extend(outbox.left.iter().map(|loaded| loaded.column.pos()));
                if is_tick {
                    self.note_tick(id, &mut slot, took);
                }
                if let Some(round) = saves {
                    self.saves.answered(id, region, round);
                }
                slot.entities = outbox.entities;
                slot.columns = outbox.columns;
                slot.viewers = outbox.viewers.len();
                slot.parked.get().world = world;
                self.route(id, region, outbox)
            }
            Err(fault) => self.fall(id, region, &mut slot, &waiting, fault),
        };
        self.hand_to_parts(id, parts);
        for (region, mut slot) in self.with_parts(id, region, slot, waiting) {
            let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
            let inbox = &mut slot.parked.get().inbox;
            if let Some(waiting) = dimension.waiting.get().remove(&region) {
                inbox.append(waiting);
            }
            // What was sent to columns that the region gave up meanwhile goes where they go.
            let astray = inbox.split_off(|column| left.contains(&column));
            self.publisher.refuse_all(self.clock.now, dimension.send_on(astray));
            self.end_tick(id, region, slot);
        }
    }

    fn note_tick(&mut self, id: DimensionId, slot: &mut RegionSlot, took: Duration) {
        let now = self.clock.now;
        slot.history.push(now, took);
        slot.history.refresh(now);
        self.totals.tick(now, took);
        if let Some(dimension) = self.dimensions.open.get(&id) {
            let period = dimension.time.real_period(slot.control.ticks_per_second);
            self.limit.note_tick(slot.note_tick_share(took, period));
        }
    }

    fn hand_to_parts(&mut self, id: DimensionId, parts: Vec<(RegionId, Inbox)>) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        for (part, inbox) in parts {
            match self.deadlines.running.get_mut(&(id, part)) {
                Some(running) => running.slot.parked.get().inbox.append(inbox),
                None => dimension.inbox(part).append(inbox),
            }
        }
    }

    /// A region that came back, and the parts of its split, which waited with it: nothing of theirs has run.
    fn with_parts(
        &mut self,
        id: DimensionId,
        region: RegionId,
        slot: RegionSlot,
        parts: Vec<RegionId>,
    ) -> Vec<(RegionId, RegionSlot)> {
        let slot_of = |part| Some((part, self.deadlines.running.remove(&(id, part))?.slot));
        [(region, slot)].into_iter().chain(parts.into_iter().filter_map(slot_of)).collect()
    }

    pub fn columns_of(&self, id: DimensionId, region: RegionId) -> Vec<ColumnPos> {
        let Some(dimension) = self.dimensions.open.get(&id) else { return Vec::new() };
        let columns = dimension.regionizer.columns(region);
        let mut columns: Vec<_> = columns.filter(|column| dimension.columns.is_in_region(*column)).collect();
        columns.sort_unstable();
        columns
    }

    /// Gives a region back to the regionizer, and halts it if that was ordered meanwhile.
    pub fn end_tick(&mut self, id: DimensionId, region: RegionId, mut slot: RegionSlot) {
        let is_to_halt = mem::take(&mut slot.is_to_halt);
        self.give_back(id, region, slot);
        if is_to_halt && let Some(dimension) = self.dimensions.open.get(&id) {
            let request = ControlRegion { dimension: id, region, order: RegionOrder::Halt };
            let successor = dimension.successor(region);
            self.halt_by_order(request, successor);
        }
    }

    /// Plans the region's next tick, and begins to take apart what split.
    fn give_back(&mut self, id: DimensionId, region: RegionId, mut slot: RegionSlot) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        if dimension.regionizer.columns(region).next().is_none() {
            let letters = mem::take(&mut slot.parked.get().inbox.letters);
            self.end_letters(id, region, letters);
        }
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let split_off = match dimension.regionizer.end_tick(region, slot) {
            Ok(split_off) => split_off,
            Err(error) => {
                // Only what was begun is ended, so this is a defect of ours.
                error!("{id}, {region}: {error}");
                return;
            }
        };
        self.note_region_events(id);
        if !split_off.is_empty() {
            return self.begin_split(id, region, split_off);
        }
        let open = self.dimensions.open.get(&id);
        let ready = open.filter(|open| open.regionizer.state(region) == Some(RegionState::Ready));
        if let Some(slot) = ready.and_then(|open| open.regionizer.data(region)) {
            self.deadlines.plan(slot.due, id, region);
        }
    }

    /// Neither the region nor its parts tick or change before their worlds are apart: for the regionizer they tick.
    fn begin_split(&mut self, id: DimensionId, region: RegionId, split_off: Vec<RegionId>) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let Some(mut slot) = dimension.regionizer.try_begin_tick(region) else { return };
        for part in &split_off {
            if let Some(slot) = dimension.regionizer.try_begin_tick(*part) {
                self.deadlines.running.insert((id, *part), Running::waiting(slot));
            }
        }
        let parts = mem::take(&mut slot.parts);
        let mut running = Running { parts: split_off, ..Running::waiting(slot) };
        let parked = running.slot.parked.get();
        if parked.world.is_none() {
            let inbox = mem::take(&mut parked.inbox);
            self.deadlines.running.insert((id, region), running);
            return self.split_inbox(id, region, inbox, parts);
        }
        // Which letters go with which part is known when it is known which entities do.
        let letters = mem::take(&mut parked.inbox.letters);
        dimension.inbox(region).letters.extend(letters);
        if let Some(task) = self.begin_task(id, region, running, Task::Split { parts }) {
            self.threads.regions.run([task]);
        }
    }

    /// A region ends with this tick, and whoever wrote to it must hear of that.
    fn end_letters(&mut self, id: DimensionId, region: RegionId, letters: Vec<Letter>) {
        for letter in letters {
            let reason = match (letter.column(), letter.entity()) {
                (_, Some(entity)) => Undeliverable::NoSuchEntity(entity),
                (Some((_, column)), _) => Undeliverable::Unloaded(column),
                (None, None) if letter.is_returned() => Undeliverable::DimensionNotOpen(id),
                // It was for all regions that there are.
                (None, None) => continue,
            };
            self.undeliverable(letter, reason);
        }
        // What it wrote to itself came back to it.
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let back = dimension.waiting.get().remove(&region).map(|inbox| inbox.letters).unwrap_or_default();
        for letter in back {
            self.undeliverable(letter, Undeliverable::DimensionNotOpen(id));
        }
    }

    /// A region that never ticked is only an inbox: it is divided here.
    fn split_inbox(&mut self, id: DimensionId, region: RegionId, mut inbox: Inbox, parts: Vec<RegionPart>) {
        for part in parts {
            let share = RegionShare::new(&part, self.config.regionizer.section_shift);
            let within = |column: ColumnPos| share.contains(column);
            let mut taken = inbox.split_off(within);
            taken.resources = inbox.split_resources(&share);
            if let Some(running) = self.deadlines.running.get_mut(&(id, part.id)) {
                running.slot.parked.get().inbox.append(taken);
            }
        }
        let Some(Running { mut slot, parts, .. }) = self.deadlines.running.remove(&(id, region)) else { return };
        slot.parked.get().inbox.append(inbox);
        for (region, slot) in self.with_parts(id, region, slot, parts) {
            self.end_tick(id, region, slot);
        }
    }

    /// Tells the main world what the regionizer did, and plans the first ticks of new regions.
    pub fn note_region_events(&mut self, id: DimensionId) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let events = dimension.regionizer.drain_events();
        if !events.is_empty() {
            dimension.tell_owners();
        }
        for event in events {
            match event {
                RegionEvent::Created(region) => {
                    let steps = dimension.time.steps;
                    if let Some(slot) = dimension.regionizer.data_mut(region) {
                        slot.made_steps.get_or_insert(steps);
                    }
                    self.publisher.event(RegionCreated { dimension: id, region });
                }
                RegionEvent::Merged { from, into } => {
                    self.totals.merges += 1;
                    dimension.note_merge(from, into);
                    self.saves.merged(id, from, into);
                    self.publisher.event(RegionMerged { dimension: id, from, into });
                    let Some(slot) = dimension.regionizer.data_mut(into) else { continue };
                    // It does not wait out the period of a slower one.
                    slot.hasten(&dimension.time, self.clock.now);
                    self.deadlines.plan(slot.due, id, into);
                    if slot.halted.is_none() {
                        // It may have taken over from a halted one.
                        dimension.revive(into, |id| self.directory.knows(id));
                    }
                }
                RegionEvent::Split { from, into } => {
                    self.totals.splits += 1;
                    self.saves.split(id, from, &into);
                    self.publisher.event(RegionSplit { dimension: id, from, into });
                }
                RegionEvent::Destroyed(region) => {
                    self.saves.gone(id, region);
                    self.publisher.event(RegionDestroyed { dimension: id, region });
                }
                RegionEvent::Ready(region) => {
                    if let Some(slot) = dimension.regionizer.data_mut(region) {
                        slot.due = slot.due.max(self.clock.now);
                        self.deadlines.plan(slot.due, id, region);
                    }
                }
                RegionEvent::Transient(_) => {}
            }
        }
    }
}
