//! A harness for tests of a game, which the crate's own tests use too: an app in lockstep, waits with clear messages,
//! queries of regions, and worlds that are saved and reopened. Failures panic.
//!
//! For the feature `testing` in a game's `dev-dependencies`. A test builds the game's app on [`lockstep`] or [`lockstep_on`],
//! spawns its entities, and calls [`start`]:
//!
//! ```
//! use bevy_terrane::prelude::*;
//! use bevy_terrane::testing::*;
//!
//! #[derive(Component, Clone)]
//! struct Mole;
//!
//! fn dig(mut blocks: RegionBlocks, moles: Query<&Position, With<Mole>>) -> Result {
//!     moles.iter().try_for_each(|mole| Ok(drop(blocks.set_block(mole.block, BlockId::AIR)?)))
//! }
//!
//! let mut app = headless(lockstep());
//! app.register_region_component::<Mole>().add_region_plugins(|region| {
//!     region.add_systems(RegionTick, dig);
//! });
//! let dimension = flat(&mut app);
//! viewer(&mut app, dimension, 0.0, 0.0, 2);
//! start(&mut app);
//! let place = BlockPos::new(3, -2, 3);
//! spawn_in_region(&mut app, dimension, place, Mole);
//! update_until(&mut app, "the mole has dug", |world| block_at(world, dimension, place) == Some(BlockId::AIR));
//! let below = ask_region(&mut app, dimension, place, move |blocks: RegionBlocks| blocks.block(place.offset(0, -1, 0)));
//! assert_ne!(below.unwrap(), BlockId::AIR);
//! ```
//!
//! [`MemoryStore::snapshot`](crate::storage::MemoryStore::snapshot) is the state that a crash at this moment leaves; a new
//! world can be opened on it. To check a store of the game's own, use [`conformance`](crate::storage::conformance).

mod faulty_link;

pub use faulty_link::FaultyLink;

use crate::block::BlockId;
use crate::generation::Flat;
use crate::plugin::TickMode;
use crate::plugin::{TerranePlugin, WorldFailure};
use crate::simulation::{Action, BlockTypes, Viewer};
use crate::space::{BlockPos, ColumnPos, DimensionId};
use crate::storage::{KeyValueStore, StorageConfig};
use crate::view::{
    ActionId, Actions, ControlRegion, Dimension, DimensionOpen, PublishedColumns, RegionCommands, RegionOrder,
    RegionStatistics, SaveFailed, SaveWorld, WorldSaved, WorldStatistics,
};
use bevy::ecs::system::{RunSystemOnce, SystemState};
use bevy::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// A world in memory in which each update ticks each region once, so nothing depends on the speed of the machine.
pub fn lockstep() -> TerranePlugin {
    TerranePlugin { tick_mode: TickMode::Lockstep, ..TerranePlugin::in_memory() }
}

/// The same as [`lockstep`] on a store that outlives the app, so that another app can continue the world.
pub fn lockstep_on<S: KeyValueStore + 'static>(store: &Arc<S>) -> TerranePlugin {
    TerranePlugin { storage: StorageConfig::Custom(store.clone()), ..lockstep() }
}

/// An app without a window, with this world; nothing runs before [`start`].
pub fn headless(plugin: TerranePlugin) -> App {
    let mut app = App::new();
    app.add_plugins((MinimalPlugins, plugin));
    app
}

/// Finishes the set-up of an app that is updated by hand.
pub fn start(app: &mut App) {
    app.finish();
    app.cleanup();
}

/// Drops the app, which saves its world, and then opens the next one.
pub fn reopen<T>(app: App, open: impl FnOnce() -> T) -> T {
    drop(app);
    open()
}

/// Spawns a dimension called `overworld` with [`Flat`] terrain, whose top is at y = 0.
pub fn flat(app: &mut App) -> DimensionId {
    spawn_dimension(app, Dimension::new("overworld", Flat::new()))
}

/// Spawns a dimension, with other components if it is given in a tuple with them.
#[track_caller]
pub fn spawn_dimension(app: &mut App, dimension: impl Bundle) -> DimensionId {
    let spawned = app.world_mut().spawn(dimension);
    spawned.get::<Dimension>().and_then(Dimension::id).expect("the entity has no Dimension")
}

/// The entity of a dimension.
#[track_caller]
pub fn dimension_entity(world: &mut World, dimension: DimensionId) -> Entity {
    let mut dimensions = world.query::<(Entity, &Dimension)>();
    let found = dimensions.iter(world).find(|(_, found)| found.id() == Some(dimension));
    found.unwrap_or_else(|| panic!("no entity has {dimension}")).0
}

/// Despawns a dimension, which saves and closes it.
#[track_caller]
pub fn despawn_dimension(app: &mut App, dimension: DimensionId) {
    let entity = dimension_entity(app.world_mut(), dimension);
    app.world_mut().despawn(entity);
}

/// Returns `true` if the dimension is open.
pub fn is_open(world: &mut World, dimension: DimensionId) -> bool {
    world.query::<&DimensionOpen>().iter(world).any(|open| open.id == dimension)
}

/// Spawns a viewer of the main world at a block.
pub fn viewer(app: &mut App, dimension: DimensionId, x: f32, z: f32, radius: u32) -> Entity {
    let place = Transform::from_xyz(x, 0.0, z);
    app.world_mut().spawn((Viewer::in_dimension(dimension).with_radius(radius), place)).id()
}

/// Moves a viewer of the main world to the block at `x`, `z`.
#[track_caller]
pub fn move_viewer(app: &mut App, viewer: Entity, x: f32, z: f32) {
    app.world_mut().get_mut::<Transform>(viewer).expect("no such viewer").translation = Vec3::new(x, 0.0, z);
}

/// Updates the app `times` times.
pub fn update(app: &mut App, times: usize) {
    (0..times).for_each(|_| app.update());
}

/// The limits of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The longest wait.
    pub limit: Duration,
    /// The time from one update to the next, unless an update takes longer. Ignored in lockstep.
    pub frame: Duration,
}

impl Default for Patience {
    /// Half a minute, with a millisecond per frame.
    fn default() -> Self {
        Self { limit: Duration::from_secs(30), frame: Duration::from_millis(1) }
    }
}

/// Updates until `done` returns `true`. After half a minute it panics with `what`, which follows the word "until".
#[track_caller]
pub fn update_until(app: &mut App, what: &str, done: impl FnMut(&mut World) -> bool) {
    update_until_within(app, Patience::default(), what, done);
}

/// The same as [`update_until`], with other limits.
#[track_caller]
pub fn update_until_within(app: &mut App, patience: Patience, what: &str, mut done: impl FnMut(&mut World) -> bool) {
    let Patience { limit, frame } = patience;
    let is_lockstep =
        app.get_added_plugins::<TerranePlugin>().iter().any(|plugin| plugin.tick_mode == TickMode::Lockstep);
    let frame = if is_lockstep { Duration::ZERO } else { frame };
    // Meshes are made on threads that no tick waits for, so these need some time.
    let moment = Duration::from_millis(1);
    let start = Instant::now();
    while !done(app.world_mut()) {
        let began = Instant::now();
        if let Some(failure) = app.world().get_resource::<WorldFailure>() {
            panic!("cannot wait until {what}, since there is no world: {failure}");
        }
        assert!(began - start < limit, "waited {limit:?} in vain until {what}: {}", state(app.world_mut()));
        app.update();
        thread::sleep(frame.saturating_sub(began.elapsed()).max(moment));
    }
}

/// The state of the app, with possible reasons for an endless wait.
fn state(world: &mut World) -> String {
    let mut closed = world.query_filtered::<&Dimension, Without<DimensionOpen>>();
    let closed: Vec<_> = closed.iter(world).map(|it| format!("dimension {} is not open", it.name())).collect();
    let statistics = world.resource::<WorldStatistics>();
    let (regions, columns, remaining) = (statistics.regions.len(), statistics.columns, statistics.remaining);
    let halted = statistics.regions.iter().filter_map(|region| {
        let fault = region.fault.as_ref()?;
        Some(format!(
            "{} halted: {} ({})",
            region.region,
            fault.reason,
            fault.location.as_deref().unwrap_or("no place")
        ))
    });
    let state = format!("regions: {regions}, columns: {columns}, columns to come: {remaining}");
    std::iter::once(state).chain(closed).chain(halted).collect::<Vec<_>>().join("; ")
}

/// Saves everything, and updates until it is durable.
#[track_caller]
pub fn save(app: &mut App) {
    // A game's own numbers stay below.
    static REQUESTS: AtomicU64 = AtomicU64::new(u64::MAX / 2);
    let request = REQUESTS.fetch_add(1, Ordering::Relaxed);
    let mut saved = app.world().resource::<Messages<WorldSaved>>().get_cursor_current();
    let mut failed = app.world().resource::<Messages<SaveFailed>>().get_cursor_current();
    app.world_mut().write_message(SaveWorld { request });
    update_until(app, "the world is saved", |world| {
        let failures = world.resource::<Messages<SaveFailed>>();
        if let Some(failure) = failed.read(failures).find(|failure| failure.requests.contains(&request)) {
            panic!("the world is not saved: {}", failure.error);
        }
        saved.read(world.resource::<Messages<WorldSaved>>()).any(|answer| answer.request == request)
    });
}

/// Lets the entity with this stable id act, with the next update. Wait for its [`ActionAnswer`](crate::view::ActionAnswer).
pub fn act(app: &mut App, actor: Uuid, action: impl Action) -> ActionId {
    let mut state = SystemState::<Actions>::new(app.world_mut());
    let actions = state.get_mut(app.world_mut());
    actions.expect("call start before").act(actor, action)
}

/// Spawns an entity in the region that owns the block, with the next update.
pub fn spawn_in_region(app: &mut App, dimension: DimensionId, block: BlockPos, bundle: impl Bundle) {
    app.world_mut().commands().spawn_in_region(dimension, block, bundle);
    app.world_mut().flush();
}

/// Runs a closure in the region that owns the block, with the next update; the place is loaded if necessary.
pub fn in_region(
    app: &mut App,
    dimension: DimensionId,
    block: BlockPos,
    run: impl FnOnce(&mut World) + Send + 'static,
) {
    app.world_mut().commands().run_in_region(dimension, block, run);
    app.world_mut().flush();
}

/// Updates until a system has run in the region that owns the block, and returns its result. Its changes are visible in the
/// main world one update later.
///
/// Any system without input works, so also a closure that takes [`RegionBlocks`](crate::simulation::RegionBlocks),
/// queries or `&mut World`. If it panics, its region halts; in lockstep the test ends with that panic.
#[track_caller]
pub fn ask_region<T: Send + 'static, M>(
    app: &mut App,
    dimension: DimensionId,
    block: BlockPos,
    ask: impl IntoSystem<(), T, M> + Send + 'static,
) -> T {
    let (sender, answers) = channel();
    in_region(app, dimension, block, move |region: &mut World| {
        // The receiver is gone if the test has stopped waiting.
        let _ = sender.send(region.run_system_once(ask).map_err(|error| error.to_string()));
    });
    let mut answer = Err(TryRecvError::Empty);
    update_until(app, &format!("the region at {block} answers"), |_| {
        answer = answers.try_recv();
        !matches!(answer, Err(TryRecvError::Empty))
    });
    match answer {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => panic!("the region at {block} cannot run the system: {error}"),
        Err(_) => panic!("the region at {block} did not answer: {}", state(app.world_mut())),
    }
}

/// The published block at a place; `None` if it is not loaded.
pub fn block_at(world: &World, dimension: DimensionId, position: BlockPos) -> Option<BlockId> {
    Some(world.resource::<PublishedColumns>().column(dimension, position.column())?.block(position))
}

/// The id of the block with this name, after [`start`].
#[track_caller]
pub fn id_of(world: &World, name: &str) -> BlockId {
    let id = world.resource::<BlockTypes>().id(name);
    id.unwrap_or_else(|| panic!("no block is called {name}"))
}

/// The region that owns the column, from the newest statistics, which come every fifth update in lockstep.
pub fn region_at(world: &World, dimension: DimensionId, column: ColumnPos) -> Option<RegionStatistics> {
    world.resource::<WorldStatistics>().region_at(dimension, column).cloned()
}

/// Gives an order to the region that owns the column, according to [`region_at`].
#[track_caller]
pub fn order(app: &mut App, dimension: DimensionId, column: ColumnPos, order: RegionOrder) {
    let region = region_at(app.world(), dimension, column).unwrap_or_else(|| panic!("no region is known at {column}"));
    let RegionStatistics { dimension, region, .. } = region;
    app.world_mut().write_message(ControlRegion { dimension, region, order });
}

/// All messages of one kind since [`listen`].
#[derive(Resource, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Resource)]
pub struct Heard<M: Message>(pub Vec<M>);

/// Keeps all messages of this kind from now on.
pub fn listen<M: Message + Clone>(app: &mut App) {
    app.insert_resource(Heard::<M>(Vec::new()))
        .add_systems(Update, |mut reader: MessageReader<M>, mut heard: ResMut<Heard<M>>| {
            heard.0.extend(reader.read().cloned())
        });
}

/// All messages of this kind since [`listen`].
#[track_caller]
pub fn heard<M: Message>(app: &App) -> &[M] {
    match app.world().get_resource::<Heard<M>>() {
        Some(heard) => &heard.0,
        None => panic!("call `listen` before: there is no listener for {}", std::any::type_name::<M>()),
    }
}
