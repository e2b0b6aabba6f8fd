//! For the last picture: one region halts and restarts, a second one halts, a third one pauses.

use bevy::ecs::system::SystemParam;
use bevy_terrane::prelude::*;
use bevy_terrane::region::RegionId;
use bevy_terrane::view::{ControlRegion, RegionOrder, RegionStatistics};
use std::time::Duration;

/// The time limit of an order, after which the picture is taken anyway: regions may merge or end at any time.
const PATIENCE: Duration = Duration::from_secs(5);

/// The regions that are halted or paused on purpose.
#[derive(Resource, Debug, Default)]
pub struct Rehearsal {
    regions: Vec<(DimensionId, RegionId)>,
    step: usize,
    since: Duration,
}

impl Rehearsal {
    /// Returns `true` while regions halt on purpose.
    pub fn is_on(&self) -> bool {
        !self.regions.is_empty()
    }
}

/// Gives orders to regions and observes the effects.
#[derive(SystemParam)]
pub struct Rehearsing<'w> {
    rehearsal: ResMut<'w, Rehearsal>,
    regions: Regions<'w>,
    orders: MessageWriter<'w, ControlRegion>,
    time: Res<'w, Time<Real>>,
}

impl Rehearsing<'_> {
    /// The halted region in the picture.
    pub fn halted(&self) -> Option<(DimensionId, RegionId)> {
        let regions = &self.rehearsal.regions;
        regions.get(1).or(regions.first()).copied()
    }

    pub fn region_at(&self, dimension: DimensionId, block: BlockPos) -> Option<(DimensionId, RegionId)> {
        self.regions.at(dimension, block).map(|region| (region.dimension, region.region))
    }

    /// Takes the next step of the orders. Returns `true` when all regions are in the state for the picture.
    pub fn is_set(&mut self, dimension: DimensionId, camera: BlockPos) -> bool {
        if self.rehearsal.step == 0 {
            self.cast(dimension, camera);
            self.order(0, RegionOrder::Halt);
            return false;
        }
        let is_late = self.time.elapsed() > self.rehearsal.since + PATIENCE;
        match self.rehearsal.step {
            1 if is_late || self.is(0, |region| region.halted) => self.order(0, RegionOrder::Restart),
            2 if is_late || self.is(0, |region| !region.halted) => {
                self.order(2, RegionOrder::Pause);
                self.order(1, RegionOrder::Halt);
            }
            4 => return is_late || self.is(1, |region| region.halted),
            _ => {}
        }
        false
    }

    /// Restarts all of them.
    pub fn end(&mut self) {
        self.order(1, RegionOrder::Restart);
        self.order(2, RegionOrder::Resume);
    }

    /// The three largest regions other than the camera's.
    fn cast(&mut self, dimension: DimensionId, camera: BlockPos) {
        let own = self.regions.at(dimension, camera).map(|region| region.region);
        let others = self.regions.of_dimension(dimension).filter(|region| Some(region.region) != own);
        let mut others: Vec<_> = others.filter(|region| region.viewers > 0 && region.ticks > 0).collect();
        others.sort_by_key(|region| std::cmp::Reverse(region.columns));
        self.rehearsal.regions = others.iter().take(3).map(|region| (region.dimension, region.region)).collect();
    }

    fn is(&self, place: usize, is_so: impl Fn(&RegionStatistics) -> bool) -> bool {
        let Some((dimension, region)) = self.rehearsal.regions.get(place) else { return true };
        self.regions.get(*dimension, *region).is_none_or(is_so)
    }

    fn order(&mut self, place: usize, order: RegionOrder) {
        if let Some((dimension, region)) = self.rehearsal.regions.get(place).copied() {
            self.orders.write(ControlRegion { dimension, region, order });
        }
        self.rehearsal.step += 1;
        self.rehearsal.since = self.time.elapsed();
    }
}
