//! The tickets that keep ground loaded, and the ground of each.

use crate::coordinator::demand::heading::Heading;
use crate::coordinator::demand::outlook::Outlook;
use crate::simulation::ViewerRadii;
use crate::space::{BATCH_SIZE, ChunkPos, ColumnPos};
use bevy::prelude::Entity;
use std::fmt::{self, Display, Formatter};
use uuid::Uuid;

/// Columns are released this many columns beyond the radius at which they are loaded, so that a step back loads nothing again.
pub const HOLD_MARGIN: u32 = 2;

/// A ticket that keeps columns loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ticket {
    /// A viewer of the main world.
    Main(Entity),
    /// A viewer in a region, or on its way between two.
    Region(Uuid),
    /// A place that letters wait for.
    Letters(ChunkPos),
}

impl Display for Ticket {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Main(entity) => write!(f, "{entity}"),
            Self::Region(id) => write!(f, "{id}"),
            Self::Letters(chunk) => write!(f, "a letter to {chunk}"),
        }
    }
}

#[derive(Clone, Debug)]
pub struct ViewerState {
    pub center: ColumnPos,
    /// The height in chunks; 0 unless the dimension is sparse.
    pub height: i64,
    pub radii: ViewerRadii,
    pub heading: Heading,
    /// The columns to load in its range.
    pub to_load: Outlook,
    /// The columns to generate in its range.
    pub to_generate: Outlook,
    /// The last turn in which something was ordered in its range.
    pub served: u64,
}

impl ViewerState {
    /// The radius within which columns are loaded for it together with others of their batch.
    ///
    /// A batch is read as a whole, even for a single column of it. A walking viewer would have each batch read four times if
    /// it did not take along the columns that it keeps anyway. But around a disc smaller than a batch, that would be most of
    /// the ground: seven more columns, on average, for the one column of radius 0.
    pub fn takes_along(&self) -> u32 {
        self.radii.load + if self.radii.load < BATCH_SIZE as u32 { 0 } else { HOLD_MARGIN }
    }

    /// Returns `true` if it needs the column generated.
    pub fn reaches(&self, column: ColumnPos) -> bool {
        column.distance_squared(self.center) <= u128::from(self.radii.generation).pow(2)
    }

    /// Returns `true` if it generates ground beyond its load radius.
    pub fn generates_further(&self) -> bool {
        self.radii.generation > self.radii.load
    }
}

/// The columns of the disc `new` that are not in the disc `old`, z outer, x inner, ascending.
pub fn disc_difference(
    (center, radius): (ColumnPos, i64),
    old: Option<(ColumnPos, i64)>,
) -> impl Iterator<Item = ColumnPos> {
    let within = move |column: ColumnPos, center: ColumnPos, radius: i64| {
        column.distance_squared(center) <= (radius * radius) as u128
    };
    (-radius..=radius)
        .flat_map(move |z| (-radius..=radius).map(move |x| (x, z)))
        .filter(move |(x, z)| x * x + z * z <= radius * radius)
        .filter_map(move |(x, z)| Some(ColumnPos::new(center.x.checked_add(x)?, center.z.checked_add(z)?)))
        .filter(move |&column| old.is_none_or(|(center, radius)| !within(column, center, radius)))
}
