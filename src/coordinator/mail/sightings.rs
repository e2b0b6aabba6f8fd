//! Entities that leave a region while they are in a box that is being captured.
//!
//! Columns are captured one after the other, so an entity that walks from a column that was not captured yet into one that was
//! is in neither. At the end of a capture each region looks once at all of its columns in the box. An entity that is in no
//! region at that moment was seen when it left its last one: on its way to another region, or with evicted columns.
//! So no entity is missed, as in the global snapshots of Chandy and Lamport.

use crate::coordinator::messages::jobs::JobId;
use crate::space::{BlockBox, DimensionId};
use crate::storage::EntityRecord;
use std::collections::BTreeMap;
use uuid::Uuid;

/// Entities that left a region and that running captures have not seen.
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
