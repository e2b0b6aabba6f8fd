//! Information about a region for its systems.

use crate::region::RegionId;
use crate::simulation::position::Position;
use crate::space::DimensionId;
use bevy::prelude::*;
use std::ops::Range;

/// Information about the region in which a system runs.
#[derive(Resource, Clone, Debug, Default, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Resource, Clone, Default)]
pub struct RegionInfo {
    /// The region. After a merge it is the region that absorbed the other.
    pub region: RegionId,
    /// The dimension that the region is a part of.
    pub dimension: DimensionId,
    /// The dimension's heights, in blocks.
    pub heights: Range<i64>,
    /// The dimension's floor.
    pub floor: Floor,
    /// The number of columns along the side of a section, as a power of two.
    pub section_shift: u32,
    /// The number of ticks that this region world has run.
    pub ticks: u64,
}

/// The floor of a dimension, somewhere below its ground. A [`BlockBody`](super::BlockBody) that falls down to it ends, or comes
/// back, so that nothing falls for ever. A [`Player`](super::Player) never ends. Give it to a dimension with
/// [`Dimension::with_floor`](crate::view::Dimension::with_floor).
///
/// An entity that a player follows counts as a player.
#[derive(Clone, Copy, Debug, PartialEq, Reflect)]
#[type_path = "bevy_terrane"]
pub struct Floor {
    /// The height of the floor, in blocks. Below it, all is solid to bodies.
    pub height: i64,
    /// Where bodies come back, also in another dimension. Without it they end: they are despawned, with their followers.
    pub bodies_return: Option<Position>,
    /// Where players come back. Without it they stand on the floor.
    pub players_return: Option<Position>,
}

impl Floor {
    /// How far below the lowest block of a dimension its floor is by default.
    pub const DEPTH: i64 = 64;

    /// A floor at this height, at which bodies end and on which players stand. There is none at `i64::MIN`.
    pub const fn at(height: i64) -> Self {
        Self { height, bodies_return: None, players_return: None }
    }

    /// The floor of a dimension with these heights, unless it is given another.
    pub(crate) const fn below(heights: &Range<i64>) -> Self {
        Self::at(heights.start.saturating_sub(Self::DEPTH))
    }

    /// The same floor, but players come back to this place.
    pub const fn returning_players(mut self, to: Position) -> Self {
        self.players_return = Some(to);
        self
    }

    /// The same floor, but players and all other bodies come back to this place.
    pub const fn returning_all(mut self, to: Position) -> Self {
        self.bodies_return = Some(to);
        self.returning_players(to)
    }

    /// Returns `true` if the place is at the floor, or below it.
    pub(super) const fn is_reached_at(&self, place: &Position) -> bool {
        self.height != i64::MIN && place.block.y <= self.height
    }
}

impl Default for Floor {
    /// No floor.
    fn default() -> Self {
        Self::at(i64::MIN)
    }
}
