//! The order in which a tick runs the game's schedules.

use super::info::RegionInfo;
use super::task_progress::TaskStep;
use bevy::app::MainScheduleOrder;
use bevy::ecs::change_detection::Tick;
use bevy::ecs::message::MessageRegistry;
use bevy::ecs::schedule::{InternedScheduleLabel, MultiThreadedExecutor, ScheduleLabel, SingleThreadedExecutor};
use bevy::prelude::*;
use std::mem;

/// What [`simulate`] keeps out of the world: to look up a resource, to take it out and to put it back is most of what a small
/// tick costs.
pub struct TickSchedules {
    /// The startup schedules first.
    order: Vec<InternedScheduleLabel>,
    startup: usize,
    has_started: bool,
    messages: Vec<MessageRegistry>,
    last_update: Tick,
}

impl FromWorld for TickSchedules {
    /// What the plugins made of the order.
    fn from_world(world: &mut World) -> Self {
        let MainScheduleOrder { labels, startup_labels } = world.resource::<MainScheduleOrder>();
        let order = startup_labels.iter().chain(labels).copied().collect();
        let (startup, last_update) = (startup_labels.len(), Tick::new(0));
        Self { order, startup, has_started: false, messages: Vec::new(), last_update }
    }
}

/// Runs what one tick consists of; the startup schedules only in the first one.
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
        // A schedule that nobody added a system to does not exist.
        let _ = world.try_run_schedule(schedules.order[number]);
    }
    progress.pass(TaskStep::Sending);
}

impl TickSchedules {
    /// Forgets messages that had their two ticks.
    fn update_messages(&mut self, world: &mut World) {
        // Registered by the plugins, or by a system since.
        self.messages.extend(world.remove_resource::<MessageRegistry>());
        for registry in &mut self.messages {
            registry.run_updates(world, self.last_update);
        }
        // What the first system of this tick writes must be newer.
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

/// Which executor runs the region's schedules. The parallel one spreads systems over the frame's compute threads and
/// waits for them: worth it only where there is much to do.
pub fn set_executors(world: &mut World, parallel: bool) {
    for (_, schedule) in world.resource_mut::<Schedules>().iter_mut() {
        match parallel {
            true => schedule.set_executor(MultiThreadedExecutor::new()),
            false => schedule.set_executor(SingleThreadedExecutor::new()),
        };
    }
}
