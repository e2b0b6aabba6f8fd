//! The tasks that a region thread runs in a region world.

use crate::region::{RegionId, RegionPart};
use crate::simulation::columns::column_source::ColumnSource;
use crate::simulation::inbox_outbox::{Inbox, Outbox, RegionNumbers};
use crate::simulation::profile::{ProfiledStep, StepTimes};
use crate::simulation::random::SplitMix64;
use crate::simulation::task_progress::{TaskProgress, TaskStep};
use crate::simulation::template::RegionTemplate;
use crate::simulation::template_error::RegionTemplateError;
use crate::simulation::tick::receive::{deliver, receive};
use crate::simulation::tick::salvage::Salvage;
use crate::simulation::tick::send::send;
use crate::simulation::time_of_day::{ClockedTimeOfDay, TimeOfDay};
use crate::simulation::travel::merge_split::{absorb, split};
use crate::simulation::work::work;
use crate::simulation::world::{Begin, Ends, RegionContents, RegionWorld, get};
use crate::space::DimensionId;
use bevy::prelude::*;
use std::{mem, sync::Arc, time::Duration};

/// A region world and its task. It goes to a region thread and returns with an [`Outbox`].
pub struct Assignment {
    /// The dimension.
    pub dimension: DimensionId,
    /// The region.
    pub region: RegionId,
    /// The source of the region's columns; `None` if the region has a world, which knows it.
    pub ground: Option<Arc<ColumnSource>>,
    /// The region's world, made on the region thread if there is none, followed by the worlds of regions that merged into it,
    /// which are absorbed first.
    pub worlds: Vec<RegionWorld>,
    /// The region's inbox; `None` if it is empty.
    pub inbox: Option<Box<Inbox>>,
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
    /// Runs the task. Afterwards [`worlds`](Self::worlds) holds a single world. Returns `None` if there is nothing to report. A
    /// panic in a game's system propagates to the caller, who can [`salvage`](Self::salvage) afterwards.
    pub fn run(&mut self, template: &RegionTemplate) -> Result<Option<Box<Outbox>>, RegionTemplateError> {
        let Self { region, ground, worlds, inbox, task, number, clock, time_of_day, progress, .. } = self;
        progress.begin();
        if let (true, Some(ground)) = (worlds.is_empty(), ground.as_ref()) {
            progress.pass(TaskStep::Making);
            let mut world = template.take()?;
            world.settle(*region, ground);
            // The coordinator may still have the numbers of a world that is gone.
            world.contents.is_unknown = true;
            worlds.push(world);
        }
        // Delays of letters that wait in this world, or arrive now, count from this clock.
        let clock = (if let Task::Tick { clock, .. } = task { *clock } else { clock.0 }, clock.1);
        let has_inbox = inbox.is_some();
        let absorbs = worlds.len() > 1;
        let world = worlds.first_mut().expect("a region without a world comes with the source of its columns");
        let has_due = world.begin(*region, *number, clock, time_of_day.map(|time| time.at(clock.0)), task);
        if let Some(inbox) = inbox.take() {
            world.contents.inbox = *inbox;
        }
        if absorbs {
            progress.pass(TaskStep::Absorbing);
            worlds[0].contents.is_unknown = true;
        }
        // Each world stays out of reach of a panic in the game until it is absorbed.
        worlds[1..].reverse();
        while worlds.len() > 1
            && let Some(other) = worlds.pop()
        {
            let world = &mut worlds[0];
            absorb(world.app.world_mut(), &mut world.contents, other);
        }
        // After the merge of thousands, their places would take megabytes.
        worlds.shrink_to_fit();
        Ok(worlds[0].run(task, progress, has_inbox || absorbs || has_due))
    }

    /// Collects the remains after a panic.
    pub fn salvage(&mut self) -> Salvage {
        // The first world is dropped with `self`. That may panic once more.
        let worlds = self.worlds.split_off(self.worlds.len().min(1));
        let mut found = self.worlds.first_mut().map(|world| world.salvage(self.region)).unwrap_or_default();
        let Inbox { travellers, resources, edits, letters, .. } =
            self.inbox.take().map(|inbox| *inbox).unwrap_or_default();
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
    /// The last task of a world whose ground goes to another server: as `Save`, but also evict columns even around viewers.
    Leave,
    /// As `Save`, then hand over the contents of the parts' sections.
    Split {
        /// The parts that split off.
        parts: Vec<RegionPart>,
    },
}

impl RegionWorld {
    /// Sets the clock, the seeds and the sender of letters. Returns `true` if something in the world is due.
    fn begin(
        &mut self,
        region: RegionId,
        number: u64,
        (clock, period): (Duration, Duration),
        time_of_day: Option<TimeOfDay>,
        task: &Task,
    ) -> bool {
        let (world, contents) = (self.app.world_mut(), &mut self.contents);
        contents.number = number;
        contents.letters.set_clock(clock, period);
        contents.ticks.seen = contents.ticks.began;
        let began = world.increment_change_tick();
        let Begin { mut columns, mut info, mut index, mut random, mut post, mut time } =
            get(&mut contents.params.begin, world);
        let columns = columns.bypass_change_detection();
        columns.ticks.set_clock(clock, period);
        columns.time_of_day = time_of_day;
        // Set before anything arrives: hooks and observers of an arrival may draw random numbers.
        let mut seed = SplitMix64::from_parts([contents.seed, number]);
        let index = index.bypass_change_detection();
        index.seed([seed.next_u64(), seed.next_u64()]);
        random.bypass_change_detection().0 = seed;
        if info.region != region {
            info.region = region;
            // A region that never ticked took over this world, and the coordinator must learn where its entities are.
            index.touch_all();
            contents.is_unknown = true;
        }
        post.bypass_change_detection().set_sender(info.dimension, region, columns.columns().first().copied());
        if let Task::Tick { clock, delta, .. } = *task {
            contents.ticks.began = Some(began);
            advance_time(&mut time, clock, delta);
        }
        let entities = index.len();
        let has_due = columns.awaits_ticks() || columns.has_random_chunks() || !columns.new.is_empty();
        contents.schedules.choose_executors(world, entities);
        has_due
    }

    fn run(&mut self, task: &Task, progress: &TaskProgress, has_input: bool) -> Option<Box<Outbox>> {
        let Self { app, contents } = self;
        let world = app.world_mut();
        let mut times = StepTimes::begin(&contents.profiler, matches!(task, Task::Tick { .. }));
        if has_input {
            progress.pass(TaskStep::Receiving);
            debug_span!("receive").in_scope(|| receive(world, contents, task));
        }
        if !contents.letters.is_empty() {
            progress.pass(TaskStep::Receiving);
            deliver(world, contents, task);
        }
        times.end(ProfiledStep::Receive);
        if let Task::Tick { .. } = task {
            debug_span!("simulate").in_scope(|| contents.schedules.run(world, progress));
            times.end(ProfiledStep::Schedules);
            progress.pass(TaskStep::Sending);
            debug_span!("work").in_scope(|| work(world, contents));
            times.end(ProfiledStep::Work);
        }
        progress.pass(TaskStep::Sending);
        debug_span!("send").in_scope(|| send(world, contents, task));
        world.clear_trackers();
        if let Task::Split { parts } = task {
            progress.pass(TaskStep::Splitting);
            // The outbox is complete. Hooks of the game no longer affect it.
            contents.unfinished.is_handed_out = true;
            split(world, contents, parts);
        }
        let outbox = contents.hand_out(world);
        times.end(ProfiledStep::Send);
        times.finish(&contents.profiler, world);
        outbox
    }
}

impl RegionContents {
    /// Completes the outbox after a task that has not panicked. Returns `None` if there is nothing to report.
    fn hand_out(&mut self, world: &mut World) -> Option<Box<Outbox>> {
        let Ends { columns, mut index, .. } = get(&mut self.params.ends, world);
        let (appeared, gone) = index.bypass_change_detection().take_touched();
        let viewers = self.viewers.places.len();
        let numbers = RegionNumbers { columns: columns.columns().len(), entities: index.len(), viewers };
        (self.outbox.appeared, self.outbox.gone) = (appeared, gone);
        self.unfinished.edits.clear();
        self.unfinished.handed_over.clear();
        self.unfinished.received.clear();
        self.unfinished.is_handed_out = false;
        let has_news = mem::replace(&mut self.outbox.numbers, numbers) != numbers;
        let is_unknown = mem::take(&mut self.is_unknown);
        (has_news || is_unknown || !self.outbox.is_empty())
            .then(|| mem::replace(&mut self.outbox, Box::new(Outbox { numbers, ..Outbox::default() })))
    }
}

/// Brings the world's time to the dimension's clock. A pause moves the clock, but no system sees it as a long tick.
fn advance_time(time: &mut Time, clock: Duration, delta: Duration) {
    for clock in [clock.saturating_sub(delta), clock] {
        let clock = clock.max(time.elapsed());
        time.advance_to(clock);
    }
}
