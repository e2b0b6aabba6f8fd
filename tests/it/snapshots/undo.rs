//! Edits of a running world are undone and redone, blocks and entities.

use super::*;
use bevy_terrane::snapshot::{EditHistory, Recorded};
use uuid::Uuid;

/// Promise, snapshots: `EditHistory` undoes and redoes edits of a box, entities included.
#[test]
fn blocks_and_deaths_of_an_edit_are_undone_and_redone() {
    let (mut app, dimension, id) = world(lockstep());
    let [stone, grass] = ["terrane:stone", "terrane:grass"].map(|name| id_of(app.world(), name));
    let area = BlockBox::new(at(-16, 16, -16), at(31, 47, 31));
    let spawn = |app: &mut App, name: &str, number: u128, x: i64| {
        spawn_in_region(app, dimension, at(x, 20, 3), (walker(name, 0.0), StableId(Uuid::from_u128(number))));
    };
    for (name, number, x) in [("victim", 1, 3), ("witness", 2, 20), ("mover", 3, -5)] {
        spawn(&mut app, name, number, x);
    }
    let house: Vec<BlockPos> = (0..20).map(|x| at(x, 18 + x % 3 * 9, 2)).collect();
    set(&mut app, dimension, [(house[4], grass)]);
    let before = capture(&mut app, CaptureSnapshot::new(id, area));
    let blocks_before = blocks(&mut app, dimension, &area);

    // The edit: a house, a death, a birth, and an entity that moves to the next column.
    set(&mut app, dimension, house.iter().map(|place| (*place, stone)));
    in_region(&mut app, dimension, at(3, 20, 3), |region| {
        let mut walkers = region.query::<(Entity, &Walker, &mut Position)>();
        let mut victim = None;
        for (entity, walker, mut position) in walkers.iter_mut(region) {
            match walker.name.as_str() {
                "victim" => victim = Some(entity),
                "mover" => position.block.x = 10,
                _ => {}
            }
        }
        assert!(victim.is_some_and(|victim| region.despawn(victim)));
    });
    spawn(&mut app, "newborn", 4, 25);
    update(&mut app, 4);
    let after = capture(&mut app, CaptureSnapshot::new(id, area));
    let blocks_after = blocks(&mut app, dimension, &area);
    let mut history = EditHistory::new(1 << 20);
    assert_eq!(history.record(&before, &after), Recorded::Kept);

    // Later another entity comes, and a hut is built that is not part of the edit.
    spawn(&mut app, "guest", 5, 7);
    let hut = at(-10, 40, -10);
    set(&mut app, dimension, [(hut, grass)]);
    let who = |app: &mut App| {
        let found = walkers(app.world_mut()).into_iter();
        found.map(|(name, position)| (name, position.block.x)).collect::<Vec<_>>()
    };
    let expected = |people: &[(&str, i64)]| -> Vec<(String, i64)> {
        people.iter().map(|(name, x)| ((*name).to_owned(), *x)).collect()
    };
    let with_hut = |mut blocks: BTreeMap<BlockPos, BlockId>| {
        blocks.insert(hut, grass);
        blocks
    };
    let step = |app: &mut App, snapshot: Option<Snapshot>| {
        let outcome = restore(app, RestoreSnapshot::new(id, Arc::new(snapshot.unwrap())));
        assert_eq!(outcome.alive_elsewhere, 0);
        update(app, 4);
        (who(app), blocks(app, dimension, &area))
    };
    let undone = expected(&[("guest", 7), ("mover", -5), ("victim", 3), ("witness", 20)]);
    let done = expected(&[("guest", 7), ("mover", 10), ("newborn", 25), ("witness", 20)]);
    for _ in 0..2 {
        let (people, found) = step(&mut app, history.undo());
        assert_eq!(people, undone);
        assert!(found == with_hut(blocks_before.clone()));
        let (people, found) = step(&mut app, history.redo());
        assert_eq!(people, done);
        assert!(found == with_hut(blocks_after.clone()));
    }
    assert!(history.redo().is_none());
}
