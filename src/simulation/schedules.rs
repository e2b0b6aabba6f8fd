//! The order in which a tick runs the game's schedules.

use crate::simulation::task_progress::TaskProgress;
use bevy::app::MainScheduleOrder;
use bevy::ecs::change_detection::Tick;
use bevy::ecs::message::MessageRegistry;
use bevy::ecs::schedule::{InternedScheduleLabel, MultiThreadedExecutor, ScheduleLabel, SingleThreadedExecutor};
use bevy::prelude::*;
use std::mem;
use std::ops::Range;

/// The game's schedule in a region world. It runs once a tick, between `FixedUpdate` and `Update`.
#[derive(ScheduleLabel, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegionTick;

/// How a tick runs the game's schedules. Kept outside the world: looking up a resource costs as much as a small system.
pub struct TickSchedules {
    /// The startup schedules first.
    order: Vec<InternedScheduleLabel>,
    startup: usize,
    has_started: bool,
    /// The number of entities from which the systems run in parallel, and whether they do now.
    pub parallel_from: usize,
    is_parallel: bool,
    /// The places in `order` of the schedules that exist.
    existing: Vec<usize>,
    /// [`RegionTick`]. Only this crate runs it, so it need not be taken out of the world for each tick.
    region_tick: Schedule,
    /// The number of archetypes when the world was last searched for new message types.
    archetypes: usize,
    /// Message types of the game.
    games: Vec<MessageRegistry>,
    last_update: Tick,
    /// Message types that this crate writes.
    own: MessageRegistry,
    last_own_update: Tick,
    /// The number of ticks in which the crate's own messages must still be updated.
    own_updates: u32,
    /// Ticks so far.
    ticks: u32,
}

/// The number of ticks in which messages are updated after they were written: then they are gone.
const UPDATES: u32 = 3;

/// In one of so many ticks, what rarely happens is looked for: that a system has added a schedule, or written a message of a type
/// that otherwise only this crate writes.
const LOOK_PERIOD: u32 = 64;

impl FromWorld for TickSchedules {
    /// Takes the order that the plugins left, the message types that were registered, and [`RegionTick`].
    fn from_world(world: &mut World) -> Self {
        let region_tick = world.get_resource_or_init::<Schedules>().remove(RegionTick);
        let MainScheduleOrder { labels, startup_labels } = &*world.get_resource_or_init::<MainScheduleOrder>();
        Self {
            order: startup_labels.iter().chain(labels).copied().collect(),
            startup: startup_labels.len(),
            has_started: false,
            parallel_from: usize::MAX,
            is_parallel: false,
            existing: Vec::new(),
            region_tick: region_tick.unwrap_or_else(|| Schedule::new(RegionTick)),
            archetypes: 0,
            games: Vec::new(),
            last_update: Tick::new(0),
            own: world.remove_resource().map(|OwnMessages(own)| own).unwrap_or_default(),
            last_own_update: Tick::new(0),
            own_updates: 0,
            ticks: 0,
        }
    }
}

impl TickSchedules {
    /// Runs the schedules of one tick, with the startup schedules only in the first one.
    pub fn run(&mut self, world: &mut World, progress: &TaskProgress) {
        progress.name_schedules(|| self.order.iter().map(|label| format!("{label:?}")).collect());
        // Before the first schedule does so, which would not reach this one.
        if let Some(check) = world.check_change_ticks() {
            self.region_tick.check_change_ticks(check);
        }
        let is_turn = self.ticks.is_multiple_of(LOOK_PERIOD);
        self.ticks = self.ticks.wrapping_add(1);
        if !mem::replace(&mut self.has_started, true) {
            self.find_schedules(world);
            self.run_schedules(0..self.startup, world, progress);
        }
        if is_turn {
            self.find_schedules(world);
        }
        self.update_messages(world, is_turn);
        self.run_schedules(self.startup..self.order.len(), world, progress);
    }

    /// Runs the schedules at these places of the order that exist.
    fn run_schedules(&mut self, places: Range<usize>, world: &mut World, progress: &TaskProgress) {
        for index in 0..self.existing.len() {
            let place = self.existing[index];
            if !places.contains(&place) {
                continue;
            }
            progress.pass_schedule(place);
            let label = self.order[place];
            let _span = debug_span!("schedule", name = ?label).entered();
            if label == self.region_tick.label() {
                self.region_tick.run(world);
            } else {
                // It may have been removed.
                let _ = world.try_run_schedule(label);
            }
        }
    }

    /// Selects the executor of all schedules for this number of entities. A crowded region runs its systems in parallel, until it has
    /// fallen to half of the threshold again.
    pub fn choose_executors(&mut self, world: &mut World, entities: usize) {
        let from = if self.is_parallel { self.parallel_from / 2 } else { self.parallel_from };
        let is_parallel = entities >= from;
        if mem::replace(&mut self.is_parallel, is_parallel) != is_parallel {
            set_executors(world, is_parallel);
            set_executor(&mut self.region_tick, is_parallel);
        }
    }

    /// [`RegionTick`].
    pub fn region_tick(&mut self) -> &mut Schedule {
        &mut self.region_tick
    }

    /// Notes that the crate writes messages of its own in this task.
    pub fn note_messages(&mut self) {
        self.own_updates = UPDATES;
    }

    /// Finds the schedules that exist: one without systems does not. A system may add one later.
    fn find_schedules(&mut self, world: &World) {
        let schedules = world.resource::<Schedules>();
        if schedules.contains(RegionTick) {
            error_once!(
                "systems that are added to RegionTick in a running region are ignored: add them with add_region_plugins"
            );
        }
        let exists = |label| label == self.region_tick.label() || schedules.contains(label);
        self.existing.clear();
        self.existing.extend((0..self.order.len()).filter(|number| exists(self.order[*number])));
    }

    /// Drops messages that are two ticks old.
    fn update_messages(&mut self, world: &mut World, is_turn: bool) {
        let archetypes = world.archetypes().len();
        // Contains message types registered by plugins, or by a system since then: such a type is a new kind of resource.
        if (mem::replace(&mut self.archetypes, archetypes) != archetypes || is_turn)
            && let Some(registry) = world.remove_resource::<MessageRegistry>()
        {
            self.games.push(registry);
        }
        for registry in &mut self.games {
            registry.run_updates(world, self.last_update);
        }
        if self.own_updates > 0 || is_turn {
            self.own_updates = self.own_updates.saturating_sub(1);
            self.own.run_updates(world, self.last_own_update);
            self.last_own_update = world.change_tick();
        }
        // Messages from the first system of this tick must be newer.
        self.last_update = world.increment_change_tick();
    }
}

/// The message types that only this crate writes: it knows when there are any.
#[derive(Resource, Default)]
pub struct OwnMessages(MessageRegistry);

impl OwnMessages {
    /// Adds a message type to a region world that is being made.
    pub fn add<M: Message>(world: &mut World) {
        if world.contains_resource::<Messages<M>>() {
            return;
        }
        let games = world.remove_resource::<MessageRegistry>();
        let OwnMessages(own) = world.remove_resource().unwrap_or_default();
        world.insert_resource(own);
        MessageRegistry::register_message::<M>(world);
        if let Some(own) = world.remove_resource() {
            world.insert_resource(OwnMessages(own));
        }
        world.insert_resource(games.unwrap_or_default());
    }
}

/// The order of a tick's schedules; plugins such as `StatesPlugin` insert theirs.
pub fn tick_order(region_tick: impl ScheduleLabel) -> MainScheduleOrder {
    MainScheduleOrder {
        labels: vec![
            First.intern(),
            PreUpdate.intern(),
            FixedUpdate.intern(),
            region_tick.intern(),
            Update.intern(),
            PostUpdate.intern(),
            Last.intern(),
        ],
        startup_labels: vec![PreStartup.intern(), Startup.intern(), PostStartup.intern()],
    }
}

/// Selects the executor of the region's schedules. The parallel one spreads systems over the frame's compute threads and
/// waits for them, which pays off only in a crowded region.
pub fn set_executors(world: &mut World, parallel: bool) {
    for (_, schedule) in world.resource_mut::<Schedules>().iter_mut() {
        set_executor(schedule, parallel);
    }
}

fn set_executor(schedule: &mut Schedule, parallel: bool) {
    match parallel {
        true => schedule.set_executor(MultiThreadedExecutor::new()),
        false => schedule.set_executor(SingleThreadedExecutor::new()),
    };
}
