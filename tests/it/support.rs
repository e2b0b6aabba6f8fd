//! Shared parts of the tests beside the public harness: a game in a few lines.

pub mod distant;
pub mod folder;
pub mod gate;
pub mod ground;
mod play;
pub mod process;
pub mod session;

pub use bevy_terrane::generation::{Caves, GenerateError, GenerateRequest, GeneratorIdentity, Void};
pub use bevy_terrane::plugin::{FaultSettings, Limits, SaveSettings, ThreadSettings};
pub use bevy_terrane::region::RegionId;
pub use bevy_terrane::space::{BlockBox, ColumnArea};
pub use bevy_terrane::testing::*;
pub use bevy_terrane::view::{
    ColumnChange, ColumnChanged, DimensionClock, FarView, MirrorIndex, PublishedColumns, SaveFailed, SaveWorld,
    WorldSaved, WorldStatistics,
};
pub use play::*;

use bevy_terrane::prelude::*;
use serde::{Deserialize, Serialize};
use std::mem;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// An entity of a region that walks along x.
#[derive(Component, Clone, Debug, PartialEq, Serialize, Deserialize, TypePath)]
pub struct Walker {
    pub name: String,
    pub blocks_a_tick: f32,
}

/// An app with walkers; nothing runs before [`start`].
pub fn game(plugin: TerranePlugin) -> App {
    let mut app = headless(plugin);
    app.register_saved_component::<Walker>().mirror_region_component::<Walker>().add_region_plugins(|region| {
        region.add_systems(RegionTick, walk);
    });
    app
}

fn walk(mut walkers: Query<(&Walker, &mut Position)>) {
    for (walker, mut position) in &mut walkers {
        if walker.blocks_a_tick != 0.0 {
            position.translate(Vec3::new(walker.blocks_a_tick, 0.0, 0.0));
        }
    }
}

pub fn walker(name: &str, blocks_a_tick: f32) -> Walker {
    Walker { name: name.to_owned(), blocks_a_tick }
}

/// The mirrored walkers: name and position, sorted by name.
pub fn walkers(world: &mut World) -> Vec<(String, Position)> {
    let mut query = world.query_filtered::<(&Walker, &Position), With<Mirror>>();
    let mut found: Vec<_> = query.iter(world).map(|(walker, position)| (walker.name.clone(), *position)).collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// One tick of a region, as seen by a system in it.
#[derive(Clone, Debug)]
pub struct SeenTick {
    pub dimension: DimensionId,
    pub region: RegionId,
    pub thread: ThreadId,
    pub at: Instant,
    pub elapsed: Duration,
    pub delta: Duration,
}

/// All ticks of all regions, in execution order.
#[derive(Resource, Clone, Default)]
pub struct Diary(pub Arc<Mutex<Vec<SeenTick>>>);

impl Diary {
    /// The ticks since the last call.
    pub fn take(&self) -> Vec<SeenTick> {
        mem::take(&mut *self.0.lock().unwrap())
    }
}

/// Makes every region record its ticks, before the game's own systems run.
pub fn keep_diary(app: &mut App) -> Diary {
    fn write(diary: Res<Diary>, info: Res<RegionInfo>, time: Res<Time>) {
        diary.0.lock().unwrap().push(SeenTick {
            dimension: info.dimension,
            region: info.region,
            thread: std::thread::current().id(),
            at: Instant::now(),
            elapsed: time.elapsed(),
            delta: time.delta(),
        });
    }
    let diary = Diary::default();
    let copy = diary.clone();
    app.add_region_plugins(move |region| {
        region.insert_resource(copy.clone()).add_systems(First, write);
    });
    diary
}

pub fn clock(app: &mut App, dimension: DimensionId, clock: DimensionClock) {
    insert_into_dimension(app, dimension, clock);
}

pub fn insert_into_dimension(app: &mut App, dimension: DimensionId, bundle: impl Bundle) {
    let entity = dimension_entity(app.world_mut(), dimension);
    app.world_mut().entity_mut(entity).insert(bundle);
}

/// The number of repetitions of a long test: `few`, multiplied by `TERRANE_ROUNDS`.
pub fn rounds(few: u64) -> u64 {
    few * std::env::var("TERRANE_ROUNDS").ok().and_then(|times| times.parse().ok()).unwrap_or(1_u64)
}

/// Random-looking numbers that do not compress; the same ones for the same seed.
pub fn noise(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}
