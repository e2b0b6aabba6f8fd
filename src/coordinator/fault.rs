//! A fault stays where it happens: a region that panics halts, one that hangs is named.

pub(super) mod panic;

use super::clocks::control::{ControlError, ControlRegion};
use super::desk::Desk;
use super::dimension::column_state::{ColumnState, Columns};
use super::dispatch::Running;
use super::events::{RegionHalted, RegionHung};
use super::region_slot::{Halted, RegionSlot};
use super::threads::{Fault, TaskDone};
use super::travel::letters::Whereabouts;
use super::{RegionFaults, SaveError, TickMode};
use crate::chunk::Column;
use crate::region::RegionId;
use crate::simulation::{Inbox, Letter, MirrorUpdate, Salvage, SetBlock, Undeliverable};
use crate::space::{ColumnPos, DimensionId};
use bevy::prelude::*;
use panic::CaughtPanic;
use rustc_hash::FxHashSet;
use std::any::Any;
use std::mem;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// What is known of a region's task that panicked.
struct Fallen {
    /// Regions that it was to absorb and had not yet, and their columns: they are as they were.
    absorbed: Vec<RegionId>,
    kept: FxHashSet<ColumnPos>,
    /// Entities that had not arrived yet.
    travelling: FxHashSet<Uuid>,
    /// The columns that the world had.
    had: FxHashSet<ColumnPos>,
}

impl Fallen {
    /// `inbox` was only on its way into the world.
    fn new(inbox: &Inbox, had: FxHashSet<ColumnPos>) -> Self {
        let Inbox { absorbed, travellers, .. } = inbox;
        Self {
            absorbed: absorbed.iter().map(|world| world.region()).collect(),
            kept: absorbed.iter().flat_map(|world| world.column_positions()).copied().collect(),
            travelling: travellers.iter().flat_map(|traveller| &traveller.ids).copied().collect(),
            had,
        }
    }
}

/// Why a region halted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionFault {
    /// What the panic said.
    pub reason: String,
    /// Where in the source it was raised; `None` if a system returned an error, and for an order to halt.
    pub location: Option<String>,
    /// The system that panicked, where its name is known.
    pub system: Option<String>,
    /// The lowest of the region's columns then.
    pub column: Option<ColumnPos>,
}

/// Names the regions whose task takes too long, each time that the limit is over again.
pub fn watch(mut desk: Desk) {
    let limit = desk.config.watchdog_limit.max(Duration::from_millis(1));
    let mut hung = Vec::new();
    for (&(id, region), running) in &mut desk.deadlines.running {
        let running_for = running.slot.progress.running_for();
        let limits = u32::try_from(running_for.as_nanos() / limit.as_nanos()).unwrap_or(u32::MAX);
        if limits > running.told {
            running.told = limits;
            hung.push((id, region, running_for, running.slot.progress.step()));
        }
    }
    for (id, region, running_for, step) in hung {
        let column = desk.columns_of(id, region).first().copied();
        let open = desk.dimensions.open.get(&id);
        let waiting = open.map(|open| open.regionizer.awaited_by(region)).unwrap_or_default();
        let place = column.map(|column| format!(" near column {column}")).unwrap_or_default();
        let waits = waiting.iter().map(|region| format!(", {region} waits for it")).collect::<String>();
        warn!("{region} of {id}{place} hangs: {running_for:.1?} in {step}{waits}");
        desk.publisher.event(RegionHung { dimension: id, region, column, running_for, step, waiting });
    }
}

impl Desk<'_> {
    /// A region's task panicked: its world is gone, its columns are held, and what was only on its way into it waits. Gives
    /// the parts of a split that are whole.
    pub fn fall(
        &mut self,
        id: DimensionId,
        region: RegionId,
        slot: &mut RegionSlot,
        parts: &[RegionId],
        Fault { panic, salvage }: Fault,
    ) -> Vec<(RegionId, Inbox)> {
        let Salvage { mut inbox, handed_over, undelivered, columns, viewers, outbox } = *salvage;
        let edits = mem::take(&mut inbox.edits);
        let mut whole = Vec::new();
        match outbox {
            Some(outbox) => {
                // All that the region had is handed out.
                whole = self.route(id, region, outbox);
                self.saves.gone(id, region);
            }
            None => self.fail_requests(id, region),
        }
        let fallen = Fallen::new(&inbox, columns);
        if let Some(sparse) = self.dimensions.open.get_mut(&id).and_then(|dimension| dimension.sparse.as_mut()) {
            // What was on its way to them went with the task.
            inbox.absorbed.iter().flat_map(|world| world.columns()).for_each(|column| sparse.correct(column));
        }
        slot.halted = Some(self.halt(id, region, panic, &fallen));
        self.lose_columns(id, region, &fallen);
        for part in parts.iter().filter(|part| whole.iter().all(|(other, _)| other != *part)) {
            self.lose_part(id, *part, &fallen);
        }
        let until = self.saves.stored_with();
        self.saves.request_commit();
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return whole };
        dimension.orphans.extend(viewers.into_iter().map(|viewer| (viewer, until)));
        self.let_wait(id, region, slot, inbox);
        for (letter, reason) in undelivered {
            self.undeliverable(letter, reason);
        }
        for letter in handed_over {
            self.undeliverable(letter, Undeliverable::Halted(region));
        }
        self.refuse_edits(id, region, edits);
        whole
    }

    /// What was on its way into a region that halted waits there, but for letters to what is another region's by now.
    fn let_wait(&mut self, id: DimensionId, region: RegionId, slot: &mut RegionSlot, mut inbox: Inbox) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        // The world knew them; the next one will have to be told.
        inbox.sections = dimension.regionizer.sections(region).collect();
        let parked = slot.parked.get();
        if !inbox.absorbed.is_empty() {
            // One that was to be absorbed goes on in its place.
            parked.world = Some(inbox.absorbed.remove(0));
        }
        let elsewhere = |letter: &mut Letter| {
            let column = letter.column().map(|(_, column)| column);
            column.is_some_and(|column| dimension.regionizer.region_at(column) != Some(region))
        };
        let elsewhere: Vec<_> = inbox.letters.extract_if(.., elsewhere).collect();
        parked.inbox.append(inbox);
        elsewhere.into_iter().for_each(|letter| self.post(letter));
    }

    /// The blocks of a region went with its world: they are read again when it lives again.
    fn lose_columns(&mut self, id: DimensionId, region: RegionId, fallen: &Fallen) {
        let columns = self.columns_of(id, region);
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        // What it was asked to give up it still has, and nobody else will ask again.
        let is_leaving = |column: &&ColumnPos| dimension.columns.get(**column) == Some(ColumnState::Leaving);
        let leaving: Vec<_> = columns.iter().filter(is_leaving).copied().collect();
        leaving.into_iter().for_each(|column| dimension.keep(column));
        if let Some(sparse) = &mut dimension.sparse {
            columns.iter().for_each(|column| sparse.keep(*column));
        }
        if let Some(waiting) = dimension.waiting.get().get_mut(&region) {
            waiting.give_up.clear();
            waiting.cut.clear();
        }
        self.lose(id, region, columns, fallen, Columns::halt);
    }

    /// In the middle of a split: the part goes on with what the store has.
    fn lose_part(&mut self, id: DimensionId, part: RegionId, fallen: &Fallen) {
        let columns = self.columns_of(id, part);
        self.lose(id, part, columns, fallen, Columns::lose);
    }

    /// Notes the columns that are lost, with the commit that the store must have before they are read again: what left the region
    /// before must not come back a second time.
    fn lose(
        &mut self,
        id: DimensionId,
        region: RegionId,
        mut columns: Vec<ColumnPos>,
        fallen: &Fallen,
        note: impl Fn(&mut Columns, ColumnPos, u64),
    ) {
        let until = self.saves.stored_with();
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        columns.retain(|column| !fallen.kept.contains(column));
        if let Some(waiting) = dimension.waiting.get().get_mut(&region) {
            // What came for a column that the world had is as old as when it was read, and the world may have saved it
            // since. What came for another one is all that there is.
            let is_all = |column: &Column| dimension.sparse.as_ref().is_none_or(|sparse| sparse.is_all(column));
            waiting.columns.retain(|loaded| !fallen.had.contains(&loaded.column.pos()) && is_all(&loaded.column));
            columns.retain(|column| waiting.columns.iter().all(|loaded| loaded.column.pos() != *column));
        }
        for column in &columns {
            note(&mut dimension.columns, *column, until);
            if let Some(sparse) = &mut dimension.sparse {
                sparse.forget(*column);
            }
            dimension.departed().lose(*column, self.saves.unwritten(id, *column));
        }
    }

    /// Edits that had been made in the tick that is undone, or that came in meanwhile.
    fn refuse_edits(&mut self, id: DimensionId, region: RegionId, mut edits: Vec<SetBlock>) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        if let Some(waiting) = dimension.waiting.get().get_mut(&region) {
            edits.append(&mut waiting.edits);
        }
        self.publisher.refuse_all(self.clock.now, edits);
    }

    /// What was asked to be saved, and the region had not handed out, is lost.
    fn fail_requests(&mut self, id: DimensionId, region: RegionId) {
        let requests = self.saves.halted(id, region);
        if !requests.is_empty() {
            self.fail_saves(requests, SaveError::Halted { dimension: id, region });
        }
    }

    fn halt(&mut self, id: DimensionId, region: RegionId, panic: CaughtPanic, fallen: &Fallen) -> Halted {
        let CaughtPanic { reason, location, system, payload } = panic;
        let column = self.columns_of(id, region).first().copied();
        let place = column.map(|column| format!(" near column {column}")).unwrap_or_default();
        let at = location.as_ref().map(|location| format!(" at {location}")).unwrap_or_default();
        let within = system.as_ref().map(|system| format!(" in {system}")).unwrap_or_default();
        match &payload {
            Some(_) => error!("{region} of {id}{place} halted{within}{at}: {reason}"),
            None => info!("{region} of {id}{place} halted {reason}"),
        }
        let lost = self.forget_entities(id, region, fallen);
        self.publisher.mirrors(lost.into_iter().map(MirrorUpdate::gone).collect());
        let fault = Arc::new(RegionFault { reason, location, system, column });
        self.publisher.event(RegionHalted::new(id, region, &fault));
        if let Some(payload) = payload {
            self.pass_on(payload);
        }
        let holds_others = self.config.faults == RegionFaults::HaltNeighbors;
        if let Some(dimension) = self.dimensions.open.get_mut(&id) {
            dimension.has_idle_regions = true;
        }
        Halted { holds_others, fault }
    }

    /// Ends the app with what a region panicked with, if that is what a panic means.
    fn pass_on(&mut self, payload: Box<dyn Any + Send>) {
        if self.config.mode == TickMode::Lockstep {
            self.inbound.panic.get().get_or_insert(payload);
        } else if self.config.faults == RegionFaults::Propagate {
            self.publisher.panic(payload);
        }
    }

    /// Halts a region as a panic would, at once or when it comes back: the one that was asked for, or its successor.
    pub fn halt_by_order(&mut self, request: ControlRegion, region: RegionId) {
        let id = request.dimension;
        if let Some(running) = self.deadlines.running.get_mut(&(id, region)) {
            running.slot.is_to_halt = true;
            return;
        }
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        match dimension.regionizer.data(region) {
            None => return self.refuse_control(request, ControlError::Gone),
            Some(slot) if slot.halted.is_some() => return,
            Some(_) => {}
        }
        let Some(mut slot) = dimension.regionizer.try_begin_tick(region) else {
            return self.refuse_control(request, ControlError::Merging);
        };
        let mut parked = mem::take(slot.parked.get());
        // As after a panic, the worlds are gone; what has not entered them yet, or waits in them, waits.
        let absorbed = mem::take(&mut parked.inbox.absorbed);
        let mut salvage = Salvage::default();
        for mut world in parked.world.into_iter().chain(absorbed) {
            salvage.append(world.salvage());
        }
        dimension.waiting.get().entry(region).or_default().append(parked.inbox);
        self.deadlines.running.insert((id, region), Running::waiting(slot));
        let outcome = Err(Fault { panic: CaughtPanic::by_order(), salvage: Box::new(salvage) });
        self.finish_task(TaskDone { dimension: id, region, took: Duration::ZERO, outcome });
    }

    /// Those that the store has come back with a restart; nobody could take away the mirrors of the others.
    fn forget_entities(&mut self, id: DimensionId, region: RegionId, fallen: &Fallen) -> Vec<Uuid> {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return Vec::new() };
        // Those that it absorbed in this tick are still known under their old regions.
        let mut regions = dimension.all_predecessors(region);
        regions.retain(|region| !fallen.absorbed.contains(region));
        let mut travelling = fallen.travelling.clone();
        let waiting = dimension.waiting.get().get(&region).into_iter().flat_map(|inbox| &inbox.travellers);
        travelling.extend(waiting.flat_map(|traveller| &traveller.ids));
        travelling.extend(dimension.transit.iter().flat_map(|traveller| &traveller.ids));
        self.directory.forget_fallen(id, |entity, place| match place {
            Whereabouts::Region(_, region) => regions.contains(&region),
            Whereabouts::OnTheWay(_, column) => {
                dimension.regionizer.region_at(column) == Some(region) && !travelling.contains(entity)
            }
        })
    }

    /// Forgets a column of a halted region as soon as the store has what was saved of it. Says whether it is gone.
    pub fn let_go_halted(&mut self, id: DimensionId, region: RegionId, column: ColumnPos) -> bool {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return false };
        let is_last = dimension.regionizer.columns(region).nth(1).is_none();
        let Some(slot) = dimension.regionizer.data_mut(region) else { return false };
        let until = match dimension.columns.get(column) {
            Some(ColumnState::Halted { until, .. }) => until,
            // It came for the region when that had halted.
            _ => {
                let until = self.saves.stored_with();
                dimension.columns.halt(column, until);
                until
            }
        };
        if !self.saves.is_stored(until) {
            self.saves.request_commit();
            return false;
        }
        let mut astray = slot.parked.get().inbox.split_off(|waited| waited == column);
        if is_last {
            // The region goes with it.
            astray.letters.append(&mut slot.parked.get().inbox.letters);
        }
        dimension.forget(column, &mut self.publisher);
        // Whoever comes here again begins with what the store has.
        if is_last && let Some(slot) = dimension.regionizer.try_begin_tick(region) {
            self.end_tick(id, region, slot);
        }
        self.publisher.refuse_all(self.clock.now, astray.edits);
        for traveller in astray.travellers {
            self.drop_traveller(traveller, Undeliverable::NoSuchEntity);
        }
        for letter in astray.letters {
            let reason = letter.entity().map_or(Undeliverable::Unloaded(column), Undeliverable::NoSuchEntity);
            self.undeliverable(letter, reason);
        }
        true
    }
}
