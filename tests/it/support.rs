//! What the tests share: a game in a few lines.

pub mod gate;
mod play;
pub mod process;

pub use play::*;

use bevy::ecs::system::RunSystemOnce;
use bevy_terrane::coordinator::RegionStatistics;
use bevy_terrane::prelude::*;
use serde::{Deserialize, Serialize};
use std::mem;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// Something that lives in a region: it walks along x.
#[derive(Component, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Walker {
    pub name: String,
    pub blocks_a_tick: f32,
}

/// An app without a window and with this world; nothing runs before [`start`].
pub fn game(plugin: TerranePlugin) -> App {
    let mut app = App::new();
    app.add_plugins((MinimalPlugins, plugin))
        .register_saved_component::<Walker>()
        .mirror_region_component::<Walker>()
        .add_region_plugins(|region| {
            region.add_systems(RegionTick, walk);
        });
    app
}

pub fn lockstep() -> TerranePlugin {
    TerranePlugin::in_memory().with_tick_mode(TickMode::Lockstep)
}

fn walk(mut walkers: Query<(&Walker, &mut Position)>) {
    for (walker, mut position) in &mut walkers {
        if walker.blocks_a_tick != 0.0 {
            position.translate(Vec3::new(walker.blocks_a_tick, 0.0, 0.0));
        }
    }
}

/// Ends the set-up of an app that is updated by hand.
pub fn start(app: &mut App) {
    app.finish();
    app.cleanup();
}

pub fn flat(app: &mut App) -> Entity {
    app.world_mut().spawn(Dimension::new("overworld", Flat::new())).id()
}

/// A viewer of the main world at a block.
pub fn viewer(app: &mut App, dimension: Entity, x: f32, z: f32, radius: u32) -> Entity {
    let place = Transform::from_xyz(x, 0.0, z);
    app.world_mut().spawn((Viewer::in_dimension(dimension).with_radius(radius), place)).id()
}

/// Spawns an entity in the region that owns the block.
pub fn spawn_in_region(app: &mut App, dimension: Entity, block: BlockPos, bundle: impl Bundle) {
    app.world_mut().commands().run_in_region(dimension, block, move |region: &mut World| {
        let dimension = region.resource::<RegionInfo>().dimension;
        region.spawn((Position::new(dimension, block), bundle));
    });
    app.world_mut().flush();
}

pub fn walker(name: &str, blocks_a_tick: f32) -> Walker {
    Walker { name: name.to_owned(), blocks_a_tick }
}

pub fn update(app: &mut App, times: usize) {
    (0..times).for_each(|_| app.update());
}

/// Updates until `done` says so; panics with `what` if that takes too long.
pub fn update_until(app: &mut App, what: &str, mut done: impl FnMut(&mut World) -> bool) {
    let patience = Instant::now() + Duration::from_secs(30);
    while !done(app.world_mut()) {
        assert!(Instant::now() < patience, "waited in vain until {what}");
        app.update();
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub fn block_at(world: &mut World, dimension: Entity, position: BlockPos) -> Option<BlockId> {
    let id = world.get::<DimensionOpen>(dimension)?.id;
    Some(world.resource::<PublishedColumns>().column(id, position.column())?.block(position))
}

pub fn id_of(world: &World, name: &str) -> BlockId {
    world.resource::<BlockTypes>().id(name).expect("a basic block")
}

/// The mirrored walkers: name and position, sorted by name.
pub fn walkers(world: &mut World) -> Vec<(String, Position)> {
    let mut query = world.query_filtered::<(&Walker, &Position), With<Mirror>>();
    let mut found: Vec<_> = query.iter(world).map(|(walker, position)| (walker.name.clone(), *position)).collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// Keeps every message of one kind for as long as the app lives.
#[derive(Resource)]
pub struct Heard<M: Message>(pub Vec<M>);

pub fn listen<M: Message + Clone>(app: &mut App) {
    app.insert_resource(Heard::<M>(Vec::new()))
        .add_systems(Update, |mut reader: MessageReader<M>, mut heard: ResMut<Heard<M>>| {
            heard.0.extend(reader.read().cloned())
        });
}

pub fn heard<M: Message>(app: &App) -> &[M] {
    &app.world().resource::<Heard<M>>().0
}

/// One tick of a region, as a system in it saw it.
#[derive(Clone, Debug)]
pub struct SeenTick {
    pub dimension: DimensionId,
    pub region: RegionId,
    pub thread: ThreadId,
    pub at: Instant,
    pub elapsed: Duration,
    pub delta: Duration,
}

/// All ticks of all regions, in the order in which they ran.
#[derive(Resource, Clone, Default)]
pub struct Diary(pub Arc<Mutex<Vec<SeenTick>>>);

impl Diary {
    /// What was written since the last call.
    pub fn take(&self) -> Vec<SeenTick> {
        mem::take(&mut *self.0.lock().unwrap())
    }
}

/// Has every region write down its ticks, before the game's own systems run in them.
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

pub fn dimension_id(app: &App, dimension: Entity) -> DimensionId {
    app.world().get::<DimensionOpen>(dimension).expect("an open dimension").id
}

/// The region that owns the column, as the newest statistics know it: in lockstep they come every fifth update.
pub fn region_at(world: &World, dimension: Entity, column: ColumnPos) -> Option<RegionStatistics> {
    let id = world.get::<DimensionOpen>(dimension)?.id;
    let statistics = world.resource::<WorldStatistics>();
    let section = column.section(statistics.section_shift);
    statistics.regions.iter().find(|region| region.dimension == id && region.contains(section)).cloned()
}

/// Gives an order to the region that owns the column.
pub fn order(app: &mut App, dimension: Entity, column: ColumnPos, order: RegionOrder) {
    let RegionStatistics { dimension, region, .. } = region_at(app.world(), dimension, column).expect("a region");
    app.world_mut().write_message(ControlRegion { dimension, region, order });
}

pub fn clock(app: &mut App, dimension: Entity, clock: DimensionClock) {
    app.world_mut().entity_mut(dimension).insert(clock);
}

/// Moves a viewer of the main world to the block at `x`, `z`.
pub fn move_viewer(app: &mut App, viewer: Entity, x: f32, z: f32) {
    app.world_mut().get_mut::<Transform>(viewer).expect("a viewer").translation = Vec3::new(x, 0.0, z);
}

/// Runs a closure in the region that owns the block.
pub fn in_region(app: &mut App, dimension: Entity, block: BlockPos, run: impl FnOnce(&mut World) + Send + 'static) {
    app.world_mut().commands().run_in_region(dimension, block, run);
    app.world_mut().flush();
}

/// What the function says of the blocks of the region that owns a block.
pub fn ask_region<T: Send + Sync + 'static>(
    app: &mut App,
    dimension: Entity,
    place: BlockPos,
    ask: impl FnOnce(RegionBlocks, &BlockTypes) -> T + Send + Sync + 'static,
) -> T {
    let answer = Arc::new(Mutex::new(None));
    let told = answer.clone();
    in_region(app, dimension, place, move |region: &mut World| {
        let mut ask = Some(ask);
        let said = region.run_system_once(move |blocks: RegionBlocks, types: Res<BlockTypes>| {
            ask.take().map(|ask| ask(blocks, &types))
        });
        *told.lock().unwrap() = said.unwrap();
    });
    update(app, 3);
    answer.lock().unwrap().take().expect("an answer")
}

/// How often a long test repeats itself: `few` times, or as many times as often as `TERRANE_ROUNDS` says.
pub fn rounds(few: u64) -> u64 {
    few * std::env::var("TERRANE_ROUNDS").ok().and_then(|times| times.parse().ok()).unwrap_or(1_u64)
}
