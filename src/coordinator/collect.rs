//! Takes what came in: requests of the main world, ended tasks of regions.

use super::clocks::clock::Clock;
use super::clocks::coupling::Couplings;
use super::dimension::{Dimension, DimensionError, DimensionSpec, Dimensions, Opening, Stage, Store};
use super::dispatch::{Deadlines, Running};
use super::events::{
    BlockRefused, DimensionFailed, DimensionOpened, RegionCreated, RegionDestroyed, RegionMerged, RegionSplit,
};
use super::exchange::{FromMain, Inbound};
use super::far_view::FarViews;
use super::publish::Publisher;
use super::region_slot::RegionSlot;
use super::saving::backup::SaveRequest;
use super::saving::save::Saves;
use super::snapshots::Sightings;
use super::streaming::holders::Holder;
use super::streaming::pacing::InFlightLimit;
use super::threads::{TaskDone, Threads};
use super::travel::players::Players;
use super::travel::post::Directory;
use super::{CoordinatorConfig, statistics::Totals};
use crate::region::{RegionEvent, RegionId, RegionPart, TickEnd};
use crate::simulation::{
    BlockAccessError, Departed, FinishedWork, Inbox, Letter, Outbox, RegionShare, SetBlock, Task, Undeliverable,
    ViewerRadii,
};
use crate::space::{ColumnPos, DimensionId};
use crate::storage;
use crate::storage::ChunkGroup;
use bevy::ecs::system::SystemParam;
use bevy::prelude::*;
use rustc_hash::FxHashSet;
use std::mem;

/// Edits that wait for one region at most. In a tick it makes more than are sent in a frame; one that does not tick must
/// not gather them without end.
const MOST_EDITS: usize = 1 << 18;

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
    pub couplings: ResMut<'w, Couplings>,
    pub directory: ResMut<'w, Directory>,
    pub players: ResMut<'w, Players>,
    pub far_views: ResMut<'w, FarViews>,
    pub limit: ResMut<'w, InFlightLimit>,
    pub sightings: ResMut<'w, Sightings>,
}

pub(super) fn collect(mut desk: Desk) {
    for event in desk.threads.events.try_iter() {
        desk.inbound.push(event);
    }
    desk.finish_tasks();
    desk.end_rebuilds();
    desk.handle_requests();
}

impl Desk<'_> {
    pub fn handle_requests(&mut self) {
        for request in mem::take(&mut self.inbound.main) {
            self.handle(request);
        }
        mem::take(&mut self.inbound.news).into_iter().for_each(|event| self.publisher.event(event));
    }

    fn handle(&mut self, request: FromMain) {
        match request {
            FromMain::OpenDimension(spec) => self.open_dimension(spec),
            FromMain::MoveViewer { viewer, dimension, chunk, radii } => {
                let Some(&id) = self.dimensions.by_entity.get(&dimension) else { return };
                if self.dimensions.open.get(&id).is_none_or(Dimension::is_closing) {
                    return;
                }
                for (other, dimension) in &mut self.dimensions.open {
                    if *other != id {
                        dimension.release(Holder::Main(viewer));
                    }
                }
                if let Some(dimension) = self.dimensions.open.get_mut(&id) {
                    dimension.hold(Holder::Main(viewer), chunk, radii);
                }
            }
            FromMain::RemoveViewer(viewer) => {
                self.dimensions.open.values_mut().for_each(|dimension| dimension.release(Holder::Main(viewer)));
            }
            FromMain::Edit(request) => self.edit(request),
            FromMain::Post(letter) => self.post(letter),
            FromMain::PostToPlace { dimension, block, letter } => self.post_to_place(dimension, block, letter),
            FromMain::SetClock { dimension, clock } => self.set_clock(dimension, clock),
            FromMain::SetGeneration { dimension, generation } => self.set_generation(dimension, generation),
            FromMain::SetPacing(pacing) => self.limit.settings = pacing,
            FromMain::Retry(retry) => self.retry_columns(retry),
            FromMain::Step(step) => self.step(step),
            FromMain::Control(control) => self.control(control),
            FromMain::Couple(entity, coupling) => drop(self.couplings.places.insert(entity, coupling)),
            FromMain::Uncouple(entity) => drop(self.couplings.places.remove(&entity)),
            FromMain::StartPregeneration { entity, dimension, area, is_paused } => {
                self.start_pregeneration(entity, dimension, area, is_paused);
            }
            FromMain::AdoptPregeneration { entity, dimension, number } => {
                self.adopt_pregeneration(entity, dimension, number);
            }
            FromMain::ControlPregeneration { entity, order } => self.control_pregeneration(entity, order),
            FromMain::CloseDimension { dimension, remove } => self.close_dimension(dimension, remove),
            FromMain::LogIn { name, first_place } => self.log_in(name, first_place),
            FromMain::LogOut { name } => self.log_out(&name),
            FromMain::Save(number) => self.saves.requested.push(SaveRequest::Message(number)),
            FromMain::BackUp(backup) => self.saves.requested.push(SaveRequest::Backup(backup.into())),
            FromMain::AskOpacity(ask, loaded) => self.ask_opacity(ask, loaded),
            FromMain::AskChunks(ask, published) => self.ask_chunks(ask, published),
            FromMain::SetFarView { listener, life, wish } => {
                self.far_views.set(listener, life, wish, &mut self.dimensions, self.clock.now);
            }
            FromMain::RemoveFarView(listener) => self.far_views.remove(listener, &mut self.dimensions),
            FromMain::FarViewTaken { listener, life, updates } => self.far_views.taken(listener, life, updates),
        }
    }

    fn edit(&mut self, request: SetBlock) {
        let SetBlock { dimension, position, .. } = request;
        let column = position.column();
        let inbox = self.dimensions.by_entity(dimension).and_then(|dimension| {
            let owned = dimension.columns.get(&column) == Some(&Stage::Owned);
            let region = dimension.regionizer.region_at(column).filter(|_| owned)?;
            let halted = dimension.regionizer.data(region).is_some_and(|slot| slot.halted.is_some());
            (!halted).then(|| dimension.inbox(region))
        });
        let error = match inbox {
            Some(inbox) if inbox.edits.len() < MOST_EDITS => return inbox.edits.push(request),
            Some(_) => BlockAccessError::TooManyEdits(position),
            None => BlockAccessError::OutsideRegion(position),
        };
        self.publisher.event(BlockRefused { request, error });
    }

    pub fn open_dimension(&mut self, spec: DimensionSpec) {
        let same_name = self.dimensions.open.values().find(|open| open.spec.name == spec.name);
        if same_name.is_some_and(Dimension::is_closing) || self.dimensions.is_busy(&spec.name) {
            self.dimensions.reopen.push(spec);
            return;
        }
        let opened = match same_name.is_some() {
            true => Err(DimensionError::AlreadyOpen { name: spec.name.clone() }),
            false => Dimension::open(spec.clone(), &self.store.0, &self.config, self.threads.blocks()),
        };
        match opened {
            Err(DimensionError::Store(storage::StoredDimensionError::BeingRemoved { .. })) => {
                // The app ended in the middle of it.
                self.remove_dimension(spec.entity, spec.name.clone());
                self.dimensions.reopen.push(spec);
            }
            Ok(Opening::Lost(id)) => self.rebuild(id, spec),
            // What it opens with would lack whoever went there and is not stored yet.
            Ok(Opening::Open(dimension, _)) if self.saves.has_unwritten_entities(dimension.id) => {
                self.dimensions.late.push((spec, self.saves.stored_with()));
                self.saves.request_commit(self.clock.now);
            }
            Ok(Opening::Open(dimension, viewers)) => self.begin_dimension(*dimension, &viewers),
            Err(error) => self.fail_dimension(spec.entity, error),
        }
    }

    /// A dimension that was opened is there from now on.
    fn begin_dimension(&mut self, mut dimension: Dimension, viewers: &[storage::EntityRecord]) {
        let entity = dimension.spec.entity;
        self.publisher.event(DimensionOpened {
            entity,
            dimension: dimension.id,
            stored_columns: dimension.stored.completed_count(),
            viewers: viewers.iter().map(|record| record.viewers().count()).sum(),
        });
        // They held their ground when they were saved. Loading it brings them back.
        for (viewer, block, radii) in viewers.iter().flat_map(storage::EntityRecord::viewers) {
            dimension.hold(Holder::Region(viewer), block.chunk(), ViewerRadii::from(radii));
        }
        self.forget_damaged_pregenerations(&mut dimension);
        self.dimensions.by_entity.insert(entity, dimension.id);
        self.dimensions.open.insert(dimension.id, dimension);
    }

    /// A dimension cannot be opened.
    pub fn fail_dimension(&mut self, entity: Entity, error: DimensionError) {
        error!("{error}");
        self.publisher.event(DimensionFailed { entity, error });
    }

    /// Ends the tasks that came back, in a fixed order.
    pub fn finish_tasks(&mut self) {
        let mut tasks = mem::take(self.inbound.tasks.get());
        self.threads.tasks_finished(tasks.len());
        tasks.sort_by_key(|done| (done.dimension, done.region));
        for done in tasks {
            self.finish_task(done);
        }
    }

    pub fn finish_task(&mut self, done: TaskDone) {
        let TaskDone { dimension: id, region, took, outcome } = done;
        let Some(running) = self.deadlines.running.remove(&(id, region)) else { return };
        self.deadlines.load -= running.load;
        let mut slot = running.slot;
        let now = self.clock.now;
        let parts;
        let mut left = FxHashSet::default();
        match outcome {
            Ok((world, outbox)) => {
                left.extend(outbox.left.iter().map(|loaded| loaded.column.pos()));
                if running.is_tick {
                    slot.history.push(now, took);
                    slot.history.refresh(now);
                    self.totals.tick(now, took);
                    if let Some(dimension) = self.dimensions.open.get(&id) {
                        let period = dimension.time.real_period(slot.control.ticks_per_second);
                        self.limit.note_tick(slot.note_tick_share(took, period));
                    }
                }
                if let Some(round) = running.saves {
                    self.saves.answered(id, region, round);
                }
                slot.entities = outbox.entities;
                slot.columns = outbox.columns;
                slot.viewers = outbox.viewers.len();
                slot.parked.get().world = world;
                parts = self.route(id, region, outbox);
            }
            Err(fault) => parts = self.fall(id, region, &mut slot, &running.parts, fault),
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
            self.publisher.refuse(dimension.send_on(astray));
            self.end_tick(id, region, slot);
        }
    }

    pub fn columns_of(&self, id: DimensionId, region: RegionId) -> Vec<ColumnPos> {
        let Some(dimension) = self.dimensions.open.get(&id) else { return Vec::new() };
        let loaded = |column: &ColumnPos| matches!(dimension.columns.get(column), Some(Stage::Owned | Stage::Leaving));
        let mut columns: Vec<_> = dimension.regionizer.columns(region).filter(loaded).collect();
        columns.sort_unstable();
        columns
    }

    /// Gives a region back to the regionizer, and halts it if that was ordered meanwhile.
    pub fn end_tick(&mut self, id: DimensionId, region: RegionId, mut slot: RegionSlot) {
        let is_to_halt = mem::take(&mut slot.is_to_halt);
        self.give_back(id, region, slot);
        if is_to_halt && let Some(dimension) = self.dimensions.open.get(&id) {
            let region = dimension.successor(region);
            self.halt_by_order(id, region);
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
        let mut running = Running::waiting(slot);
        running.parts = split;
        if running.slot.parked.get().world.is_none() {
            let inbox = mem::take(&mut running.slot.parked.get().inbox);
            self.deadlines.running.insert((id, region), running);
            self.split_inbox(id, region, inbox, parts);
            return;
        }
        // Which letters go with which part is known when it is known which entities do.
        let letters = mem::take(&mut running.slot.parked.get().inbox.letters);
        dimension.inbox(region).letters.extend(letters);
        if let Some(task) = self.begin_task(id, region, running, Task::Split { parts }) {
            self.threads.run_regions([task]);
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
            let parent = self.deadlines.running.get_mut(&(id, region));
            let lost = parent.map(|parent| parent.slot.lost.extract_if(.., |(column, _)| within(*column)).collect());
            if let Some(running) = self.deadlines.running.get_mut(&(id, part.id)) {
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
                    if slot.halted.is_none() && !slot.lost.is_empty() {
                        // A live region took over from a halted one.
                        let revived = slot.revive(|id| self.directory.knows(id));
                        dimension.read_again(revived);
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
    pub fn route(&mut self, id: DimensionId, region: RegionId, outbox: Box<Outbox>) -> Vec<(RegionId, Inbox)> {
        let Outbox {
            changed,
            travellers,
            left,
            kept,
            cut,
            save,
            mirrors,
            viewers,
            viewers_gone,
            refused,
            columns: _,
            entities: _,
            fetched,
            letters,
            undelivered,
            appeared,
            gone,
            parts,
            worked,
        } = *outbox;
        self.directory.note_region(id, region, &appeared, &gone);
        // Whoever hears of it knows by then who is there no more.
        worked.into_iter().for_each(FinishedWork::tell);
        // Before what was changed in them since.
        self.take_fetched(id, fetched);
        self.publisher.chunks(id, changed);
        self.publisher.mirrors(mirrors);
        for (dimension, column) in save.summaries.keys() {
            if let Some(dimension) = self.dimensions.open.get_mut(dimension) {
                self.far_views.edited(dimension, *column);
            }
        }
        self.saves.pending.merge(save);
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return parts };
        for (request, error) in refused {
            self.publisher.event(BlockRefused { request, error });
        }
        for viewer in viewers_gone {
            dimension.release(Holder::Region(viewer));
        }
        let viewers = if dimension.is_closing() { Vec::new() } else { viewers };
        for viewer in viewers {
            dimension.hold(Holder::Region(viewer.id), viewer.position.block.chunk(), viewer.radii);
        }
        kept.into_iter().for_each(|column| dimension.keep(column));
        self.take_cut(id, cut);
        let until = self.saves.stored_with();
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return parts };
        for loaded in left {
            loaded.entities.iter().for_each(|entity| self.sightings.note(entity));
            let column = loaded.column.pos();
            let chunks = loaded.column.chunks().map(|(height, _)| column.chunk(height));
            self.store.0.note_accesses(chunks.map(|chunk| ChunkGroup::of(id, chunk)));
            dimension.forget(column, &mut self.publisher);
            if !self.saves.is_stored(until) {
                dimension.departed().insert(Departed { loaded, until });
            }
        }
        dimension.note_absorbed(region);
        let mut departed = Vec::new();
        for traveller in travellers.iter().chain(parts.iter().flat_map(|(_, inbox)| &inbox.travellers)) {
            self.directory.note_journey(traveller);
            departed.extend(&traveller.ids);
        }
        for mut traveller in travellers {
            let to = traveller.position.dimension;
            if let Some(record) = traveller.record.take() {
                self.sightings.note(&record);
                self.saves.pending.entities.insert(record.id, Some(record));
            }
            if self.dimensions.removed.contains(&to) {
                // Whoever is in a dimension that is removed goes with it.
                self.saves.pending.entities.extend(traveller.ids.iter().map(|id| (*id, None)));
            }
            if to != id
                && let Some(dimension) = self.dimensions.open.get_mut(&id)
            {
                traveller.viewers.iter().for_each(|(viewer, _)| dimension.release(Holder::Region(*viewer)));
            }
            match self.dimensions.open.get_mut(&to) {
                Some(dimension) if !dimension.is_closing() => dimension.send_traveller(traveller),
                not_open => {
                    if let Some(closing) = not_open.and_then(|dimension| dimension.closing.as_mut()) {
                        // Whoever opens it again, or removes it, finds the entity in the store.
                        closing.until = None;
                    }
                    warn!("entity {} went to {to}, which is not open: it waits in the store", traveller.id);
                    self.drop_traveller(traveller, |_| Undeliverable::DimensionNotOpen(to));
                }
            }
        }
        self.forward_letters(id, region, &departed, !parts.is_empty());
        for (letter, reason) in undelivered {
            self.undeliverable(letter, reason);
        }
        for letter in letters {
            self.post(letter);
        }
        parts
    }
}
