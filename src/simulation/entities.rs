//! Stable ids, their index, and the event of a move.

use crate::simulation::random::SplitMix64;
use bevy::ecs::{lifecycle::HookContext, world::DeferredWorld};
use bevy::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::mem;
use uuid::Uuid;

/// The stable id of an entity that can travel. Bevy's entity ids differ from world to world, but this id never changes.
///
/// Every entity with a [`Position`](crate::simulation::Position) gets one as it is spawned in a region.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Reflect)]
#[type_path = "bevy_terrane"]
#[component(on_insert = on_insert_id, on_discard = on_discard_id)]
#[reflect(Component, Clone, Default)]
pub struct StableId(pub Uuid);

fn on_insert_id(mut world: DeferredWorld, context: HookContext) {
    let Some(mut id) = world.get::<StableId>(context.entity).copied() else { return };
    let Some(mut index) = world.get_resource_mut::<EntityIndex>() else { return };
    if id.0.is_nil() {
        id = StableId(index.draw());
    }
    index.insert(id.0, context.entity);
    if let Some(mut stored) = world.get_mut::<StableId>(context.entity) {
        *stored.bypass_change_detection() = id;
    }
}

/// Also runs when another id replaces it. An entity that leaves for another world has been forgotten before this, so an entity
/// that is still in the index dies, even if a hook or an observer despawns it during the journey of others.
fn on_discard_id(mut world: DeferredWorld, context: HookContext) {
    let Some(id) = world.get::<StableId>(context.entity).copied() else { return };
    let Some(mut index) = world.get_resource_mut::<EntityIndex>() else { return };
    if index.remove(id.0, context.entity) {
        index.despawned.insert(id.0);
    }
}

/// Removes an entity from the index that leaves this world but lives on elsewhere, so that its stored record stays.
pub fn forget(world: &mut World, entity: Entity) {
    let Some(StableId(id)) = world.get::<StableId>(entity).copied() else { return };
    if let Some(mut index) = world.get_resource_mut::<EntityIndex>() {
        index.remove(id, entity);
    }
}

/// Removes an entity and its followers from the world. They live on in the store, or have arrived again.
pub fn remove_family(world: &mut World, root: Entity, followers: Vec<Entity>) {
    followers.into_iter().for_each(|entity| forget(world, entity));
    // A hook of another entity may have despawned it.
    if world.entities().contains_spawned(root) {
        world.despawn(root);
    }
}

/// Present in a region world while entities move in or out of it. Hooks and observers that fire meanwhile see a journey,
/// not a spawn or a despawn.
#[derive(Resource, Debug, Default, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Resource, Default)]
pub struct Moving;

/// The reason why entities moved from one region world to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MoveCause {
    /// Their region merged into another one.
    Merge,
    /// Their region split.
    Split,
    /// They walked out of their region.
    Crossing,
}

/// Triggered in the destination world for each entity that moved by itself, not for its followers, once everything that
/// arrives with it is complete and [`Moving`] is removed.
#[derive(EntityEvent, Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityMoved {
    /// The entity in this world.
    pub entity: Entity,
    /// The entity's stable id.
    pub id: Uuid,
    /// The reason for the move.
    pub cause: MoveCause,
}

/// Finds the entities of a region by their stable ids.
#[derive(Resource, Clone, Debug, Default, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(opaque)]
#[reflect(Resource, Clone, Default)]
pub struct EntityIndex {
    entities: FxHashMap<Uuid, Entity>,
    /// Ids of despawned entities that may still be in the store.
    pub(crate) despawned: FxHashSet<Uuid>,
    /// `true` if a player has died or left on a journey since the last check.
    pub(crate) has_lost_player: bool,
    /// Ids that were added or removed since the last outbox.
    touched: Vec<Uuid>,
    reported_duplicate: bool,
    ids: [SplitMix64; 2],
}

impl EntityIndex {
    /// Seeds the ids. They use two streams, since one has only 64 bits of state for an id of 122 bits.
    pub(crate) fn seed(&mut self, seeds: [u64; 2]) {
        self.ids = seeds.map(SplitMix64::new);
    }

    fn draw(&mut self) -> Uuid {
        let [high, low] = &mut self.ids;
        let bits = (u128::from(high.next_u64()) << 64) | u128::from(low.next_u64());
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
    }

    /// Adds an entity. Of two entities with the same id, the later one is found.
    fn insert(&mut self, id: Uuid, entity: Entity) {
        self.touched.push(id);
        if let Some(before) = self.entities.insert(id, entity)
            && before != entity
            && !mem::replace(&mut self.reported_duplicate, true)
        {
            error!("{before} and {entity} have the same StableId {id}: only {entity} is found by it and stored");
        }
    }

    /// Removes the entity. Returns `true` if the id led to it.
    fn remove(&mut self, id: Uuid, entity: Entity) -> bool {
        let found = self.entities.get(&id) == Some(&entity);
        if found {
            self.entities.remove(&id);
            self.touched.push(id);
        }
        found
    }

    pub(crate) fn touch_all(&mut self) {
        self.touched.extend(self.entities.keys().copied());
    }

    /// The ids that were added or removed since the last call, split into those present now and those absent; sorted.
    pub(crate) fn take_touched(&mut self) -> (Vec<Uuid>, Vec<Uuid>) {
        let mut touched = mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        touched.into_iter().partition(|id| self.entities.contains_key(id))
    }

    /// The entity with this stable id, if it is in this region.
    pub fn entity(&self, id: Uuid) -> Option<Entity> {
        self.entities.get(&id).copied()
    }

    /// The number of entities in this region that have a stable id.
    pub fn len(&self) -> usize {
        self.entities.len()
    }

    /// Returns `true` if no entity of this region has a stable id.
    pub fn is_empty(&self) -> bool {
        self.entities.is_empty()
    }

    /// The ids of this region, in no particular order.
    pub fn ids(&self) -> impl Iterator<Item = Uuid> {
        self.entities.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world() -> World {
        let mut world = World::new();
        world.init_resource::<EntityIndex>();
        world
    }

    fn news(world: &mut World) -> (Vec<Uuid>, Vec<Uuid>) {
        world.resource_mut::<EntityIndex>().take_touched()
    }

    #[test]
    fn arrivals_and_departures_are_reported_once() {
        let mut world = world();
        let [one, two, three] = [1, 2, 3].map(Uuid::from_u128);
        let first = world.spawn(StableId(one)).id();
        world.spawn(StableId(three));
        let brief = world.spawn(StableId(two)).id();
        world.despawn(brief);
        assert_eq!(news(&mut world), (vec![one, three], vec![two]), "who was here for a moment is told of too");
        assert_eq!(news(&mut world), (vec![], vec![]));
        world.despawn(first);
        world.spawn(StableId(two));
        assert_eq!(news(&mut world), (vec![two], vec![one]));
        let back = world.spawn(StableId(one)).id();
        world.despawn(back);
        assert_eq!(news(&mut world), (vec![], vec![one]));
    }

    /// Promise, travel: A `StableId` finds an entity again after it has travelled.
    #[test]
    fn of_two_entities_with_one_id_the_later_one_is_found() {
        let mut world = world();
        let id = Uuid::from_u128(7);
        let [first, second] = [(); 2].map(|()| world.spawn(StableId(id)).id());
        assert_eq!(world.resource::<EntityIndex>().entity(id), Some(second));
        world.despawn(first);
        assert_eq!(world.resource::<EntityIndex>().entity(id), Some(second));
        assert_eq!(news(&mut world), (vec![id], vec![]));
        world.despawn(second);
        assert!(world.resource::<EntityIndex>().is_empty());
        assert_eq!(news(&mut world), (vec![], vec![id]));
    }

    #[test]
    fn an_id_that_takes_the_place_of_another_leaves_none_behind() {
        let mut world = world();
        let [old, new] = [1, 2].map(Uuid::from_u128);
        let entity = world.spawn(StableId(old)).id();
        world.entity_mut(entity).insert(StableId(new));
        let index = world.resource::<EntityIndex>();
        assert_eq!((index.entity(old), index.entity(new)), (None, Some(entity)));
        assert_eq!(index.despawned, FxHashSet::from_iter([old]));
    }
}
