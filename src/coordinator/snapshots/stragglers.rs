//! Who stands in a captured box, and in none of its columns as they were captured; and whoever is to be removed from a
//! restored one, and has crossed into a column that was restored before. Each region that has columns of the box deals with
//! them at once.

use super::job::Surroundings;
use crate::snapshot::Snapshot;
use crate::space::{ColumnPos, DimensionId};
use crate::storage::EntityRecord;
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;
use uuid::Uuid;

/// The last round of all regions with columns of a box.
#[derive(Default)]
pub struct Stragglers {
    /// Who left a region and is in the box, and was not caught up to then.
    seen: BTreeMap<Uuid, EntityRecord>,
    /// The columns whose region has not had its turn.
    unseen: BTreeSet<ColumnPos>,
    /// Who was caught when the second look began.
    pub known: Arc<FxHashSet<Uuid>>,
}

impl Stragglers {
    /// Takes in who has left regions since the last call.
    pub fn note(&mut self, left: BTreeMap<Uuid, Option<EntityRecord>>, captured: &Snapshot) {
        for (id, record) in left {
            match record.filter(|_| captured.entity_column(id).is_none()) {
                Some(record) => drop(self.seen.insert(id, record)),
                None => drop(self.seen.remove(&id)),
            }
        }
    }

    /// All columns have been captured.
    pub fn begin(&mut self, dimension: DimensionId, captured: &Snapshot, world: &Surroundings) {
        self.known = Arc::new(captured.entity_ids().collect());
        // Whoever is in a region now is seen there, or as they leave it.
        self.seen.retain(|id, _| !world.directory.is_in_region(*id));
        self.begin_round(dimension, captured, world);
    }

    /// Each region with columns of a snapshot has its turn.
    pub fn begin_round(&mut self, dimension: DimensionId, snapshot: &Snapshot, world: &Surroundings) {
        let Some(open) = world.dimensions.open.get(&dimension) else { return };
        let columns = snapshot.columns().map(|(column, _)| column);
        self.unseen = columns.filter(|column| open.columns.is_in_region(*column)).collect();
    }

    /// A column for each region whose turn it is.
    pub fn wanted(&mut self, dimension: DimensionId, world: &Surroundings) -> Vec<ColumnPos> {
        let Some(open) = world.dimensions.open.get(&dimension) else { return Vec::new() };
        // Who was in a column that was given up has been seen with it; who is in a halted region is as they are stored.
        self.unseen.retain(|column| open.columns.is_in_region(*column) && !world.is_halted(dimension, *column));
        let mut regions = FxHashSet::default();
        let of_new_region =
            |column: &ColumnPos| open.regionizer.region_at(*column).is_some_and(|region| regions.insert(region));
        self.unseen.iter().copied().filter(of_new_region).collect()
    }

    /// A region has dealt with these columns.
    pub fn looked(&mut self, columns: impl IntoIterator<Item = ColumnPos>) {
        for column in columns {
            self.unseen.remove(&column);
        }
    }

    /// All have looked; whoever nobody has found is where they were seen last.
    pub fn give_to(&mut self, captured: &mut Snapshot) {
        for (id, entity) in mem::take(&mut self.seen) {
            if captured.entity_column(id).is_none() {
                captured.add_entity(entity.column(), entity);
            }
        }
    }
}
