//! Takes what came in: requests of the main world, ended tasks of regions.

use super::dimension::{Departed, Dimension, DimensionSpec, Dimensions, Holder, RegionSlot, Stage, Store};
use super::dispatch::{Clock, Deadlines, Running};
use super::events::{
    BlockRefused, DimensionFailed, DimensionOpened, RegionCreated, RegionDestroyed, RegionHalted, RegionMerged,
    RegionSplit, SaveFailed, SetBlock,
};
use super::exchange::{FromMain, Inbound};
use super::publish::Publisher;
use super::save::Saves;
use super::threads::{RegionJob, TaskDone, TaskPanic, Threads};
use super::{CoordinatorConfig, statistics::Totals};
use crate::region::{RegionEvent, RegionId, TickEnd};
use crate::simulation::{Assignment, BlockAccessError, BlockEdit, Inbox, Outbox, Part, Position, RegionInfo, Task};
use crate::space::{ColumnPos, DimensionId};
use bevy::ecs::system::SystemParam;
use bevy::prelude::*;
use rustc_hash::FxHashSet;
use std::mem;

/// What most of the coordinator's work needs at hand.
#[derive(SystemParam)]
pub(super) struct Desk<'w> {
    pub config: Res<'w, CoordinatorConfig>,
    pub threads: ResMut<'w, Threads>,
    pub store: Res<'w, Store>,
    pub dimensions: ResMut<'w, Dimensions>,
    pub inbound: ResMut<'w, Inbound>,
    pub clock: Res<'w, Clock>,
    pub deadlines: ResMut<'w, Deadlines>,
    pub saves: ResMut<'w, Saves>,
    pub publisher: ResMut<'w, Publisher>,
    pub totals: ResMut<'w, Totals>,
}

pub(super) fn collect(mut desk: Desk) {
    for event in desk.threads.events.try_iter() {
        desk.inbound.push(event);
    }
    desk.finish_tasks();
    desk.handle_requests();
}

impl Desk<'_> {
    pub fn handle_requests(&mut self) {
        for request in mem::take(self.inbound.main.get()) {
            self.handle(request);
        }
    }

    fn handle(&mut self, request: FromMain) {
        match request {
            FromMain::OpenDimension(spec) => self.open_dimension(spec),
            FromMain::MoveViewer { viewer, dimension, column, radius } => {
                let Some(&id) = self.dimensions.by_entity.get(&dimension) else { return };
                for (other, dimension) in &mut self.dimensions.open {
                    if *other != id {
                        dimension.release(Holder::Main(viewer));
                    }
                }
                if let Some(dimension) = self.dimensions.open.get_mut(&id) {
                    dimension.hold(Holder::Main(viewer), column, radius);
                }
            }
            FromMain::RemoveViewer(viewer) => {
                self.dimensions.open.values_mut().for_each(|dimension| dimension.release(Holder::Main(viewer)));
            }
            FromMain::Edit(request) => self.edit(request),
            FromMain::Run { dimension, block, run } => match self.dimensions.by_entity(dimension) {
                Some(dimension) => dimension.send_mail(block, run),
                None => warn!("code for block {block} was dropped: {dimension} is no open dimension"),
            },
            FromMain::Save(number) => self.saves.requested.push(number),
        }
    }

    fn edit(&mut self, request: SetBlock) {
        let SetBlock { dimension, position, block } = request;
        let column = position.column();
        let inbox = self.dimensions.by_entity(dimension).and_then(|dimension| {
            let owned = dimension.columns.get(&column) == Some(&Stage::Owned);
            let region = dimension.regionizer.region_at(column).filter(|_| owned)?;
            let halted = dimension.regionizer.data(region).is_some_and(|slot| slot.halted);
            (!halted).then(|| dimension.inbox(region))
        });
        match inbox {
            Some(inbox) => inbox.edits.push(BlockEdit { block: position, to: block }),
            None => {
                let error = BlockAccessError::OutsideRegion(position);
                self.publisher.event(BlockRefused { request, error });
            }
        }
    }

    fn open_dimension(&mut self, spec: DimensionSpec) {
        let entity = spec.entity;
        let opened = match self.dimensions.open.values().any(|open| open.spec.name == spec.name) {
            true => Err(super::DimensionError::AlreadyOpen { name: spec.name }),
            false => Dimension::open(spec, &self.store.0, &self.config.regionizer),
        };
        match opened {
            Ok((mut dimension, viewers)) => {
                self.publisher.event(DimensionOpened {
                    entity,
                    dimension: dimension.id,
                    stored_columns: dimension.stored.completed_count(),
                    viewers: viewers.len(),
                });
                // They held their ground when they were saved. Loading it brings them back.
                for viewer in viewers {
                    let radius = viewer.viewer_radius.unwrap_or_default();
                    dimension.hold(Holder::Region(viewer.id), viewer.block.column(), radius);
                }
                self.dimensions.by_entity.insert(entity, dimension.id);
                self.dimensions.open.insert(dimension.id, dimension);
            }
            Err(error) => {
                error!("{error}");
                self.publisher.event(DimensionFailed { entity, error: error.into() });
            }
        }
    }

    /// Ends the tasks that came back, in a fixed order.
    pub fn finish_tasks(&mut self) {
        let mut tasks = mem::take(self.inbound.tasks.get());
        tasks.sort_by_key(|done| (done.dimension, done.region));
        for done in tasks {
            self.finish_task(done);
        }
    }

    fn finish_task(&mut self, done: TaskDone) {
        let TaskDone { dimension: id, region, took, outcome } = done;
        self.threads.job_finished();
        let Some(running) = self.deadlines.running.remove(&(id, region)) else { return };
        let mut slot = running.slot;
        let now = self.clock.now;
        let mut parts = Vec::new();
        let mut left = FxHashSet::default();
        match outcome {
            Ok((world, outbox)) => {
                left.extend(outbox.left.iter().map(|loaded| loaded.column.pos()));
                if running.is_tick {
                    slot.history.push(now, took);
                    self.totals.tick(now, took);
                }
                if let Some(round) = running.saves {
                    self.saves.answered(id, region, round);
                }
                slot.entities = outbox.entities;
                slot.columns = world.columns();
                slot.viewers = outbox.viewers.len();
                slot.parked.get().world = Some(world);
                parts = self.route(id, outbox);
            }
            Err(TaskPanic { reason, payload }) => {
                self.inbound.panic.get().get_or_insert(payload);
                self.halt(id, region, reason);
                slot.halted = true;
                // Read again only when what left the region before is durable: it must not come back a second time.
                let until = self.saves.durable_with();
                let mut lost = self.columns_of(id, region);
                if let Some(dimension) = self.dimensions.open.get_mut(&id)
                    && let Some(waiting) = dimension.waiting.get().get(&region)
                {
                    lost.retain(|column| waiting.columns.iter().all(|loaded| loaded.column.pos() != *column));
                }
                slot.lost.extend(lost.into_iter().map(|column| (column, until)));
                // In the middle of a split: the parts go on with what the store has.
                for part in &running.parts {
                    let columns = self.columns_of(id, *part);
                    if let Some(dimension) = self.dimensions.open.get_mut(&id) {
                        dimension.reload.extend(columns.into_iter().map(|column| (column, until)));
                    }
                }
            }
        }
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        for (part, inbox) in parts {
            match self.deadlines.running.get_mut(&(id, part)) {
                Some(running) => running.slot.parked.get().inbox.append(inbox),
                None => dimension.inbox(part).append(inbox),
            }
        }
        let ended = [(region, slot)].into_iter().chain(running.parts.into_iter().filter_map(|part| {
            // The parts of a split waited with it; nothing of theirs has run.
            Some((part, self.deadlines.running.remove(&(id, part))?.slot))
        }));
        for (region, mut slot) in ended.collect::<Vec<_>>() {
            let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
            let inbox = &mut slot.parked.get().inbox;
            if let Some(waiting) = dimension.waiting.get().remove(&region) {
                inbox.append(waiting);
            }
            // What was sent to columns that the region gave up meanwhile goes where they go.
            let astray = inbox.split_off(|column| left.contains(&column));
            for (block, error) in dimension.send_on(astray) {
                let entity = dimension.spec.entity;
                self.publisher.refused(entity, block, error);
            }
            self.end_tick(id, region, slot);
        }
    }

    fn halt(&mut self, id: DimensionId, region: RegionId, reason: String) {
        let place = self.columns_of(id, region).first().map(|column| format!(" near column {column}"));
        error!("{region} of {id}{} halted: {reason}", place.unwrap_or_default());
        if self.saves.halted(id, region) {
            let error = format!("{region} halted: what it changed since its last save is lost");
            self.publisher.event(SaveFailed { error });
        }
        self.publisher.event(RegionHalted { dimension: id, region, reason });
    }

    fn columns_of(&self, id: DimensionId, region: RegionId) -> Vec<ColumnPos> {
        let Some(dimension) = self.dimensions.open.get(&id) else { return Vec::new() };
        let loaded = |column: &ColumnPos| matches!(dimension.columns.get(column), Some(Stage::Owned | Stage::Leaving));
        let mut columns: Vec<_> = dimension.regionizer.columns(region).filter(loaded).collect();
        columns.sort_unstable();
        columns
    }

    /// Gives a region back to the regionizer, plans its next tick, and begins to take apart what split.
    fn end_tick(&mut self, id: DimensionId, region: RegionId, slot: RegionSlot) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let end = match dimension.regionizer.end_tick(region, slot) {
            Ok(end) => end,
            Err(error) => {
                // Only what was begun is ended, so this is a defect of ours.
                error!("{id}, {region}: {error}");
                return;
            }
        };
        self.note_region_events(id);
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let TickEnd::Ready { split_off: split } = end else { return };
        if split.is_empty() {
            if let Some(slot) = dimension.regionizer.data(region) {
                self.deadlines.plan(slot.due, id, region);
            }
            return;
        }
        // Neither the region nor its parts tick or change before their worlds are apart: for the regionizer they tick.
        let Some(mut slot) = dimension.regionizer.try_begin_tick(region) else { return };
        let parts = mem::take(&mut slot.parts);
        for part in &split {
            if let Some(slot) = dimension.regionizer.try_begin_tick(*part) {
                self.deadlines.running.insert((id, *part), Running::waiting(slot));
            }
        }
        let shift = self.config.regionizer.section_shift;
        let mut running = Running::waiting(slot);
        running.parts = split;
        let parked = mem::take(running.slot.parked.get());
        let info = region_info(dimension, region);
        self.deadlines.running.insert((id, region), running);
        if parked.world.is_none() {
            self.split_inbox(id, region, parked.inbox, parts, shift);
            return;
        }
        let assignment = Assignment {
            info,
            world: parked.world,
            inbox: parked.inbox,
            task: Task::Split { parts, section_shift: shift },
            number: self.deadlines.next_assignment(),
        };
        self.threads.run_region(RegionJob { dimension: id, region, assignment });
    }

    /// A region that never ticked is only an inbox: it is divided here.
    fn split_inbox(&mut self, id: DimensionId, region: RegionId, mut inbox: Inbox, parts: Vec<Part>, shift: u32) {
        for part in parts {
            let sections: FxHashSet<_> = part.sections.into_iter().collect();
            let within = |column: ColumnPos| sections.contains(&column.section(shift));
            let taken = inbox.split_off(within);
            let parent = self.deadlines.running.get_mut(&(id, region));
            let lost = parent.map(|parent| parent.slot.lost.extract_if(.., |(column, _)| within(*column)).collect());
            if let Some(running) = self.deadlines.running.get_mut(&(id, part.region)) {
                running.slot.parked.get().inbox.append(taken);
                running.slot.lost = lost.unwrap_or_default();
            }
        }
        let Some(running) = self.deadlines.running.remove(&(id, region)) else { return };
        let mut ended = vec![(region, running.slot)];
        ended[0].1.parked.get().inbox.append(inbox);
        for part in running.parts {
            ended.extend(self.deadlines.running.remove(&(id, part)).map(|running| (part, running.slot)));
        }
        for (region, slot) in ended {
            self.end_tick(id, region, slot);
        }
    }

    /// Tells the main world what the regionizer did, and plans the first ticks of new regions.
    pub fn note_region_events(&mut self, id: DimensionId) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        for event in dimension.regionizer.drain_events() {
            match event {
                RegionEvent::Created(region) => {
                    self.publisher.event(RegionCreated { dimension: id, region });
                }
                RegionEvent::Merged { from, into } => {
                    self.totals.merges += 1;
                    self.saves.merged(id, from, into);
                    self.publisher.event(RegionMerged { dimension: id, from, into });
                    let Some(slot) = dimension.regionizer.data_mut(into) else { continue };
                    self.deadlines.plan(slot.due, id, into);
                    if !slot.halted {
                        // A live region took over from a halted one.
                        dimension.reload.extend(mem::take(&mut slot.lost));
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

    /// Sends on what a region put in its outbox. Gives back the parts of a split.
    pub fn route(&mut self, id: DimensionId, outbox: Outbox) -> Vec<(RegionId, Inbox)> {
        let Outbox {
            changed,
            travellers,
            left,
            kept,
            save,
            mirrors,
            viewers,
            viewers_gone,
            refused,
            appeared: _,
            gone: _,
            entities: _,
            parts,
        } = outbox;
        self.publisher.chunks(id, changed);
        self.publisher.mirrors(mirrors);
        self.saves.pending.merge(save);
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return parts };
        for (edit, error) in refused {
            self.publisher.refused(dimension.spec.entity, edit, error);
        }
        for viewer in viewers_gone {
            dimension.release(Holder::Region(viewer));
        }
        for viewer in viewers {
            dimension.hold(Holder::Region(viewer.id), viewer.position.column(), viewer.radius);
        }
        kept.into_iter().for_each(|column| dimension.keep(column));
        let until = self.saves.durable_with();
        for loaded in left {
            let column = loaded.column.pos();
            dimension.forget(column);
            if !self.saves.is_durable(until) {
                dimension.departed.get().insert(column, Departed { loaded, until });
            }
            self.publisher.unloaded(id, column);
        }
        for traveller in travellers {
            let Position { dimension: to, .. } = traveller.position;
            if let Some(record) = &traveller.record {
                self.saves.pending.entities.insert(record.id, Some(record.clone()));
            }
            if to != id
                && let Some(dimension) = self.dimensions.open.get_mut(&id)
            {
                traveller.viewers.iter().for_each(|(viewer, _)| dimension.release(Holder::Region(*viewer)));
            }
            match self.dimensions.open.get_mut(&to) {
                Some(dimension) => dimension.route(traveller),
                None => warn!("entity {} went to {to}, which is not open: it waits in the store", traveller.id),
            }
        }
        parts
    }
}

/// What a region world is told about itself.
pub(super) fn region_info(dimension: &Dimension, region: RegionId) -> RegionInfo {
    RegionInfo { region, dimension: dimension.id, heights: dimension.spec.heights.clone(), ticks: 0 }
}
