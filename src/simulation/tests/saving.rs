//! The data that a region hands out for saving.

use super::*;
use crate::block::Schema;
use crate::simulation::Viewer;
use crate::simulation::entities::EntityIndex;
use crate::storage::EntityRecord;
use bevy::ecs::observer::On;
use serde::{Deserialize, Serialize};

#[derive(Component, Serialize, Deserialize, TypePath, PartialEq, Debug)]
#[type_path = "bevy_terrane"]
struct Mass(u32);

fn regions() -> Regions {
    let mut regions = Regions::new(|components| components.register_saved_with::<Mass>(Schema::default()));
    regions.open(1);
    regions
}

/// The ids in the save batch, each with whether it has a record.
fn handed_out(outbox: &Outbox) -> Vec<(u128, bool)> {
    outbox.save.entities.iter().map(|(id, record)| (id.as_u128(), record.is_some())).collect()
}

fn stable(number: u128) -> StableId {
    StableId(Uuid::from_u128(number))
}

#[test]
fn only_changes_are_handed_out_again() {
    let mut regions = regions();
    let world = regions.world(1);
    let entities: Vec<_> = (1..=7).map(|number| world.spawn((Mass(1), stable(number), place(10))).id()).collect();
    let child = world.spawn((Mass(5), ChildOf(entities[5]))).id();
    world.spawn((Name::new("not saved"), place(10)));
    assert_eq!(handed_out(&regions.save(1)).len(), 7);
    assert_eq!(handed_out(&regions.save(1)), []);
    regions.tick(1);
    assert_eq!(handed_out(&regions.save(1)), []);

    let world = regions.world(1);
    world.get_mut::<Mass>(entities[0]).unwrap().0 = 2;
    world.get_mut::<Position>(entities[1]).unwrap().offset.x = 0.25;
    world.entity_mut(entities[2]).remove::<Mass>();
    world.despawn(entities[3]);
    world.entity_mut(entities[4]).insert(Viewer::new());
    world.get_mut::<Mass>(child).unwrap().0 = 6;
    // Written with the same value.
    world.get_mut::<Mass>(entities[6]).unwrap().set_changed();
    let expected = [(1, true), (2, true), (3, false), (4, false), (5, true), (6, true)];
    assert_eq!(handed_out(&regions.save(1)), expected);
    assert_eq!(handed_out(&regions.save(1)), []);

    let world = regions.world(1);
    world.entity_mut(child).remove::<ChildOf>();
    world.entity_mut(entities[0]).insert(ChildOf(entities[1]));
    assert_eq!(handed_out(&regions.save(1)), [(1, false), (2, true), (6, true)]);
}

#[test]
fn unsaved_changes_stay_unsaved_through_a_merge() {
    let mut regions = regions();
    regions.open(2);
    let world = regions.world(1);
    let [changed, _same] = [1, 2].map(|number| world.spawn((Mass(1), stable(number), place(10))).id());
    regions.save(1);
    regions.world(1).get_mut::<Mass>(changed).unwrap().0 = 2;
    regions.tick(1);
    // The change is old for the other region's systems.
    regions.save(2);
    regions.tick(1);
    regions.merge(1, 2);
    assert_eq!(handed_out(&regions.save(2)), [(1, true)]);
}

#[test]
fn an_entity_that_takes_over_an_id_is_handed_out() {
    let mut regions = regions();
    let entity = regions.world(1).spawn((Mass(1), stable(1), place(10))).id();
    regions.save(1);
    let world = regions.world(1);
    world.entity_mut(entity).remove::<StableId>().insert(stable(1));
    assert_eq!(handed_out(&regions.save(1)), [(1, true)]);
    let world = regions.world(1);
    world.entity_mut(entity).insert(stable(2));
    assert_eq!(handed_out(&regions.save(1)), [(1, false), (2, true)]);
}

#[test]
fn children_come_back_below_their_root_with_their_ids() {
    let mut regions = regions();
    let world = regions.world(1);
    let root = world.spawn((Name::new("not saved"), stable(1), place(10))).id();
    let first = world.spawn((Mass(1), ChildOf(root))).id();
    world.spawn((Name::new("left out"), ChildOf(root)));
    let between = world.spawn((ChildOf(root), place(11), stable(2))).id();
    world.spawn((Mass(2), ChildOf(between)));
    world.spawn((Mass(3), ChildOf(first), Viewer::new().with_radius(3), stable(3)));
    world.spawn((Mass(4), ChildOf(root)));
    let record = regions.save(1).save.entities.remove(&Uuid::from_u128(1)).flatten().unwrap();
    assert_eq!(record.children.len(), 5);

    let mut other = self::regions();
    let columns = vec![LoadedColumn { column: Column::new(column(11)), entities: vec![record.clone()], ..loaded(0) }];
    other.tick_with(1, Inbox { columns, ..Inbox::default() });
    let world = other.world(1);
    fn tree(world: &World, entity: Entity) -> String {
        let mass = world.get::<Mass>(entity).map_or(0, |mass| mass.0);
        let below: Vec<_> =
            world.get::<Children>(entity).into_iter().flatten().map(|child| tree(world, *child)).collect();
        format!("{mass}[{}]", below.concat())
    }
    let find = |world: &World, number| world.resource::<EntityIndex>().entity(Uuid::from_u128(number));
    let root = find(world, 1).unwrap();
    assert_eq!(tree(world, root), "0[1[3[]]0[2[]]4[]]");
    assert_eq!(world.get::<Position>(find(world, 2).unwrap()), Some(&place(11)));
    assert_eq!(world.get::<Viewer>(find(world, 3).unwrap()).unwrap().radius, 3);
    assert_eq!(handed_out(&other.save(1)), [], "it is stored as it is");
}

#[test]
fn a_tree_as_deep_as_it_likes_is_stored_and_restored() {
    let mut regions = regions();
    let world = regions.world(1);
    let root = world.spawn((Mass(0), stable(1), place(10))).id();
    let mut parent = root;
    for depth in 1..20_000 {
        parent = world.spawn((Mass(depth), ChildOf(parent))).id();
    }
    let record: EntityRecord = regions.save(1).save.entities.remove(&Uuid::from_u128(1)).flatten().unwrap();
    let mut other = self::regions();
    let columns = vec![LoadedColumn { column: Column::new(column(10)), entities: vec![record.clone()], ..loaded(0) }];
    other.tick_with(1, Inbox { columns, ..Inbox::default() });
    let world = other.world(1);
    let mut children = world.query::<(&Mass, &ChildOf)>();
    let parents: Vec<_> = children.iter(world).map(|(mass, parent)| (mass.0, parent.parent())).collect();
    assert_eq!(parents.len(), 19_999);
    assert!(parents.into_iter().all(|(depth, parent)| world.get::<Mass>(parent) == Some(&Mass(depth - 1))));
    assert_eq!(record.children.len(), 19_999);
    assert!(
        record
            .children
            .iter()
            .enumerate()
            .all(|(place, child)| child.parent == place.checked_sub(1).map(|it| it as u32))
    );
}

#[derive(Component, Serialize, Deserialize, TypePath)]
#[type_path = "bevy_terrane"]
struct Fuse;

/// Removing the entity with the `Fuse` also despawns entities 2 and 3.
fn explosive() -> Regions {
    let plugins = |region: &mut SubApp| {
        region.world_mut().add_observer(|_: On<Remove, Fuse>, index: Res<EntityIndex>, mut commands: Commands| {
            let victims = [2, 3].into_iter().filter_map(|id| index.entity(Uuid::from_u128(id)));
            victims.for_each(|victim| commands.entity(victim).despawn());
        });
    };
    let register = |components: &mut RegionComponents| {
        components.register_saved_with::<Mass>(Schema::default());
        components.register_saved_with::<Fuse>(Schema::default());
    };
    let mut regions = Regions::with_plugins(register, plugins);
    let world = regions.open(1);
    world.spawn((Fuse, Mass(1), stable(1), place(10)));
    world.spawn((Mass(2), stable(2), place(10)));
    world.spawn((Mass(3), stable(3), place(11)));
    assert_eq!(handed_out(&regions.save(1)).len(), 3);
    regions
}

#[test]
fn an_entity_that_dies_while_others_are_evicted_is_dead() {
    let mut regions = explosive();
    let outbox = regions.tick_with(1, Inbox { evict: vec![column(10)], ..Inbox::default() });
    let left: Vec<_> = outbox.left[0].entities.iter().map(|record| record.id.as_u128()).collect();
    assert_eq!(left, [1], "2 was to be evicted after 1, and died with it");
    assert_eq!(handed_out(&outbox), [(2, false), (3, false)]);
    assert_eq!(handed_out(&regions.save(1)), []);
}

#[test]
fn an_entity_that_dies_while_others_cross_stays_dead() {
    let mut regions = explosive();
    let world = regions.world(1);
    let mut positions = world.query::<(&StableId, &mut Position)>();
    positions.iter_mut(world).filter(|(id, _)| id.0.as_u128() == 1).for_each(|(_, mut at)| at.block = place(20).block);
    let travellers = regions.tick(1).travellers;
    assert_eq!(travellers.iter().map(|it| it.id.as_u128()).collect::<Vec<_>>(), [1]);
    assert_eq!(handed_out(&regions.save(1)), [(2, false), (3, false)]);
}

#[test]
fn an_entity_that_dies_while_it_loads_stays_dead() {
    let plugins = |region: &mut SubApp| {
        region.world_mut().add_observer(|spoilt: On<Add, Mass>, mut commands: Commands| {
            commands.entity(spoilt.entity).despawn();
        });
    };
    let mut regions =
        Regions::with_plugins(|components| components.register_saved_with::<Mass>(Schema::default()), plugins);
    let mut source = self::regions();
    source.world(1).spawn((Mass(1), stable(1), place(10)));
    let left = source.tick_with(1, Inbox { evict: vec![column(10)], ..Inbox::default() }).left;
    assert_eq!(left[0].entities.len(), 1);
    regions.tick_with(1, Inbox { columns: left, ..Inbox::default() });
    assert_eq!(handed_out(&regions.save(1)), [(1, false)]);
}
