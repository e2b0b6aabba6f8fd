//! Orders of the main world: how time passes in a dimension, and for one region.

use super::clock::DimensionClock;
use crate::coordinator::desk::Desk;
use crate::coordinator::events::{ControlRefused, RegionRestarted, StepRefused};
use crate::region::RegionId;
use crate::space::DimensionId;
use bevy::prelude::*;
use thiserror::Error;

/// Lets every region of a paused dimension tick so many times, each with the dimension's tick period as its `Time`'s delta.
/// [`StepRefused`] answers if that cannot be.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepDimension {
    /// The dimension's entity.
    pub dimension: Entity,
    /// How many ticks.
    pub ticks: u32,
}

/// An order for one region from the main world.
///
/// It holds for the region with this id, or for the one that took over from it in a merge a moment ago. Parts that split
/// off begin as the region is; what merges keeps the orders of the region that goes on, and is paused only if both are.
/// A region that has not ticked yet has no say in that. [`ControlRefused`] answers what comes to nothing, and
/// nothing answers what is so already.
#[derive(Message, Clone, Copy, Debug, PartialEq)]
pub struct ControlRegion {
    /// Its dimension.
    pub dimension: DimensionId,
    /// The region.
    pub region: RegionId,
    /// What it is to do.
    pub order: RegionOrder,
}

/// What a region can be told to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RegionOrder {
    /// Stop to tick. It is saved, and takes in and gives up columns, as before; those that a letter waits for are held.
    Pause,
    /// Tick again.
    Resume,
    /// Tick so many times while it is paused; one that runs ticks anyway.
    Step(u32),
    /// Tick so many times a second of its dimension's clock; `None` for the dimension's rate.
    TickRate(Option<f64>),
    /// Begin again from the store after it halted. Letters that waited for it, and entities on their way into it, are
    /// handed over when the columns that they are for are there again.
    Restart,
    /// Halt as if its tick had panicked, when the tick that runs has ended: what was not saved is lost. A region that
    /// waits to merge cannot.
    Halt,
}

/// Why an order for a region or for the clock of a dimension comes to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ControlError {
    /// The dimension is not open.
    #[error("the dimension is not open")]
    NotOpen,
    /// The region is gone.
    #[error("the region is gone")]
    Gone,
    /// The region cannot halt, since it waits to merge with another one.
    #[error("the region waits to merge with another one")]
    Merging,
}

pub(crate) fn set_clock(In((dimension, clock)): In<(Entity, DimensionClock)>, mut desk: Desk) {
    desk.set_clock(dimension, clock);
}

pub(crate) fn step_dimension(In(step): In<StepDimension>, mut desk: Desk) {
    desk.step(step);
}

pub(crate) fn control_region(In(control): In<ControlRegion>, mut desk: Desk) {
    desk.control(control);
}

impl Desk<'_> {
    pub fn set_clock(&mut self, dimension: Entity, clock: DimensionClock) {
        let Some(dimension) = self.dimensions.by_entity(dimension) else { return };
        let was_paused = std::mem::replace(&mut dimension.time.settings, clock).paused;
        let id = dimension.id;
        if was_paused && !clock.paused {
            self.end_steps(id);
        }
        self.replan(id);
    }

    /// Steps that a region has not made when the clock runs again are not made up for in the next pause.
    fn end_steps(&mut self, id: DimensionId) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let steps = Some(dimension.time.steps);
        for region in dimension.regionizer.regions() {
            if let Some(slot) = self.deadlines.slot_mut(dimension, region) {
                slot.made_steps = steps;
            }
        }
    }

    pub fn step(&mut self, step: StepDimension) {
        let Some(dimension) = self.dimensions.by_entity(step.dimension) else {
            return self.publisher.event(StepRefused { request: step, error: ControlError::NotOpen });
        };
        // A clock that runs makes its ticks anyway.
        if dimension.time.settings.paused {
            dimension.time.step(step.ticks);
            let id = dimension.id;
            self.replan(id);
        }
    }

    pub fn control(&mut self, control: ControlRegion) {
        let ControlRegion { dimension: id, region, order } = control;
        let Some(dimension) = self.dimensions.open.get_mut(&id) else {
            return self.refuse_control(control, ControlError::NotOpen);
        };
        let (region, steps) = (dimension.successor(region), dimension.time.steps);
        let Some(slot) = self.deadlines.slot_mut(dimension, region) else {
            return self.refuse_control(control, ControlError::Gone);
        };
        match order {
            RegionOrder::Halt => return self.halt_by_order(control, region),
            RegionOrder::Pause => {
                slot.control.paused = true;
                slot.control.steps = 0;
                dimension.has_idle_regions = true;
            }
            RegionOrder::Resume => {
                slot.control.paused = false;
                slot.last_clock = None;
                // The dimension's steps meanwhile were not for it.
                slot.made_steps = Some(steps);
            }
            RegionOrder::Step(ticks) => slot.control.steps = slot.control.steps.saturating_add(ticks),
            RegionOrder::TickRate(rate) => {
                slot.control.ticks_per_second = rate;
                dimension.has_idle_regions = true;
            }
            RegionOrder::Restart => {
                if slot.halted.take().is_some() {
                    dimension.revise_all();
                    dimension.revive(region, |id| self.directory.knows(id));
                    self.publisher.event(RegionRestarted { dimension: id, region });
                }
            }
        }
        self.replan_region(id, region);
    }

    pub fn refuse_control(&mut self, request: ControlRegion, error: ControlError) {
        let ControlRegion { dimension, region, .. } = request;
        warn!("an order for {region} of {dimension} came to nothing: {error}");
        self.publisher.event(ControlRefused { request, error });
    }

    fn replan(&mut self, id: DimensionId) {
        let Some(dimension) = self.dimensions.open.get(&id) else { return };
        for region in dimension.regionizer.regions() {
            self.replan_region(id, region);
        }
    }

    /// A region is due no later than what it is told now allows.
    fn replan_region(&mut self, id: DimensionId, region: RegionId) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let (time, now) = (&dimension.time, self.clock.now);
        // One that runs is planned when it ends.
        if let Some(running) = self.deadlines.running.get_mut(&(id, region)) {
            running.slot.hasten(time, now);
        } else if let Some(slot) = dimension.regionizer.data_mut(region) {
            slot.hasten(time, now);
            self.deadlines.plan(slot.due, id, region);
        }
    }
}
