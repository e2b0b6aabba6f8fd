//! A fault stays where it happens: a region that panics halts, one that hangs is named.

use super::collect::Desk;
use super::dispatch::Running;
use super::events::{RegionHalted, RegionHung, SaveFailed};
use super::panic::CaughtPanic;
use super::region_slot::Halted;
use super::threads::TaskDone;
use super::{RegionFaults, TickMode};
use crate::region::RegionId;
use crate::simulation::{BlockAccessError, MirrorUpdate, Undeliverable};
use crate::space::{ColumnPos, DimensionId};
use bevy::prelude::*;
use std::any::Any;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

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
pub(super) fn watch(mut desk: Desk) {
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
        let waiting = open.map(|open| open.regionizer.awaited_by(region).to_vec()).unwrap_or_default();
        let place = column.map(|column| format!(" near column {column}")).unwrap_or_default();
        let waits = waiting.iter().map(|region| format!(", {region} waits for it")).collect::<String>();
        warn!("{region} of {id}{place} hangs: {running_for:.1?} in {step}{waits}");
        desk.publisher.event(RegionHung { dimension: id, region, column, running_for, step, waiting });
    }
}

impl Desk<'_> {
    /// A region's task panicked: its world is gone, its columns are held.
    pub fn halt(&mut self, id: DimensionId, region: RegionId, panic: CaughtPanic) -> Halted {
        let CaughtPanic { reason, location, system, payload } = panic;
        let column = self.columns_of(id, region).first().copied();
        let place = column.map(|column| format!(" near column {column}")).unwrap_or_default();
        let at = location.as_ref().map(|location| format!(" at {location}")).unwrap_or_default();
        let within = system.as_ref().map(|system| format!(" in {system}")).unwrap_or_default();
        match &payload {
            Some(_) => error!("{region} of {id}{place} halted{within}{at}: {reason}"),
            None => info!("{region} of {id}{place} halted {reason}"),
        }
        if self.saves.halted(id, region) {
            let error = format!("{region} halted: what it changed since its last save is lost");
            self.publisher.event(SaveFailed { error });
        }
        // Those that the store has come back with a restart; nobody could take away the mirrors of the others.
        // Those that it absorbed in this tick are still known under their old regions.
        let regions = self.dimensions.open.get(&id).map(|open| open.all_predecessors(region)).unwrap_or_default();
        let lost = self.directory.forget_regions(id, &regions);
        self.publisher.mirrors(lost.into_iter().map(MirrorUpdate::gone).collect());
        let fault = Arc::new(RegionFault { reason, location, system, column });
        self.publisher.event(RegionHalted::new(id, region, &fault));
        if let Some(payload) = payload {
            self.pass_on(payload);
        }
        let holds_others = self.config.faults == RegionFaults::HaltNeighbors;
        if let Some(dimension) = self.dimensions.open.get_mut(&id) {
            dimension.has_idle_regions |= holds_others;
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

    /// Halts a region as a panic would, at once or when it comes back.
    pub fn halt_by_order(&mut self, id: DimensionId, region: RegionId) {
        if let Some(running) = self.deadlines.running.get_mut(&(id, region)) {
            running.slot.is_to_halt = true;
            return;
        }
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        if dimension.regionizer.data(region).is_none_or(|slot| slot.halted.is_some()) {
            return;
        }
        let Some(mut slot) = dimension.regionizer.try_begin_tick(region) else {
            return warn!("{region} of {id} cannot halt: it waits to merge with another region");
        };
        let mut parked = mem::take(slot.parked.get());
        // As after a panic, the worlds are gone; what has not entered them yet waits.
        parked.inbox.absorbed.clear();
        dimension.waiting.get().entry(region).or_default().append(parked.inbox);
        self.deadlines.running.insert((id, region), Running::waiting(slot));
        let outcome = Err(CaughtPanic::by_order());
        self.finish_task(TaskDone { dimension: id, region, took: Duration::ZERO, outcome });
    }

    /// Forgets a column of a halted region as soon as the store has what was saved of it. Says whether it is gone.
    pub fn let_go_halted(&mut self, id: DimensionId, region: RegionId, column: ColumnPos) -> bool {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return false };
        let is_last = dimension.regionizer.columns(region).nth(1).is_none();
        let Some(slot) = dimension.regionizer.data_mut(region) else { return false };
        let Some(mut astray) = slot.let_go(column, &self.saves) else {
            self.saves.request_commit(self.clock.now);
            return false;
        };
        if is_last {
            // The region goes with it.
            astray.letters.append(&mut slot.parked.get().inbox.letters);
        }
        let entity = dimension.spec.entity;
        dimension.forget(column);
        // Whoever comes here again begins with what the store has.
        if is_last && let Some(slot) = dimension.regionizer.try_begin_tick(region) {
            self.end_tick(id, region, slot);
        }
        self.publisher.unloaded(id, column);
        for edit in astray.edits {
            self.publisher.refused(entity, edit, BlockAccessError::OutsideRegion(edit.block));
        }
        for traveller in astray.travellers {
            let reason = Undeliverable::NoSuchEntity(traveller.id);
            self.drop_traveller(traveller, reason);
        }
        for letter in astray.letters {
            let reason = letter.entity().map_or(Undeliverable::Unloaded(column), Undeliverable::NoSuchEntity);
            self.undeliverable(letter, reason);
        }
        true
    }
}
