//! Carries out the main world's orders for clocks and regions, and for regions that tick together.

use crate::coordinator::dimension::{DimensionBook, OpenDimension};
use crate::coordinator::mail::directory::Directory;
use crate::coordinator::messages::clocks::{
    ControlError, ControlRegion, Coupling, DimensionClock, RegionOrder, StepDimension,
};
use crate::coordinator::messages::events::{ControlRefused, RegionRestarted, StepRefused};
use crate::coordinator::publish::Publisher;
use crate::coordinator::schedule::deadlines::Deadlines;
use crate::region::RegionId;
use crate::simulation::TimeOfDay;
use crate::space::{BlockPos, DimensionId};
use bevy::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) fn set_clock(
    In((dimension, clock)): In<(DimensionId, DimensionClock)>,
    mut dimensions: ResMut<DimensionBook>,
    mut deadlines: ResMut<Deadlines>,
) {
    let Some(dimension) = dimensions.open.get_mut(&dimension) else { return };
    let was_paused = std::mem::replace(&mut dimension.time.settings, clock).paused;
    if was_paused && !clock.paused {
        // Steps that a region still owes when the clock runs again are not made up in the next pause.
        let steps = Some(dimension.time.steps);
        for region in dimension.regions.regionizer.regions() {
            if let Some(slot) = deadlines.slot_mut(dimension, region) {
                slot.made_steps = steps;
            }
        }
    }
    deadlines.replan_all(dimension);
}

pub(crate) fn set_time_of_day(
    In((dimension, time)): In<(DimensionId, Option<TimeOfDay>)>,
    mut dimensions: ResMut<DimensionBook>,
) {
    if let Some(dimension) = dimensions.open.get_mut(&dimension) {
        dimension.time.set_time_of_day(time);
    }
}

pub(crate) fn step_dimension(
    In(step): In<StepDimension>,
    mut dimensions: ResMut<DimensionBook>,
    mut deadlines: ResMut<Deadlines>,
    mut publisher: ResMut<Publisher>,
) {
    let Some(dimension) = dimensions.open.get_mut(&step.dimension) else {
        return publisher.event(StepRefused { request: step, error: ControlError::NotOpen });
    };
    // A running clock ticks anyway.
    if dimension.time.settings.paused {
        dimension.time.step(step.ticks);
        deadlines.replan_all(dimension);
    }
}

pub(crate) fn control_region(
    In(control): In<ControlRegion>,
    mut dimensions: ResMut<DimensionBook>,
    mut deadlines: ResMut<Deadlines>,
    directory: Res<Directory>,
    mut publisher: ResMut<Publisher>,
) {
    let ControlRegion { dimension: id, region, order } = control;
    let Some(dimension) = dimensions.open.get_mut(&id) else {
        return publisher.refuse_control(control, ControlError::NotOpen);
    };
    let (region, steps) = (dimension.regions.successor(region), dimension.time.steps);
    let Some(slot) = deadlines.slot_mut(dimension, region) else {
        return publisher.refuse_control(control, ControlError::Gone);
    };
    match order {
        RegionOrder::Halt => return deadlines.to_halt.push(control),
        RegionOrder::Pause => {
            slot.control.paused = true;
            slot.control.steps = 0;
            dimension.regions.has_idle = true;
        }
        RegionOrder::Resume => {
            slot.control.paused = false;
            slot.last_clock = None;
            // The dimension's steps in the meantime were not for this region.
            slot.made_steps = Some(steps);
        }
        RegionOrder::Step(ticks) => slot.control.steps = slot.control.steps.saturating_add(ticks),
        RegionOrder::TickRate(rate) => {
            slot.control.ticks_per_second = rate;
            dimension.regions.has_idle = true;
        }
        // Halts that were ordered earlier come first.
        RegionOrder::Restart if deadlines.is_to_halt(dimension, region) => return deadlines.to_halt.push(control),
        RegionOrder::Restart => return deadlines.restart(dimension, region, &directory, &mut publisher),
    }
    deadlines.replan(dimension, region);
}

impl Publisher {
    pub fn refuse_control(&mut self, request: ControlRegion, error: ControlError) {
        let ControlRegion { dimension, region, .. } = request;
        warn!("an order for {region} of {dimension} was refused: {error}");
        self.event(ControlRefused { request, error });
    }
}

impl Deadlines {
    /// Returns `true` if the region, or one that merged into it, was ordered to halt and has not halted yet.
    pub fn is_to_halt(&self, dimension: &OpenDimension, region: RegionId) -> bool {
        let is_it = |order: &ControlRegion| {
            (order.dimension, dimension.regions.successor(order.region)) == (dimension.id, region)
        };
        self.to_halt.iter().any(|order| order.order == RegionOrder::Halt && is_it(order))
    }

    /// Starts a halted region again from the store.
    pub fn restart(
        &mut self,
        dimension: &mut OpenDimension,
        region: RegionId,
        directory: &Directory,
        publisher: &mut Publisher,
    ) {
        if self.slot_mut(dimension, region).is_some_and(|slot| slot.halted.take().is_some()) {
            dimension.revise_all();
            dimension.revive(region, |id| directory.knows(id));
            publisher.event(RegionRestarted { dimension: dimension.id, region });
        }
        self.replan(dimension, region);
    }

    fn replan_all(&mut self, dimension: &mut OpenDimension) {
        dimension.regions.regionizer.regions().into_iter().for_each(|region| self.replan(dimension, region));
    }

    /// Makes a region due no later than its new orders allow.
    fn replan(&mut self, dimension: &mut OpenDimension, region: RegionId) {
        let (id, now) = (dimension.id, dimension.time.real_now);
        // A running region is planned when its tick ends.
        if let Some(running) = self.running.get_mut(&(id, region)) {
            running.slot.hasten(&dimension.time, now);
            return;
        }
        let time = dimension.time.clone();
        if let Some(slot) = dimension.regions.regionizer.data_mut(region) {
            slot.hasten(&time, now);
            self.plan(slot.due, id, region);
        }
    }
}

/// Adds, changes or removes a coupling of the main world.
pub(crate) fn couple(In((entity, coupling)): In<(Entity, Option<Coupling>)>, mut couplings: ResMut<Couplings>) {
    match coupling {
        Some(coupling) => drop(couplings.places.insert(entity, coupling)),
        None => drop(couplings.places.remove(&entity)),
    }
}

/// Regions that tick together.
pub type Group = BTreeSet<(DimensionId, RegionId)>;

/// All couplings, by their entity in the main world.
#[derive(Resource, Default)]
pub struct Couplings {
    pub places: BTreeMap<Entity, Coupling>,
}

impl Couplings {
    /// The regions that are coupled with this one, directly or through others, including itself.
    pub fn group(&self, dimensions: &DimensionBook, dimension: DimensionId, region: RegionId) -> Group {
        let group = Group::from([(dimension, region)]);
        if self.places.is_empty() { group } else { join(group, &mut self.pairs(dimensions)) }
    }

    /// All coupled regions, in groups.
    pub fn groups(&self, dimensions: &DimensionBook) -> Vec<Group> {
        let mut pairs = self.pairs(dimensions);
        pairs.retain(|[one, other]| one != other);
        let mut groups = Vec::new();
        while let Some(pair) = pairs.pop() {
            groups.push(join(Group::from(pair), &mut pairs));
        }
        groups
    }

    /// The regions at both ends of each coupling.
    fn pairs(&self, dimensions: &DimensionBook) -> Vec<[(DimensionId, RegionId); 2]> {
        let at = |(id, block): (DimensionId, BlockPos)| {
            Some((id, dimensions.open.get(&id)?.regions.regionizer.region_at(block.column())?))
        };
        self.places.values().filter_map(|coupling| Some([at(coupling.ends[0])?, at(coupling.ends[1])?])).collect()
    }
}

/// Adds all pairs that are connected with the group.
fn join(mut group: Group, pairs: &mut Vec<[(DimensionId, RegionId); 2]>) -> Group {
    loop {
        let before = pairs.len();
        pairs.retain(|[one, other]| {
            let joins = group.contains(one) || group.contains(other);
            if joins {
                group.extend([*one, *other]);
            }
            !joins
        });
        if pairs.len() == before {
            return group;
        }
    }
}
