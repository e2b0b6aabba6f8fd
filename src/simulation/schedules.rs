//! The order in which a tick runs the region's schedules.

use super::task_progress::{TaskProgress, TaskStep};
use bevy::app::MainScheduleOrder;
use bevy::ecs::change_detection::Tick;
use bevy::ecs::message::MessageRegistry;
use bevy::ecs::schedule::InternedScheduleLabel;
use bevy::prelude::*;
use std::sync::Arc;

/// A tick's schedules in their order, and the update of the messages before them.
///
/// What every tick needs is kept here, out of the world: to look up a resource, to take it out and to put it back is most
/// of what a small tick costs.
#[derive(Default)]
pub(super) struct TickSchedules {
    /// The startup schedules first.
    order: Arc<[InternedScheduleLabel]>,
    startup: usize,
    messages: Vec<MessageRegistry>,
    last_update: Tick,
}

impl TickSchedules {
    /// What the plugins made of the order, and the messages that they registered.
    pub fn new(world: &mut World) -> Self {
        let MainScheduleOrder { labels, startup_labels } = world.resource::<MainScheduleOrder>();
        let order = startup_labels.iter().chain(labels).copied().collect();
        let startup = startup_labels.len();
        Self { order, startup, messages: world.remove_resource().into_iter().collect(), last_update: Tick::new(0) }
    }

    /// Runs what one tick consists of; the startup schedules only in the first one.
    pub fn run(&mut self, world: &mut World, is_first: bool, progress: &TaskProgress) {
        let order = self.order.clone();
        progress.name_schedules(|| order.iter().map(|label| format!("{label:?}")).collect());
        let skipped = if is_first { 0 } else { self.startup };
        for (number, label) in order.iter().enumerate().skip(skipped) {
            if number == self.startup {
                self.update_messages(world);
            }
            progress.pass(TaskStep::Schedule(u8::try_from(number).unwrap_or(u8::MAX)));
            // A schedule that nobody added a system to does not exist.
            let _ = world.try_run_schedule(*label);
        }
    }

    /// Forgets messages that had their two ticks.
    fn update_messages(&mut self, world: &mut World) {
        // Registered since, by a system.
        if world.contains_resource::<MessageRegistry>() {
            self.messages.extend(world.remove_resource::<MessageRegistry>());
        }
        for registry in &mut self.messages {
            registry.run_updates(world, self.last_update);
        }
        // What the first system of this tick writes must be newer.
        self.last_update = world.increment_change_tick();
    }
}
