//! Keeps faults local: a region that panics halts, and a region that hangs is reported.

use crate::chunk::Column;
use crate::coordinator::columns::{ColumnState, Columns};
use crate::coordinator::dimension::{DimensionBook, OpenDimension};
use crate::coordinator::mail::directory::Directory;
use crate::coordinator::mail::queue::MailQueue;
use crate::coordinator::messages::actions::ActionOutcome;
use crate::coordinator::messages::clocks::{ControlError, RegionOrder};
use crate::coordinator::messages::events::{RegionHalted, RegionHung};
use crate::coordinator::messages::faults::RegionFault;
use crate::coordinator::messages::saving::SaveError;
use crate::coordinator::messages::settings::{RegionFaults, Settings, TickMode};
use crate::coordinator::messages::why::Whereabouts;
use crate::coordinator::publish::Publisher;
use crate::coordinator::regions::{Halted, RegionSlot};
use crate::coordinator::saves::Saves;
use crate::coordinator::schedule::deadlines::{Deadlines, Running};
use crate::coordinator::surroundings::Surroundings;
use crate::coordinator::threads::regions::{Fault, TaskDone};
use crate::region::RegionId;
use crate::simulation::{Inbox, Letter, MirrorUpdate, RegionWorld, Salvage, Undeliverable};
use crate::space::{ColumnPos, DimensionId};
use bevy::prelude::*;
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
    dimensions: Res<DimensionBook>,
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
        let waiting = open.map(|open| open.regions.regionizer.awaited_by(region)).unwrap_or_default();
        let place = column.map(|column| format!(" near column {column}")).unwrap_or_default();
        let waits = waiting.iter().map(|region| format!(", {region} waits for it")).collect::<String>();
        warn!("{region} of {id}{place} hangs: {running_for:.1?} in {step}{waits}");
        publisher.event(RegionHung { dimension: id, region, column, running_for, step, waiting });
    }
}

impl Surroundings<'_> {
    /// Handles a panic of a region's task: its world is gone, its columns are held, and everything on its way into it waits.
    /// Returns the parts of its split that are whole.
    pub fn fall(
        &mut self,
        id: DimensionId,
        region: RegionId,
        slot: &mut RegionSlot,
        parts: &[RegionId],
        fallen: Fault,
    ) -> Vec<(RegionId, Inbox)> {
        let Fault { fault, payload, salvage } = fallen;
        let Salvage { worlds, mut inbox, undelivered, lost_actions, columns, viewers, outbox } = *salvage;
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
        self.publisher.settled(lost_actions, &ActionOutcome::Lost);
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return whole };
        let fallen = Fallen::new(&worlds, &inbox, columns);
        // Anything on its way to these worlds is lost with the task.
        worlds.iter().flat_map(|world| world.columns()).for_each(|column| dimension.correct_slabs(column));
        dimension.regions.has_idle = true;
        let is_whole = |part: &RegionId| whole.iter().any(|(other, _)| other == part);
        let lost = dimension.forget_entities(region, &fallen, &mut self.directory);
        self.publisher.mirrors(lost.into_iter().map(MirrorUpdate::gone).collect());
        let fault = dimension.name_fault(region, fault, payload.is_none());
        self.publisher.event(RegionHalted { dimension: id, region, fault: fault.clone() });
        if let Some(payload) = payload
            && (self.config.tick_mode == TickMode::Lockstep || self.config.faults.on_panic == RegionFaults::Propagate)
        {
            self.publisher.panic(payload);
        }
        let holds_others = self.config.faults.on_panic == RegionFaults::HaltNeighbors;
        slot.halted = Some(Halted { holds_others, fault });
        dimension.lose_columns(region, &fallen, &self.saves);
        for part in parts.iter().filter(|part| !is_whole(part)) {
            // The panic was in the middle of a split: the part goes on from the store.
            let columns = dimension.columns_of(*part);
            dimension.lose(*part, columns, &fallen, &self.saves, Columns::lose);
        }
        let until = self.saves.stored_with();
        self.saves.request_commit();
        dimension.mail.orphans.extend(viewers.into_iter().map(|viewer| (viewer, until)));
        // The worlds that were to be absorbed take its place.
        slot.parked.get().worlds.extend(worlds);
        let elsewhere = dimension.let_wait(region, slot, inbox);
        elsewhere.into_iter().for_each(|letter| self.post.send(letter));
        for (letter, reason) in undelivered {
            self.post.give_back(letter, reason);
        }
        // Refuses edits that were made in the undone tick, or that came in the meantime.
        if let Some(waiting) = dimension.regions.waiting.get().get_mut(&region) {
            edits.append(&mut waiting.edits);
        }
        self.publisher.refuse_all(dimension.time.real_now, edits);
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
            let region = dimension.regions.successor(request.region);
            let is_away = self.deadlines.running.contains_key(&(id, region));
            if is_away || self.deadlines.is_to_halt(dimension, region) {
                self.deadlines.to_halt.push(request);
                continue;
            }
            if request.order == RegionOrder::Restart {
                self.deadlines.restart(dimension, region, &self.directory, &mut self.publisher);
                continue;
            }
            let error = match dimension.regions.regionizer.data(region) {
                None => ControlError::Gone,
                Some(slot) if slot.halted.is_some() => continue,
                Some(_) => ControlError::Merging,
            };
            let Some(mut slot) = dimension.regions.regionizer.try_begin_tick(region) else {
                self.publisher.refuse_control(request, error);
                continue;
            };
            let parked = mem::take(slot.parked.get());
            // As after a panic, the worlds are gone; everything that has not entered them, or waits in them, keeps waiting.
            let mut salvage = Salvage::default();
            for mut world in parked.worlds {
                salvage.append(world.salvage(region));
            }
            let waiting = dimension.regions.waiting.get().entry(region).or_default();
            parked.inbox.into_iter().for_each(|inbox| waiting.append(*inbox));
            self.deadlines.running.insert((id, region), Running::waiting(slot));
            let (fault, salvage) = (RegionFault::new("by order"), Box::new(salvage));
            let outcome = Err(Box::new(Fault { fault, payload: None, salvage }));
            self.finish(TaskDone { dimension: id, region, took: Duration::ZERO, outcome });
        }
    }
}

impl OpenDimension {
    /// Keeps the inbox of a halted region waiting. Returns the letters whose place belongs to another region by now.
    fn let_wait(&mut self, region: RegionId, slot: &mut RegionSlot, mut inbox: Inbox) -> Vec<Letter> {
        // The lost world knew them; the next one must learn them.
        inbox.sections = self.regions.regionizer.sections(region).collect();
        let elsewhere = |letter: &mut Letter| {
            let column = letter.column().map(|(_, column)| column);
            column.is_some_and(|column| self.regions.regionizer.region_at(column) != Some(region))
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
        if let Some(waiting) = self.regions.waiting.get().get_mut(&region) {
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
        if let Some(waiting) = self.regions.waiting.get().get_mut(&region) {
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
    fn name_fault(&self, region: RegionId, fault: RegionFault, is_ordered: bool) -> Arc<RegionFault> {
        let id = self.id;
        let RegionFault { reason, location, system, .. } = &fault;
        let column = self.columns_of(region).first().copied();
        let place = column.map(|column| format!(" near column {column}")).unwrap_or_default();
        let at = location.as_ref().map(|location| format!(" at {location}")).unwrap_or_default();
        let within = system.as_ref().map(|system| format!(" in {system}")).unwrap_or_default();
        match is_ordered {
            true => info!("{region} of {id}{place} halted {reason}"),
            false => error!(
                "{region} of {id}{place} halted{within}{at}: {reason}; a ControlRegion with RegionOrder::Restart begins it again \
                 from the store"
            ),
        }
        Arc::new(RegionFault { column, ..fault })
    }

    /// Forgets the region's entities. Stored ones come back with a restart; mirrors of the others would never be removed.
    fn forget_entities(&mut self, region: RegionId, fallen: &Fallen, directory: &mut Directory) -> Vec<Uuid> {
        // Entities that it absorbed in this tick are still listed under their old regions.
        let mut regions = self.regions.all_predecessors(region);
        regions.retain(|region| !fallen.absorbed.contains(region));
        let mut travelling = fallen.travelling.clone();
        let waiting = self.regions.waiting.get().get(&region).into_iter().flat_map(|inbox| &inbox.travellers);
        travelling.extend(waiting.flat_map(|traveller| &traveller.ids));
        travelling.extend(self.mail.transit.iter().flat_map(|traveller| &traveller.ids));
        directory.forget_fallen(self.id, |entity, place| match place {
            Whereabouts::Region(_, region) => regions.contains(&region),
            Whereabouts::OnTheWay(_, column) => {
                self.regions.regionizer.region_at(column) == Some(region) && !travelling.contains(entity)
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
        post: &mut MailQueue,
        publisher: &mut Publisher,
    ) -> bool {
        let is_last = self.regions.regionizer.columns(region).nth(1).is_none();
        let Some(slot) = self.regions.regionizer.data_mut(region) else { return false };
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
            && let Some(slot) = self.regions.regionizer.try_begin_tick(region)
            && let Err(error) = self.regions.regionizer.end_tick(region, slot)
        {
            error!("{}, {region}: {error}", self.id);
        }
        publisher.refuse_all(self.time.real_now, astray.edits);
        for traveller in astray.travellers {
            publisher.mirrors(post.drop_traveller(traveller, Undeliverable::NoSuchEntity, directory));
        }
        for letter in astray.letters {
            let reason = letter.entity().map_or(Undeliverable::Unloaded(column), Undeliverable::NoSuchEntity);
            post.give_back(letter, reason);
        }
        true
    }
}
