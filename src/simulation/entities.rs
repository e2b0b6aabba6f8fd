use super::SplitMix64;
use bevy::ecs::{lifecycle::HookContext, world::DeferredWorld};
use bevy::prelude::*;
use rustc_hash::FxHashMap;
use std::mem;
use uuid::Uuid;

/// The stable id of an entity that can travel: entity ids change from world to world, this one never does.
///
/// Every entity with a [`Position`](super::Position) gets one as it is spawned in a region.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[component(on_insert = on_insert_id, on_remove = on_remove_id)]
pub struct StableId(pub Uuid);

fn on_insert_id(mut world: DeferredWorld, context: HookContext) {
    let Some(mut id) = world.get::<StableId>(context.entity).copied() else { return };
    let Some(mut index) = world.get_resource_mut::<EntityIndex>() else { return };
    if id.0.is_nil() {
        id = StableId(index.draw());
    }
    index.entities.insert(id.0, context.entity);
    index.touched.push(id.0);
    if let Some(mut stored) = world.get_mut::<StableId>(context.entity) {
        *stored.bypass_change_detection() = id;
    }
}

fn on_remove_id(mut world: DeferredWorld, context: HookContext) {
    let Some(id) = world.get::<StableId>(context.entity).copied() else { return };
    let migrating = world.contains_resource::<Migration>();
    let Some(mut index) = world.get_resource_mut::<EntityIndex>() else { return };
    if index.entities.get(&id.0) == Some(&context.entity) {
        index.entities.remove(&id.0);
        index.touched.push(id.0);
        if !migrating {
            index.despawned.push(id.0);
        }
    }
}

/// Present in a region world while entities move in or out of it: hooks and observers that fire meanwhile mean a
/// journey, not a birth or a death.
#[derive(Resource, Debug, Default)]
pub struct Migration;

/// Finds the entities of a region by their stable ids.
#[derive(Resource, Debug)]
pub struct EntityIndex {
    entities: FxHashMap<Uuid, Entity>,
    pub(super) despawned: Vec<Uuid>,
    /// Ids that came or went since the last outbox.
    touched: Vec<Uuid>,
    ids: [SplitMix64; 2],
}

impl EntityIndex {
    pub(super) fn new() -> Self {
        Self {
            entities: FxHashMap::default(),
            despawned: Vec::new(),
            touched: Vec::new(),
            ids: [SplitMix64::new(0), SplitMix64::new(0)],
        }
    }

    /// Two streams, since one has only 64 bits of state for an id of 122.
    pub(super) fn seed(&mut self, seeds: [u64; 2]) {
        self.ids = seeds.map(SplitMix64::new);
    }

    fn draw(&mut self) -> Uuid {
        let [high, low] = &mut self.ids;
        let bits = (u128::from(high.next_u64()) << 64) | u128::from(low.next_u64());
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
    }

    pub(super) fn touch_all(&mut self) {
        self.touched.extend(self.entities.keys().copied());
    }

    /// The ids that came to be here, and those that are not here any more, since the last call; sorted.
    pub(super) fn take_touched(&mut self) -> (Vec<Uuid>, Vec<Uuid>) {
        let mut touched = mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        touched.into_iter().partition(|id| self.entities.contains_key(id))
    }

    /// The entity with this stable id, if it is in this region.
    pub fn entity(&self, id: Uuid) -> Option<Entity> {
        self.entities.get(&id).copied()
    }

    /// How many entities of this region have a stable id.
    pub fn len(&self) -> usize {
        self.entities.len()
    }

    /// Whether no entity of this region has a stable id.
    pub fn is_empty(&self) -> bool {
        self.entities.is_empty()
    }

    /// The ids of this region, in no particular order.
    pub fn ids(&self) -> impl Iterator<Item = Uuid> {
        self.entities.keys().copied()
    }
}
