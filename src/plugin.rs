//! [`TerranePlugin`]: puts the rooms together.

mod signals;

use crate::block::{
    BlockComponent, BlockId, BlockRegistry, BlockRegistryError, BlockStates, BlockType, ComponentId, Schema,
};
use crate::coordinator::{
    CoordinatorApp, CoordinatorConfig, CoordinatorHandle, DimensionGeneration, MainLink, Pacing, RegionFaults,
    SaveDurability, SnapshotSettings, TickMode, coordinator_app,
};
use crate::region::RegionizerConfig;
use crate::simulation::{
    BlockTypes, DamagedGround, Mirrored, Post, Received, RegionComponents, RegionMessage, RegionResource,
    RegionTemplate, RegionTemplateError, Returned, SavedComponent, SavedVersionError, SplitMix64,
};
use crate::storage::{RegistryLists, StorageConfig, StoreError, TierSettings, WorldOpenError, WorldStore};
use crate::view;
use bevy::ecs::error::FallbackErrorHandler;
use bevy::ecs::relationship::Relationship;
use bevy::log::LogPlugin;
use bevy::prelude::*;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

/// Gives an app a voxel world.
///
/// Add it before blocks are registered: it opens the world, whose blocks keep their ids. If the world cannot be opened,
/// the app gets a [`WorldFailure`], nothing is stored, and the app ends with an error at its first update.
#[derive(Clone, Debug)]
pub struct TerranePlugin {
    storage: StorageConfig,
    config: CoordinatorConfig,
    seed: u64,
    parallel_from: usize,
    basic_blocks: bool,
}

impl Default for TerranePlugin {
    /// A world in the folder `world`, or in memory without the feature `rocksdb`; 20 ticks a second; a save
    /// every five seconds.
    fn default() -> Self {
        Self {
            storage: if cfg!(feature = "rocksdb") {
                StorageConfig::Path("world".into())
            } else {
                StorageConfig::Memory
            },
            config: CoordinatorConfig::default(),
            seed: 0,
            parallel_from: usize::MAX,
            basic_blocks: true,
        }
    }
}

impl TerranePlugin {
    /// A world in the folder at `path`, made if there is none.
    pub fn at(path: impl Into<std::path::PathBuf>) -> Self {
        Self { storage: StorageConfig::Path(path.into()), ..default() }
    }

    /// A world that is gone with the app.
    pub fn in_memory() -> Self {
        Self { storage: StorageConfig::Memory, ..default() }
    }

    /// A world in a store of the game's choice.
    pub fn stored_in(storage: StorageConfig) -> Self {
        Self { storage, ..default() }
    }

    /// How regions and frames relate.
    pub fn with_tick_mode(mut self, mode: TickMode) -> Self {
        self.config.mode = mode;
        self
    }

    /// Ticks a second of each region; 20 by default. What is not a positive number is ignored.
    pub fn with_ticks_per_second(mut self, ticks: f64) -> Self {
        if ticks.is_finite() && ticks > 0.0 {
            self.config.clock.ticks_per_second = ticks;
        }
        self
    }

    /// Threads that run regions, at least one. By default as many as there are cores, and at least two.
    pub fn with_region_threads(mut self, threads: usize) -> Self {
        self.config.region_threads = threads.max(1);
        self
    }

    /// Threads that generate columns, at least one. By default half of the cores.
    pub fn with_generation_threads(mut self, threads: usize) -> Self {
        self.config.generation_threads = threads.max(1);
        self
    }

    /// So many columns may be generated at a time, whatever frames and ticks take, and a quarter more may be loaded. By
    /// default it adapts between 16 and 256.
    pub fn with_columns_in_flight(self, columns: usize) -> Self {
        self.with_pacing(Pacing::fixed(columns))
    }

    /// Between which bounds the number of columns in flight adapts, and to what. The resource [`Pacing`] changes it while
    /// the app runs.
    pub fn with_pacing(mut self, pacing: Pacing) -> Self {
        self.config.pacing = pacing;
        self
    }

    /// How ground is generated in dimensions without a [`DimensionGeneration`] of their own.
    pub fn with_generation(mut self, generation: DimensionGeneration) -> Self {
        self.config.generation = generation;
        self
    }

    /// How much snapshot jobs may take of the world.
    pub fn with_snapshot_settings(mut self, settings: SnapshotSettings) -> Self {
        self.config.snapshots = settings;
        self
    }

    /// Columns that pre-generation may have on order at a time, where viewers leave room; by default 64 for each
    /// generation thread.
    pub fn with_pregeneration_in_flight(mut self, columns: usize) -> Self {
        self.config.pregeneration_in_flight = Some(columns.max(1));
        self
    }

    /// What changed is saved after this time, two ticks and the time that the disk takes, at the latest; five seconds by
    /// default. Regions are saved in turns, spread over the period.
    pub fn with_autosave_period(mut self, period: Duration) -> Self {
        self.config.autosave_period = period;
        self
    }

    /// When chunks that nobody needs move to colder tiers of the store, and when they come back.
    pub fn with_tiers(mut self, settings: TierSettings) -> Self {
        self.config.tiers = settings;
        self
    }

    /// When what was saved survives a loss of power too; by default at once.
    pub fn with_save_durability(mut self, durability: SaveDurability) -> Self {
        self.config.save_durability = durability;
        self
    }

    /// With so many things (chunks, entities and so on; at least one) on their way into a store that cannot keep up, no new
    /// ground is ordered; with twice as many the regions do not tick until it has caught up. 65,536 by default.
    pub fn with_unsaved_limit(mut self, things: usize) -> Self {
        self.config.unsaved_limit = things.max(1);
        self
    }

    /// How long the end of the app waits for regions that are still ticking; ten seconds by default. What those changed since
    /// their last save is lost then; edits that waited for them are made in what was saved.
    pub fn with_shutdown_patience(mut self, patience: Duration) -> Self {
        self.config.shutdown_patience = patience;
        self
    }

    /// A region whose tick takes longer than this is named in the log and in a `RegionHung`; five seconds by default.
    pub fn with_watchdog_limit(mut self, limit: Duration) -> Self {
        self.config.watchdog_limit = limit;
        self
    }

    /// What becomes of a chunk that is stored but damaged; by default its column is refused.
    pub fn with_damaged_ground(mut self, damaged_ground: DamagedGround) -> Self {
        self.config.damaged_ground = damaged_ground;
        self
    }

    /// What it means that a region's tick panics; by default only this region halts.
    pub fn with_region_faults(mut self, faults: RegionFaults) -> Self {
        self.config.faults = faults;
        self
    }

    /// Makes every access of a system to a block outside of its region an error that says who owns the place, even if
    /// the system ignores what it is told: for development. The error goes to the error handler, which by default
    /// panics, and the region halts.
    pub fn with_strict_regions(mut self) -> Self {
        self.config.strict = true;
        self
    }

    /// A region with so many entities that have a stable id, or more, runs its systems in parallel, on the app's compute
    /// threads; by default none does. It pays where the systems of a crowded region take milliseconds, and frames leave
    /// the compute threads time.
    pub fn with_parallel_systems_from(mut self, entities: usize) -> Self {
        self.parallel_from = entities.max(1);
        self
    }

    /// When regions merge and split.
    pub fn with_regionizer(mut self, config: RegionizerConfig) -> Self {
        self.config.regionizer = config;
        self
    }

    /// Where random numbers and the entities' ids come from.
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Leaves out the basic blocks (`terrane:stone` and so on), which the generators use unless told otherwise.
    pub fn without_basic_blocks(mut self) -> Self {
        self.basic_blocks = false;
        self
    }

    #[cfg(feature = "testing")]
    pub(crate) fn is_lockstep(&self) -> bool {
        self.config.mode == TickMode::Lockstep
    }
}

/// Why there is no world. The app that has this resource ends at its first update.
#[derive(Resource, Debug, thiserror::Error)]
pub enum WorldFailure {
    /// The world's folder cannot be used.
    #[error(transparent)]
    Open(#[from] WorldOpenError),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The lists of blocks and block components in the store are damaged, or the game cannot read what they stand for.
    #[error("the world's blocks cannot be used: {0}")]
    Blocks(#[from] BlockRegistryError),
    /// The world has entities that the game cannot read.
    #[error(transparent)]
    SavedVersion(#[from] SavedVersionError),
    /// Ids that were given out do not hold in this world.
    #[error(
        "{name} was registered before TerranePlugin was added, but has another id in this world: add TerranePlugin first"
    )]
    BlocksBeforePlugin {
        /// The first block or block component whose id changed.
        name: String,
    },
    /// The region worlds cannot be made.
    #[error(transparent)]
    Template(#[from] RegionTemplateError),
    /// A thread could not be started.
    #[error("the simulation's threads cannot be started: {0}")]
    Threads(#[from] std::io::Error),
}

/// What the game registers before it runs.
#[derive(Resource)]
struct Setup {
    plugins: Vec<Arc<dyn Fn(&mut SubApp) + Send + Sync>>,
    components: RegionComponents,
    blocks: BlockRegistry,
    /// What was registered before the world was opened is registered again in the order of that.
    registered_components: Vec<BlockComponent>,
    registered: Vec<BlockType>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            plugins: Vec::new(),
            components: RegionComponents::with_builtin(),
            blocks: BlockRegistry::new(),
            registered_components: Vec::new(),
            registered: Vec::new(),
        }
    }
}

impl Setup {
    /// Registers once more, in the registry of the world, what was registered before it was opened.
    fn open(&mut self, mut blocks: BlockRegistry) -> Result<(), WorldFailure> {
        for component in mem::take(&mut self.registered_components) {
            let name = component.name().to_owned();
            if Some(blocks.register_component(component)?) != self.blocks.component(&name) {
                return Err(WorldFailure::BlocksBeforePlugin { name });
            }
        }
        for block in mem::take(&mut self.registered) {
            let name = block.name().to_owned();
            if Some(blocks.register(block)?) != self.blocks.id(&name) {
                return Err(WorldFailure::BlocksBeforePlugin { name });
            }
        }
        self.blocks = blocks;
        Ok(())
    }
}

/// The opened world, until the simulation begins.
#[derive(Resource)]
struct Opened(Arc<WorldStore>);

/// The coordinator, until it moves to its thread.
#[derive(Resource)]
struct Link(MainLink);

impl Plugin for TerranePlugin {
    fn build(&self, app: &mut App) {
        view::build(app);
        app.insert_resource(self.config.pacing);
        app.add_systems(
            First,
            exit_on_failure.run_if(resource_exists::<WorldFailure>).before(view::ViewSystems::Receive),
        );
        if let Err(failure) = self.open(app) {
            fail(app, failure);
        }
    }

    fn finish(&self, app: &mut App) {
        if let Err(failure) = self.prepare(app) {
            fail(app, failure);
        }
        signals::handle(app);
    }

    fn cleanup(&self, app: &mut App) {
        if let Some(coordinator) = app.remove_sub_app(CoordinatorApp)
            && let Some(Link(link)) = app.world_mut().remove_resource::<Link>()
        {
            match CoordinatorHandle::start(coordinator, link.clone()) {
                Ok(handle) => {
                    app.insert_resource(handle)
                        .insert_resource(link.snapshot_jobs())
                        .insert_resource(link.arenas())
                        .insert_resource(link);
                }
                Err(error) => fail(app, error.into()),
            }
        }
        // Only now it is known whether there is a log.
        match app.world().get_resource::<WorldFailure>() {
            Some(failure) if app.is_plugin_added::<LogPlugin>() => error!("{failure}"),
            Some(failure) => eprintln!("error: {failure}"),
            None => {}
        }
    }
}

impl TerranePlugin {
    fn open(&self, app: &mut App) -> Result<(), WorldFailure> {
        let mut setup = app.world_mut().remove_resource::<Setup>().unwrap_or_default();
        let opened = WorldStore::open(&self.storage).map_err(WorldFailure::from).and_then(|store| {
            let RegistryLists { blocks, components, .. } = store.registry_lists()?;
            setup.open(match blocks.is_empty() {
                true => BlockRegistry::new(),
                false => BlockRegistry::from_records(blocks, components)?,
            })?;
            Ok(store)
        });
        if self.basic_blocks {
            setup.blocks.register_basic_blocks();
        }
        setup.blocks.register_schematic_blocks();
        app.insert_resource(setup);
        app.insert_resource(Opened(Arc::new(opened?)));
        Ok(())
    }

    fn prepare(&self, app: &mut App) -> Result<(), WorldFailure> {
        let setup = app.world_mut().remove_resource::<Setup>().unwrap_or_default();
        let (blocks, components) = (Arc::new(setup.blocks), Arc::new(setup.components));
        app.insert_resource(BlockTypes(blocks.clone())).insert_resource(view::Components(components.clone()));
        // Without a world the game's systems find the blocks all the same, until the app ends.
        let Some(Opened(store)) = app.world_mut().remove_resource::<Opened>() else { return Ok(()) };
        let stored = store.registry_lists()?;
        let lists = RegistryLists {
            blocks: blocks.block_records().collect(),
            components: blocks.component_records().cloned().collect(),
            entity_types: components.entity_types(&stored.entity_types)?,
            structures: stored.structures.clone(),
        };
        if lists != stored {
            store.save_registry_lists(&lists)?;
        }
        store.set_blocks(blocks.clone());
        let template = RegionTemplate {
            plugins: setup.plugins,
            components,
            blocks,
            types: app.world().get_resource::<AppTypeRegistry>().cloned().unwrap_or_default(),
            parallel_from: self.parallel_from,
            error_handler: app.world().get_resource::<FallbackErrorHandler>().copied(),
            seed: SplitMix64::from_parts([self.seed, store.session()]).next_u64(),
        };
        template.check()?;
        let (coordinator, link) = coordinator_app(self.config.clone(), template, store)?;
        app.insert_sub_app(CoordinatorApp, coordinator);
        app.insert_resource(Link(link));
        Ok(())
    }
}

fn fail(app: &mut App, failure: WorldFailure) {
    // What failed first is the reason for what follows.
    if !app.world().contains_resource::<WorldFailure>() {
        app.insert_resource(failure);
    }
}

fn exit_on_failure(mut exit: MessageWriter<AppExit>) {
    exit.write(AppExit::error());
}

/// What a game says of its regions and blocks, while its app is built.
pub trait TerraneAppExt {
    /// Registers a block type and gives its id, which never changes in this world. Call it after [`TerranePlugin`] was
    /// added.
    ///
    /// # Errors
    /// An invalid or a taken name, and a call when the app runs already.
    fn register_block(&mut self, block: BlockType) -> Result<BlockId, BlockRegistryError>;

    /// Registers all states of a block type, and gives their ids, the default's first. As
    /// [`register_block`](Self::register_block) otherwise.
    fn register_block_states(&mut self, states: BlockStates) -> Result<Vec<BlockId>, BlockRegistryError>;

    /// Registers a block component, before the blocks that have it. Call it after [`TerranePlugin`] was added.
    ///
    /// # Errors
    /// An invalid or a taken name. If the world has values in a version or of a size that the game cannot read, the world is
    /// not opened either: the app gets a [`WorldFailure`] and ends at its first update.
    fn register_block_component(&mut self, component: BlockComponent) -> Result<ComponentId, BlockRegistryError>;

    /// `template` runs once for every region world that is made: add systems, plugins, resources, messages, observers.
    fn add_region_plugins(&mut self, template: impl Fn(&mut SubApp) + Send + Sync + 'static) -> &mut Self;

    /// Entities take their `T` along when they move from one region to another.
    ///
    /// Every component on an entity that can travel (one with a `Position`, and whatever hangs on it) must be registered
    /// or left behind by [`leave_region_component_behind`](Self::leave_region_component_behind): otherwise the region's
    /// error handler is told at the end of the tick in which it first appears.
    ///
    /// References to entities (`#[entities]`) point to the same entities afterwards if these moved along, and are
    /// `Entity::PLACEHOLDER` otherwise: keep a [`StableId`](crate::simulation::StableId) to find an entity again that may
    /// part. What changed since its region's last tick began counts as changed where it arrives, what is older does not;
    /// a component that cannot change counts as added.
    fn register_region_component<T: Component>(&mut self) -> &mut Self;

    /// Relationships `R` stay between entities that move together, in the order in which their target has them. One to
    /// an entity that stays behind ends. If the target takes its sources along into death (`linked_spawn`), these also
    /// follow it wherever it goes. `ChildOf` is built in.
    fn register_region_relationship<R: Relationship>(&mut self) -> &mut Self;

    /// Regions join their `R` when they merge, and divide it when they split. Of any other resource the larger region's
    /// stays, and the smaller one's is dropped.
    fn register_region_resource<R: RegionResource>(&mut self) -> &mut Self;

    /// The component of the type with this full path (as `std::any::type_name` gives it) stays behind when its entity
    /// moves from one region to another, and nobody complains.
    fn leave_region_component_behind(&mut self, type_path: &str) -> &mut Self;

    /// Entities take their `T` along, and it is stored with them. An entity is stored if it has at least one such
    /// component.
    ///
    /// A stored value that cannot be read is named in the log, and stays in the store as it is.
    fn register_saved_component<T: SavedComponent>(&mut self) -> &mut Self;

    /// The same for a `T` whose stored form has a version. Stored values of older versions are migrated; if there is no
    /// migration from a version that the world has, the world is not opened: the app gets a [`WorldFailure`]. The bytes are
    /// postcard's.
    fn register_saved_component_with<T: SavedComponent>(&mut self, schema: Schema) -> &mut Self;

    /// `T` can be read on the entity's [`Mirror`](view::Mirror) in the main world.
    fn mirror_region_component<T: Mirrored>(&mut self) -> &mut Self;

    /// `M` can be sent with [`Post`], and read as [`Received<M>`] in the regions and in the main world.
    fn register_region_message<M: RegionMessage>(&mut self) -> &mut Self;
}

impl TerraneAppExt for App {
    fn register_block(&mut self, block: BlockType) -> Result<BlockId, BlockRegistryError> {
        let mut setup = self.world_mut().get_resource_or_init::<Setup>();
        setup.registered.push(block.clone());
        setup.blocks.register(block)
    }

    fn register_block_states(&mut self, states: BlockStates) -> Result<Vec<BlockId>, BlockRegistryError> {
        let mut setup = self.world_mut().get_resource_or_init::<Setup>();
        let ids = setup.blocks.register_states(states)?;
        let types: Vec<_> = ids.iter().map(|id| setup.blocks.block(*id).clone()).collect();
        setup.registered.extend(types);
        Ok(ids)
    }

    fn register_block_component(&mut self, component: BlockComponent) -> Result<ComponentId, BlockRegistryError> {
        let mut setup = self.world_mut().get_resource_or_init::<Setup>();
        setup.registered_components.push(component.clone());
        let registered = setup.blocks.register_component(component);
        if let Err(error) = &registered
            && error.is_schema_mismatch()
        {
            // Nothing may be read or written: the world is closed again.
            self.world_mut().remove_resource::<Opened>();
            fail(self, error.clone().into());
        }
        registered
    }

    fn add_region_plugins(&mut self, template: impl Fn(&mut SubApp) + Send + Sync + 'static) -> &mut Self {
        self.world_mut().get_resource_or_init::<Setup>().plugins.push(Arc::new(template));
        self
    }

    fn register_region_component<T: Component>(&mut self) -> &mut Self {
        self.world_mut().get_resource_or_init::<Setup>().components.register::<T>();
        self
    }

    fn register_region_relationship<R: Relationship>(&mut self) -> &mut Self {
        self.world_mut().get_resource_or_init::<Setup>().components.register_relationship::<R>();
        self
    }

    fn register_region_resource<R: RegionResource>(&mut self) -> &mut Self {
        self.world_mut().get_resource_or_init::<Setup>().components.register_resource::<R>();
        self
    }

    fn leave_region_component_behind(&mut self, type_path: &str) -> &mut Self {
        self.world_mut().get_resource_or_init::<Setup>().components.leave_behind(type_path);
        self
    }

    fn register_saved_component<T: SavedComponent>(&mut self) -> &mut Self {
        self.register_saved_component_with::<T>(Schema::default())
    }

    fn register_saved_component_with<T: SavedComponent>(&mut self, schema: Schema) -> &mut Self {
        self.world_mut().get_resource_or_init::<Setup>().components.register_saved_with::<T>(schema);
        self
    }

    fn mirror_region_component<T: Mirrored>(&mut self) -> &mut Self {
        self.world_mut().get_resource_or_init::<Setup>().components.mirror::<T>();
        self
    }

    fn register_region_message<M: RegionMessage>(&mut self) -> &mut Self {
        self.add_message::<Received<M>>().add_message::<Returned<M>>();
        self.add_region_plugins(|region| {
            region.add_message::<Received<M>>().add_message::<Returned<M>>();
            region.world_mut().resource_mut::<Post>().register::<M>();
        })
    }
}
