//! The tasks that a region thread runs in a region world.

use super::columns::blocks::RegionColumns;
use super::columns::column_source::ColumnSource;
use super::columns::work::work;
use super::inbox_outbox::{Inbox, Outbox};
use super::info::RegionInfo;
use super::random::{RegionRandom, SplitMix64};
use super::receive::receive;
use super::salvage::Salvage;
use super::schedules::set_executors;
use super::send::send;
use super::task_progress::{TaskProgress, TaskStep};
use super::template::RegionTemplate;
use super::template_error::RegionTemplateError;
use super::time_of_day::ClockedTimeOfDay;
use super::travel::entities::EntityIndex;
use super::travel::merge_split::{absorb, split};
use super::world::RegionWorld;
use crate::region::{RegionId, RegionPart};
use bevy::prelude::*;
use std::{mem, sync::Arc, time::Duration};

/// A region world and its task. It goes to a region thread and returns with an [`Outbox`].
pub struct Assignment {
    /// The region.
    pub region: RegionId,
    /// The source of the region's columns.
    pub ground: Arc<ColumnSource>,
    /// The region's world, made on the region thread if there is none, followed by the worlds of regions that merged into it,
    /// which are absorbed first.
    pub worlds: Vec<RegionWorld>,
    /// The region's inbox.
    pub inbox: Inbox,
    /// The task.
    pub task: Task,
    /// The number of this assignment, never used twice while the world is open. It seeds random numbers and the ids of new
    /// entities.
    pub number: u64,
    /// The dimension's clock now, and the region's period on it. A task without a tick counts time with them too.
    pub clock: (Duration, Duration),
    /// The time of day in the dimension, if it has one.
    pub time_of_day: Option<ClockedTimeOfDay>,
    /// The progress that the region thread reports.
    pub progress: Arc<TaskProgress>,
}

impl Assignment {
    /// Runs the task. Afterwards [`worlds`](Self::worlds) holds a single world. A panic in a game's system propagates to
    /// the caller, who can [`salvage`](Self::salvage) afterwards.
    pub fn run(&mut self, template: &RegionTemplate) -> Result<Box<Outbox>, RegionTemplateError> {
        let Self { region, ground, worlds, inbox, task, number, clock, time_of_day, progress } = self;
        progress.begin();
        if worlds.is_empty() {
            progress.pass(TaskStep::Making);
            let mut world = template.take()?;
            world.settle(*region, ground);
            worlds.push(world);
        }
        let world = &mut worlds[0];
        // Delays of letters that wait in this world, or arrive now, count from this clock.
        let clock = (if let Task::Tick { clock, .. } = task { *clock } else { clock.0 }, clock.1);
        world.begin(*region, *number, clock, matches!(task, Task::Tick { .. }), progress);
        let time_of_day = time_of_day.map(|time| time.at(clock.0));
        world.app.world_mut().resource_mut::<RegionColumns>().time_of_day = time_of_day;
        world.contents.inbox = mem::take(inbox);
        progress.pass(TaskStep::Absorbing);
        while worlds.len() > 1 {
            // Each world stays out of reach of a panic in the game until it is absorbed.
            let other = worlds.remove(1);
            let world = &mut worlds[0];
            absorb(world.app.world_mut(), &mut world.contents, other);
        }
        Ok(worlds[0].run(task, progress))
    }

    /// Collects the remains after a panic.
    pub fn salvage(&mut self) -> Salvage {
        // The first world is dropped with `self`. That may panic once more.
        let worlds = self.worlds.split_off(self.worlds.len().min(1));
        let mut found = self.worlds.first_mut().map(|world| world.salvage(self.region)).unwrap_or_default();
        let Inbox { travellers, resources, edits, letters, .. } = mem::take(&mut self.inbox);
        found.inbox.append(Inbox { travellers, resources, edits, letters, ..Inbox::default() });
        Salvage { worlds, ..found }
    }
}

/// The task of a region thread for a region world.
#[derive(Clone, Debug, Default)]
pub enum Task {
    /// Run one tick.
    Tick {
        /// The dimension's clock at this tick.
        clock: Duration,
        /// The time since the tick before, as the game sees it, without pauses.
        delta: Duration,
        /// `true` if all unsaved data is handed out.
        save: bool,
    },
    /// Receive the inbox and hand out everything unsaved, without a tick.
    #[default]
    Save,
    /// The last task of a world: as `Save`, but also run the waiting closures and evict columns even around viewers.
    Close,
    /// As `Save`, then hand over the contents of the parts' sections.
    Split {
        /// The parts that split off.
        parts: Vec<RegionPart>,
    },
}

impl RegionWorld {
    fn begin(
        &mut self,
        region: RegionId,
        number: u64,
        (clock, period): (Duration, Duration),
        is_tick: bool,
        progress: &Arc<TaskProgress>,
    ) {
        let (world, contents) = (self.app.world_mut(), &mut self.contents);
        let began = world.increment_change_tick();
        (contents.number, contents.clock, contents.period) = (number, clock, period);
        contents.seen = contents.began;
        if is_tick {
            contents.began = Some(began);
        }
        world.resource_mut::<RegionColumns>().ticks.set_clock(clock, period);
        let mut info = world.resource_mut::<RegionInfo>();
        info.progress = progress.clone();
        let is_other = mem::replace(&mut info.region, region) != region;
        // Set before anything arrives: hooks and observers of an arrival may draw random numbers.
        let mut random = SplitMix64::from_parts([contents.seed, number]);
        let mut index = world.resource_mut::<EntityIndex>();
        index.seed([random.next_u64(), random.next_u64()]);
        if is_other {
            // A region that never ticked took over this world, and the coordinator must learn where its entities are.
            index.touch_all();
        }
        // A crowded region runs its systems in parallel, until it has fallen to half of the threshold again.
        let from = if contents.is_parallel { contents.parallel_from / 2 } else { contents.parallel_from };
        let is_parallel = index.len() >= from;
        world.resource_mut::<RegionRandom>().0 = random;
        if mem::replace(&mut contents.is_parallel, is_parallel) != is_parallel {
            set_executors(world, is_parallel);
        }
    }

    fn run(&mut self, task: &Task, progress: &TaskProgress) -> Box<Outbox> {
        let Self { app, main, contents } = self;
        let world = app.world_mut();
        progress.pass(TaskStep::Receiving);
        debug_span!("receive").in_scope(|| receive(world, contents, task));
        if let Task::Tick { .. } = task {
            debug_span!("simulate").in_scope(|| main.run(world));
            debug_span!("work").in_scope(|| work(world, contents));
            world.resource_mut::<RegionInfo>().ticks += 1;
        }
        progress.pass(TaskStep::Sending);
        debug_span!("send").in_scope(|| send(world, contents, task));
        world.clear_trackers();
        world.check_change_ticks();
        if let Task::Split { parts } = task {
            progress.pass(TaskStep::Splitting);
            // The outbox is complete. Hooks of the game no longer affect it.
            contents.is_handed_out = true;
            split(world, contents, parts);
        }
        let mut outbox = mem::take(&mut contents.outbox);
        outbox.columns = world.resource::<RegionColumns>().columns().len();
        let mut index = world.resource_mut::<EntityIndex>();
        (outbox.appeared, outbox.gone) = index.take_touched();
        outbox.entities = index.len();
        // The task has ended without a panic.
        (contents.edits, contents.handed_over, contents.is_handed_out) = (Vec::new(), Vec::new(), false);
        outbox
    }
}
