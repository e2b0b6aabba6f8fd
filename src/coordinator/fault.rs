//! Keeps faults local: a region that panics halts, and a region that hangs is reported.

pub(super) mod panic;
pub(super) mod region_fault;

use super::clocks::orders::{ControlError, RegionOrder};
use super::deadlines::{Deadlines, Running};
use super::dimension::column_state::{ColumnState, Columns};
use super::dimension::{Dimension, Dimensions};
use super::events::{RegionHalted, RegionHung};
use super::publish::Publisher;
use super::region_slot::{Halted, RegionSlot};
use super::saving::save::Saves;
use super::surroundings::Surroundings;
use super::travel::letters::{Directory, Post, Whereabouts};
use crate::chunk::Column;
use crate::coordinator::config::{RegionFaults, Settings, TickMode};
use crate::coordinator::saving::request::SaveError;
use crate::coordinator::threads::regions::{Fault, TaskDone};
use crate::region::RegionId;
use crate::simulation::{Inbox, Letter, MirrorUpdate, RegionWorld, Salvage, Undeliverable};
use crate::space::{ColumnPos, DimensionId};
use bevy::prelude::*;
use region_fault::RegionFault;
use rustc_hash::FxHashSet;
use std::mem;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// A region's task that panicked.
struct Fallen {
    /// Regions that it was to absorb and had not absorbed yet, and their columns, which are unchanged.
    absorbed: Vec<RegionId>,
    kept: FxHashSet<ColumnPos>,
    /// Entities that had not arrived yet.
    travelling: FxHashSet<Uuid>,
    /// The columns that the region's world had.
    had: FxHashSet<ColumnPos>,
}

impl Fallen {
    /// `worlds` and `inbox` had not entered the world yet.
    fn new(worlds: &[RegionWorld], inbox: &Inbox, had: FxHashSet<ColumnPos>) -> Self {
        Self {
            absorbed: worlds.iter().map(|world| world.region()).collect(),
            kept: worlds.iter().flat_map(|world| world.column_positions()).copied().collect(),
            travelling: inbox.travellers.iter().flat_map(|traveller| &traveller.ids).copied().collect(),
            had,
        }
    }
}

/// Reports the regions whose task takes too long, each time the limit passes again.
pub fn watch(
    config: Res<Settings>,
    dimensions: Res<Dimensions>,
    mut deadlines: ResMut<Deadlines>,
    mut publisher: ResMut<Publisher>,
) {
    let limit = config.faults.watchdog_limit.max(Duration::from_millis(1));
    for (id, region) in deadlines.away() {
        let Some(running) = deadlines.running.get_mut(&(id, region)) else { continue };
        let running_for = running.slot.progress.running_for();
        let limits = u32::try_from(running_for.as_nanos() / limit.as_nanos()).unwrap_or(u32::MAX);
        if limits <= running.told {
            continue;
        }
        running.told = limits;
        let step = running.slot.progress.step();
        let open = dimensions.open.get(&id);
        let column = open.and_then(|open| open.columns_of(region).first().copied());
        let members = open.into_iter().flat_map(|open| open.shared.members(region).map(move |it| (open, it)));
        let waiting: Vec<_> = members.flat_map(|(open, region)| open.regionizer.awaited_by(region)).collect();
        let place = column.map(|column| format!(" near column {column}")).unwrap_or_default();
        let waits = waiting.iter().map(|region| format!(", {region} waits for it")).collect::<String>();
        warn!("{region} of {id}{place} hangs: {running_for:.1?} in {step}{waits}");
        publisher.event(RegionHung { dimension: id, region, column, running_for, step, waiting });
    }
}

impl Surroundings<'_> {
    /// Takes the guests out of a world that is lost, if it was shared: they join the `parts` that wait for its host, which are those
    /// that were just leaving it.
    pub fn evacuate(&mut self, id: DimensionId, host: RegionId, slot: &RegionSlot, parts: &mut Vec<RegionId>) -> bool {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return false };
        if !dimension.shared.contains(host) {
            return false;
        }
        let guests = dimension.evacuate(host, slot);
        self.saves.split(id, host, &guests.iter().map(|(region, _)| *region).collect::<Vec<_>>());
        for (region, own) in guests {
            self.deadlines.running.insert((id, region), Running::waiting(own));
            parts.push(region);
        }
        true
    }

    /// Lets the regions of a lost shared world go on from the store, after all of them have come back to the regionizer.
    pub fn revive_fallen(&mut self, id: DimensionId, fault: &Arc<RegionFault>) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        for region in dimension.regionizer.regions() {
            let slot = self.deadlines.slot(dimension, region);
            if slot.and_then(|slot| slot.halted.as_ref()).is_some_and(|halted| Arc::ptr_eq(&halted.fault, fault)) {
                self.deadlines.restart(dimension, region, &self.directory, &mut self.publisher);
            }
        }
    }

    /// Handles a panic of a region's task: its world is gone, its columns are held, and everything on its way into it waits.
    /// If it shared the world with the `parts`, all of them go on from the store instead, each in a world of its own: the one that
    /// panicked will panic again, and halt alone. Returns the parts of a split that are whole.
    pub fn fall(
        &mut self,
        id: DimensionId,
        region: RegionId,
        slot: &mut RegionSlot,
        parts: &[RegionId],
        is_shared: bool,
        fallen: Fault,
    ) -> Vec<(RegionId, Inbox)> {
        let Fault { fault, payload, salvage } = fallen;
        let Salvage { mut worlds, mut inbox, undelivered, columns, viewers, outbox } = *salvage;
        let mut edits = mem::take(&mut inbox.edits);
        let mut whole = Vec::new();
        match outbox {
            Some(outbox) => {
                // The region had handed out everything.
                whole = self.route(id, region, outbox);
                self.saves.gone(id, region);
            }
            None => self.fail_requests(id, region),
        }
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return whole };
        let fallen = Fallen::new(&worlds, &inbox, columns);
        // Anything on its way to these worlds is lost with the task.
        worlds.iter().flat_map(|world| world.columns()).for_each(|column| dimension.correct_slabs(column));
        dimension.has_idle_regions = true;
        let is_whole = |part: &RegionId| whole.iter().any(|(other, _)| other == part);
        let guests: Vec<_> = parts.iter().filter(|part| is_shared && !is_whole(part)).copied().collect();
        let lost = dimension.forget_entities(region, &guests, &fallen, &mut self.directory);
        self.publisher.mirrors(lost.into_iter().map(MirrorUpdate::gone).collect());
        let fault = dimension.name_fault(region, guests.len(), fault, payload.is_none());
        if is_shared {
            slot.never_share();
        } else {
            self.publisher.event(RegionHalted { dimension: id, region, fault: fault.clone() });
        }
        if let Some(payload) = payload
            && (self.config.tick_mode == TickMode::Lockstep || self.config.faults.on_panic == RegionFaults::Propagate)
        {
            self.publisher.panic(payload);
        }
        let holds_others = !is_shared && self.config.faults.on_panic == RegionFaults::HaltNeighbors;
        slot.halted = Some(Halted { holds_others, fault });
        dimension.lose_columns(region, &fallen, &self.saves);
        for part in parts.iter().filter(|part| !is_whole(part)) {
            if is_shared && let Some(guest) = self.deadlines.running.get_mut(&(id, *part)) {
                guest.slot.halted = slot.halted.clone();
                guest.slot.never_share();
                dimension.lose_columns(*part, &fallen, &self.saves);
            } else {
                // The panic was in the middle of a split: the part goes on from the store.
                let columns = dimension.columns_of(*part);
                dimension.lose(*part, columns, &fallen, &self.saves, Columns::lose);
            }
        }
        if is_shared {
            let elsewhere = inbox.split_off(|column| dimension.regionizer.region_at(column) != Some(region));
            edits.extend(dimension.send_on(elsewhere));
            // Worlds that had just moved in are intact.
            for world in worlds.extract_if(.., |world| guests.contains(&world.region())) {
                if let Some(guest) = self.deadlines.running.get_mut(&(id, world.region())) {
                    guest.slot.parked.get().worlds.push(world);
                }
            }
        }
        let until = self.saves.stored_with();
        self.saves.request_commit();
        dimension.orphans.extend(viewers.into_iter().map(|viewer| (viewer, until)));
        // The worlds that were to be absorbed take its place.
        slot.parked.get().worlds.extend(worlds);
        let elsewhere = dimension.let_wait(region, slot, inbox);
        elsewhere.into_iter().for_each(|letter| self.post.send(letter));
        for (letter, reason) in undelivered {
            self.post.give_back(letter, reason);
        }
        // Refuses edits that were made in the undone tick, or that came in the meantime.
        for region in guests.iter().chain([&region]) {
            if let Some(waiting) = dimension.waiting.get().get_mut(region) {
                edits.append(&mut waiting.edits);
            }
        }
        self.publisher.refuse_all(dimension.real_now, edits);
        whole
    }

    /// Fails the saves that were requested and that the region had not handed out.
    fn fail_requests(&mut self, id: DimensionId, region: RegionId) {
        let requests = self.saves.halted(id, region);
        if !requests.is_empty() {
            self.saves.fail(requests, SaveError::Halted { dimension: id, region }, &mut self.publisher);
        }
    }

    /// Halts the regions that were ordered to halt, like a panic, once their tick has ended; for an absorbed region its
    /// successor. Also carries out the restarts that waited for these halts.
    pub fn halt_ordered(&mut self) {
        for request in mem::take(&mut self.deadlines.to_halt) {
            let id = request.dimension;
            let Some(dimension) = self.dimensions.open.get_mut(&id) else { continue };
            let region = dimension.successor(request.region);
            // It leaves a world that it shares first.
            dimension.shared.leave(region);
            let is_bound = self.deadlines.running.contains_key(&(id, region)) || dimension.shared.contains(region);
            if is_bound || self.deadlines.is_to_halt(dimension, region) {
                self.deadlines.to_halt.push(request);
                continue;
            }
            if request.order == RegionOrder::Restart {
                self.deadlines.restart(dimension, region, &self.directory, &mut self.publisher);
                continue;
            }
            let error = match dimension.regionizer.data(region) {
                None => ControlError::Gone,
                Some(slot) if slot.halted.is_some() => continue,
                Some(_) => ControlError::Merging,
            };
            let Some(mut slot) = dimension.regionizer.try_begin_tick(region) else {
                self.publisher.refuse_control(request, error);
                continue;
            };
            let parked = mem::take(slot.parked.get());
            // As after a panic, the worlds are gone; everything that has not entered them, or waits in them, keeps waiting.
            let mut salvage = Salvage::default();
            for mut world in parked.worlds {
                salvage.append(world.salvage(region));
            }
            let waiting = dimension.waiting.get().entry(region).or_default();
            parked.inbox.into_iter().for_each(|inbox| waiting.append(*inbox));
            self.deadlines.running.insert((id, region), Running::waiting(slot));
            let (fault, salvage) = (RegionFault::new("by order"), Box::new(salvage));
            let outcome = Err(Box::new(Fault { fault, payload: None, salvage }));
            self.finish(TaskDone { dimension: id, region, took: Duration::ZERO, outcome });
        }
    }
}

impl Dimension {
    /// Keeps the inbox of a halted region waiting. Returns the letters whose place belongs to another region by now.
    fn let_wait(&mut self, region: RegionId, slot: &mut RegionSlot, mut inbox: Inbox) -> Vec<Letter> {
        // The lost world knew them; the next one must learn them.
        inbox.sections = self.regionizer.sections(region).collect();
        let elsewhere = |letter: &mut Letter| {
            let column = letter.column().map(|(_, column)| column);
            column.is_some_and(|column| self.regionizer.region_at(column) != Some(region))
        };
        let elsewhere: Vec<_> = inbox.letters.extract_if(.., elsewhere).collect();
        slot.parked.get().inbox().append(inbox);
        elsewhere
    }

    /// Marks a region's columns as lost with its world; they are read again when it restarts.
    fn lose_columns(&mut self, region: RegionId, fallen: &Fallen, saves: &Saves) {
        let columns = self.columns_of(region);
        // The region still has the columns that it was asked to evict, and nothing will ask again.
        let is_leaving = |column: &&ColumnPos| self.columns.is_leaving(**column);
        let leaving: Vec<_> = columns.iter().filter(is_leaving).copied().collect();
        leaving.into_iter().for_each(|column| self.keep(column));
        if let Some(waiting) = self.waiting.get().get_mut(&region) {
            waiting.evict.clear();
            waiting.cut.clear();
        }
        self.lose(region, columns, fallen, saves, Columns::halt);
    }

    /// Notes the lost columns with the commit that the store must have before they are read again. Otherwise entities that had
    /// left the region would come back as duplicates.
    fn lose(
        &mut self,
        region: RegionId,
        mut columns: Vec<ColumnPos>,
        fallen: &Fallen,
        saves: &Saves,
        note: impl Fn(&mut Columns, ColumnPos, u64),
    ) {
        let until = saves.stored_with();
        columns.retain(|column| !fallen.kept.contains(column));
        if let Some(waiting) = self.waiting.get().get_mut(&region) {
            // A column that came for one that the world had is as old as its read, and the world may have saved it since. Any
            // other column that came is the only copy.
            let is_all = |column: &Column| match (self.columns.heights(column.pos()), column.loaded()) {
                (Some(known), Some(loaded)) => loaded.contains_all(&known.loaded),
                _ => true,
            };
            waiting.columns.retain(|loaded| !fallen.had.contains(&loaded.column.pos()) && is_all(&loaded.column));
            columns.retain(|column| waiting.columns.iter().all(|loaded| loaded.column.pos() != *column));
        }
        for column in &columns {
            note(&mut self.columns, *column, until);
            self.departed().lose(*column, saves.unwritten(self.id, *column));
        }
    }

    /// Completes the fault and logs it.
    fn name_fault(&self, region: RegionId, guests: usize, fault: RegionFault, is_ordered: bool) -> Arc<RegionFault> {
        let id = self.id;
        let RegionFault { reason, location, system, .. } = &fault;
        let column = self.columns_of(region).first().copied();
        let place = column.map(|column| format!(" near column {column}")).unwrap_or_default();
        let at = location.as_ref().map(|location| format!(" at {location}")).unwrap_or_default();
        let within = system.as_ref().map(|system| format!(" in {system}")).unwrap_or_default();
        match is_ordered {
            true => info!("{region} of {id}{place} halted {reason}"),
            false if guests > 0 => error!(
                "{region} of {id}{place} and {guests} regions that share its world failed{within}{at}: {reason}; each goes on from the \
                 store in a world of its own"
            ),
            false => error!(
                "{region} of {id}{place} halted{within}{at}: {reason}; a ControlRegion with RegionOrder::Restart begins it again \
                 from the store"
            ),
        }
        Arc::new(RegionFault { column, ..fault })
    }

    /// Forgets the region's entities, and those of the `guests` in its world. Stored ones come back with a restart; mirrors of
    /// the others would never be removed.
    fn forget_entities(
        &mut self,
        region: RegionId,
        guests: &[RegionId],
        fallen: &Fallen,
        directory: &mut Directory,
    ) -> Vec<Uuid> {
        // Entities that it absorbed in this tick are still listed under their old regions.
        let mut regions = self.all_predecessors(region);
        regions.extend(guests);
        regions.retain(|region| !fallen.absorbed.contains(region));
        let mut travelling = fallen.travelling.clone();
        let waiting = self.waiting.get();
        let inboxes = guests.iter().chain([&region]).filter_map(|region| waiting.get(region));
        let waiting = inboxes.flat_map(|inbox| &inbox.travellers);
        travelling.extend(waiting.flat_map(|traveller| &traveller.ids));
        travelling.extend(self.transit.iter().flat_map(|traveller| &traveller.ids));
        directory.forget_fallen(self.id, |entity, place| match place {
            Whereabouts::Region(_, region) => regions.contains(&region),
            Whereabouts::OnTheWay(_, column) => {
                let owner = self.regionizer.region_at(column);
                owner.is_some_and(|owner| owner == region || guests.contains(&owner)) && !travelling.contains(entity)
            }
        })
    }

    /// Forgets a column of a halted region once the store has its saved changes. Returns `true` if the column is gone.
    pub fn release_halted(
        &mut self,
        region: RegionId,
        column: ColumnPos,
        saves: &mut Saves,
        directory: &mut Directory,
        post: &mut Post,
        publisher: &mut Publisher,
    ) -> bool {
        let is_last = self.regionizer.columns(region).nth(1).is_none();
        let Some(slot) = self.regionizer.data_mut(region) else { return false };
        let until = match self.columns.get(column) {
            Some(ColumnState::Halted { until, .. }) => until,
            // It came after the region halted.
            _ => {
                let until = saves.stored_with();
                self.columns.halt(column, until);
                until
            }
        };
        if !saves.is_stored(until) {
            saves.request_commit();
            return false;
        }
        let mut astray = slot.parked.get().inbox().split_off(|waited| waited == column);
        if is_last {
            // The region goes with its last column.
            astray.letters.append(&mut slot.parked.get().inbox().letters);
        }
        self.forget(column, publisher);
        // A new region here begins from the store.
        if is_last
            && let Some(slot) = self.regionizer.try_begin_tick(region)
            && let Err(error) = self.regionizer.end_tick(region, slot)
        {
            error!("{}, {region}: {error}", self.id);
        }
        publisher.refuse_all(self.real_now, astray.edits);
        for traveller in astray.travellers {
            post.drop_traveller(traveller, Undeliverable::NoSuchEntity, directory, publisher);
        }
        for letter in astray.letters {
            let reason = letter.entity().map_or(Undeliverable::Unloaded(column), Undeliverable::NoSuchEntity);
            post.give_back(letter, reason);
        }
        true
    }
}
