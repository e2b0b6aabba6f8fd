//! The record of a run: every event, the published world, and every write to the store.
//!
//! With `TERRANE_RECORD=path` the record is written to a file, so that a change that must not change behavior can be compared
//! with the commit before it.

use super::{Sleepy, dig, wither};
use crate::support::*;
use bevy::ecs::schedule::ScheduleConfigs;
use bevy::ecs::system::ScheduleSystem;
use bevy_terrane::chunk::format::encode;
use bevy_terrane::prelude::*;
use bevy_terrane::space::BatchPos;
use bevy_terrane::storage::{
    Durability, Family, KeyValue, KeyValueStore, MemoryStore, StorageConfig, StoreError, WriteBatch,
};
use bevy_terrane::view::*;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::{env, fs};

fn digest(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A store in memory that notes each write.
#[derive(Default)]
struct Recorder {
    store: MemoryStore,
    writes: Mutex<Vec<String>>,
}

impl KeyValueStore for Recorder {
    fn path(&self) -> &Path {
        self.store.path()
    }

    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.get(family, key)
    }

    fn multi_get(&self, family: Family, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.store.multi_get(family, keys)
    }

    fn scan(&self, family: Family, range: Range<&[u8]>, limit: usize) -> Result<Vec<KeyValue>, StoreError> {
        self.store.scan(family, range, limit)
    }

    fn write(&self, batch: WriteBatch, durability: Durability) -> Result<(), StoreError> {
        // The header has a number of its own for each session, and accesses are noted when a thread has loaded something.
        let timely = [&b"header"[..], b"heat:", b"cooling:", b"play time"];
        let is_timely = |key: &[u8]| timely.iter().any(|start| key.starts_with(start));
        let changes = batch.clone().into_changes().into_iter().filter(|change| !is_timely(&change.key));
        let changes: Vec<_> = changes
            .map(|change| {
                let key = String::from_utf8_lossy(&change.key).escape_debug().to_string();
                format!("{:?} {key} {:016x}", change.family, digest(&change.value))
            })
            .collect();
        let small = if changes.len() <= 4 { changes.join(", ") } else { format!("{:016x}", digest(&changes)) };
        self.writes.lock().unwrap().push(format!("{} changes, {durability:?}: {small}", changes.len()));
        self.store.write(batch, durability)
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.store.sync()
    }
}

/// The lines of the record.
#[derive(Resource, Default)]
struct Record(Vec<String>);

fn note<M: Message + Debug>(mut events: MessageReader<M>, mut record: ResMut<Record>) {
    record.0.extend(events.read().map(|event| format!("{event:?}")));
}

/// Notes all events of these types, in this order within an update.
macro_rules! note_all {
    ($app:ident, $($event:ty),* $(,)?) => {
        let systems: Vec<ScheduleConfigs<ScheduleSystem>> = vec![$(IntoScheduleConfigs::into_configs(note::<$event>)),*];
        for (place, system) in systems.into_iter().enumerate() {
            $app.configure_sets(Update, NoteSet(place).after(NoteSet(place.wrapping_sub(1))));
            $app.add_systems(Update, system.in_set(NoteSet(place)));
        }
    };
}

#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct NoteSet(usize);

/// The published columns and the mirrored entities of this moment.
fn note_world(app: &mut App) {
    let world = app.world_mut();
    let mut mirrors = world.query::<(&StableId, &Walker, &Position)>();
    let mut lines: Vec<_> = mirrors.iter(world).map(|(id, walker, at)| format!("{id:?} {walker:?} {at:?}")).collect();
    lines.sort();
    let mut columns: Vec<_> = world.resource::<PublishedColumns>().iter().collect();
    columns.sort_by_key(|(dimension, column)| (*dimension, column.pos()));
    let mut bytes = Vec::new();
    for (_, column) in &columns {
        column.chunks().for_each(|(_, chunk)| encode(&(), chunk, &[], &mut bytes).unwrap());
    }
    lines.push(format!("{} columns, {:016x}", columns.len(), digest(&bytes)));
    let statistics = world.resource::<WorldStatistics>();
    let regions =
        statistics.regions.iter().map(|region| (region.region, region.columns, region.ticks, region.entities));
    lines.push(format!("{:?}, {} saves", regions.collect::<Vec<_>>(), statistics.saves));
    world.resource_mut::<Record>().0.extend(lines);
}

fn run_on(app: &mut App, updates: usize) {
    for update in 0..updates {
        app.update();
        if update % 20 == 19 {
            note_world(app);
        }
    }
    let ticks = app.world().resource::<WorldStatistics>().ticks;
    app.world_mut().resource_mut::<Record>().0.push(format!("-- {ticks} ticks"));
}

/// An app of this world whose events are noted, and its two dimensions.
fn recorded(plugin: TerranePlugin) -> (App, [DimensionId; 2]) {
    let mut app = game(plugin);
    app.init_resource::<Record>().mirror_region_component::<Player>().add_region_plugins(|region| {
        region.add_systems(RegionTick, (dig, wither).chain());
    });
    listen::<JobEnded>(&mut app);
    note_all!(
        app,
        DimensionOpened,
        DimensionFailed,
        ColumnFailed,
        GroundRegenerated,
        RegionCreated,
        RegionMerged,
        RegionSplit,
        RegionDestroyed,
        RegionHalted,
        RegionRestarted,
        RegionHung,
        LetterLost,
        DimensionRemoved,
        DimensionClosed,
        PlayerLoggedIn,
        LogInRefused,
        PlayerLoggedOut,
        PlayerMoved,
        WorldSaved,
        SaveFailed,
        ArenaCreated,
        ArenaRemoved,
        ArenaRefused,
        ChunksAnswer,
        OpacityAnswer,
        ControlRefused,
        StepRefused,
        BlockRefused,
        ColumnChanged,
    );
    let overworld = spawn_dimension(&mut app, Dimension::new("overworld", Sleepy(Hills::seeded(42))));
    let deep = spawn_dimension(&mut app, Dimension::new("deep", Hills::seeded(9)).with_height(-20_000..20_000));
    (app, [overworld, deep])
}

/// Walkers that meet and part, edits, letters, orders, players, and ground that comes and goes in slabs.
fn live(app: &mut App, [overworld, deep]: [DimensionId; 2]) {
    run_on(app, 1);
    for (number, (x, speed)) in [(0, 1.0), (420, -1.0), (900, 1.5), (1_300, -1.5), (3_000, 0.5)].iter().enumerate() {
        let bundle = (walker(&format!("walker {number}"), *speed), Viewer::new().with_radius(2));
        spawn_in_region(app, overworld, BlockPos::new(*x, 0, 0), bundle);
    }
    let diver = (Viewer::in_dimension(deep).with_radius(2).with_vertical_radius(2), Transform::from_xyz(0.0, 0.0, 0.0));
    let diver = app.world_mut().spawn(diver).id();
    run_on(app, 60);
    let stone = id_of(app.world(), "terrane:stone");
    for (x, y) in [(0, 90), (20_000, 0)] {
        let (dimension, position) = (overworld, BlockPos::new(x, y, 0));
        app.world_mut().write_message(SetBlock { dimension, position, block: stone });
    }
    let chunks = vec![BlockPos::new(3_000, 0, 0).chunk(), BlockPos::new(9_000, 0, 0).chunk()];
    app.world_mut().write_message(AskChunks { request: 1, dimension: overworld, chunks });
    app.world_mut().write_message(AskOpacity { request: 2, dimension: overworld, batch: BatchPos::new(46, 0) });
    app.world_mut().write_message(StepDimension { dimension: overworld, ticks: 2 });
    app.world_mut()
        .write_message(LogIn { name: "anna".into(), first_place: Some((overworld, BlockPos::new(5_000, 80, 0))) });
    app.world_mut().write_message(LogIn { name: "bert".into(), first_place: None });
    in_region(app, overworld, BlockPos::new(7_000, 80, 0), move |region: &mut World| {
        region.spawn((walker("far", 2.0), StableId::default(), Position::new(overworld, BlockPos::new(7_000, 80, 0))));
    });
    app.world_mut().get_mut::<Transform>(diver).unwrap().translation = Vec3::new(200.0, 150.0, 0.0);
    run_on(app, 60);
    app.world_mut().write_message(LogOut { name: "anna".into() });
    app.world_mut().write_message(SaveWorld { request: 3 });
    for order in [RegionOrder::Pause, RegionOrder::Step(3), RegionOrder::Resume, RegionOrder::TickRate(Some(10.0))] {
        control(app, overworld, order);
        run_on(app, 20);
    }
    app.world_mut().write_message(LogIn { name: "anna".into(), first_place: None });
    for order in [RegionOrder::Halt, RegionOrder::Restart] {
        control(app, overworld, order);
        run_on(app, 30);
    }
    work(app, overworld);
    despawn_dimension(app, deep);
    run_on(app, 40);
}

/// A capture, a restore and a pre-generation.
fn work(app: &mut App, dimension: DimensionId) {
    let corner = BlockPos::new(4_000, 60, 0);
    let area = BlockBox::new(corner, corner.offset(40, 40, 40));
    let jobs = app.world().resource::<Jobs>().clone();
    jobs.capture(CaptureSnapshot::new(dimension, area));
    app.world_mut()
        .spawn(Pregeneration { dimension, area: ColumnArea::Disc { center: ColumnPos::new(300, 9), radius: 5 } });
    run_on(app, 60);
    let position = corner.offset(3, 3, 3);
    let block = id_of(app.world(), "terrane:stone");
    app.world_mut().write_message(SetBlock { dimension, position, block });
    let captured = heard::<JobEnded>(app).iter().find_map(|ended| ended.outcome.snapshot.clone());
    jobs.restore(RestoreSnapshot::new(dimension, captured.expect("the capture has ended")));
    run_on(app, 60);
    let ended = mem::take(&mut app.world_mut().resource_mut::<Heard<JobEnded>>().0);
    let line = |ended: &JobEnded| format!("{:?} {:?} {:?}", ended.job, ended.progress.state, ended.outcome.columns);
    app.world_mut().resource_mut::<Record>().0.extend(ended.iter().map(line));
}

/// Gives an order to the region with the lowest number.
fn control(app: &mut App, dimension: DimensionId, order: RegionOrder) {
    let regions = app.world().resource::<WorldStatistics>().regions.iter();
    let region = regions.filter(|region| region.dimension == dimension).map(|region| region.region).min().unwrap();
    app.world_mut().write_message(ControlRegion { dimension, region, order });
}

/// Everything that a world of this plugin does and writes, in two sessions.
fn record(plugin: TerranePlugin) -> String {
    let store = Arc::new(Recorder::default());
    let plugin = TerranePlugin { storage: StorageConfig::Custom(store.clone()), ..plugin };
    let mut lines = Vec::new();
    for _ in 0..2 {
        let (mut app, dimensions) = recorded(plugin.clone());
        start(&mut app);
        live(&mut app, dimensions);
        lines.append(&mut app.world_mut().resource_mut::<Record>().0);
        drop(app);
        lines.extend(mem::take(&mut *store.writes.lock().unwrap()));
    }
    lines.join("\n")
}

/// Promise, worlds: In lockstep two runs give the same events, in the same order, and the same bytes of each save.
#[test]
fn two_runs_have_the_same_events_and_the_same_saves() {
    let plugin = TerranePlugin {
        seed: 7,
        threads: ThreadSettings { regions: 2, generation: 2, ..default() },
        saving: SaveSettings::every(std::time::Duration::from_secs(1)),
        regionizer: parting_soon(),
        ..lockstep()
    };
    let first = record(plugin.clone());
    for needed in
        ["RegionMerged", "RegionSplit", "BlockRefused", "PlayerLoggedOut", "RegionRestarted", "DimensionClosed"]
    {
        assert!(first.contains(needed), "the record has no {needed}");
    }
    if let Ok(path) = env::var("TERRANE_RECORD") {
        fs::write(path, &first).unwrap();
    }
    let second = record(plugin);
    let differs = first.lines().zip(second.lines()).find(|(first, second)| first != second);
    assert_eq!(differs, None);
    assert_eq!(first.len(), second.len());
}
