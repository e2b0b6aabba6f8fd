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
use super::travel::entities::EntityIndex;
use super::travel::merge_split::{absorb, split};
use super::world::RegionWorld;
use crate::region::{RegionId, RegionPart};
use bevy::prelude::*;
use std::{mem, sync::Arc, time::Duration};

/// A region world with what it is to do: handed to a region thread, and back with an [`Outbox`].
pub struct Assignment {
    /// The region.
    pub region: RegionId,
    /// Where it is.
    pub ground: Arc<ColumnSource>,
    /// Its world, made on the region thread if there is none, and behind it those of regions that merged into it: they are
    /// absorbed first.
    pub worlds: Vec<RegionWorld>,
    /// What waits for it.
    pub inbox: Inbox,
    /// What is to be done.
    pub task: Task,
    /// The number of this assignment, never used twice while the world is open: random numbers and new entities' ids
    /// come from it.
    pub number: u64,
    /// The dimension's clock now, and the region's period on it: also a task without a tick counts time with them.
    pub clock: (Duration, Duration),
    /// Where the region thread says what it is doing.
    pub progress: Arc<TaskProgress>,
}

impl Assignment {
    /// Does the work. The world is the only one of [`worlds`](Self::worlds) then. A panic of a game's system is passed on to
    /// the caller, who can [`salvage`](Self::salvage) after it.
    pub fn run(&mut self, template: &RegionTemplate) -> Result<Box<Outbox>, RegionTemplateError> {
        let Self { region, ground, worlds, inbox, task, number, clock, progress } = self;
        progress.begin();
        if worlds.is_empty() {
            progress.pass(TaskStep::Making);
            let mut world = template.take()?;
            world.settle(*region, ground);
            worlds.push(world);
        }
        let world = &mut worlds[0];
        // What waits for a time in this world, or comes in now, counts from this clock.
        let clock = (if let Task::Tick { clock, .. } = task { *clock } else { clock.0 }, clock.1);
        world.begin(*region, *number, clock, matches!(task, Task::Tick { .. }), progress);
        world.contents.inbox = mem::take(inbox);
        progress.pass(TaskStep::Absorbing);
        while worlds.len() > 1 {
            // Each waits where a panic of the game does not reach it until it is taken in.
            let other = worlds.remove(1);
            let world = &mut worlds[0];
            absorb(world.app.world_mut(), &mut world.contents, other);
        }
        Ok(worlds[0].run(task, progress))
    }

    /// What is left after a panic.
    pub fn salvage(&mut self) -> Salvage {
        // The first one is dropped with this: that may panic once more.
        let worlds = self.worlds.split_off(self.worlds.len().min(1));
        let mut found = self.worlds.first_mut().map(|world| world.salvage(self.region)).unwrap_or_default();
        let Inbox { travellers, resources, edits, letters, .. } = mem::take(&mut self.inbox);
        found.inbox.append(Inbox { travellers, resources, edits, letters, ..Inbox::default() });
        Salvage { worlds, ..found }
    }
}

/// What a region thread is to do with a region world.
#[derive(Clone, Debug, Default)]
pub enum Task {
    /// Run one tick.
    Tick {
        /// The dimension's clock at this tick.
        clock: Duration,
        /// The time since the tick before, as the game is to see it: pauses are not part of it.
        delta: Duration,
        /// Whether everything unsaved is to be handed out.
        save: bool,
    },
    /// Take in what waits and hand out everything unsaved, without a tick.
    #[default]
    Save,
    /// The last task of a world: do the same, run the closures that wait, and give up columns also below viewers.
    Close,
    /// Do the same, then hand over what lies in the parts' sections.
    Split {
        /// The parts that leave.
        parts: Vec<RegionPart>,
    },
}

impl RegionWorld {
    /// A task begins.
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
        // Before anything comes in: hooks and observers of an arrival may draw.
        let mut random = SplitMix64::from_parts([contents.seed, number]);
        let mut index = world.resource_mut::<EntityIndex>();
        index.seed([random.next_u64(), random.next_u64()]);
        if is_other {
            // A region that never ticked took over this world: whoever asks must learn where its entities are.
            index.touch_all();
        }
        // A crowded region runs its systems in parallel; one that is half empty again does not.
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
        receive(world, contents, task);
        if let Task::Tick { .. } = task {
            main.run(world);
            work(world, contents);
            world.resource_mut::<RegionInfo>().ticks += 1;
        }
        progress.pass(TaskStep::Sending);
        send(world, contents, task);
        world.clear_trackers();
        world.check_change_ticks();
        if let Task::Split { parts } = task {
            progress.pass(TaskStep::Splitting);
            // What was handed out is whole, whatever hooks of the game do now.
            contents.is_handed_out = true;
            split(world, contents, parts);
        }
        let mut outbox = mem::take(&mut contents.outbox);
        outbox.columns = world.resource::<RegionColumns>().columns().len();
        let mut index = world.resource_mut::<EntityIndex>();
        (outbox.appeared, outbox.gone) = index.take_touched();
        outbox.entities = index.len();
        // It has ended well.
        (contents.edits, contents.handed_over, contents.is_handed_out) = (Vec::new(), Vec::new(), false);
        outbox
    }
}
