//! Everything in flight between worlds: letters, entities whose ground is not loaded, and where entities are.

pub mod backlog;
pub mod directory;
pub mod queue;
pub mod sightings;
pub mod transit;

use crate::simulation::Letter;
use crate::space::ColumnPos;
use backlog::LetterPlaces;
use std::collections::BTreeMap;
use transit::Transit;
use uuid::Uuid;

/// Letters and entities that wait for columns of a dimension.
#[derive(Default)]
pub struct DimensionMail {
    /// Entities on their way to columns that are not loaded yet.
    pub transit: Transit,
    /// Letters to columns that are not loaded yet.
    pub letters: BTreeMap<ColumnPos, Vec<Letter>>,
    /// The places of these letters, and those for which ground is loaded now.
    pub letter_places: LetterPlaces,
    /// Letters of a halted region to entities that may come back with reloaded columns.
    pub recalled: Vec<Letter>,
    /// Viewers whose region halted, each with the commit after which the store shows whether it still exists.
    pub orphans: Vec<(Uuid, u64)>,
}
