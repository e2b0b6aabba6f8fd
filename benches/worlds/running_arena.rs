//! The arena in a running world, at 20 ticks and 60 frames a second.

use bevy_terrane::block::{BlockId, BlockRegistry, BlockType};
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::RegionColumns;
use bevy_terrane::snapshot::Snapshot;
use bevy_terrane::space::{BlockBox, ColumnPos};
use bevy_terrane::testing::{Patience, headless, in_region, spawn_dimension, start, update_until_within};
use bevy_terrane::view::{
    CaptureSnapshot, JobEnded, JobId, JobProgress, JobState, Jobs, PublishedColumns, RestoreSnapshot, WorldStatistics,
};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

const PATIENCE: Patience = Patience { limit: Duration::from_secs(600), frame: Duration::from_micros(16_667) };

pub struct RunningArena {
    app: App,
    dimension: DimensionId,
    area: BlockBox,
}

/// The costs of a job.
pub struct Took {
    /// The time from the order until the main world receives the end.
    pub wall: Duration,
    /// The time within the ticks of regions.
    pub worked: Duration,
    pub chunks_changed: usize,
}

impl RunningArena {
    /// A flat world with these blocks, loaded around the box.
    pub fn new(area: BlockBox, names: &[&'static str]) -> Self {
        let mut app = headless(TerranePlugin::in_memory());
        for name in names.iter().filter(|name| **name != "minecraft:air") {
            app.register_block(BlockType::new(*name)).expect("each has a name of its own");
        }
        let heights = area.min.y..area.max.y + 1;
        let dimension = spawn_dimension(&mut app, Dimension::new("arena", Flat::new()).with_height(heights));
        let [x, z] = [(area.min.x + area.max.x) / 2, (area.min.z + area.max.z) / 2];
        let viewer = Viewer::in_dimension(dimension).with_radius(18);
        app.world_mut().spawn((viewer, Transform::from_xyz(x as f32, 0.0, z as f32)));
        start(&mut app);
        let mut arena = Self { app, dimension, area };
        arena.update_until("the arena is loaded", |world| {
            let columns = world.resource::<PublishedColumns>();
            area.columns().all(|column| columns.column(dimension, column).is_some())
        });
        // Saving and generating the surroundings is not part of the workload.
        arena.run_for(8);
        arena
    }

    /// The block types of the world.
    pub fn blocks(&self) -> &BlockRegistry {
        self.app.world().resource::<BlockTypes>()
    }

    /// The id of a block in this world.
    pub fn id(&self, name: &str) -> BlockId {
        self.blocks().id(name).unwrap_or_default()
    }

    fn update_until(&mut self, what: &str, done: impl FnMut(&mut World) -> bool) {
        update_until_within(&mut self.app, PATIENCE, what, done);
    }

    fn run_for(&mut self, seconds: u64) {
        let end = Instant::now() + Duration::from_secs(seconds);
        self.update_until("the time is over", |_| Instant::now() >= end);
    }

    pub fn restore(&mut self, order: impl FnOnce(DimensionId) -> RestoreSnapshot) -> Took {
        let began = Instant::now();
        let job = self.app.world().resource::<Jobs>().restore(order(self.dimension));
        let ended = self.end_of(job);
        assert_eq!(ended.progress.state, JobState::Finished, "{:?}", ended.outcome.error);
        let JobProgress { worked, chunks_changed, .. } = ended.progress;
        Took { wall: began.elapsed(), worked, chunks_changed }
    }

    pub fn capture(&mut self) -> (Arc<Snapshot>, Took) {
        let began = Instant::now();
        let job = self.app.world().resource::<Jobs>().capture(CaptureSnapshot::new(self.dimension, self.area));
        let ended = self.end_of(job);
        let took = Took { wall: began.elapsed(), worked: ended.progress.worked, chunks_changed: 0 };
        (ended.outcome.snapshot.clone().expect("it is a capture"), took)
    }

    /// The longest recent tick.
    pub fn worst_tick(&mut self) -> Duration {
        self.run_for(1);
        self.app.world().resource::<WorldStatistics>().tick_time_worst
    }

    fn end_of(&mut self, job: JobId) -> JobEnded {
        let mut ended = None;
        self.update_until("the job has ended", |world| {
            let mut messages = world.resource_mut::<Messages<JobEnded>>();
            ended = messages.drain().find(|ended| ended.job.id == job);
            ended.is_some()
        });
        ended.expect("it has ended")
    }

    /// Changes each of these columns directly.
    pub fn change(&mut self, columns: impl IntoIterator<Item = ColumnPos>, change: fn(&mut RegionColumns, ColumnPos)) {
        let (sender, changed) = channel();
        let mut left = 0;
        for column in columns {
            let sender = sender.clone();
            let place = column.chunk(0).min_block();
            in_region(&mut self.app, self.dimension, place, move |region| {
                change(&mut region.resource_mut::<RegionColumns>(), column);
                // The receiver is gone if the workload has ended.
                let _ = sender.send(());
            });
            left += 1;
        }
        self.update_until("the columns are changed", |_| {
            left -= changed.try_iter().count();
            left == 0
        });
        self.run_for(6);
    }
}
