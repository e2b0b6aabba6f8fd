//! Relationships between entities that move together.

use super::mapping::{BoxedComponent, Mapping};
use super::ticks::{Ages, ChangeClock};
use bevy::ecs::relationship::{Relationship, RelationshipTarget};
use bevy::platform::collections::{HashMap, HashSet};
use bevy::prelude::*;
use std::any::TypeId;

/// What can be done with one type of relationship without knowing it.
#[derive(Clone, Copy)]
pub struct RelationshipFunctions {
    pub type_id: TypeId,
    pub target_type_id: TypeId,
    /// Whether the sources follow their target wherever it goes, also into death.
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
                    // What else it refers to.
                    R::map_entities(&mut relationship, mapping);
                    relationship.set_risky(target);
                    entity.insert(*relationship);
                }
            },
        }
    }
}

/// A relationship that was taken off its source.
pub struct TakenRelationship {
    /// Which of the registered ones.
    number: usize,
    /// The target, in the world that both left.
    target: Entity,
    /// The source's place among all sources of the target.
    place: usize,
    value: BoxedComponent,
}

/// How old the list of an entity's sources is, if it arrives complete.
pub struct TargetAges {
    number: usize,
    sources: usize,
    ages: Ages,
}

/// An entity's relationships: those that start from it, and those that lead to it.
#[derive(Default)]
pub struct TakenRelationships {
    pub from: Vec<TakenRelationship>,
    pub to: Vec<TargetAges>,
}

/// Takes off every relationship between two of the leaving entities, which ends all that would despawn one with the
/// other; in the order of the entities.
pub fn take_relationships(
    world: &mut World,
    known: &[RelationshipFunctions],
    leaving: &[Entity],
    clock: ChangeClock,
) -> Vec<TakenRelationships> {
    let together: HashSet<Entity> = leaving.iter().copied().collect();
    let mut places = HashMap::new();
    let mut taken: Vec<_> = leaving.iter().map(|_| TakenRelationships::default()).collect();
    for (target, taken) in leaving.iter().zip(&mut taken) {
        let Ok(entity) = world.get_entity(*target) else { continue };
        for (number, relationship) in known.iter().enumerate() {
            let Some(sources) = (relationship.sources)(entity) else { continue };
            if let Some(ages) = (relationship.target_ages)(entity, clock) {
                taken.to.push(TargetAges { number, sources: sources.len(), ages });
            }
            let sources = sources.into_iter().enumerate().filter(|(_, source)| together.contains(source));
            places.extend(sources.map(|(place, source)| ((number, source), (*target, place))));
        }
    }
    if places.is_empty() {
        return taken;
    }
    for (source, taken) in leaving.iter().zip(&mut taken) {
        for (number, relationship) in known.iter().enumerate() {
            let Some((target, place)) = places.get(&(number, *source)).copied() else { continue };
            // A hook of another one may have ended it.
            let value = world.get_entity_mut(*source).ok().and_then(|mut source| (relationship.take)(&mut source));
            taken.from.extend(value.map(|value| TakenRelationship { number, target, place, value }));
        }
    }
    taken
}

/// Restores the relationships between entities that all arrived, in the order that their targets had them in. One
/// whose target stayed behind is dropped.
pub fn insert_relationships<'a>(
    world: &mut World,
    known: &[RelationshipFunctions],
    arrived: Vec<(Entity, TakenRelationships, Mapping<'a>)>,
    clock: ChangeClock,
) {
    let (mut from, mut to) = (Vec::new(), Vec::new());
    for (entity, relationships, mapping) in arrived {
        from.extend(relationships.from.into_iter().map(|relationship| (entity, relationship, mapping)));
        to.extend(relationships.to.into_iter().map(|target| (entity, target)));
    }
    from.sort_by_key(|(_, relationship, _)| relationship.place);
    for (source, TakenRelationship { number, target, value, .. }, mut mapping) in from {
        if let Some(functions) = known.get(number)
            && let Some(target) = mapping.arrived(target)
            && let Ok(mut source) = world.get_entity_mut(source)
        {
            (functions.insert)(&mut source, target, value, &mut mapping);
        }
    }
    let clock = ChangeClock { now: world.change_tick(), ..clock };
    for (target, TargetAges { number, sources, ages }) in to {
        let Some(functions) = known.get(number) else { continue };
        let Ok(mut target) = world.get_entity_mut(target) else { continue };
        // If some did not come along, the list changed.
        let complete = (functions.sources)(target.as_readonly()).is_some_and(|now| now.len() == sources);
        if complete
            && let Some(id) = target.world().components().get_valid_id(functions.target_type_id)
            && let Ok(mut list) = target.get_mut_by_id(id)
        {
            clock.apply(ages, &mut list);
        }
    }
}
