//! Entities travel with all of their parts, and the contents of regions are joined and divided with them.

use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::MoveCause;
use bevy_terrane::view::{RegionMerged, RegionSplit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

#[derive(Component)]
struct Target(#[entities] Entity);

#[derive(Component)]
#[relationship(relationship_target = Herd)]
struct InHerd(Entity);

#[derive(Component)]
#[relationship_target(relationship = InHerd)]
struct Herd(Vec<Entity>);

/// Wool by the column of its sheep.
#[derive(Resource, Default)]
struct Wool(BTreeMap<ColumnPos, u32>);

impl RegionResource for Wool {
    fn merge(&mut self, other: Self) {
        other.0.into_iter().for_each(|(column, wool)| *self.0.entry(column).or_default() += wool);
    }

    fn split(&mut self, part: &RegionPart) -> Self {
        Self(self.0.extract_if(.., |column, _| part.contains(*column)).collect())
    }
}

/// The reports of the regions to the test, from any thread.
#[derive(Resource, Clone, Default)]
struct Told(Arc<Mutex<Vec<(uuid::Uuid, MoveCause, Vec<String>)>>>);

/// The names of the entities that the entity refers to, and of those that refer to it.
fn bonds(entity: Entity, world: &World) -> Vec<String> {
    let name = |entity: Entity| world.get::<Name>(entity).map_or("nobody".to_owned(), |name| name.to_string());
    let targets = world.get::<Target>(entity).into_iter().map(|target| name(target.0));
    let herds = world.get::<InHerd>(entity).into_iter().map(|herd| name(herd.0));
    let members = world.get::<Herd>(entity).into_iter().flat_map(|herd| herd.0.iter().map(|member| name(*member)));
    let children = world.get::<Children>(entity).into_iter().flatten().map(|child| name(*child));
    targets.chain(herds).chain(members).chain(children).collect()
}

fn pasture() -> (App, DimensionId, Told) {
    let mut app = game(TerranePlugin { regionizer: parting_soon(), ..lockstep() });
    let told = Told::default();
    let report = told.clone();
    app.register_region_component::<Target>()
        .register_region_relationship::<InHerd>()
        .register_region_resource::<Wool>()
        .add_region_plugins(move |region| {
            region.insert_resource(report.clone()).init_resource::<Wool>();
            region.world_mut().add_observer(
                |moved: On<EntityMoved>, mut commands: Commands, migration: Option<Res<Moving>>| {
                    assert!(migration.is_none(), "the journey is over");
                    let moved = *moved;
                    commands.queue(move |world: &mut World| {
                        let bonds = bonds(moved.entity, world);
                        world.resource::<Told>().0.lock().unwrap().push((moved.id, moved.cause, bonds));
                    });
                },
            );
        });
    listen::<RegionMerged>(&mut app);
    listen::<RegionSplit>(&mut app);
    let dimension = flat(&mut app);
    (app, dimension, told)
}

/// A shepherd with a dog and three sheep in the column.
fn settle(app: &mut App, dimension: DimensionId, column: i64) {
    let block = BlockPos::new(column * 16, 5, 0);
    app.world_mut().commands().run_in_region(dimension, block, move |region: &mut World| {
        let here = Position::new(region.resource::<RegionInfo>().dimension, block);
        region.resource_mut::<Wool>().0.insert(block.column(), 7);
        let shepherd = region.spawn((Name::new("shepherd"), walker("shepherd", 0.0), here)).id();
        region.spawn((Name::new("dog"), Target(shepherd), here, walker("dog", 0.0)));
        for name in ["hat", "coat"] {
            region.spawn((Name::new(name), ChildOf(shepherd)));
        }
        for name in ["one", "two", "three"] {
            region.spawn((Name::new(name), InHerd(shepherd), here, walker(name, 0.0)));
        }
    });
    app.world_mut().flush();
}

/// The result of `look` in the region that owns the column.
fn look<T: Send + 'static, M>(
    app: &mut App,
    dimension: DimensionId,
    column: i64,
    look: impl IntoSystem<(), T, M> + Send + 'static,
) -> T {
    ask_region(app, dimension, BlockPos::new(column * 16, 5, 0), look)
}

fn bonds_of(app: &mut App, dimension: DimensionId, column: i64, who: &'static str) -> Vec<String> {
    look(app, dimension, column, move |region: &mut World| {
        let mut all = region.query::<(Entity, &Name, &Position)>();
        let wanted = |(_, name, place): &(Entity, &Name, &Position)| name.as_str() == who && place.column().x == column;
        let entity = all.iter(region).find(wanted).map(|(entity, ..)| entity);
        bonds(entity.expect("it is there"), region)
    })
}

const SHEPHERD: [&str; 5] = ["one", "two", "three", "hat", "coat"];

/// Promise, travel: An entity travels whole: registered components, children, linked entities, references and change ticks.
/// Promise, travel: A registered resource is joined when regions merge and divided when they split.
#[test]
fn bonds_and_resources_outlast_a_merge_and_a_split() {
    let (mut app, dimension, told) = pasture();
    viewer(&mut app, dimension, 0.0, 0.0, 2);
    viewer(&mut app, dimension, 16.0 * 40.0, 0.0, 2);
    start(&mut app);
    update(&mut app, 20);
    settle(&mut app, dimension, 0);
    settle(&mut app, dimension, 40);
    update(&mut app, 5);
    let wool = |app: &mut App, column| {
        look(app, dimension, column, |region: &mut World| {
            region.resource::<Wool>().0.keys().map(|it| it.x).collect::<Vec<_>>()
        })
    };
    assert_eq!(wool(&mut app, 0), [0]);

    // A viewer between them merges the two.
    let bridge = viewer(&mut app, dimension, 16.0 * 20.0, 0.0, 19);
    update(&mut app, 40);
    assert!(!heard::<RegionMerged>(&app).is_empty());
    assert_eq!(wool(&mut app, 0), [0, 40]);
    assert_eq!(wool(&mut app, 40), [0, 40]);
    for column in [0, 40] {
        assert_eq!(bonds_of(&mut app, dimension, column, "shepherd"), SHEPHERD);
        assert_eq!(bonds_of(&mut app, dimension, column, "dog"), ["shepherd"]);
    }
    let merged = std::mem::take(&mut *told.0.lock().unwrap());
    assert!(merged.iter().all(|(_, cause, _)| *cause == MoveCause::Merge));
    assert!(merged.iter().any(|(.., bonds)| bonds == &SHEPHERD), "all were there when it was told");

    app.world_mut().despawn(bridge);
    update(&mut app, 60);
    assert!(!heard::<RegionSplit>(&app).is_empty());
    assert_eq!(wool(&mut app, 0), [0]);
    assert_eq!(wool(&mut app, 40), [40]);
    for column in [0, 40] {
        assert_eq!(bonds_of(&mut app, dimension, column, "shepherd"), SHEPHERD);
        assert_eq!(bonds_of(&mut app, dimension, column, "dog"), ["shepherd"]);
        assert_eq!(bonds_of(&mut app, dimension, column, "two"), ["shepherd"]);
    }
    let split = told.0.lock().unwrap();
    assert!(split.iter().any(|(_, cause, bonds)| *cause == MoveCause::Split && bonds == &SHEPHERD));
}

/// Promise, travel: A travelling entity's reference to one that stays behind becomes `Entity::PLACEHOLDER`.
#[test]
fn references_between_entities_that_cross_together_survive() {
    let (mut app, dimension, told) = pasture();
    viewer(&mut app, dimension, 0.0, 0.0, 2);
    viewer(&mut app, dimension, 16.0 * 100.0, 0.0, 2);
    start(&mut app);
    update(&mut app, 20);
    settle(&mut app, dimension, 0);
    update(&mut app, 5);
    let ids = look(&mut app, dimension, 0, |region: &mut World| {
        let mut all = region.query::<(&Name, &StableId, &mut Position)>();
        let mut ids = BTreeMap::new();
        for (name, id, mut place) in all.iter_mut(region) {
            ids.insert(name.to_string(), id.0);
            if ["shepherd", "three", "one"].contains(&name.as_str()) {
                place.block = BlockPos::new(16 * 100, 5, 0);
            }
        }
        ids
    });
    update(&mut app, 5);
    assert_eq!(bonds_of(&mut app, dimension, 100, "shepherd"), ["one", "three", "hat", "coat"]);
    assert_eq!(bonds_of(&mut app, dimension, 100, "three"), ["shepherd"]);
    assert_eq!(bonds_of(&mut app, dimension, 0, "two"), [""; 0], "it stands alone now");
    assert_eq!(bonds_of(&mut app, dimension, 0, "dog"), ["nobody"]);
    let mut moved: Vec<_> = told.0.lock().unwrap().iter().map(|(id, cause, _)| (*id, *cause)).collect();
    moved.sort_by_key(|(id, _)| *id);
    let mut expected = ["shepherd", "three", "one"].map(|name| (ids[name], MoveCause::Crossing));
    expected.sort_by_key(|(id, _)| *id);
    assert_eq!(moved, expected);

    // The dog follows, alone: its lost references stay lost.
    look(&mut app, dimension, 0, |region: &mut World| {
        let mut all = region.query::<(&Name, &mut Position)>();
        for (_, mut place) in all.iter_mut(region).filter(|(name, _)| name.as_str() == "dog") {
            place.block = BlockPos::new(16 * 100, 5, 0);
        }
    });
    assert_eq!(bonds_of(&mut app, dimension, 100, "dog"), ["nobody"]);
}

/// Promise, travel: An unregistered component on an entity that can travel is an error at the end of its first tick.
#[test]
fn an_unregistered_component_halts_its_region_and_names_the_fix() {
    #[derive(Component)]
    struct Forgotten;
    let mut app = game(TerranePlugin::in_memory());
    listen::<RegionHalted>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    spawn_in_region(&mut app, dimension, BlockPos::new(0, 5, 0), Forgotten);
    update_until(&mut app, "a region halted", |world| !world.resource::<Heard<RegionHalted>>().0.is_empty());
    let reason = &heard::<RegionHalted>(&app)[0].fault.reason;
    assert!(
        reason.contains(std::any::type_name::<Forgotten>()) && reason.contains("register_region_component"),
        "{reason}"
    );
}

/// Promise, travel: A component of `leave_region_component_behind` stays behind silently when its entity travels.
#[test]
fn a_component_left_behind_halts_no_region() {
    #[derive(Component)]
    struct Scratch;
    let mut app = game(lockstep());
    app.leave_region_component_behind(std::any::type_name::<Scratch>());
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 10);
    spawn_in_region(&mut app, dimension, BlockPos::new(0, 5, 0), (walker("bob", 0.0), Scratch));
    update(&mut app, 5);
    assert_eq!(walkers(app.world_mut()).len(), 1);
}

#[test]
fn a_relationship_that_was_registered_as_a_component_ends_the_app_with_the_fix() {
    let mut app = game(lockstep());
    app.register_region_component::<Herd>();
    start(&mut app);
    app.update();
    let failure = app.world().resource::<WorldFailure>().to_string();
    assert!(failure.contains("Herd") && failure.contains("register_region_relationship"), "{failure}");
    assert_eq!(app.should_exit(), Some(AppExit::error()));
}

/// Promise, first game: A component registered with `register_saved_component` travels with its entity, and is saved.
/// Promise, travel: A component registered with `register_saved_component` travels and is stored, on children too.
#[cfg(feature = "rocksdb")]
#[test]
fn children_return_with_their_parent_after_a_restart() {
    #[derive(Component, Serialize, Deserialize, TypePath)]
    struct Tool(String);
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let plugin = TerranePlugin { tick_mode: TickMode::Lockstep, ..TerranePlugin::at(folder.path().join("world")) };
        let mut app = game(plugin);
        app.register_saved_component::<Tool>();
        let dimension = flat(&mut app);
        viewer(&mut app, dimension, 0.0, 0.0, 1);
        start(&mut app);
        update(&mut app, 20);
        (app, dimension)
    };
    let family = |app: &mut App, dimension| {
        look(app, dimension, 0, |region: &mut World| {
            let mut roots = region.query_filtered::<(Entity, &StableId), With<Walker>>();
            let (root, id) = roots.single(region).expect("one walker");
            let tools = |at: Entity| -> Vec<_> {
                let children = region.get::<Children>(at).into_iter().flatten();
                children.map(|it| (*it, region.get::<Tool>(*it).map(|it| it.0.clone()))).collect()
            };
            let first = tools(root);
            let second: Vec<_> = first.iter().flat_map(|(child, _)| tools(*child)).collect();
            let ids: Vec<_> = first.iter().map(|(child, _)| region.get::<StableId>(*child).copied()).collect();
            let names = [first, second].concat().into_iter().map(|(_, tool)| tool).collect::<Vec<_>>();
            (*id, ids, names)
        })
    };
    let (mut app, dimension) = open();
    let place = BlockPos::new(0, 5, 0);
    app.world_mut().commands().run_in_region(dimension, place, move |region: &mut World| {
        let here = Position::new(region.resource::<RegionInfo>().dimension, place);
        let root = region.spawn((walker("smith", 0.0), here)).id();
        let tool = |name: &str| Tool(name.to_owned());
        let bag = region.spawn((tool("bag"), ChildOf(root), StableId::default())).id();
        region.spawn((tool("hammer"), ChildOf(root)));
        region.spawn((tool("nails"), ChildOf(bag)));
    });
    app.world_mut().flush();
    update(&mut app, 5);
    let before = family(&mut app, dimension);
    assert_eq!(before.2, ["bag", "hammer", "nails"].map(|name| Some(name.to_owned())));
    drop(app);
    let (mut app, dimension) = open();
    assert_eq!(family(&mut app, dimension), before);
}
