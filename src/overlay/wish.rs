//! What a click asks of a region.

use crate::coordinator::{
    ControlRegion, DimensionClock, DimensionGeneration, RegionOrder, RetryColumns, StepDimension,
};
use crate::region::RegionId;
use crate::space::DimensionId;
use crate::view::ControlPregeneration;
use bevy::ecs::system::SystemParam;
use bevy::prelude::*;

/// A region, as the overlay names it.
pub(super) type RegionKey = (DimensionId, RegionId);

/// What was clicked: told to the simulation as any game would do it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Wish {
    Clock(Entity, DimensionClock),
    Generation(Entity, DimensionGeneration),
    Retry(RetryColumns),
    Pregeneration(ControlPregeneration),
    /// By its entity.
    CancelSnapshotJob(Entity),
    Step(StepDimension),
    Order(ControlRegion),
}

impl Wish {
    pub fn order((dimension, region): RegionKey, order: RegionOrder) -> Self {
        Self::Order(ControlRegion { dimension, region, order })
    }
}

/// The ways into the simulation.
#[derive(SystemParam)]
pub(super) struct Wishes<'w, 's> {
    commands: Commands<'w, 's>,
    steps: MessageWriter<'w, StepDimension>,
    orders: MessageWriter<'w, ControlRegion>,
    retries: MessageWriter<'w, RetryColumns>,
    pregenerations: MessageWriter<'w, ControlPregeneration>,
}

impl Wishes<'_, '_> {
    pub fn send(&mut self, wish: Wish) {
        match wish {
            Wish::Clock(dimension, clock) => {
                // It may have gone in this frame.
                self.commands.entity(dimension).try_insert(clock);
            }
            Wish::Generation(dimension, generation) => {
                self.commands.entity(dimension).try_insert(generation);
            }
            Wish::Retry(retry) => drop(self.retries.write(retry)),
            Wish::Pregeneration(order) => drop(self.pregenerations.write(order)),
            Wish::CancelSnapshotJob(job) => self.commands.entity(job).try_despawn(),
            Wish::Step(step) => drop(self.steps.write(step)),
            Wish::Order(order) => drop(self.orders.write(order)),
        }
    }
}
