//! Resources and placed messages of regions when regions merge and split.

use crate::region::RegionPart;
use crate::simulation::components::mapping::{Arrived, Mapping};
use crate::space::BlockPos;
use bevy::ecs::component::Mutable;
use bevy::ecs::entity::EntityMapper;
use bevy::ecs::message::Messages;
use bevy::prelude::*;
use std::any::TypeId;

/// A resource of region worlds that is joined when regions merge and divided when they split.
///
/// It is registered with `register_region_resource`.
///
/// A value that region plugins insert into every new region world is merged like any other, so it should be empty.
pub trait RegionResource: Resource + Component<Mutability = Mutable> + Sized {
    /// Merges the value of a region that merged into this one, or the part that a split gave to this one.
    fn merge(&mut self, other: Self);

    /// Splits off the share of the part of the region that becomes another region.
    fn split(&mut self, part: &RegionPart) -> Self;

    /// Maps the references to entities in the arriving value. A reference to an entity that did not move along becomes
    /// `Entity::PLACEHOLDER`.
    fn map_references<M: EntityMapper>(&mut self, mapper: &mut M) {
        Self::map_entities(self, mapper);
    }
}

/// A type-erased resource of a region, or a share of one, in transit.
pub trait TravellingResource: Send + Sync {
    /// Splits off the share of the part.
    fn divide(&mut self, part: &RegionPart) -> Box<dyn TravellingResource>;
    /// Merges it into the world.
    fn settle(self: Box<Self>, world: &mut World, mapping: &mut Mapping);
}

impl<R: RegionResource> TravellingResource for R {
    fn divide(&mut self, part: &RegionPart) -> Box<dyn TravellingResource> {
        Box::new(self.split(part))
    }

    fn settle(mut self: Box<Self>, world: &mut World, mapping: &mut Mapping) {
        self.map_references(mapping);
        match world.get_resource_mut::<R>() {
            Some(mut resource) => resource.merge(*self),
            None => world.insert_resource(*self),
        }
    }
}

/// A resource in transit, and the move to which its references to entities belong.
pub type TakenResource = (u64, Box<dyn TravellingResource>);

/// A registered resource type and the function that takes the whole value, or the share of a part.
pub type TakeResource = (TypeId, fn(&mut World, Option<&RegionPart>) -> Option<Box<dyn TravellingResource>>);

/// Registers the resource type `R`.
pub fn take_resource<R: RegionResource>() -> TakeResource {
    let take = |world: &mut World, part: Option<&RegionPart>| match part {
        Some(part) => world.get_resource_mut::<R>().map(|mut resource| resource.divide(part)),
        None => world.remove_resource::<R>().map(|resource| Box::new(resource) as Box<dyn TravellingResource>),
    };
    (TypeId::of::<R>(), take)
}

/// Takes these resources out of a world that ends, or their shares for a part.
pub fn take_resources(
    world: &mut World,
    resources: &[TakeResource],
    origin: u64,
    part: Option<&RegionPart>,
) -> Vec<TakenResource> {
    resources.iter().filter_map(|(_, take)| Some((origin, take(world, part)?))).collect()
}

/// Merges arriving resources into the world.
pub fn settle_resources(world: &mut World, resources: Vec<TakenResource>, arrived: &Arrived) {
    for (origin, resource) in resources {
        resource.settle(world, &mut Mapping { origin, arrived });
    }
}

/// A message type of the game whose messages belong to places. After `register_region_resource::<Messages<M>>()`, messages
/// from the last tick before a merge or a split travel with their place and can be read there.
///
/// It is unknown which systems have already read a message: systems that run after its writer see it twice. Use
/// [`Post`](crate::simulation::Post) for messages that must arrive exactly once.
pub trait PlacedMessage: Message + Clone {
    /// The place of the message; `None` if it does not travel.
    fn block(&self) -> Option<BlockPos>;
}

impl<M: PlacedMessage> RegionResource for Messages<M> {
    fn merge(&mut self, mut other: Self) {
        // Older messages could be read during a whole tick.
        let newest = other.iter_current_update_messages().len();
        let older = other.len() - newest;
        self.write_batch(other.drain().skip(older));
    }

    fn split(&mut self, part: &RegionPart) -> Self {
        let mut share = Self::default();
        let goes = |message: &&M| message.block().is_some_and(|block| part.contains_block(block));
        share.write_batch(self.iter_current_update_messages().filter(goes).cloned());
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::RegionId;
    use crate::space::SectionPos;

    #[derive(Message, Clone, Debug, PartialEq)]
    struct Noise(i64);

    impl PlacedMessage for Noise {
        fn block(&self) -> Option<BlockPos> {
            Some(BlockPos::new(self.0, 0, 0))
        }
    }

    fn unread(messages: &Messages<Noise>) -> Vec<i64> {
        messages.get_cursor().read(messages).map(|noise| noise.0).collect()
    }

    #[test]
    fn unread_messages_go_with_their_place() {
        let mut messages = Messages::default();
        messages.write(Noise(1));
        messages.update();
        messages.write_batch([Noise(2), Noise(200)]);
        let part = RegionPart { id: RegionId::new(1), sections: vec![SectionPos::new(3, 0)], section_shift: 2 };
        let share = messages.split(&part);
        assert_eq!(unread(&share), [200]);

        let mut into = Messages::default();
        into.write(Noise(3));
        into.merge(messages);
        assert_eq!(unread(&into), [3, 2, 200], "the oldest had its time");
    }
}
