use super::blocks::RegionColumns;
use super::entities::EntityIndex;
use super::journey::{absorb, split};
use super::mail::Part;
use super::send::report_ids;
use super::unregistered::SeenArchetypes;
use super::{
    Exclusive, Inbox, Outbox, RegionComponents, RegionRandom, RegionTemplate, RegionTemplateError, SplitMix64,
};
use crate::region::RegionId;
use crate::space::DimensionId;
use bevy::app::MainScheduleOrder;
use bevy::ecs::change_detection::Tick;
use bevy::prelude::*;
use rustc_hash::FxHashSet;
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
    /// How many ticks this region world has run.
    pub ticks: u64,
}

impl RegionInfo {
    pub(super) fn nowhere() -> Self {
        Self { region: RegionId::new(0), dimension: DimensionId(0), heights: 0..0, ticks: 0 }
    }
}

/// What a region thread is to do with a region world.
#[derive(Clone, Debug)]
pub enum Task {
    /// Run one tick.
    Tick {
        /// The dimension's clock at this tick.
        clock: Duration,
        /// The time since the tick before, for the first one of a world.
        period: Duration,
        /// Whether everything unsaved is to be handed out.
        save: bool,
    },
    /// Take in what waits and hand out everything unsaved, without a tick.
    Save,
    /// Do the same, then hand over what lies in the parts' sections.
    Split {
        /// The parts that leave.
        parts: Vec<Part>,
        /// Columns to a section, as a power of two.
        section_shift: u32,
    },
}

/// A region world with what it is to do: handed to a region thread, and back with an [`Outbox`].
pub struct Assignment {
    /// What the region is.
    pub info: RegionInfo,
    /// The world; made on the region thread if there is none.
    pub world: Option<Box<RegionWorld>>,
    /// What waits for it.
    pub inbox: Inbox,
    /// What is to be done.
    pub task: Task,
    /// The number of this assignment, never used twice while the world is open: random numbers and new entities' ids
    /// come from it.
    pub number: u64,
}

impl Assignment {
    /// Does the work. A panic of a game's system is passed on to the caller.
    pub fn run(self, template: &RegionTemplate) -> Result<(Box<RegionWorld>, Outbox), RegionTemplateError> {
        let mut world = match self.world {
            Some(world) => world,
            None => Box::new(template.build(self.info.clone())?),
        };
        let outbox = world.run(self.info.region, self.inbox, self.task, self.number);
        Ok((world, outbox))
    }
}

/// The world of one region.
pub struct RegionWorld {
    pub(super) app: SubApp,
}

/// The part of a region world that only this room touches.
#[derive(Resource)]
pub(super) struct RegionState {
    pub components: Arc<RegionComponents>,
    /// The world's seed.
    pub seed: u64,
    pub task: Task,
    /// The number of the assignment.
    pub number: u64,
    pub started: bool,
    pub last_send: Tick,
    /// Entities that are no more, and may still be in the store.
    pub despawned: FxHashSet<Uuid>,
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
}

/// What came in and what goes out.
#[derive(Resource, Default)]
pub(super) struct Mailbox(pub Exclusive<(Inbox, Outbox)>);

impl RegionWorld {
    pub(super) fn new(mut app: SubApp, info: RegionInfo, components: Arc<RegionComponents>, seed: u64) -> Self {
        app.insert_resource(RegionColumns::new(info.heights.clone()))
            .insert_resource(EntityIndex::new())
            .insert_resource(RegionRandom(SplitMix64::new(seed)))
            .init_resource::<Mailbox>()
            .insert_resource(RegionState {
                components,
                seed,
                task: Task::Save,
                number: 0,
                started: false,
                last_send: Tick::new(0),
                despawned: FxHashSet::default(),
                seen_archetypes: SeenArchetypes::default(),
                began: None,
                seen: None,
                last_collect: None,
                mirrored: FxHashSet::default(),
                viewers: FxHashSet::default(),
            })
            .insert_resource(info);
        Self { app }
    }

    fn run(&mut self, region: RegionId, mut inbox: Inbox, task: Task, number: u64) -> Outbox {
        let absorbed = mem::take(&mut inbox.absorbed);
        let world = self.app.world_mut();
        world.resource_mut::<RegionInfo>().region = region;
        let now = world.increment_change_tick();
        let mut state = world.resource_mut::<RegionState>();
        (state.task, state.number) = (task.clone(), number);
        state.seen = state.began;
        if matches!(task, Task::Tick { .. }) {
            state.began = Some(now);
        }
        // Before anything comes in: hooks and observers of an arrival may draw.
        let mut random = SplitMix64::from_parts([state.seed, number]);
        world.resource_mut::<EntityIndex>().seed([random.next_u64(), random.next_u64()]);
        world.resource_mut::<RegionRandom>().0 = random;
        for other in absorbed {
            absorb(world, *other);
        }
        world.resource_mut::<Mailbox>().0.get().0 = inbox;
        self.app.update();
        let world = self.app.world_mut();
        world.check_change_ticks();
        let mut outbox = mem::take(&mut world.resource_mut::<Mailbox>().0.get().1);
        if let Task::Split { parts, section_shift } = task {
            outbox.parts = split(world, &parts, section_shift);
        }
        report_ids(world, &mut outbox);
        outbox
    }

    /// How many columns the region has loaded.
    pub fn columns(&self) -> usize {
        self.app.world().resource::<RegionColumns>().positions().len()
    }
}

pub(super) fn simulate(world: &mut World) {
    let mut state = world.resource_mut::<RegionState>();
    if !matches!(state.task, Task::Tick { .. }) {
        return;
    }
    let first = !mem::replace(&mut state.started, true);
    world.resource_scope(|world, order: Mut<MainScheduleOrder>| {
        let startup = if first { order.startup_labels.as_slice() } else { &[] };
        for &label in startup.iter().chain(&order.labels) {
            // A schedule that nobody added a system to does not exist.
            let _ = world.try_run_schedule(label);
        }
    });
    world.resource_mut::<RegionInfo>().ticks += 1;
}
