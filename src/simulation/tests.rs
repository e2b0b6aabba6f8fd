//! Entities and resources on their journeys between region worlds, without a coordinator.

mod ground;
mod losses;
mod model;
mod moves;
mod new_columns;
mod salvage;
mod saving;

use super::{ColumnSource, Inbox, Outbox, Position, RegionTemplate, RegionWorld, Traveller};
use crate::block::BlockRegistry;
use crate::chunk::Column;
use crate::generation::Void;
use crate::region::{RegionId, RegionPart};
use crate::simulation::components::RegionComponents;
use crate::simulation::entities::{MoveCause, StableId};
use crate::simulation::tick::assignment::{Assignment, Task};
use crate::space::{BlockPos, ColumnPos, DimensionId};
use crate::storage::LoadedColumn;
use bevy::ecs::entity_disabling::Disabled;
use bevy::ecs::error::{ErrorHandler, FallbackErrorHandler};
use bevy::ecs::query::Allow;
use bevy::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use uuid::Uuid;

const DIMENSION: DimensionId = DimensionId(1);
const CAUSES: [MoveCause; 3] = [MoveCause::Merge, MoveCause::Split, MoveCause::Crossing];

/// Region worlds with nothing around them: region `n` begins with the columns `(10 n, 0)` and `(10 n + 1, 0)`.
struct Regions {
    template: RegionTemplate,
    ground: Arc<ColumnSource>,
    worlds: BTreeMap<u64, RegionWorld>,
    assignments: u64,
}

fn place(column: i64) -> Position {
    Position::new(DIMENSION, BlockPos::new(column * 16, 5, 0))
}

fn column(x: i64) -> ColumnPos {
    ColumnPos { x, z: 0 }
}

fn loaded(x: i64) -> LoadedColumn {
    Column::new(column(x)).into()
}

impl Regions {
    fn new(register: impl FnOnce(&mut RegionComponents)) -> Self {
        Self::with_plugins(register, |_| {})
    }

    fn with_plugins(
        register: impl FnOnce(&mut RegionComponents),
        plugins: impl Fn(&mut SubApp) + Send + Sync + 'static,
    ) -> Self {
        let mut components = RegionComponents::with_builtin();
        register(&mut components);
        let mut blocks = BlockRegistry::new();
        blocks.register_basic_blocks();
        let template = RegionTemplate {
            actions_per_second: 64,
            fresh: Arc::default(),
            plugins: vec![Arc::new(plugins)],
            components: Arc::new(components),
            messages: Arc::default(),
            blocks: Arc::new(blocks),
            types: AppTypeRegistry::default(),
            parallel_from: usize::MAX,
            error_handler: None,
            seed: 1,
        };
        let ground = ColumnSource::new(DIMENSION, -64..320, Arc::new(Void), template.blocks.clone(), Weak::new());
        Self { template, ground: Arc::new(ground), worlds: BTreeMap::new(), assignments: 0 }
    }

    fn with_error_handler(mut self, handler: ErrorHandler) -> Self {
        self.template.error_handler = Some(FallbackErrorHandler(handler));
        self
    }

    fn assignment(&mut self, region: u64, inbox: impl Into<Option<Inbox>>, task: Task) -> Assignment {
        self.assignments += 1;
        Assignment {
            dimension: DIMENSION,
            region: RegionId::new(region),
            ground: Some(self.ground.clone()),
            worlds: self.worlds.remove(&region).into_iter().collect(),
            inbox: inbox.into().map(Box::new),
            task,
            number: self.assignments,
            clock: (Duration::ZERO, Duration::from_millis(50)),
            time_of_day: None,
            progress: Arc::default(),
        }
    }

    fn run(&mut self, region: u64, inbox: impl Into<Option<Inbox>>, task: Task) -> Outbox {
        let assignment = self.assignment(region, inbox, task);
        self.run_assignment(region, assignment)
    }

    fn run_assignment(&mut self, region: u64, mut assignment: Assignment) -> Outbox {
        let outbox = assignment.run(&self.template).unwrap();
        assert_eq!(assignment.worlds.len(), 1);
        self.worlds.insert(region, assignment.worlds.remove(0));
        outbox.map(|outbox| *outbox).unwrap_or_default()
    }

    fn next_tick(&self) -> Task {
        let period = Duration::from_millis(50);
        Task::Tick { clock: period * self.assignments as u32, delta: period, save: false }
    }

    fn tick_with(&mut self, region: u64, inbox: Inbox) -> Outbox {
        self.run(region, inbox, self.next_tick())
    }

    fn tick(&mut self, region: u64) -> Outbox {
        self.run(region, None, self.next_tick())
    }

    fn save(&mut self, region: u64) -> Outbox {
        self.run(region, None, Task::Save)
    }

    /// Opens a region with its two columns and runs one tick.
    fn open(&mut self, region: u64) -> &mut World {
        let x = region as i64 * 10;
        self.tick_with(region, Inbox { columns: vec![loaded(x), loaded(x + 1)], ..Inbox::default() });
        self.world(region)
    }

    fn world(&mut self, region: u64) -> &mut World {
        self.worlds.get_mut(&region).unwrap().app.world_mut()
    }

    fn merge(&mut self, from: u64, into: u64) -> Outbox {
        let mut assignment = self.assignment(into, Inbox::default(), self.next_tick());
        assignment.worlds.push(self.worlds.remove(&from).unwrap());
        self.run_assignment(into, assignment)
    }

    fn part_off(&mut self, from: u64, into: u64, columns: &[i64]) -> (Outbox, Inbox) {
        let sections = columns.iter().map(|x| column(*x).section(0)).collect();
        let parts = vec![RegionPart { id: RegionId::new(into), sections, section_shift: 0 }];
        let mut outbox = self.run(from, Inbox::default(), Task::Split { parts });
        let (_, inbox) = outbox.parts.pop().unwrap();
        (outbox, inbox)
    }

    fn split(&mut self, from: u64, into: u64, columns: &[i64]) -> Outbox {
        let (_, inbox) = self.part_off(from, into, columns);
        self.tick_with(into, inbox)
    }

    /// Runs a tick and moves the entities that left to `into`.
    fn cross(&mut self, from: u64, into: u64) -> Outbox {
        let travellers = self.tick(from).travellers;
        self.arrive(into, travellers)
    }

    fn arrive(&mut self, into: u64, travellers: Vec<Traveller>) -> Outbox {
        self.tick_with(into, Inbox { travellers, ..Inbox::default() })
    }

    /// Moves everything in column 10 from region 1 to region 2, which ticks once with it.
    fn move_all(&mut self, cause: MoveCause) -> Outbox {
        match cause {
            MoveCause::Merge => self.merge(1, 2),
            MoveCause::Split => {
                self.worlds.remove(&2);
                self.split(1, 2, &[10])
            }
            MoveCause::Crossing => {
                let world = self.world(1);
                let mut positions = world.query_filtered::<&mut Position, Allow<Disabled>>();
                for mut position in positions.iter_mut(world) {
                    if position.column() == column(10) {
                        position.block = place(20).block;
                    }
                }
                self.cross(1, 2)
            }
        }
    }
}

/// The only entity with the name.
fn named(world: &mut World, name: &str) -> Entity {
    let mut names = world.query_filtered::<(Entity, &Name), Allow<Disabled>>();
    let found: Vec<_> = names.iter(world).filter(|(_, it)| it.as_str() == name).map(|(entity, _)| entity).collect();
    assert_eq!(found.len(), 1, "{name} is there {} times", found.len());
    found[0]
}

fn name(world: &World, entity: Entity) -> &str {
    world.get::<Name>(entity).map_or("nobody", Name::as_str)
}

fn id(world: &World, entity: Entity) -> Uuid {
    world.get::<StableId>(entity).unwrap().0
}
