//! Paths of entities over the ground of their region.

use super::columns::blocks::RegionColumns;
use super::{GroundSystems, Position, RegionInfo};
use crate::path::{PATH_REACH, Path, PathSearch, WalkTable, WalkableGround, Walker, Waypoint};
use crate::region::RegionId;
use crate::simulation::block_types::BlockTypes;
use crate::simulation::entities::StableId;
use crate::simulation::schedules::RegionTick;
use crate::space::{BlockBox, BlockPos, ChunkPos};
use bevy::app::MainScheduleOrder;
use bevy::ecs::schedule::ScheduleLabel;
use bevy::prelude::*;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

/// More kinds of walkers than a game has. Their tables are made again if there are more.
const MAX_TABLES: usize = 64;

/// The systems that find paths, in [`RegionTick`].
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathSystems {
    /// Takes new requests, checks paths near changed blocks, and searches. Order systems that follow paths after it.
    Find,
    /// Characters with a [`Walk`](super::Walk) follow their paths: it sets their intents.
    Follow,
}

/// Finds paths for the entities of a region with a [`PathTo`]. [`WalkPlugin`](crate::plugin::WalkPlugin) adds it for characters, which then
/// walk along their paths. A game whose entities follow their paths by themselves adds it to its regions:
///
/// ```
/// use bevy_terrane::path::Walker;
/// use bevy_terrane::prelude::*;
/// use bevy_terrane::simulation::{PathPlugin, PathSystems, PathTo};
/// use std::sync::Arc;
///
/// fn call(mut commands: Commands, wisps: Query<Entity, Without<PathTo>>) {
///     let walker = Arc::new(Walker::default().with_size(0.9, 1.3));
///     for wisp in &wisps {
///         commands.entity(wisp).insert(PathTo::new(walker.clone(), BlockPos::new(5, 64, 0)));
///     }
/// }
///
/// fn drift(mut wisps: Query<(&mut Position, &mut PathTo)>) {
///     for (mut position, mut path) in &mut wisps {
///         if let Some(way) = path.follow(&position) {
///             position.translate(way.clamp_length_max(0.2));
///         }
///     }
/// }
///
/// # let mut app = App::new();
/// # app.add_plugins((MinimalPlugins, TerranePlugin::default()));
/// app.add_region_plugins(|region| {
///     region.add_plugins(PathPlugin::default());
///     region.add_systems(RegionTick, (call.before(PathSystems::Find), drift.after(PathSystems::Find)));
/// });
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathPlugin {
    /// The steps of searches in a tick of a region; each takes about a microsecond. Searches that need more go on in the next tick,
    /// the oldest first. Checking a path takes as many steps as the path has waypoints, and is not interrupted.
    pub steps_per_tick: u32,
    /// The most steps of a search, as in [`PathSearch::new`].
    pub steps_per_path: u32,
    /// The slack of the paths, as in [`PathSearch::new`].
    pub slack: f32,
}

impl Default for PathPlugin {
    fn default() -> Self {
        Self { steps_per_tick: 10_000, steps_per_path: 1_024, slack: 2.0 }
    }
}

impl Plugin for PathPlugin {
    fn build(&self, app: &mut App) {
        app.insert_resource(PathFinder {
            steps_per_tick: self.steps_per_tick,
            search: PathSearch::new(self.steps_per_path.max(1), self.slack),
            searching: None,
            queue: VecDeque::new(),
            queued: FxHashSet::default(),
            changed: FxHashSet::default(),
            tables: Vec::new(),
        })
        .configure_sets(RegionTick, (PathSystems::Find, PathSystems::Follow).chain())
        .add_systems(RegionTick, find_paths.in_set(PathSystems::Find).after(GroundSystems::Grow))
        .add_systems(NoteChanges, note_changes);
    }

    fn finish(&self, app: &mut App) {
        // After the schedules of all plugins.
        app.world_mut().resource_mut::<MainScheduleOrder>().labels.push(NoteChanges.intern());
    }
}

/// A request for a path, and the answer: [`PathPlugin`] finds a path from the entity's [`Position`], which is the middle of its feet,
/// to the goal. When blocks change on the way, so that the path leads no further, it is found again from where the entity is then.
///
/// The component travels with its entity. With [`WalkPlugin`](crate::plugin::WalkPlugin) it is also saved, but not its path, which is quickly
/// found again.
#[derive(Component, Clone, Debug, Serialize, Deserialize, Reflect)]
#[type_path = "bevy_terrane"]
#[serde(from = "StoredPathTo", into = "StoredPathTo")]
#[reflect(opaque)]
#[reflect(Component, Clone)]
pub struct PathTo {
    walker: Arc<Walker>,
    goal: BlockPos,
    path: Option<Path>,
    is_wanted: bool,
    /// The walk to the goal has ended.
    is_over: bool,
    /// The region in which the path was found.
    region: Option<RegionId>,
}

#[derive(Serialize, Deserialize)]
struct StoredPathTo {
    walker: Walker,
    goal: BlockPos,
    is_over: bool,
}

impl From<StoredPathTo> for PathTo {
    fn from(StoredPathTo { walker, goal, is_over }: StoredPathTo) -> Self {
        Self { is_wanted: !is_over, is_over, ..Self::new(walker, goal) }
    }
}

impl From<PathTo> for StoredPathTo {
    fn from(PathTo { walker, goal, is_over, .. }: PathTo) -> Self {
        Self { walker: Arc::unwrap_or_clone(walker), goal, is_over }
    }
}

impl PathTo {
    /// Asks for a path to a block. Entities that walk alike should share the walker.
    pub fn new(walker: impl Into<Arc<Walker>>, goal: BlockPos) -> Self {
        Self { walker: walker.into(), goal, path: None, is_wanted: true, is_over: false, region: None }
    }

    /// Asks for a path to another block, or to the same one again. The path so far stays until the new one is found.
    pub fn go_to(&mut self, goal: BlockPos) {
        (self.goal, self.is_wanted, self.is_over) = (goal, true, false);
    }

    /// Gives up the path and the search for one. An entity with a [`Walk`](super::Walk) stands where it is.
    pub fn stop(&mut self) {
        (self.path, self.is_wanted, self.is_over) = (None, false, true);
    }

    /// Returns `true` if the [`Walk`](super::Walk) of the entity has ended, or was stopped, since a path was asked for.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The walk has come to the end of the path.
    pub(super) fn end(&mut self) {
        self.is_over = true;
    }

    pub(super) fn path_mut(&mut self) -> Option<&mut Path> {
        self.path.as_mut()
    }

    /// The goal.
    pub fn goal(&self) -> BlockPos {
        self.goal
    }

    /// Returns `true` if a path is being looked for.
    pub fn is_searching(&self) -> bool {
        self.is_wanted
    }

    /// The last path that was found. If it is not [complete](Path::is_complete), it leads to the place nearest to the goal.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_ref()
    }

    /// The way from the entity's position to the next waypoint, in blocks; `None` at the end of the path, and without one.
    pub fn follow(&mut self, at: &Position) -> Option<Vec3> {
        self.path.as_mut()?.follow(&waypoint(at)).map(Vec3::from)
    }

    /// Returns `true` if a change of one of these chunks may block the rest of the path.
    fn is_near(&self, changed: &FxHashSet<ChunkPos>) -> bool {
        let Some(path) = self.path.as_ref().filter(|_| !changed.is_empty()) else { return false };
        let mut points = path.waypoints.iter().skip(path.next.saturating_sub(1)).map(|point| point.block);
        let Some(first) = points.next().filter(|_| path.next < path.waypoints.len()) else { return false };
        let around = points.fold(BlockBox::new(first, first), |around, point| {
            let low = BlockPos::new(around.min.x.min(point.x), around.min.y.min(point.y), around.min.z.min(point.z));
            let high = BlockPos::new(around.max.x.max(point.x), around.max.y.max(point.y), around.max.z.max(point.z));
            BlockBox::new(low, high)
        });
        // As large as a search takes a walker. A block two below the feet may be the floor, if it is taller than a cell.
        let blocks = |size: f32| size.clamp(0.0, PATH_REACH as f32).ceil() as i64 + 1;
        let (wide, high) = (blocks(self.walker.width), blocks(self.walker.height) + blocks(self.walker.jump));
        let around = BlockBox { min: around.min.offset(-wide, -2, -wide), max: around.max.offset(wide, high, wide) };
        changed.iter().any(|chunk| !BlockBox::of_chunk(*chunk).intersection(&around).is_empty())
    }
}

/// The requests of a region.
#[derive(Resource)]
struct PathFinder {
    steps_per_tick: u32,
    search: PathSearch,
    /// The search that goes on in the next tick.
    searching: Option<(Entity, BlockPos)>,
    /// Entities whose path is to be found or checked, the oldest request first.
    queue: VecDeque<Entity>,
    queued: FxHashSet<Entity>,
    /// The chunks that changed since the last tick.
    changed: FxHashSet<ChunkPos>,
    tables: Vec<(Arc<Walker>, WalkTable)>,
}

pub(super) fn waypoint(at: &Position) -> Waypoint {
    Waypoint::new(at.block, at.offset.to_array())
}

/// Runs after the game's systems, so that it sees all changes of the tick.
#[derive(ScheduleLabel, Clone, Debug, PartialEq, Eq, Hash)]
struct NoteChanges;

fn note_changes(mut finder: ResMut<PathFinder>, columns: Res<RegionColumns>) {
    finder.changed.extend(&columns.changed);
}

fn find_paths(
    mut finder: ResMut<PathFinder>,
    types: Res<BlockTypes>,
    columns: Res<RegionColumns>,
    info: Res<RegionInfo>,
    mut walkers: Query<(Entity, &StableId, &Position, &mut PathTo)>,
) {
    let PathFinder { steps_per_tick, search, searching, queue, queued, changed, tables } = &mut *finder;
    let changed = mem::take(changed);
    let may_change = |to: &PathTo| to.path.is_some() && to.region != Some(info.region) || to.is_near(&changed);
    let is_due = |to: &PathTo| to.is_wanted || !to.is_over && may_change(to);
    let due = walkers.iter().filter(|(entity, .., to)| !queued.contains(entity) && is_due(to));
    let mut due: Vec<_> = due.map(|(entity, id, ..)| (*id, entity)).collect();
    due.sort_unstable();
    queue.extend(due.iter().map(|(_, entity)| *entity));
    queued.extend(due.iter().map(|(_, entity)| *entity));

    let mut steps = *steps_per_tick;
    while steps > 0
        && let Some(entity) = queue.front().copied()
    {
        let mut done = || {
            queue.pop_front();
            queued.remove(&entity);
        };
        let Ok((_, _, position, mut to)) = walkers.get_mut(entity) else {
            done();
            continue;
        };
        let mut ground = WalkableGround::new(table_of(tables, &to.walker, &types), |pos| columns.loaded_chunk(pos));
        if !to.is_wanted {
            // It may have been stopped during its search.
            searching.take_if(|(searcher, _)| *searcher == entity);
            let rest = to.path.as_ref().map_or(0, |path| path.waypoints.len().saturating_sub(path.next));
            steps = steps.saturating_sub(rest as u32 + 1);
            let is_blocked = to.path.as_ref().is_some_and(|path| path.first_blocked(&mut ground).is_some());
            to.region = Some(info.region);
            to.is_wanted = is_blocked;
            if !is_blocked {
                done();
            }
            continue;
        }
        let is_new = *searching != Some((entity, to.goal));
        if is_new {
            search.start(ground.table(), &waypoint(position), to.goal);
            *searching = Some((entity, to.goal));
        }
        let Some(path) = search.advance(&mut ground, &mut steps) else { break };
        *searching = None;
        (to.path, to.region, to.is_wanted) = (Some(path), Some(info.region), false);
        // The ground may have changed while a search went on. Its path is checked next.
        if is_new {
            done();
        }
    }
}

fn table_of<'a>(
    tables: &'a mut Vec<(Arc<Walker>, WalkTable)>,
    walker: &Arc<Walker>,
    types: &BlockTypes,
) -> &'a WalkTable {
    let is_same = |(known, _): &(Arc<Walker>, WalkTable)| Arc::ptr_eq(known, walker) || **known == **walker;
    let known = tables.iter().position(is_same).unwrap_or_else(|| {
        if tables.len() >= MAX_TABLES {
            tables.clear();
        }
        tables.push((walker.clone(), WalkTable::new(&types.0, walker)));
        tables.len() - 1
    });
    &tables[known].1
}
