//! How region worlds are built: the game's plugins, its registrations, and this crate's systems around them.

use super::bodies::floor::RegionFollowers;
use super::columns::blocks::RegionColumns;
use super::ground::GroundFault;
use super::info::RegionInfo;
use super::schedules::{OwnMessages, set_executors, tick_order};
use super::template_error::RegionTemplateError;
use super::world::{RegionContents, RegionWorld};
use super::{BlockChanged, BlockTick, ColumnRestored, GroundSettings, RandomTick, RegionRandom, RuleLoop, SplitMix64};
use crate::block::BlockRegistry;
use crate::simulation::block_types::BlockTypes;
use crate::simulation::components::RegionComponents;
use crate::simulation::entities::EntityIndex;
use crate::simulation::letters::post::ColumnReady;
use crate::simulation::letters::post::{Post, register_message};
use crate::simulation::letters::shared_messages::SharedMessages;
use crate::simulation::profile::RegionProfiler;
use crate::simulation::schedules::RegionTick;
use crate::simulation::work::new_columns::NewColumn;
use bevy::ecs::error::FallbackErrorHandler;
use bevy::ecs::message::MessageRegistry;
use bevy::prelude::*;
use bevy::time::TimePlugin;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type RegionPlugins = Arc<dyn Fn(&mut SubApp) + Send + Sync>;

/// The blueprint of every region world: the game's registrations on its app before it ran.
#[derive(Clone)]
pub struct RegionTemplate {
    /// The plugins given to `add_region_plugins`, in order.
    pub plugins: Vec<RegionPlugins>,
    /// The components that travel, are saved, or are mirrored.
    pub components: Arc<RegionComponents>,
    /// The messages that can be sent to other servers.
    pub messages: Arc<SharedMessages>,
    /// The block types of the world.
    pub blocks: Arc<BlockRegistry>,
    /// The app's type registry, shared.
    pub types: AppTypeRegistry,
    /// The app's error handler, if the app has set one.
    pub error_handler: Option<FallbackErrorHandler>,
    /// The number of entities from which a region runs its systems in parallel, on the app's compute threads.
    pub parallel_from: usize,
    /// The number of actions that an entity may do in a second, and at once.
    pub actions_per_second: u16,
    /// The seed of the random numbers and of the entities' ids.
    pub seed: u64,
    /// Worlds that a thread made while it was idle. A world that has ticked never returns to this list, because its contents
    /// cannot be distinguished from the additions of a game's plugin.
    pub fresh: Arc<Mutex<Vec<RegionWorld>>>,
}

/// The number of worlds made in advance.
const FRESH_WORLDS: usize = 8;

impl RegionTemplate {
    fn fresh(&self) -> MutexGuard<'_, Vec<RegionWorld>> {
        self.fresh.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A world for a region: one made in advance, or a new one.
    pub(super) fn take(&self) -> Result<RegionWorld, RegionTemplateError> {
        let fresh = self.fresh().pop();
        fresh.map_or_else(|| self.build(), Ok)
    }

    /// Makes one more world in advance if there is room for it. Returns `true` if it did.
    pub fn refill(&self) -> bool {
        if self.fresh().len() >= FRESH_WORLDS {
            return false;
        }
        // The region that needs a world reports the errors of the template.
        let made = self.build().map(|world| self.fresh().push(world));
        made.is_ok()
    }

    /// Builds a region world that has not ticked yet and is not assigned to a region.
    fn build(&self) -> Result<RegionWorld, RegionTemplateError> {
        let mut app = SubApp::new();
        // It only updates messages, which `TickSchedules` does.
        app.world_mut().resource_mut::<Schedules>().remove(First);
        app.insert_resource(self.types.clone())
            .insert_resource(BlockTypes(self.blocks.clone()))
            .init_resource::<MessageRegistry>()
            .insert_resource(tick_order(RegionTick))
            .init_resource::<Time>()
            .init_schedule(RegionTick)
            .init_resource::<RegionColumns>()
            .init_resource::<GroundSettings>()
            .init_resource::<EntityIndex>()
            .insert_resource(RegionFollowers(self.components.clone()))
            .insert_resource(RegionRandom(SplitMix64::new(self.seed)))
            .init_resource::<Post>()
            .init_resource::<RegionInfo>();
        let world = app.world_mut();
        OwnMessages::add::<BlockTick>(world);
        OwnMessages::add::<BlockChanged>(world);
        OwnMessages::add::<RandomTick>(world);
        OwnMessages::add::<RuleLoop>(world);
        OwnMessages::add::<ColumnRestored>(world);
        OwnMessages::add::<NewColumn>(world);
        register_message::<ColumnReady>(&mut app);
        if let Some(handler) = self.error_handler {
            app.insert_resource(handler);
        }
        for plugins in &self.plugins {
            plugins(&mut app);
        }
        if let Some(GroundFault(error)) = app.world_mut().remove_resource() {
            return Err(error.into());
        }
        if app.is_plugin_added::<TimePlugin>() {
            return Err(RegionTemplateError::TimePlugin);
        }
        app.finish();
        app.cleanup();
        let world = app.world_mut();
        set_executors(world, false);
        let (components, seed) = (self.components.clone(), self.seed);
        let mut contents = RegionContents { components, seed, ..RegionContents::from_world(world) };
        contents.profiler =
            RegionProfiler::install(&mut world.resource_mut::<Schedules>(), contents.schedules.region_tick());
        world.insert_resource(contents.profiler.clone());
        contents.schedules.parallel_from = self.parallel_from;
        contents.actions.per_second = self.actions_per_second.into();
        Ok(RegionWorld { app, contents })
    }

    /// Makes one region world and drops it, so that errors of the template show before the first region ticks.
    pub fn check(&self) -> Result<(), RegionTemplateError> {
        self.components.check()?;
        let RegionWorld { mut app, mut contents } = self.build()?;
        check_threads(app.world_mut(), contents.schedules.region_tick())
    }
}

/// Checks that nothing in the world is bound to one thread. It initializes systems for the world, so the world must not be
/// used afterwards.
fn check_threads(world: &mut World, region_tick: &mut Schedule) -> Result<(), RegionTemplateError> {
    let bound = world.storages().non_sends.iter().find(|(_, data)| data.is_present());
    if let Some((id, _)) = bound {
        let name = world.components().get_name(id).map_or_else(|| "a value".to_owned(), |name| name.to_string());
        return Err(RegionTemplateError::NonSend(name));
    }
    let mut schedules = mem::take(&mut *world.resource_mut::<Schedules>());
    for schedule in schedules.iter_mut().map(|(_, schedule)| schedule).chain([region_tick]) {
        // A schedule that fails to initialize fails again when it runs: that halts a region, but not the app.
        if !matches!(catch_unwind(AssertUnwindSafe(|| schedule.initialize(world))), Ok(Ok(_))) {
            continue;
        }
        let mut systems = schedule.systems().into_iter().flatten();
        if let Some((_, system)) = systems.find(|(_, system)| !system.is_send() && !system.is_exclusive()) {
            return Err(RegionTemplateError::NonSendSystem(system.name().to_string()));
        }
    }
    Ok(())
}
