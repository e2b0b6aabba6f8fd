//! Merges and splits of whole worlds, with relationships, observers and change ticks.

use super::*;
use crate::block::BlockId;
use crate::simulation::columns::blocks::RegionColumns;
use crate::simulation::components::resources::RegionResource;
use crate::simulation::entities::{EntityMoved, Moving};
use crate::simulation::schedules::RegionTick;
use bevy::ecs::entity::EntityMapper;
use bevy::ecs::event::EntityEvent;
use bevy::ecs::message::{MessageRegistry, Messages};
use bevy::ecs::observer::On;
use std::sync::Mutex;

#[derive(Component)]
struct Points {
    #[entities]
    at: Entity,
    #[entities]
    also: Vec<Entity>,
}

#[derive(Component, Default)]
struct Health(u32);

/// Promise, travel: An entity travels whole: registered components, children, linked entities, references and change ticks.
#[test]
fn references_lead_to_the_same_entities_if_these_moved_along() {
    for cause in CAUSES {
        let mut regions = Regions::new(|components| components.register::<Points>());
        regions.open(2);
        let world = regions.open(1);
        let [one, two] = ["one", "two"].map(|name| world.spawn((Name::new(name), place(10))).id());
        let child = world.spawn((Name::new("child"), ChildOf(two))).id();
        let stays = world.spawn((Name::new("stays"), place(11))).id();
        world.entity_mut(one).insert(Points { at: two, also: vec![one, child, stays] });
        world.entity_mut(child).insert(Points { at: one, also: Vec::new() });
        regions.move_all(cause);

        let world = regions.world(2);
        let [one, two, child] = ["one", "two", "child"].map(|name| named(world, name));
        let points = world.get::<Points>(one).unwrap();
        assert_eq!((points.at, &points.also[..2]), (two, &[one, child][..]), "{cause:?}");
        assert_eq!(world.get::<Points>(child).unwrap().at, one, "{cause:?}");
        if cause == MoveCause::Merge {
            assert_eq!(name(world, points.also[2]), "stays");
        } else {
            assert_eq!(points.also[2], Entity::PLACEHOLDER, "{cause:?}");
        }
    }
}

#[test]
fn entities_that_cross_from_different_regions_are_not_mixed_up() {
    let mut regions = Regions::new(|components| components.register::<Points>());
    regions.open(2);
    let mut travellers = Vec::new();
    for region in [1, 3] {
        let world = regions.open(region);
        let other = world.spawn((Name::new(format!("other {region}")), place(20))).id();
        world.spawn((Name::new(format!("points {region}")), place(20), Points { at: other, also: Vec::new() }));
        travellers.extend(regions.tick(region).travellers);
    }
    regions.arrive(2, travellers);
    let world = regions.world(2);
    for region in [1, 3] {
        let points = named(world, &format!("points {region}"));
        assert_eq!(name(world, world.get::<Points>(points).unwrap().at), format!("other {region}"));
    }
}

#[derive(Component)]
#[relationship(relationship_target = LikedBy)]
struct Likes {
    #[relationship]
    whom: Entity,
    how_much: u32,
}

#[derive(Component)]
#[relationship_target(relationship = Likes)]
struct LikedBy(Vec<Entity>);

#[derive(Component)]
#[relationship(relationship_target = Cars)]
struct PulledBy(Entity);

#[derive(Component)]
#[relationship_target(relationship = PulledBy, linked_spawn)]
struct Cars(Vec<Entity>);

fn relationships(components: &mut RegionComponents) {
    components.register_relationship::<Likes>();
    components.register_relationship::<PulledBy>();
}

/// Promise, travel: A registered relationship stays between entities that travel together; `ChildOf` is built in.
#[test]
fn relationships_stay_in_their_order_and_linked_ones_bring_their_sources_along() {
    for cause in CAUSES {
        let mut regions = Regions::new(relationships);
        regions.open(2);
        let world = regions.open(1);
        let root = world.spawn((Name::new("root"), place(10))).id();
        let children: Vec<_> =
            (0..5).map(|number| world.spawn((Name::new(format!("child {number}")), ChildOf(root))).id()).collect();
        world.entity_mut(root).insert_children(0, &[children[3], children[1]]);
        let grandchild = world.spawn((Name::new("grandchild"), ChildOf(children[2]))).id();
        let cars: Vec<_> =
            (0..3).map(|number| world.spawn((Name::new(format!("car {number}")), PulledBy(root))).id()).collect();
        world.entity_mut(cars[0]).insert(place(11));
        for (how_much, who) in [(7, children[4]), (9, grandchild), (8, cars[2])] {
            world.entity_mut(who).insert(Likes { whom: cars[1], how_much });
        }
        let order = |world: &World, entities: &[Entity]| -> Vec<String> {
            entities.iter().map(|entity| name(world, *entity).to_owned()).collect()
        };
        let before = [&**world.get::<Children>(root).unwrap(), &world.get::<Cars>(root).unwrap().0]
            .map(|entities| order(world, entities));
        assert_eq!(before[0][..2], ["child 3", "child 1"]);
        regions.move_all(cause);

        let world = regions.world(2);
        let [root, car] = ["root", "car 1"].map(|name| named(world, name));
        let after = [&**world.get::<Children>(root).unwrap(), &world.get::<Cars>(root).unwrap().0]
            .map(|entities| order(world, entities));
        assert_eq!(after, before, "{cause:?}");
        let likes: Vec<_> = world.get::<LikedBy>(car).unwrap().0.iter().collect();
        let how_much: Vec<_> = likes.iter().map(|who| world.get::<Likes>(**who).unwrap().how_much).collect();
        assert_eq!(how_much, [7, 9, 8], "{cause:?}");
        assert!(likes.iter().all(|who| world.get::<Likes>(**who).unwrap().whom == car));
        let grandchild = named(world, "grandchild");
        assert_eq!(name(world, world.get::<ChildOf>(grandchild).unwrap().parent()), "child 2");
    }
}

#[test]
fn a_relationship_with_an_entity_that_stays_behind_ends_on_both_sides() {
    for cause in [MoveCause::Split, MoveCause::Crossing] {
        let mut regions = Regions::new(relationships);
        regions.open(2);
        let world = regions.open(1);
        let goes = world.spawn((Name::new("goes"), place(10))).id();
        let stays = world.spawn((Name::new("stays"), place(11), Likes { whom: goes, how_much: 1 })).id();
        world.entity_mut(goes).insert(Likes { whom: stays, how_much: 2 });
        // Its parent has no position, so it cannot travel.
        let nowhere = world.spawn(Name::new("nowhere")).id();
        world.entity_mut(goes).insert(ChildOf(nowhere));
        regions.move_all(cause);

        let world = regions.world(1);
        for entity in [stays, nowhere] {
            let entity = world.entity(entity);
            assert!(!entity.contains::<Likes>() && !entity.contains::<LikedBy>() && !entity.contains::<Children>());
        }
        let world = regions.world(2);
        let goes = named(world, "goes");
        let goes = world.entity(goes);
        assert!(!goes.contains::<Likes>() && !goes.contains::<LikedBy>() && !goes.contains::<ChildOf>(), "{cause:?}");
    }
}

#[test]
fn a_departure_despawns_no_entity_that_stays() {
    for cause in [MoveCause::Split, MoveCause::Crossing] {
        // Neither type is registered.
        let types = [std::any::type_name::<PulledBy>(), std::any::type_name::<Cars>()];
        let mut regions = Regions::new(|components| types.into_iter().for_each(|it| components.leave_behind(it)));
        regions.open(2);
        let world = regions.open(1);
        let engine = world.spawn(place(10)).id();
        let car = world.spawn((place(11), PulledBy(engine))).id();
        let cargo = world.spawn(PulledBy(engine)).id();
        regions.move_all(cause);
        let world = regions.world(1);
        assert!(world.get_entity(engine).is_err());
        for entity in [car, cargo] {
            assert!(world.get_entity(entity).is_ok_and(|entity| !entity.contains::<PulledBy>()), "{cause:?}");
        }
    }
}

#[test]
fn entities_that_follow_each_other_in_a_circle_travel_once() {
    for cause in CAUSES {
        let mut regions = Regions::new(relationships);
        regions.open(2);
        let world = regions.open(1);
        let [one, two] = ["one", "two"].map(|name| world.spawn((Name::new(name), place(10))).id());
        world.entity_mut(one).insert(PulledBy(two));
        world.entity_mut(two).insert(PulledBy(one));
        regions.move_all(cause);
        let world = regions.world(2);
        let [one, two] = ["one", "two"].map(|name| named(world, name));
        assert_eq!(world.get::<PulledBy>(one).unwrap().0, two, "{cause:?}");
        assert_eq!(world.get::<PulledBy>(two).unwrap().0, one, "{cause:?}");
    }
}

#[derive(Component)]
#[require(Health)]
struct Hero;

#[derive(Resource, Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn watch(log: Log) -> impl Fn(&mut SubApp) + Send + Sync {
    let say = |log: &Log, what: &str, migration: bool| {
        log.0.lock().unwrap().push(format!("{what}{}", if migration { ", migrating" } else { "" }));
    };
    move |region| {
        region.insert_resource(log.clone());
        let world = region.world_mut();
        world.add_observer(move |_: On<Remove, Hero>, log: Res<Log>, migration: Option<Res<Moving>>| {
            say(&log, "left", migration.is_some());
        });
        world.add_observer(
            move |add: On<Add, Health>, log: Res<Log>, all: Query<&Health>, migration: Option<Res<Moving>>| {
                let health = all.get(add.event_target()).unwrap().0;
                say(&log, &format!("came with {health}"), migration.is_some());
            },
        );
        world.add_observer(
            move |moved: On<EntityMoved>, log: Res<Log>, migration: Option<Res<Moving>>, all: Query<&Health>| {
                let what = format!("{:?} of {} among {}", moved.cause, moved.id.as_u128(), all.iter().count());
                say(&log, &what, migration.is_some());
            },
        );
    }
}

/// Promise, travel: While `Moving` exists, hooks and observers fire in both regions, and `EntityMoved` follows once all have
/// arrived.
#[test]
fn hooks_and_observers_fire_and_entity_moved_follows() {
    for cause in CAUSES {
        let log = Log::default();
        let mut regions = Regions::with_plugins(
            |components| {
                components.register::<Hero>();
                components.register::<Health>();
            },
            watch(log.clone()),
        );
        regions.open(2);
        let world = regions.open(1);
        for number in 1..=2 {
            let stable = StableId(Uuid::from_u128(number));
            let root = world.spawn((Hero, Health(number as u32 * 10), place(10), stable)).id();
            world.spawn((Name::new("child"), ChildOf(root)));
        }
        log.take();
        regions.move_all(cause);
        let expected = [
            "left, migrating".to_owned(),
            "left, migrating".to_owned(),
            "came with 10, migrating".to_owned(),
            "came with 20, migrating".to_owned(),
            format!("{cause:?} of 1 among 2"),
            format!("{cause:?} of 2 among 2"),
        ];
        assert_eq!(log.take(), expected);
    }
}

#[derive(Component)]
#[component(immutable)]
struct Badge;

#[derive(Resource, Clone, Default)]
struct Changes(Arc<Mutex<Vec<String>>>);

fn look(
    changes: Res<Changes>,
    changed: Query<(&Name, Ref<Health>), Changed<Health>>,
    badges: Query<&Name, Added<Badge>>,
    families: Query<&Name, Changed<Children>>,
) {
    let mut seen = changes.0.lock().unwrap();
    for (name, health) in &changed {
        seen.push(format!("{name} {}", if health.is_added() { "added" } else { "changed" }));
    }
    seen.extend(badges.iter().map(|name| format!("{name}'s badge added")));
    seen.extend(families.iter().map(|name| format!("{name}'s children changed")));
}

/// Promise, travel: An entity travels whole: registered components, children, linked entities, references and change ticks.
#[test]
fn change_ticks_survive_a_journey() {
    for cause in CAUSES {
        let changes = Changes::default();
        let report = changes.clone();
        let mut regions = Regions::with_plugins(
            |components| {
                components.register::<Health>();
                components.register::<Badge>();
            },
            move |region| {
                region.insert_resource(report.clone()).add_systems(RegionTick, look);
            },
        );
        regions.open(2);
        (0..40).for_each(|_| drop(regions.tick(2)));
        let world = regions.open(1);
        for name in ["old", "touched"] {
            let root = world.spawn((Name::new(name), Health(1), Badge, place(10))).id();
            world.spawn(ChildOf(root));
        }
        (0..3).for_each(|_| drop(regions.tick(1)));
        let world = regions.world(1);
        world.spawn((Name::new("new"), Health(1), place(10)));
        let touched = named(world, "touched");
        world.get_mut::<Health>(touched).unwrap().0 += 1;
        changes.0.lock().unwrap().clear();
        match cause {
            // The changes are cleared after the departing tick, since this test is about the systems of the arrival.
            MoveCause::Crossing => {
                let world = regions.world(1);
                let mut positions = world.query::<&mut Position>();
                positions.iter_mut(world).for_each(|mut position| position.block = place(20).block);
                let travellers = regions.tick(1).travellers;
                changes.0.lock().unwrap().clear();
                regions.arrive(2, travellers);
            }
            _ => drop(regions.move_all(cause)),
        }
        let mut seen = std::mem::take(&mut *changes.0.lock().unwrap());
        seen.sort();
        let badges = ["old's badge added", "touched's badge added"];
        match cause {
            // The tick of the departure began after the changes.
            MoveCause::Crossing => assert_eq!(seen, badges),
            _ => {
                let all = ["new added", badges[0], "touched changed", badges[1]];
                assert_eq!(seen, all, "{cause:?}");
            }
        }
        regions.tick(2);
        assert!(changes.0.lock().unwrap().is_empty(), "once is enough");
    }
}

#[test]
fn changes_in_the_tick_of_the_departure_are_seen_after_arrival() {
    fn hurt(mut all: Query<(&mut Health, &Position)>) {
        for (mut health, position) in &mut all {
            if position.column() == column(20) && health.0 == 1 {
                health.0 = 2;
            }
        }
    }
    let changes = Changes::default();
    let report = changes.clone();
    let mut regions = Regions::with_plugins(
        |components| components.register::<Health>(),
        move |region| {
            region.insert_resource(report.clone()).add_systems(RegionTick, (look, hurt).chain());
        },
    );
    regions.open(2);
    let world = regions.open(1);
    let walker = world.spawn((Name::new("walker"), Health(1), place(10))).id();
    (0..3).for_each(|_| drop(regions.tick(1)));
    regions.world(1).get_mut::<Position>(walker).unwrap().block = place(20).block;
    changes.0.lock().unwrap().clear();
    regions.cross(1, 2);
    assert_eq!(*changes.0.lock().unwrap(), ["walker changed"]);
}

#[test]
fn disabled_entities_travel_and_stay_disabled() {
    for cause in CAUSES {
        let mut regions = Regions::new(|_| {});
        regions.open(2);
        regions.open(1).spawn((Name::new("sleeper"), Disabled, place(10)));
        regions.move_all(cause);
        let world = regions.world(2);
        let sleeper = named(world, "sleeper");
        assert!(world.get::<Disabled>(sleeper).is_some(), "{cause:?}");
    }
}

/// Gold by its column.
#[derive(Resource, Default, Debug, PartialEq)]
struct Treasury(BTreeMap<i64, u32>, Vec<Entity>);

impl RegionResource for Treasury {
    fn merge(&mut self, other: Self) {
        for (column, gold) in other.0 {
            *self.0.entry(column).or_default() += gold;
        }
        self.1.extend(other.1);
    }

    fn split(&mut self, part: &RegionPart) -> Self {
        assert_eq!(part.id, RegionId::new(2));
        let goes = self.0.extract_if(.., |x, _| part.contains(column(*x))).collect();
        Self(goes, self.1.clone())
    }

    fn map_references<M: EntityMapper>(&mut self, mapper: &mut M) {
        self.1.iter_mut().for_each(|entity| *entity = mapper.get_mapped(*entity));
    }
}

#[derive(Resource, PartialEq, Debug)]
struct Motto(&'static str);

fn with_treasuries() -> Regions {
    let mut regions = Regions::new(|components| components.register_resource::<Treasury>());
    let world = regions.open(1);
    let keeper = world.spawn((Name::new("keeper"), place(10))).id();
    world.insert_resource(Treasury(BTreeMap::from([(10, 5), (11, 7)]), vec![keeper]));
    world.insert_resource(Motto("one"));
    regions
}

/// Promise, travel: A registered resource is joined when regions merge and divided when they split.
#[test]
fn registered_resources_are_joined_and_others_stay_with_the_larger_region() {
    let mut regions = with_treasuries();
    let world = regions.open(2);
    world.insert_resource(Treasury(BTreeMap::from([(20, 1)]), Vec::new()));
    world.insert_resource(Motto("two"));
    regions.merge(1, 2);
    let world = regions.world(2);
    let keeper = named(world, "keeper");
    let all = BTreeMap::from([(10, 5), (11, 7), (20, 1)]);
    assert_eq!(*world.resource::<Treasury>(), Treasury(all, vec![keeper]));
    assert_eq!(*world.resource::<Motto>(), Motto("two"));
}

#[test]
fn registered_resources_are_divided_and_may_travel_further_before_the_first_tick() {
    let mut regions = with_treasuries();
    let (_, inbox) = regions.part_off(1, 2, &[10]);
    assert_eq!(regions.world(1).resource::<Treasury>().0, BTreeMap::from([(11, 7)]));
    let mut waiting = Inbox::default();
    waiting.append(inbox);
    assert!(!waiting.resources.is_empty());
    assert!(waiting.split_off(|_| true).resources.is_empty(), "they have no place");
    let part = RegionPart { id: RegionId::new(2), sections: vec![column(10).section(0)], section_shift: 0 };
    let divided = waiting.split_resources(&part);
    assert_eq!(divided.len(), 1);
    waiting.resources.extend(divided);
    regions.tick_with(2, waiting);
    let treasury = regions.world(2).resource::<Treasury>();
    assert_eq!(treasury.0, BTreeMap::from([(10, 5)]));
    assert_eq!(treasury.1, [Entity::PLACEHOLDER; 2], "who kept it went another way");
}

#[test]
fn the_outbox_lists_new_and_gone_ids() {
    let ids = |numbers: &[u128]| numbers.iter().copied().map(Uuid::from_u128).collect::<Vec<_>>();
    for cause in CAUSES {
        let mut regions = Regions::new(|_| {});
        regions.open(2);
        let world = regions.open(1);
        for number in [3, 1] {
            world.spawn((StableId(Uuid::from_u128(number)), place(10)));
        }
        let dies = world.spawn((StableId(Uuid::from_u128(2)), place(11))).id();
        let outbox = regions.tick(1);
        assert_eq!((outbox.appeared, outbox.gone), (ids(&[1, 2, 3]), vec![]));
        regions.world(1).despawn(dies);
        let outbox = regions.tick(1);
        assert_eq!((outbox.appeared, outbox.gone), (vec![], ids(&[2])));
        if cause == MoveCause::Split {
            regions.worlds.remove(&2);
            let (outbox, inbox) = regions.part_off(1, 2, &[10]);
            assert_eq!((outbox.appeared, outbox.gone), (vec![], ids(&[1, 3])));
            assert_eq!(regions.tick_with(2, inbox).appeared, ids(&[1, 3]));
            continue;
        }
        let outbox = regions.move_all(cause);
        assert_eq!((outbox.appeared, outbox.gone), (ids(&[1, 3]), vec![]), "{cause:?}");
    }
    let mut regions = Regions::new(|_| {});
    regions.open(1).spawn((StableId(Uuid::from_u128(1)), place(10)));
    let outbox = regions.tick_with(1, Inbox { evict: vec![column(10)], ..Inbox::default() });
    assert_eq!((outbox.appeared, outbox.gone), (vec![], ids(&[1])), "who was there for a moment is told of too");
}

#[test]
fn a_child_outside_of_its_region_leaves_once_detached() {
    let mut regions = Regions::new(|_| {});
    let world = regions.open(1);
    let parent = world.spawn((Name::new("parent"), place(10))).id();
    world.spawn((Name::new("child"), place(20), ChildOf(parent)));
    for _ in 0..3 {
        assert!(regions.tick(1).travellers.is_empty(), "it hangs on its parent");
    }
    let world = regions.world(1);
    let child = named(world, "child");
    world.entity_mut(child).remove::<ChildOf>();
    assert_eq!(regions.tick(1).travellers.len(), 1);
}

#[test]
fn an_entity_at_rest_leaves_when_its_column_is_evicted() {
    let mut regions = Regions::new(|_| {});
    regions.open(1).spawn((Name::new("still"), place(11)));
    regions.tick(1);
    regions.world(1).resource_mut::<RegionColumns>().split_off(|it| it == column(11));
    assert_eq!(regions.tick(1).travellers.len(), 1);
}

#[derive(Message)]
struct Late;

#[test]
fn messages_that_a_system_registers_are_kept_for_two_ticks() {
    let mut regions = Regions::new(|_| {});
    regions.open(1);
    regions.tick(1);
    let world = regions.world(1);
    MessageRegistry::register_message::<Late>(world);
    world.write_message(Late);
    let unread = |regions: &mut Regions| regions.world(1).resource::<Messages<Late>>().len();
    let seen = [(); 3].map(|()| {
        regions.tick(1);
        unread(&mut regions)
    });
    assert_eq!(seen, [1, 0, 0]);
    regions.world(1).write_message(Late);
    regions.tick(1);
    regions.tick(1);
    assert_eq!(unread(&mut regions), 0);
}

#[test]
fn messages_of_the_first_system_of_each_tick_do_not_pile_up() {
    let plugins = |region: &mut SubApp| {
        region.add_message::<Late>().add_systems(RegionTick, |mut late: MessageWriter<Late>| {
            late.write(Late);
        });
    };
    let mut regions = Regions::with_plugins(|_| {}, plugins);
    regions.open(1);
    for _ in 0..20 {
        regions.tick(1);
    }
    assert_eq!(regions.world(1).resource::<Messages<Late>>().len(), 2, "those of the last two ticks");
}

#[derive(Component, Clone, Default)]
struct Torch;

/// Blocks that an observer places while its entity is removed follow the ground and are saved.
#[test]
fn blocks_set_by_departing_entities_are_handed_out() {
    let plugins = |region: &mut SubApp| {
        region.world_mut().add_observer(|_: On<Remove, Torch>, mut owned: ResMut<RegionColumns>| {
            let place = BlockPos::new(10 * 16, 40, 0);
            let _ = owned.set_block(place, BlockId::new(3));
        });
    };
    let mut regions = Regions::with_plugins(|components| components.register::<Torch>(), plugins);
    let chunk = BlockPos::new(10 * 16, 40, 0).chunk();
    let built = |outbox: &Outbox| {
        let saved = outbox.save.chunks.get(&(DIMENSION, chunk));
        saved.is_some_and(|saved| saved.block([0, 8, 0]) == BlockId::new(3))
    };
    regions.open(1).spawn((Torch, place(10)));
    regions.tick(1);
    let (outbox, inbox) = regions.part_off(1, 2, &[10]);
    assert!(built(&outbox));
    assert_eq!(inbox.columns[0].column.block(BlockPos::new(10 * 16, 40, 0)), BlockId::new(3));
    let later = regions.save(1);
    assert!(!later.save.chunks.contains_key(&(DIMENSION, chunk)), "the parent has nothing to say of it any more");

    regions.open(3).spawn((Torch, Position::new(DIMENSION, BlockPos::new(30 * 16, 5, 0))));
    regions.world(3).resource_mut::<RegionColumns>().insert(Column::new(column(10)), None);
    let outbox = regions.tick_with(3, Inbox { evict: vec![column(10), column(30)], ..Inbox::default() });
    assert!(built(&outbox));
    assert_eq!(outbox.left.len(), 2);
}

#[test]
fn an_observer_of_a_departure_can_edit_the_blocks_there() {
    let [at, stone] = [place(10).block, place(10).block.offset(0, 1, 0)];
    let fell = move |removed: On<Remove, Name>, mut ground: ResMut<RegionColumns>, names: Query<&Name>| {
        if names.get(removed.entity).is_ok_and(|name| name.as_str() == "tree") && ground.contains(column(10)) {
            assert!(ground.cancel_tick(at, "grow"), "it was scheduled");
            ground.set_block(stone, BlockId::new(1)).unwrap();
        }
    };
    for cause in CAUSES {
        let mut regions = Regions::with_plugins(
            |_| {},
            move |region| {
                region.world_mut().add_observer(fell);
            },
        );
        regions.open(2);
        let world = regions.open(1);
        world.spawn((Name::new("tree"), place(10)));
        let mut ground = world.resource_mut::<RegionColumns>();
        assert_eq!(ground.schedule_tick(at, "grow", 100), Ok(true));
        regions.move_all(cause);
        let owner = if cause == MoveCause::Crossing { 1 } else { 2 };
        let ground = regions.world(owner).resource::<RegionColumns>();
        assert_eq!((ground.ticks().len(), ground.block(stone)), (0, Ok(BlockId::new(1))), "{cause:?}");
    }
}
