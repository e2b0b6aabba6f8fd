//! Areas are generated and stored without being loaded, and continue after interruptions.

mod area;
mod control;
mod failing;
mod restart;

use crate::disk::Disk;
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::storage::{MemoryStore, StorageConfig, WorldStore};
use bevy_terrane::view::{
    ControlJob, DimensionClosed, DimensionRemoved, JobEnded, JobOrder, JobProgress, JobState, Pacing, Pregeneration,
    RegionCreated,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Flat terrain that counts how often each column is requested, and fails on demand.
#[derive(Clone, Default)]
struct Counting {
    calls: Arc<Mutex<BTreeMap<ColumnPos, u32>>>,
    order: Arc<Mutex<Vec<ColumnPos>>>,
    bad: Arc<Mutex<BTreeSet<ColumnPos>>>,
    /// The number of failures of a bad column before it succeeds.
    failures: Option<u32>,
    pace: Duration,
}

impl Counting {
    fn calls(&self) -> BTreeMap<ColumnPos, u32> {
        self.calls.lock().unwrap().clone()
    }

    fn count(&self) -> u32 {
        self.calls().values().sum()
    }
}

impl Generator for Counting {
    fn identity(&self) -> GeneratorIdentity {
        GeneratorIdentity { name: "counting".into(), version: 1, seed: 0 }
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        let column = request.column;
        std::thread::sleep(self.pace);
        let calls = {
            let mut calls = self.calls.lock().unwrap();
            let calls = calls.entry(column).or_default();
            *calls += 1;
            *calls
        };
        self.order.lock().unwrap().push(column);
        let is_bad = self.bad.lock().unwrap().contains(&column);
        if is_bad && self.failures.is_none_or(|failures| calls <= failures) {
            assert!(calls != 2, "a generator may panic");
            return Err(GenerateError::Failed { column, reason: "no ground here".into() });
        }
        Flat::new().generate(request)
    }
}

const CENTER: ColumnPos = ColumnPos::new(-37, 91);

fn disc(radius: u32) -> ColumnArea {
    ColumnArea::Disc { center: CENTER, radius }
}

/// Every column of an area, computed from its definition.
fn columns(area: ColumnArea) -> BTreeSet<ColumnPos> {
    let (min, max) = area.bounds().expect("columns");
    let all = (min.z..=max.z).flat_map(|z| (min.x..=max.x).map(move |x| ColumnPos::new(x, z)));
    all.filter(|column| area.contains(*column)).collect()
}

/// A world in this store, new or as it was left.
fn app(plugin: TerranePlugin) -> App {
    let mut app = game(plugin);
    listen::<JobEnded>(&mut app);
    listen::<ColumnFailed>(&mut app);
    listen::<RegionCreated>(&mut app);
    listen::<DimensionClosed>(&mut app);
    listen::<DimensionRemoved>(&mut app);
    app
}

fn in_store(store: &Arc<MemoryStore>) -> TerranePlugin {
    TerranePlugin::stored_in(StorageConfig::Custom(store.clone()))
}

fn dimension(app: &mut App, generator: &Counting) -> DimensionId {
    spawn_dimension(app, Dimension::new("overworld", generator.clone()).with_height(-16..16))
}

fn pregenerate(app: &mut App, dimension: DimensionId, area: ColumnArea) -> Entity {
    app.world_mut().spawn(Pregeneration { dimension, area }).id()
}

fn control(app: &mut App, pregeneration: Entity, order: JobOrder) {
    app.world_mut().write_message(ControlJob { entity: pregeneration, order });
}

fn progress(app: &App, job: Entity) -> JobProgress {
    app.world().get::<JobProgress>(job).expect("a pre-generation").clone()
}

fn state(app: &App, job: Entity) -> JobState {
    progress(app, job).state
}

fn wait_for(app: &mut App, job: Entity, state: JobState) {
    update_until(app, &format!("it is {state:?}"), |world| {
        world.get::<JobProgress>(job).is_some_and(|progress| progress.state == state)
    });
}

/// Updates until at least `done` columns are done.
fn wait_for_done(app: &mut App, job: Entity, done: u64) {
    update_until(app, &format!("{done} are done"), |world| {
        world.get::<JobProgress>(job).is_some_and(|progress| progress.done >= done)
    });
}

/// The columns that the store holds, according to its graph.
fn stored(store: &MemoryStore) -> BTreeSet<ColumnPos> {
    let world = WorldStore::from_store(Arc::new(store.snapshot())).unwrap();
    let mut columns = BTreeSet::new();
    for (tile, masks) in world.stored_tiles(DimensionId(0)).unwrap() {
        for (batch, mask) in tile.batches().zip(masks) {
            columns.extend((0..16).filter(|bit| mask >> bit & 1 == 1).map(|bit| batch.column(bit)));
        }
    }
    columns
}

/// The number of stored jobs.
fn remembered(store: &MemoryStore) -> usize {
    let world = WorldStore::from_store(Arc::new(store.snapshot())).unwrap();
    world.pregenerations(DimensionId(0)).unwrap().len()
}

/// The only job, once it exists.
fn found_job(app: &mut App) -> Entity {
    let mut found = None;
    update_until(app, "the job is found", |world| {
        found = world.query_filtered::<Entity, With<Pregeneration>>().iter(world).next();
        found.is_some()
    });
    update(app, 5);
    let jobs = app.world_mut().query::<&Pregeneration>().iter(app.world()).count();
    assert_eq!(jobs, 1);
    found.unwrap()
}
