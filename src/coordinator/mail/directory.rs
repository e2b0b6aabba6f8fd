//! Where each entity is, and the entities that leave a region during a capture.

use crate::coordinator::messages::jobs::JobId;
use crate::coordinator::messages::why::Whereabouts;
use crate::region::RegionId;
use crate::simulation::Traveller;
use crate::space::{BlockBox, DimensionId};
use crate::storage::EntityRecord;
use bevy::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::mem;
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
    /// The entities that the main world follows, each with how many times it does.
    followed: FxHashMap<Uuid, u32>,
    /// Their new places since these were last taken, in order; `None` for an entity that is gone.
    moves: Vec<(Uuid, Option<Whereabouts>)>,
}

impl Directory {
    /// Starts to follow an entity or stops it, as often as it was started. Its present place counts as a move.
    pub fn follow(&mut self, id: Uuid, is_followed: bool) {
        if is_followed {
            *self.followed.entry(id).or_default() += 1;
            self.moves.push((id, self.whereabouts(id)));
        } else if let Entry::Occupied(mut followers) = self.followed.entry(id) {
            match followers.get() {
                0 | 1 => drop(followers.remove()),
                _ => *followers.get_mut() -= 1,
            }
        }
    }

    /// The moves of followed entities since the last call, in order.
    pub fn take_moves(&mut self) -> Vec<(Uuid, Option<Whereabouts>)> {
        mem::take(&mut self.moves)
    }

    /// Notes the new place of an entity; `None` if it is gone.
    fn place(&mut self, id: Uuid, place: Option<Whereabouts>) {
        let before = match place {
            Some(place) => self.places.insert(id, place),
            None => self.places.remove(&id),
        };
        if self.followed.is_empty() || before == place || !self.followed.contains_key(&id) {
            return;
        }
        // An entity that leaves is gone from its region first.
        match self.moves.iter_mut().rev().find(|(of, _)| *of == id) {
            Some((_, last @ None)) => *last = place,
            _ => self.moves.push((id, place)),
        }
    }

    pub fn note_journey(&mut self, traveller: &Traveller) {
        let place = Whereabouts::OnTheWay(traveller.position.dimension, traveller.position.column());
        for id in &traveller.ids {
            self.place(*id, Some(place));
        }
    }

    pub fn forget_journey(&mut self, traveller: &Traveller) {
        self.has_lost = true;
        for id in &traveller.ids {
            self.place(*id, None);
        }
    }

    /// Notes a region's report. Entities that left it for another place are noted after this.
    pub fn note_region(&mut self, dimension: DimensionId, region: RegionId, appeared: &[Uuid], gone: &[Uuid]) {
        for id in appeared {
            self.place(*id, Some(Whereabouts::Region(dimension, region)));
        }
        self.has_lost |= !gone.is_empty();
        self.left.extend(gone);
        for id in gone {
            // The absorbed region may have reported it, or no region yet.
            self.place(*id, None);
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
        let fallen = self.places.iter().filter(|(id, at)| is_here(at) && is_gone(id, **at));
        let fallen: Vec<_> = fallen.map(|(id, _)| *id).collect();
        fallen.iter().for_each(|id| self.place(*id, None));
        fallen
    }

    pub fn forget_dimension(&mut self, dimension: DimensionId) {
        self.forget_fallen(dimension, |_, _| true);
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
    fn an_entity_is_followed_until_each_of_its_followers_has_stopped() {
        let (mut directory, id, here) = (Directory::default(), Uuid::from_u128(7), DimensionId(1));
        let region = |index| Some(Whereabouts::Region(here, RegionId::new(index)));
        directory.note_region(here, RegionId::new(1), &[id], &[]);
        assert!(directory.take_moves().is_empty());
        directory.follow(id, true);
        directory.follow(id, true);
        assert_eq!(directory.take_moves(), [(id, region(1)), (id, region(1))]);
        directory.follow(id, false);
        // A region reports it again, and then another one, as after a merge.
        directory.note_region(here, RegionId::new(1), &[id], &[]);
        directory.note_region(here, RegionId::new(2), &[id], &[]);
        assert_eq!(directory.take_moves(), [(id, region(2))]);
        directory.forget_dimension(here);
        assert_eq!(directory.take_moves(), [(id, None)]);
        directory.follow(id, false);
        directory.follow(id, false);
        directory.note_region(here, RegionId::new(3), &[id], &[]);
        assert!(directory.take_moves().is_empty());
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
