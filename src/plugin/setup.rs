//! Opens the world and prepares the simulation, or ends an app whose world failed.

use super::TerranePlugin;
use crate::block::{BlockComponent, BlockRegistry, BlockRegistryError, BlockType};
use crate::coordinator::{CoordinatorApp, coordinator_app};
use crate::light::LightTable;
use crate::simulation::{
    ActionTypes, BlockTypes, RegionComponents, RegionTemplate, RegionTemplateError, RegionTick, SharedMessages,
    SplitMix64,
};
use crate::storage::servers::{PLOT_SIZE, TERM};
use crate::storage::{RegistryLists, StoreError, WorldOpenError, WorldStore};
use crate::view::{self, PublishedColumns};
use crate::work::{FileError, Stop};
use bevy::ecs::error::FallbackErrorHandler;
use bevy::log::LogPlugin;
use bevy::prelude::*;
use bevy::time::TimePlugin;
use std::io;
use std::mem;
use std::sync::Arc;

/// Why the world could not be opened. An app with this resource ends at its first update.
#[derive(Resource, Clone, Debug, thiserror::Error, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(opaque)]
#[reflect(Resource, Clone, Debug)]
pub enum WorldFailure {
    /// The world's folder cannot be used.
    #[error(transparent)]
    Open(#[from] WorldOpenError),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The lists of blocks and block components in the store are damaged, or the game cannot read their contents.
    #[error("the world's blocks cannot be used: {0}")]
    Blocks(#[from] BlockRegistryError),
    /// Ids that were returned before the world was opened are different in this world.
    #[error(
        "{name} was registered before TerranePlugin was added, but has another id in this world: add TerranePlugin first"
    )]
    BlocksBeforePlugin {
        /// The first block or block component whose id changed.
        name: String,
    },
    /// The app does not have Bevy's basic plugins.
    #[error("TerranePlugin needs Bevy's MinimalPlugins or DefaultPlugins: add them to the app")]
    NoBevyPlugins,
    /// The region worlds cannot be created, or the world has entities that the game cannot read.
    #[error(transparent)]
    Template(#[from] RegionTemplateError),
    /// The regions of the settings reach so far that those of two servers could meet.
    #[error(
        "regions reach {reach} columns with these settings of the regionizer, and at most {limit} lie between the ground of \
         two servers: use smaller sections or radii in a world that several servers share"
    )]
    RegionsTooWide {
        /// The reach in columns.
        reach: u64,
        /// The limit.
        limit: u64,
    },
    /// A thread could not be started.
    #[error("the simulation's threads cannot be started: {0}")]
    Threads(Arc<io::Error>),
    /// The arenas or the interrupted restores cannot be listed.
    #[error("{0}; without them, ground could stay half restored, or arenas could overlap")]
    Snapshots(#[from] FileError),
}

impl From<io::Error> for WorldFailure {
    fn from(error: io::Error) -> Self {
        Self::Threads(Arc::new(error))
    }
}

/// The heartbeats until the coordinator runs.
#[derive(Resource)]
pub(super) struct Life(pub Stop);

/// The game's registrations before it runs.
#[derive(Resource)]
pub(super) struct Setup {
    pub plugins: Vec<Arc<dyn Fn(&mut SubApp) + Send + Sync>>,
    pub components: RegionComponents,
    pub messages: SharedMessages,
    pub actions: ActionTypes,
    pub blocks: BlockRegistry,
    /// Registrations from before the world was opened. They are repeated in its registry, in the same order.
    pub registered_components: Vec<BlockComponent>,
    pub registered: Vec<BlockType>,
    /// The opened world.
    pub store: Option<Arc<WorldStore>>,
    /// Ends the heartbeats of a server whose coordinator does not run yet.
    pub life: Stop,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            plugins: Vec::new(),
            components: RegionComponents::with_builtin(),
            messages: SharedMessages::default(),
            actions: ActionTypes::default(),
            blocks: BlockRegistry::new(),
            registered_components: Vec::new(),
            registered: Vec::new(),
            store: None,
            life: Stop::default(),
        }
    }
}

/// Lets a server show life to the others until its coordinator does, however long the game's set-up takes.
fn show_life(store: &Arc<WorldStore>) -> io::Result<Stop> {
    let (stop, store) = (Stop::default(), Arc::downgrade(store));
    let life = stop.clone();
    if store.upgrade().is_some_and(|store| store.incarnation().is_some()) {
        std::thread::Builder::new().name("terrane heartbeat".to_owned()).spawn(move || {
            while let Some(store) = store.upgrade().filter(|_| !life.is_stopped()) {
                if let Some(Err(error)) = store.incarnation().map(|server| server.beat()) {
                    warn!("this server could not show that it is alive: {error}");
                }
                drop(store);
                std::thread::sleep(TERM / 8);
            }
        })?;
    }
    Ok(stop)
}

impl Setup {
    /// Repeats the registrations from before the world was opened in its registry.
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

impl TerranePlugin {
    pub(super) fn open(&self, app: &mut App) -> Result<(), WorldFailure> {
        let mut setup = app.world_mut().remove_resource::<Setup>().unwrap_or_default();
        let opened = WorldStore::open(&self.storage).map_err(WorldFailure::from).and_then(|store| {
            let RegistryLists { blocks, components, .. } = store.registry_lists()?;
            setup.open(match blocks.is_empty() {
                true => BlockRegistry::new(),
                false => BlockRegistry::from_records(blocks, components)?,
            })?;
            app.insert_resource(view::Dimensions::new(store.dimension_names().clone()));
            let store = Arc::new(store);
            setup.life = show_life(&store)?;
            setup.store = Some(store);
            Ok(())
        });
        if self.basic_blocks {
            setup.blocks.register_basic_blocks();
        }
        setup.blocks.register_schematic_blocks();
        app.insert_resource(setup);
        opened
    }

    pub(super) fn prepare(&self, app: &mut App) -> Result<(), WorldFailure> {
        let setup = app.world_mut().remove_resource::<Setup>().unwrap_or_default();
        let (blocks, components) = (Arc::new(setup.blocks), Arc::new(setup.components));
        if self.light > 0.0
            && let Some(mut published) = app.world_mut().get_resource_mut::<PublishedColumns>()
        {
            published.set_light(LightTable::new(&blocks));
        }
        // An opening has fewer sessions than that.
        let opening =
            setup.store.as_ref().map_or(0, |store| store.incarnation().map_or(store.session(), |of| of.number()));
        let known_actions = view::KnownActions { types: setup.actions, sessions_from: opening << 24 };
        app.insert_resource(BlockTypes(blocks.clone()))
            .insert_resource(view::Components(components.clone()))
            .insert_resource(known_actions);
        if !app.is_plugin_added::<TimePlugin>() || !app.is_plugin_added::<TaskPoolPlugin>() {
            return Err(WorldFailure::NoBevyPlugins);
        }
        // Without a world the game's systems still find the blocks until the app ends.
        let Some(store) = setup.store else { return Ok(()) };
        let stored = store.registry_lists()?;
        let lists = RegistryLists {
            blocks: blocks.block_records().collect(),
            components: blocks.component_records().cloned().collect(),
            entity_types: components.entity_types(&stored.entity_types)?,
        };
        warn_of_placeholders(&blocks);
        if lists != stored {
            store.save_registry_lists(&lists)?;
        }
        store.set_blocks(blocks.clone());
        let template = RegionTemplate {
            fresh: Arc::default(),
            plugins: setup.plugins,
            components,
            messages: Arc::new(setup.messages),
            blocks,
            types: app.world().get_resource::<AppTypeRegistry>().cloned().unwrap_or_default(),
            parallel_from: self.threads.parallel_systems_from.map_or(usize::MAX, |entities| entities.max(1)),
            error_handler: app.world().get_resource::<FallbackErrorHandler>().copied(),
            actions_per_second: self.limits.actions_per_second,
            seed: SplitMix64::from_parts([self.seed, store.session()]).next_u64(),
        };
        template.check()?;
        let (reach, limit) = (self.regionizer.reach(), PLOT_SIZE);
        if store.incarnation().is_some() && reach > limit {
            return Err(WorldFailure::RegionsTooWide { reach, limit });
        }
        let (mut coordinator, link) = coordinator_app::<WorldFailure>(self, template, store)?;
        // The main world gets the link when the coordinator runs. From then on the coordinator shows life.
        coordinator.insert_resource(link).insert_resource(Life(setup.life));
        app.insert_sub_app(CoordinatorApp, coordinator);
        Ok(())
    }
}

/// Names the stored block types that the game does not register, such as one that got another name.
fn warn_of_placeholders(blocks: &BlockRegistry) {
    /// The number of names in the message.
    const MOST: usize = 8;
    let mut names: Vec<_> = blocks.placeholders().filter_map(|id| blocks.block(id).name().split('[').next()).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return;
    }
    let more = names.len().saturating_sub(MOST);
    let named: Vec<_> = names.iter().take(MOST).map(|name| format!("{name:?}")).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    warn!(
        "the world has block types that the game does not register: {}{more}; their blocks are placeholders, and are saved \
         unchanged. If a type has another name now, register it with its former one: \
         BlockType::new(\"game:new\").formerly({})",
        named.join(", "),
        named[0]
    );
}

pub(super) fn fail(app: &mut App, failure: WorldFailure) {
    // The first failure is the reason for later ones.
    if !app.world().contains_resource::<WorldFailure>() {
        app.insert_resource(failure);
    }
}

/// Ends an app without a world at its first update. Its sub-apps do not start: a renderer that is interrupted while it
/// compiles shaders may crash when the process ends.
pub(super) fn end_if_failed(app: &mut App) {
    let Some(failure) = app.world().get_resource::<WorldFailure>() else { return };
    match app.is_plugin_added::<LogPlugin>() {
        true => error!("{failure}"),
        false => eprintln!("error: {failure}"),
    }
    app.sub_apps_mut().sub_apps.clear();
}

pub(super) fn log_misplaced_systems(app: &App) {
    let schedules = app.world().get_resource::<Schedules>();
    let systems = schedules.and_then(|schedules| schedules.get(RegionTick)).map_or(0, Schedule::systems_len);
    if systems > 0 {
        error!(
            "{systems} systems were added to RegionTick of the app itself, where they never run: regions have worlds of \
             their own, add them by app.add_region_plugins(|region| {{ region.add_systems(RegionTick, ...); }})"
        );
    }
}

pub(super) fn exit_on_failure(mut exit: MessageWriter<AppExit>) {
    exit.write(AppExit::error());
}
