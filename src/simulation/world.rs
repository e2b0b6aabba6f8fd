//! The world of one region, and the tasks that a region thread runs in it.

use super::columns::blocks::RegionColumns;
use super::columns::column_work::{self, ColumnRestored, ComingWork};
use super::post::{Post, Waiting};
use super::salvage::salvage;
use super::schedules::TickSchedules;
use super::send::SendQueries;
use super::strict::SectionOwners;
use super::task_progress::{TaskProgress, TaskStep};
use super::template::{RegionMain, set_executors};
use super::travel::entities::EntityIndex;
use super::travel::merge_split::{absorb, split};
use super::travel::unregistered::SeenArchetypes;
use super::{
    BlockTick, BlockTicks, ColumnReady, ColumnSource, Exclusive, Inbox, Letter, Outbox, Received, RegionComponents,
    RegionRandom, RegionTemplate, RegionTemplateError, Returned, Salvage, SetBlock, SplitMix64, WorldPool,
};
use crate::chunk::Column;
use crate::region::{RegionId, RegionPart};
use crate::space::{ColumnPos, DimensionId, SectionPos};
use bevy::ecs::change_detection::Tick;
use bevy::prelude::*;
use rustc_hash::FxHashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{mem, ops::Range, sync::Arc, time::Duration};
use uuid::Uuid;

/// What a system can know about the region that it runs in.
#[derive(Resource, Clone, Debug)]
pub struct RegionInfo {
    /// The region. After a merge it is the one that took over.
    pub region: RegionId,
    /// The dimension that the region is a part of.
    pub dimension: DimensionId,
    /// The dimension's heights, in blocks.
    pub heights: Range<i64>,
    /// Columns to a section, as a power of two.
    pub section_shift: u32,
    /// How many ticks this region world has run.
    pub ticks: u64,
}

impl RegionInfo {
    pub(super) fn nowhere() -> Self {
        Self { region: RegionId::new(0), dimension: DimensionId(0), heights: 0..0, section_shift: 0, ticks: 0 }
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

/// What all regions of a dimension have in common.
pub struct RegionHome {
    /// The dimension's ground.
    pub ground: ColumnSource,
    /// Columns to a section, as a power of two.
    pub section_shift: u32,
    /// In strict mode: who owns what.
    pub owners: Option<Arc<SectionOwners>>,
}

/// A region world with what it is to do: handed to a region thread, and back with an [`Outbox`].
pub struct Assignment {
    /// The region.
    pub region: RegionId,
    /// Where it is.
    pub home: Arc<RegionHome>,
    /// The world; taken from the pool or made on the region thread if there is none.
    pub world: Option<Box<RegionWorld>>,
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
    /// Does the work. The world is in [`world`](Self::world) then. A panic of a game's system is passed on to the caller,
    /// who can [`salvage`](Self::salvage) after it.
    pub fn run(&mut self, template: &RegionTemplate, pool: &WorldPool) -> Result<Box<Outbox>, RegionTemplateError> {
        self.progress.begin();
        let world = match &mut self.world {
            Some(world) => world,
            none => {
                self.progress.pass(TaskStep::Making);
                let mut world = pool.take().map_or_else(|| template.build().map(Box::new), Ok)?;
                world.settle(self.region, &self.home);
                none.insert(world)
            }
        };
        world.begin(self.region, &self.task, self.number, &self.progress, self.clock);
        // Each waits where a panic of the game does not reach it until it is taken in.
        let absorbed = mem::take(&mut self.inbox.absorbed);
        *world.contents().inbox.get() = mem::replace(&mut self.inbox, Inbox { absorbed, ..Inbox::default() });
        self.progress.pass(TaskStep::Absorbing);
        self.inbox.absorbed.reverse();
        while let Some(other) = self.inbox.absorbed.pop() {
            absorb(world.app.world_mut(), *other);
        }
        Ok(world.run(&self.task, &self.progress))
    }

    /// What is left after a panic. Worlds that were to be absorbed and are whole still wait in its inbox.
    pub fn salvage(&mut self) -> Salvage {
        let inbox = mem::take(&mut self.inbox);
        let mut found = match &mut self.world {
            Some(world) => salvage(world.app.world_mut()),
            None => Salvage::default(),
        };
        let Inbox { mut absorbed, travellers, resources, edits, letters, .. } = inbox;
        absorbed.reverse();
        found.inbox.append(Inbox { absorbed, travellers, resources, edits, letters, ..Inbox::default() });
        found
    }
}

/// The world of one region.
pub struct RegionWorld {
    pub(super) app: SubApp,
    /// [`RegionMain`](super::RegionMain): nobody else runs it, so it need not be taken out of the world for each tick.
    main: Schedule,
}

/// The part of a region world that only this room touches. One resource, since each that a tick looks for costs as much
/// as a small system.
#[derive(Resource, Default)]
pub(super) struct RegionContents {
    pub components: Arc<RegionComponents>,
    /// The world's seed.
    pub seed: u64,
    pub task: Task,
    pub progress: Arc<TaskProgress>,
    /// The number of the assignment.
    pub number: u64,
    /// The dimension's clock at the last tick, and the time from one tick to the next.
    pub clock: Duration,
    pub period: Duration,
    pub started: bool,
    /// From how many entities on the systems run in parallel, and whether they do.
    pub parallel_from: usize,
    pub is_parallel: bool,
    pub schedules: TickSchedules,
    /// What came in and is not taken in yet.
    pub inbox: Exclusive<Inbox>,
    /// What goes out, as far as this task has come.
    pub outbox: Exclusive<Outbox>,
    pub waiting: Waiting,
    pub last_send: Tick,
    pub queries: Option<Box<SendQueries>>,
    /// When it was looked last for entities outside, in change ticks.
    pub last_look: Tick,
    /// Where the search for components that cannot travel goes on.
    pub seen_archetypes: SeenArchetypes,
    /// When the last tick of this world began, in change ticks.
    pub began: Option<Tick>,
    /// When the last tick whose systems have run began: what arrives and is no newer, they have seen.
    pub seen: Option<Tick>,
    /// When what is unsaved was collected the last time.
    pub last_collect: Option<Tick>,
    /// The entities that the main world has mirrors of.
    pub mirrored: FxHashSet<Uuid>,
    /// The viewers that the coordinator believes to be here.
    pub viewers: FxHashSet<Uuid>,
    /// The edits that were made in this task.
    pub edits: Vec<SetBlock>,
    /// Columns to be captured and restored at the end of this tick.
    pub column_work: Exclusive<ComingWork>,
    /// The outbox of this task is whole.
    pub is_handed_out: bool,
}

impl RegionContents {
    /// Takes out the letters that `wanted` names and whose time has not come, each with the ticks that it still has to
    /// wait.
    pub fn take_waiting(&mut self, wanted: impl FnMut(&Letter) -> bool) -> Vec<Letter> {
        self.waiting.take_out(self.clock, self.period, wanted)
    }
}

impl RegionWorld {
    pub(super) fn new(mut app: SubApp, components: Arc<RegionComponents>, seed: u64, parallel_from: usize) -> Self {
        app.init_resource::<RegionColumns>()
            .init_resource::<BlockTicks>()
            .add_message::<BlockTick>()
            .add_message::<ColumnRestored>()
            .add_message::<Received<ColumnReady>>()
            .add_message::<Returned<ColumnReady>>()
            .init_resource::<EntityIndex>()
            .insert_resource(RegionRandom(SplitMix64::new(seed)))
            .insert_resource(Post::new())
            .insert_resource(RegionContents { components, seed, parallel_from, ..default() })
            .insert_resource(RegionInfo::nowhere());
        Self { app, main: Schedule::new(RegionMain) }
    }

    /// The plugins are in, and nothing has run yet.
    pub(super) fn finish(&mut self) {
        self.app.finish();
        self.app.cleanup();
        let world = self.app.world_mut();
        set_executors(world, false);
        if let Some(main) = world.resource_mut::<Schedules>().remove(RegionMain) {
            self.main = main;
        }
        let schedules = TickSchedules::new(world);
        world.resource_mut::<RegionContents>().schedules = schedules;
    }

    /// Whether nothing in the world belongs to one thread. Only for a world that is not used any more: systems are made ready
    /// for it.
    pub(super) fn check_threads(mut self) -> Result<(), RegionTemplateError> {
        let world = self.app.world_mut();
        let bound = world.storages().non_sends.iter().find(|(_, data)| data.is_present());
        if let Some((id, _)) = bound {
            let name = world.components().get_name(id).map_or_else(|| "a value".to_owned(), |name| name.to_string());
            return Err(RegionTemplateError::NonSend(name));
        }
        let mut schedules = mem::take(&mut *world.resource_mut::<Schedules>());
        for (_, schedule) in schedules.iter_mut() {
            // One that cannot be made ready says so when it is run: that halts a region, and not the app.
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

    /// The world becomes that of a region.
    fn settle(&mut self, region: RegionId, home: &Arc<RegionHome>) {
        let world = self.app.world_mut();
        let ticks = world.resource::<RegionInfo>().ticks;
        let ColumnSource { dimension, ref heights, .. } = home.ground;
        let heights = heights.clone();
        world.insert_resource(RegionInfo { region, dimension, heights, section_shift: home.section_shift, ticks });
        world.resource_mut::<RegionColumns>().settle(home);
    }

    /// The sections that are the region's own.
    pub fn sections(&mut self) -> &mut FxHashSet<SectionPos> {
        &mut self.app.world_mut().resource_mut::<RegionColumns>().into_inner().sections
    }

    fn contents(&mut self) -> &mut RegionContents {
        self.app.world_mut().resource_mut::<RegionContents>().into_inner()
    }

    /// A task begins.
    fn begin(
        &mut self,
        region: RegionId,
        task: &Task,
        number: u64,
        progress: &Arc<TaskProgress>,
        (now, period): (Duration, Duration),
    ) {
        let world = self.app.world_mut();
        // What waits for a time in this world, or comes in now, counts from this clock.
        let clock = if let Task::Tick { clock, .. } = task { *clock } else { now };
        world.resource_mut::<BlockTicks>().set_clock(clock, period);
        if mem::replace(&mut world.resource_mut::<RegionInfo>().region, region) != region {
            // A region that never ticked took over this world: whoever asks must learn where its entities are.
            world.resource_mut::<EntityIndex>().touch_all();
        }
        let began = world.increment_change_tick();
        let mut contents = world.resource_mut::<RegionContents>();
        (contents.task, contents.number, contents.progress) = (task.clone(), number, progress.clone());
        (contents.clock, contents.period) = (clock, period);
        contents.waiting.begin();
        contents.seen = contents.began;
        (contents.edits, contents.is_handed_out) = (Vec::new(), false);
        if matches!(task, Task::Tick { .. }) {
            contents.began = Some(began);
        }
        // Before anything comes in: hooks and observers of an arrival may draw.
        let mut random = SplitMix64::from_parts([contents.seed, number]);
        world.resource_mut::<EntityIndex>().seed([random.next_u64(), random.next_u64()]);
        world.resource_mut::<RegionRandom>().0 = random;
    }

    fn run(&mut self, task: &Task, progress: &TaskProgress) -> Box<Outbox> {
        let world = self.app.world_mut();
        progress.pass(TaskStep::Receiving);
        self.main.run(world);
        world.clear_trackers();
        world.check_change_ticks();
        if let Task::Split { parts } = task {
            progress.pass(TaskStep::Splitting);
            // What was handed out is whole, whatever hooks of the game do now.
            world.resource_mut::<RegionContents>().is_handed_out = true;
            split(world, parts);
        }
        let mut outbox = Box::new(mem::take(world.resource_mut::<RegionContents>().outbox.get()));
        outbox.columns = world.resource::<RegionColumns>().positions().len();
        (outbox.appeared, outbox.gone) = world.resource_mut::<EntityIndex>().take_touched();
        outbox
    }

    /// What waits in a world that is to be dropped between two tasks.
    pub fn salvage(&mut self) -> Salvage {
        let contents = self.contents();
        // The last task has ended well.
        contents.waiting.begin();
        (contents.edits, contents.is_handed_out) = (Vec::new(), false);
        salvage(self.app.world_mut())
    }

    /// The region whose world this was in its last task.
    pub fn region(&self) -> RegionId {
        self.app.world().resource::<RegionInfo>().region
    }

    /// The columns that the region has loaded.
    pub fn column_positions(&self) -> &[ColumnPos] {
        self.app.world().resource::<RegionColumns>().positions()
    }

    /// The columns that the region has loaded.
    pub fn columns(&self) -> impl Iterator<Item = &Column> {
        let columns = self.app.world().resource::<RegionColumns>();
        columns.positions().iter().filter_map(|position| columns.column(*position))
    }

    /// Whether the target of the letter is in this world as far as it knows.
    pub fn has_target(&self, letter: &Letter) -> bool {
        let world = self.app.world();
        let place = letter.column().is_some_and(|(dimension, column)| {
            dimension == world.resource::<RegionInfo>().dimension && world.resource::<RegionColumns>().contains(column)
        });
        place || letter.entity().is_some_and(|id| world.resource::<EntityIndex>().entity(id).is_some())
    }
}

pub(super) fn simulate(world: &mut World) {
    let mut contents = world.resource_mut::<RegionContents>();
    if !matches!(contents.task, Task::Tick { .. }) {
        return;
    }
    let is_first = !mem::replace(&mut contents.started, true);
    let progress = contents.progress.clone();
    choose_executors(world);
    let mut schedules = mem::take(&mut world.resource_mut::<RegionContents>().schedules);
    schedules.run(world, is_first, &progress);
    world.resource_mut::<RegionContents>().schedules = schedules;
    progress.pass(TaskStep::Sending);
    column_work::work(world);
    world.resource_mut::<RegionInfo>().ticks += 1;
}

/// A crowded region runs its systems in parallel; one that is half empty again does not.
fn choose_executors(world: &mut World) {
    let entities = world.resource::<EntityIndex>().len();
    let mut contents = world.resource_mut::<RegionContents>();
    let from = contents.parallel_from;
    let parallel = entities >= if contents.is_parallel { from / 2 } else { from };
    if mem::replace(&mut contents.is_parallel, parallel) != parallel {
        set_executors(world, parallel);
    }
}
