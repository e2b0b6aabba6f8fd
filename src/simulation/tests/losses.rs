//! Components that would be lost on a journey are reported.

use super::*;
use crate::simulation::RegionTemplateError;
use bevy::ecs::error::{BevyError, ErrorContext};
use std::any::type_name;
use std::cell::RefCell;

#[derive(Component)]
struct Forgotten;
#[derive(Component)]
struct AlsoForgotten;
#[derive(Component)]
struct Free;

thread_local! {
    static ERRORS: RefCell<Vec<Vec<String>>> = const { RefCell::new(Vec::new()) };
}

fn note(error: BevyError, _context: ErrorContext) {
    assert!(error.to_string().contains("register_region_component"), "{error}");
    let Some(RegionTemplateError::UnregisteredComponents(components)) = error.downcast_ref() else {
        panic!("no other error is expected: {error}")
    };
    let message = error.to_string();
    assert!(message.contains("is not registered") && components.iter().all(|path| message.contains(path)), "{message}");
    ERRORS.with_borrow_mut(|errors| errors.push(components.clone()));
}

fn errors() -> Vec<Vec<String>> {
    ERRORS.take()
}

fn regions() -> Regions {
    errors();
    let mut regions = Regions::new(|components| components.leave_behind(type_name::<Free>())).with_error_handler(note);
    regions.open(1);
    regions
}

/// Promise, travel: An unregistered component on an entity that can travel is an error at the end of its first tick.
#[test]
fn an_unregistered_component_is_reported_once_in_its_first_tick() {
    let mut regions = regions();
    assert!(errors().is_empty());
    regions.world(1).spawn((Forgotten, AlsoForgotten, Free, place(10)));
    regions.tick(1);
    assert_eq!(errors(), [[type_name::<AlsoForgotten>(), type_name::<Forgotten>()]]);
    regions.world(1).spawn((Name::new("of another archetype"), Forgotten, place(10)));
    regions.tick(1);
    assert!(errors().is_empty());
    regions.open(2).spawn((Forgotten, place(20)));
    regions.tick(2);
    assert_eq!(errors(), [[type_name::<Forgotten>()]], "each world tells of it");
}

#[test]
fn unregistered_components_matter_only_on_entities_that_can_travel() {
    let mut regions = regions();
    let world = regions.world(1);
    world.spawn(Forgotten);
    let parent = world.spawn_empty().id();
    let child = world.spawn((AlsoForgotten, ChildOf(parent))).id();
    world.spawn((Forgotten, ChildOf(child)));
    let brief = world.spawn((Forgotten, place(10))).id();
    world.entity_mut(brief).remove::<Forgotten>();
    (0..2).for_each(|_| drop(regions.tick(1)));
    assert!(errors().is_empty());
    regions.world(1).entity_mut(parent).insert(place(10));
    regions.tick(1);
    let mut found = errors().concat();
    found.sort();
    assert_eq!(found, [type_name::<AlsoForgotten>(), type_name::<Forgotten>()]);
}

/// Promise, travel: An observer of a single entity cannot travel with it.
#[test]
fn an_observed_entity_is_no_error() {
    let mut regions = regions();
    let world = regions.world(1);
    world.spawn(place(10)).observe(|_: On<crate::simulation::entities::EntityMoved>| {});
    assert_eq!(regions.tick(1).numbers.entities, 1);
    assert!(errors().is_empty());
}

#[test]
fn all_that_bevy_puts_on_an_entity_travels() {
    let mut regions = regions();
    let world = regions.world(1);
    let root = world.spawn((Transform::from_xyz(1.0, 2.0, 3.0), Name::new("root"), place(10))).id();
    world.spawn((Transform::default(), Name::new("child"), ChildOf(root)));
    regions.tick(1);
    assert!(errors().is_empty());
    regions.open(2);
    regions.move_all(MoveCause::Crossing);
    let world = regions.world(2);
    let root = named(world, "root");
    assert_eq!(world.get::<Transform>(root), Some(&Transform::from_xyz(1.0, 2.0, 3.0)));
}

#[test]
fn a_relationship_registered_as_a_component_is_refused_with_the_fix() {
    #[derive(Component)]
    #[relationship(relationship_target = Herd)]
    struct InHerd(Entity);
    #[derive(Component)]
    #[relationship_target(relationship = InHerd)]
    struct Herd(Vec<Entity>);
    let check = |register: fn(&mut RegionComponents)| Regions::new(register).template.check();
    let refused = check(|components| components.register::<InHerd>()).unwrap_err();
    assert_eq!(refused, RegionTemplateError::Relationship(type_name::<InHerd>()));
    assert!(refused.to_string().contains("register_region_relationship"), "{refused}");
    let refused = check(|components| components.register::<Herd>()).unwrap_err();
    assert_eq!(refused, RegionTemplateError::Relationship(type_name::<Herd>()));
    assert!(check(|components| components.register::<ChildOf>()).is_err());
    assert_eq!(check(|components| components.register_relationship::<InHerd>()), Ok(()));
}
