//! Entities on their way to columns that are not there.
//!
//! A viewer holds the ground that it goes to, and is delivered with it. Any other entity is left to the store, as if it had
//! stood on that ground when it was given up: whoever loads or generates the column takes it in.

use crate::simulation::Traveller;
use crate::space::{ColumnPos, DimensionId};
use std::collections::BTreeMap;
use uuid::Uuid;

/// Who waits for the columns of a dimension.
#[derive(Default)]
pub struct Transit {
    columns: BTreeMap<ColumnPos, Vec<Waiting>>,
    /// The last commit that the store had when it was looked for those who are stored; `None` if somebody came since.
    looked_at: Option<u64>,
}

struct Waiting {
    traveller: Traveller,
    /// The commit with which the store has it.
    stored_with: Option<u64>,
}

impl Transit {
    pub fn push(&mut self, traveller: Traveller) {
        let column = traveller.position.column();
        self.columns.entry(column).or_default().push(Waiting { traveller, stored_with: None });
        self.looked_at = None;
    }

    pub fn iter(&self) -> impl Iterator<Item = &Traveller> {
        self.columns.values().flatten().map(|waiting| &waiting.traveller)
    }

    /// The one that has this stable id, or takes along who has it.
    pub fn find(&mut self, column: ColumnPos, id: Uuid) -> Option<&mut Traveller> {
        let waiting = self.columns.get_mut(&column)?.iter_mut();
        waiting.map(|waiting| &mut waiting.traveller).find(|traveller| traveller.ids.contains(&id))
    }

    /// Those who wait for the column.
    pub fn take(&mut self, column: ColumnPos) -> Vec<Traveller> {
        let waiting = self.columns.remove(&column).unwrap_or_default();
        waiting.into_iter().map(|waiting| waiting.traveller).collect()
    }

    pub fn take_all(&mut self) -> Vec<Traveller> {
        let waiting = std::mem::take(&mut self.columns).into_values().flatten();
        waiting.map(|waiting| waiting.traveller).collect()
    }

    /// Those whom the next one to read their place from the store finds there: `last` is the last commit that the store has, and
    /// `next` the one with which it has all that was handed out up to now. `is_away` says that nobody is reading a
    /// column, or has read it and not been told of them.
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
            let is_stored = |Waiting { traveller, stored_with }: &mut Waiting| {
                let until = *stored_with.get_or_insert(next);
                traveller.viewers.is_empty() && until <= last && traveller.stored_in.iter().all(&is_away)
            };
            stored.extend(column.extract_if(.., is_stored).map(|waiting| waiting.traveller));
        }
        self.columns.retain(|_, waiting| !waiting.is_empty());
        stored
    }
}
