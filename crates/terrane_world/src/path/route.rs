//! [`Path`]: the answer of a search.

use super::ground::{Surroundings, WalkableGround};
use super::{LAYERS, Place};
use crate::chunk::Chunk;
use crate::space::{BlockPos, ChunkPos};
use std::array;

/// A walker is at a waypoint within this distance of it along the ground, in blocks.
const ARRIVED: f32 = 0.3;

/// A point on a path: the middle of the walker's feet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waypoint {
    /// The cell with the point.
    pub block: BlockPos,
    /// The point within the cell, in blocks from its lowest corner: 0 to 1 on each axis.
    pub offset: [f32; 3],
}

impl Waypoint {
    /// The point in this cell.
    pub const fn new(block: BlockPos, offset: [f32; 3]) -> Self {
        Self { block, offset }
    }

    /// The way to another point, in blocks.
    pub fn to(&self, other: &Self) -> [f32; 3] {
        let (from, to) = ([self.block.x, self.block.y, self.block.z], [other.block.x, other.block.y, other.block.z]);
        array::from_fn(|axis| {
            let blocks = i128::from(to[axis]) - i128::from(from[axis]);
            blocks as f32 + (other.offset[axis] - self.offset[axis])
        })
    }

    /// The place of a walker with this width that stands here, relative to the block of its lowest cells.
    pub(super) fn place(&self, width: i32) -> (BlockPos, Place) {
        let [x, y, z] = self.offset;
        // NaN becomes 0.
        let lowest = |along: f32| (along - width as f32 / 2.0 + 0.5).floor().clamp(-64.0, 64.0) as i64;
        // A walker between two layers takes the lower one, but for what rounding has taken from its height.
        let feet = (y * LAYERS as f32 + 0.1).floor().clamp(-1_024.0, 1_024.0) as i32;
        (self.block.offset(lowest(x), 0, lowest(z)), Place { x: 0, z: 0, feet })
    }

    /// The place of a walker with this width that stands here, relative to an origin that is not far.
    fn place_from(&self, origin: BlockPos, width: i32) -> Place {
        let (block, Place { feet, .. }) = self.place(width);
        let along = |to: i64, from: i64| to.saturating_sub(from).clamp(-1_024, 1_024) as i32;
        let feet = along(block.y, origin.y) * LAYERS + feet;
        Place { x: along(block.x, origin.x), z: along(block.z, origin.z), feet }
    }

    pub(super) fn of(origin: BlockPos, Place { x, z, feet }: Place, width: i32) -> Self {
        let (y, height) = (feet.div_euclid(LAYERS), feet.rem_euclid(LAYERS));
        let half = width / 2;
        let middle = if width % 2 == 0 { 0.0 } else { 0.5 };
        let block = origin.offset((x + half).into(), y.into(), (z + half).into());
        Self { block, offset: [middle, height as f32 / LAYERS as f32, middle] }
    }
}

/// A way over the ground, made by a [`PathSearch`](super::PathSearch).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// The points of the way, one for each move. The first is where the walker starts.
    pub waypoints: Vec<Waypoint>,
    /// The cost, in straight steps over ordinary ground.
    pub cost: f32,
    /// Whether the path ends at the goal. Otherwise it ends at the place nearest to the goal that was found.
    pub is_complete: bool,
    /// The place of the next waypoint in the list, from which [`follow`](Self::follow) goes on. It is 0 if the walker is not at the start
    /// of the path yet, since it stood at an edge or was in the air.
    pub next: usize,
}

impl Path {
    /// The way from `at`, the middle of the walker's feet, to the next waypoint that it has not reached; `None` at the end of the
    /// path.
    pub fn follow(&mut self, at: &Waypoint) -> Option<[f32; 3]> {
        loop {
            let way = at.to(self.waypoints.get(self.next)?);
            let [x, y, z] = way;
            if x.hypot(z) > ARRIVED || y.abs() >= 1.0 {
                return Some(way);
            }
            self.next += 1;
        }
    }

    /// The place in the list of the first waypoint, from the next one on, that the walker can no longer reach from the waypoint before;
    /// `None` if the rest of the way is free. Takes as long as so many steps of a search.
    pub fn first_blocked<'a, F>(&self, ground: &mut WalkableGround<'a, F>) -> Option<usize>
    where
        F: Fn(ChunkPos) -> Option<Option<&'a Chunk>>,
    {
        let width = ground.table().size.width;
        let first = self.next.max(1);
        let (origin, _) = self.waypoints.get(first - 1)?.place(width);
        let mut around = Surroundings::new(ground, origin);
        let moves = self.waypoints.iter().zip(self.waypoints.iter().skip(1)).skip(first - 1);
        let is_blocked = |(_, (from, to)): &(usize, (&Waypoint, &Waypoint))| {
            let mut leads = false;
            around
                .moves(from.place_from(origin, width), |there, _| leads |= Waypoint::of(origin, there, width) == **to);
            !leads
        };
        (first..).zip(moves).find(is_blocked).map(|(index, _)| index)
    }
}
