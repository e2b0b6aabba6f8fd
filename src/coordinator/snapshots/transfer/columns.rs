//! Work of regions for a job: on single columns, a few at a time, or on all columns of a region at once.

use super::task::Task;
use crate::coordinator::columns::ColumnState;
use crate::coordinator::dimension::OpenDimension;
use crate::coordinator::messages::jobs::JobId;
use crate::coordinator::messages::snapshots::ColumnResult;
use crate::coordinator::surroundings::Surroundings;
use crate::simulation::{Answer, ColumnAnswer, ColumnWork, Letter, OrderedWork};
use crate::snapshot::Snapshot;
use crate::space::{ChunkPos, ColumnPos, DimensionId};
use bevy::prelude::*;
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::RangeInclusive;
use std::time::Duration;

/// How often lost work is sent again. A halted region may or may not be restarted.
const TRIES: u32 = 10;
/// The wait before each retry.
const RETRY: Duration = Duration::from_millis(500);
/// How often a region is asked again whether an entity is alive. In between it ends a tick.
const LOOKS: u32 = 100;
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The results of regions for columns, and the time that each took, until the jobs take them.
#[derive(Resource, Default)]
pub struct ColumnAnswers(pub Vec<(JobId, ColumnPos, ColumnAnswer, Duration)>);

/// A column, or a part of one.
#[derive(Clone, Debug)]
pub struct Piece {
    pub column: ColumnPos,
    /// The chunk heights.
    pub heights: RangeInclusive<i64>,
    tries: u32,
    /// How often its entities were looked up.
    looks: u32,
}

impl Piece {
    pub const fn new(column: ColumnPos, heights: RangeInclusive<i64>) -> Self {
        Self { column, heights, tries: 0, looks: 0 }
    }

    /// Returns `true` if the piece can wait until it is known which entities are alive.
    pub const fn may_wait(&self) -> bool {
        self.looks < LOOKS
    }
}

/// The next step for a piece.
pub enum Turn {
    Work(ColumnWork),
    /// Nothing has to be done.
    Skip,
    /// A region has to end its tick first.
    Wait,
}

/// The unfinished pieces of a phase.
pub struct Columns {
    todo: VecDeque<Piece>,
    under_way: BTreeMap<ColumnPos, Piece>,
    /// The columns of these pieces that are loaded for the job.
    loading: BTreeSet<ColumnPos>,
    /// Pieces that wait, and until when.
    again: BTreeMap<(Duration, ColumnPos), Piece>,
}

impl Columns {
    pub fn new(pieces: Vec<Piece>) -> Self {
        Self { todo: pieces.into(), under_way: BTreeMap::new(), loading: BTreeSet::new(), again: BTreeMap::new() }
    }

    pub fn has_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// Orders the next pieces as far as there is room. Returns `true` if all are done.
    pub fn order(
        &mut self,
        task: &mut Task,
        world: &mut Surroundings,
        mut turn: impl FnMut(&mut Task, &Piece, &mut Surroundings) -> Turn,
    ) -> bool {
        let now = world.clock.now;
        while let Some(entry) = self.again.first_entry().filter(|entry| entry.key().0 <= now) {
            self.todo.push_front(entry.remove());
        }
        let (most, most_loading) = (world.config.snapshots.columns.max(1), world.config.snapshots.loading.max(1));
        while self.under_way.len() < most
            && let Some(mut piece) = self.todo.pop_front()
        {
            let column = piece.column;
            let is_loaded_for_it = !is_loaded(world.dimensions.open.get(&task.dimension), column);
            if is_loaded_for_it && self.loading.len() >= most_loading {
                self.todo.push_front(piece);
                break;
            }
            let has_failed =
                task.column(column).is_some_and(|outcome| matches!(outcome.result, ColumnResult::Failed(_)));
            let turn = if has_failed { Turn::Skip } else { turn(task, &piece, world) };
            match turn {
                Turn::Work(work) => {
                    task.send(column.chunk(*piece.heights.start()), work, world);
                    self.under_way.insert(column, piece);
                    if is_loaded_for_it {
                        self.loading.insert(column);
                    }
                }
                Turn::Skip => task.count(1),
                Turn::Wait => {
                    piece.looks += 1;
                    self.again.insert((now.saturating_add(LOOK_AGAIN), column), piece);
                }
            }
        }
        self.todo.is_empty() && self.under_way.is_empty() && self.again.is_empty()
    }

    /// Takes the answer for a column. Returns it unless the column is retried.
    pub fn take(&mut self, column: ColumnPos, answer: ColumnAnswer, now: Duration) -> Option<ColumnAnswer> {
        let mut piece = self.under_way.remove(&column)?;
        self.loading.remove(&column);
        match answer {
            ColumnAnswer::Postponed => self.todo.push_front(piece),
            ColumnAnswer::Lost if piece.tries + 1 < TRIES => {
                piece.tries += 1;
                self.again.insert((now.saturating_add(RETRY), column), piece);
            }
            answer => return Some(answer),
        }
        None
    }
}

/// Work that each region with columns of a snapshot does for all of them at once.
#[derive(Default)]
pub struct Round {
    /// The columns whose region was not asked yet.
    unseen: BTreeSet<ColumnPos>,
    /// The columns whose region was asked and has not answered.
    asked: BTreeSet<ColumnPos>,
}

impl Round {
    pub fn of(snapshot: &Snapshot, dimension: DimensionId, world: &Surroundings) -> Self {
        let Some(open) = world.dimensions.open.get(&dimension) else { return Self::default() };
        let columns = snapshot.columns().map(|(column, _)| column);
        Self { unseen: columns.filter(|column| open.columns.is_in_region(*column)).collect(), asked: BTreeSet::new() }
    }

    pub fn has_under_way(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Asks the remaining regions. Returns `true` if all have answered.
    pub fn order(&mut self, task: &Task, world: &mut Surroundings, work: impl Fn() -> ColumnWork) -> bool {
        let Some(open) = world.dimensions.open.get(&task.dimension) else { return true };
        // Entities do not move in a halted region, so the stored ones are up to date.
        self.asked.retain(|column| !is_halted(open, *column));
        if !self.asked.is_empty() {
            return false;
        }
        // The entities of an evicted column were seen when it left its region.
        self.unseen.retain(|column| open.columns.is_in_region(*column) && !is_halted(open, *column));
        let mut regions = FxHashSet::default();
        let of_new_region = |column: &ColumnPos| {
            open.regions.regionizer.region_at(*column).is_some_and(|region| regions.insert(region))
        };
        let asked = self.unseen.iter().copied().filter(of_new_region);
        self.asked = asked.take(world.config.snapshots.columns.max(1)).collect();
        for column in &self.asked {
            task.send(column.chunk(*task.heights().start()), work(), world);
        }
        self.asked.is_empty()
    }

    /// Takes the answer of a region. Returns it unless the region is asked again.
    pub fn take(&mut self, column: ColumnPos, answer: ColumnAnswer) -> Option<ColumnAnswer> {
        if !self.asked.remove(&column) {
            return None;
        }
        let columns = match &answer {
            ColumnAnswer::Seen { columns, .. } | ColumnAnswer::Cleared { columns, .. } => columns,
            _ => return None,
        };
        for column in columns.iter().chain([&column]) {
            self.unseen.remove(column);
        }
        Some(answer)
    }
}

fn is_halted(open: &OpenDimension, column: ColumnPos) -> bool {
    let region = open.regions.regionizer.region_at(column);
    region.and_then(|region| open.regions.regionizer.data(region)).is_some_and(|slot| slot.halted.is_some())
}

fn is_loaded(open: Option<&OpenDimension>, column: ColumnPos) -> bool {
    let state = open.and_then(|open| open.columns.get(column));
    matches!(state, Some(ColumnState::Fetched(_) | ColumnState::Owned(_) | ColumnState::Halted { .. }))
}

impl Task {
    /// Sends work to the region of a column. In a sparse dimension the chunks around `at` are loaded for it.
    fn send(&self, at: ChunkPos, work: ColumnWork, world: &mut Surroundings) {
        let (id, column, notifier) = (self.id, at.column(), world.threads.notifier.clone());
        let tell = move |answer, took| {
            notifier.run(move |world| world.resource_mut::<ColumnAnswers>().0.push((id, column, answer, took)));
        };
        let config = &world.config;
        let share = (!config.tick_mode.is_lockstep()).then_some(config.snapshots.tick_share);
        let (chunks, is_void) = (config.snapshots.chunks.max(1), self.is_void.clone());
        let work = OrderedWork { work, share, chunks, is_void, answer: Answer::new(tell) };
        world.post.send(Letter::work(self.dimension, at.min_block(), work));
    }
}
