//! Who keeps ground loaded, and which.

use super::heading::Heading;
use super::outlook::Outlook;
use crate::simulation::ViewerRadii;
use crate::space::{BATCH_SIZE, ChunkPos, ColumnPos};
use bevy::prelude::Entity;
use uuid::Uuid;

/// Columns are let go so many columns beyond where they are asked for, so that a step back loads nothing again.
pub const HOLD_MARGIN: u32 = 2;

/// What keeps columns loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    /// A viewer of the main world.
    Main(Entity),
    /// A viewer in a region, or on its way between two.
    Region(Uuid),
    /// A place that letters wait for.
    Letters(ChunkPos),
}

#[derive(Clone, Debug)]
pub struct ViewerState {
    pub center: ColumnPos,
    /// In chunks; 0 unless the dimension is sparse.
    pub height: i64,
    pub radii: ViewerRadii,
    pub heading: Heading,
    /// What is to be loaded in its range.
    pub to_load: Outlook,
    /// What is to be generated in its range.
    pub to_generate: Outlook,
    /// The turn in which something was ordered in its range last.
    pub served: u64,
}

impl ViewerState {
    /// How far columns are loaded for it together with others of their batch.
    ///
    /// A batch is read as a whole, also for a single column of it. A viewer that walks would have each batch read four times
    /// if it did not take along what it keeps anyway. But around a disc smaller than a batch that is most of the ground:
    /// seven columns more, on average, for the one column of radius 0.
    pub fn takes_along(&self) -> u32 {
        self.radii.load + if self.radii.load < BATCH_SIZE as u32 { 0 } else { HOLD_MARGIN }
    }

    /// Whether it wants the column generated.
    pub fn reaches(&self, column: ColumnPos) -> bool {
        column.distance_squared(self.center) <= u128::from(self.radii.generation).pow(2)
    }

    /// Whether it has ground generated that is not loaded for it.
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
