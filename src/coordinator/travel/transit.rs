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
    columns: BTreeMap<ColumnPos, Vec<Traveller>>,
    /// The last commit that the store had when it was looked for those who are stored; `None` if somebody came since.
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

    /// The one that has this stable id, or takes along who has it.
    pub fn find(&mut self, column: ColumnPos, id: Uuid) -> Option<&mut Traveller> {
        self.columns.get_mut(&column)?.iter_mut().find(|traveller| traveller.ids.contains(&id))
    }

    /// Those who wait for the column.
    pub fn take(&mut self, column: ColumnPos) -> Vec<Traveller> {
        self.columns.remove(&column).unwrap_or_default()
    }

    pub fn take_all(&mut self) -> Vec<Traveller> {
        std::mem::take(&mut self.columns).into_values().flatten().collect()
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
