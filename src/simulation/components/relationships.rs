//! Relationships between entities that move together.

use crate::simulation::components::mapping::{Ages, BoxedComponent, ChangeClock, Mapping};
use bevy::ecs::relationship::{Relationship, RelationshipTarget};
use bevy::platform::collections::HashSet;
use bevy::prelude::*;
use std::any::TypeId;

/// Type-erased functions of one relationship type.
#[derive(Clone, Copy)]
pub struct RelationshipFunctions {
    pub type_id: TypeId,
    pub target_type_id: TypeId,
    /// `true` if the sources travel with their target and are despawned with it.
    pub linked: bool,
    pub target: fn(EntityRef) -> Option<Entity>,
    pub sources: fn(EntityRef) -> Option<Vec<Entity>>,
    target_ages: fn(EntityRef, ChangeClock) -> Option<Ages>,
    take: fn(&mut EntityWorldMut) -> Option<BoxedComponent>,
    insert: fn(&mut EntityWorldMut, Entity, BoxedComponent, &mut Mapping),
}

impl RelationshipFunctions {
    pub fn of<R: Relationship>() -> Self {
        Self {
            type_id: TypeId::of::<R>(),
            target_type_id: TypeId::of::<R::RelationshipTarget>(),
            linked: R::RelationshipTarget::LINKED_SPAWN,
            target: |entity| entity.get::<R>().map(R::get),
            sources: |entity| entity.get::<R::RelationshipTarget>().map(|target| target.iter().collect()),
            target_ages: |entity, clock| Some(clock.ages(entity.get_change_ticks::<R::RelationshipTarget>()?)),
            take: |entity| entity.take::<R>().map(|relationship| Box::new(relationship) as BoxedComponent),
            insert: |entity, target, relationship, mapping| {
                if let Ok(mut relationship) = relationship.downcast::<R>() {
                    // Maps the other references in the component.
                    R::map_entities(&mut relationship, mapping);
                    relationship.set_risky(target);
                    entity.insert(*relationship);
                }
            },
        }
    }
}

/// The relationships of one type that lead to one entity, as far as their sources move along.
pub struct TakenRelationship {
    /// The number of the registered type.
    number: usize,
    /// The sources in the order of the target's list, with their ids in the world that they left.
    sources: Vec<(Entity, BoxedComponent)>,
    /// The length of the target's list. Some of its sources may have stayed behind.
    count: usize,
    /// The ages of the target's list.
    ages: Option<Ages>,
}

/// Removes every relationship between two of the leaving entities, so that removing one does not despawn the other. Returns
/// the relationships that lead to each entity, in the order of the entities.
pub fn take_relationships(
    world: &mut World,
    known: &[RelationshipFunctions],
    leaving: &[Entity],
    clock: ChangeClock,
) -> Vec<Vec<TakenRelationship>> {
    let together: HashSet<Entity> = leaving.iter().copied().collect();
    // All lists are read before the first relationship is removed, because that changes a list.
    let lists = |target: &Entity| {
        let entity = world.get_entity(*target).ok()?;
        let list = |(number, functions): (usize, &RelationshipFunctions)| {
            Some((number, (functions.sources)(entity)?, (functions.target_ages)(entity, clock)))
        };
        Some(known.iter().enumerate().filter_map(list).collect())
    };
    let lists: Vec<Vec<_>> = leaving.iter().map(|target| lists(target).unwrap_or_default()).collect();
    let mut take = |(number, sources, ages): (usize, Vec<Entity>, _)| {
        let count = sources.len();
        let take_one = |source: Entity| {
            // A hook of another entity may have removed it.
            let value = (known.get(number)?.take)(&mut world.get_entity_mut(source).ok()?)?;
            Some((source, value))
        };
        let moving = sources.into_iter().filter(|source| together.contains(source));
        TakenRelationship { number, sources: moving.filter_map(take_one).collect(), count, ages }
    };
    lists.into_iter().map(|lists| lists.into_iter().map(&mut take).collect()).collect()
}

/// Restores the relationships between the arrived entities, in the order of their targets' lists. A relationship
/// whose target stayed behind is dropped.
pub fn insert_relationships(
    world: &mut World,
    known: &[RelationshipFunctions],
    arrived: Vec<(Entity, Vec<TakenRelationship>, Mapping)>,
    clock: ChangeClock,
) {
    let mut lists = Vec::new();
    for (target, taken, mut mapping) in arrived {
        for TakenRelationship { number, sources, count, ages } in taken {
            let Some(functions) = known.get(number) else { continue };
            for (source, value) in sources {
                // Hooks of earlier entities may have despawned either of them.
                if world.entities().contains_spawned(target)
                    && let Some(source) = mapping.arrived(source)
                    && let Ok(mut source) = world.get_entity_mut(source)
                {
                    (functions.insert)(&mut source, target, value, &mut mapping);
                }
            }
            lists.extend(ages.map(|ages| (functions, target, count, ages)));
        }
    }
    let clock = ChangeClock { now: world.change_tick(), ..clock };
    for (functions, target, count, ages) in lists {
        let Ok(mut target) = world.get_entity_mut(target) else { continue };
        // If some sources did not come along, the list has changed.
        let complete = (functions.sources)(target.as_readonly()).is_some_and(|now| now.len() == count);
        if complete
            && let Some(id) = target.world().components().get_valid_id(functions.target_type_id)
            && let Ok(mut list) = target.get_mut_by_id(id)
        {
            clock.apply(ages, &mut list);
        }
    }
}
