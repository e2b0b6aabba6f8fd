//! The order in which a tick runs the game's schedules.

use super::info::RegionInfo;
use super::task_progress::TaskStep;
use bevy::app::MainScheduleOrder;
use bevy::ecs::change_detection::Tick;
use bevy::ecs::message::MessageRegistry;
use bevy::ecs::schedule::{InternedScheduleLabel, MultiThreadedExecutor, ScheduleLabel, SingleThreadedExecutor};
use bevy::prelude::*;
use std::mem;

/// The schedule state that [`simulate`] keeps outside the world: looking up a resource, removing it and inserting it
/// again would be most of the cost of a small tick.
pub struct TickSchedules {
    /// The startup schedules first.
    order: Vec<InternedScheduleLabel>,
    startup: usize,
    has_started: bool,
    messages: Vec<MessageRegistry>,
    last_update: Tick,
}

impl FromWorld for TickSchedules {
    /// Takes the order that the plugins left.
    fn from_world(world: &mut World) -> Self {
        let MainScheduleOrder { labels, startup_labels } = world.resource::<MainScheduleOrder>();
        let order = startup_labels.iter().chain(labels).copied().collect();
        let (startup, last_update) = (startup_labels.len(), Tick::new(0));
        Self { order, startup, has_started: false, messages: Vec::new(), last_update }
    }
}

/// Runs the schedules of one tick, with the startup schedules only in the first one.
pub fn simulate(world: &mut World, mut schedules: Local<TickSchedules>) {
    let progress = world.resource::<RegionInfo>().progress.clone();
    let TickSchedules { order, startup, has_started, .. } = &mut *schedules;
    progress.name_schedules(|| order.iter().map(|label| format!("{label:?}")).collect());
    let skipped = if mem::replace(has_started, true) { *startup } else { 0 };
    for number in skipped..order.len() {
        if number == schedules.startup {
            schedules.update_messages(world);
        }
        progress.pass_schedule(number);
        // A schedule without systems does not exist.
        let label = schedules.order[number];
        let _ = debug_span!("schedule", name = ?label).in_scope(|| world.try_run_schedule(label));
    }
    progress.pass(TaskStep::Sending);
}

impl TickSchedules {
    /// Drops messages that are two ticks old.
    fn update_messages(&mut self, world: &mut World) {
        // Contains message types registered by plugins, or by a system since then.
        self.messages.extend(world.remove_resource::<MessageRegistry>());
        for registry in &mut self.messages {
            registry.run_updates(world, self.last_update);
        }
        // Messages from the first system of this tick must be newer.
        self.last_update = world.increment_change_tick();
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
        match parallel {
            true => schedule.set_executor(MultiThreadedExecutor::new()),
            false => schedule.set_executor(SingleThreadedExecutor::new()),
        };
    }
}
