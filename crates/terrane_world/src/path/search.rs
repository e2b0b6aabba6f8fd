//! [`PathSearch`]: A*, a bounded number of steps at a time.

use super::ground::{Hold, Surroundings, WalkableGround};
use super::{DIAGONAL, LAYERS, PATH_REACH, Path, Place, STRAIGHT, Waypoint};
use crate::chunk::Chunk;
use crate::space::{BlockPos, ChunkPos};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const REACH: i32 = PATH_REACH as i32;
/// The edge of the square of columns within reach.
const EDGE: i32 = 2 * REACH + 1;
const NONE: u32 = u32::MAX;

/// A search for a [`Path`]: A*, a bounded number of steps at a time. It keeps its memory for the next search.
///
/// The result depends only on the ground, the start and the goal, and not on the number of calls that it takes. A step costs about
/// 0.7 us.
///
/// ```
/// use terrane_world::block::{BlockRegistry, BlockType};
/// use terrane_world::chunk::Chunk;
/// use terrane_world::path::{PathSearch, WalkTable, WalkableGround, Walker, Waypoint};
/// use terrane_world::space::{BlockPos, ChunkPos};
///
/// let mut blocks = BlockRegistry::new();
/// let stone = blocks.register(BlockType::new("game:stone"))?;
/// let ground = Chunk::uniform(stone);
/// let sheep = WalkTable::new(&blocks, &Walker::default().with_size(0.9, 1.3));
/// let mut ground = WalkableGround::new(&sheep, |pos: ChunkPos| Some((pos.y < 0).then_some(&ground)));
///
/// let mut search = PathSearch::default();
/// search.start(&sheep, &Waypoint::new(BlockPos::new(0, 0, 0), [0.5, 0.0, 0.5]), BlockPos::new(5, 0, 2));
/// let mut steps = 100;
/// let path = search.advance(&mut ground, &mut steps).expect("a step or two for each block are enough");
/// assert!(path.is_complete && path.waypoints.len() == 6);
/// # Ok::<(), terrane_world::block::BlockRegistryError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PathSearch {
    max_steps: u32,
    /// In hundredths.
    slack: u32,
    origin: BlockPos,
    start: Start,
    goal: Goal,
    steps: u32,
    nodes: Vec<Node>,
    /// For each column, the last of its nodes.
    columns: Box<[u32]>,
    /// Open nodes, by the estimated cost of the whole way, by that of the rest, and by age.
    open: BinaryHeap<Reverse<(u32, u32, u32)>>,
    /// The visited node that is nearest to the goal, with its distance.
    nearest: (u32, u32),
}

/// Where the walker is when a search starts.
#[derive(Clone, Copy, Debug)]
struct Start {
    place: Place,
    /// The direction along x and z in which it reaches out of the cells of this place: -1, 0 or 1.
    beside: [i32; 2],
}

#[derive(Clone, Copy, Debug)]
struct Goal {
    place: Place,
    /// The goal may have been in the air, and is on the ground below it then.
    is_settled: bool,
    is_in_reach: bool,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    place: Place,
    cost: u32,
    before: u32,
    /// Another node in the same column.
    other: u32,
    is_closed: bool,
}

impl Default for PathSearch {
    /// A search of up to 1,024 steps, with a slack of 2.
    fn default() -> Self {
        Self::new(1_024, 2.0)
    }
}

impl PathSearch {
    /// A search that ends after `max_steps` steps at the latest, with a path to the place nearest to the goal that it has found.
    ///
    /// A complete path costs up to `slack` times as much as the cheapest one, and usually hardly more. With 1 it is the cheapest one,
    /// which takes several times as many steps over hills.
    pub fn new(max_steps: u32, slack: f32) -> Self {
        let place = Place { x: 0, z: 0, feet: 0 };
        Self {
            max_steps,
            slack: (slack.clamp(1.0, 100.0) * 100.0) as u32,
            origin: BlockPos::default(),
            start: Start { place, beside: [0; 2] },
            goal: Goal { place, is_settled: true, is_in_reach: true },
            steps: 0,
            nodes: Vec::new(),
            columns: vec![NONE; (EDGE * EDGE) as usize].into(),
            open: BinaryHeap::new(),
            nearest: (0, u32::MAX),
        }
    }

    /// Starts a search from the middle of the walker's feet to a cell, and gives up the one before. If the goal is in the air, the
    /// walker goes to the ground below it. The path begins at the place next to the walker where it stands, floats or hangs. If the walker is
    /// in the air, its path begins where it will land.
    pub fn start(&mut self, table: &super::WalkTable, from: &Waypoint, goal: BlockPos) {
        for node in self.nodes.drain(..) {
            self.columns[column(node.place)] = NONE;
        }
        self.open.clear();
        let width = table.size.width;
        let (origin, place) = from.place(width);
        let (to, _) = Waypoint::new(goal, [0.5, 0.0, 0.5]).place(width);
        // Far goals are as good as their direction.
        let relative = |to: i64, from: i64| to.saturating_sub(from).clamp(-16 * PATH_REACH, 16 * PATH_REACH) as i32;
        let way = from.to(&Waypoint::of(origin, place, width));
        let margin = table.size.margin.max(0.01);
        let beside = [way[0], way[2]].map(|along| if along.abs() > margin { -along.signum() as i32 } else { 0 });
        self.start = Start { place, beside };
        let (x, y, z) = (relative(to.x, origin.x), relative(to.y, origin.y), relative(to.z, origin.z));
        let place = Place { x, z, feet: y * LAYERS };
        self.goal = Goal { place, is_settled: false, is_in_reach: is_in_reach(place) };
        (self.origin, self.steps, self.nearest) = (origin, 0, (0, u32::MAX));
    }

    /// Takes up to `steps` steps, and counts them off. Returns the path when the search ends; it ends at once if none was started.
    pub fn advance<'a, F>(&mut self, ground: &mut WalkableGround<'a, F>, steps: &mut u32) -> Option<Path>
    where
        F: Fn(ChunkPos) -> Option<Option<&'a Chunk>>,
    {
        let width = ground.table().size.width;
        let mut around = Surroundings::new(ground, self.origin);
        if !self.goal.is_settled {
            self.goal.settle(&mut around);
            self.reach(self.start.settled(&mut around), 0, NONE);
        }
        loop {
            let Some(Reverse((_, _, number))) = self.open.peek().copied().filter(|_| self.steps < self.max_steps)
            else {
                return Some(self.path(self.nearest.0, width));
            };
            let Some(Node { place, cost, is_closed: false, .. }) = self.nodes.get(number as usize).copied() else {
                // A cheaper way to the same place was found since.
                self.open.pop();
                continue;
            };
            if *steps == 0 {
                return None;
            }
            *steps -= 1;
            self.steps += 1;
            self.open.pop();
            self.nodes[number as usize].is_closed = true;
            let distance = self.goal.distance(place);
            if distance < self.nearest.1 {
                self.nearest = (number, distance);
            }
            let is_at_edge = !self.goal.is_in_reach && place.x.abs().max(place.z.abs()) == REACH;
            if place == self.goal.place || is_at_edge {
                return Some(self.path(self.nearest.0, width));
            }
            around.moves(place, |there, price| {
                if is_in_reach(there) {
                    self.reach(there, cost.saturating_add(price), number);
                }
            });
        }
    }

    /// Adds a way to a place.
    #[inline]
    fn reach(&mut self, place: Place, cost: u32, before: u32) {
        let column = &mut self.columns[column(place)];
        let mut number = *column;
        while let Some(node) = self.nodes.get_mut(number as usize) {
            if node.place == place {
                if node.is_closed || node.cost <= cost {
                    return;
                }
                (node.cost, node.before) = (cost, before);
                break;
            }
            number = node.other;
        }
        if number == NONE {
            number = self.nodes.len() as u32;
            self.nodes.push(Node { place, cost, before, other: *column, is_closed: false });
            *column = number;
        }
        let rest = self.goal.estimate(place) * self.slack / 100;
        self.open.push(Reverse((cost.saturating_add(rest), rest, number)));
    }

    /// The path to a node. Ends the search.
    fn path(&mut self, to: u32, width: i32) -> Path {
        self.open.clear();
        let Some(last) = self.nodes.get(to as usize) else { return Path::default() };
        let (cost, is_complete) = (last.cost as f32 / STRAIGHT as f32, last.place == self.goal.place);
        let mut waypoints = Vec::new();
        let mut number = to;
        while let Some(node) = self.nodes.get(number as usize) {
            waypoints.push(Waypoint::of(self.origin, node.place, width));
            number = node.before;
        }
        waypoints.reverse();
        let is_at_start = self.nodes.first().is_some_and(|first| first.place == self.start.place);
        let next = usize::from(is_at_start);
        Path { waypoints, cost, is_complete, next }
    }
}

impl Start {
    /// The place where the walker stands: at an edge, it is held by what is beside its middle.
    fn settled<'a, F>(&self, around: &mut Surroundings<'_, 'a, F>) -> Place
    where
        F: Fn(ChunkPos) -> Option<Option<&'a Chunk>>,
    {
        let (Place { x, z, feet }, [x_beside, z_beside]) = (self.place, self.beside);
        let near = [(0, 0), (x_beside, 0), (0, z_beside), (x_beside, z_beside)];
        let near = near.map(|(dx, dz)| Place { x: x + dx, z: z + dz, feet });
        let near: Vec<Place> = near.into_iter().filter(|place| around.is_free(*place)).collect();
        let held = near.iter().copied().find(|place| {
            around.hold(*place) != Hold::None || around.landing(*place, 0).is_some_and(|(at, _)| at == *place)
        });
        let above = near.first().copied().unwrap_or(self.place);
        let place = held.or_else(|| Some(around.landing(above, REACH * LAYERS)?.0));
        place.filter(|at| is_in_reach(*at)).unwrap_or(self.place)
    }
}

impl Goal {
    /// Finds the floor of the goal.
    fn settle<'a, F>(&mut self, around: &mut Surroundings<'_, 'a, F>)
    where
        F: Fn(ChunkPos) -> Option<Option<&'a Chunk>>,
    {
        self.is_settled = true;
        let top = Place { feet: self.place.feet + LAYERS - 1, ..self.place };
        if self.is_in_reach
            && around.room(top, 1) > 0
            && let Some((floor, _)) = around.landing(top, REACH * LAYERS)
            && is_in_reach(floor)
        {
            self.place = floor;
        }
    }

    /// A lower bound of the cost from a place, on flat ground.
    #[inline]
    fn estimate(&self, from: Place) -> u32 {
        let (x, z) = (self.place.x.abs_diff(from.x), self.place.z.abs_diff(from.z));
        STRAIGHT * x.max(z) + (DIAGONAL - STRAIGHT) * x.min(z)
    }

    /// The distance by which the place nearest to the goal is chosen.
    fn distance(&self, from: Place) -> u32 {
        self.estimate(from) + STRAIGHT * self.place.feet.abs_diff(from.feet) / LAYERS as u32
    }
}

#[inline]
fn is_in_reach(Place { x, z, feet }: Place) -> bool {
    [x, z, feet.div_euclid(LAYERS)].into_iter().all(|along| (-REACH..=REACH).contains(&along))
}

/// The index of the column of a place within reach.
#[inline]
fn column(Place { x, z, .. }: Place) -> usize {
    ((x + REACH) * EDGE + z + REACH) as usize
}
