//! How region worlds are made: the game's plugins, its registrations, and our systems around them.

use super::receive::receive;
use super::send::send;
use super::travel::unregistered::check_components;
use super::world::simulate;
use super::{RegionComponents, RegionWorld};
use crate::block::{BlockId, BlockRegistry};
use bevy::app::MainScheduleOrder;
use bevy::ecs::error::FallbackErrorHandler;
use bevy::ecs::message::MessageRegistry;
use bevy::ecs::schedule::{MultiThreadedExecutor, ScheduleLabel, SingleThreadedExecutor};
use bevy::prelude::*;
use bevy::time::TimePlugin;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The game's schedule in a region world: run once a tick, between `FixedUpdate` and `Update`.
#[derive(ScheduleLabel, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegionTick;

/// The schedule that a region thread runs for a tick. It holds the three [`RegionSystems`], chained.
#[derive(ScheduleLabel, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegionMain;

/// The parts of a region's tick, in this order, in [`RegionMain`].
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegionSystems {
    /// Takes in what waits: merged regions, columns, entities, edits, letters.
    Receive,
    /// Runs First, PreUpdate, FixedUpdate, [`RegionTick`], Update, PostUpdate and Last.
    Simulate,
    /// Collects what goes out: changed chunks, entities that left, mirrors, what is to be saved.
    Send,
}

/// Why the region worlds cannot be made as the game wants them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegionTemplateError {
    /// A region has a clock of its own, the dimension's.
    #[error(
        "TimePlugin was added to the region worlds: leave it out, `Res<Time>` in a region is the dimension's clock \
         and advances by one tick"
    )]
    TimePlugin,
    /// A relationship has two ends, which must be on the way together.
    #[error(
        "component {0} was registered as a region component, but is a relationship or the target of one: call \
         register_region_relationship for the relationship instead (ChildOf is built in)"
    )]
    Relationship(&'static str),
    /// Of two types with one path, nobody could tell the stored values apart.
    #[error(
        "two saved components have the type path {0}: give one of them another, by #[type_path = \"...\"] or #[type_name = \
         \"...\"] beside its derive of TypePath or Reflect"
    )]
    SavedTwice(&'static str),
    /// A region ticks on any of the region threads, and its data goes from one to the next.
    #[error(
        "{0} is NonSend, and was added to the region worlds, which go from thread to thread: keep it in the main world, or \
         make it a Resource that is Send and Sync"
    )]
    NonSend(String),
    /// A region ticks on any of the region threads.
    #[error(
        "the system {0} of the region worlds wants to run on the main thread (NonSend, NonSendMut or NonSendMarker), and \
         regions tick on threads of their own: add it to the main app"
    )]
    NonSendSystem(String),
}

/// A block registry that systems can ask for, in the main world and in regions.
#[derive(Resource, Clone, Deref)]
pub struct BlockTypes(pub Arc<BlockRegistry>);

impl BlockTypes {
    /// The id of the type with this name, as [`BlockRegistry::id`] gives it. In debug builds, a name that no type has is
    /// logged once, with the name that may have been meant.
    pub fn id(&self, name: &str) -> Option<BlockId> {
        let found = self.0.id(name);
        if cfg!(debug_assertions) && found.is_none() {
            self.tell_unknown(name);
        }
        found
    }

    fn tell_unknown(&self, name: &str) {
        /// So many names are told; a game may look for what it makes up.
        const MOST: usize = 32;
        static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
        let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() < MOST && told.insert(name.to_owned()) {
            let nearest = self.nearest_name(name).map(|nearest| format!("; is {nearest:?} meant?"));
            warn!("no block type is called {name:?}{}", nearest.unwrap_or_default());
        }
    }
}

type RegionPlugins = Arc<dyn Fn(&mut SubApp) + Send + Sync>;

/// How every region world is made: what the game registered on its app before it ran.
#[derive(Clone)]
pub struct RegionTemplate {
    /// What `add_region_plugins` was given, in order.
    pub plugins: Vec<RegionPlugins>,
    /// The components that travel, are saved, are mirrored.
    pub components: Arc<RegionComponents>,
    /// The block types of the world.
    pub blocks: Arc<BlockRegistry>,
    /// The app's type registry, shared.
    pub types: AppTypeRegistry,
    /// The app's error handler, if it has set one.
    pub error_handler: Option<FallbackErrorHandler>,
    /// From how many entities on a region runs its systems in parallel, on the app's compute threads.
    pub parallel_from: usize,
    /// Where the random numbers and the entities' ids come from.
    pub seed: u64,
}

impl RegionTemplate {
    /// A region world that has not ticked yet, and does not know of which region it will be.
    pub(super) fn build(&self) -> Result<RegionWorld, RegionTemplateError> {
        let mut app = SubApp::new();
        // Only to update messages, which TickSchedules does.
        app.world_mut().resource_mut::<Schedules>().remove(First);
        app.insert_resource(self.types.clone())
            .insert_resource(BlockTypes(self.blocks.clone()))
            .init_resource::<MessageRegistry>()
            .insert_resource(tick_order())
            .init_resource::<Time>()
            .init_schedule(RegionTick)
            .configure_sets(RegionMain, (RegionSystems::Receive, RegionSystems::Simulate, RegionSystems::Send).chain())
            .add_systems(
                RegionMain,
                (
                    receive.in_set(RegionSystems::Receive),
                    simulate.in_set(RegionSystems::Simulate),
                    // What is wrong shows before anything leaves.
                    (check_components, send).chain().in_set(RegionSystems::Send),
                ),
            );
        if let Some(handler) = self.error_handler {
            app.insert_resource(handler);
        }
        let mut region = RegionWorld::new(app, self.components.clone(), self.seed, self.parallel_from);
        for plugins in &self.plugins {
            plugins(&mut region.app);
        }
        if region.app.is_plugin_added::<TimePlugin>() {
            return Err(RegionTemplateError::TimePlugin);
        }
        region.finish();
        Ok(region)
    }

    /// Makes one region world and drops it: what is wrong with the template shows before the first region ticks.
    pub fn check(&self) -> Result<(), RegionTemplateError> {
        self.components.check()?;
        self.build()?.check_threads()
    }
}

/// Which executor runs the region's schedules. The parallel one spreads systems over the frame's compute threads and
/// waits for them: worth it only where there is much to do.
pub(super) fn set_executors(world: &mut World, parallel: bool) {
    for (_, schedule) in world.resource_mut::<Schedules>().iter_mut() {
        match parallel {
            true => schedule.set_executor(MultiThreadedExecutor::new()),
            false => schedule.set_executor(SingleThreadedExecutor::new()),
        };
    }
}

/// The order of a tick's schedules; plugins such as `StatesPlugin` insert theirs.
fn tick_order() -> MainScheduleOrder {
    MainScheduleOrder {
        labels: vec![
            First.intern(),
            PreUpdate.intern(),
            FixedUpdate.intern(),
            RegionTick.intern(),
            Update.intern(),
            PostUpdate.intern(),
            Last.intern(),
        ],
        startup_labels: vec![PreStartup.intern(), Startup.intern(), PostStartup.intern()],
    }
}
