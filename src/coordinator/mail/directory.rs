//! Where each entity is, and the entities that leave a region during a capture.

use crate::coordinator::messages::jobs::JobId;
use crate::region::RegionId;
use crate::simulation::Traveller;
use crate::space::{BlockBox, ColumnPos, DimensionId};
use crate::storage::EntityRecord;
use bevy::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use uuid::Uuid;

/// The whereabouts of each entity with a stable id.
#[derive(Resource, Default)]
pub struct Directory {
    places: FxHashMap<Uuid, Whereabouts>,
    /// `true` if entities with known whereabouts may be gone.
    pub has_lost: bool,
    /// Entities that left a region since this was last taken.
    pub left: FxHashSet<Uuid>,
    /// Entities that are gone while columns are on order, each with the last order before. A column that was read for such an order may
    /// still have them.
    gone: FxHashMap<Uuid, u64>,
    pub sightings: Sightings,
}

/// The whereabouts of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// In the world of this region, or of the one that absorbed it.
    Region(DimensionId, RegionId),
    /// On its way to this column: in its region's inbox, or waiting for the column.
    OnTheWay(DimensionId, ColumnPos),
}

impl Directory {
    pub fn note_journey(&mut self, traveller: &Traveller) {
        let place = Whereabouts::OnTheWay(traveller.position.dimension, traveller.position.column());
        for id in &traveller.ids {
            self.places.insert(*id, place);
        }
    }

    pub fn forget_journey(&mut self, traveller: &Traveller) {
        self.has_lost = true;
        for id in &traveller.ids {
            self.places.remove(id);
        }
    }

    /// Notes a region's report. Entities that left it for another place are noted after this.
    pub fn note_region(&mut self, dimension: DimensionId, region: RegionId, appeared: &[Uuid], gone: &[Uuid]) {
        for id in appeared {
            self.places.insert(*id, Whereabouts::Region(dimension, region));
        }
        self.has_lost |= !gone.is_empty();
        self.left.extend(gone);
        for id in gone {
            // The absorbed region may have reported it, or no region yet.
            self.places.remove(id);
        }
    }

    /// Notes that these entities are gone from their region, while the orders up to this one may not be answered.
    pub fn note_gone(&mut self, gone: &[Uuid], last_claim: u64) {
        for id in gone {
            // It may have gone from another dimension since a later order.
            let last = self.gone.entry(*id).or_insert(0);
            *last = last_claim.max(*last);
        }
    }

    /// Notes that all orders before this one are answered; `None` if all are.
    pub fn forget_gone(&mut self, oldest_claim: Option<u64>) {
        self.gone.retain(|_, last| oldest_claim.is_some_and(|oldest| *last >= oldest));
    }

    /// Returns `true` if the entity was in a region when this order was given, or has come to one since. Its stored record is outdated.
    pub fn has_seen(&self, id: Uuid, claim: u64) -> bool {
        self.knows(id) || self.gone.get(&id).is_some_and(|last| *last >= claim)
    }

    /// Where the entity is, if that is known.
    pub fn whereabouts(&self, id: Uuid) -> Option<Whereabouts> {
        self.places.get(&id).copied()
    }

    /// Returns `true` if the entity's whereabouts are known.
    pub fn knows(&self, id: Uuid) -> bool {
        self.places.contains_key(&id)
    }

    /// Returns `true` if the entity is in the world of this region.
    pub fn is_in(&self, id: Uuid, dimension: DimensionId, region: RegionId) -> bool {
        self.places.get(&id) == Some(&Whereabouts::Region(dimension, region))
    }

    /// Returns `true` if the entity is known to be in the world of a region.
    pub fn is_in_region(&self, id: Uuid) -> bool {
        matches!(self.places.get(&id), Some(Whereabouts::Region(..)))
    }

    /// Forgets the entities that were in a halted region or had just arrived there, and returns their ids.
    pub fn forget_fallen(&mut self, dimension: DimensionId, is_gone: impl Fn(&Uuid, Whereabouts) -> bool) -> Vec<Uuid> {
        self.has_lost = true;
        let is_here = |at: &Whereabouts| match at {
            Whereabouts::Region(of, _) | Whereabouts::OnTheWay(of, _) => *of == dimension,
        };
        self.places.extract_if(|id, at| is_here(at) && is_gone(id, *at)).map(|(id, _)| id).collect()
    }

    pub fn forget_dimension(&mut self, dimension: DimensionId) {
        self.has_lost = true;
        self.places.retain(|_, place| match place {
            Whereabouts::Region(of, _) | Whereabouts::OnTheWay(of, _) => *of != dimension,
        });
    }
}

/// Entities that left a region while they were in a box that is being captured, and that the capture has not seen.
///
/// Columns are captured one after the other, so an entity that walks from a column that was not captured yet into one that was
/// is in neither. At the end of a capture each region looks once at all of its columns in the box. An entity that is in no
/// region at that moment was seen when it left its last one: on its way to another region, or with evicted columns.
/// So no entity is missed, as in the global snapshots of Chandy and Lamport.
#[derive(Default)]
pub struct Sightings(BTreeMap<JobId, Watch>);

struct Watch {
    dimension: DimensionId,
    area: BlockBox,
    /// Entities that left a region and were in the box at that moment.
    left: BTreeMap<Uuid, EntityRecord>,
}

impl Sightings {
    pub fn watch(&mut self, job: JobId, dimension: DimensionId, area: BlockBox) {
        self.0.insert(job, Watch { dimension, area, left: BTreeMap::new() });
    }

    /// Forgets the entities that were seen elsewhere.
    pub fn forget(&mut self, job: JobId, is_seen: impl Fn(Uuid) -> bool) {
        if let Some(watch) = self.0.get_mut(&job) {
            watch.left.retain(|id, _| !is_seen(*id));
        }
    }

    /// Ends the watch, and returns the entities that left a region and were in the box at that moment.
    pub fn end(&mut self, job: JobId) -> impl Iterator<Item = EntityRecord> + use<> {
        let watch = self.0.remove(&job);
        watch.into_iter().flat_map(|watch| watch.left.into_values())
    }

    /// Notes an entity that left a region at its present place.
    pub fn note(&mut self, entity: &EntityRecord) {
        for watch in self.0.values_mut() {
            let is_inside = entity.dimension == watch.dimension && watch.area.contains(entity.block);
            match is_inside && entity.player().is_none() {
                true => drop(watch.left.insert(entity.id, entity.clone())),
                false => drop(watch.left.remove(&entity.id)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::BlockPos;

    fn entity(dimension: u64, x: i64) -> EntityRecord {
        EntityRecord {
            id: Uuid::from_u128(7),
            dimension: DimensionId(dimension),
            block: BlockPos::new(x, 0, 0),
            offset: [0.0; 3],
            viewer: None,
            components: Vec::new(),
            children: Vec::new(),
        }
    }

    #[test]
    fn an_entity_that_left_the_box_is_not_captured() {
        let (mut sightings, job) = (Sightings::default(), JobId(1));
        let area = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(9, 9, 9));
        for (there, is_inside) in [(entity(1, 5), true), (entity(1, 10), false), (entity(2, 5), false)] {
            sightings.watch(job, DimensionId(1), area);
            sightings.note(&entity(1, 3));
            sightings.note(&there);
            assert!(sightings.end(job).eq(is_inside.then_some(there)));
        }
        sightings.note(&entity(1, 5));
        assert_eq!(sightings.end(job).count(), 0);
        sightings.watch(job, DimensionId(1), area);
        sightings.note(&entity(1, 5));
        sightings.forget(job, |id| id == entity(1, 5).id);
        assert_eq!(sightings.end(job).count(), 0);
    }
}
