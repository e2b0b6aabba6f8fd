//! Everything in flight between worlds: letters, entities whose ground is not loaded, and where entities are.

pub mod backlog;
pub mod directory;
pub mod queue;

use crate::simulation::{Letter, Traveller};
use crate::space::{ColumnPos, DimensionId};
use backlog::LetterPlaces;
use std::collections::BTreeMap;
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

/// Entities on their way to columns of a dimension that are not loaded.
///
/// A viewer holds the ground that it goes to, and is delivered with it. Any other entity is left to the store, as if it had
/// stood on that ground when it was evicted, and comes back when the column is loaded or generated.
#[derive(Default)]
pub struct Transit {
    columns: BTreeMap<ColumnPos, Vec<Traveller>>,
    /// The last commit at which stored entities were looked for; `None` if an entity has come since.
    looked_at: Option<u64>,
}

impl Transit {
    pub fn push(&mut self, traveller: Traveller) {
        self.columns.entry(traveller.position.column()).or_default().push(traveller);
        self.looked_at = None;
    }

    pub fn iter(&self) -> impl Iterator<Item = &Traveller> {
        self.columns.values().flatten()
    }

    /// The traveller with this stable id, or with a follower that has it.
    pub fn find(&mut self, column: ColumnPos, id: Uuid) -> Option<&mut Traveller> {
        self.columns.get_mut(&column)?.iter_mut().find(|traveller| traveller.ids.contains(&id))
    }

    /// The travellers that wait for the column.
    pub fn take(&mut self, column: ColumnPos) -> Vec<Traveller> {
        self.columns.remove(&column).unwrap_or_default()
    }

    /// Takes the letters of other servers that wait with travellers.
    pub fn take_letters_of_servers(&mut self) -> Vec<Letter> {
        let letters = self.columns.values_mut().flatten().map(|traveller| &mut traveller.letters);
        letters.flat_map(|letters| letters.extract_if(.., |letter| letter.crossing.is_some())).collect()
    }

    /// Takes the travellers that wait for columns like these.
    pub fn take_if(&mut self, is_to_go: impl Fn(ColumnPos) -> bool) -> Vec<Traveller> {
        self.columns.extract_if(.., |column, _| is_to_go(*column)).flat_map(|(_, waiting)| waiting).collect()
    }

    pub fn take_all(&mut self) -> Vec<Traveller> {
        std::mem::take(&mut self.columns).into_values().flatten().collect()
    }

    /// Takes the travellers that the next read of their place finds in the store. `last` is the store's last commit, and
    /// `next` the one with everything handed out so far. `is_away` returns `true` if no thread is reading a column, and no
    /// unreported read of it exists.
    pub fn take_stored(
        &mut self,
        last: u64,
        next: u64,
        is_away: impl Fn(&(DimensionId, ColumnPos)) -> bool,
    ) -> Vec<Traveller> {
        if self.looked_at.replace(last) == Some(last) {
            return Vec::new();
        }
        let mut stored = Vec::new();
        for column in self.columns.values_mut() {
            let is_stored = |traveller: &mut Traveller| {
                let until = *traveller.stored_with.get_or_insert(next);
                traveller.viewers.is_empty() && until <= last && traveller.stored_in.iter().all(&is_away)
            };
            stored.extend(column.extract_if(.., is_stored));
        }
        self.columns.retain(|_, waiting| !waiting.is_empty());
        stored
    }
}
