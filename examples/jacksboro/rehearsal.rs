//! For the last picture: one region halts and is restarted, a second one halts, a third one pauses.

use bevy::ecs::system::SystemParam;
use bevy_terrane::prelude::*;
use bevy_terrane::view::{ControlRegion, RegionOrder, RegionStatistics};
use std::time::Duration;

/// How long an order may take until the picture is taken all the same: regions merge and end when they like.
const PATIENCE: Duration = Duration::from_secs(5);

/// What happens to regions on purpose.
#[derive(Resource, Debug, Default)]
pub struct Rehearsal {
    regions: Vec<(DimensionId, RegionId)>,
    step: usize,
    since: Duration,
}

impl Rehearsal {
    /// Whether regions halt on purpose now.
    pub fn is_on(&self) -> bool {
        !self.regions.is_empty()
    }
}

/// What it takes to give orders and to see what they do.
#[derive(SystemParam)]
pub struct Rehearsing<'w, 's> {
    rehearsal: ResMut<'w, Rehearsal>,
    regions: Regions<'w, 's>,
    orders: MessageWriter<'w, ControlRegion>,
    time: Res<'w, Time<Real>>,
}

impl Rehearsing<'_, '_> {
    /// The region that is halted on the picture.
    pub fn halted(&self) -> Option<(DimensionId, RegionId)> {
        let regions = &self.rehearsal.regions;
        regions.get(1).or(regions.first()).copied()
    }

    /// The region at this block.
    pub fn region_at(&self, dimension: Entity, block: BlockPos) -> Option<(DimensionId, RegionId)> {
        self.regions.at(dimension, block).map(|region| (region.dimension, region.region))
    }

    /// Goes on, an order a step. Says whether all regions are as the picture is to show them.
    pub fn is_set(&mut self, dimension: Entity, camera: BlockPos) -> bool {
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

    /// Lets all of them live again.
    pub fn end(&mut self) {
        self.order(1, RegionOrder::Restart);
        self.order(2, RegionOrder::Resume);
    }

    /// The three largest regions but the camera's.
    fn cast(&mut self, dimension: Entity, camera: BlockPos) {
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
