//! The main world looks into regions, and changes what it finds there.

use crate::support::*;
use bevy::ecs::system::SystemState;
use bevy::reflect::list::DynamicList;
use bevy::reflect::structs::DynamicStruct;
use bevy_terrane::plugin::LetterLimits;
use bevy_terrane::prelude::*;
use bevy_terrane::storage::{Family, KeyValueStore, MemoryStore};
use bevy_terrane::view::{LogIn, RegionOrder};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use terrane_inspect::{Asked, ComponentLook, EntityLook, Filter, InspectError, Inspector, Listing, Value};
use uuid::Uuid;

const HERE: BlockPos = BlockPos::new(8, 5, 8);

#[derive(Component, Reflect, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[reflect(Component)]
struct Purse {
    coins: u32,
    notes: Vec<String>,
}

#[derive(Component, Reflect, Clone)]
#[component(immutable)]
#[reflect(Component)]
struct Fixed(u8);

/// A component with a default.
#[derive(Component, Reflect, Clone, Debug, Default, PartialEq)]
#[reflect(Component, Default)]
struct Mood {
    joy: u32,
    fear: u32,
}

/// A component that is not registered for regions.
#[derive(Component, Reflect, Clone)]
#[reflect(Component)]
struct Whim(u32);

/// A component without reflection.
#[derive(Component)]
struct Secret {
    _bytes: [u8; 24],
}

fn purse(coins: u32) -> Purse {
    Purse { coins, notes: vec!["from Ann".to_owned()] }
}

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn world(plugin: TerranePlugin) -> (App, DimensionId) {
    let mut app = game(plugin);
    app.register_type::<Purse>()
        .register_type::<Fixed>()
        .register_type::<Mood>()
        .register_type::<Whim>()
        .register_saved_component::<Purse>()
        .register_region_component::<Secret>()
        .register_region_component::<Fixed>()
        .register_region_component::<Mood>();
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 8.0, 8.0, 3);
    start(&mut app);
    update_until(&mut app, "a region is published", |world| {
        region_at(world, dimension, HERE.column()).is_some_and(|region| region.columns > 10)
    });
    (app, dimension)
}

/// Asks a question, and waits for the answer.
fn ask<T>(
    app: &mut App,
    question: impl FnOnce(&mut Inspector) -> Result<Asked<T>, InspectError>,
) -> Result<T, InspectError> {
    let mut state = SystemState::<Inspector>::new(app.world_mut());
    let mut asked = question(&mut state.get_mut(app.world_mut()).unwrap())?;
    state.apply(app.world_mut());
    let mut answer = None;
    update_until(app, "the region answers", |_| {
        answer = asked.take();
        answer.is_some()
    });
    assert!(asked.take().is_none(), "an answer is given once");
    answer.unwrap()
}

fn list(app: &mut App, dimension: DimensionId, filter: Filter) -> Vec<Listing> {
    let region = region_at(app.world(), dimension, HERE.column()).unwrap().region;
    let (mut pages, mut next) = (Vec::new(), None);
    loop {
        let page = ask(app, |inspector| inspector.list((dimension, region), filter.clone(), next)).unwrap();
        next = page.next;
        pages.push(page);
        if next.is_none() {
            return pages;
        }
    }
}

fn look(app: &mut App, id: Uuid) -> Result<EntityLook, InspectError> {
    ask(app, |inspector| inspector.look(id, None))
}

fn write(app: &mut App, id: Uuid, component: &str, value: impl PartialReflect) -> Result<(), InspectError> {
    ask(app, |inspector| inspector.write(id, None, component, Box::new(value)))
}

fn insert(
    app: &mut App,
    id: Uuid,
    components: impl IntoIterator<Item = (&'static str, Box<dyn PartialReflect>)>,
) -> Result<(), InspectError> {
    let components = components.into_iter().map(|(path, value)| (path.to_owned(), value)).collect();
    ask(app, |inspector| inspector.insert(id, None, components))
}

fn component<'a>(look: &'a EntityLook, name: &str) -> &'a ComponentLook {
    look.components.iter().find(|component| component.name.ends_with(name)).unwrap_or_else(|| panic!("{look:?}"))
}

fn purse_of(app: &mut App, id: Uuid) -> Purse {
    let look = look(app, id).unwrap();
    let Value::Copy(value) = &component(&look, "::Purse").value else { panic!("{look:?}") };
    value.try_downcast_ref::<Purse>().unwrap().clone()
}

/// Promise, inspection: The entities of a region are listed by name, component and place, in pages of bounded size.
#[test]
fn entities_are_listed_by_name_component_and_place() {
    let (mut app, dimension) = world(lockstep());
    in_region(&mut app, dimension, HERE, move |world| {
        for number in 0..1_000_u128 {
            let block = BlockPos::new(8 + number as i64 % 10, 5, 8);
            let entity = world.spawn((StableId(id(1 + number)), Position::new(dimension, block))).id();
            match number % 4 {
                0 => world.entity_mut(entity).insert(Name::new(format!("Sheep {number}"))),
                1 => world.entity_mut(entity).insert(purse(1)),
                _ => world.entity_mut(entity).insert(Name::new(format!("cow {number}"))),
            };
        }
    });
    update(&mut app, 3);
    let ids = |pages: &[Listing]| -> Vec<Uuid> {
        pages.iter().flat_map(|page| &page.entities).map(|found| found.id).collect()
    };
    let all = list(&mut app, dimension, Filter::default());
    assert!(all.len() >= 4 && all.iter().all(|page| page.entities.len() <= 256));
    let found: BTreeSet<Uuid> = ids(&all).into_iter().collect();
    assert_eq!((found.len(), ids(&all).len()), (1_000, 1_000));
    let kinds = &all[0].archetypes;
    assert_eq!(kinds.iter().map(|kind| kind.entities).sum::<usize>(), 1_000);
    assert!(
        kinds.iter().any(|kind| kind.entities == 250 && kind.components.contains(&"Purse".to_owned())),
        "{kinds:?}"
    );
    assert!(all[1..].iter().all(|page| page.archetypes.is_empty()));

    let sheep = list(&mut app, dimension, Filter { name: "sHEEP".to_owned(), ..default() });
    assert_eq!(ids(&sheep).len(), 250);
    assert!(sheep[0].entities.iter().all(|found| found.name.as_ref().unwrap().starts_with("Sheep ")));
    assert!(
        sheep[0].entities.iter().all(|found| found.kind.is_empty()),
        "all its components are of Bevy and this crate"
    );
    let rich = list(&mut app, dimension, Filter { component: "Purse".to_owned(), ..default() });
    assert_eq!(ids(&rich).len(), 250);
    assert!(rich.iter().flat_map(|page| &page.entities).all(|found| &*found.kind == "Purse"));
    let near = Some((BlockPos::new(8, 6, 9), 2));
    let near = list(&mut app, dimension, Filter { near, ..default() });
    assert_eq!(ids(&near).len(), 300, "x from 8 to 10");
    assert!(near[0].entities.iter().all(|found| found.position.unwrap().block.x <= 10));
}

/// Promise, inspection: A component is read by reflection and changed as by a system of the game: systems see it in the next tick,
/// and it is saved.
#[test]
fn values_are_read_changed_and_saved() {
    let store = Arc::new(MemoryStore::new());
    let (mut app, dimension) = world(lockstep_on(&store));
    spawn_in_region(
        &mut app,
        dimension,
        HERE,
        (StableId(id(1)), purse(3), Secret { _bytes: [7; 24] }, Name::new("Ann")),
    );
    update(&mut app, 3);
    save(&mut app);

    let seen = look(&mut app, id(1)).unwrap();
    assert_eq!((seen.id, seen.dimension, seen.name.as_deref()), (id(1), dimension, Some("Ann")));
    assert_eq!(purse_of(&mut app, id(1)), purse(3));
    let secret = component(&seen, "::Secret");
    assert!(matches!(secret.value, Value::Unknown) && secret.size == 24, "{secret:?}");

    // Only the field that is to change.
    let mut coins = DynamicStruct::default();
    coins.insert("coins", 8_u32);
    let name = component(&seen, "::Purse").name.clone();
    write(&mut app, id(1), &name, coins).unwrap();
    let is_rich = |purses: Query<&Purse>| purses.iter().all(|purse| purse.coins == 8);
    assert!(ask_region(&mut app, dimension, HERE, is_rich));
    assert_eq!(purse_of(&mut app, id(1)), purse(8));
    // The whole value.
    let empty = Purse { coins: 8, notes: Vec::new() };
    write(&mut app, id(1), &name, empty.clone()).unwrap();
    save(&mut app);
    let (mut app, _) = reopen(app, || world(lockstep_on(&store)));
    update(&mut app, 5);
    assert_eq!(purse_of(&mut app, id(1)), empty);
}

/// Promise, inspection: Changes that would break an entity are refused, and a value that does not fit changes nothing.
#[test]
fn what_must_not_be_changed_is_refused() {
    let (mut app, dimension) = world(lockstep());
    in_region(&mut app, dimension, HERE, move |world| {
        let parent = world.spawn((StableId(id(1)), purse(3), Fixed(1), Position::new(dimension, HERE))).id();
        world.spawn((StableId(id(2)), purse(4), ChildOf(parent)));
    });
    update(&mut app, 3);
    let name = |look: &EntityLook, end: &str| component(look, end).name.clone();
    let (parent, child) = (look(&mut app, id(1)).unwrap(), look(&mut app, id(2)).unwrap());
    let refused =
        |result: Result<(), InspectError>| assert!(matches!(result, Err(InspectError::Refused { .. })), "{result:?}");
    refused(write(&mut app, id(1), &name(&parent, "StableId"), StableId(id(9))));
    refused(write(&mut app, id(2), &name(&child, "ChildOf"), ChildOf(Entity::PLACEHOLDER)));
    let position = name(&parent, "Position");
    refused(write(&mut app, id(1), &position, Position::new(dimension, BlockPos::new(1_000_000, 5, 0))));
    refused(write(&mut app, id(1), &position, Position::new(DimensionId(77), HERE)));
    let beside = Position::new(dimension, BlockPos::new(20, 5, 8));
    write(&mut app, id(1), &position, beside).unwrap();

    let fixed = name(&parent, "::Fixed");
    refused(write(&mut app, id(1), &fixed, Fixed(2)));
    refused(write(&mut app, id(1), Player::type_path(), 1_u32));
    refused(write(&mut app, id(1), Children::type_path(), 1_u32));

    let purse_name = name(&parent, "::Purse");
    let mut wrong = DynamicStruct::default();
    wrong.insert("coins", 8_u32);
    wrong.insert("notes", "no list".to_owned());
    let result = write(&mut app, id(1), &purse_name, wrong);
    assert!(
        matches!(&result, Err(InspectError::WrongValue { component, .. }) if *component == purse_name),
        "{result:?}"
    );
    let mut numbers = DynamicList::default();
    [1_u32, 2, 3].into_iter().for_each(|number| numbers.push(number));
    let mut list = DynamicStruct::default();
    list.insert("notes", numbers);
    let mut other = DynamicStruct::default();
    other.insert("coin", 8_u32);
    for wrong in [list, other] {
        let result = write(&mut app, id(1), &purse_name, wrong);
        assert!(matches!(&result, Err(InspectError::WrongValue { .. })), "{result:?}");
    }
    assert_eq!(purse_of(&mut app, id(1)), purse(3));
    for unknown in ["no::such::Type", &*name(&child, "ChildOf").replace("ChildOf", "Nothing")] {
        let result = write(&mut app, id(1), unknown, 1_u32);
        assert_eq!(result, Err(InspectError::NoComponent(unknown.to_owned())));
    }
}

/// Promise, inspection: Components are inserted as by a system of the game, with the rest of a default, all or none of them.
#[test]
fn components_are_inserted_together() {
    let (mut app, dimension) = world(lockstep());
    spawn_in_region(&mut app, dimension, HERE, (StableId(id(1)), purse(3)));
    spawn_in_region(&mut app, dimension, HERE, StableId(id(2)));
    update(&mut app, 3);
    let joy = |joy: u32| {
        let mut value = DynamicStruct::default();
        value.insert("joy", joy);
        Box::new(value)
    };
    let mut coins = DynamicStruct::default();
    coins.insert("coins", 8_u32);
    // One is changed, two are inserted.
    let changes: [(_, Box<dyn PartialReflect>); 3] =
        [(Purse::type_path(), Box::new(coins)), (Mood::type_path(), joy(5)), (Fixed::type_path(), Box::new(Fixed(7)))];
    insert(&mut app, id(1), changes).unwrap();
    assert_eq!(purse_of(&mut app, id(1)), purse(8));
    let moods =
        |moods: Query<(&Mood, &Fixed)>| moods.iter().map(|(mood, fixed)| (mood.clone(), fixed.0)).collect::<Vec<_>>();
    let found: Vec<(Mood, u8)> = ask_region(&mut app, dimension, HERE, moods);
    assert_eq!(found, [(Mood { joy: 5, fear: 0 }, 7)]);
    insert(&mut app, id(2), [(Purse::type_path(), Box::new(purse(4)).into_partial_reflect())]).unwrap();
    assert_eq!(purse_of(&mut app, id(2)), purse(4));

    let refused = |result| assert!(matches!(result, Err(InspectError::Refused { .. })), "{result:?}");
    let wrong = |result| assert!(matches!(result, Err(InspectError::WrongValue { .. })), "{result:?}");
    // The last of them is immutable, and there already.
    let changes: [(_, Box<dyn PartialReflect>); 2] =
        [(Mood::type_path(), joy(6)), (Fixed::type_path(), Box::new(Fixed(8)))];
    refused(insert(&mut app, id(1), changes));
    assert_eq!(ask_region(&mut app, dimension, HERE, moods), found);
    for (path, value) in [
        (StableId::type_path(), Box::new(StableId(id(9))).into_partial_reflect()),
        (Player::type_path(), Box::new(1_u32)),
        (ChildOf::type_path(), Box::new(ChildOf(Entity::PLACEHOLDER))),
        (Children::type_path(), Box::new(1_u32)),
    ] {
        refused(insert(&mut app, id(2), [(path, value)]));
    }
    let outside = Position::new(dimension, BlockPos::new(1_000_000, 5, 0));
    refused(insert(&mut app, id(2), [(Position::type_path(), Box::new(outside).into_partial_reflect())]));
    // One that is not registered for regions would halt the region.
    refused(insert(&mut app, id(2), [(Whim::type_path(), Box::new(Whim(1)).into_partial_reflect())]));
    // A purse has no default, so it needs all fields.
    spawn_in_region(&mut app, dimension, HERE, StableId(id(3)));
    update(&mut app, 3);
    let mut coins = DynamicStruct::default();
    coins.insert("coins", 8_u32);
    wrong(insert(&mut app, id(3), [(Purse::type_path(), Box::new(coins).into_partial_reflect())]));
    let mut other = DynamicStruct::default();
    other.insert("anger", 8_u32);
    wrong(insert(&mut app, id(3), [(Mood::type_path(), Box::new(other).into_partial_reflect())]));
    wrong(insert(&mut app, id(3), [(Mood::type_path(), Box::new(1_u32).into_partial_reflect())]));
    let unknown = insert(&mut app, id(3), [("no::such::Type", Box::new(1_u32).into_partial_reflect())]);
    assert_eq!(unknown, Err(InspectError::NoComponent("no::such::Type".to_owned())));
    let nowhere = insert(&mut app, id(99), [(Mood::type_path(), Box::new(Mood::default()).into_partial_reflect())]);
    assert!(matches!(nowhere, Err(InspectError::Unreachable(Undeliverable::NoSuchEntity(_)))), "{nowhere:?}");
    assert_eq!(ask_region(&mut app, dimension, HERE, moods), found);
}

/// Promise, inspection: An entity is despawned with its children, and a player is not.
#[test]
fn entities_are_despawned_and_players_are_not() {
    let store = Arc::new(MemoryStore::new());
    let (mut app, dimension) = world(lockstep_on(&store));
    in_region(&mut app, dimension, HERE, move |world| {
        let parent = world.spawn((StableId(id(1)), purse(3), Position::new(dimension, HERE))).id();
        world.spawn((StableId(id(2)), purse(4), ChildOf(parent)));
    });
    app.world_mut().write_message(LogIn { name: "Ann".to_owned(), first_place: Some((dimension, HERE)) });
    update(&mut app, 20);
    save(&mut app);
    let players = list(&mut app, dimension, Filter { component: "Player".to_owned(), ..default() });
    let [player] = &*players[0].entities else { panic!("{players:?}") };
    let despawn = |app: &mut App, id| ask(app, |inspector| inspector.despawn(id, None));
    assert_eq!(despawn(&mut app, player.id), Err(InspectError::Player(player.id)));
    look(&mut app, player.id).unwrap();
    despawn(&mut app, id(1)).unwrap();
    save(&mut app);
    let (mut app, _) = reopen(app, || world(lockstep_on(&store)));
    update(&mut app, 5);
    for gone in [id(1), id(2)] {
        let result = despawn(&mut app, gone);
        assert!(matches!(result, Err(InspectError::Unreachable(Undeliverable::NoSuchEntity(_)))), "{result:?}");
    }
}

/// Promise, inspection: A question of the game's own runs in the region that owns a place, and loads no ground.
#[test]
fn a_place_is_asked_a_question_of_the_games_own() {
    let (mut app, dimension) = world(lockstep());
    let region = region_at(app.world(), dimension, HERE.column()).unwrap().region;
    let which = |world: &mut World| world.resource::<RegionInfo>().region;
    assert_eq!(ask(&mut app, |inspector| inspector.ask(dimension, HERE, which)), Ok(region));
    let far = BlockPos::new(1_000_000, 5, 0);
    assert_eq!(ask(&mut app, |inspector| inspector.ask(dimension, far, which)), Err(InspectError::NotLoaded(far)));
    order(&mut app, dimension, HERE.column(), RegionOrder::Halt);
    update_until(&mut app, "it halts", |world| region_at(world, dimension, HERE.column()).is_some_and(|at| at.halted));
    assert_eq!(ask(&mut app, |inspector| inspector.ask(dimension, HERE, which)), Err(InspectError::Halted(region)));
}

/// Promise, inspection: A halted region and an entity that is not loaded say so.
#[test]
fn halted_regions_and_lost_entities_say_so() {
    let (mut app, dimension) = world(lockstep());
    let region = region_at(app.world(), dimension, HERE.column()).unwrap().region;
    assert!(matches!(look(&mut app, id(5)), Err(InspectError::Unreachable(Undeliverable::NoSuchEntity(_)))));
    let nowhere = RegionId::new(999);
    let result = ask(&mut app, |inspector| inspector.list((dimension, nowhere), Filter::default(), None));
    assert_eq!(result, Err(InspectError::NoSuchRegion(nowhere)));
    order(&mut app, dimension, HERE.column(), RegionOrder::Halt);
    update_until(&mut app, "it halts", |world| region_at(world, dimension, HERE.column()).is_some_and(|at| at.halted));
    let result = ask(&mut app, |inspector| inspector.list((dimension, region), Filter::default(), None));
    assert_eq!(result, Err(InspectError::Halted(region)));
    let result = ask(&mut app, |inspector| inspector.look(id(5), Some((dimension, region))));
    assert!(matches!(result, Err(InspectError::Halted(_))));
}

/// Promise, inspection: An entity is followed from region to region.
#[test]
fn an_entity_is_followed_across_regions() {
    let (mut app, dimension) = world(lockstep());
    let there = BlockPos::new(8 + 16 * 200, 5, 8);
    viewer(&mut app, dimension, there.x as f32, 8.0, 3);
    update_until(&mut app, "two regions are published", |world| {
        region_at(world, dimension, there.column()).is_some_and(|region| region.columns > 10)
    });
    spawn_in_region(&mut app, dimension, HERE, (StableId(id(1)), purse(3)));
    update(&mut app, 3);
    let before = look(&mut app, id(1)).unwrap();
    in_region(&mut app, dimension, HERE, move |world| {
        let entity = world.resource::<EntityIndex>().entity(id(1)).unwrap();
        *world.get_mut::<Position>(entity).unwrap() = Position::new(dimension, there);
    });
    update(&mut app, 5);
    let after = look(&mut app, id(1)).unwrap();
    assert_ne!(before.region, after.region);
    assert_eq!(Some(after.region), region_at(app.world(), dimension, there.column()).map(|region| region.region));
}

/// Promise, inspection: A question to a region of a sparse dimension loads no ground.
#[test]
fn a_question_in_a_sparse_dimension_loads_nothing() {
    let mut app = game(lockstep());
    let high = Dimension::new("high", Flat::new()).with_height(0..1 << 20);
    let dimension = spawn_dimension(&mut app, high);
    let above = BlockPos::new(8, 1 << 19, 8);
    let viewer = Viewer::in_dimension(dimension).with_radius(0).with_vertical_radius(1);
    app.world_mut().spawn((viewer, Position::new(DimensionId::default(), above)));
    start(&mut app);
    update(&mut app, 20);
    let loaded = |app: &App| {
        let columns = app.world().resource::<PublishedColumns>();
        columns.column(dimension, above.column()).unwrap().loaded().unwrap().clone()
    };
    let before = loaded(&app);
    assert!(before.contains(above.chunk().y) && !before.contains(0), "{before:?}");
    list(&mut app, dimension, Filter::default());
    update(&mut app, 20);
    assert_eq!(loaded(&app), before);
}

/// Promise, inspection: A paused region answers with its next tick.
#[test]
fn a_paused_region_answers_with_its_next_tick() {
    let (mut app, dimension) = world(lockstep());
    let region = region_at(app.world(), dimension, HERE.column()).unwrap().region;
    order(&mut app, dimension, HERE.column(), RegionOrder::Pause);
    update(&mut app, 5);
    let mut state = SystemState::<Inspector>::new(app.world_mut());
    let mut inspector = state.get_mut(app.world_mut()).unwrap();
    let mut asked = inspector.list((dimension, region), Filter::default(), None).unwrap();
    state.apply(app.world_mut());
    update(&mut app, 20);
    assert!(asked.take().is_none());
    order(&mut app, dimension, HERE.column(), RegionOrder::Resume);
    update(&mut app, 5);
    assert_eq!(asked.take().unwrap().unwrap().region, region);
}

/// Promise, inspection: A question that is lost on its way is an error, and nobody waits for ever.
#[test]
fn questions_beyond_the_limits_of_letters_are_errors() {
    let letters = LetterLimits { sender_bytes: 1, ..default() };
    let (mut app, dimension) = world(TerranePlugin { limits: Limits { letters, ..default() }, ..lockstep() });
    let region = region_at(app.world(), dimension, HERE.column()).unwrap().region;
    let lost = ask(&mut app, |inspector| inspector.list((dimension, region), Filter::default(), None));
    assert_eq!(lost, Err(InspectError::Dropped));
    let lost = look(&mut app, id(1));
    assert!(matches!(lost, Err(InspectError::Unreachable(Undeliverable::TooManyLetters))), "{lost:?}");
}

/// Everything in a store after a hundred ticks, in each of which somebody looks if `looks`.
fn stored_after(looks: bool) -> Vec<(Family, Vec<u8>, Vec<u8>)> {
    let store = Arc::new(MemoryStore::new());
    let saving = SaveSettings::every(Duration::from_millis(500));
    let (mut app, dimension) = world(TerranePlugin { seed: 7, saving, ..lockstep_on(&store) });
    let region = region_at(app.world(), dimension, HERE.column()).unwrap().region;
    spawn_in_region(&mut app, dimension, HERE, (StableId(id(1)), walker("ann", 0.1), purse(3)));
    update(&mut app, 5);
    let mut state = SystemState::<Inspector>::new(app.world_mut());
    for _ in 0..100 {
        if looks {
            let mut inspector = state.get_mut(app.world_mut()).unwrap();
            inspector.list((dimension, region), Filter::default(), None).unwrap();
            inspector.look(id(1), None).unwrap();
            state.apply(app.world_mut());
        }
        update(&mut app, 1);
    }
    save(&mut app);
    drop(app);
    let all = |family| store.scan(family, &[]..&[0xff; 64], usize::MAX).unwrap();
    let values = |family| all(family).into_iter().map(move |(key, value)| (family, key, value));
    Family::ALL.into_iter().flat_map(values).collect()
}

/// Promise, inspection: Looking changes nothing in the world, its save or lockstep.
#[test]
fn looking_leaves_the_world_as_it_is() {
    let (untouched, looked) = (stored_after(false), stored_after(true));
    assert!(untouched.len() > 10 && looked.len() == untouched.len(), "{} values, {}", looked.len(), untouched.len());
    let others: Vec<_> = untouched.iter().zip(&looked).filter(|(one, other)| one != other).collect();
    // It has the time at which the world was made.
    let is_header = |key: &[u8]| key == b"header";
    assert!(others.iter().all(|((_, key, _), (_, other, _))| is_header(key) && key == other), "{others:?}");
}
