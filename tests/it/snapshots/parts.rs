//! Parts that a capture leaves out are not changed by the restore.

use super::*;
use bevy_terrane::snapshot::SnapshotParts;

const AREA: BlockBox = BlockBox { min: at(0, 16, 0), max: at(31, 47, 15) };
const PLACE: BlockPos = at(3, 20, 3);

/// Captures some parts of a stone and a guard, replaces both, and restores them. Returns the state after the restore.
fn restored(parts: SnapshotParts) -> (bool, Vec<String>) {
    let (mut app, dimension, id) = world(lockstep());
    let [stone, grass] = ["terrane:stone", "terrane:grass"].map(|name| id_of(app.world(), name));
    set(&mut app, dimension, [(PLACE, stone)]);
    spawn_in_region(&mut app, dimension, at(5, 20, 5), walker("guard", 0.0));
    update(&mut app, 5);
    let snapshot = capture(&mut app, CaptureSnapshot { parts, ..CaptureSnapshot::new(id, AREA) });
    assert_eq!((snapshot.parts(), snapshot.columns().len()), (parts, 2));
    set(&mut app, dimension, [(PLACE, grass)]);
    in_region(&mut app, dimension, PLACE, |region| {
        let mut walkers = region.query_filtered::<Entity, With<Walker>>();
        let guards: Vec<_> = walkers.iter(region).collect();
        guards.into_iter().for_each(|guard| assert!(region.despawn(guard)));
    });
    spawn_in_region(&mut app, dimension, at(20, 20, 5), walker("raider", 0.0));
    update(&mut app, 5);
    restore(&mut app, RestoreSnapshot::new(id, snapshot));
    update(&mut app, 5);
    let names = walkers(app.world_mut()).into_iter().map(|(name, _)| name).collect();
    (block_at(app.world_mut(), dimension, PLACE) == Some(stone), names)
}

/// Promise, snapshots: A restore can exclude blocks or entities, and never duplicates an entity.
#[test]
fn blocks_and_entities_are_restored_each_by_itself() {
    let all = SnapshotParts::ALL;
    assert_eq!(restored(all), (true, vec!["guard".to_owned()]));
    assert_eq!(restored(SnapshotParts { entities: false, ..all }), (true, vec!["raider".to_owned()]));
    assert_eq!(restored(SnapshotParts { blocks: false, ..all }), (false, vec!["guard".to_owned()]));
    let neither = SnapshotParts { blocks: false, entities: false, ..all };
    assert_eq!(restored(neither), (false, vec!["raider".to_owned()]));
}
